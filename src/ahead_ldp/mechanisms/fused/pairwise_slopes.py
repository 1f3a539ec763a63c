"""How answers of a pairwise model move with what was estimated, and with that how sure they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.random import Generator

from ahead_ldp.estimates.solvers.proportional_fitting import all_in_slopes, fit_blocks
from ahead_ldp.mechanisms.fused.interactions import Interaction
from ahead_ldp.mechanisms.fused.pairwise_models import Boxed, Pair, PairwiseModel
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import by_restriction

Source = tuple[str, int | Pair]  # what was estimated: ("margin", attribute), ("coefficients", pair), ("cells", pair)

_INSIDE_SHARE = 0.2  # departures inside a bin, relative to its mass, that no neighbour tells of (choice F20)
_NEIGHBOUR_SHARE = 0.3  # and as a share of the difference to the neighbouring bins (choice F20)
_HIGHER_SHARE = 0.25  # of what the pairwise table adds to the pairs' answers: what three may add to that (choice F24)
_SWEEPS = 6  # tolerance: of proportional fitting, for the answers without it
_LEAST_PEOPLE = 5.0  # nothing is claimed to be surer than that many people (choice F25)
_LEAST_MASS_SD = 0.1  # masses count as at least this many of their standard deviations (choice F21)


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """Derivatives of n answers by everything that was estimated, and the variance of what they assume."""

    values: Floats  # (n,) the answers themselves
    by: dict[Source, Floats]  # -> (n, parts, coefficients or cells)
    assumed: Floats  # (n,)

    @classmethod
    def of(cls, model: PairwiseModel, boxes: Floats, owner: Ints, n: int) -> Slopes:
        """The slopes of n queries, each the sum over the boxes it owns.

        First order, but with masses lifted by their own errors: a product of masses that are hardly known is less
        sure than its slopes say (the variance of a product of independent factors is that of their second moments).
        """
        slopes = cls(np.zeros(n), {}, np.zeros(n))
        for attributes, rows in by_restriction([m.density.size for m in model.margins], boxes):
            boxed = model.boxed(attributes, boxes[rows])
            np.add.at(slopes.values, owner[rows], boxed.values)
            if attributes:
                _Part(slopes, model, attributes, boxes[rows], owner[rows], boxed).add()
        return slopes

    def variance(self, model: PairwiseModel) -> Floats:  # -> (n,)
        """Of the answers, by what was estimated; infinite where it rests on an attribute nobody told about."""
        total, covariances = np.zeros(self.values.size), _covariances(model)
        for source, slope in self.by.items():
            total += _quadratic(slope, covariances[source])  # F19
        for a, margin in enumerate(model.margins):
            if not margin.known and ("margin", a) in self.by:
                total[np.abs(self.by["margin", a]).max(axis=1) > 1e-12] = np.inf
        return total

    def errors(self, drawn: Mapping[Source, Floats], rng: Generator) -> Floats:  # -> (draws, n)
        """What draws of all that was estimated do to the answers; what is assumed errs on its own in each."""
        count = len(next(iter(drawn.values())))
        errors = rng.standard_normal((count, self.values.size)) * np.sqrt(self.assumed)
        for source, slope in self.by.items():
            errors += drawn[source] @ slope.T  # F19
        return errors


def normal_draws(model: PairwiseModel, count: int, rng: Generator) -> dict[Source, Floats]:  # -> (count, ...)
    """Normal draws of everything that was estimated."""
    return {source: _draws(covariance, count, rng) for source, covariance in _covariances(model).items()}


def _covariances(model: PairwiseModel) -> dict[Source, Floats]:
    """Of everything that was estimated, (k, k); of single cells, which err on their own, the variances (k,)."""
    asked = {pair: interaction for pair, interaction in model.pairs.items() if interaction.report is not None}
    covariances: dict[Source, Floats] = {("margin", a): margin.covariance for a, margin in enumerate(model.margins)}
    covariances |= {("coefficients", pair): interaction.covariance for pair, interaction in asked.items()}
    return covariances | {("cells", pair): each.cell_variance.reshape(-1) for pair, each in asked.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Boxes on the same attributes whose slopes are being added up."""

    slopes: Slopes
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
            self._into(("margin", self.attributes[0]), parts[0])
        elif len(self.attributes) == 2:
            self._pair((0, 1), parts, lifts, np.ones(n))
        else:
            assert self.boxed.cells is not None
            by_one, by_two = all_in_slopes(self.boxed.cells)  # F23
            for i, a in enumerate(self.attributes):
                others = np.prod([x for k, x in enumerate(lifts) if k != i], axis=0)
                self._into(("margin", a), (by_one[:, i] * others)[:, None] * parts[i])
            for k, pair in enumerate(combinations(range(len(self.attributes)), 2)):
                self._pair(pair, parts, lifts, by_two[:, k])
            self._assume(self._higher(self.boxed.cells))
        self._assume(np.full(n, (_LEAST_PEOPLE / max(self.model.people, 1)) ** 2))  # F25

    def _lift(self, attribute: int, share: Floats) -> Floats:
        """The root of a mass's second moment over the mass itself."""
        margin = self.model.margins[attribute]
        mass = share @ np.add.reduceat(margin.density, margin.parts[:-1])
        variance = _quadratic(share, margin.covariance)
        floor = np.maximum(mass**2, _LEAST_MASS_SD**2 * variance)
        return np.sqrt(1 + np.divide(variance, floor, out=np.zeros_like(floor), where=floor > 0))  # F21

    def _pair(self, which: Pair, parts: list[Floats], lifts: list[Floats], weight: Floats) -> None:
        """Add ``weight`` times the slopes of a pair's in/in answers."""
        pair = (self.attributes[which[0]], self.attributes[which[1]])
        interaction, shares = self.model.pairs[pair], [self.boxed.shares[k] for k in which]
        *by_mass, by_coefficient = interaction.slopes(*shares)
        across = (shares[1] @ interaction.table.T, shares[0] @ interaction.table)  # (n, r), (n, c)
        for side, k in enumerate(which):
            margin = self.model.margins[pair[side]]
            column = np.searchsorted(margin.bins, margin.parts[:-1], side="right") - 1
            given = np.divide(across[side], margin.masses, out=np.zeros_like(across[side]), where=margin.masses > 0)
            slope = by_mass[side][:, column] + given[:, column] * (parts[k] - shares[side][:, column])  # F18
            others = np.prod([x for j, x in enumerate(lifts) if j != k], axis=0)
            self._into(("margin", pair[side]), (weight * others)[:, None] * slope)
        whole = weight * np.prod(lifts, axis=0)
        one, other = shares[0] @ interaction.table.sum(axis=1), shares[1] @ interaction.table.sum(axis=0)
        least, highest = np.maximum(one + other - 1, 0.0), np.minimum(one, other)
        most = np.maximum(highest - least, 0.0) / 2  # F19: two of it from bound to bound
        if interaction.report is None:
            self._assume((whole * most) ** 2)
            return
        unsure = np.sqrt(_quadratic(by_coefficient, interaction.covariance))
        within = whole * np.minimum(1.0, np.divide(most, unsure, out=np.ones_like(most), where=unsure > most))  # F19
        self._into(("coefficients", pair), within[:, None] * by_coefficient)
        self._into(("cells", pair), whole[:, None] * interaction.cell_slopes(*shares))
        self._assume(whole**2 * _inside_bins(interaction, *shares))

    def _higher(self, cells: Floats) -> Floats:  # (n, 2, ..., 2) -> (n,)
        """What a dependence of three or more attributes may do, in view of what that of two does."""
        q = cells.ndim - 1
        blocks = {
            (i, j): cells.sum(axis=tuple(b + 1 for b in range(q) if b not in (i, j)))
            for i, j in combinations(range(q), 2)
        }
        even = fit_blocks(np.ones_like(cells), blocks, _SWEEPS).reshape(len(cells), -1)[:, 0]
        return (_HIGHER_SHARE * (self.boxed.values - even)) ** 2  # F24

    def _assume(self, variance: Floats) -> None:
        np.add.at(self.slopes.assumed, self.at, variance)

    def _into(self, source: Source, slopes: Floats) -> None:
        total = self.slopes.by.setdefault(source, np.zeros((self.slopes.values.size, slopes.shape[1])))
        np.add.at(total, self.at, slopes)


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
        (first, second, _INSIDE_SHARE * interaction.table + _NEIGHBOUR_SHARE * base * _step(ratio)),
        (second, first, (_INSIDE_SHARE * interaction.table + _NEIGHBOUR_SHARE * base * _step(ratio.T).T).T),
    ):
        total += (((cut * (1 - cut)) @ departs**2) * across**2).sum(axis=1)  # F20
    return total


def _step(ratio: Floats) -> Floats:
    """The mean difference of each row to the rows beside it."""
    if len(ratio) < 2:
        return np.zeros_like(ratio)
    steps = np.abs(np.diff(ratio, axis=0))
    return np.concatenate([steps[:1], (steps[1:] + steps[:-1]) / 2, steps[-1:]])


def _quadratic(slopes: Floats, covariance: Floats) -> Floats:  # (n, k), (k, k) or (k,) -> (n,)
    if covariance.ndim == 1:
        return slopes**2 @ covariance
    return np.maximum(((slopes @ covariance) * slopes).sum(axis=1), 0.0)


def _draws(covariance: Floats, count: int, rng: Generator) -> Floats:  # (k, k) or (k,) -> (count, k)
    if covariance.ndim == 1:
        return rng.standard_normal((count, covariance.size)) * np.sqrt(covariance)
    values, vectors = np.linalg.eigh(covariance)
    return rng.standard_normal((count, len(covariance))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
