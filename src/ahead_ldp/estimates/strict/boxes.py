"""Strict problems from trees over several attributes: atoms are boxes, and merge where a query does not cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from ahead_ldp.estimates.strict.evidence import Answered, Ground, Piece, same_boxes
from ahead_ldp.estimates.strict.problem import Problem
from ahead_ldp.estimates.strict.rows import Rows, cell_rows
from ahead_ldp.oracles.base import LinearOracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.schema.arrays import Bools, Floats, Ints

_CHUNK = 2**22  # pairs of boxes looked at together


@dataclass(frozen=True, slots=True, eq=False)
class TreeSource:
    """A group's estimates of the leaves of a tree."""

    partition: Partition
    y: Floats
    oracle: LinearOracle
    n: int


@dataclass(frozen=True, eq=False)
class BoxGround(Ground):
    """Groups that were asked about trees of the same attributes, the fewest leaves first."""

    sources: tuple[TreeSource, ...]

    @classmethod
    def of(cls, answered: Answered, attributes: Sequence[int], sizes: Sequence[int], people: int | None) -> BoxGround:
        """All trees of exactly these attributes."""
        told = [(q, tally) for q, tally in answered if tally.n and q.attributes == tuple(attributes)]
        sources = [
            TreeSource(q.partition, q.oracle.estimate(tally), q.oracle, tally.n)
            for q, tally in told
            if isinstance(q.oracle, LinearOracle)
        ]
        sources.sort(key=lambda source: source.partition.cells)
        return cls(tuple(sizes[a] for a in attributes), people, tuple(sources))

    @cached_property
    def variances(self) -> Floats:
        """Of all cells of all groups, roughly."""
        parts = [np.empty(0)]
        for source in self.sources:
            m, f = source.oracle.moments, np.clip(source.y, 0.0, 1.0)
            parts.append(((1 - f) * m.other + f * (m.own + 1) - m.cross) / source.n)
        return np.concatenate(parts)

    @cached_property
    def _boxes(self) -> tuple[Ints, Ints, Ints]:
        """The boxes that all trees together cut out, and the cell of each in each tree (groups, boxes)."""
        lo, hi = np.zeros((1, len(self.sizes)), np.int64), np.array([self.sizes])
        for source in self.sources:
            lo, hi = _refined(lo, hi, source.partition)
        cells = [source.partition.locate(lo) for source in self.sources]
        return lo, hi, np.stack(cells) if cells else np.empty((0, 1), np.int64)

    def batches(self, queries: Sequence[Floats]) -> list[list[int]]:
        """Each for itself, with its negative."""
        return same_boxes(queries)

    def near(self, boxes: Floats) -> Piece:  # (k, m, 2)
        """Boxes merge into the largest cell of any tree that these boxes, apart from one another, do not cut."""
        lo, hi, cells = self._boxes
        piece = Piece(Problem((), np.ones(1), None), lo.astype(float), hi.astype(float), None, np.empty(0, np.int64))
        atom = self._merged(piece.touched(boxes), piece.covered(boxes), cells)
        count = int(atom.max()) + 1
        rows, labels, before = list[Rows](), [np.empty(0, np.int64)], 0
        for source, cell in zip(self.sources, cells, strict=True):
            label, matrix = _rows_of(cell, atom, source.partition.cells, count)
            y = np.bincount(label, weights=source.y, minlength=len(matrix)).astype(np.float64)
            rows.append(cell_rows(source.oracle, source.n, y, matrix, np.bincount(label, minlength=len(matrix))))
            labels.append(label + before)
            before += len(matrix)
        even = np.bincount(atom, weights=np.prod((hi - lo).astype(float), axis=1)) / prod(self.sizes)
        problem = Problem(tuple(rows), even, self.people)
        return Piece(problem, piece.lo, piece.hi, atom, np.concatenate(labels))

    def _merged(self, touched: Bools, covered: Bools, cells: Ints) -> Ints:  # (boxes,) twice, (groups, boxes)
        key = np.arange(touched.size)  # a box alone
        is_open, next_key = np.ones(touched.size, bool), touched.size
        for cell, source in zip(cells, self.sources, strict=True):
            inside, outside = np.ones(source.partition.cells, bool), np.ones(source.partition.cells, bool)
            np.logical_and.at(inside, cell, covered)
            np.logical_and.at(outside, cell, ~touched)
            whole = is_open & (inside | outside)[cell]
            key[whole] = next_key + cell[whole]  # S15
            is_open &= ~whole
            next_key += source.partition.cells
        return np.unique(key, return_inverse=True)[1].reshape(-1)


def _rows_of(cell: Ints, atom: Ints, cells: int, atoms: int) -> tuple[Ints, Floats]:
    """The row of each cell, and which atoms each row holds: cells inside one atom are added up."""
    first, last = np.full(cells, atoms), np.full(cells, -1)
    np.minimum.at(first, cell, atom)
    np.maximum.at(last, cell, atom)
    label = np.unique(np.where(first == last, first, atoms + np.arange(cells)), return_inverse=True)[1].reshape(-1)
    matrix = np.zeros((int(label.max()) + 1, atoms))
    matrix[label[cell], atom] = 1.0  # S1
    return label, matrix


def _refined(lo: Ints, hi: Ints, partition: Partition) -> tuple[Ints, Ints]:
    """The boxes that are left where both old boxes and the partition's cells are cut."""
    step, found = max(1, _CHUNK // partition.cells), []
    for start in range(0, len(lo), step):
        some_lo, some_hi = lo[start : start + step, None], hi[start : start + step, None]
        one, other = np.nonzero(((some_lo < partition.hi) & (partition.lo < some_hi)).all(axis=2))
        low = np.maximum(lo[start + one], partition.lo[other])
        found.append((low, np.minimum(hi[start + one], partition.hi[other])))
    return np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])
