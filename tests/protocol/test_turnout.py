"""Whether people are enough: the chance that every group reaches its minimum, and what is refused."""

from itertools import product

import pytest
from scipy.stats import multinomial

from ahead_ldp.mechanisms import make_mechanism
from ahead_ldp.protocol.mechanism import Group
from ahead_ldp.protocol.turnout import (
    CERTAINTY,
    Staffing,
    TooFewPeople,
    chance,
    check_people,
    fewest_people,
    most_attributes,
    most_reports,
    staffing,
)
from tests.support import schema_of


def exact_chance(shares, users, minimum, turnout):
    """By all ways in which the people can fall into the groups, those who stay away being one more."""
    falls = multinomial(users, [turnout * share for share in shares] + [1 - turnout])
    ways = product(*(range(minimum, users + 1) for _ in shares))
    return sum(falls.pmf([*way, users - sum(way)]) for way in ways if sum(way) <= users)


@pytest.mark.parametrize("minimum", [1, 2, 4])
@pytest.mark.parametrize("shares", [(1,), (1, 1), (2, 1, 1)])
def test_the_chance_is_a_bound_from_below_and_close_where_it_counts(shares, minimum):
    groups = [Group(str(i), share) for i, share in enumerate(shares)]
    exact = exact_chance([s / sum(shares) for s in shares], 24, minimum, 0.8)
    bound = chance(groups, 24, minimum)
    assert bound <= exact + 1e-12
    assert exact - bound <= (1 - bound) ** 2 + 1e-12  # two groups short at once


def test_no_chance_where_the_minimum_is_above_everybody():
    assert chance([Group("a")], 9, 10) == 0.0
    assert chance([], 9, 10) == 1.0


def test_waves_may_close_at_the_most_reports_that_are_certain():
    groups = [Group("a", 2), Group("b", 1)]
    most = most_reports(groups, 900)
    assert chance(groups, 900, most) >= CERTAINTY > chance(groups, 900, most + 1)
    assert 180 < most < 240  # 240 are expected in the smaller one, with a standard deviation of 13


def test_people_fall_to_waves_by_their_shares():
    schema = schema_of(64, 64)
    planned = staffing(make_mechanism(None, schema, 1.0, 5000), schema, 5000, 100)
    assert sum(planned.wave_people) == pytest.approx(5000)
    assert planned.groups == len(make_mechanism(None, schema, 1.0, 5000).groups(schema))
    assert planned.works
    assert planned.left_out == f"{planned.groups} groups instead of 44"
    record = planned.record()
    assert [wave["wave"] for wave in record["waves"]] == [1, 2, 3, 4, 5]
    assert record["smallest_group"] >= 200


def test_a_wave_waits_for_its_smallest_group():
    """Of a group that is twice as large twice as many come meanwhile."""
    planned = Staffing(700, 10, ((("a", 200.0), ("b", 400.0)), (("c", 100.0),)), 1.0, 50, "")
    assert planned.counted(20) == 20 * 600 / 200 + 20
    assert planned.counted(0) == 0


def test_what_would_do_does():
    schema = schema_of(*[16] * 8)
    with pytest.raises(TooFewPeople, match="for 8 groups of the method fused, got 700") as refused:
        check_people(make_mechanism(None, schema, 1.0, 700), schema, 700, 100)
    people = fewest_people(make_mechanism(None, schema, 1.0, 700), schema, 100)
    few = most_attributes(make_mechanism(None, schema, 1.0, 700), schema, 700, 100)
    assert f"{people:,} people, or at most {few} of the 8 attributes" in str(refused.value)
    assert check_people(make_mechanism(None, schema, 1.0, people), schema, people, 100).works
    for schema, users in ((schema_of(*[16] * 8), people - 1), (schema_of(*[16] * (few + 1)), 700)):
        with pytest.raises(TooFewPeople):
            check_people(make_mechanism(None, schema, 1.0, users), schema, users, 100)
    assert check_people(make_mechanism(None, schema_of(*[16] * few), 1.0, 700), schema_of(*[16] * few), 700, 100).works


def test_a_method_with_fixed_groups_is_refused_too():
    schema = schema_of(256)
    with pytest.raises(TooFewPeople, match=r"8 groups of the method ahead, got 900.*What would do: 1,3.. people$"):
        check_people(make_mechanism("ahead", schema, 1.0), schema, 900, 100)


def test_a_wave_that_waits_for_more_than_come_is_refused():
    schema = schema_of(64)
    mechanism = make_mechanism(None, schema, 1.0, 5000)
    most = check_people(mechanism, schema, 5000, 100).reports
    assert check_people(mechanism, schema, 5000, 100, most).reports == most
    with pytest.raises(TooFewPeople, match=f"closing.reports to be at most {most}, got {most + 1}"):
        check_people(mechanism, schema, 5000, 100, most + 1)
