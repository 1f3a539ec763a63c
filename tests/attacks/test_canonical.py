"""One record, two readers: whatever Python refuses, TypeScript refuses, and what both take they name alike.

Where they differed, a campaign could show one question to a browser and another to a terminal, or lock out one of them.
"""

import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ahead_ldp.device import Policy, QuestionRefused, Schema, check_question, digest, parse_canonical
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.epsilon import parse_epsilon
from ahead_ldp.device.texts import check_name, check_text
from tests.attacks.records import cases, judged_against
from tests.needs import needed
from tools import system
from tools.vectors import CAMPAIGN, SCHEMA

JS = Path(__file__).resolve().parent.parent.parent / "js"


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """What the TypeScript client says to a list of cases."""
    node = str(needed(system.node(), "Node 20 or newer", f"pip install '{system.NODE}'"))
    bundler = JS / "node_modules" / ".bin" / "esbuild"
    needed(bundler.exists(), "node_modules of js/", "python -m tools.system")
    program = tmp_path_factory.mktemp("judge") / "judge.mjs"
    source, target = str(JS / "test" / "judge.ts"), f"--outfile={program}"
    command = [str(bundler), source, "--bundle", "--format=esm", "--platform=node", "--target=es2022", target]
    subprocess.run(command, check=True, capture_output=True)

    def said(listed):
        lines = "".join(f"{kind} {data.hex()}\n" for kind, data in listed)
        words = [node, str(program), *judged_against()]
        return subprocess.run(words, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()

    return said


def python_says(kind: str, data: bytes) -> str:
    """What the Python device makes of a case."""
    try:
        return JUDGES[kind](data)
    except (ValueError, QuestionRefused):
        return "refused"


def campaign_says(data: bytes) -> str:
    found = Campaign.from_bytes(data)
    groups = " ".join(f"{name.encode().hex()}={share}" for name, share in found.groups)
    price, message = found.epsilon, found.token_message(bytes(32)).hex()
    return f"{found.digest} {found.tier} {found.minimum} {found.enrolment} {price} {message} {groups}"


def question_says(data: bytes) -> str:
    found = check_question(data, SCHEMA, CAMPAIGN, Policy("2", 1024))
    return f"{found.digest} {found.wave} {found.law.cells} {found.law.payload_length}"


def schema_says(data: bytes) -> str:
    found = Schema.from_record(parse_canonical(data)).attributes
    return ", ".join(f"{a.kind} {a.size} {'none' if a.missing_code is None else a.missing_code}" for a in found)


JUDGES = {
    "record": lambda data: digest(parse_canonical(data)),
    "schema": schema_says,
    "campaign": campaign_says,
    "question": question_says,
    "epsilon": lambda data: str(parse_epsilon(data.decode("utf-8"))),
    "name": lambda data: str(len(check_name(data.decode("utf-8"), "it"))),
    "text": lambda data: str(len(check_text(data.decode("utf-8"), "it"))),
}


def differences(judge, count: int, seed: int) -> list[str]:
    """The cases on which the two disagree."""
    listed = list(cases(count, seed))
    both = [python_says(*case) for case in listed], judge(listed)
    assert len(both[1]) == count
    kinds = Counter((kind, said == "refused") for (kind, _), said in zip(listed, both[0], strict=True))
    assert min(kinds[kind, refused] for kind in JUDGES for refused in (True, False)) >= count // 1000, kinds
    return [
        f"{kind} {data[:300]!r}: {ours!r} in Python, {theirs!r} in TypeScript"
        for (kind, data), ours, theirs in zip(listed, *both, strict=True)
        if ours != theirs
    ]


def test_finding_18_both_clients_read_generated_records_alike(judge):
    assert differences(judge, 4000, seed=18) == []


@pytest.mark.soak
def test_a_hundred_thousand_generated_records_are_read_alike(judge):
    assert differences(judge, 100_000, seed=random.SystemRandom().randrange(2**32)) == []


def test_the_comparison_finds_a_difference(judge):
    """Each way of being wrong that was found before, put back: a judge that is not asked would say nothing."""
    listed = [("record", b'{"a":' + b"[" * 40 + b"]" * 40 + b"}"), ("name", "\U0001fae8".encode()), ("record", b"{}")]
    assert judge(listed) == ["refused", "1", digest({})]
    assert [python_says(*case) for case in listed] == judge(listed)
