"""The density of one attribute from estimates of the nodes of its tree: shrinkage towards what the data support.

Two base measures compete: an even one, and a smooth density fitted to the same estimates. Each is given the masses that
shrinkage makes of it, and they are averaged by their evidence; the smooth one pays for the coefficients it used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.partition import Axis
from ahead_ldp.inference.averaging import Measurement
from ahead_ldp.inference.binary_trees import BinaryTree
from ahead_ldp.inference.cell_estimates import CellEstimates, from_zero
from ahead_ldp.inference.smooth_density import SmoothDensity, smooth_density
from ahead_ldp.inference.tree_shrinkage import NONE, SMOOTH, WIDE, Shrunk, Upward, roughness, shrink
from ahead_ldp.trees import Tree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ESTIMATORS = ("shrinkage", "even", "smooth", "least_squares")
_LEAST_ROUGH = 0.125  # no level is taken to be smoother: heaps may hide below smooth levels
_FEW = 5  # rounds of EM on the way: roughness need not be exact
_ENOUGH = 8  # families that tell how rough a level is
_PRICE = 2.0  # of a coefficient of the smooth density, in units of log-evidence
_CAUTION = 4.0  # log-evidence of neighbouring nodes is not independent: it counts for less


@dataclass(frozen=True, eq=False)
class Fitted:
    """Masses that follow one base measure, and its weight among the others."""

    weight: float
    shrunk: Shrunk
    smooth: SmoothDensity | None  # None: the even measure


@dataclass(frozen=True, eq=False)
class AdaptiveDensity:
    """The frequency of every code: an average over base measures."""

    tree: BinaryTree
    frequencies: Floats  # (size of the domain,)
    fits: tuple[Fitted, ...]
    people: int

    @classmethod
    def of(cls, tree: BinaryTree, measurements: Sequence[Measurement], estimator: str = "shrinkage") -> AdaptiveDensity:
        """From raw estimates of nodes of a tree, each measurement's tiling the domain.

        ``estimator`` is one of ``ESTIMATORS``. "even" and "smooth" are parts of "shrinkage": the even base measure
        alone, the smooth density itself. "least_squares" is without any shrinkage. They are there to be compared.
        """
        upward = Upward.of(tree, *pooled(tree, measurements))
        people = sum(m.n for m in measurements)
        fits = _fits(tree, measurements, upward, estimator if people else "even")
        density = np.sum([fit.weight * _spread(tree.tree, fit) for fit in fits], axis=0)
        return cls(tree, density, tuple(fits), people)


def _fits(tree: BinaryTree, measurements: Sequence[Measurement], upward: Upward, estimator: str) -> list[Fitted]:
    (axis,) = tree.tree.axes
    base = base_masses(tree, upward, None)
    if estimator == "least_squares":
        masses = upward.non_negative(base)
        return [Fitted(1.0, Shrunk(upward, base, masses, (WIDE,) * len(tree.levels), 0.0), None)]
    even = shrink(upward, base, apart=axis.missing)
    if estimator == "even" or axis.nominal or _ordered(axis) <= 2:
        return [Fitted(1.0, even, None)]
    smooth, price = _smooth(tree.tree, measurements, upward)
    base = base_masses(tree, upward, smooth.frequencies)
    if estimator == "smooth":
        found = shrink(upward, base, NONE, axis.missing)
        return [Fitted(1.0, found, smooth)]
    other = shrink(upward, base, SMOOTH, axis.missing)
    gain = other.log_evidence - _PRICE * price - even.log_evidence
    weight = float(1 / (1 + np.exp(-np.clip(gain / _CAUTION, -50, 50))))
    return [Fitted(1 - weight, even, None), Fitted(weight, other, smooth)]


def look(tree: BinaryTree, measurements: Sequence[Measurement]) -> tuple[Floats, Floats]:  # -> (nodes,), (nodes,)
    """What is known halfway: the tree's masses, and how unevenly a node's mass falls to its halves.

    That is the standard deviation of the left half's share, by the prior that was learned on the node's level; below
    what was looked at it goes on falling as it fell on the last two levels, at most by half a level. Nothing is said
    (one half, the most) where the level above has too few families to tell.
    """
    upward = Upward.of(tree, *_weighted(tree.tree, measurements, _even(measurements)))
    base = base_masses(tree, upward, None)
    shrunk = shrink(upward, base, apart=tree.tree.axes[0].missing, rounds=_FEW)
    rough, now, ratio, told = np.full(tree.size, 0.5), 0.5, 1.0, 0
    for (nodes, left, right), weights in zip(tree.levels, shrunk.weights, strict=True):
        if known := int(upward.known(left, right).sum()):
            before, now, told = now, roughness(weights), known
            ratio = float(np.clip(now / before, 0.5, 1.0))
        else:
            now *= ratio
        if told >= _ENOUGH:
            rough[nodes] = max(now, _LEAST_ROUGH)
    return upward.non_negative(base)[: tree.tree.size], rough[: tree.tree.size]


def pooled(tree: BinaryTree, measurements: Sequence[Measurement]) -> tuple[Floats, Floats]:  # -> (nodes,), (nodes,)
    """Each node's own estimate, and its precision once the sum over all cells is known to be 1.

    Variances depend on the frequencies, which a first least-squares fit with equal ones supplies; they hold the chance
    of who fell into the group.
    """
    even = _even(measurements)
    upward = Upward.of(tree, *_weighted(tree.tree, measurements, even))
    f = upward.non_negative(base_masses(tree, upward, None))
    halfway = [0.5 * (f[m.nodes] + x) for m, x in zip(measurements, even, strict=True)]
    return _weighted(tree.tree, measurements, halfway)


def _even(measurements: Sequence[Measurement]) -> list[Floats]:
    return [np.full(m.nodes.size, 1 / m.nodes.size) for m in measurements]


def _weighted(tree: Tree, measurements: Sequence[Measurement], frequencies: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Averages of each node's estimates by precision at these frequencies."""
    people = sum(m.n for m in measurements)
    weighted, precision = np.zeros(tree.size), np.zeros(tree.size)
    for m, f in zip(measurements, frequencies, strict=True):
        if m.n:
            law = m.oracle.moments
            covariance = law.cross + (law.cross_own - law.cross) * 2 * f
            each = m.n / (f * law.own + (1 - f) * law.other - covariance + f * (1 - m.n / people))
            weighted[m.nodes] += each * m.estimate
            precision[m.nodes] += each
    return np.divide(weighted, precision, out=np.zeros(tree.size), where=precision > 0), precision


def _ordered(axis: Axis) -> int:
    """How many codes are in the order."""
    return axis.size - axis.missing


def _smooth(tree: Tree, measurements: Sequence[Measurement], upward: Upward) -> tuple[SmoothDensity, float]:
    """The smooth density of the ordered codes, and how many coefficients it used."""
    (axis,) = tree.axes
    size, given = _ordered(axis), []
    total = 1 - _missing(tree, upward)
    for m in measurements:
        ordered = m.nodes[tree.lo[m.nodes, 0] < size]
        order = np.argsort(tree.lo[ordered, 0])
        place = np.flatnonzero(tree.lo[m.nodes, 0] < size)[order]
        borders = np.append(tree.lo[ordered[order], 0], size)
        given.append(CellEstimates.of(borders, m.estimate[place], m.n, m.oracle))
    found = smooth_density(size, given, total)
    free = sum(g.estimate.size - (abs(g.estimate.sum() - total) < 1e-9) for g in given if g.precision.any())
    return found, max(free - found.freedom, 0.0)


def _missing(tree: Tree, upward: Upward) -> float:
    """The share of people without a value."""
    (axis,) = tree.axes
    if not axis.missing or axis.size < 2:
        return 0.0
    node = int(np.flatnonzero((tree.lo[:, 0] == axis.size - 1) & (tree.hi[:, 0] == axis.size))[0])
    return float(np.clip(upward.value[node], 0.0, 1.0)) if upward.precision[node] > 0 else 1 / axis.size


def base_masses(tree: BinaryTree, upward: Upward, smooth: Floats | None) -> Floats:  # (codes, ...) -> (size, ...)
    """Masses of all nodes by densities of the ordered codes, or an even one; those without a value get one half.

    Their share is left as measured, and at one half the prior is widest.
    """
    (axis,) = tree.tree.axes
    lo, hi = tree.tree.lo[tree.tree.leaves, 0], tree.tree.hi[tree.tree.leaves, 0]
    missing = 0.5 if axis.missing and upward.precision.any() else axis.missing / axis.size
    density = np.full(_ordered(axis), 1 / _ordered(axis)) if smooth is None else smooth
    rest = np.full((int(axis.missing), *density.shape[1:]), missing)
    below = from_zero(np.concatenate([(1 - missing) * density, rest]))
    return tree.sums(below[hi] - below[lo])


def _spread(tree: Tree, fit: Fitted) -> Floats:  # -> (size,)
    """Leaves' masses as frequencies of codes: by the base measure inside a leaf."""
    return spread(tree, fit.shrunk.leaves, None if fit.smooth is None else fit.smooth.frequencies)


def spread(tree: Tree, masses: Floats, smooth: Floats | None) -> Floats:  # (leaves,) -> (size,)
    """Leaves' masses as frequencies of codes, inside a leaf evenly or in the proportions of a smooth density."""
    lo, hi = tree.lo[tree.leaves, 0], tree.hi[tree.leaves, 0]
    order, (axis,) = np.argsort(lo), tree.axes
    count = (hi - lo)[order]
    if smooth is None or (count == 1).all():
        return np.repeat(masses[order] / count, count)
    inside = np.append(smooth, [1.0] * axis.missing)
    whole = np.add.reduceat(inside, lo[order])
    found: Floats = inside * np.repeat(masses[order] / whole, count)
    return found
