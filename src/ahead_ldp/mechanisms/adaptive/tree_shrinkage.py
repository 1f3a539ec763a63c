"""Shrinkage on a tree: how a node's mass falls to its two halves, between what was measured and a base measure.

The share of a node's left half departs from the base measure's. A priori departures are independent, each a mixture
(adaptive shrinkage, Stephens 2017, in place of wavelet thresholds): none; normal ones of several widths; one half
is (nearly) empty. What was measured, cells of any partitions of the codes, is a normal law of all departures at once.
Expectation propagation (Minka 2001) puts the two together: each departure's prior is replaced by the normal factor that
does the same to its mean and variance when all others are as they are now. The mixture's weights are learned level by
level with EM, each level drawn to the one above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ahead_ldp.mechanisms.adaptive.bisections import Bisection
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData
from ahead_ldp.schema.arrays import Floats, Ints

# The parts of the prior: the side on which people are (0: as the base measure says; 1: all in the left half; -1: none),
# and the standard deviation around that, relative to the node's mass (on side 0 times 2 sqrt(b (1 - b))).
SIDES = np.array([0, 0, 0, 0, 0, 0, 1, -1, 1, -1])  # choice A35
WIDTHS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.02, 0.02, 0.08, 0.08])  # choice A35
_TURNED = ((-SIDES[:, None] == SIDES) & (WIDTHS[:, None] == WIDTHS)).argmax(axis=1)  # left and right change places
EVEN = np.array([0.25, *[0.12] * 5, *[0.0375] * 4])  # weights at the root for an even base measure (choice A35)
SMOOTH = np.array([0.8, *[0.03] * 5, *[0.0125] * 4])  # for one that was fitted to the same estimates (choice A35)
HEAPED = np.array([0.2, *[0.06] * 5, *[0.125] * 4])  # half of all nodes have all people in one half (decision 011)
WIDE = np.eye(SIDES.size)[5]  # hardly any restriction (choice A35)
_CARRY = 4.0  # nodes that the level above counts for (choice A40)
_ROUNDS = 8  # of EM in every pass (decision 012)
PASSES = 2  # of expectation propagation (decision 012)
_FIRST_SD = 0.5  # of a departure before the first pass (choice A38)
_KEPT_SHARE = 0.2  # of the old factors, so that passes do not swing (choice A38)
_LEAST_MASS = 1e-5  # tolerance: that a node is taken to have, since the prior's widths go with it
_LEAST_REST = 1e-6  # tolerance: of a node's precision that is not its own factor's
_LEAST_FACTOR = 1e-3  # tolerance: a factor's precision over the rest's, so that it stays a proper law


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """What estimates of cells say about the departures of a tree's known nodes from a base measure: a normal law."""

    tree: Bisection
    nodes: Ints  # (k,) those that are known
    share: Floats  # (k,) the left half's, by the base measure
    data: CellData
    raised: Any  # (borders, k) how the share below a border moves with a departure; sparse
    gram: Floats  # (k, k) precision of the departures
    right: Floats  # (k,) precision times mean

    @classmethod
    def of(cls, data: CellData, tree: Bisection, below: Floats) -> Departures:
        """``below`` is the share below every code by the base measure, which leaves no code out."""
        from scipy.sparse import csc_array

        nodes = np.flatnonzero(tree.known)
        first, last = (np.searchsorted(data.borders, ends[nodes]) for ends in (tree.lo, tree.hi))
        node = np.repeat(np.arange(nodes.size), last - first - 1)  # and each border inside it
        start = np.cumsum(np.append(0, last - first - 1))
        border = np.arange(node.size) - start[node] + first[node] + 1
        lo, mid, hi = (below[ends[nodes[node]]] for ends in (tree.lo, tree.mid, tree.hi))
        at = below[data.borders[border]]
        tent = np.where(at <= mid, (at - lo) / (mid - lo), (hi - at) / (hi - mid))  # A33
        raised = csc_array((tent, border, start), shape=(data.borders.size, nodes.size))
        # A border moves through the nodes that it lies in, one on each level: multiplying with these few is quick.
        gram: Floats = raised.T @ (raised.T @ data.information).T  # A34
        right = raised.T @ data.gathered(data.estimate - data.seen(below))  # A34
        return cls(tree, nodes, tree.shares(below)[nodes], data, raised, gram, right)

    def log_evidence(self, below: Floats, mean: Floats, lower: Floats, shift: Floats) -> float:
        """Of the estimates, with normal factors in place of priors: exp(-t d^2 / 2 + shift d).

        ``mean`` and ``lower`` are of the law with them; a constant of the data is left out.
        """
        away = self.data.estimate - self.data.seen(below)
        fitted = 0.5 * float(mean @ (self.right + shift)) - float(np.log(np.diag(lower)).sum())
        return fitted - 0.5 * float(away @ away)  # A39

    def pull(self, away: Floats) -> Floats:  # (d + 1, draws) -> (k, draws)
        """What estimates that are off by these shares below every code would add to ``right``."""
        return self.raised.T @ self.data.gathered(self.data.seen(away))


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """The normal law of the departures, and what the prior had learned."""

    departures: Departures
    mean: Floats  # (k,)
    lower: Floats  # (k, k) L: the precision is L L^T
    prior: Levels
    weights: Floats  # (levels, parts) of the prior, from the root down as far as nodes are known
    log_evidence: float  # of the base measure, up to a constant of the data
    passes: int  # of expectation propagation behind it; 0: least squares

    @property
    def root(self) -> Floats:  # (k, k)
        """R: the covariance is R^T R."""
        return _inverted(self.lower)

    def below(self, base: Floats) -> Floats:  # (d + 1,) -> (d + 1,)
        """The share below every code: masses not negative and adding up, inside the data's cells as the base's."""
        return descend(self.departures.tree, base, self.departures.nodes, self.mean)


def shrink(
    data: CellData, tree: Bisection, below: Floats, start: Floats = EVEN, apart: bool = False, passes: int = PASSES
) -> Shrunk:  # (d + 1,), (parts,)
    """Put the prior and the estimates together; ``start`` is the prior's weights at the root.

    ``apart``: the root's halves have nothing to do with each other, and are left as measured. Without any pass there
    is no prior to speak of: least squares.
    """
    departures = Departures.of(data, tree, below)
    prior = Levels.of(tree, departures.nodes, start, apart)
    return _propagate(departures, below, prior, prior.first(), passes, learning=True)


def widened_posterior(shrunk: Shrunk, below: Floats, share: float, other: Floats) -> Shrunk:  # (d + 1,), (parts,)
    """The same means, with the spread they would have if a share of the prior were not what was learned but another.

    Least squares, which has no prior, keeps its own.
    """
    weights = (1 - share) * shrunk.weights + share * other
    weights[: shrunk.prior.fixed] = shrunk.weights[: shrunk.prior.fixed]
    wider = _propagate(shrunk.departures, below, shrunk.prior, weights, shrunk.passes, learning=False)
    return replace(shrunk, lower=wider.lower, weights=weights)


def _propagate(
    departures: Departures, below: Floats, prior: Levels, weights: Floats, passes: int, learning: bool
) -> Shrunk:
    precision, shift = np.full(departures.nodes.size, _FIRST_SD**-2.0), np.zeros(departures.nodes.size)
    evidence = 0.0
    for number in range(passes):
        mean, lower = _normal(departures, precision, shift)
        family = Family.of(departures, below, mean, _inverted(lower), precision, shift)
        if learning:
            weights = prior.learn(family, weights)
        if number == passes - 1:
            gains = family.log_gain(prior.of_nodes(weights), precision, shift)[prior.level >= prior.fixed]
            normal = departures.log_evidence(below, mean, lower, shift)
            evidence = normal + float(gains.sum()) - prior.penalty(weights)  # A39
        keep, factors = _KEPT_SHARE if number else 0.0, family.factors(prior.of_nodes(weights))  # A38
        precision, shift = (keep * old + (1 - keep) * new for old, new in zip((precision, shift), factors, strict=True))
    return Shrunk(departures, *_normal(departures, precision, shift), prior, weights, evidence, passes)


@dataclass(frozen=True, eq=False)
class Family:
    """For each known node, what all but its own prior say about its departure, and the prior's parts.

    Tables of nodes and parts have the nodes side by side in memory: there are few parts.
    """

    x: Floats  # (k, 1) the departure, as measured
    variance: Floats  # (k, 1) of that
    centre: Floats  # (k, parts) of the prior's parts
    width: Floats  # (k, parts) their variances

    @classmethod
    def of(
        cls, departures: Departures, below: Floats, mean: Floats, root: Floats, precision: Floats, shift: Floats
    ) -> Family:
        """From the law of all departures, each node's own factor taken out; masses are those of the means."""
        tree, nodes = departures.tree, departures.nodes
        curve = _followed(tree, below, nodes, mean)
        mass = np.maximum(curve[tree.hi[nodes]] - curve[tree.lo[nodes]], _LEAST_MASS)
        total = 1 / np.einsum("ij,ij->i", root.T, root.T)
        rest = np.maximum(total - precision, _LEAST_REST * total)  # A36
        centre, width = parts(mass, departures.share, np.arange(SIDES.size)[:, None])
        return cls(((mean * total - shift) / rest)[:, None], 1 / rest[:, None], centre.T, width.T)  # A36

    @cached_property
    def log_likelihood(self) -> Floats:  # (k, parts)
        """Of every part, up to a constant."""
        total = self.width + self.variance
        return -0.5 * (np.log(total) + (self.x - self.centre) ** 2 / total)  # A37

    @cached_property
    def likelihood(self) -> Floats:  # (k, parts)
        """Of every part, over that of the likeliest."""
        return np.exp(self.log_likelihood - self.log_likelihood.max(axis=1, keepdims=True))

    def posterior(self, weights: Floats) -> tuple[Floats, Floats]:  # (k or 1, parts) -> (k,), (k,)
        """The mean and the variance of every departure."""
        gain = self.width / (self.width + self.variance)
        chance = _responsibilities(weights, self.likelihood)
        means = self.centre + gain * (self.x - self.centre)
        mean = (chance * means).sum(axis=1)
        return mean, (chance * (gain * self.variance + (means - mean[:, None]) ** 2)).sum(axis=1)  # A37

    def log_gain(self, weights: Floats, precision: Floats, shift: Floats) -> Floats:  # (k, parts), (k,), (k,) -> (k,)
        """How much likelier all else is with each prior than with the normal factor that stands for it."""
        x, rest = self.x[:, 0], 1 / self.variance[:, 0]
        prior = np.log((weights * self.likelihood).sum(axis=1)) + self.log_likelihood.max(axis=1)
        total = precision + rest
        return prior - 0.5 * ((shift + x * rest) ** 2 / total - x**2 * rest + np.log(rest / total))  # A39

    def factors(self, weights: Floats) -> tuple[Floats, Floats]:  # (k, parts) -> (k,), (k,)
        """The normal factors that do to each departure's mean and variance what its prior does: precision, shift."""
        mean, variance = self.posterior(weights)
        rest = 1 / self.variance[:, 0]
        precision = np.maximum(1 / (variance + 1e-14) - rest, _LEAST_FACTOR * rest)  # A38
        return precision, mean * (precision + rest) - self.x[:, 0] * rest  # A38


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The levels of a tree down to the last known node, and how the prior's weights are learned on them."""

    level: Ints  # (k,) of every known node, rising
    count: Ints  # (levels,) of the known nodes, at least one
    start: Floats  # (parts,) the weights above the first level
    fixed: int  # levels whose weights are not learned

    @classmethod
    def of(cls, tree: Bisection, nodes: Ints, start: Floats, apart: bool) -> Levels:
        """Above a known node there are only known ones, so no level is left out."""
        level = np.searchsorted([level.start for level in tree.levels], nodes, side="right") - 1
        return cls(level, np.bincount(level), start, int(apart))

    def first(self) -> Floats:  # -> (levels, parts)
        """Weights before anything is learned."""
        return np.where(np.arange(self.count.size)[:, None] < self.fixed, WIDE, self.start)

    def of_nodes(self, weights: Floats) -> Floats:  # (levels, parts) -> (k, parts)
        """The weights of each node's level."""
        return np.repeat(weights.T, self.count, axis=1).T

    def learn(self, family: Family, weights: Floats) -> Floats:  # (levels, parts) -> (levels, parts)
        """The mixture's weights on each level after some rounds of EM, going on from some."""
        weights, learned = weights.copy(), slice(self.fixed, None)
        begin, total = np.cumsum(self.count) - self.count, self.count[:, None] + _CARRY
        for _ in range(_ROUNDS if begin.size else 0):
            chance = _responsibilities(self.of_nodes(weights), family.likelihood)
            expected = np.add.reduceat(chance.T, begin, axis=1).T
            weights[learned] = _balanced((expected + _CARRY * self._above(weights)) / total)[learned]  # A40
        return weights

    def penalty(self, weights: Floats) -> float:
        """What the weights pay for having moved from those above."""
        above = self._above(weights)[self.fixed :]
        with np.errstate(divide="ignore", invalid="ignore"):
            return _CARRY * float(np.where(above > 0, above * np.log(above / weights[self.fixed :]), 0.0).sum())  # A41

    def _above(self, weights: Floats) -> Floats:
        """What each level starts from: the weights of the one above, if they were learned."""
        above = np.empty_like(weights)
        above[: self.fixed + 1], above[self.fixed + 1 :] = self.start, weights[self.fixed : -1]
        return above


def descend(tree: Bisection, below: Floats, nodes: Ints, departures: Floats) -> Floats:
    """The share below every code when nodes depart from a measure, from the root down; ``below`` may be several.

    Inside what is not cut, or does not depart, the measure itself says how people lie.
    """
    return tree.filled(_followed(tree, below, nodes, departures), below)


def _followed(tree: Bisection, below: Floats, nodes: Ints, departures: Floats) -> Floats:
    """The same where nodes are cut and nowhere else."""
    curve, moved = np.zeros_like(below), np.zeros((tree.lo.size, *below.shape[1:]))
    curve[-1], moved[nodes], share = 1.0, departures, tree.shares(below)
    for level in tree.levels:
        lo, mid, hi = tree.lo[level], tree.mid[level], tree.hi[level]
        mass = curve[hi] - curve[lo]
        curve[mid] = curve[lo] + np.minimum(np.maximum(share[level] * mass + moved[level], 0.0), mass)  # A33
    return curve


def parts(mass: Floats, share: Floats, which: Ints) -> tuple[Floats, Floats]:
    """Centres and variances of parts of the prior for departures of the left half; arrays are broadcast."""
    side = SIDES[which]
    centre = np.where(side == 0, 0.0, np.where(side > 0, (1 - share) * mass, -share * mass))  # A35
    return centre, (WIDTHS[which] * mass) ** 2 * np.where(side == 0, 4 * share * (1 - share), 1.0)  # A35


def roughness(weights: Floats) -> float:  # (parts,)
    """The standard deviation of the left half's share under a prior, the base measure being even."""
    return float(np.sqrt(weights @ np.where(SIDES == 0, WIDTHS**2, 0.25)))  # A42


def _normal(departures: Departures, precision: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Mean of the departures with these factors in place of their priors, and a root of their precision."""
    from scipy.linalg import lapack

    whole = departures.gram.copy()
    whole[np.diag_indices_from(whole)] += precision
    lower, failed = lapack.dpotrf(whole.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise AssertionError("expected precisions that are positive")
    mean, _ = lapack.dpotrs(lower, departures.right + shift, lower=1)
    return mean, lower


def _inverted(lower: Floats) -> Floats:
    from scipy.linalg import lapack

    return lapack.dtrtri(lower, lower=1)[0]


def _responsibilities(weights: Floats, likelihood: Floats) -> Floats:  # (k, parts) each
    """How likely each part of the prior is behind each departure."""
    chance = weights * likelihood
    return chance / chance.sum(axis=1, keepdims=True)


def _balanced(weights: Floats) -> Floats:  # (levels, parts)
    """The same weights for an empty left and an empty right half."""
    return 0.5 * (weights + weights.take(_TURNED, axis=1))
