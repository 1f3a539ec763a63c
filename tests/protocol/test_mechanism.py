"""The protocol's records and checks: one byte string for one meaning, and nothing passes that does not fit."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis, canonical_bytes, digest, parse_canonical
from ahead_ldp.mechanisms import MECHANISMS, mechanism_from_record
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.mechanisms.ahead.uniform import Uniform
from ahead_ldp.oracles import Tally, make_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import (
    Question,
    axes_of,
    campaign_record,
    check_tallies,
    frozen_digest,
    tally_from_record,
    tally_record,
)
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.attributes import as_schema
from tests.support import examples, schema_of

QUESTION = "ab" * 32

tallies = st.integers(0, 2**53 - 1).flatmap(
    lambda n: st.lists(st.integers(0, n), min_size=1, max_size=8).map(
        lambda counts: Tally(n, np.array(counts, np.int64))
    )
)


@examples(100)
@given(tally=tallies)
def test_tally_round_trip(tally):
    data = canonical_bytes(tally_record(QUESTION, tally))
    assert tally_from_record(parse_canonical(data), QUESTION) == tally


@pytest.mark.parametrize(
    "change",
    [
        {"question": "cd" * 32},
        {"version": 2},
        {"type": "question"},
        {"n": 2},
        {"n": 3.0},
        {"n": True},
        {"n": "3"},
        {"counts": [1, 2, -1]},
        {"counts": [1, 2, 4]},
        {"counts": [1, 2, 3.0]},
        {"counts": [1, 2, True]},
        {"counts": "123"},
        {"counts": None},
        {"seed": 1},
    ],
    ids=repr,
)
def test_changed_tally_is_refused(change):
    record = tally_record(QUESTION, Tally(3, np.array([1, 2, 3])))
    with pytest.raises(ValueError, match="expected"):
        tally_from_record({**record, **change}, QUESTION)


def test_tally_of_counts_beyond_64_bits_is_refused():
    record = tally_record(QUESTION, Tally(3, np.array([1, 2, 3])))
    with pytest.raises(ValueError, match="expected"):
        tally_from_record({**record, "n": 2**70, "counts": [1, 2, 2**65]}, QUESTION)


def test_links_depend_on_everything_and_on_no_order():
    base = frozen_digest("c", "p", {"1": "x", "2": "y"})
    assert base == frozen_digest("c", "p", {"2": "y", "1": "x"})
    others = [
        frozen_digest("d", "p", {"1": "x", "2": "y"}),
        frozen_digest("c", "q", {"1": "x", "2": "y"}),
        frozen_digest("c", "p", {"1": "y", "2": "x"}),
        frozen_digest("c", "p", {"1": "x"}),
        frozen_digest("c", "p", {"1": "x", "2": "z"}),
    ]
    assert len({base, *others}) == 6


def test_campaign_record_names_schema_method_and_groups():
    schema = schema_of(5, 3)
    record = campaign_record(Flat(epsilon="0.5"), schema)
    assert json.loads(canonical_bytes(record)) == record
    assert record["schema"] == schema.record()
    assert record["method"]["epsilon"] == "0.5"
    assert record["groups"] == [{"id": "1", "share": 1}]
    assert digest(record) != digest(campaign_record(Flat(epsilon="0.6"), schema))
    assert digest(record) != digest(campaign_record(Flat(epsilon="0.5"), schema_of(3, 5)))
    assert digest(record) == digest(campaign_record(Flat(epsilon=0.5), schema))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "uni"},
        {"version": 2},
        {"epsilon": 1.0},
        {"epsilon": "-1"},
        {"choices": {}},
        {"choices": {"oracle": "best", "non_negative": True, "seed": 1}},
        {"seed": 1},
    ],
    ids=repr,
)
def test_changed_method_is_refused(change):
    record = {**Flat(epsilon=1).record(), **change}
    with pytest.raises(ValueError, match="expected"):
        mechanism_from_record(record)


def test_unknown_methods_are_refused_with_the_names_that_exist():
    with pytest.raises(ValueError, match=r"expected method to be one of .*flat.*got 'laplace'"):
        MECHANISMS.find("laplace")
    for record in (None, [], {}, {"name": None}, {"name": []}):
        with pytest.raises(ValueError, match="expected method to be one of"):
            mechanism_from_record(record)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "one", None, True, 65], ids=repr)
def test_epsilon_that_is_none_is_refused(epsilon):
    for kind in (Flat, Uniform):
        with pytest.raises(ValueError, match=rf"expected .*epsilon.*got {epsilon!r}"):
            kind(epsilon=epsilon)


def test_flat_refuses_oracles_without_an_unbiased_estimate():
    for name in ("sw", "laplace"):
        with pytest.raises(ValueError, match=f"expected .*{name}"):
            next(Flat(epsilon=1, oracle=name).run(schema_of(4)))


def test_question_needs_an_oracle_on_its_cells():
    with pytest.raises(ValueError, match="expected an oracle on 4 cells, got one on 5"):
        Question((0,), Partition.cells_of([Axis(4)]), make_oracle("grr", 1, 5))


def test_tallies_must_answer_the_wave():
    wave = next(Flat(epsilon=1, oracle="grr").run(schema_of(4)))
    good = {"1": Tally.empty(4)}
    assert check_tallies(wave, good) is good
    for bad in ({}, {"2": Tally.empty(4)}, {"1": Tally.empty(4), "2": Tally.empty(4)}):
        with pytest.raises(ValueError, match="expected tallies of the groups"):
            check_tallies(wave, bad)
    with pytest.raises(ValueError, match="expected a tally of 4 counts for grr on 4 cells, got 5"):
        finish(Flat(epsilon=1, oracle="grr"), schema_of(4), [{"1": Tally.empty(5)}])


def test_more_tallies_than_waves_are_refused():
    told = {"1": Tally.empty(4)}
    with pytest.raises(ValueError, match="expected the tallies of at most 1 waves, got 2"):
        finish(Flat(epsilon=1, oracle="grr"), schema_of(4), [told, told])
    with pytest.raises(ValueError, match="expected the tallies of at most 0 waves, got 1"):
        finish(Uniform(epsilon=1), schema_of(4), [told])


def test_axes_follow_the_schema():
    schema = as_schema(["a=codes,4,missing=cell", "b=nominal,x|y|z", "c=integer,1,9"])
    assert axes_of(schema) == (Axis(5, missing=True), Axis(3, nominal=True), Axis(9))
    assert axes_of(schema, [2, 0]) == (Axis(9), Axis(5, missing=True))
