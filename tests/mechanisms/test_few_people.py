"""Few people are asked in few groups, by the number that was declared; recorded methods ask as they did."""

import numpy as np
import pytest

from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms import EARLIER, make_mechanism, mechanism_from_record
from ahead_ldp.mechanisms.few_people import GROUP_PEOPLE, divide, group_people, groups_of
from ahead_ldp.protocol.turnout import chance, staffing
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import random_workload
from tests.support import schema_of

SIZES: dict[int, tuple[int, ...]] = {1: (256,), 2: (64, 64), 5: (16,) * 5}
PEOPLE = (1000, 5000, 20_000, 1_000_000)
every_campaign = pytest.mark.parametrize(("m", "users"), [(m, users) for m in SIZES for users in PEOPLE])


def test_a_group_expects_people_enough_for_its_minimum():
    assert GROUP_PEOPLE == group_people(100) == 200
    for minimum in (1, 10, 100, 1000):
        come = 0.7 * group_people(minimum)
        assert (come - minimum) / np.sqrt(come) == pytest.approx(3.4, abs=0.5 if minimum < 10 else 0.1)


def test_shifts_go_before_scales():
    found = [divide(groups * 200, 200, 5, 4) for groups in (0.5, 1, 3, 5, 9, 10, 19, 20, 500)]
    assert found == [(1, 1), (1, 1), (3, 1), (5, 1), (5, 1), (5, 2), (5, 3), (5, 4), (5, 4)]
    assert divide(None, 200, 5, 4) == (5, 4)
    assert groups_of(1000 * (0.1 + 0.2) / 0.3, 200) == 5  # a quotient whose last bits are lost


@every_campaign
def test_every_group_reaches_its_minimum_though_the_declaration_is_wrong_by_30_percent(m, users):
    schema = schema_of(*SIZES[m])
    groups = make_mechanism(None, schema, 1.0, users).groups(schema)
    assert chance(groups, users, 100, 0.8) >= 0.999
    assert chance(groups, users, 100, 0.7) >= 0.97
    assert users * min(g.share for g in groups) / sum(g.share for g in groups) >= 0.999 * GROUP_PEOPLE


@pytest.mark.parametrize("m", SIZES)
def test_more_people_are_never_asked_in_fewer_groups(m):
    schema = schema_of(*SIZES[m])
    counts = [len(make_mechanism(None, schema, 1.0, int(n)).groups(schema)) for n in np.geomspace(100, 10**6, 60)]
    assert counts == sorted(counts)
    assert counts[0] == m
    assert counts[-1] == len(make_mechanism(None, schema, 1.0).groups(schema))


def test_pairs_are_asked_where_each_can_have_a_group():
    schema = schema_of(16, 16, 16)
    groups = {n: make_mechanism(None, schema, 1.0, n).groups(schema) for n in (1199, 1200)}
    asked = {n: [g.id for g in own if "-" in g.id] for n, own in groups.items()}
    assert asked == {1199: [], 1200: ["1-2.fine", "1-3.fine", "2-3.fine"]}
    told = {n: make_mechanism(None, schema, 1.0, n).left_out(schema) for n in (1199, 1200, 10**6)}
    assert told == {
        1199: "3 groups instead of 48, and no pairs of attributes",
        1200: "6 groups instead of 48",
        10**6: "",
    }


def test_few_codes_leave_groups_for_shifts():
    groups = [g.id for g in make_mechanism(None, schema_of(16), 1.0, 1300).groups(schema_of(16))]
    assert groups == ["1a", "1b", "2a", "2b", "3a", "3b"]
    mixed = make_mechanism(None, ["x=codes,16", "y=codes,256", "z=nominal,a|b|c"], 1.0, 7000)
    own = [g.id for g in mixed.groups(as_schema(["x=codes,16", "y=codes,256", "z=nominal,a|b|c"]))]
    assert [sum(g.startswith(f"{a}.") for g in own) for a in (1, 2, 3)] == [6, 5, 1]


@pytest.mark.parametrize("m", SIZES)
def test_who_is_asked_when_does_not_depend_on_what_is_said(m):
    schema, users = schema_of(*SIZES[m]), 2500
    mechanism = make_mechanism(None, schema, 2.0, users)
    records = np.random.default_rng(3).integers(0, 7, (users, m))
    estimate = run_simulation(mechanism, schema, Population.of_records(records, schema.sizes), np.random.default_rng(4))
    told = [sorted(after.wave) for after in estimate.provenance.waves]
    planned = staffing(mechanism, schema, users, 100)
    assert told == [sorted(name for name, _ in wave) for wave in planned.waves]
    assert np.isfinite(estimate.answer(random_workload(schema, 20, np.random.default_rng(5))).values).all()


@pytest.mark.parametrize("name", ["adaptive", "fused"])
def test_records_of_version_1_ask_as_they_did(name):
    schema = schema_of(64) if name == "adaptive" else schema_of(64, 64)
    choices = {"adaptive": {}, "fused": {"users": 1000}}[name]
    old = EARLIER[f"{name}/1/1"](epsilon="1", **choices)
    record = old.record()
    assert record["version"] == 1
    assert "group_people" not in record["choices"]
    read = mechanism_from_record(record)
    assert read == old
    assert len(read.groups(schema)) == {"adaptive": 20, "fused": 44}[name]
    assert read.left_out(schema) == ""


@pytest.mark.parametrize("choice", [{"users": 0}, {"users": 2.5}, {"group_people": 0}, {"group_people": None}], ids=str)
@pytest.mark.parametrize("name", ["adaptive", "fused"])
def test_numbers_of_people_are_whole_and_positive(name, choice):
    with pytest.raises(ValueError, match=next(iter(choice))):
        make_mechanism(name, schema_of(8), "1", **choice)
