"""Answering boxes from a tree's values: the coarsest nodes that a box covers, and shares of the leaves it cuts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.partitions.shares import shares
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.schema.arrays import Floats, Ints

LARGEST_TABLE = 1 << 24  # codes of a domain that is answered from tables (128 MB)
_LARGEST_INTERVAL_TABLE = 1 << 18  # codes of one attribute, times their logarithm
_CHUNK = 1 << 22  # entries of a (boxes, nodes) matrix held at a time (32 MB)
_ROUNDING = 1e-15  # a parent that differs from its children's sum by less is consistent with it


def overlap(tree: Tree, boxes: Floats) -> Floats:  # (k, m, 2) -> (k, nodes)
    """The share of each node's box that lies inside each query box."""
    share = np.ones((len(boxes), tree.size))
    for a in range(boxes.shape[1]):
        share *= shares(boxes[:, a], tree.lo[:, a], tree.hi[:, a])
    return share


def cover_weights(tree: Tree, boxes: Floats) -> Floats:  # (k, m, 2) -> (k, nodes)
    """The weight of each node's value in the answer to each box (AHEAD Sec. 4.5, "prefers coarse-grained nodes").

    A covered node counts once and hides what is below it; a leaf that is cut counts with its share.
    """
    share = overlap(tree, boxes)
    covered = share == 1.0
    weights = np.where(tree.is_split, covered, share)
    weights[:, 1:] *= ~covered[:, tree.parent[1:]]
    return weights


def chunks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of the rows that keep a (rows, columns) matrix small."""
    step = max(1, _CHUNK // max(columns, 1))
    return (slice(start, start + step) for start in range(0, rows, step))


@dataclass(frozen=True, slots=True, eq=False)
class Answerer:
    """A tree with values, ready to answer boxes by the million.

    One summed-area table of the leaves' density; where a parent differs from the sum of its children, one table
    per level of the difference, which a box collects for every inner node it covers (for intervals one table of
    all levels). Equal to ``cover_weights @ values``; domains too large for a table are answered that way.
    """

    tree: Tree
    values: Floats  # (nodes,)
    tables: BoxTables | None

    @classmethod
    def of(cls, tree: Tree, values: Floats) -> Answerer:
        """Tables for a tree and the values of its nodes."""
        sizes = [axis.size for axis in tree.axes]
        if prod(sizes) > LARGEST_TABLE:
            return cls(tree, values, None)
        difference = np.where(tree.is_split, values - tree.children_sum(values), 0.0)
        density = SummedArea.of(leaf_density(tree, values))
        if len(sizes) == 1 and sizes[0] <= _LARGEST_INTERVAL_TABLE:
            return cls(tree, values, BoxTables(density, (IntervalTable.of(tree, difference),)))
        levels = [level for level in tree.levels() if np.abs(difference[level]).max() > _ROUNDING]
        tables = tuple(LevelTable.of(tree, level, difference) for level in levels)
        return cls(tree, values, BoxTables(density, tables))

    def answer(self, boxes: Floats) -> Floats:  # (k, m, 2) -> (k,)
        """The answers, in order."""
        if self.tables is not None:
            return self.tables.answer(boxes)
        answers = np.empty(len(boxes))
        for part in chunks(len(boxes), self.tree.size):
            answers[part] = cover_weights(self.tree, boxes[part]) @ self.values
        return answers


@dataclass(frozen=True, slots=True, eq=False)
class BoxTables:
    """The sums over boxes of a density, and what is added for every coarser cell that a box covers."""

    density: SummedArea
    differences: tuple[LevelTable | IntervalTable, ...]

    def answer(self, boxes: Floats) -> Floats:  # (k, m, 2) -> (k,)
        """The answers, in order."""
        answers = self.density.fractional_boxes(boxes)
        if self.differences:
            first, last = _whole_codes(boxes)
            for table in self.differences:
                answers += table.covered(first, last)
        return answers


@dataclass(frozen=True, slots=True, eq=False)
class LevelTable:
    """Numbers of the nodes of one level on the grid of that level's borders, summed over covered nodes."""

    lo: tuple[Ints, ...]  # first codes of the columns on each attribute
    hi: tuple[Ints, ...]
    sums: SummedArea

    @classmethod
    def of(cls, tree: Tree, level: slice, numbers: Floats) -> LevelTable:
        """The table of ``numbers[level]``."""
        lo, hi, columns = [], [], []
        for a in range(len(tree.axes)):
            first, index = np.unique(tree.lo[level, a], return_inverse=True)
            last = np.empty_like(first)
            last[index] = tree.hi[level, a]
            lo.append(first)
            hi.append(last)
            columns.append(index)
        table = np.zeros([x.size for x in lo])
        table[tuple(columns)] = numbers[level]
        return cls(tuple(lo), tuple(hi), SummedArea.of(table))

    def covered(self, first: Ints, last: Ints) -> Floats:  # (k, m), (k, m) -> (k,)
        """The sum over the nodes that lie inside the codes [first, last) of each box."""
        start = [_rank(lo, first[:, a], "left") for a, lo in enumerate(self.lo)]
        stop = [_rank(hi, last[:, a], "right") for a, hi in enumerate(self.hi)]
        return self.sums.boxes(np.stack(start, axis=1), np.stack(stop, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class IntervalTable:
    """Numbers of all nodes of a tree over one attribute, summed over covered nodes in a few look-ups.

    Covered nodes are those that end by the interval's end, less those that begin before its start, but for the
    nodes that do both of the opposite: they begin before it and end after it. These are the common ancestors of the
    codes on either side of it, so their sum is known once the lowest of them is.
    """

    ended: Floats  # (d + 1,) numbers of the nodes that end at a code or before it
    begun: Floats  # (d + 1,) numbers of the nodes that begin before a code
    path: Floats  # (nodes,) numbers of a node and all above it
    lowest: NDArray[np.int32]  # (log d, d) the lowest node that holds 2**k neighbouring borders, from each on

    @classmethod
    def of(cls, tree: Tree, numbers: Floats) -> IntervalTable:
        """The table of ``numbers``."""
        d, lo, hi = tree.axes[0].size, tree.lo[:, 0], tree.hi[:, 0]
        path = numbers.copy()
        for level in list(tree.levels())[1:]:
            path[level] += path[tree.parent[level]]
        leaves = tree.leaves[np.argsort(lo[tree.leaves])]
        common = np.repeat(leaves.astype(np.int32), hi[leaves] - lo[leaves])  # of a code and the next: their leaf, or
        inner = np.flatnonzero(lo[1:] > lo[tree.parent[1:]]) + 1
        common[lo[inner] - 1] = tree.parent[inner]
        lowest = [common]
        while (step := 1 << len(lowest)) <= d:  # nodes stand breadth first: the highest of a line comes first
            half = lowest[-1]
            lowest.append(np.append(np.minimum(half[: -(step >> 1)], half[step >> 1 :]), half[-(step >> 1) :]))
        ended = np.cumsum(np.bincount(hi, weights=numbers, minlength=d + 1), dtype=np.float64)
        begun = np.cumsum(np.bincount(lo + 1, weights=numbers, minlength=d + 1), dtype=np.float64)
        return cls(ended, begun, path, np.stack(lowest))

    def covered(self, first: Ints, last: Ints) -> Floats:  # (k, 1), (k, 1) -> (k,)
        """The sum over the nodes that lie inside the codes [first, last) of each interval."""
        start, stop = first[:, 0], np.maximum(first, last)[:, 0]
        k = np.frexp((stop - start + 1).astype(float))[1] - 1  # borders start-1 .. stop-1: two runs of 2**k
        inside = np.flatnonzero((start > 0) & (stop < self.ended.size - 1))
        sums = self.ended[stop] - self.begun[start]
        start, stop, k = start[inside], stop[inside], k[inside]
        node = np.minimum(self.lowest[k, start - 1], self.lowest[k, stop - (1 << k)])
        sums[inside] += self.path[node]
        return sums


def _whole_codes(boxes: Floats) -> tuple[Ints, Ints]:  # (k, m, 2) -> (k, m), (k, m)
    """The codes that lie wholly inside each box: a node is covered by them or not at all."""
    return np.ceil(boxes[..., 0]).astype(np.int64), np.floor(boxes[..., 1]).astype(np.int64)


def _rank(borders: Ints, codes: Ints, side: Literal["left", "right"]) -> Ints:
    """``np.searchsorted``, through a table of all codes where there are fewer of them than are looked up."""
    beyond = int(borders[-1]) + 1  # from here on the rank is the last one
    if codes.size <= beyond:
        return np.searchsorted(borders, codes, side=side)
    return np.searchsorted(borders, np.arange(beyond + 1), side=side)[np.minimum(codes, beyond)]


def leaf_density(tree: Tree, values: Floats) -> Floats:  # (nodes,) -> (size, ...)
    """The frequency of every code under uniformity inside the leaves."""
    leaves = tree.leaves
    height = values[leaves] / tree.volume[leaves]
    sizes = [axis.size for axis in tree.axes]
    if len(sizes) == 1:
        density = np.empty(sizes)
        order = np.argsort(tree.lo[leaves, 0])
        lengths = (tree.hi - tree.lo)[leaves, 0][order]
        density[:] = np.repeat(height[order], lengths)
        return density
    # Mark the corners of every leaf and sum up: an m-dimensional difference array.
    marks = np.zeros([size + 1 for size in sizes])
    for corner in np.ndindex(*(2,) * len(sizes)):
        at = tuple((tree.hi if side else tree.lo)[leaves, a] for a, side in enumerate(corner))
        np.add.at(marks, at, height if sum(corner) % 2 == 0 else -height)
    for axis in range(len(sizes)):
        np.cumsum(marks, axis=axis, out=marks)
    return marks[tuple(slice(size) for size in sizes)]
