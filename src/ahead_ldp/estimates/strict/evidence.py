"""From questions and tallies to strict problems: who says something about some attributes, and on which atoms.

Grids are brought to atoms that are products of intervals. Borders far from a query's ends are left out, and the cells
that they part are added up: that stays valid, and a problem stays small. Trees over several attributes have the boxes
of their common refinement for atoms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from ahead_ldp.device.partition import GridForm
from ahead_ldp.estimates.origin import Asked
from ahead_ldp.estimates.strict.problem import Problem
from ahead_ldp.estimates.strict.rows import Rows, cell_rows, contrast_rows, outcome_rows
from ahead_ldp.oracles.base import LinearOracle
from ahead_ldp.oracles.haar import Haar
from ahead_ldp.oracles.sw import SW
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Bools, Floats, Ints

Borders = tuple[Ints, ...]  # of each attribute, both ends included
Answered = Sequence[tuple[Asked, Tally]]

_TOUCHED = 1e-11  # tolerance: of a code; less than `units.POINT`
_COVERED = 1e-14  # tolerance: of a box; less than a `units.POINT` of 10,000 codes
_ALONG = {1: 64, 2: 14}  # borders of an attribute that are kept for two ends, by the number of attributes (S14)
_OUTCOMES = 320  # borders that are kept for outcomes of SW (choice S14)
_MORE = 4  # for every further end (S14)
_FADES = 2.0  # a border counts so much less with every other one of its group between it and the end (S14)
_ENDS = 8  # of queries that share a problem
_PIECES = 8  # problems that are kept


@dataclass(frozen=True, slots=True, eq=False)
class Source(ABC):
    """A group's reports on a grid of some attributes; those that it was not asked about have one column."""

    borders: Borders
    n: int

    @abstractmethod
    def rows(self, atoms: Borders) -> tuple[Rows, Ints]:
        """The rows on the atoms between these borders, and for each row of all the one that holds it, or -1."""

    @abstractmethod
    def variances(self) -> Floats:
        """Of all rows, roughly."""


@dataclass(frozen=True, slots=True, eq=False)
class GridSource(Source):
    """Estimates of cells; each is the sum of ``members`` cells where the question had further attributes."""

    y: Floats  # (columns, ...)
    members: int
    oracle: LinearOracle

    def rows(self, atoms: Borders) -> tuple[Rows, Ints]:
        """Cells are added up where the border between them is not the atoms'."""
        y, label, matrix = self.y, np.zeros(1, np.int64), np.ones((1, 1))
        members = self.members
        sums = np.full(1, 1)
        for axis, (own, kept) in enumerate(zip(self.borders, atoms, strict=True)):
            if own.size == 2:  # not asked about
                matrix = np.repeat(matrix, kept.size - 1, axis=1)
                continue
            is_kept = kept[np.searchsorted(kept, own[:-1])] == own[:-1]
            start = np.flatnonzero(is_kept)
            y = np.add.reduceat(y, start, axis=axis)  # S14
            sums = np.multiply.outer(sums, np.diff(np.append(start, own.size - 1))).reshape(-1)
            label = (label[:, None] * start.size + (np.cumsum(is_kept) - 1)).reshape(-1)
            place = np.searchsorted(own[start], kept[:-1], side="right") - 1
            here = (np.arange(start.size)[:, None] == place).astype(float)  # S1
            matrix = _crossed(matrix, here)
        return cell_rows(self.oracle, self.n, y.reshape(-1), matrix, members * sums), label  # S3

    def variances(self) -> Floats:
        """Of all cells."""
        f = np.clip(self.y.reshape(-1), 0.0, 1.0)
        m = self.oracle.moments
        return ((self.members - f) * m.other + f * (m.own + 1) - self.members * m.cross) / self.n


@dataclass(frozen=True, slots=True, eq=False)
class LineSource(Source):
    """Reports on the cells of one attribute that are no estimates of cells: outcomes of SW, contrasts of Haar."""

    axis: int
    tally: Tally
    oracle: SW | Haar

    def rows(self, atoms: Borders) -> tuple[Rows, Ints]:
        """Blocks of outcomes on intervals of cells; contrasts of nodes whose borders are the atoms'."""
        own, kept = self.borders[self.axis], atoms[self.axis]
        columns = [borders.size - 1 for borders in atoms]
        place = np.repeat(np.arange(columns[self.axis]), prod(columns[self.axis + 1 :]))
        place = np.tile(place, prod(columns[: self.axis]))  # of each atom, along the axis
        if isinstance(self.oracle, SW):
            starts = np.flatnonzero(np.isin(own[:-1], kept))
            interval = np.searchsorted(own[starts], kept[:-1], side="right") - 1
            return outcome_rows(self.oracle, self.tally, starts, interval[place])
        ends, nodes = np.append(own, own[-1]), np.arange(self.oracle.nodes)  # the last node may have one half
        whole = np.isin(np.stack([ends[2 * nodes], ends[2 * nodes + 1], ends[2 * nodes + 2]]), kept).all(axis=0)
        cell = np.searchsorted(own, kept[:-1], side="right") - 1
        base = (nodes[whole][:, None] == cell // 2) * (1.0 - 2.0 * (cell % 2))
        y = self.oracle.contrasts(self.tally)[whole]
        return contrast_rows(self.oracle, self.n, y, base[:, place]), np.where(whole, np.cumsum(whole) - 1, -1)

    def variances(self) -> Floats:
        """Of all outcomes or nodes."""
        if isinstance(self.oracle, SW):
            return np.maximum(self.tally.counts, 1) / self.n**2
        return np.full(self.oracle.nodes, 1 / (2 * self.oracle.p - 1) ** 2 / self.n)


@dataclass(frozen=True, eq=False)
class Ground(ABC):
    """All that the reports say about some attributes of these sizes."""

    sizes: tuple[int, ...]
    people: int | None

    @abstractmethod
    def near(self, boxes: Floats) -> Piece:  # (k, m, 2)
        """The problem for queries that are made of these boxes."""

    @abstractmethod
    def batches(self, queries: Sequence[Floats]) -> list[list[int]]:
        """Which queries, each of some boxes, share a problem."""

    @cached_property
    @abstractmethod
    def variances(self) -> Floats:
        """Of all rows of all groups, roughly."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A problem, the boxes that its atoms are made of, and where its rows stand among all of the ground's."""

    problem: Problem
    lo: Floats  # (boxes, m)
    hi: Floats
    atom: Ints | None  # (boxes,) the atom of each box; None: boxes are atoms
    label: Ints  # (all rows,) the problem's row that holds it, or -1

    def highest(self, values: Floats, axis: int) -> Floats:  # (codes,) -> (atoms,)
        """The largest of some values of the codes of one attribute, over each atom."""
        sides, place = np.unique(np.stack([self.lo[:, axis], self.hi[:, axis]]), axis=1, return_inverse=True)
        largest = np.array([values[int(lo) : int(hi)].max() for lo, hi in sides.T])
        return self.on_atoms(largest[place.reshape(-1)])

    def share(self, boxes: Floats) -> Floats:  # (k, m, 2) -> (boxes,)
        """How much of each of the piece's boxes is inside some boxes that are apart from one another."""
        total = np.zeros(len(self.lo))
        for box in boxes:
            inside = np.minimum(self.hi, box[:, 1]) - np.maximum(self.lo, box[:, 0])
            total += np.prod(np.maximum(inside, 0.0) / (self.hi - self.lo), axis=1)
        return total

    def touched(self, boxes: Floats) -> Bools:  # (k, m, 2) -> (boxes,)
        """Which of the piece's boxes have anything in some boxes."""
        found = np.zeros(len(self.lo), bool)
        for box in boxes:
            inside = np.minimum(self.hi, box[:, 1]) - np.maximum(self.lo, box[:, 0])
            found |= (inside > _TOUCHED).all(axis=1)
        return found

    def covered(self, boxes: Floats) -> Bools:  # (k, m, 2) -> (boxes,)
        """Which of them are wholly inside some boxes that are apart from one another."""
        return self.share(boxes) >= 1 - _COVERED

    def on_atoms(self, values: Floats) -> Floats:  # (boxes,) -> (atoms,)
        """The largest value over each atom."""
        if self.atom is None:
            return values
        result = np.full(self.problem.even.size, -np.inf)
        np.maximum.at(result, self.atom, values)
        return result

    def everywhere(self, weights: Floats) -> Floats:  # (q, r) -> (q, all rows)
        """Weights for all rows of the ground."""
        padded = np.concatenate([weights, np.zeros((len(weights), 1))], axis=1)
        return padded[:, self.label]


@dataclass(frozen=True, eq=False)
class GridGround(Ground):
    """Groups that were asked about grids."""

    sources: tuple[Source, ...]
    pieces: dict[bytes, Piece] = field(default_factory=dict)  # made before, the latest; threads share them

    @cached_property
    def borders(self) -> Borders:
        """Of all groups together."""
        every = [[np.array([0, size])] for size in self.sizes]
        for source in self.sources:
            for axis, own in enumerate(source.borders):
                every[axis].append(own)
        return tuple(np.unique(np.concatenate(axis)) for axis in every)

    @cached_property
    def variances(self) -> Floats:
        """Of all rows of all groups, roughly."""
        return np.concatenate([np.empty(0), *(source.variances() for source in self.sources)])

    def near(self, boxes: Floats) -> Piece:  # (k, m, 2)
        """Atoms between the borders that matter most for the ends of these boxes."""
        atoms = tuple(self._kept(axis, np.unique(boxes[:, axis])) for axis in range(len(self.sizes)))
        key = b"/".join(borders.tobytes() for borders in atoms)
        piece = self.pieces.get(key)
        if piece is None:
            piece = self.pieces[key] = self._piece(atoms)
            for oldest in list(self.pieces)[:-_PIECES]:
                self.pieces.pop(oldest, None)
        return piece

    def batches(self, queries: Sequence[Floats]) -> list[list[int]]:
        """Those of one attribute that begin near one another share a problem while their ends are few."""
        if len(self.sizes) > 1:
            return same_boxes(queries)
        order = np.argsort([boxes[:, 0, 0].min(initial=0.0) for boxes in queries], kind="stable")
        batches, ends = list[list[int]](), set[float]()
        for i in order.tolist():
            own = set(queries[i].reshape(-1).tolist())
            if not batches or len(ends | own) > _ENDS:
                batches.append([])
                ends = set()
            batches[-1].append(i)
            ends |= own
        return batches

    def _piece(self, atoms: Borders) -> Piece:
        rows, labels, before = list[Rows](), [np.empty(0, np.int64)], 0
        for source in self.sources:
            some, label = source.rows(atoms)
            rows += [some] if some.y.size else []
            labels.append(np.where(label < 0, -1, label + before))
            before += some.y.size
        lo = np.stack([x.reshape(-1) for x in np.meshgrid(*(b[:-1] for b in atoms), indexing="ij")], axis=1)
        hi = np.stack([x.reshape(-1) for x in np.meshgrid(*(b[1:] for b in atoms), indexing="ij")], axis=1)
        even = np.prod(hi - lo, axis=1) / prod(self.sizes)
        problem = Problem(tuple(rows), even, self.people)
        return Piece(problem, lo.astype(float), hi.astype(float), None, np.concatenate(labels))

    @cached_property
    def _has_outcomes(self) -> bool:
        """Whether one attribute was asked about by SW, whose outcomes say little about intervals of cells."""
        return len(self.sizes) == 1 and any(
            isinstance(s, LineSource) and isinstance(s.oracle, SW) for s in self.sources
        )

    def _kept(self, axis: int, ends: Floats) -> Ints:
        every = self.borders[axis]
        inner = ends[(ends > 0) & (ends < self.sizes[axis])]
        along = _OUTCOMES if self._has_outcomes else _ALONG.get(len(self.sizes), 8)
        most = 2 if not inner.size else along + _MORE * max(inner.size - 2, 0)
        if every.size <= most:
            return every
        score = np.zeros(every.size)
        for source in self.sources:
            own = source.borders[axis]
            if own.size > 2:
                after = np.searchsorted(own, inner)  # the first border not before an end
                exact = own[after] == inner
                places = np.arange(own.size)
                steps = np.where(places >= after[:, None], places - after[:, None], after[:, None] - 1 - places)
                steps = np.where(exact[:, None], np.abs(places - after[:, None]), steps)
                score[np.searchsorted(every, own)] += (_FADES ** -np.minimum(steps, 60)).sum(axis=0)
        score[[0, -1]] = np.inf
        return np.sort(every[np.argsort(-score, kind="stable")[:most]])  # S14


def same_boxes(queries: Sequence[Floats]) -> list[list[int]]:
    """Queries with the same boxes, such as one and its negative, share a problem."""
    batches: dict[bytes, list[int]] = {}
    for i, boxes in enumerate(queries):
        batches.setdefault(boxes.tobytes(), []).append(i)
    return list(batches.values())


def _crossed(first: Floats, second: Floats) -> Floats:  # (a, b), (c, d) -> (a c, b d)
    """The Kronecker product."""
    both = first[:, None, :, None] * second[None, :, None, :]
    return np.asarray(both.reshape(first.shape[0] * second.shape[0], -1))


def grid_sources(answered: Answered, attributes: Sequence[int], sizes: Sequence[int]) -> tuple[Source, ...]:
    """What the questions on grids say about some attributes; those that say nothing are left out."""
    sources: list[Source] = []
    for question, tally in answered:
        if tally.n and set(question.attributes) & set(attributes):
            source = _source(question, tally, attributes, sizes)
            if source is not None and any(borders.size > 2 for borders in source.borders):
                sources.append(source)
    return tuple(sources)


def _source(question: Asked, tally: Tally, attributes: Sequence[int], sizes: Sequence[int]) -> Source | None:
    own, oracle, order = question.partition, question.oracle, np.arange(question.partition.cells)
    if isinstance(own.form, GridForm):
        borders = [np.array([0, *cuts, axis.size]) for cuts, axis in zip(own.form.cuts, own.axes, strict=True)]
    elif len(question.attributes) == 1:
        order = np.argsort(own.lo[:, 0])
        borders = [np.append(own.lo[order, 0], own.axes[0].size)]
    else:
        return None  # a tree over several attributes
    places = {a: i for i, a in enumerate(question.attributes)}
    here = tuple(borders[places[a]] if a in places else np.array([0, sizes[a]]) for a in attributes)
    if isinstance(oracle, SW | Haar):
        return LineSource(here, tally.n, list(attributes).index(question.attributes[0]), tally, oracle)
    if not isinstance(oracle, LinearOracle):
        return None
    table = oracle.estimate(tally)[order].reshape([b.size - 1 for b in borders])
    dropped = tuple(i for i, a in enumerate(question.attributes) if a not in attributes)
    members = prod(table.shape[i] for i in dropped)
    kept = [a for a in question.attributes if a in attributes]
    table = table.sum(axis=dropped).transpose(np.argsort([list(attributes).index(a) for a in kept]))
    return GridSource(here, tally.n, table.reshape([b.size - 1 for b in here]), members, oracle)
