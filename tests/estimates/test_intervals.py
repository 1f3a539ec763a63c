"""Intervals mean what they say: one at a time and all at once, for shares, curves and quantiles."""

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.bands import (
    bonferroni_quantile,
    largest_of,
    largest_quantile,
    normal_draws,
    pointwise_quantile,
    shared_level,
    with_spread,
)
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.quantiles import Quantiles
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.averaging import average
from ahead_ldp.mechanisms.ahead.errors import linear_covariance, linear_variance, uneven_covariances, uneven_variance
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.partitions.covers import cover_weights
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.schema.attributes import real
from ahead_ldp.schema.workloads import Workload, random_workload, true_answers
from tests.mechanisms.ahead.test_averaging import collections
from tests.reference.averaging import covariance, linear_map
from tests.support import examples, random_boxes, schema_of

LEVEL = 0.95


# How many standard deviations.


def test_independent_errors_need_sidaks_constant_and_equal_ones_the_pointwise():
    n, draws = 20, np.random.default_rng(1).standard_normal((40_000, 20))
    sidak = NormalDist().inv_cdf((1 + LEVEL ** (1 / n)) / 2)
    assert largest_quantile(draws, np.ones(n), LEVEL) == pytest.approx(sidak, rel=0.01)
    equal = np.repeat(draws[:, :1], n, axis=1)
    assert largest_quantile(equal, np.ones(n), LEVEL) == pytest.approx(pointwise_quantile(LEVEL), rel=0.02)
    assert pointwise_quantile(LEVEL) < sidak < bonferroni_quantile(n, LEVEL)
    assert bonferroni_quantile(1, LEVEL) == pointwise_quantile(LEVEL)


def test_errors_of_size_zero_do_not_count():
    draws = np.random.default_rng(2).standard_normal((2000, 3)) * [1.0, 0.0, 0.0]
    assert largest_quantile(draws, np.array([1.0, 0.0, 0.0]), LEVEL) == pointwise_quantile(LEVEL)


@pytest.mark.parametrize("bounds", [2, 3, 5, 40])
def test_independent_bounds_need_sidaks_constant_of_one_side(bounds):
    sidak = NormalDist().inv_cdf(LEVEL ** (1 / bounds))
    least = pointwise_quantile(LEVEL)  # two bounds are one interval
    assert largest_of(np.eye(bounds), LEVEL, 40_000) == pytest.approx(max(sidak, least), rel=0.01)
    assert largest_of(np.ones((bounds, bounds)), LEVEL) == least


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_draws_have_the_covariance(rank):
    factor = np.random.default_rng(3).normal(size=(6, rank))
    matrix = factor @ factor.T
    draws = normal_draws(matrix, 20_000)
    scale = np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    assert (np.abs(np.cov(draws.T) - matrix) / scale).max() < 5 / sqrt(20_000)
    np.testing.assert_array_equal(draws, normal_draws(matrix, 20_000))


def test_draws_do_not_depend_on_the_signs_of_eigenvectors(monkeypatch):
    """Machines choose them differently; a matrix that is not quite a covariance is drawn from by its eigenvectors."""
    matrix = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    draws, eigh = normal_draws(matrix, 100), np.linalg.eigh
    signs = np.array([1.0, -1.0, -1.0])
    monkeypatch.setattr(np.linalg, "eigh", lambda m: (eigh(m)[0], eigh(m)[1] * signs))
    np.testing.assert_allclose(normal_draws(matrix, 100), draws, atol=1e-12)


def test_the_rule_is_named():
    given_ = {"values": np.full(3, 0.5), "standard_error": np.full(3, 0.1), "bias_not_included": np.zeros(3, bool)}
    plain = Answers(**given_)
    assert plain.critical()[1] == "pointwise"
    assert plain.critical(simultaneous=True) == (bonferroni_quantile(3, 0.95), "Bonferroni")
    unknown = Answers(**given_, joint=lambda: None)
    assert unknown.critical(simultaneous=True)[1] == "Bonferroni"
    joint = Answers(**given_, joint=lambda: normal_draws(np.full((3, 3), 0.01), 500))
    constant, rule = joint.critical(simultaneous=True)
    assert rule == "sup-t"
    assert pointwise_quantile(0.95) <= constant < bonferroni_quantile(3, 0.95)
    low, high = joint.interval(0.95, simultaneous=True)
    np.testing.assert_allclose(high - low, 0.2 * constant)


def test_bias_widens_intervals():
    found = Answers(np.array([0.5]), np.array([0.03]), np.zeros(1, bool), bias_error=np.array([0.04]))
    assert found.spread.tolist() == pytest.approx([0.05])
    low, high = found.interval()
    assert (high - low)[0] == pytest.approx(2 * 1.959964 * 0.05)


# Covariances of answers.


@examples(60)
@given(collected=collections(), seed=st.integers(0, 2**32))
def test_covariances_are_those_of_the_dense_map(collected, seed):
    tree, measurements, _ = collected
    if sum(m.n for m in measurements) == 0:
        return
    averaged, (a, _, _) = average(tree, measurements), linear_map(tree, measurements)
    boxes = random_boxes([axis.size for axis in tree.axes], 5, np.random.default_rng(seed))
    weights = cover_weights(tree, boxes)
    found = linear_covariance(averaged, weights)
    dense = (weights @ a) @ covariance(tree, measurements, averaged.values[tree.leaves]) @ (weights @ a).T
    np.testing.assert_allclose(found, dense, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(np.maximum(np.diag(found), 0), linear_variance(averaged, weights), atol=1e-10)


def test_unevenness_is_that_of_a_dirichlet_law():
    """People of a cell spread over its codes by a Dirichlet law of weight 3: variances and covariances of shares."""
    tree = Tree.root([Axis(12)], 2).split(np.array([True]))[0]  # cells of six codes
    masses, rng = np.array([0.3, 0.7]), np.random.default_rng(4)
    boxes = np.array([[[0, 2]], [[1, 5]], [[3, 9]], [[7, 12]], [[0, 12]]], float)
    found = np.zeros((5, 5))
    for rows, extra in uneven_covariances(tree, tree.leaves, masses, boxes):
        found[np.ix_(rows, rows)] += extra
    np.testing.assert_allclose(np.diag(found), uneven_variance(tree, tree.leaves, masses, boxes), atol=1e-15)
    draws = 40_000
    inside = rng.dirichlet(np.full(6, 3 / 6), size=(draws, 2)) * masses[:, None]
    curve = np.concatenate([np.zeros((draws, 1)), np.cumsum(inside.reshape(draws, 12), axis=1)], axis=1)
    sums = np.stack([curve[:, int(hi)] - curve[:, int(lo)] for lo, hi in boxes[:, 0]], axis=1)
    np.testing.assert_allclose(np.cov(sums.T), found, atol=0.002)
    assert found[4, 4] == 0


def test_a_trees_joint_law_is_the_generic_one():
    schema, histogram = schema_of(32), np.random.default_rng(5).multinomial(20_000, np.full(32, 1 / 32))
    estimate = run_simulation(AHEAD.paper(1.0), schema, Population.of_histogram(histogram), np.random.default_rng(6))
    workload = Workload.from_codes([32], [[0, 3], [2, 11], [5, 20], [21, 31], [9, 9]])
    spread = estimate.answer(workload).spread
    draws = estimate.joint_errors(workload, 8000)
    np.testing.assert_allclose(draws.std(axis=0), spread, rtol=0.05)
    generic = Estimate.joint_errors(estimate, workload, 8000)
    np.testing.assert_allclose(np.corrcoef(draws.T), np.corrcoef(generic.T), atol=0.2)  # cells cut twice are apart here


# Coverage.


def tent(d: int, people: int) -> np.ndarray:
    f = np.minimum(np.arange(1, d + 1), 0.4 * np.arange(d, 0, -1)) ** 2.0
    return np.random.default_rng(7).multinomial(people, f / f.sum())


def test_simultaneous_intervals_hold_all_at_once():
    """Flat without bounds has normal errors: 400 runs give 95 % within 4.6 points. Pointwise ones fall far short."""
    runs, schema, histogram = 400, schema_of(16), tent(16, 50_000)
    workload = Workload.from_codes([16], [[0, i] for i in range(15)])
    truth, rng, held = true_answers(workload, histogram), np.random.default_rng(8), []
    people, mechanism = Population.of_histogram(histogram), Flat(epsilon=1.0, non_negative=False)
    rules = [False, True]
    for _ in range(runs):
        found = run_simulation(mechanism, schema, people, rng).answer_jointly(workload)
        ends = [(found.values - found.half_width(LEVEL, s), found.values + found.half_width(LEVEL, s)) for s in rules]
        held.append([bool(((low <= truth) & (truth <= high)).all()) for low, high in ends])
    pointwise, together = np.mean(held, axis=0)
    error = sqrt(LEVEL * (1 - LEVEL) / runs)
    assert abs(together - LEVEL) < 4.2 * error
    assert pointwise < LEVEL - 10 * error


def test_intervals_hold_where_cells_are_cut():
    """AHEAD on a steep density, few people: wide leaves. Without the bias far fewer answers would be inside."""
    schema, histogram = schema_of(256), tent(256, 30_000)
    workload = random_workload(schema, 60, np.random.default_rng(9))
    truth, rng, inside, noise_alone = true_answers(workload, histogram), np.random.default_rng(10), [], []
    for _ in range(25):
        found = run_simulation(AHEAD.paper(1.0), schema, Population.of_histogram(histogram), rng).answer(workload)
        off = np.abs(found.values - truth)
        inside.append(off <= found.half_width(LEVEL))
        noise_alone.append(off <= pointwise_quantile(LEVEL) * found.standard_error)
    assert 0.93 < np.mean(inside) <= 0.99
    assert np.mean(noise_alone) < np.mean(inside) - 0.03


# Quantiles.


def test_quantile_intervals_invert_the_band():
    """Uniform curve, errors that grow along it: the ends are where curve plus and minus z errors meet the level."""
    attribute = real("a", 0, 100, 100)
    places = np.arange(101.0)
    curve, error = places / 100, 0.02 + 0.0004 * places
    levels = np.array([0.2, 0.5])
    found = Quantiles(attribute, levels, np.full(2, 0.03), places, curve, np.zeros(2, bool), error)
    low, high = found.interval(LEVEL)
    z = pointwise_quantile(LEVEL)
    np.testing.assert_allclose(low, 100 * (levels - 0.02 * z) / (1 + 0.04 * z), rtol=1e-9)
    np.testing.assert_allclose(high, 100 * (levels + 0.02 * z) / (1 - 0.04 * z), rtol=1e-9)
    all_low, all_high = found.interval(LEVEL, simultaneous=True)
    assert ((all_low < low) & (high < all_high)).all()


def test_quantile_intervals_hold_the_truth():
    """Quartiles of 200 runs: each within its interval as often as it should, and all three within the joint ones.

    The model's intervals are about the place where a straight line inside a code crosses the level, strict ones about
    the code itself, which is the whole number that people read.
    """
    schema, histogram, levels = schema_of(64), tent(64, 100_000), [0.25, 0.5, 0.75]
    curve = np.append(0, np.cumsum(histogram)) / histogram.sum()
    truth, rng, runs = np.interp(levels, curve, np.arange(65)), np.random.default_rng(11), 200
    inside, together, strict = [], [], []
    for _ in range(runs):
        mechanism = Flat(epsilon=1.0, non_negative=False)
        estimate = run_simulation(mechanism, schema, Population.of_histogram(histogram), rng)
        found = estimate.quantiles(levels=levels)
        low, high = (end for end in found._ends(LEVEL, False, "model"))
        inside.append((low - 1e-9 <= truth) & (truth <= high + 1e-9))
        low, high = (end for end in found._ends(LEVEL, True, "model"))
        together.append(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).all())
        low, high = found.interval(LEVEL, kind="strict")
        strict.append((low <= np.floor(truth)) & (np.floor(truth) <= high))
    assert 0.91 < np.mean(inside) < 0.995
    assert np.mean(strict) > LEVEL - 0.02
    assert np.mean(together) > LEVEL - 4 * sqrt(LEVEL * (1 - LEVEL) / runs)
    frame = found.to_frame("dict")
    assert list(frame)[3:7] == ["low", "high", "simultaneous_low", "simultaneous_high"]


# Shrinkage.


def test_draws_are_scaled_to_a_spread():
    draws = with_spread(np.random.default_rng(13).normal(size=(300, 3)), np.array([1.0, 0.0, 2.5]))
    np.testing.assert_allclose(np.sqrt((draws**2).mean(axis=0)), [1.0, 0.0, 2.5])


@pytest.mark.parametrize("level", [1e-300, 1e-17, 0.5, 1 - 2**-52])
@pytest.mark.parametrize("count", [1, 2, 1000])
def test_a_level_that_is_shared_stays_a_level(level, count):
    shared = shared_level(level, count)
    assert level <= shared < 1
    assert np.isfinite(bonferroni_quantile(count, level))
    assert np.isfinite(bonferroni_quantile(count, 1 - 2**-53))
