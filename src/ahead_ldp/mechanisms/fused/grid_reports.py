"""What groups said about grids of a pair of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class GridReport:
    """What a pair's group said: a frequency for each cell of a grid of bins, all with one variance."""

    rows: Ints  # (g,) the bins at which the rows begin
    columns: Ints  # (h,)
    values: Floats  # (g, h)
    variance: float  # of a cell, the sum of all being known; infinite without reports

    def sums(self, table: Floats) -> Floats:  # (bins, bins, ...) -> (g, h, ...)
        """A table of bins on the cells of the grid."""
        return block_sums(table, self.rows, self.columns)

    def spread(self, cells: Floats, shape: tuple[int, int]) -> Floats:  # (g, h) -> (bins, bins)
        """Each bin gets the number of its cell."""
        rows, columns = np.diff(self.rows, append=shape[0]), np.diff(self.columns, append=shape[1])
        return np.repeat(np.repeat(cells, rows, axis=0), columns, axis=1)

    def within(self, finer: GridReport) -> GridReport:
        """The same with the rows and columns of a finer grid for bins."""
        rows, columns = np.searchsorted(finer.rows, self.rows), np.searchsorted(finer.columns, self.columns)
        return GridReport(rows, columns, self.values, self.variance)


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Which rows and columns of a table belong to each row and column of a grid, as matrices of 0 and 1.

    The same sums as a report's, quicker for small tables.
    """

    rows: Floats  # (g, bins)
    columns: Floats  # (bins, h)

    @classmethod
    def of(cls, report: GridReport, shape: tuple[int, ...]) -> Blocks:
        """Of a grid on a table of some shape."""
        ends = np.append(report.rows[1:], shape[0]), np.append(report.columns[1:], shape[1])
        row, column = np.arange(shape[0]), np.arange(shape[1])[:, None]
        one = (report.rows[:, None] <= row) & (row < ends[0][:, None])
        return cls(one.astype(float), ((report.columns <= column) & (column < ends[1])).astype(float))

    def sums(self, table: Floats) -> Floats:  # (bins, bins) -> (g, h)
        """A table of bins on the cells of the grid."""
        return self.rows @ table @ self.columns

    def sums_of_each(self, tables: Floats) -> Floats:  # (bins, bins, k) -> (g, h, k)
        """Several tables, beside each other, on the cells of the grid."""
        by_row = (self.rows @ tables.reshape(len(tables), -1)).reshape(len(self.rows), *tables.shape[1:])
        return np.asarray(self.columns.T @ by_row)

    def spread(self, cells: Floats) -> Floats:  # (g, h) -> (bins, bins)
        """Each bin gets the number of its cell."""
        return self.rows.T @ cells @ self.columns.T


def block_sums(table: Floats, rows: Ints, columns: Ints) -> Floats:  # (bins, bins, ...), (g,), (h,) -> (g, h, ...)
    """A table of bins on the blocks that begin at some of them."""
    return np.add.reduceat(np.add.reduceat(table, rows, axis=0), columns, axis=1)


def column_shares(shares: Floats, mass: Floats, starts: Ints) -> Floats:  # (n, bins), (bins,), (g,) -> (n, g)
    """The share of the mass of columns that is inside, from that of the bins; 0 where there is no mass."""
    whole, inside = np.add.reduceat(mass, starts), np.add.reduceat(shares * mass, starts, axis=1)
    return np.divide(inside, whole, out=np.zeros_like(inside), where=whole > 0)


def pooled(reports: Sequence[GridReport]) -> list[GridReport]:
    """One for each grid that anybody told about, the means of all about it; from coarse to fine."""
    same: dict[tuple[bytes, bytes], list[GridReport]] = {}
    for report in reports:
        if isfinite(report.variance):
            same.setdefault((report.rows.tobytes(), report.columns.tobytes()), []).append(report)
    means = []
    for grid in same.values():
        weights = np.array([1 / r.variance for r in grid])
        values = np.einsum("k,kij->ij", weights, np.stack([r.values for r in grid])) / weights.sum()  # F16
        means.append(GridReport(grid[0].rows, grid[0].columns, values, float(1 / weights.sum())))
    return sorted(means, key=lambda r: r.values.size)
