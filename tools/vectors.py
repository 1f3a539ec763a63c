"""Test vectors of the device, for other languages. `python -m tools.vectors` writes them, `--check` compares.

The cases are chosen here; what they must give is what the Python device says. Their form: tests/vectors/README.md.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ahead_ldp.device import (
    LAWS,
    Attribute,
    Axis,
    GridForm,
    Header,
    Law,
    Policy,
    QuestionRefused,
    Report,
    ReportRejected,
    Schema,
    TreeForm,
    ValueRefused,
    canonical_bytes,
    check_question,
    decode_batch,
    digest,
    encode_batch,
)
from ahead_ldp.device.codes import equal_edges, equal_integer_edges
from ahead_ldp.device.epsilon import parse_epsilon
from ahead_ldp.device.partition import PartitionForm, partition_from_record
from ahead_ldp.device.question import question_record
from ahead_ldp.device.texts import check_name, check_text, is_printable
from tools.campaign_vectors import campaign_cases, group_cases, wave_cases
from tools.ledger_vectors import file_cases, ledger_cases, naming_cases
from tools.step_vectors import step_cases

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "vectors"
Case = dict[str, Any]


class FixedWords:
    """Words that look random and never change: SHA-256 of a label and a counter. For vectors only.

    ``first`` are given out before all others, to force a rejection or a rare branch. ``start`` is where the counter
    begins: below zero for words that were put before those of an older vector.
    """

    def __init__(self, label: str, first: tuple[int, ...] = (), start: int = 0) -> None:
        self.label, self.first, self.start = label, list(first), start
        self.drawn: list[tuple[int, int]] = []

    def take(self, bits: int) -> int:
        if self.first:
            word = self.first.pop(0) % (1 << bits)
        else:
            hashed = hashlib.sha256(f"{self.label} {self.start + len(self.drawn)}".encode()).digest()
            word = int.from_bytes(hashed[: bits // 8], "big")
        self.drawn.append((bits, word))
        return word

    def record(self) -> list[list[Any]]:
        return [[bits, str(word)] for bits, word in self.drawn]


# Records.


def canonical_cases() -> Iterator[Case]:
    good: dict[str, dict[str, Any]] = {
        "empty": {},
        "order of keys": {"b": 1, "a10": 2, "a2": 3, "a_": 4},
        "values": {"a": [1, -2, 0, True, False, None, "x", [], {}]},
        "largest integers": {"a": [2**53 - 1, 1 - 2**53]},
        "escapes": {"a": 'quote " backslash \\ slash / tab \t line \n bell \x07 unit \x1f delete \x7f'},
        "other scripts": {"a": "é 漢 \u2028 \U0001f600"},
        "schema": SCHEMA.record(),
        "question": good_question("oue"),
        "names of a prototype": {"constructor": 1, "has_own_property": 2, "prototype": {"constructor": None}},
        "as many levels as there may be": {"a": nested(31)},
    }
    for name, record in good.items():
        data = canonical_bytes(record)
        yield {"name": name, "text": data.decode(), "bytes": data.hex(), "digest": digest(record)}
    bad = {
        "space": b'{"a": 1}',
        "line at the end": b'{"a":1}\n',
        "keys not sorted": b'{"b":1,"a":1}',
        "key twice": b'{"a":1,"a":1}',
        "upper-case key": b'{"A":1}',
        "float": b'{"a":1.0}',
        "exponent": b'{"a":1e3}',
        "minus zero": b'{"a":-0}',
        "integer of 2^53": b'{"a":9007199254740992}',
        "NaN": b'{"a":NaN}',
        "needless escape": b'{"a":"\\u0041"}',
        "escaped slash": b'{"a":"\\/"}',
        "upper-case escape": b'{"a":"\\u001F"}',
        "escaped letter": b'{"a":"\\u00e9"}',
        "lone surrogate": b'{"a":"\\ud800"}',
        "not UTF-8": b'{"a":"\xe9"}',
        "byte order mark": b'\xef\xbb\xbf{"a":1}',
        "list": b"[]",
        "nothing": b"",
        "cut off": b'{"a":1',
        "a level too many": b'{"a":' + b"[" * 32 + b"]" * 32 + b"}",
        "a level too many, of objects": b'{"a":' * 33 + b"1" + b"}" * 33,
        "ten thousand levels": b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        "__proto__": b'{"__proto__":{}}',
    }
    for name, data in bad.items():
        yield {"name": name, "bytes": data.hex(), "refused": True}


def nested(levels: int) -> list[Any]:
    """Lists within lists."""
    made: list[Any] = []
    for _ in range(levels - 1):
        made = [made]
    return made


def text_cases() -> Iterator[Case]:
    printable = [is_printable(chr(code)) for code in range(0x110000)]
    bits = "".join("1" if one else "0" for one in printable)
    yield {"name": "every code point", "printable": sum(printable), "sha256": hashlib.sha256(bits.encode()).hexdigest()}
    texts = (
        "a",
        "a b",
        "",
        " a",
        "a ",
        " ",
        "a\nb",
        "\n",
        "a\tb",
        "é",
        "e\u0301",
        "\u00a0",
        "a\u200db",
        "a\u202eb",
        "\ufeffa",
    )
    more = (
        "\U0001fae8",
        "\U000107c0",
        "\U0003ffff",
        "\ue000",
        "x" * 200,
        "x" * 201,
        "\U0001f600" * 200,
        "\U0001f600" * 201,
    )
    for text in (*texts, *more, "x\n" * 5000, "x" * 10_001):
        name, said = refuses(check_name, text, "a name"), refuses(check_text, text, "a text")
        yield {"name": f"{text[:12]!a}, {len(text)}", "text": text, "name_refused": name, "text_refused": said}


def epsilon_cases() -> Iterator[Case]:
    good = ("1", "0.1", "1.1", "64", "10", "0.000001")
    bad = ("0", "0.0", "1.0", "01", ".5", "1.", "+1", "-1", "1e0", "65", " 1", "")
    for text in good + bad:
        assert refuses(parse_epsilon, text) == (text in bad)
        yield {"name": text, "text": text, "refused": text in bad}


def refuses(call: Callable[..., object], *arguments: object) -> bool:
    try:
        call(*arguments)
    except ValueError:
        return True
    return False


# Codes.

ATTRIBUTES = (
    Attribute("age", "integer", 18, 99),
    Attribute("below zero", "integer", -10, 10, equal_integer_edges(-10, 10, 4)),
    Attribute("pay", "real", 0, 500_000, equal_edges(0, 500_000, 16)),
    Attribute("thirds", "real", 0, 1, equal_edges(0, 1, 3)),
    Attribute("delay", "real", -5, 100, (0.0, 1e-5, 1.5, 60.0), missing="cell"),
    Attribute("last is the maximum", "real", 0, 1, (0.25, 0.5, 0.75, 1.0)),
    Attribute("born", "date", -3653, 10957, equal_integer_edges(-3653, 10957, 10)),
    Attribute("wakes", "time", 0, 86399, equal_integer_edges(0, 86399, 24)),
    Attribute("seen", "datetime", 0, 86400 * 366, equal_integer_edges(0, 86400 * 366, 12)),
    Attribute("size", "ordered", labels=("S", "M", "L"), missing="value", missing_value="M"),
    Attribute("town", "nominal", labels=("Ulm", "Bonn", "Köln"), missing="cell"),
    Attribute("only", "integer", 7, 7),
)
VALUES: dict[str, list[Any]] = {
    "age": [18, 19, 98, 99, 17, 100, None, "18"],
    "below zero": [-10, -6, -5, -1, 0, 4, 5, 10, -11, 11],
    "pay": ["0.0", "31249.999999999996", "31250.0", "31250.000000000004", "499999.99999999994", "500000.0", "-5e-324"],
    "thirds": ["0.3333333333333333", "0.33333333333333326", "0.6666666666666666", "0.6666666666666667", "1.0"],
    "delay": ["-5.0", "0.0", "-5e-324", "1e-05", "9.999999999999999e-06", "1.5", "60.0", "100.0", None, "100.1"],
    "last is the maximum": ["0.0", "0.25", "0.9999999999999999", "1.0", "1.0000000000000002"],
    "born": [
        "1960-01-01",
        "1969-12-31",
        "1970-01-01",
        "2000-01-01",
        "1959-12-31",
        "2000-01-02",
        "1970-02-30",
        "19700101",
        "1970-W01-4",
        None,
    ],
    "wakes": [
        "00:00:00",
        "00:59:59",
        "01:00:00",
        "06:30",
        "23:59:59",
        "23:59:59.999999",
        "24:30:00",
        "24:00",
        "0630",
        "6:30",
        "noon",
    ],
    "seen": [
        "1970-01-01T00:00:00",
        "1970-01-01T02:00:00+02:00",
        "1970-02-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-03-01",
        "1970-03-01 12:00",
        "1970-03-01T12",
        "19700301T120000",
        "",
    ],
    "size": ["S", "M", "L", None, "s", "XL", ""],
    "town": ["Ulm", "Bonn", "Köln", None, "Koln"],
    "only": [7, 6, 8],
}


def code_cases() -> Iterator[Case]:
    for attribute in ATTRIBUTES:
        pairs = [[value, code_or_none(attribute, value)] for value in VALUES[attribute.name]]
        yield {"name": attribute.name, "attribute": attribute.record(), "size": attribute.size, "values": pairs}


def code_or_none(attribute: Attribute, value: Any) -> int | None:
    """The code, or None for a value that is refused. Real values are decimal strings, as on the wire."""
    try:
        return attribute.code(float(value) if attribute.kind == "real" and value is not None else value)
    except ValueRefused:
        return None


def bad_attribute_cases() -> Iterator[Case]:
    real, whole, label = (ATTRIBUTES[i].record() for i in (5, 0, 9))
    changes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "unknown field": (whole, {"unit": "years"}),
        "unknown kind": (whole, {"kind": "number"}),
        "lo above hi": (whole, {"lo": 100}),
        "text for an integer": (whole, {"lo": "18"}),
        "too many codes": (whole, {"hi": 2**31, "lo": 0}),
        "number for a decimal string": (real, {"lo": 0}),
        "no shortest decimal": (real, {"lo": "0"}),
        "minus zero": (real, {"lo": "-0.0"}),
        "infinite": (real, {"hi": "inf"}),
        "edges do not rise": (real, {"edges": ["0.5", "0.5"]}),
        "edge at lo": (real, {"edges": ["0.0", "0.5"]}),
        "edge above hi": (real, {"edges": ["0.5", "1.5"]}),
        "no edges": (real, {"edges": None}),
        "category twice": (label, {"labels": ["S", "S", "L"]}),
        "no category": (label, {"labels": []}),
        "empty category": (label, {"labels": ["S", "", "L"]}),
        "missing code outside": (label, {"missing_code": 3}),
        "missing code boolean": (label, {"missing_code": True}),
        "missing cell elsewhere": (label, {"missing": "cell", "missing_code": 1}),
        "code where missing is refused": (label, {"missing": "refused"}),
    }
    for name, (record, change) in changes.items():
        changed = {**record, **change}
        assert refuses(Attribute.from_record, changed), name
        yield {"name": name, "attribute": changed, "refused": True}


# Partitions.


def partition_cases() -> Iterator[Case]:
    good: dict[str, tuple[list[Axis], PartitionForm]] = {
        "grid, one attribute": ([Axis(8)], GridForm(((2, 5),))),
        "grid, two attributes": ([Axis(4), Axis(3)], GridForm(((1, 3), (2,)))),
        "grid, not cut": ([Axis(4), Axis(1)], GridForm(((), ()))),
        "tree, powers of two": ([Axis(8)], TreeForm(2, "1010100")),
        "tree, as equal as possible": ([Axis(7)], TreeForm(3, "110000")),
        "tree, two attributes": ([Axis(4), Axis(3)], TreeForm(2, "1001000")),
        "tree, a missing cell": ([Axis(6, missing=True)], TreeForm(2, "101000")),
        "tree, categories": ([Axis(3, nominal=True), Axis(4)], TreeForm(2, "100000100")),
        "tree, categories and missing": ([Axis(4, nominal=True, missing=True)], TreeForm(2, "10000")),
        "tree, root alone": ([Axis(5)], TreeForm(2, "0")),
    }
    for name, (axes, form) in good.items():
        codes = [[]]  # type: list[list[int]]
        for axis in axes:
            codes = [[*before, code] for before in codes for code in range(axis.size)]
        yield {
            "name": name,
            "axes": [axis_record(axis) for axis in axes],
            "partition": form.record(),
            "cells": form.cells(axes),
            "cell_of": [[c, form.cell(axes, c)] for c in codes],
        }
    two = [Axis(4), Axis(3)]
    bad: dict[str, tuple[list[Axis], dict[str, Any]]] = {
        "cut at zero": ([Axis(4)], {"form": "grid", "cuts": [[0, 2]]}),
        "cut at the end": ([Axis(4)], {"form": "grid", "cuts": [[2, 4]]}),
        "cuts do not rise": ([Axis(4)], {"form": "grid", "cuts": [[2, 2]]}),
        "cuts for another number of attributes": (two, {"form": "grid", "cuts": [[2]]}),
        "flags too short": ([Axis(4)], {"form": "tree", "fanout": 2, "flags": "10"}),
        "flags too long": ([Axis(4)], {"form": "tree", "fanout": 2, "flags": "1000"}),
        "another letter": ([Axis(4)], {"form": "tree", "fanout": 2, "flags": "1 0"}),
        "a single code cut": ([Axis(2)], {"form": "tree", "fanout": 2, "flags": "1100"}),
        "fanout of one": ([Axis(4)], {"form": "tree", "fanout": 1, "flags": "10"}),
        "no flags": ([Axis(4)], {"form": "tree", "fanout": 2, "flags": ""}),
        "more nodes than any memory": ([Axis(2**16)] * 3, {"form": "tree", "fanout": 2**16, "flags": "10"}),
        "boxes": ([Axis(4)], {"form": "boxes", "boxes": [[[0, 4]]]}),
        "unknown field": ([Axis(4)], {"form": "grid", "cuts": [[2]], "fanout": 2}),
    }
    for name, (axes, record) in bad.items():
        assert refuses(count_cells, axes, record), name
        yield {"name": name, "axes": [axis_record(a) for a in axes], "partition": record, "refused": True}


def count_cells(axes: list[Axis], record: dict[str, Any]) -> int:
    return partition_from_record(record).cells(axes)


def axis_record(axis: Axis) -> dict[str, Any]:
    return {"size": axis.size, "nominal": axis.nominal, "missing": axis.missing}


# Reports.


def report_cases() -> Iterator[Case]:
    for name, make in LAWS.items():
        for epsilon, cells in (("1", 2), ("0.5", 5), ("1.1", 11), ("8", 300), ("0.000001", 7)):
            law = make.make(epsilon, cells)
            for code in sorted({0, cells // 2, cells - 1}):
                words = FixedWords(f"{name} {epsilon} {cells} {code}")
                yield report_case(f"{name}, epsilon {epsilon}, {cells} cells, code {code}", law, code, words)
            yield from branch_cases(law, epsilon)


def branch_cases(law: Law, epsilon: str) -> Iterator[Case]:
    """The first words at their ends: the coin both ways and exactly at its threshold, and words drawn again."""
    highest = (1 << law.bits) - 1
    coins: dict[str, tuple[int, ...]] = {
        "all bits zero": (0,) * 5,
        "all bits one": (highest,) * 5,
        "high, then low": (highest, 0, highest, 0, 3),
    }
    names = law.parameter_names()
    threshold = int(getattr(law, next(n for n in ("keep", "q_num", "p_num") if n in names)))
    before = {"olh": (11, 13, 17), "hrr": (1,), "haar": (1,) if law.cells > 2 else ()}.get(law.name, ())
    coins["one below the threshold"] = (*before, threshold - 1)
    coins["at the threshold"] = (*before, threshold, highest, highest)
    for label, first in coins.items():
        words = FixedWords(f"{law.name} {epsilon} {law.cells} {label}", first)
        yield report_case(f"{law.name}, epsilon {epsilon}, {law.cells} cells, {label}", law, 1, words)


def report_case(name: str, law: Law, code: int, words: FixedWords) -> Case:
    payload = law.draw(code, words).hex()
    return {"name": name, "oracle": law.record(), "code": code, "words": words.record(), "payload": payload}


def bad_payload_cases() -> Iterator[Case]:
    for name, make in LAWS.items():
        law = make.make("1", 11)
        good = law.draw(3, FixedWords(f"{name} payload"))
        candidates = {
            "too short": good[:-1],
            "too long": good + b"\0",
            "all bits one": b"\xff" * len(good),
            "last byte 255": good[:-1] + b"\xff",
            "all bits zero": bytes(len(good)),
        }
        for label, payload in candidates.items():
            try:
                law.check_payload(payload)
            except ReportRejected as error:
                yield {
                    "name": f"{name}, {label}",
                    "oracle": law.record(),
                    "payload": payload.hex(),
                    "refused": error.reason.value,
                }


def frame_cases() -> Iterator[Case]:
    header, law = Header("0a" * 32, "5f" * 32), LAWS["ss"].make("1", 11)
    reports = [
        Report(hashlib.sha256(b"id %d" % i).digest()[:16], law.draw(i, FixedWords(f"frame {i}"))) for i in range(3)
    ]
    data = encode_batch(header, reports)
    for name, batch in {
        "three reports": data,
        "one report": encode_batch(header, reports[:1]),
        "no report": encode_batch(header, []),
        "another version": b"\2" + data[1:],
        "another campaign": data[:5] + b"\0" + data[6:],
        "another question": data[:40] + b"\0" + data[41:],
        "header cut": data[:64],
        "frame cut": data[:-1],
        "a byte too many": data + b"\0",
        "bit beyond the last cell": data[:-1] + b"\x08",
        "wrong number of cells": data[:-2] + b"\0\0",
        "nothing": b"",
    }.items():
        case = {"name": name, "oracle": law.record(), "campaign": header.campaign, "question": header.question}
        case["batch"] = batch.hex()
        try:
            found = decode_batch(batch, header, law)
        except ReportRejected as error:
            yield {**case, "refused": error.reason.value}
        else:
            yield {**case, "reports": [[r.report_id.hex(), r.payload.hex()] for r in found]}


# Questions.

SCHEMA = Schema(
    (
        Attribute("age", "integer", 18, 33),
        Attribute("pay", "real", 0, 100, equal_edges(0, 100, 8), missing="cell"),
        Attribute("town", "nominal", labels=("Ulm", "Bonn", "Köln")),
    )
)
CAMPAIGN = "c0" * 32
POLICY = {"max_epsilon": "2", "max_cells": 100}
PEOPLE: list[dict[str, Any]] = [
    {"age": 18, "pay": "0.0", "town": "Ulm"},
    {"age": 26, "pay": "62.5", "town": "Köln"},
    {"age": 33, "pay": None, "town": "Bonn"},
    # From here on some values are missing or outside the declaration.
    {"age": 26, "pay": "200.0", "town": "Ulm"},
    {"age": 17, "pay": "100.5", "town": "Berlin"},
    {"age": 34, "pay": "-0.5", "town": None},
    {"age": None, "pay": "NaN", "town": ""},
    {"age": 26.5, "pay": "Infinity", "town": 1},
    {"age": "26", "pay": "-Infinity", "town": "ulm"},
    {"age": True, "pay": False, "town": True},
    {"age": 1e300, "pay": "1e+300", "town": "Ulm "},
    {"age": -9007199254740993, "pay": None, "town": "Köln"},
    {},
]


def good_question(name: str, **change: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "campaign": CAMPAIGN,
        "wave": 1,
        "group": "g0",
        "tallies": "7a" * 32,
        "epsilon": "1.1",
        "attributes": ["age", "pay"],
        "partition": GridForm(((4, 8, 12), (3, 8))),
        "law": LAWS[name].make("1.1", 12),
    }
    return question_record(**{**parts, **change})


def question_cases() -> Iterator[Case]:
    grr = LAWS["grr"].make("1.1", 3)
    tree = {"attributes": ["age"], "partition": TreeForm(2, "10100"), "law": grr}
    towns = {"attributes": ["town"], "partition": TreeForm(2, "1000"), "law": grr}
    good = {name: good_question(name) for name in LAWS}
    good["a tree"] = good_question("grr", **tree)
    good["categories, last wave"] = good_question("grr", **towns, wave=10_000, group="γ")
    for name, record in good.items():
        yield question_case(name, canonical_bytes(record))
    base = good["grr"]
    keep = int(base["oracle"]["keep"])
    changes: dict[str, dict[str, Any]] = {
        "epsilon above the device's": good_question("grr", epsilon="2.1", law=LAWS["grr"].make("2.1", 12)),
        "epsilon below the law's": {**base, "epsilon": "1.0999"},
        "threshold one step too large": {**base, "oracle": {**base["oracle"], "keep": str(keep + 1)}},
        "threshold as a number": {**base, "oracle": {**base["oracle"], "keep": keep}},
        "small words": {**base, "oracle": {**base["oracle"], "bits": 16}},
        "unknown law": {**base, "oracle": {**base["oracle"], "name": "laplace"}},
        "fewer cells": {**base, "oracle": {**base["oracle"], "cells": 11}},
        "cuts overlap": {**base, "partition": {"form": "grid", "cuts": [[4, 8, 8], [3, 8]]}},
        "another campaign": {**base, "campaign": "c1" * 32},
        "unknown attribute": {**base, "attributes": ["age", "health"]},
        "attribute twice": {**base, "attributes": ["age", "age"]},
        "version 2": {**base, "version": 2},
        "version true": {**base, "version": True},
        "wave zero": {**base, "wave": 0},
        "unknown field": {**base, "comment": "please"},
        "epsilon spelled longer": {**base, "epsilon": "1.10"},
    }
    for name, record in changes.items():
        yield question_case(name, canonical_bytes(record))
    data = canonical_bytes(base)
    yield question_case("a space", data.replace(b":", b": ", 1))
    yield question_case("a float", data.replace(b'"wave":1', b'"wave":1.0'))
    yield question_case("a key twice", data[:-1] + b',"wave":1}')


def question_case(name: str, data: bytes) -> Case:
    case: Case = {"name": name, "schema": SCHEMA.record(), "campaign": CAMPAIGN, **POLICY, "question": data.hex()}
    try:
        question = check_question(data, SCHEMA, CAMPAIGN, Policy(POLICY["max_epsilon"], POLICY["max_cells"]))  # type: ignore[arg-type]
    except QuestionRefused:
        return {**case, "refused": True}
    answers = []
    for i, person in enumerate(PEOPLE):
        words = FixedWords(f"question {name} {i}", start=-len(question.attributes))
        values = read_values(SCHEMA, person)
        payload, replaced = question.draw(values, words)
        cell = None if replaced else question.cell(values)
        answers.append([person, cell, words.record(), payload.hex(), list(replaced)])
    return {**case, "digest": question.digest, "answers": answers}


def read_values(schema: Schema, written: Mapping[str, Any]) -> dict[str, Any]:
    """Values as a device holds them: a real attribute's decimal string becomes a double."""
    real = {a.name for a in schema.attributes if a.kind == "real"}
    return {k: float(v) if k in real and isinstance(v, str) else v for k, v in written.items()}


# Files.

FILES: dict[str, tuple[str, Callable[[], Iterator[Case]]]] = {
    "canonical.json": ("Canonical records: one byte string for one meaning.", canonical_cases),
    "texts.json": ("What prints, as one bit for every code point, and what a name and a text may be.", text_cases),
    "epsilons.json": ("The wire form of epsilon.", epsilon_cases),
    "codes.json": ("From a value to its code.", code_cases),
    "attributes_refused.json": ("Records that are no attribute.", bad_attribute_cases),
    "partitions.json": ("From codes to a cell.", partition_cases),
    "reports.json": ("From a cell and random words to a payload.", report_cases),
    "payloads_refused.json": ("Payloads that no draw makes.", bad_payload_cases),
    "frames.json": ("Batches of reports.", frame_cases),
    "questions.json": ("Questions: checked, then answered by the one draw, whatever the values are.", question_cases),
    "campaigns.json": ("Campaigns: checked and named.", campaign_cases),
    "waves.json": ("Waves: all questions checked against the campaign.", wave_cases),
    "groups.json": ("From a token's signature to a group.", group_cases),
    "ledger.json": ("What a ledger takes and refuses, and what it says was spent.", ledger_cases),
    "ledger_files.json": ("Files that are a ledger, and files that are damaged.", file_cases),
    "naming.json": ("Which of the owner's fields are offered for a name.", naming_cases),
    "steps.json": ("The order of steps, and what follows when one says no.", step_cases),
}


def generate() -> dict[str, str]:
    """File name -> text, one case a line."""
    made = {}
    for name, (about, cases) in FILES.items():
        lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases())
        made[name] = f'{{"about": {json.dumps(about)}, "cases": [\n{lines}\n]}}\n'
    return made


def differences() -> list[str]:
    """Files that are not what the device says now."""
    return [
        name
        for name, text in generate().items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text("utf-8") != text
    ]


def main(arguments: list[str]) -> int:
    """Write the files, or compare them."""
    if arguments == ["--check"]:
        changed = differences()
        for name in changed:
            print(f"tests/vectors/{name} differs from what the device says", file=sys.stderr)
        return 1 if changed else 0
    if arguments:
        print("usage: python -m tools.vectors [--check]", file=sys.stderr)
        return 2
    for name, text in generate().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"tests/vectors/{name}: {text.count(chr(10)) - 2} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
