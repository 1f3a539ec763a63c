"""Shrinkage on a tree: how a node's mass falls to its two halves, between what was measured and a base measure.

Going up, least squares gives each node its best estimate from itself and all below it. Going down, the share of the
left half departs from the base measure's by an empirical-Bayes posterior mean (adaptive shrinkage, Stephens 2017, in
the place of wavelet thresholds). The prior is a mixture: no departure; normal ones of several widths; one half is
(nearly) empty. Its weights are learned level by level with EM, each level starting from the one above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.inference.binary_trees import BinaryTree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The parts of the prior: where the left half's share lies (0: at the base's; +1, -1: all or nothing is there), and the
# standard deviation around that, relative to the node's mass (at the base's, times 2 sqrt(b (1 - b))).
PLACES = np.array([0, 0, 0, 0, 0, 0, 1, -1, 1, -1])
WIDTHS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.02, 0.02, 0.08, 0.08])
_LEFT, _RIGHT = np.flatnonzero(PLACES > 0), np.flatnonzero(PLACES < 0)
EVEN = np.array([0.25, *[0.12] * 5, *[0.0375] * 4])  # weights at the root for an even base measure
SMOOTH = np.array([0.8, *[0.03] * 5, *[0.0125] * 4])  # for one that was fitted to the same estimates
WIDE = np.eye(PLACES.size)[5]  # hardly any restriction
NONE = np.eye(PLACES.size)[0]  # no departure at all
_CARRY = 4.0  # families that the level above counts for
ROUNDS = 15  # of EM


@dataclass(frozen=True, slots=True, eq=False)
class Upward:
    """Each node's best value from its own estimate and all below it."""

    tree: BinaryTree
    value: Floats  # (size,)
    precision: Floats  # (size,) 0 where nothing is known

    @classmethod
    def of(cls, tree: BinaryTree, own: Floats, precision: Floats) -> Upward:  # (nodes,), (nodes,)
        """From the estimates of the tree's own nodes and their precisions, 0 where there is none."""
        extra = tree.size - own.size
        value, total = np.append(own, np.zeros(extra)), np.append(precision, np.zeros(extra))
        for nodes, left, right in reversed(tree.levels):
            with np.errstate(divide="ignore"):
                below = 1 / (1 / total[left] + 1 / total[right])
            both = total[nodes] + below
            weighted = total[nodes] * value[nodes] + below * (value[left] + value[right])
            value[nodes] = np.divide(weighted, both, out=np.zeros(nodes.size), where=both > 0)
            total[nodes] = both
        return cls(tree, value, total)

    def known(self, left: Ints, right: Ints) -> Bools:
        """Which of these families were looked at: both halves have an estimate."""
        found: Bools = (self.precision[left] > 0) & (self.precision[right] > 0)
        return found

    def non_negative(self, base: Floats) -> Floats:  # (size,) -> (size,)
        """Least squares without negative masses: from the root's, 1, down, each family the nearest that adds up.

        Families that were not looked at are divided as the base measure is.
        """
        values = np.zeros(self.tree.size)
        values[0] = 1.0
        for nodes, left, right in self.tree.levels:
            mass, known = values[nodes], self.known(left, right)
            one, two = self.precision[left], self.precision[right]
            part = np.divide(two, one + two, out=np.zeros(nodes.size), where=known)
            lack = mass - self.value[left] - self.value[right]
            half = np.where(known, self.value[left] + part * lack, mass * _share(base, left, right))
            values[left] = np.clip(half, 0.0, mass)
            values[right] = mass - values[left]
        return values


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """Masses of all nodes, not negative and adding up, and what the prior had learned."""

    upward: Upward
    base: Floats  # (size,) masses of the base measure
    values: Floats  # (size,)
    weights: tuple[Floats, ...]  # (parts,) for each level
    log_evidence: float  # of the base measure, up to a constant of the data

    @property
    def leaves(self) -> Floats:
        """The masses of the tree's leaves."""
        return self.values[self.upward.tree.tree.leaves]


def shrink(
    upward: Upward, base: Floats, start: Floats = EVEN, apart: bool = False, rounds: int = ROUNDS
) -> Shrunk:  # (size,), (parts,)
    """The masses when departures from the base measure are shrunk; the root's is 1, ``start`` is the prior there.

    ``apart``: the root's halves have nothing to do with each other, and are left as measured.
    """
    values, weights, evidence = np.zeros(upward.tree.size), start, 0.0
    values[0] = 1.0
    learned: list[Floats] = []
    for nodes, left, right in upward.tree.levels:
        mass, known = values[nodes], upward.known(left, right)
        half, here = mass * _share(base, left, right), WIDE if apart and not learned else weights
        if known.any():
            family = Family.of(upward, base, mass[known], left[known], right[known])
            if here is weights:
                here, gained = family.learn(weights, rounds)
                weights, evidence = here, evidence + gained
            half[known] += family.posterior_mean(here)
        values[left] = np.clip(half, 0.0, mass)
        values[right] = mass - values[left]
        learned.append(here)
    return Shrunk(upward, base, values, tuple(learned), evidence)


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Nodes of one level that were looked at, with given masses, and what is known of how each falls to its halves."""

    x: Floats  # (k, 1) the left half's departure from the base measure, measured
    variance: Floats  # (k, 1) of that
    centre: Floats  # (k, parts) of the prior's parts
    width: Floats  # (k, parts) their variances

    @classmethod
    def of(cls, upward: Upward, base: Floats, mass: Floats, left: Ints, right: Ints) -> Family:
        """The families with these masses and children."""
        share = _share(base, left, right)
        one, two = upward.precision[left], upward.precision[right]
        x = one * (upward.value[left] - share * mass) - two * (upward.value[right] - (1 - share) * mass)
        centre, width = parts(mass[:, None], share[:, None], np.arange(PLACES.size))
        return cls((x / (one + two))[:, None], 1 / (one + two)[:, None], centre, width)

    def _log_likelihood(self) -> Floats:
        total = self.width + self.variance
        found: Floats = -0.5 * (np.log(total) + (self.x - self.centre) ** 2 / total)
        return found

    def learn(self, before: Floats, rounds: int = ROUNDS) -> tuple[Floats, float]:
        """The mixture's weights from these families and the level above, and the logarithm of the evidence."""
        log = self._log_likelihood()
        top = log.max(axis=1, keepdims=True)
        likelihood = np.exp(log - top)
        weights = before
        for _ in range(rounds):
            told = weights * likelihood
            told /= told.sum(axis=1, keepdims=True)
            weights = _balanced((told.sum(axis=0) + _CARRY * before) / (len(told) + _CARRY))
        evidence = float((np.log(likelihood @ weights) + top[:, 0]).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.where(before > 0, before * np.log(before / weights), 0.0)
        return weights, evidence - _CARRY * float(lost.sum())

    def responsibilities(self, weights: Floats) -> Floats:  # (parts,) -> (k, parts)
        """How probable each part of the prior is for each family."""
        log = self._log_likelihood()
        told = weights * np.exp(log - log.max(axis=1, keepdims=True))
        found: Floats = told / told.sum(axis=1, keepdims=True)
        return found

    def posterior_mean(self, weights: Floats) -> Floats:  # (parts,) -> (k,)
        """The left half's departure from the base measure."""
        gain = self.width / (self.width + self.variance)
        mean = self.centre + gain * (self.x - self.centre)
        found: Floats = (self.responsibilities(weights) * mean).sum(axis=1)
        return found


def parts(mass: Floats, share: Floats, which: Ints) -> tuple[Floats, Floats]:
    """Centres and variances of parts of the prior for departures of the left half; arrays are broadcast."""
    place = PLACES[which]
    centre = np.where(place == 0, 0.0, np.where(place > 0, (1 - share) * mass, -share * mass))
    width = (WIDTHS[which] * mass) ** 2 * np.where(place == 0, 4 * share * (1 - share), 1.0)
    return centre, width


def roughness(weights: Floats) -> float:  # (parts,)
    """The standard deviation of the left half's share under a prior, the base measure being even."""
    return float(np.sqrt(weights @ np.where(PLACES == 0, WIDTHS**2, 0.25)))


def _share(base: Floats, left: Ints, right: Ints) -> Floats:
    """The left half's share by the base measure; one half where that has nothing."""
    both = base[left] + base[right]
    return np.divide(base[left], both, out=np.full(both.shape, 0.5), where=both > 0)


def _balanced(weights: Floats) -> Floats:
    """The same weight for an empty left and an empty right half."""
    found = weights.copy()
    found[_LEFT] = found[_RIGHT] = (weights[_LEFT] + weights[_RIGHT]) / 2
    return found
