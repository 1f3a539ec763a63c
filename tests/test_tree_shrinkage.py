"""Shrinkage on a tree: its passes against least squares, its posterior against integrals, its gains and its limits."""

import numpy as np
import pytest
from hypothesis import given

from ahead_ldp.device import Axis
from ahead_ldp.inference.binary_trees import BinaryTree, complete_tree
from ahead_ldp.inference.tree_least_squares import TreeLeastSquares
from ahead_ldp.inference.tree_shrinkage import (
    EVEN,
    PLACES,
    SMOOTH,
    WIDTHS,
    Family,
    Upward,
    roughness,
    shrink,
)
from tests.support import examples, grown_trees

# Trees.


@given(grown_trees())
@examples(80)
def test_every_tree_has_a_binary_form(tree):
    binary = BinaryTree.of(tree)
    np.testing.assert_allclose(binary.sums(tree.volume[tree.leaves])[: tree.size], tree.volume)
    children = np.concatenate([np.concatenate(level[1:]) for level in binary.levels] or [np.zeros(0, np.int64)])
    assert sorted(children) == list(range(1, binary.size)), "every node but the root is one node's child"
    reached = {0}
    for nodes, left, right in binary.levels:
        assert set(nodes) <= reached, "parents come first"
        reached |= set(left) | set(right)


def test_complete_trees_end_at_single_codes_or_at_the_last_level():
    for axis in (Axis(1), Axis(2), Axis(37), Axis(64), Axis(9, missing=True), Axis(5, nominal=True)):
        tree = complete_tree(axis, 14).tree
        assert (tree.volume[tree.leaves] == 1).all()
        assert tree.leaves.size == axis.size
    assert complete_tree(Axis(1 << 16), 10).tree.leaves.size == 1 << 10


# The passes.


def measured(seed: int, size: int = 32) -> tuple[BinaryTree, np.ndarray, np.ndarray]:
    """A tree with estimates of all nodes of some levels and precisions of their own."""
    rng, tree = np.random.default_rng(seed), complete_tree(Axis(size), 14)
    precision = rng.uniform(50, 500, tree.size)
    precision[rng.random(tree.size) < 0.3] = 0.0
    precision[tree.tree.leaves] = rng.uniform(20, 80, tree.tree.leaves.size)
    own = tree.sums(rng.dirichlet(np.ones(size))) + rng.standard_normal(tree.size) / np.sqrt(np.maximum(precision, 1))
    return tree, own, precision


@pytest.mark.parametrize("seed", range(4))
def test_both_passes_are_least_squares(seed):
    tree, own, precision = measured(seed, 29)
    upward, slow = Upward.of(tree, own, precision), TreeLeastSquares.of(tree.tree, precision)
    np.testing.assert_allclose(upward.precision, 1 / slow.variance)
    np.testing.assert_allclose(upward.value, slow.up(own), atol=1e-12)
    np.testing.assert_allclose(upward.non_negative(tree.tree.volume), slow.solve_non_negative(own), atol=1e-12)


def test_without_information_the_base_measure_is_left():
    tree = complete_tree(Axis(21), 14)
    base = tree.sums(np.random.default_rng(1).dirichlet(np.ones(21)))
    nothing = Upward.of(tree, np.zeros(tree.size), np.zeros(tree.size))
    found = shrink(nothing, base)
    np.testing.assert_allclose(found.values, base)
    assert found.log_evidence == 0.0
    np.testing.assert_allclose(nothing.non_negative(base), base)


def test_with_all_information_the_estimates_are_left():
    tree = complete_tree(Axis(21), 14)
    truth = tree.sums(np.random.default_rng(2).dirichlet(np.ones(21)))
    found = shrink(Upward.of(tree, truth, np.full(tree.size, 1e12)), tree.tree.volume / 21)
    np.testing.assert_allclose(found.values, truth, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_masses_add_up_and_are_not_negative(seed):
    tree, own, precision = measured(seed)
    found = shrink(Upward.of(tree, own, precision), tree.tree.volume / 32)
    assert found.values.min() >= 0.0
    assert found.values[0] == 1.0
    for nodes, left, right in tree.levels:
        np.testing.assert_allclose(found.values[nodes], found.values[left] + found.values[right], atol=1e-15)


# The posterior.


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("left", [0.05, 0.31, 0.62])
def test_posterior_mean_is_the_integral(left, share):
    """One family of mass 0.6: the mean of the mixture's posterior law, by summing over a fine grid and the atoms."""
    mass, sd = 0.6, np.array([0.04, 0.07])
    tree = complete_tree(Axis(2), 14)
    upward = Upward.of(tree, np.array([1.0, left, mass - left + 0.03]), np.array([0.0, *1 / sd**2]))
    base = np.array([1.0, share, 1 - share])
    family = Family.of(upward, base, np.array([mass]), np.array([1]), np.array([2]))

    def likelihood(x: np.ndarray) -> np.ndarray:
        halves = share * mass + x, (1 - share) * mass - x
        z = [(value - half) / s for value, half, s in zip(upward.value[1:], halves, sd, strict=True)]
        return np.exp(-0.5 * (z[0] ** 2 + z[1] ** 2))

    grid = np.linspace(-3, 3, 400_001)
    weight, first = 0.0, 0.0
    for w, place, width in zip(EVEN, PLACES, WIDTHS, strict=True):
        centre = {0: 0.0, 1: (1 - share) * mass, -1: -share * mass}[int(place)]
        spread = width * mass * (2 * np.sqrt(share * (1 - share)) if place == 0 else 1.0)
        if spread == 0:
            told = likelihood(np.array([centre]))
            weight, first = weight + w * told[0], first + w * told[0] * centre
            continue
        prior = np.exp(-0.5 * ((grid - centre) / spread) ** 2) / (spread * np.sqrt(2 * np.pi)) * (grid[1] - grid[0])
        told = prior * likelihood(grid)
        weight, first = weight + w * told.sum(), first + w * (told * grid).sum()
    assert family.posterior_mean(EVEN)[0] == pytest.approx(first / weight, abs=1e-7)


def test_roughness_of_one_width_is_that_width():
    for i, place in enumerate(PLACES):
        weights = np.eye(PLACES.size)[i]
        assert roughness(weights) == pytest.approx(0.5 if place else WIDTHS[i])


def test_weights_are_probabilities():
    np.testing.assert_allclose([EVEN.sum(), SMOOTH.sum()], 1.0)


# What it is for.


def risks(truth: np.ndarray, sd: float, base: np.ndarray, runs: int = 60) -> tuple[float, float, float]:
    """Mean squared error of ranges from the left for least squares and for shrinkage, and the mean evidence."""
    size, tree = truth.size, complete_tree(Axis(truth.size), 14)
    mass, rng = tree.sums(truth), np.random.default_rng(7)
    precision = np.where(tree.tree.level >= 2, 1 / sd**2, 0.0)
    order = np.argsort(tree.tree.lo[tree.tree.leaves, 0])
    errors, evidence = np.zeros(2), 0.0
    for _ in range(runs):
        upward = Upward.of(tree, mass + sd * rng.standard_normal(tree.size), precision)
        shrunk = shrink(upward, tree.sums(base))
        evidence += shrunk.log_evidence / runs
        for i, values in enumerate((upward.non_negative(tree.tree.volume / size), shrunk.values)):
            errors[i] += np.mean((np.cumsum(values[tree.tree.leaves][order]) - np.cumsum(truth)) ** 2) / runs
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
