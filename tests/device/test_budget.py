"""The rules of a ledger, driven from tests/vectors as the TypeScript ledger is; what they promise for any sequence."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device.budget import LIFETIME, Charge, Limits, check_charge, make_statement
from ahead_ldp.device.entries import LedgerRefused
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.naming import similar_fields
from tools.ledger_vectors import limits_of, run, told

VECTORS = Path(__file__).parent.parent / "vectors"


def cases(name):
    listed = json.loads((VECTORS / name).read_text("utf-8"))["cases"]
    return pytest.mark.parametrize("case", listed, ids=[case["name"] or "nothing" for case in listed])


@cases("ledger.json")
def test_what_a_ledger_takes_and_says(case, tmp_path):
    """After every operation another object opens the file: nothing is remembered anywhere else."""
    limits, path = limits_of(case), tmp_path / "ledger.db"
    for operation in case["operations"]:
        with Ledger(path) as ledger:
            assert run(ledger, operation, limits) is not operation["refused"], operation
    with Ledger(path) as ledger:
        assert told(ledger, limits) == case["statement"]


@cases("ledger_files.json")
def test_a_file_that_is_damaged_is_refused(case, tmp_path):
    path = tmp_path / "ledger.db"
    if case["keep"] is not None:
        Ledger(path).close()
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * case["keep"])])
    elif case["bytes"] is not None:
        path.write_bytes(bytes.fromhex(case["bytes"]))
    if case["refused"]:
        with pytest.raises(LedgerRefused):
            Ledger(path)
    else:
        Ledger(path).close()


@cases("naming.json")
def test_similar_fields_are_offered(case):
    assert similar_fields(case["name"], case["known"]) == case["similar"]


def test_added_digits_and_words_do_not_hide_a_field():
    for name in ("age_0", "age 11", "AGE", "age (years)", "your age", "age"):
        assert similar_fields(name, ["pay", "age"]) == ["age"], name
    assert similar_fields("pay", ["age"]) == []


FIELDS = st.sampled_from([None, "a", "b", "c"])
STEPS = st.lists(st.tuples(st.sampled_from("uvwxyz"), st.lists(FIELDS, min_size=1, max_size=2), st.integers(1, 40)))


@given(STEPS, st.dictionaries(st.sampled_from("ab"), st.integers(1, 60)), st.integers(5, 100))
def test_no_sequence_gives_away_more_than_the_owner_allows(steps, limits, lifetime):
    """Whatever the truth behind a charge that nobody could place: no field beyond its limit, nor all together.

    The truth is tried out: every charge without a field is taken to be about the same one field, for each of them.
    """
    allowed = Limits(Fraction(lifetime, 10), {name: Fraction(tenths, 10) for name, tenths in limits.items()})
    charges: list[Charge] = []
    for campaign, fields, tenths in steps:
        epsilon = Fraction(tenths, 10)
        if any(charge.campaign == campaign for charge in charges):
            continue  # one report a campaign
        try:
            check_charge(charges, campaign, fields, epsilon, allowed)
        except LedgerRefused:
            continue
        charges += [Charge(campaign, field, epsilon) for field in dict.fromkeys(fields)]
    for truth in "abcd":  # d is a field that nobody named
        about = {c.campaign: c.epsilon for c in charges if c.field in (None, truth)}
        if truth in allowed.fields:
            assert sum(about.values()) <= allowed.fields[truth]
        else:
            assert len(about) <= 1
    assert sum({c.campaign: c.epsilon for c in charges}.values()) <= allowed.lifetime
    statement = make_statement(charges, allowed)
    assert statement.left == allowed.lifetime - statement.spent
    for line in statement.lines:
        assert 0 <= line.left <= statement.left
        if line.limit is not None and line.left:
            check_charge(charges, "new", [line.field], line.left, allowed)  # what is said to be left can be had
            with pytest.raises(LedgerRefused):
                check_charge(charges, "new", [line.field], line.left + Fraction(1, 10**9), allowed)


def test_a_lifetime_has_a_limit_unless_the_owner_says_otherwise():
    assert Limits().lifetime == LIFETIME == 20
