"""Strict intervals hold on lumpy data, for every method; the model's do not, and the test sees it."""

from __future__ import annotations

import numpy as np
import pytest

from ahead_ldp.estimates.strict.answers import StrictAnswers
from ahead_ldp.estimates.strict.bounds import Evidence
from ahead_ldp.schema.workloads import Workload, random_workload, true_answers
from tests.estimates.strict.lumpy import PEOPLE, asked, comb, heaps_and_ranges, holds, spike

RUNS = 8
KINDS = [("half", 4.0), ("most", 1.0), ("all", 0.2), ("all", 4.0), ("comb", 1.0), ("comb", 0.2), ("heaped", 1.0)]
METHODS = ["adaptive", "ahead", "calm", "dht", "flat", "hdg", "hh", "hio", "pripl", "privnud", "sw", "tdg"]
METHODS += ["wavelet", "quadtree", "kdtree"]


def test_intervals_hold_on_lumps_and_those_of_the_model_do_not() -> None:
    """Runs are clusters: 56 of them, so the share of runs in which a query holds has a standard error of 3 points."""
    strict = np.concatenate([holds(kind, epsilon, RUNS) for kind, epsilon in KINDS])
    assert strict.mean() > 0.95 - 3 * 0.03
    assert strict.mean(axis=0).min() > 0.95 - 4 * 0.03
    model = np.concatenate([holds(kind, epsilon, RUNS, interval="model") for kind, epsilon in KINDS if kind == "comb"])
    assert model[:, :3].mean() < 0.6  # the heaviest codes


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_one_attribute(method: str) -> None:
    """Half of the people in one code: nearly all of 4 x 7 answers hold, and none has no width."""
    assert holds("half", 1.0, 4, method).mean() >= 0.85
    answers = asked(PEOPLE["half"], 1.0, 9, method).answer_jointly(heaps_and_ranges(PEOPLE["half"]))
    low, high = answers.interval()
    assert (high > low).all()
    assert (low >= 0).all()
    assert (high <= 1).all()


@pytest.mark.parametrize("method", ["fused", "ahead", "lle", "calm", "hdg", "tdg", "hio", "pripl", "quadtree"])
def test_every_method_of_two_attributes(method: str) -> None:
    """Heaps on both attributes: cells, a code of one attribute, boxes that end at a heap."""
    assert two_attributes_hold(method, 3) >= 0.85


def test_a_kd_tree_holds_as_often() -> None:
    """The bound is that of the others. Half of the answers of one run of three missed at once, so there are 16 runs."""
    assert two_attributes_hold("kdtree", 16) >= 0.85


def two_attributes_hold(method: str, runs: int) -> float:
    table = np.outer(spike(0.5, 200, 16), comb(400, 16) + 1)
    workload, truth = heaps_and_ranges(table), true_answers(heaps_and_ranges(table), table)
    held = []
    for seed in range(runs):
        low, high = asked(table, 1.0, seed, method).answer_jointly(workload).interval()
        assert (high > low).all()
        assert (low >= 0).all()
        assert (high <= 1).all()
        held.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
    return float(np.mean(held))


@pytest.mark.parametrize("method", ["fused", "lle", "hdg", "ahead"])
def test_three_attributes_are_bounded_by_pairs_or_by_the_tree(method: str) -> None:
    """A box of three sides: between the bounds of its pairs, and the truth inside."""
    rng = np.random.default_rng(4)
    table = rng.multinomial(60_000, rng.dirichlet(np.full(8**3, 0.1))).reshape(8, 8, 8)
    workload = Workload.from_codes(table.shape, np.array([[[0, 3], [2, 5], [1, 6]], [[4, 4], [0, 7], [0, 3]]]))
    truth = true_answers(workload, table)
    for seed in range(3):
        low, high = asked(table, 2.0, seed, method).answer_jointly(workload).interval()
        assert ((low <= truth) & (truth <= high)).all()
        assert high[0] - low[0] < 0.9


def test_all_hold_at_once() -> None:
    """20 random ranges: all hold in nearly all of 24 runs (standard error 4.5 points), each for itself in fewer."""
    people = PEOPLE["smooth"]
    workload = random_workload(people.shape, 20, np.random.default_rng(6))
    truth = true_answers(workload, people)
    together, alone = [], []
    for seed in range(24):
        answers = asked(people, 1.0, seed).answer_jointly(workload)
        for simultaneous, held in ((True, together), (False, alone)):
            low, high = answers.interval(0.95, simultaneous)
            held.append(bool(((low <= truth) & (truth <= high)).all()))
    assert np.mean(together) >= 0.95 - 3 * 0.045
    assert np.mean(alone) < np.mean(together)


def test_a_difference_is_narrower_than_both_widths() -> None:
    """The difference of two neighbouring ranges uses the joint set."""
    estimate = asked(PEOPLE["heaped"], 1.0, 3)
    queries = ["a in 0..39", "a in 40..99"]
    low, high = estimate.weighted(queries, [1, -1]).interval()
    each = estimate.ask(*queries).interval()
    truth = PEOPLE["heaped"][:40].sum() - PEOPLE["heaped"][40:100].sum()
    assert low[0] <= truth / PEOPLE["heaped"].sum() <= high[0]
    assert high[0] - low[0] < 0.95 * float((each[1] - each[0]).sum())


def test_whole_and_nothing_are_known() -> None:
    """Everybody is everybody, and nobody is in an empty box."""
    estimate = asked(PEOPLE["half"], 1.0, 3)
    assert estimate.provenance is not None
    evidence = Evidence(estimate.schema, estimate.provenance)
    boxes = np.array([[[0.0, 128.0]], [[5.0, 5.0]]])
    low, high = StrictAnswers(evidence, Workload((128,), boxes, np.arange(2), 2)).interval(0.95)
    assert low.tolist() == high.tolist() == [1.0, 0.0]


def test_a_query_that_cuts_a_cell_is_honest() -> None:
    """All that is known is a cell of many codes: one of them may hold all of it or nothing."""
    people = spike(0.5, 3_000, 128)
    estimate = asked(people, 0.2, 1, "hdg")
    low, high = estimate.ask("a in 42..42").interval()
    assert low[0] < 0.02
    assert high[0] > 0.4
