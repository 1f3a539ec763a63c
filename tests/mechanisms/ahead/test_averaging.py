"""Averaging on a tree is the dense linear map it should be; its errors are a C a^T, and what chance shows."""

from math import ceil, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.measurements import Measurement, pool
from ahead_ldp.mechanisms.ahead.averaging import average
from ahead_ldp.mechanisms.ahead.errors import linear_variance
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.oracles import LinearOracle, make_oracle
from ahead_ldp.partitions.covers import cover_weights
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.workloads import Workload, true_answers
from tests.reference.averaging import covariance, linear_map
from tests.support import LINEAR, PASS, examples, random_boxes, schema_of


def measured(tree: Tree, nodes: np.ndarray, f: np.ndarray, n: int, name: str) -> Measurement:
    oracle = make_oracle(name, 1, nodes.size)
    assert isinstance(oracle, LinearOracle)
    return Measurement(nodes, f[nodes], n, oracle)


def frequencies(tree: Tree, rng: np.random.Generator) -> np.ndarray:
    """True frequencies of all nodes."""
    f = np.zeros(tree.size)
    f[tree.leaves] = rng.dirichlet(np.ones(tree.leaves.size))
    for level in reversed(list(tree.levels())):
        inner = np.flatnonzero(tree.is_split[level]) + level.start
        f[inner] = tree.children_sum(f)[inner]
    return f


@st.composite
def collections(draw: st.DrawFn) -> tuple[Tree, list[Measurement], np.ndarray]:
    """AHEAD's way: a tree grows, every group measures the leaves of its day; some groups are empty."""
    axes = draw(st.sampled_from([[Axis(9)], [Axis(16)], [Axis(4), Axis(5)], [Axis(6, missing=True)], [Axis(3, True)]]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tree = Tree.root(axes, draw(st.integers(2, 4)))
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        tree, place = tree.split(~tree.is_split & ((rng.random(tree.size) < 0.6) | (tree.size == 1)))
        steps = [place[nodes] for nodes in steps] + [tree.leaves]
    f = frequencies(tree, rng)
    sizes = [draw(st.sampled_from([0, 1, 50, 3000])) for _ in steps]
    names = [draw(st.sampled_from(LINEAR)) for _ in steps]
    return tree, [measured(tree, x, f, n, name) for x, n, name in zip(steps, sizes, names, strict=True)], f


def noisy(measurements: list[Measurement], rng: np.random.Generator) -> list[Measurement]:
    return [Measurement(m.nodes, rng.normal(size=m.nodes.size), m.n, m.oracle) for m in measurements]


@examples(120)
@given(collected=collections(), seed=st.integers(0, 2**32))
def test_averaging_is_the_dense_map(collected, seed):
    tree, measurements, _ = collected
    rng = np.random.default_rng(seed)
    measurements = noisy(measurements, rng)
    a, c, filled = linear_map(tree, measurements)
    estimates = np.concatenate([m.estimate for m in measurements])
    averaged = average(tree, measurements)
    np.testing.assert_allclose(averaged.values, a @ estimates + c, atol=1e-10)
    assert averaged.filled.tolist() == filled
    assert averaged.values[0] == 1.0
    assert np.isfinite(averaged.values).all()
    weights = rng.normal(size=(3, tree.size))
    g, (_, precision) = averaged.coefficients(weights), pool(tree, measurements)
    mine = np.zeros((3, estimates.size))
    start = 0
    for m in measurements:
        share = m.precision / np.where(precision[m.nodes] > 0, precision[m.nodes], 1)
        mine[:, start : start + m.nodes.size] = g[:, m.nodes] * share
        start += m.nodes.size
    np.testing.assert_allclose(mine, weights @ a, atol=1e-10)


@examples(120)
@given(collected=collections(), seed=st.integers(0, 2**32))
def test_variance_is_that_of_the_dense_map(collected, seed):
    tree, measurements, f = collected
    if sum(m.n for m in measurements) == 0:
        return
    a, _, filled = linear_map(tree, measurements)
    averaged = average(tree, measurements)
    np.testing.assert_allclose(averaged.values[~np.array(filled)], f[~np.array(filled)], atol=1e-10)
    rng = np.random.default_rng(seed)
    boxes = random_boxes([axis.size for axis in tree.axes], 6, rng)
    weights = np.vstack([cover_weights(tree, boxes), rng.normal(size=(2, tree.size))])
    dense = covariance(tree, measurements, averaged.values[tree.leaves])
    rows = weights @ a
    expected = np.maximum(np.einsum("ki,ij,kj->k", rows, dense, rows), 0.0)
    np.testing.assert_allclose(linear_variance(averaged, weights), expected, rtol=1e-7, atol=1e-10)


def test_lower_levels_weigh_by_their_variance():
    """Two levels of two, by hand: lambda_1 = Var_child / (Var_child + Var_n), Var_child of two children."""
    tree = Tree.root([Axis(4)], 2).split(np.array([True]))[0].split(np.array([False, True, True]))[0]
    coarse = Measurement(np.array([1, 2]), np.array([0.4, 0.6]), 300, make_oracle("oue", 1, 2))
    fine = Measurement(np.array([3, 4, 5, 6]), np.array([0.1, 0.2, 0.3, 0.4]), 100, make_oracle("oue", 1, 4))
    child, own = 2 / 100, 1 / 300
    weight = child / (child + own)
    values = average(tree, [coarse, fine]).values
    np.testing.assert_allclose(values[1:3], [weight * 0.4 + (1 - weight) * 0.3, weight * 0.6 + (1 - weight) * 0.7])
    np.testing.assert_allclose(values[3:], fine.estimate)


def tree_of_two_levels() -> Tree:
    return Tree.root([Axis(4)], 2).split(np.array([True]))[0].split(np.array([False, True, True]))[0]


def answers(tree: Tree, measurements: list[Measurement]) -> tuple[list[float], list[bool]]:
    """Standard errors of the prefixes of four codes, and which may be off by an assumed density."""
    estimate = TreeEstimate(schema_of(4), average(tree, measurements), consistent=True)
    found = estimate.answer(Workload.from_codes([4], [[0, 0], [0, 1], [0, 2], [0, 3]]))
    assert np.isfinite(found.values).all()
    assert not found.bias_not_included.any()
    return found.standard_error.tolist(), (found.bias_error > 0).tolist()


def test_without_anybody_nothing_is_known_but_the_sum():
    tree = tree_of_two_levels()
    empty = [measured(tree, np.array([1, 2]), np.ones(7), 0, "oue"), measured(tree, tree.leaves, np.ones(7), 0, "oue")]
    assert answers(tree, empty) == ([np.inf, np.inf, np.inf, 0.0], [True, True, True, False])
    assert answers(Tree.root([Axis(4)]), []) == ([np.inf, np.inf, np.inf, 0.0], [True, True, True, False])
    flat = finish(Flat(epsilon=1), schema_of(4)).answer(Workload.from_codes([4], [[0, 1], [0, 3]]))
    assert flat.standard_error.tolist() == [np.inf, 0.0]
    assert (flat.bias_error > 0).tolist() == [True, False]


def test_answers_inside_a_node_whose_children_nobody_measured_say_so():
    """The children get its value by volume: half its standard error, and an assumed density."""
    tree = tree_of_two_levels()
    f = np.array([1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25])
    halves = measured(tree, np.array([1, 2]), f, 400, "oue")
    errors, flags = answers(tree, [halves, measured(tree, tree.leaves, f, 0, "oue")])
    assert flags == [True, False, True, False]
    assert errors[0] == pytest.approx(errors[1] / 2)
    assert errors[3] == 0.0
    complete = answers(tree, [halves, measured(tree, tree.leaves, f, 400, "oue")])
    assert complete[1] == [False] * 4


# Against chance: how far answers lie from the truth, in their own standard errors.

TIMES = ceil(((4.0 + 3.0) / (sqrt(1.3) - 1)) ** 2 / 2)  # the spread of TIMES scores is known to 1 / sqrt(2 TIMES)


@pytest.mark.parametrize("name", LINEAR)
def test_scores_of_flat_have_spread_one(name):
    """Within 4 standard errors; a variance 30 % off lies at least 3 further out, and does not pass."""
    schema, histogram = schema_of(6), np.array([300, 10, 0, 90, 500, 100])
    mechanism, population = Flat(epsilon=1, oracle=name, non_negative=False), Population.of_histogram(histogram)
    workload = Workload.from_codes([6], [[0, 2], [4, 4], [1, 4]])
    truth, rng = true_answers(workload, histogram), np.random.default_rng(31)
    scores = np.empty((TIMES, workload.n))
    for i in range(TIMES):
        found = run_simulation(mechanism, schema, population, rng).answer(workload)
        scores[i] = (found.values - truth) / found.standard_error
    assert (np.abs(scores.mean(axis=0)) < PASS / sqrt(TIMES)).all()
    off = (scores.std(axis=0) - 1) * sqrt(2 * TIMES)
    assert (np.abs(off) < 4.0).all()
    for factor in (0.7, 1.3):
        wrong = (scores.std(axis=0) / sqrt(factor) - 1) * sqrt(2 * TIMES)
        assert (np.abs(wrong) > 4.0).any(), "no power"


def test_people_shared_out_to_groups_are_in_the_error():
    """Two groups on two levels, 40 people, a quiet oracle: most of the error is who fell into which group."""
    tree = tree_of_two_levels()
    rng = np.random.default_rng(32)
    f = np.array([1, 0.5, 0.5, 0.4, 0.1, 0.25, 0.25])
    people = np.repeat(tree.leaves, [16, 4, 10, 10])
    oracles = [make_oracle("grr", 7, 2), make_oracle("grr", 7, 4)]
    assert all(isinstance(o, LinearOracle) for o in oracles)
    weights = cover_weights(tree, np.array([[[0, 3]], [[1, 4]]], float))
    found = np.empty((TIMES, 2))
    for i in range(TIMES):
        rng.shuffle(people)
        halves = np.bincount(tree.parent[people[:20]] - 1, minlength=2)
        quarters = np.bincount(people[20:] - 3, minlength=4)
        parts = [
            Measurement(nodes, o.estimate(o.simulate(h, rng)), 20, o)
            for nodes, o, h in zip((np.array([1, 2]), tree.leaves), oracles, (halves, quarters), strict=True)
        ]
        found[i] = weights @ average(tree, parts).values
    exact = [Measurement(m, f[m], 20, o) for m, o in zip((np.array([1, 2]), tree.leaves), oracles, strict=True)]
    promised = linear_variance(average(tree, exact), weights)
    # Sharing out N people has N / (N - 1) of the variance of sharing out many: 2.6 % for 40.
    off = (found.var(axis=0) / promised - 1) * sqrt(TIMES / 2)
    assert (np.abs(off) < PASS).all()
    assert (np.abs((found.var(axis=0) / (1.3 * promised) - 1) * sqrt(TIMES / 2)) > PASS - 1).all()
