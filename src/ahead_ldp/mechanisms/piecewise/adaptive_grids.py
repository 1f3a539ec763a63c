"""PriPL's grids for pairs of attributes: columns that follow the marginals, and agreement with them (WYHM24 Sec. 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ahead_ldp.estimates.solvers.norm_sub import nearest_in_simplex
from ahead_ldp.mechanisms.grain import PRIPL_MASS
from ahead_ldp.schema.arrays import Floats, Ints


def adapt_columns(
    borders: tuple[Ints, Ints], densities: tuple[Floats, Floats], variance: float, eta: float, keep: tuple[Ints, Ints]
) -> tuple[Ints, Ints]:
    """The columns of a pair's grid: the trees' leaves, cut where there is much mass and joined where there is little.

    ``variance`` is a cell's. The error of a range is proportional to the sum over the cells of the noise plus ``eta``
    times the square of the mass, taken as the product of the columns' (Sec. 4.2). First the heaviest column is cut as
    evenly as possible while that helps and leaves both parts above the noise; then the lightest is joined to its
    lighter neighbour while that helps or both are below the noise. Columns made by cutting stay, and so do borders in
    ``keep``.
    """
    state = [_Columns(b, d, k) for b, d, k in zip(borders, densities, keep, strict=True)]
    while (side := _next(state, heaviest=True)) is not None:
        state[side].try_cut(state[1 - side], variance, eta)
    for columns in state:
        columns.open[:] = [not made for made in columns.made]
    while (side := _next(state, heaviest=False)) is not None:
        state[side].try_join(state[1 - side], variance, eta)
    return np.array(state[0].borders), np.array(state[1].borders)


def _next(state: list[_Columns], *, heaviest: bool) -> int | None:
    """The side with the heaviest (or lightest) column that is still open; the first of equals."""
    best = [columns.extreme(heaviest) for columns in state]
    ranked = [(mass if heaviest else -mass, -side) for side, mass in enumerate(best) if mass is not None]
    return -max(ranked)[1] if ranked else None


class _Columns:
    """The columns of one side while they are cut and joined."""

    def __init__(self, borders: Ints, density: Floats, keep: Ints) -> None:
        self.borders: list[int] = borders.tolist()
        steps = np.round(density * PRIPL_MASS) / PRIPL_MASS  # A12
        self.sums = np.concatenate([[0.0], np.cumsum(steps)])
        self.open = [True] * (len(self.borders) - 1)
        self.made = [False] * (len(self.borders) - 1)
        self.keep = set(keep.tolist())

    @property
    def masses(self) -> Floats:
        """The mass of every column."""
        return np.diff(self.sums[self.borders])

    def extreme(self, heaviest: bool) -> float | None:
        """The largest or smallest mass of an open column."""
        masses = self.masses[self.open]
        return None if masses.size == 0 else float(masses.max() if heaviest else masses.min())

    def _find(self, heaviest: bool) -> int:
        masses = self.masses
        if heaviest:
            return int(np.argmax(np.where(self.open, masses, -np.inf)))
        return int(np.argmin(np.where(self.open, masses, np.inf)))

    def try_cut(self, other: _Columns, variance: float, eta: float) -> None:
        """Cut the heaviest open column, or close it."""
        k = self._find(heaviest=True)
        lo, hi = self.borders[k], self.borders[k + 1]
        left = self.sums[lo + 1 : hi] - self.sums[lo]
        right = self.sums[hi] - self.sums[lo + 1 : hi]
        cost = np.where(np.minimum(left, right) >= np.sqrt(variance), left**2 + right**2, np.inf)
        self.open[k] = False
        if cost.size == 0 or not np.isfinite(cost.min()):
            return
        at = int(np.argmin(cost))
        if _gain(left[at], right[at], other) * eta > variance * (len(other.borders) - 1):
            self.borders.insert(k + 1, lo + 1 + at)
            self.open[k : k + 1], self.made[k : k + 1] = [True, True], [True, True]

    def try_join(self, other: _Columns, variance: float, eta: float) -> None:
        """Join the lightest open column to its lighter open neighbour, or close it."""
        k, masses = self._find(heaviest=False), self.masses
        near = [
            j
            for j in (k - 1, k + 1)
            if 0 <= j < masses.size and self.open[j] and self.borders[max(j, k)] not in self.keep
        ]
        if not near:
            self.open[k] = False
            return
        j = min(near, key=lambda j: masses[j])
        faint = max(masses[j], masses[k]) ** 2 < variance
        if faint or _gain(masses[j], masses[k], other) * eta <= variance * (len(other.borders) - 1):
            first = min(j, k)
            del self.borders[first + 1], self.open[first + 1], self.made[first + 1]
        else:
            self.open[j] = self.open[k] = False


def _gain(left: float, right: float, other: _Columns) -> float:
    """How much smaller the sum of squared cell masses is with the column cut in two."""
    return float(2 * left * right * (other.masses**2).sum())


def agree_margin(
    borders: Ints, masses: Floats, variances: Floats, grids: Sequence[tuple[Ints, Floats, Floats]]
) -> Floats:
    """A margin's leaf masses after averaging with each grid's column sums in turn (Sec. 4.3, first step).

    Each grid comes as borders, column sums and their variances. On every stretch between borders that both have, the
    two sums are averaged by variance and the leaves take equal parts of the difference; at the end non-negative, of
    sum 1.
    """
    masses, variances = masses.copy(), variances.copy()
    for grid_borders, sums, sum_variances in grids:
        common = np.intersect1d(borders, grid_borders)
        mine, theirs = np.searchsorted(borders, common[:-1]), np.searchsorted(grid_borders, common[:-1])
        counts = np.diff(mine, append=masses.size)
        own_variance = np.add.reduceat(variances, mine)
        weight = own_variance / (own_variance + np.add.reduceat(sum_variances, theirs))
        step = weight * (np.add.reduceat(sums, theirs) - np.add.reduceat(masses, mine))
        masses += np.repeat(step / counts, counts)
        variances *= np.repeat(1 - weight / counts, counts)
    return nearest_in_simplex(masses)


def agree_grid(
    borders: tuple[Ints, Ints],
    values: Floats,
    margins: tuple[tuple[Ints, Floats], tuple[Ints, Floats]],
    rounds: int = 100,
    tolerance: float = 1e-7,
) -> Floats:
    """A grid's cells after taking over the margins' masses, one attribute after the other until both hold."""
    for _ in range(rounds):
        before = values
        for axis, (leaf_borders, masses) in enumerate(margins):
            common = np.intersect1d(leaf_borders, borders[axis])
            ends = np.append(np.searchsorted(borders[axis], common[:-1]), borders[axis].size - 1)
            totals = np.add.reduceat(masses, np.searchsorted(leaf_borders, common[:-1]))
            rows = values if axis == 0 else values.T
            parts = [
                nearest_in_simplex(rows[a:b].reshape(-1), float(total)).reshape(b - a, -1)
                for a, b, total in zip(ends[:-1], ends[1:], totals, strict=True)
            ]
            values = np.concatenate(parts) if axis == 0 else np.concatenate(parts).T
        if np.abs(values - before).sum() <= tolerance:
            break
    return values
