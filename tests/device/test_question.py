import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction

import pytest

from ahead_ldp.device import (
    LAWS,
    GridForm,
    Policy,
    QuestionRefused,
    TreeForm,
    ValueRefused,
    canonical_bytes,
    check_question,
    decode_batch,
    encode_batch,
)
from ahead_ldp.device.laws import GRRLaw, OUELaw, SUELaw
from tests.device.questions import CAMPAIGN, POLICY, SCHEMA, good_question, tree_question


class Sealed(Mapping):
    """A private record that must not be looked at, but for the attributes named."""

    def __init__(self, **open_values):
        self.open_values, self.read = open_values, []

    def __getitem__(self, name):
        assert name in self.open_values, f"{name} was read"
        self.read.append(name)
        return self.open_values[name]

    def __iter__(self):
        raise AssertionError("all names were read")

    def __len__(self):
        raise AssertionError("the record was measured")


def check(record_or_bytes, policy=POLICY, campaign=CAMPAIGN):
    data = record_or_bytes if isinstance(record_or_bytes, bytes) else canonical_bytes(record_or_bytes)
    return check_question(data, SCHEMA, campaign, policy)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("make", [good_question, tree_question])
def test_a_good_question_passes_and_is_answered(make, law):
    record = make(law)
    question = check(record)
    assert question.digest == hashlib.sha256(canonical_bytes(record)).hexdigest()
    assert question.epsilon == Fraction(11, 10)
    assert question.law == LAWS[law].make("1.1", question.law.cells)
    report = question.report({"age": 30, "pay": 99.5})
    assert decode_batch(encode_batch(question.header, [report]), question.header, question.law) == [report]


def test_cells_of_values():
    question = check(good_question())
    assert question.cell({"age": 18, "pay": 0.0}) == 0
    assert question.cell({"age": 22, "pay": 37.5}) == 1 * 3 + 1
    assert question.cell({"age": 33, "pay": 100}) == 3 * 3 + 1
    assert question.cell({"age": 33, "pay": None}) == question.cell({"age": 33}) == 3 * 3 + 2
    assert [check(tree_question()).cell({"age": age}) for age in (18, 25, 26, 29, 30, 33)] == [0, 0, 1, 1, 2, 2]


def test_only_attributes_asked_are_read():
    values = Sealed(age=20)
    check(tree_question()).report(values)
    assert values.read == ["age"]
    values = Sealed(age=20, pay=1)
    check(good_question()).report(values)
    assert sorted(values.read) == ["age", "pay"]


@pytest.mark.parametrize("law", LAWS)
def test_reports_of_all_values_have_one_length(law):
    question = check(good_question(law))
    reports = [question.report({"age": a, "pay": p}) for a in range(18, 34) for p in (0, 40, 100, None)]
    assert {len(r.payload) for r in reports} == {question.law.payload_length}
    assert {len(r.report_id) for r in reports} == {16}


def test_a_value_outside_its_range_is_refused_unseen():
    with pytest.raises(ValueRefused, match=r"^age is outside the declared range$"):
        check(good_question()).report({"age": 8675, "pay": 1})


# Questions that a device does not answer.


def changed(**change):
    """A good question with fields replaced; ``...`` removes one."""
    return {k: v for k, v in {**good_question(), **change}.items() if v is not ...}


def with_law(law):
    return good_question(law=law)


def law_changed(name="oue", **change):
    return changed(oracle={k: v for k, v in {**LAWS[name].make("1.1", 12).record(), **change}.items() if v is not ...})


OUE, GRR, SUE = OUELaw.make("1.1", 12), GRRLaw.make("1.1", 12), SUELaw.make("1.1", 12)

REFUSED = {
    # epsilon and privacy
    "epsilon above the policy": (good_question(epsilon="2.1", law=OUELaw.make("2.1", 12)), "device's limit"),
    "epsilon declared below the law's": (changed(epsilon="1.0999"), "keep the declared epsilon"),
    "oue: q one step too small": (with_law(OUELaw(12, OUE.bits, OUE.q_num - 1)), "keep the declared epsilon"),
    "grr: keep one step too large": (with_law(GRRLaw(12, GRR.bits, GRR.keep + 1)), "keep the declared epsilon"),
    "sue: p one step too large": (with_law(SUELaw(12, SUE.bits, SUE.p_num + 1)), "keep the declared epsilon"),
    "grr: never the value": (with_law(GRRLaw(12, GRR.bits, 1)), "keep the declared epsilon"),
    "epsilon zero": (changed(epsilon="0"), "epsilon"),
    "epsilon as a number": (changed(epsilon=1), "epsilon"),
    "epsilon negative": (changed(epsilon="-1"), "epsilon"),
    "epsilon with an exponent": (changed(epsilon="1e0"), "epsilon"),
    "epsilon spelled longer": (changed(epsilon="1.10"), "epsilon"),
    "epsilon not finite": (changed(epsilon="inf"), "epsilon"),
    # the law
    "unknown law": (law_changed(name="oue") | {"oracle": {"name": "laplace"}}, "oracle"),
    "law without a name": (changed(oracle={}), "oracle"),
    "law of another type": (changed(oracle="oue"), "oracle"),
    "law with a seed": (law_changed(seed=7), "unknown fields, got seed"),
    "law without its threshold": (law_changed(q_num=...), "field q_num"),
    "threshold as a number": (law_changed(q_num=OUE.q_num), "decimal string"),
    "threshold zero": (law_changed(q_num="0"), "q_num"),
    "threshold everything": (law_changed(name="grr", keep=str(2**GRR.bits)), "keep"),
    "small words": (law_changed(bits=16), "bits"),
    "words of another type": (law_changed(bits="32"), "bits"),
    "subset of all": (law_changed(name="ss", w="12"), "w < cells"),
    "window too wide": (law_changed(name="sw", b="13"), "b to be an integer"),
    "one hash value": (law_changed(name="olh", g="1"), "g to be an integer"),
    # cells and partition
    "fewer cells than the partition": (with_law(OUELaw.make("1.1", 11)), "the partition's"),
    "more cells than the partition": (with_law(OUELaw.make("1.1", 13)), "the partition's"),
    "too many cells": (
        good_question(partition=GridForm((tuple(range(1, 16)), tuple(range(1, 9)))), law=OUELaw.make("1.1", 144)),
        "at most 100 cells",
    ),
    "one cell": (law_changed(cells=1) | {"partition": {"form": "grid", "cuts": [[], []]}}, "cells"),
    "boxes": (changed(partition={"form": "boxes", "boxes": [[[0, 9], [0, 9]], [[8, 16], [0, 9]]]}), "grid or tree"),
    "cuts overlap": (changed(partition=GridForm(((4, 8, 8), (3, 8))).record()), "rise strictly"),
    "cuts fall": (changed(partition=GridForm(((8, 4, 12), (3, 8))).record()), "rise strictly"),
    "cut outside": (changed(partition=GridForm(((4, 8, 16), (3, 8))).record()), "rise strictly"),
    "cut at zero": (changed(partition={"form": "grid", "cuts": [[0, 4, 8], [3, 8]]}), "a cut"),
    "cuts for one attribute": (changed(partition=GridForm(((4, 8, 12),)).record()), "cuts for 2 attributes"),
    "cuts as text": (changed(partition={"form": "grid", "cuts": "4,8"}), "list of lists"),
    "flags too short": (changed(partition=TreeForm(2, "1").record()), "one flag"),
    "flags too long": (changed(partition=TreeForm(2, "10000000").record()), "one flag"),
    "flags of other letters": (changed(partition=TreeForm(2, "1x0000").record()), "one flag"),
    "fanout of one": (changed(partition=TreeForm(1, "10").record()), "fanout"),
    "no partition": (changed(partition=None), "grid or tree"),
    # who asks what
    "another campaign": (changed(campaign="c1" * 32), "pinned campaign"),
    "no campaign": (changed(campaign="c0"), "campaign"),
    "unknown attribute": (changed(attributes=["age", "health"]), "health"),
    "attribute twice": (changed(attributes=["age", "age"]), "each attribute once"),
    "no attribute": (changed(attributes=[]), "list of names"),
    "attributes by number": (changed(attributes=[0, 1]), "list of names"),
    "attributes as text": (changed(attributes="age"), "list of names"),
    "tallies": (changed(tallies=None), "tallies"),
    "group": (changed(group=""), "group"),
    "group by number": (changed(group=3), "group"),
    "wave zero": (changed(wave=0), "wave"),
    "wave beyond ten thousand": (changed(wave=10_001), "wave"),
    "wave as text": (changed(wave="1"), "wave"),
    "wave true": (changed(wave=True), "wave"),
    "version 2": (changed(version=2), "version"),
    "version true": (changed(version=True), "version"),
    "type": (changed(type="survey"), "question"),
    "unknown field": (changed(comment="please"), "unknown fields, got comment"),
    "field gone": (changed(group=...), "field group"),
    # bytes
    "spaces": (json.dumps(good_question(), sort_keys=True).encode(), "canonical"),
    "key order": (json.dumps(good_question(), separators=(",", ":")).encode(), "canonical"),
    "key twice": (canonical_bytes(good_question())[:-1] + b',"wave":1}', "canonical"),
    "float": (canonical_bytes(good_question()).replace(b'"wave":1', b'"wave":1.0'), "canonical"),
    "trailing line": (canonical_bytes(good_question()) + b"\n", "canonical"),
    "empty": (b"", "canonical"),
    "not UTF-8": (b"\xff\xfe", "canonical"),
    "a list": (b"[]", "canonical"),
    "deep": (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "canonical"),
}


@pytest.mark.parametrize("question, rule", REFUSED.values(), ids=REFUSED)
def test_refused_before_any_value_is_read(question, rule):
    values = Sealed()
    with pytest.raises(QuestionRefused, match=r"^expected ") as caught:
        check(question).report(values)
    assert rule in str(caught.value)
    assert values.read == []


def test_a_question_of_another_campaign_is_refused():
    with pytest.raises(QuestionRefused, match="pinned campaign"):
        check(good_question(), campaign="c1" * 32)


def test_the_policy_is_the_devices_own():
    check(good_question(), Policy("1.1", 12))
    with pytest.raises(QuestionRefused, match="limit"):
        check(good_question(), Policy("1.0999999", 12))
    with pytest.raises(QuestionRefused, match="at most 11 cells"):
        check(good_question(), Policy("1.1", 11))


def test_every_changed_byte_is_refused_or_another_question():
    """No byte is without meaning: what still passes has another digest."""
    data = canonical_bytes(good_question())
    digests = {check(data).digest}
    passed = 0
    for i in range(len(data)):
        for change in (1, 2, 0x20):
            try:
                question = check(data[:i] + bytes([data[i] ^ change]) + data[i + 1 :])
            except QuestionRefused:
                continue
            passed += 1
            digests.add(question.digest)
    assert len(digests) == passed + 1
