"""Noisy frequencies of the cells of several partitions of one ordered attribute, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ahead_ldp.oracles import LinearOracle
from ahead_ldp.oracles.base import Moments
from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class CellEstimates:
    """Noisy frequencies of the cells of one partition of the codes 0 .. d-1."""

    borders: Ints  # (cells + 1,) rising from 0 to d
    estimate: Floats  # (cells,)
    precision: Floats  # (cells,) inverse variances about the truth once the sum is known


@dataclass(frozen=True, slots=True, eq=False)
class CellReports:
    """What a group of n people said through an oracle about the cells of one partition of the codes 0 .. d-1.

    ``expected`` is what was known of the cells' frequencies before: variances depend on it. It must not come from
    these reports, or weights would follow their noise; None means equal ones.
    """

    borders: Ints  # (cells + 1,) rising from 0 to d
    estimate: Floats  # (cells,)
    n: int
    oracle: LinearOracle
    expected: Floats | None = None  # (cells,)

    def estimates(self, people: int) -> CellEstimates:
        """With their precision when the group was drawn from so many people.

        It is taken halfway between what was expected and equal frequencies. A common shift of all cells says nothing
        about a density, so the variance is Var - Cov; the chance of who fell into the group comes on top.
        """
        if self.n == 0:
            return CellEstimates(self.borders, self.estimate, np.zeros(self.estimate.size))
        m, f = _moments(self.oracle), np.full(self.estimate.size, 1 / self.estimate.size)
        if self.expected is not None:
            f = 0.5 * f + 0.5 * self.expected  # A5
        cov = m.cross + (m.cross_own - m.cross) * 2 * f  # A2
        chance = f * (1 - self.n / people)  # A4
        return CellEstimates(self.borders, self.estimate, self.n / (f * m.own + (1 - f) * m.other - cov + chance))  # A3


@dataclass(frozen=True, slots=True, eq=False)
class CellData:
    """The estimates of all different cells side by side, as differences of the curve at the borders that occur."""

    borders: Ints  # (b + 1,) all that occur
    first: Ints  # (cells,) where each cell begins among them
    last: Ints  # (cells,)
    estimate: Floats  # (cells,) in their standard deviations
    root: Floats  # (cells,) square root of the precision
    within: float  # misfit among estimates of the same cell
    freedom: float  # of the whole misfit

    @classmethod
    def of(cls, estimates: Sequence[CellEstimates], total: float) -> CellData:
        """Estimates of the same cell are pooled; ``total`` is what all cells of a partition sum to."""
        borders = np.unique(np.concatenate([e.borders for e in estimates]))
        ends = [np.searchsorted(borders, e.borders) for e in estimates]
        cells, which = np.unique(np.concatenate([e[:-1] * borders.size + e[1:] for e in ends]), return_inverse=True)
        y = np.concatenate([e.estimate for e in estimates]) / total
        precision = np.concatenate([e.precision for e in estimates]) * total**2
        summed = np.bincount(which, precision)
        pooled = np.bincount(which, precision * y) / np.maximum(summed, 1e-300)  # A6
        within = float(precision @ (y - pooled[which]) ** 2)
        freedom = y.size - sum(abs(e.estimate.sum() - total) < 1e-9 for e in estimates)
        root = np.sqrt(summed)
        return cls(borders, cells // borders.size, cells % borders.size, pooled * root, root, within, float(freedom))

    @property
    def information(self) -> Floats:  # (b + 1, b + 1)
        """Of the estimates about the shares below the borders: a cell is the difference of two."""
        size, precision = self.borders.size, self.root**2
        rows = np.concatenate([self.first, self.last, self.first, self.last])
        columns = np.concatenate([self.first, self.last, self.last, self.first])
        values = np.concatenate([precision, precision, -precision, -precision])  # A6
        return np.bincount(rows * size + columns, values, size * size).reshape(size, size).astype(float)

    def seen(self, below: Floats) -> Floats:  # (d + 1, ...) -> (cells, ...)
        """What the estimates would be for shares below every code, in their standard deviations."""
        return self._differences(below[self.borders])

    def gathered(self, x: Floats) -> Floats:  # (cells, ...) -> (b + 1, ...)
        """The transpose of the step from shares below the borders to estimates in their standard deviations."""
        weighted = x * self.root.reshape(-1, *(1,) * (x.ndim - 1))
        sums = np.zeros((self.borders.size, *x.shape[1:]))
        np.add.at(sums, self.last, weighted)
        np.subtract.at(sums, self.first, weighted)
        return sums

    def around(self, x: Floats) -> Floats:  # (cells, ...) -> (b, ...)
        """The transpose of ``cells``: for each stretch between neighbouring borders, the sum over the cells around."""
        return -np.cumsum(self.gathered(x), axis=0)[:-1]

    def cells(self, sums: Floats) -> Floats:  # (b, ...) -> (cells, ...)
        """From sums between neighbouring borders to sums over the cells, in the estimates' standard deviations."""
        below = np.empty((len(sums) + 1, *sums.shape[1:]))
        below[0] = 0.0
        np.add.accumulate(sums, axis=0, out=below[1:])
        return self._differences(below)

    def _differences(self, below: Floats) -> Floats:  # (b + 1, ...) -> (cells, ...)
        inside = below.take(self.last, axis=0)
        inside -= below.take(self.first, axis=0)
        inside *= self.root.reshape(-1, *(1,) * (below.ndim - 1))
        return inside

    def residual(self, x: Floats) -> Floats:  # (d,) -> (cells,)
        """Estimates less the cells' sums of x, in their standard deviations."""
        return self.estimate - self.cells(self.sums(x))

    def sums(self, x: Floats) -> Floats:  # (d, ...) -> (b, ...)
        """Between neighbouring borders; the same numbers where each code has its own place."""
        return x if self.borders.size == len(x) + 1 else np.add.reduceat(x, self.borders[:-1], axis=0)

    def jacobian(self, basis: Floats, x: Floats) -> Floats:  # (d, k), (d,) -> (cells, k)
        """How the cells move with the coefficients of x = softmax(basis @ beta)."""
        return self.cells(self.sums(x[:, None] * (basis - x @ basis)))  # A16


@lru_cache(maxsize=4096)
def _moments(oracle: LinearOracle) -> Moments:
    return oracle.moments


def from_zero(x: Floats) -> Floats:  # (d, ...) -> (d + 1, ...)
    """Sums of everything before each entry."""
    return np.concatenate([np.zeros((1, *x.shape[1:])), np.cumsum(x, axis=0)])
