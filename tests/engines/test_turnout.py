"""Campaigns of few people end by themselves, with fewer or more people than were expected, and as sure as planned."""

import numpy as np
import pytest

from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms import make_mechanism
from ahead_ldp.protocol.session import Session
from ahead_ldp.protocol.turnout import check_people
from ahead_ldp.schema.workloads import random_workload, true_answers_from_records
from tests.support import schema_of

MINIMUM = 100
SIZES = {1: (64,), 2: (32, 32), 5: (16,) * 5}


def people_of(m, n, rng):
    """Skewed attributes that depend on each other."""
    shared = rng.gamma(3.0, 1.0, n)
    return np.stack(
        [np.minimum(shared + rng.gamma(2.0, 0.8, n), 9.99) * size / 10 for size in SIZES[m]], axis=1
    ).astype(np.int64)


def filled(shares, reports, left, rng):
    """How many people of a wave drew each group when the last had enough; None if those who are left do not do."""
    counts, weights = np.zeros(len(shares), np.int64), np.array(shares) / sum(shares)
    while counts.min() < reports:
        if left < 1:
            return None
        come = min(left, max(1, int((reports - counts.min()) * len(shares) / 4)))  # people who come between two looks
        counts += rng.multinomial(come, weights)
        left -= come
    return counts


def run(mechanism, schema, reports, people, rng):
    """A campaign in which people come one after the other, as walk-ins; the session, and how many were not needed."""
    shares, session, first = {g.id: g.share for g in mechanism.groups(schema)}, Session(mechanism, schema), 0
    while session.is_open:
        counts = filled([shares[g] for g in session.wave], reports, len(people) - first, rng)
        assert counts is not None, f"wave {session.number} does not close: {len(people)} people were too few"
        tallies = {}
        for (group, question), n in zip(session.wave.items(), counts.tolist(), strict=True):
            own = people[first : first + n][:, list(question.attributes)]
            cells = np.bincount(question.partition.locate(own), minlength=question.partition.cells)
            tallies[group] = question.oracle.simulate(cells, rng)
            first += n
        assert min(t.n for t in tallies.values()) >= MINIMUM
        session.tell(tallies)
    return session, len(people) - first


@pytest.mark.parametrize("turnout", [0.8, 1.3])
@pytest.mark.parametrize(
    ("m", "users"),
    [
        (1, 1000),
        (1, 5000),
        (1, 20_000),
        (2, 1000),
        (2, 5000),
        (2, 20_000),
        (5, 1000),
        (5, 5000),
        pytest.param(5, 20_000, marks=pytest.mark.soak),
        *((m, 1_000_000) for m in SIZES),
    ],
)
def test_a_campaign_ends_by_itself_and_is_as_sure_as_it_says(m, users, turnout):
    schema, rng = schema_of(*SIZES[m]), np.random.default_rng([m, users, int(10 * turnout)])
    mechanism = make_mechanism(None, schema, 2.0, users)
    planned = check_people(mechanism, schema, users, MINIMUM)
    people = people_of(m, int(turnout * users), rng)
    session, spare = run(mechanism, schema, planned.reports, people, rng)
    assert spare < users * (turnout - 0.5)  # the plan does not throw people away
    workload = random_workload(schema, 40, np.random.default_rng(7))
    answers = session.estimate.answer(workload)
    off = (answers.values - true_answers_from_records(workload, people)) / np.maximum(answers.spread, 1e-9)
    assert np.sqrt(np.mean(off**2)) < 3  # answers of a run hang together, so its mean square is that of a few


def test_the_error_is_near_that_of_a_simulation_with_the_people_expected():
    """Waves that close at 80 % of the people have 1.25 times the variance; 16 runs tell it to a factor of 2."""
    schema, users, errors = schema_of(64), 5000, {"campaign": list[float](), "simulation": list[float]()}
    mechanism = make_mechanism(None, schema, 2.0, users)
    planned, workload = (
        check_people(mechanism, schema, users, MINIMUM),
        random_workload(schema, 40, np.random.default_rng(7)),
    )
    for k in range(16):
        rng = np.random.default_rng([8, k])
        people = people_of(1, users, rng)
        truth = true_answers_from_records(workload, people)
        session, _ = run(mechanism, schema, planned.reports, people[: int(0.8 * users)], rng)
        plain = run_simulation(mechanism, schema, Population.of_records(people, schema.sizes), rng)
        for name, estimate in (("campaign", session.estimate), ("simulation", plain)):
            errors[name].append(float(np.mean((estimate.answer(workload, errors=False).values - truth) ** 2)))
    assert 0.6 < np.mean(errors["campaign"]) / np.mean(errors["simulation"]) < 2.5


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("users", [1000, 5000, 20_000, 1_000_000])
def test_groups_fill_in_all_of_200_campaigns_at_80_percent(m, users):
    schema, rng = schema_of(*SIZES[m]), np.random.default_rng([m, users])
    mechanism = make_mechanism(None, schema, 1.0, users)
    planned = check_people(mechanism, schema, users, MINIMUM)
    shares = {g.id: g.share for g in mechanism.groups(schema)}
    weights = np.array(list(shares.values())) / sum(shares.values())
    panels = rng.multinomial(rng.binomial(users, 0.8, 200), weights)
    assert (panels.min(axis=1) >= MINIMUM).all()
    # At the planned reports 99 % fill: of 200 at most 8 do not, but with a chance of 1e-3.
    assert (panels.min(axis=1) < planned.reports).sum() <= 8
    walk_ins = 0
    for _ in range(20):
        left = int(0.8 * users)
        for wave in planned.waves:
            counts = filled([shares[g] for g, _ in wave], planned.reports, left, rng)
            assert counts is not None
            left -= int(counts.sum())
        walk_ins += left >= 0
    assert walk_ins == 20


def test_too_high_a_bar_would_jam():
    """The same check fails where the reports that waves wait for are a tenth above the plan's."""
    schema = schema_of(64)
    mechanism = make_mechanism(None, schema, 1.0, 20_000)
    planned = check_people(mechanism, schema, 20_000, MINIMUM)
    panels = np.random.default_rng(1).multinomial(16_000, [1 / planned.groups] * planned.groups, 200)
    assert (panels.min(axis=1) < 1.1 * planned.reports).mean() > 0.5
