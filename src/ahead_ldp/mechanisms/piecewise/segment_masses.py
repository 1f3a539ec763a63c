"""The masses of a tree's leaves from two sources: what was said about its nodes, and a square wave's reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ahead_ldp.estimates.measurements import pool
from ahead_ldp.estimates.solvers.tree_least_squares import TreeLeastSquares
from ahead_ldp.mechanisms.piecewise.interval_reports import NodeReport, pooled_variance
from ahead_ldp.mechanisms.piecewise.interval_trees import IntervalTree
from ahead_ldp.oracles import SW, Tally
from ahead_ldp.schema.arrays import Floats

_UNKNOWN = 1.0  # a variance that no frequency can have
_FAINT = 1e-6  # precision that keeps a problem with too few reports solvable


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """Masses of the leaves, from left to right, made by two passes over the tree.

    ``histogram_share`` is the weight of the square wave's histogram in each leaf's own value, ``histogram_variance``
    the variance of its mass there.
    """

    tree: IntervalTree
    values: Floats  # (leaves,)
    passes: TreeLeastSquares
    reports: tuple[NodeReport, ...]
    histogram_share: Floats  # (nodes,)
    histogram_variance: Floats  # (nodes,)
    people: int

    def variance(self, weights: Floats) -> Floats:  # (k, leaves) -> (k,)
        """Variance of ``weights @ values``: non-negativity taken as the identity, tree and weights as given."""
        on_nodes = np.zeros((len(weights), self.tree.size))
        on_nodes[:, self.tree.segments] = weights
        g, undetermined = self.passes.coefficients(on_nodes)
        own = g * (1 - self.histogram_share)
        asked = pooled_variance(self.tree, self.reports, own, self.values, self.people)
        return np.where(undetermined, np.inf, asked + ((g * self.histogram_share) ** 2) @ self.histogram_variance)


def average(
    tree: IntervalTree,
    reports: Sequence[NodeReport],
    histogram: Floats | None,
    noise: float,
    people: int,
    *,
    equal: bool = False,
) -> Masses:  # histogram: (leaves,)
    """Average leaves with the histogram's masses, then make the tree consistent (WYHM24 Sec. 3.5.1).

    Open in paper: the variance of a leaf's mass in the histogram, which is mostly bias. It is read off the difference
    of both values, as in the published code: the square less the node estimate's variance, at most the mass squared.
    Where errors are computed it is at least the histogram's ``noise``, shared out by length (Sec. 3.6.2).
    """
    own, precision = pool(tree, reports)
    share, spread = np.zeros(tree.size), np.zeros(tree.size)
    for leaf, mass in zip(tree.segments, [] if histogram is None else histogram, strict=histogram is not None):
        least = noise * tree.volume[leaf] / tree.volume[0]
        v = _mean_square(mass, own[leaf], precision[leaf], least)
        share[leaf] = (1 / v) / (precision[leaf] + 1 / v)
        own[leaf] += share[leaf] * (mass - own[leaf])
        precision[leaf] += 1 / v
        spread[leaf] = max(v, least)
    passes = TreeLeastSquares.of(tree, precision, equal=equal)
    return Masses(tree, passes.solve_non_negative(own)[tree.segments], passes, tuple(reports), share, spread, people)


def _mean_square(mass: float, own: float, precision: float, noise: float) -> float:
    """The histogram's expected squared error in one leaf, from how far it is from the leaf's own estimate."""
    if precision == 0:
        return noise
    square, variance = (mass - own) ** 2, 1 / precision
    beyond = square - variance if square > variance else square
    return float(max(min(beyond, mass**2), 1e-6 * noise))


@dataclass(frozen=True, slots=True, eq=False)
class JointMasses:
    """Masses of the leaves that fit all reports at once, least squares under their sum and signs."""

    tree: IntervalTree
    values: Floats  # (leaves,)
    spread: Floats  # (leaves, leaves) the inverse of all information, along changes that keep the sum
    wave_information: Floats  # (leaves, leaves)
    node_precision: Floats  # (nodes,)
    reports: tuple[NodeReport, ...]
    people: int

    def variance(self, weights: Floats) -> Floats:  # (k, leaves) -> (k,)
        """Variance of ``weights @ values``: non-negativity taken as the identity, tree and shapes as given."""
        pulled = weights @ self.spread
        g = (pulled @ self.tree.inside) * self.node_precision
        asked = pooled_variance(self.tree, self.reports, g, self.values, self.people)
        waved = np.einsum("ki,ij,kj->k", pulled, self.wave_information, pulled)
        faint = _FAINT * (pulled**2).sum(axis=1)
        total = asked + np.maximum(waved, 0.0) + faint
        return np.where(faint > _UNKNOWN, np.inf, total)


def fit_jointly(
    tree: IntervalTree, reports: Sequence[NodeReport], wave: SW, tally: Tally, shapes: Floats, start: Floats
) -> JointMasses:  # (leaves, d), (leaves,)
    """Masses from node estimates and the square wave's reports together, given the shape of the density in each leaf.

    The wave's counts are linear in the masses; their weights are the inverse of what the masses ``start`` predict.
    Unlike an average with a histogram it knows how uncertain the wave's masses are and that neighbours' errors cancel.
    """
    own, precision = pool(tree, reports)
    leaves = tree.segments.size
    information = (tree.inside * precision) @ tree.inside.T + _FAINT * np.eye(leaves)
    score = tree.inside @ (precision * own) + _FAINT * tree.volume[tree.segments] / tree.volume[0]
    wave_information = np.zeros((leaves, leaves))
    if tally.n:
        outcomes = np.stack([wave.outcome_probabilities(s) for s in shapes], axis=1)  # (outcomes, leaves)
        likely = outcomes @ start
        wave_information = outcomes.T @ (outcomes * (tally.n / likely)[:, None])
        score += outcomes.T @ (tally.counts / likely)
    values, spread = least_squares_on_simplex(information + wave_information, score)
    people = tally.n + sum(r.n for r in reports)
    return JointMasses(tree, values, spread, wave_information, precision, tuple(reports), people)


def least_squares_on_simplex(information: Floats, score: Floats) -> tuple[Floats, Floats]:
    """The x >= 0 of sum 1 with the least x'Jx/2 - s'x, and the inverse of J along changes that keep the sum.

    An active set: entries below 0 leave, the one that most wants back returns, until neither happens.
    """
    size = score.size
    inverse = np.linalg.inv(information)
    by_sum = inverse.sum(axis=1)
    spread = inverse - np.outer(by_sum, by_sum) / by_sum.sum()
    free = np.ones(size, bool)
    x = np.zeros(size)
    for _ in range(4 * size):
        j = information[np.ix_(free, free)]
        both = np.linalg.solve(j, np.column_stack([score[free], np.ones(int(free.sum()))]))
        price = (both[:, 0].sum() - 1) / both[:, 1].sum()
        x[:] = 0.0
        x[free] = both[:, 0] - price * both[:, 1]
        if (x < -1e-12).any():
            free &= x > 0
            continue
        gain = np.where(free, -np.inf, score - price - information @ x)
        if gain.max() <= 1e-9 * max(abs(price), 1.0):
            break
        free[int(np.argmax(gain))] = True
    x = np.maximum(x, 0.0)
    return x / x.sum(), spread
