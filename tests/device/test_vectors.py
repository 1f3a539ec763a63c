"""The vectors are what the device says, and they alone are enough to drive a device."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ahead_ldp.device import (
    LAWS,
    Attribute,
    Axis,
    Header,
    Policy,
    QuestionRefused,
    ReportRejected,
    Schema,
    ValueRefused,
    canonical_bytes,
    check_question,
    decode_batch,
    digest,
    law_from_record,
    parse_canonical,
)
from ahead_ldp.device.campaign import Campaign, check_wave
from ahead_ldp.device.epsilon import epsilon_text, parse_epsilon
from ahead_ldp.device.partition import partition_from_record
from ahead_ldp.device.tokens import token_group
from ahead_ldp.device.wording import wording_records
from tools import vectors

FOLDER = Path(__file__).parent.parent / "vectors"


def cases(name: str):
    found = json.loads((FOLDER / name).read_text("utf-8"))["cases"]
    assert found
    return pytest.mark.parametrize("case", found, ids=[case["name"] for case in found])


class GivenWords:
    """The words of a case, which must be asked for in their order and size, and all be used."""

    def __init__(self, words):
        self.words = [(bits, int(word)) for bits, word in words]

    def take(self, bits):
        asked, word = self.words.pop(0)
        assert asked == bits
        return word


def as_held(attribute: Attribute, written):
    return float(written) if attribute.kind == "real" and isinstance(written, str) else written


# Generation.


def test_files_are_what_the_device_says():
    assert vectors.differences() == [], "run `python -m tools.vectors` and look at what changed"


def test_check_command():
    done = subprocess.run([sys.executable, "-m", "tools.vectors", "--check"], cwd=FOLDER.parent.parent, check=False)
    assert done.returncode == 0


def test_check_sees_a_changed_file(tmp_path, monkeypatch, capsys):
    for name, text in vectors.generate().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(vectors, "FOLDER", tmp_path)
    assert vectors.main(["--check"]) == 0
    (tmp_path / "codes.json").write_text((tmp_path / "codes.json").read_text().replace("81", "80", 1))
    (tmp_path / "frames.json").unlink()
    assert vectors.main(["--check"]) == 1
    shown = capsys.readouterr().err
    assert "codes.json" in shown
    assert "frames.json" in shown
    assert "reports.json" not in shown
    assert vectors.main(["--wrong"]) == 2


def test_readme_names_every_file():
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert {path.name for path in FOLDER.glob("*.json")} == {*vectors.FILES, "rfc9474.json"}
    assert all(f"`{name}`" in readme for name in vectors.FILES)


def test_reports_cover_every_law_both_word_sizes_and_rejection():
    found = json.loads((FOLDER / "reports.json").read_text("utf-8"))["cases"]
    assert {(c["oracle"]["name"], c["oracle"]["bits"]) for c in found} == {(n, b) for n in LAWS for b in (32, 64)}
    for name in ("grr", "olh", "ss", "sw"):  # the others draw below a power of two, or only coins
        same = [c for c in found if c["oracle"]["name"] == name and c["oracle"]["cells"] == 11]
        assert len({len(c["words"]) for c in same}) > 1, f"{name} never draws a word again"


# The device, driven from the files.


@cases("canonical.json")
def test_canonical(case):
    data = bytes.fromhex(case["bytes"])
    if case.get("refused"):
        with pytest.raises(ValueError, match="canonical"):
            parse_canonical(data)
        return
    record = parse_canonical(data)
    assert record == json.loads(case["text"])
    assert canonical_bytes(record) == data == case["text"].encode()
    assert digest(record) == case["digest"] == hashlib.sha256(data).hexdigest()


@cases("epsilons.json")
def test_epsilons(case):
    if case["refused"]:
        with pytest.raises(ValueError, match="epsilon"):
            parse_epsilon(case["text"])
    else:
        assert epsilon_text(parse_epsilon(case["text"])) == case["text"]


@cases("codes.json")
def test_codes(case):
    attribute = Attribute.from_record(case["attribute"])
    assert attribute.record() == case["attribute"]
    assert attribute.size == case["size"]
    for written, code in case["values"]:
        if code is None:
            with pytest.raises(ValueRefused):
                attribute.code(as_held(attribute, written))
        else:
            assert attribute.code(as_held(attribute, written)) == code


@cases("attributes_refused.json")
def test_attributes_refused(case):
    with pytest.raises(ValueError, match="expected"):
        Attribute.from_record(case["attribute"])


@cases("campaigns.json")
def test_campaigns(case):
    data = bytes.fromhex(case["campaign"])
    if case.get("refused"):
        with pytest.raises(ValueError, match="expected"):
            Campaign.from_bytes(data)
        return
    found = Campaign.from_bytes(data, case["digest"])
    assert (found.tier, found.minimum) == (case["tier"], case["minimum"])
    assert found.token_message(bytes(range(32))).hex() == case["token_message"]
    assert wording_records(found.wording) == case.get("wording", [])


@cases("waves.json")
def test_waves(case):
    campaign, data = Campaign.from_bytes(bytes.fromhex(case["campaign"])), bytes.fromhex(case["wave"])
    if case.get("refused"):
        with pytest.raises(QuestionRefused):
            check_wave(data, campaign, case["number"], Policy(case["max_epsilon"]))
        return
    found = check_wave(data, campaign, case["number"], Policy(case["max_epsilon"]))
    assert {group: question.digest for group, question in found.items()} == case["questions"]


@cases("groups.json")
def test_groups(case):
    groups = [(name, share) for name, share in case["groups"]]
    signature = bytes.fromhex(case["signature"])
    assert token_group(signature, case["campaign"], case["wave"], groups) == case["group"]


@cases("partitions.json")
def test_partitions(case):
    axes = [Axis(**axis) for axis in case["axes"]]
    if case.get("refused"):
        with pytest.raises(ValueError, match="expected"):
            partition_from_record(case["partition"]).cells(axes)
        return
    form = partition_from_record(case["partition"])
    assert form.cells(axes) == case["cells"]
    for codes, cell in case["cell_of"]:
        assert form.cell(axes, codes) == cell
    assert {cell for _, cell in case["cell_of"]} == set(range(case["cells"]))


@cases("reports.json")
def test_reports(case):
    law, words = law_from_record(case["oracle"]), GivenWords(case["words"])
    assert law.record() == case["oracle"]
    assert law.draw(case["code"], words).hex() == case["payload"]
    assert words.words == []
    law.check_payload(bytes.fromhex(case["payload"]))


@cases("payloads_refused.json")
def test_payloads_refused(case):
    with pytest.raises(ReportRejected) as caught:
        law_from_record(case["oracle"]).check_payload(bytes.fromhex(case["payload"]))
    assert caught.value.reason == case["refused"]


@cases("frames.json")
def test_frames(case):
    law, header = law_from_record(case["oracle"]), Header(case["campaign"], case["question"])
    if "refused" in case:
        with pytest.raises(ReportRejected) as caught:
            decode_batch(bytes.fromhex(case["batch"]), header, law)
        assert caught.value.reason == case["refused"]
        return
    found = decode_batch(bytes.fromhex(case["batch"]), header, law)
    assert [[r.report_id.hex(), r.payload.hex()] for r in found] == case["reports"]


@cases("questions.json")
def test_questions(case):
    schema, policy = Schema.from_record(case["schema"]), Policy(case["max_epsilon"], case["max_cells"])
    data = bytes.fromhex(case["question"])
    if case.get("refused"):
        with pytest.raises(QuestionRefused):
            check_question(data, schema, case["campaign"], policy)
        return
    question = check_question(data, schema, case["campaign"], policy)
    assert question.digest == case["digest"]
    for person, cell, given, payload, replaced in case["answers"]:
        values = {a.name: as_held(a, person[a.name]) for a in schema.attributes if a.name in person}
        words = GivenWords(given)
        drawn, misfits = question.draw(values, words)
        assert (drawn.hex(), list(misfits)) == (payload, replaced)
        assert words.words == []
        if replaced:
            with pytest.raises(ValueRefused, match=replaced[0]):
                question.cell(values)
        else:
            assert question.cell(values) == cell
            assert question.law.draw(cell, GivenWords(given[len(question.attributes) :])).hex() == payload


def test_questions_cover_values_that_are_missing_and_outside():
    found = json.loads((FOLDER / "questions.json").read_text("utf-8"))["cases"]
    replaced = {tuple(answer[4]) for case in found for answer in case.get("answers", ())}
    assert replaced == {(), ("age",), ("pay",), ("age", "pay"), ("town",)}
