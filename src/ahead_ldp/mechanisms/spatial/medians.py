"""Boxes cut at their medians: the grids that tell of them, where half of the people are, and what all groups say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.solvers.norm_sub import norm_sub
from ahead_ldp.estimates.solvers.tree_least_squares import TreeLeastSquares
from ahead_ldp.mechanisms.grain import SPATIAL_SHARE
from ahead_ldp.oracles import LinearOracle, Tally
from ahead_ldp.oracles.base import Oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.partitions.trees import NestedBoxes
from ahead_ldp.schema.arrays import Floats, Ints

COLUMNS = 4  # columns of an attribute for each box along it (docs/methods/spatial/kdtree.md)


@dataclass(frozen=True, slots=True, eq=False)
class DepthReport:
    """What one group said about the cells of a grid."""

    borders: tuple[Ints, ...]  # of every attribute; one that was not asked about has its ends alone
    estimate: Floats  # (columns, ...) unbiased shares
    n: int
    oracle: LinearOracle

    @classmethod
    def of(cls, borders: tuple[Ints, ...], oracle: Oracle, tally: Tally) -> DepthReport:
        """From a tally of the question about this grid."""
        assert isinstance(oracle, LinearOracle)
        shape = [b.size - 1 for b in borders]
        return cls(borders, oracle.estimate(tally).reshape(shape), tally.n, oracle)

    @property
    def not_negative(self) -> Floats:  # (columns, ...)
        """Norm-Sub of the estimates."""
        return norm_sub(self.estimate.reshape(-1)).reshape(self.estimate.shape)

    def told(self, lo: Ints, hi: Ints) -> tuple[Ints, Ints, Ints]:  # -> (boxes,), (boxes, m), (boxes, m)
        """Which boxes are unions of cells, and from which cell to which on each attribute."""
        known = np.ones(len(lo), bool)
        first, last = np.zeros(lo.shape, np.int64), np.zeros(hi.shape, np.int64)
        for a, b in enumerate(self.borders):
            first[:, a], last[:, a] = np.searchsorted(b, lo[:, a]), np.searchsorted(b, hi[:, a])
            known &= (b[first[:, a]] == lo[:, a]) & (b[last[:, a]] == hi[:, a])
        rows = np.flatnonzero(known)
        return rows, first[rows], last[rows]

    def precision(self, cells: Ints, share: Floats) -> Floats:  # (boxes,), (boxes,) -> (boxes,)
        """Inverse variance of the share of a box of so many cells, which is about so large; 0 without reports."""
        if self.n == 0:
            return np.zeros(cells.size)
        m = self.oracle.moments
        variance = share * m.own + (cells - share) * m.other + m.cross * cells * (cells - 1)
        variance += (m.cross_own - m.cross) * 2 * share * (cells - 1) + share * (1 - share)
        return np.asarray(self.n / variance)


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """The tree so far, the columns that cuts are chosen from, and the borders that some box has."""

    axes: tuple[Axis, ...]
    tree: NestedBoxes
    columns: tuple[Ints, ...]  # all borders of each attribute that a cut may have
    used: tuple[Ints, ...]  # those that a box has, the ends of the domain included

    @classmethod
    def start(cls, axes: Sequence[Axis], depths: int, attributes: int) -> Cuts:
        """One box, the domain."""
        along = 2 ** -(-depths // attributes)
        columns = tuple(np.array(axis.parts(0, axis.size, COLUMNS * along)) for axis in axes)
        ends = tuple(np.array([0, axis.size]) for axis in axes)
        lo, hi = np.zeros((1, len(axes)), np.int64), np.array([[axis.size for axis in axes]], np.int64)
        return cls(tuple(axes), NestedBoxes(lo, hi, np.array([-1]), np.array([0])), columns, ends)

    def borders(self, attribute: int) -> tuple[Ints, ...]:
        """Those of the grid that tells where to cut on this attribute."""
        return tuple(self.columns[a] if a == attribute else used for a, used in enumerate(self.used))

    def grid(self, attribute: int) -> tuple[tuple[int, ...], Partition]:
        """The attributes asked and the grid; an attribute that was never cut is not asked about."""
        borders = self.borders(attribute)
        asked = tuple(a for a, b in enumerate(borders) if b.size > 2 or a == attribute)
        return asked, Partition.grid([self.axes[a] for a in asked], [borders[a][1:-1].tolist() for a in asked])

    def grid_of_boxes(self) -> tuple[tuple[int, ...], Partition]:
        """The attributes that were cut and the coarsest grid that holds every box."""
        asked = tuple(a for a, b in enumerate(self.used) if b.size > 2)
        return asked, Partition.grid([self.axes[a] for a in asked], [self.used[a][1:-1].tolist() for a in asked])

    def halved(self, attribute: int, report: DepthReport, not_negative: bool) -> Cuts:
        """Every box of the last depth cut at its median, as the report has it; a box of one column stays whole."""
        tree, start = self.tree, int(np.searchsorted(self.tree.level, self.tree.height))
        nodes = np.arange(start, tree.size)
        lo, hi = tree.lo[nodes], tree.hi[nodes]
        sums = SummedArea.of(report.not_negative if not_negative else report.estimate)
        cut = np.array([self._median(attribute, report, sums, a, b) for a, b in zip(lo, hi, strict=True)])
        parts = np.where(cut < hi[:, attribute], 2, 1)
        owner = np.repeat(np.arange(nodes.size), parts)
        second = np.append(False, owner[1:] == owner[:-1])
        child_lo, child_hi = lo[owner], hi[owner]
        child_lo[second, attribute] = cut[owner[second]]
        child_hi[~second, attribute] = cut[owner[~second]]
        grown = NestedBoxes(
            np.concatenate([tree.lo, child_lo]),
            np.concatenate([tree.hi, child_hi]),
            np.concatenate([tree.parent, nodes[owner]]),
            np.concatenate([tree.level, np.full(owner.size, tree.height + 1)]),
        )
        used = tuple(np.union1d(u, cut) if a == attribute else u for a, u in enumerate(self.used))
        return replace(self, tree=grown, used=used)

    def _median(self, attribute: int, report: DepthReport, sums: SummedArea, lo: Ints, hi: Ints) -> int:
        """The border with half of the box's people before it; the box's end where it has no border inside.

        Without reports, or without people, the border nearest to the middle.
        """
        columns = self.columns[attribute]
        first, last = np.searchsorted(columns, [lo[attribute], hi[attribute]])
        inside = np.arange(first + 1, last)
        if inside.size == 0:
            return int(hi[attribute])
        _, at, to = report.told(lo[None], hi[None])
        ends = np.repeat(to, inside.size + 1, axis=0)
        ends[:-1, attribute] = inside
        before = np.rint(sums.boxes(np.repeat(at, ends.shape[0], axis=0), ends) * SPATIAL_SHARE)
        half, whole = before[:-1], before[-1]
        if report.n == 0 or whole <= 0:
            half, whole = 2.0 * columns[inside], float(lo[attribute] + hi[attribute]) * 2.0
        return int(columns[inside[np.argmin(nearness(half, whole))]])


def nearness(before: Floats, whole: float) -> Floats:  # (borders,) -> (borders,)
    """How far each border is from having half of the people before it.

    Where one column holds more than half of them, its nearer border; and of borders with nobody between them the one
    next to that column, so that the next cut does not repeat the work.
    """
    off = np.abs(2 * before - whole)
    least = off.min()
    late = before * 2 < whole  # of those with too few before them the last, of the others the first
    at = np.flatnonzero(off == least)
    best = at[late[at]][-1] if late[at].any() else at[0]
    off[best] = -1.0
    return off


@dataclass(frozen=True, slots=True, eq=False)
class NodeErrors:
    """Least squares over what each group said of the boxes that it cut, and the last one of all boxes.

    The boxes themselves are taken as given.
    """

    tree: NestedBoxes
    reports: tuple[DepthReport, ...]
    solution: TreeLeastSquares
    precision: Floats  # (nodes,)
    parts: tuple[tuple[Ints, Ints, Ints, Floats], ...]  # of each report: boxes, their cells from and to, precisions

    @classmethod
    def of(cls, tree: NestedBoxes, reports: Sequence[DepthReport]) -> tuple[NodeErrors, Floats]:
        """The errors, and the shares of all boxes: not negative, and those of the halves add up to the whole."""
        own, precision, parts = np.zeros(tree.size), np.zeros(tree.size), []
        for depth, report in enumerate(reports):
            rows, first, last = report.told(tree.lo, tree.hi)
            kept = tree.level[rows] == min(depth + 1, tree.height)  # boxes above are sums of these
            rows, first, last = rows[kept], first[kept], last[kept]
            weight = report.precision((last - first).prod(axis=1), 0.5 ** tree.level[rows])
            parts.append((rows, first, last, weight))
            own[rows] += weight * SummedArea.of(report.estimate).boxes(first, last)
            precision[rows] += weight
        own = np.divide(own, precision, out=np.zeros(tree.size), where=precision > 0)
        solution = TreeLeastSquares.of(tree, precision)
        errors = cls(tree, tuple(reports), solution, precision, tuple(parts))
        return errors, solution.solve_non_negative(own)

    @property
    def people(self) -> int:
        """Everybody who answered."""
        return sum(report.n for report in self.reports)

    @property
    def width(self) -> int:
        """Boxes times the longest side of a grid."""
        return self.tree.size * max((max(r.estimate.shape) for r in self.reports), default=1)

    def variance(self, weights: Floats) -> Floats:  # (k, leaves) -> (k,)
        """Each group's part in the sums, cell by cell."""
        nodes = np.zeros((len(weights), self.tree.size))
        nodes[:, self.tree.leaves] = weights
        g, undetermined = self.solution.coefficients(nodes)
        variance = np.zeros(len(weights))
        for report, (rows, first, last, weight) in zip(self.reports, self.parts, strict=True):
            if report.n == 0:
                continue
            cells = _spread(g[:, rows] * weight / self.precision[rows], first, last, report.estimate.shape).reshape(
                len(weights), -1
            )
            variance += report.oracle.group_variance(report.n, report.not_negative.reshape(-1), cells)
        return np.where(undetermined, np.inf, variance)


def _spread(g: Floats, first: Ints, last: Ints, shape: tuple[int, ...]) -> Floats:  # (k, boxes) -> (k, columns, ...)
    """The sum of what all boxes over a cell count."""
    inside = [
        ((first[:, a, None] <= np.arange(size)) & (np.arange(size) < last[:, a, None])).astype(float)
        for a, size in enumerate(shape)
    ]
    if len(shape) == 1:
        return g @ inside[0]
    return np.matmul(inside[0].T[None] * g[:, None, :], inside[1])
