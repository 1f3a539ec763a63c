"""How answers of a pairwise model move with what was estimated, and with that how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from ahead_ldp.estimates.solvers.proportional_fitting import all_in_slopes, fit_blocks
from ahead_ldp.mechanisms.fused.interactions import Interaction
from ahead_ldp.mechanisms.fused.pairwise_models import Boxed, Pair, PairwiseModel
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import by_restriction

Key = TypeVar("Key")

_INSIDE = 0.2  # departures inside a bin, relative to its mass, that no neighbour tells of
_NEIGHBOURS = 0.3  # and as a share of the difference to the neighbouring bins
_HIGHER = 0.25  # of what the pairwise table adds to the pairs' answers: what three attributes may add to that
_SWEEPS = 6  # for the answers without it
_PEOPLE = 5.0  # nothing is claimed to be surer than that many people
_FAINT = 0.1  # masses count as at least this many of their standard deviations


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """Derivatives of n answers, and the variance of what they assume."""

    values: Floats  # (n,) the answers themselves
    margins: dict[int, Floats]  # attribute -> (n, parts)
    coefficients: dict[Pair, Floats]  # pair -> (n, coefficients)
    cells: dict[Pair, Floats]  # pair -> (n, cells)
    assumed: Floats  # (n,)

    @classmethod
    def of(cls, model: PairwiseModel, boxes: Floats, owner: Ints, n: int) -> Slopes:
        """The slopes of n queries, each the sum over the boxes it owns.

        First order, but with masses lifted by their own errors: a product of masses that are hardly known is less
        sure than its slopes say (the variance of a product of independent factors is that of their second moments).
        """
        found = cls(np.zeros(n), {}, {}, {}, np.zeros(n))
        sizes = [m.density.size for m in model.margins]
        for attributes, rows in by_restriction(sizes, boxes):
            here, at = boxes[rows], owner[rows]
            boxed = model.boxed(attributes, here)
            np.add.at(found.values, at, boxed.values)
            if attributes:
                _Part(found, model, attributes, here, at, boxed).add()
        return found

    def variance(self, model: PairwiseModel) -> Floats:  # -> (n,)
        """Of the answers, by what was estimated; infinite where it rests on an attribute nobody told about."""
        total = np.zeros(self.values.size)
        for a, slope in self.margins.items():
            if model.margins[a].known:
                total += _quadratic(slope, model.margins[a].covariance)
            else:
                total[np.abs(slope).max(axis=1) > 1e-12] = np.inf
        for pair, slope in self.coefficients.items():
            total += _quadratic(slope, model.pairs[pair].covariance)
        for pair, slope in self.cells.items():
            total += slope**2 @ model.pairs[pair].cell_variance.reshape(-1)
        return np.maximum(total, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Normal draws of everything that was estimated."""

    margins: dict[int, Floats]
    coefficients: dict[Pair, Floats]
    cells: dict[Pair, Floats]

    @classmethod
    def of(cls, model: PairwiseModel, count: int, rng: Generator) -> Draws:
        """So many draws."""
        told = {pair: i for pair, i in model.pairs.items() if i.report is not None}
        return cls(
            {a: _draws(m.covariance, count, rng) for a, m in enumerate(model.margins)},
            {pair: _draws(i.covariance, count, rng) for pair, i in told.items()},
            {pair: rng.standard_normal((count, i.cell_variance.size)) * _root(i) for pair, i in told.items()},
        )

    def errors(self, slopes: Slopes, rng: Generator) -> Floats:  # -> (draws, n)
        """What the draws do to the answers; what is assumed errs on its own in each."""
        count = len(next(iter(self.margins.values())))
        found = rng.standard_normal((count, slopes.values.size)) * np.sqrt(slopes.assumed)
        for a, slope in slopes.margins.items():
            found += self.margins[a] @ slope.T
        for drawn, slope_of in ((self.coefficients, slopes.coefficients), (self.cells, slopes.cells)):
            for pair, slope in slope_of.items():
                found += drawn[pair] @ slope.T
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Boxes on the same attributes whose slopes are being added up."""

    found: Slopes
    model: PairwiseModel
    attributes: tuple[int, ...]
    boxes: Floats
    at: Ints
    boxed: Boxed

    def add(self) -> None:
        """Add the slopes of these boxes to their queries'."""
        n = len(self.boxes)
        parts = [self.model.margins[a].shares(self.boxes[:, a], self.model.margins[a].parts) for a in self.attributes]
        lifts = [self._lift(a, share) for a, share in zip(self.attributes, parts, strict=True)]
        if len(self.attributes) == 1:
            self._into(self.found.margins, self.attributes[0], parts[0])
        elif len(self.attributes) == 2:
            self._pair((0, 1), parts, lifts, np.ones(n))
        else:
            assert self.boxed.cells is not None
            by_one, by_two = all_in_slopes(self.boxed.cells)
            for i, a in enumerate(self.attributes):
                others = _product([x for k, x in enumerate(lifts) if k != i])
                self._into(self.found.margins, a, (by_one[:, i] * others)[:, None] * parts[i])
            for k, pair in enumerate(combinations(range(len(self.attributes)), 2)):
                self._pair(pair, parts, lifts, by_two[:, k])
            self._assume(self._higher())
        self._assume(np.full(n, (_PEOPLE / max(self.model.people, 1)) ** 2))

    def _lift(self, attribute: int, share: Floats) -> Floats:
        """The root of a mass's second moment over the mass itself."""
        margin = self.model.margins[attribute]
        mass = share @ np.add.reduceat(margin.density, margin.parts[:-1])
        variance = _quadratic(share, margin.covariance)
        floor = np.maximum(mass**2, _FAINT**2 * variance)
        return np.sqrt(1 + np.divide(variance, floor, out=np.zeros_like(floor), where=floor > 0))

    def _pair(self, which: Pair, parts: list[Floats], lifts: list[Floats], weight: Floats) -> None:
        """Add ``weight`` times the slopes of a pair's in/in answers."""
        pair = (self.attributes[which[0]], self.attributes[which[1]])
        interaction, shares = self.model.pairs[pair], [self.boxed.shares[k] for k in which]
        *by_mass, by_coefficient = interaction.slopes(*shares)
        across = (shares[1] @ interaction.table.T, shares[0] @ interaction.table)  # (n, r), (n, c)
        for side, k in enumerate(which):
            margin = self.model.margins[pair[side]]
            place = np.searchsorted(margin.bins, margin.parts[:-1], side="right") - 1
            given = np.divide(across[side], margin.masses, out=np.zeros_like(across[side]), where=margin.masses > 0)
            slope = by_mass[side][:, place] + given[:, place] * (parts[k] - shares[side][:, place])
            others = _product([x for j, x in enumerate(lifts) if j != k])
            self._into(self.found.margins, pair[side], (weight * others)[:, None] * slope)
        whole = weight * _product(lifts)
        one, other = shares[0] @ interaction.table.sum(axis=1), shares[1] @ interaction.table.sum(axis=0)
        most = (
            np.minimum(one, other) - np.maximum(one + other - 1, 0.0)
        ) / 2  # two of it from bound to bound (Frechet)
        if interaction.report is None:
            self._assume((whole * most) ** 2)
            return
        unsure = np.sqrt(_quadratic(by_coefficient, interaction.covariance))
        within = whole * np.minimum(1.0, np.divide(most, unsure, out=np.ones_like(most), where=unsure > most))
        self._into(self.found.coefficients, pair, within[:, None] * by_coefficient)
        self._into(self.found.cells, pair, whole[:, None] * interaction.cell_slopes(*shares))
        self._assume(whole**2 * _inside_bins(interaction, *shares))

    def _higher(self) -> Floats:
        """What a dependence of three or more attributes may do, in view of what that of two does."""
        assert self.boxed.cells is not None
        q = self.boxed.cells.ndim - 1
        blocks = {
            (i, j): self.boxed.cells.sum(axis=tuple(b + 1 for b in range(q) if b not in (i, j)))
            for i, j in combinations(range(q), 2)
        }
        even = fit_blocks(np.ones_like(self.boxed.cells), blocks, _SWEEPS).reshape(len(self.boxes), -1)[:, 0]
        return np.asarray((_HIGHER * (self.boxed.values - even)) ** 2)

    def _assume(self, variance: Floats) -> None:
        np.add.at(self.found.assumed, self.at, variance)

    def _into(self, where: dict[Key, Floats], key: Key, slopes: Floats) -> None:
        if key not in where:
            where[key] = np.zeros((self.found.values.size, slopes.shape[1]))
        np.add.at(where[key], self.at, slopes)


def _inside_bins(interaction: Interaction, first: Floats, second: Floats) -> Floats:
    """Variance of what dependence inside bins that are cut may do.

    The variance is a (1 - a), for the share a of a bin that is inside, times the square of how much mass may depart
    there from the margins' product; each bin errs on its own.
    """
    rows, columns = interaction.table.sum(axis=1), interaction.table.sum(axis=0)
    base = np.outer(rows, columns)
    ratio = np.divide(interaction.table, base, out=np.ones_like(base), where=base > 0)
    total = np.zeros(len(first))
    for cut, across, departs in (
        (first, second, _INSIDE * interaction.table + _NEIGHBOURS * base * _step(ratio)),
        (second, first, (_INSIDE * interaction.table + _NEIGHBOURS * base * _step(ratio.T).T).T),
    ):
        total += (((cut * (1 - cut)) @ departs**2) * across**2).sum(axis=1)
    return total


def _step(ratio: Floats) -> Floats:
    """The mean difference of each row to the rows beside it."""
    if len(ratio) < 2:
        return np.zeros_like(ratio)
    steps = np.abs(np.diff(ratio, axis=0))
    both: Floats = np.concatenate([steps[:1], (steps[1:] + steps[:-1]) / 2, steps[-1:]])
    return both


def _quadratic(slopes: Floats, covariance: Floats) -> Floats:  # (n, k), (k, k) -> (n,)
    found: Floats = ((slopes @ covariance) * slopes).sum(axis=1)
    return np.maximum(found, 0.0)


def _product(factors: list[Floats]) -> Floats:
    found: Floats = np.prod(np.stack(factors), axis=0)
    return found


def _root(interaction: Interaction) -> Floats:
    return np.sqrt(interaction.cell_variance.reshape(-1))


def _draws(covariance: Floats, count: int, rng: Generator) -> Floats:  # -> (count, k)
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return rng.standard_normal((count, len(covariance))) @ root.T
