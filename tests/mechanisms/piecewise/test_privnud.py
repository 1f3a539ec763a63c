"""PrivNUD: the plan of the published program, pruning, the two passes, and errors that mean something."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from ahead_ldp.device import Axis
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.solvers.norm_sub import nearest_in_simplex, norm_sub
from ahead_ldp.estimates.solvers.tree_least_squares import TreeLeastSquares
from ahead_ldp.mechanisms.piecewise.fanout_plan import best_fanouts, containing, fanout_cost, levels_below, plan
from ahead_ldp.mechanisms.piecewise.interval_trees import IntervalTree
from ahead_ldp.mechanisms.piecewise.privnud import PrivNUD, level_norm_sub, planned
from ahead_ldp.oracles import OUE, Tally
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.workloads import Workload, random_workload, true_answers
from tests.reference import interval_trees as slow
from tests.support import PASS, POWER

PRESETS = {"paper": PrivNUD.paper, "strong": PrivNUD.strong}


def schema_of(d):
    return as_schema([codes("v", d)])


def zipf(d, people):
    weights = 1 / np.arange(1, d + 1) ** 1.1
    return np.round(people * weights / weights.sum()).astype(np.int64)


# The plan.


@pytest.mark.parametrize(
    ("d", "levels", "moments"),
    [(16, [1, 16], 1), (64, [1, 13, 62, 4], 4), (256, [1, 9, 51, 244, 20], 9), (1024, [1, 6, 30, 172, 841, 273], 13)],
)
def test_plan_is_the_published_programs(d, levels, moments):
    nodes = plan(d)
    depth = [0] * len(nodes)
    for i, node in enumerate(nodes[1:], start=1):
        depth[i] = depth[node.parent] + 1
    assert np.bincount(depth).tolist() == levels
    assert len({n.stop for n in nodes[1:]}) == moments
    assert len(PrivNUD(epsilon=1).groups(schema_of(d))) == moments


def test_uses_are_counted_as_by_enumeration():
    d = 9
    for node in plan(d)[1:]:
        parent = plan(d)[node.parent]
        lo, hi = np.array([node.lo]), np.array([node.hi])
        fast = containing(lo, hi, d) - containing(np.array([parent.lo]), np.array([parent.hi]), d)
        assert fast == slow.uses(node.lo, node.hi, (parent.lo, parent.hi), d)


@pytest.mark.parametrize("interval", [(0, 40, None), (0, 7, (0, 40)), (20, 40, (10, 40)), (5, 6, (0, 40))], ids=str)
@pytest.mark.parametrize("fanout", [2, 3, 7, 20])
def test_cost_of_a_fanout_agrees_with_the_recursion(interval, fanout):
    lo, hi, parent = interval
    above = (np.array([-1]), np.array([1])) if parent is None else (np.array([parent[0]]), np.array([parent[1]]))
    fast = fanout_cost(np.array([lo]), np.array([hi]), above, 40, fanout)
    np.testing.assert_allclose(fast, slow.fanout_cost(lo, hi, parent, 40, fanout), rtol=1e-12)


def test_best_fanout_is_the_cheapest():
    for lo, hi, parent in [(0, 100, None), (0, 25, (0, 100)), (50, 75, (0, 100))]:
        above = (np.array([-1]), np.array([1])) if parent is None else (np.array([parent[0]]), np.array([parent[1]]))
        costs = [slow.fanout_cost(lo, hi, parent, 100, b) for b in range(2, 21)]
        assert best_fanouts(np.array([lo]), np.array([hi]), above, 100) == np.argmin(costs) + 2


def test_levels_are_whole_where_logarithms_round():
    assert levels_below(125, 5) == 3  # log(125) / log(5) is a little more than 3
    assert levels_below(126, 5) == 4
    assert levels_below(1, 5) == 0


@pytest.mark.parametrize(
    "axis", [Axis(d) for d in range(1, 71)] + [Axis(9, missing=True), Axis(5, nominal=True)], ids=str
)
def test_people_at_every_moment_tile_the_domain(axis):
    nodes = planned(axis)
    for now in sorted({n.start for n in nodes[1:]}):
        asked = sorted((n.lo, n.hi) for n in nodes[1:] if n.start <= now < n.stop)
        assert asked[0][0] == 0
        assert asked[-1][1] == axis.size
        assert all(a[1] == b[0] for a, b in pairwise(asked))
    leaves = [n for n in nodes[1:] if not n.children]
    assert all(n.stop == 1 for n in leaves)
    assert all(n.stop > n.start for n in nodes[1:])


def test_shares_are_the_plans():
    groups = PrivNUD(epsilon=1).groups(schema_of(64))
    whole = sum(g.share for g in groups)
    assert [Fraction(g.share, whole) for g in groups] == [
        Fraction(1, 3),
        Fraction(1, 6),
        Fraction(1, 6),
        Fraction(1, 3),
    ]


# Pruning.


def test_empty_nodes_are_pruned_and_heavy_ones_are_not():
    histogram = np.zeros(256, np.int64)
    histogram[:4] = 500_000
    estimate = run_simulation(
        PrivNUD.strong(1.0), schema_of(256), Population.of_histogram(histogram), np.random.default_rng(1)
    )
    lengths = np.diff(estimate.margin.borders)
    assert lengths[:4].tolist() == [1, 1, 1, 1]
    assert lengths[-1] == 24  # the last ninth of the domain stays whole
    assert lengths.size < 40


def test_decision_weighs_noise_against_all_mass_in_one_child():
    """A node just below the value at which both sides are equal is pruned, one just above is cut."""
    schema, n = schema_of(64), 10**6
    nodes = plan(64)
    node = next(i for i, x in enumerate(nodes) if i and x.children)
    b, family = len(nodes[node].children), [nodes[c] for c in nodes[node].children]
    own = slow.uses(nodes[node].lo, nodes[node].hi, (0, 64), 64)
    below = [slow.uses(x.lo, x.hi, (nodes[node].lo, nodes[node].hi), 64) for x in family]
    v = float(OUE.make(1.0, 2).variance(n * float(nodes[node].stop)))
    per_square = (sum(below) - max(below)) / b**2 + max(below) * (1 - 1 / b) ** 2
    edge = np.sqrt(((own + sum(below)) * v - own * v * float(nodes[node].stop)) / per_square)
    for factor, cut in ((0.98, False), (1.02, True)):
        run = PrivNUD.paper(1.0, users=n).run(schema)
        question = next(run)["1"]
        asked = int(n * float(nodes[node].stop))
        f = np.full(question.partition.cells, 0.0)
        f[0] = edge * factor
        told = _tally_of(question.oracle, f, asked)
        following = run.send({"1": told})["2"]
        assert (following.partition.hi[0, 0] < nodes[node].hi) == cut


def _tally_of(oracle, f, n):
    return Tally(n, np.round(n * (oracle.q + f * (oracle.p - oracle.q))).astype(np.int64))


# The two passes.


def random_tree(rng, d=24):
    nodes, todo = [(0, d)], [(0, d)]
    while todo:
        lo, hi = todo.pop()
        if hi - lo > 2 and rng.random() < 0.8:
            inner = np.sort(rng.choice(np.arange(lo + 1, hi), size=rng.integers(1, min(4, hi - lo)), replace=False))
            borders = [lo, *inner.tolist(), hi]
            parts = list(pairwise(borders))
            nodes += parts
            todo += parts
    return IntervalTree.of(nodes)


@pytest.mark.parametrize("seed", range(8))
def test_two_passes_are_generalised_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    own, precision = rng.normal(0.1, 0.1, tree.size), rng.uniform(0.5, 3, tree.size)
    precision[0] = 0.0
    inner = np.flatnonzero(tree.is_split[1:]) + 1
    precision[inner[: inner.size // 2]] = 0.0  # some nodes were never asked about
    passes = TreeLeastSquares.of(tree, precision)
    fitted = passes.solve(own)
    np.testing.assert_allclose(fitted[tree.segments], slow.consistent(tree.inside, own, precision), atol=1e-10)
    np.testing.assert_allclose(fitted, fitted[tree.segments] @ tree.inside, atol=1e-12)
    weights = rng.normal(size=(3, tree.size))
    moved = passes.solve(own + 1e-3 * np.eye(tree.size)[5 % tree.size])
    slope = passes.coefficients(weights)[0][:, 5 % tree.size]
    np.testing.assert_allclose(weights @ (moved - fitted), 1e-3 * slope, atol=1e-12)


def test_nodes_nobody_was_asked_about_share_what_is_left_by_length():
    tree = IntervalTree.of([(0, 10), (0, 4), (4, 6), (6, 10)])
    passes = TreeLeastSquares.of(tree, np.array([0.0, 2.0, 0.0, 0.0]))
    np.testing.assert_allclose(passes.solve_non_negative(np.array([1.0, 0.4, 0.9, 0.9])), [1.0, 0.4, 0.2, 0.4])
    np.testing.assert_allclose(passes.solve_non_negative(np.array([1.0, 1.4, 0.9, 0.9])), [1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("seed", range(5))
def test_a_scaled_projection_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    z, share, total = rng.normal(0.1, 0.4, 6), rng.uniform(0.2, 2, 6), 0.7
    x = nearest_in_simplex(z, total, share)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(total)
    slope = (x - z) / share  # optimal: equal where x > 0, larger where x = 0
    assert np.ptp(slope[x > 0]) < 1e-9
    assert (slope[x == 0] >= slope[x > 0].max() - 1e-9).all()
    np.testing.assert_allclose(nearest_in_simplex(z, total, np.ones(6)), norm_sub(z, total), atol=1e-12)


def test_levels_are_made_non_negative_with_the_sum_above():
    tree = IntervalTree.of([(0, 4), (0, 2), (2, 4), (0, 1), (1, 2)])
    own = level_norm_sub(tree, np.array([0.0, 0.9, -0.1, 0.5, 0.8]), np.ones(5, bool))
    np.testing.assert_allclose(own, [1.0, 1.0, 0.0, 0.35, 0.65])


# Whole runs.


@pytest.mark.parametrize("preset", PRESETS)
def test_exact_counts_give_exact_answers_where_nothing_is_pruned(preset):
    """At a very large epsilon there is no noise: only cut leaves and who fell into which group are left."""
    histogram = np.arange(1, 17) * 10_000
    estimate = run_simulation(
        PRESETS[preset](20.0), schema_of(16), Population.of_histogram(histogram), np.random.default_rng(1)
    )
    workload = random_workload([16], 30, np.random.default_rng(2))
    tolerance = 0.01 if preset == "paper" else 1e-4  # OUE drops half of the true bits at any epsilon
    np.testing.assert_allclose(estimate.answer(workload).values, true_answers(workload, histogram), atol=tolerance)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("d", [1, 2, 3, 16, 17, 37, 70])
def test_any_domain_and_any_prefix(preset, d):
    schema, mechanism = schema_of(d), PRESETS[preset](0.5)
    rng = np.random.default_rng(d)
    workload, whole = random_workload([d], 20, rng), Workload.from_codes([d], [[[0, d - 1]]])
    population = Population.of_histogram(rng.integers(0, 50, d) + 1)
    history = run_simulation(mechanism, schema, population, rng).provenance.history
    for waves in range(len(history) + 1):
        estimate = finish(mechanism, schema, history[:waves])
        answers = estimate.answer(workload)
        assert np.isfinite(answers.values).all()
        assert not np.isnan(answers.standard_error).any()
        assert estimate.answer(whole).values == pytest.approx(1.0)
        assert estimate.answer(whole).standard_error == pytest.approx(0.0, abs=1e-9)


def test_standard_errors_are_the_spread_of_the_answers():
    """64 codes, nothing pruned: the variance of 800 runs is known to 5 %."""
    d, reps, people = 64, 800, 400_000
    histogram = np.full(d, people // d)
    workload = Workload.from_codes([d], [[[0, 9]], [[5, 44]], [[13, 13]], [[32, 63]]])
    truth, population = true_answers(workload, histogram), Population.of_histogram(histogram)
    mechanism, off, claimed = PrivNUD(epsilon=3.0, oracle="oue"), [], []
    for seed in range(reps):
        rng = np.random.default_rng(seed)
        answers = run_simulation(mechanism, schema_of(d), population, rng).answer(workload)
        off.append(answers.values - truth)
        claimed.append(answers.standard_error**2)
    measured, expected = np.mean(np.square(off), axis=0), np.mean(claimed, axis=0)
    error = np.sqrt(2 / reps)
    assert (np.abs(measured / expected - 1) < PASS * error).all()
    assert POWER * error < 0.3 / 1.3  # so a variance 30 % off would be seen


def test_wrong_choices_are_refused():
    with pytest.raises(ValueError, match="expected estimator to be one of weighted, published, got 'best'"):
        PrivNUD(epsilon=1, estimator="best")
    with pytest.raises(ValueError, match="expected users to be a positive integer or None, got 0"):
        PrivNUD(epsilon=1, users=0)
    with pytest.raises(ValueError, match="expected an oracle with an unbiased estimate, got 'sw'"):
        PrivNUD(epsilon=1, oracle="sw")
    with pytest.raises(ValueError, match="expected one attribute for privnud, got 2"):
        next(PrivNUD(epsilon=1).run(as_schema([codes("a", 3), codes("b", 3)])))


def test_error_of_the_published_program_is_met():
    """Zipf 1.1, 1024 codes, 10^6 people, epsilon 1: the published program has 2.6e-5 +- 0.3e-5."""
    d = 1024
    histogram, workload = zipf(d, 10**6), random_workload([d], 200, np.random.default_rng(11))
    truth, population = true_answers(workload, histogram), Population.of_histogram(histogram)
    found = {}
    for preset, make in PRESETS.items():
        runs = [run_simulation(make(1.0), schema_of(d), population, np.random.default_rng(seed)) for seed in range(12)]
        found[preset] = np.mean([(e.answer(workload, errors=False).values - truth) ** 2 for e in runs])
    assert 1.5e-5 < found["paper"] < 3.7e-5
    assert found["strong"] < 1.1 * found["paper"]
