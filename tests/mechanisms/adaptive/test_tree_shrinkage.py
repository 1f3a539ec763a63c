"""Shrinkage on a tree: the tree, its normal law against least squares, its posterior against integrals, its gains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.mechanisms.adaptive.bisections import Bisection
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellEstimates, from_zero
from ahead_ldp.mechanisms.adaptive.tree_shrinkage import (
    EVEN,
    HEAPED,
    SIDES,
    SMOOTH,
    WIDTHS,
    Departures,
    Family,
    Levels,
    _propagate,
    descend,
    parts,
    shrink,
    widened_posterior,
)
from tests.support import examples

# Trees.


@st.composite
def cut_domains(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Borders of cells of some codes, and the share below every code by some measure."""
    d = draw(st.integers(2, 60))
    inner = draw(st.sets(st.integers(1, d - 1), max_size=d - 1))
    weights = draw(st.lists(st.floats(1e-9, 1.0), min_size=d, max_size=d))
    below = from_zero(np.array(weights))
    return np.array([0, *sorted(inner), d]), below / below[-1]


@given(cut_domains())
@examples(120)
def test_every_code_is_reached_by_cuts_between_cells_first(case):
    borders, below = case
    tree = Bisection.of(borders, below)
    assert sorted(tree.mid) == list(range(1, borders[-1])), "each inner border of the codes is one node's cut"
    assert ((tree.lo < tree.mid) & (tree.mid < tree.hi)).all()
    assert sorted(tree.mid[tree.known]) == borders[1:-1].tolist()
    parts = {(0, int(borders[-1]))}
    for level in tree.levels:
        for lo, mid, hi in zip(tree.lo[level].tolist(), tree.mid[level].tolist(), tree.hi[level].tolist(), strict=True):
            parts.remove((lo, hi))
            parts |= {(lo, mid), (mid, hi)}
    assert parts == {(i, i + 1) for i in range(borders[-1])}, "parents come first, leaves are single codes"


def test_the_root_may_be_given_and_small_parts_left_whole():
    borders, below = np.array([0, 8, 16, 32, 33]), np.linspace(0, 1, 34)
    assert Bisection.of(borders, below, first=32).mid[0] == 32
    coarse = Bisection.of(borders, below, grain=4)
    assert coarse.ends.tolist() == [0, 4, 8, 12, 16, 20, 24, 28, 32, 33]
    curve, measure = np.zeros(34), np.linspace(0, 1, 34) ** 2
    curve[coarse.ends] = coarse.ends / 33
    filled = coarse.filled(curve, measure)
    np.testing.assert_allclose(filled[coarse.ends], curve[coarse.ends])
    part = (measure[:5] - measure[0]) / (measure[4] - measure[0])
    np.testing.assert_allclose(filled[:5], part * 4 / 33)


# What the estimates say.


def measured(seed: int, d: int = 24) -> tuple[CellData, np.ndarray, np.ndarray]:
    """Estimates of cells of overlapping partitions with precisions of their own; the truth, and a base measure."""
    rng = np.random.default_rng(seed)
    truth, base = rng.dirichlet(np.ones(d)), rng.dirichlet(np.full(d, 5.0))
    given = []
    for inner in ([6, 12, 18], [3, 9, 15, 21], [1, 2, 5, 7, 11, 13, 20], range(1, d)):
        borders = np.array([0, *inner, d])
        precision = rng.uniform(200, 2000, borders.size - 1)
        exact = np.diff(from_zero(truth)[borders])
        given.append(CellEstimates(borders, exact + rng.standard_normal(exact.size) / np.sqrt(precision), precision))
    return CellData.of(given, 1.0), from_zero(truth), from_zero(base)


@pytest.mark.parametrize("seed", range(3))
def test_effects_of_departures_are_those_of_the_masses(seed):
    data, _, base = measured(seed)
    tree = Bisection.of(data.borders, base)
    law, rng = Departures.of(data, tree, base), np.random.default_rng(seed)
    moved = rng.uniform(-1e-4, 1e-4, law.nodes.size)
    curve = descend(tree, base, law.nodes, moved)
    effect = (law.raised[data.last] - law.raised[data.first]) * data.root[:, None]
    np.testing.assert_allclose(data.seen(curve) - data.seen(base), effect @ moved, atol=1e-12)
    np.testing.assert_allclose(law.gram, (effect.T @ effect).toarray(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(law.right, effect.T @ (data.estimate - data.seen(base)), atol=1e-9)
    np.testing.assert_allclose(law.pull(curve[:, None])[:, 0], effect.T @ data.seen(curve), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_pass_it_is_least_squares(seed):
    data, _, base = measured(seed)
    tree = Bisection.of(data.borders, base)
    found = shrink(data, tree, base, passes=0)
    inside = (data.first[:, None] <= np.arange(24)) & (np.arange(24) < data.last[:, None])
    a = inside * data.root[:, None]
    kkt = np.block([[a.T @ a, np.ones((24, 1))], [np.ones((1, 24)), np.zeros((1, 1))]])
    exact = np.linalg.solve(kkt, np.append(a.T @ data.estimate, 1.0))[:24]
    linear = base.copy()
    for node, move in zip(found.departures.nodes, found.mean, strict=True):
        lo, mid, hi = tree.lo[node], tree.mid[node], tree.hi[node]
        at = np.arange(25)
        left = np.clip((base[at] - base[lo]) / (base[mid] - base[lo]), 0, 1)
        linear += move * (left - np.clip((base[at] - base[mid]) / (base[hi] - base[mid]), 0, 1))
    # the factors before the first pass have a precision of 4 beside some thousand of the estimates
    np.testing.assert_allclose(linear, from_zero(exact), atol=3e-3)


@pytest.mark.parametrize("seed", range(3))
def test_doubt_widens_what_was_shrunk_and_leaves_least_squares(seed):
    """The doubted prior allows for heaps: no mean moves, and where reports tell little the variances grow."""
    told, _, base = measured(seed)
    data = CellData(told.borders, told.first, told.last, told.estimate * 0.1, told.root * 0.1, 0.0, 1.0)
    tree = Bisection.of(data.borders, base)
    shrunk, least_squares = (shrink(data, tree, base, SMOOTH, passes=passes) for passes in (3, 0))
    wider = widened_posterior(shrunk, base, 0.6, HEAPED)
    assert wider.mean is shrunk.mean
    assert (wider.root**2).sum() > 1.2 * (shrunk.root**2).sum()
    np.testing.assert_allclose(widened_posterior(least_squares, base, 0.6, HEAPED).root, least_squares.root)


def test_with_hardly_any_information_the_base_measure_is_left():
    data, _, base = measured(1)
    weak = CellData(data.borders, data.first, data.last, data.estimate * 1e-4, data.root * 1e-4, 0.0, 1.0)
    found = shrink(weak, Bisection.of(data.borders, base), base)
    # an empty left and an empty right half are equally probable, which moves the mean where the base is uneven
    np.testing.assert_allclose(found.below(base), base, atol=0.05)


def test_with_all_information_the_estimates_are_left():
    _, truth, base = measured(2)
    borders = np.arange(25)
    exact = CellEstimates(borders, np.diff(truth), np.full(24, 1e12))
    data = CellData.of([exact], 1.0)
    found = shrink(data, Bisection.of(borders, base), base)
    np.testing.assert_allclose(found.below(base), truth, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_masses_add_up_and_are_not_negative(seed):
    data, _, base = measured(seed)
    curve = shrink(data, Bisection.of(data.borders, base), base).below(base)
    assert (np.diff(curve) >= 0).all()
    assert curve[0] == 0.0
    assert curve[-1] == 1.0


# The posterior.


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("left", [0.05, 0.31, 0.62])
def test_posterior_moments_are_the_integrals(left, share):
    """One family of mass 0.6: mean and variance of the mixture's posterior law, summed over a fine grid and atoms."""
    mass, sd = 0.6, 0.05
    centre, width = parts(np.array([[mass]]), np.array([[share]]), np.arange(SIDES.size))
    family = Family(np.array([[left - share * mass]]), np.array([[sd**2]]), centre, width)
    grid = np.linspace(-3, 3, 400_001)
    weight = first = second = 0.0
    for w, side, relative in zip(EVEN, SIDES, WIDTHS, strict=True):
        middle = {0: 0.0, 1: (1 - share) * mass, -1: -share * mass}[int(side)]
        spread = relative * mass * (2 * np.sqrt(share * (1 - share)) if side == 0 else 1.0)
        at = np.array([middle]) if spread == 0 else grid
        prior = np.ones(1)
        if spread:
            prior = np.exp(-0.5 * ((at - middle) / spread) ** 2) / (spread * np.sqrt(2 * np.pi)) * (grid[1] - grid[0])
        told = w * prior * np.exp(-0.5 * ((left - share * mass - at) / sd) ** 2)
        weight, first, second = weight + told.sum(), first + (told * at).sum(), second + (told * at**2).sum()
    mean, variance = family.posterior(EVEN)
    assert mean[0] == pytest.approx(first / weight, abs=1e-7)
    assert variance[0] == pytest.approx(second / weight - (first / weight) ** 2, abs=1e-7)


@pytest.mark.parametrize("left", [0.3, 0.45, 0.52, 0.9])
def test_for_a_single_node_expectation_propagation_is_exact(left):
    """Two codes: the law after the passes has the mean and variance of the mixture's posterior.

    A normal factor cannot widen the law, so where the mixture's parts disagree its variance is that of the estimate.
    """
    borders, base = np.array([0, 1, 2]), np.array([0.0, 0.5, 1.0])
    data = CellData.of([CellEstimates(borders, np.array([left, 1 - left]), np.full(2, 400.0))], 1.0)
    found = shrink(data, Bisection.of(borders, base), base, passes=30)
    centre, width = parts(np.ones((1, 1)), np.full((1, 1), 0.5), np.arange(SIDES.size))
    family = Family(np.array([[left - 0.5]]), np.array([[1 / 800]]), centre, width)
    mean, variance = family.posterior(found.weights[0])
    assert found.mean[0] == pytest.approx(mean[0], abs=1e-4)
    assert found.root[0, 0] ** 2 == pytest.approx(min(variance[0], 1 / 800), rel=0.02)


@pytest.mark.parametrize("seed", range(6))
def test_the_evidence_is_the_integral(seed):
    """Three nodes, so masses of four codes: the priors' density times the likelihood, summed over a fine grid.

    The prior is not learned, the base measure is compared with another one. Masses of nodes are those of the means in
    the one and of each point in the other, so the cases are such that little is moved above.
    """
    rng = np.random.default_rng(seed)
    borders, level = np.arange(5), np.array([[0.4, *[0.12] * 5, *[0.0] * 4]])
    truth = np.array([0.26, 0.24, 0.23, 0.27])
    given = [CellEstimates(borders, truth + 0.02 * rng.standard_normal(4), np.full(4, 1 / 0.02**2)) for _ in range(3)]
    data = CellData.of(given, 1.0)
    found, exact = [], []
    for base in (np.array([0, 0.25, 0.5, 0.75, 1.0]), np.array([0, 0.2, 0.48, 0.76, 1.0])):
        tree = Bisection.of(borders, base)
        departures = Departures.of(data, tree, base)
        prior = Levels.of(tree, departures.nodes, level[0], apart=False)
        found.append(_propagate(departures, base, prior, prior.first(), 30, learning=False).log_evidence)
        exact.append(_integral(data, tree, base, level[0]))
    assert found[0] - found[1] == pytest.approx(exact[0] - exact[1], abs=0.15)
    assert abs(exact[0] - exact[1]) > 0.3, "or there is nothing to tell"


def _integral(data: CellData, tree: Bisection, base: np.ndarray, weights: np.ndarray) -> float:
    """By the parts of all three nodes in turn: each is normal or nothing, so each summand is a normal integral."""
    departures, total = Departures.of(data, tree, base), []
    share = departures.share
    mass = base[tree.hi[departures.nodes]] - base[tree.lo[departures.nodes]]
    away = data.estimate - data.seen(base)
    used = np.flatnonzero(weights)
    for which in np.array(np.meshgrid(used, used, used)).reshape(3, -1).T:
        _, width = parts(mass, share, which)
        root = np.sqrt(width)
        inner = np.eye(3) + root[:, None] * departures.gram * root
        b = root * departures.right
        fit = 0.5 * b @ np.linalg.solve(inner, b) - 0.5 * np.linalg.slogdet(inner)[1]
        total.append(np.log(weights[which]).sum() + fit - 0.5 * away @ away)
    return float(np.logaddexp.reduce(total))


def test_weights_are_probabilities():
    np.testing.assert_allclose([EVEN.sum(), SMOOTH.sum()], 1.0)


# What it is for.


def risks(truth: np.ndarray, sd: float, base: np.ndarray, runs: int = 60) -> tuple[float, float, float]:
    """Mean squared error of ranges from the left for least squares and for shrinkage, and the mean evidence."""
    size, rng, curve = truth.size, np.random.default_rng(7), from_zero(truth)
    below, errors, evidence = from_zero(base), np.zeros(2), 0.0
    for _ in range(runs):
        given = []
        for cells in (4, 8, 16, 32, 64):
            borders = np.arange(cells + 1) * (size // cells)
            exact = np.diff(curve[borders])
            given.append(CellEstimates(borders, exact + sd * rng.standard_normal(cells), np.full(cells, 1 / sd**2)))
        data = CellData.of(given, 1.0)
        tree = Bisection.of(data.borders, below)
        shrunk = shrink(data, tree, below)
        evidence += shrunk.log_evidence / runs
        for i, found in enumerate((shrink(data, tree, below, passes=0), shrunk)):
            errors[i] += np.mean((found.below(below) - curve) ** 2) / runs
    return errors[0], errors[1], evidence


def test_where_the_base_measure_is_right_most_noise_goes():
    smooth = np.exp(-0.5 * ((np.arange(64) - 30) / 9) ** 2)
    smooth /= smooth.sum()
    plain, shrunk, right = risks(smooth, 0.02, smooth)
    assert shrunk < 0.4 * plain
    assert right > risks(smooth, 0.02, np.full(64, 1 / 64))[2] + 5, "the evidence knows the better base measure"


def test_where_the_base_measure_is_wrong_little_is_lost():
    rough = np.where(np.arange(64) % 8 == 3, 5.0, 0.3) * np.random.default_rng(1).uniform(0.5, 1.5, 64)
    rough /= rough.sum()
    plain, shrunk, _ = risks(rough, 0.003, np.full(64, 1 / 64))
    assert shrunk < 1.05 * plain


def test_empty_halves_are_found():
    """All people among the first four of 64 codes: a third of the noise of least squares goes."""
    corner = np.zeros(64)
    corner[:4] = 0.4, 0.3, 0.2, 0.1
    plain, shrunk, _ = risks(corner, 0.02, np.full(64, 1 / 64))
    assert shrunk < 0.7 * plain
