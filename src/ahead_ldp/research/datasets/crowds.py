"""Millions of people with several attributes: a byte or two per value, and exact sampling of what groups report.

A histogram over all combinations of codes is cheaper still, but does not exist for ten attributes. Here a person is a
row of small integers; dividing ten million of them into groups and counting the groups' answers takes a fraction of a
second. With the extra ``fast`` (numba) the loops are compiled; the NumPy forms beside them give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.engines.simulation import Population
from ahead_ldp.protocol.mechanism import Group, Question
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import Workload

Small = NDArray[Any]  # uint8 or uint16

_CHUNK = 1 << 20  # people drawn for at once
_MOST_ASKED = 1 << 22  # of the attributes asked that are counted cell by cell
# Where the one bit of a word stands: times this word, its upper six bits differ for all 64 places (Leiserson, Prokop,
# Randall 1998).
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.argsort([((int(_DE_BRUIJN) << place) % 2**64) >> 58 for place in range(64)])


@lru_cache(maxsize=1)
def compiled() -> dict[str, Any] | None:
    """The loops by name, or ``None`` without numba."""
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(cache=True)
    def choose(words, borders, first, chosen):  # type: ignore[no-untyped-def]
        """How many borders are not above each word; ``first`` knows it for the upper 16 bits."""
        for i in range(words.size):
            word = words[i]
            group = first[word >> np.uint32(16)]
            while group < borders.size and borders[group] <= word:
                group += 1
            chosen[i] = group

    @numba.njit(cache=True)
    def scatter(rows, chosen, place, ordered):  # type: ignore[no-untyped-def]
        """Rows by group, in their old order inside each."""
        for i in range(rows.shape[0]):
            group = chosen[i]
            to = place[group]
            place[group] = to + 1
            for j in range(rows.shape[1]):
                ordered[to, j] = rows[i, j]

    @numba.njit(cache=True)
    def count(rows, attributes, sizes, cells):  # type: ignore[no-untyped-def]
        """People by the codes of some attributes."""
        people = np.zeros(cells, np.int64)
        for i in range(rows.shape[0]):
            cell = 0
            for j in range(attributes.size):
                cell = cell * sizes[j] + rows[i, attributes[j]]
            people[cell] += 1
        return people

    @numba.njit(cache=True)
    def answer(rows, masks, boxes):  # type: ignore[no-untyped-def]
        """People in every box, from the boxes that hold each code."""
        people = np.zeros(boxes, np.int64)
        one = np.uint64(1)
        for i in range(rows.shape[0]):
            for w in range(masks.shape[2]):
                inside = masks[0, rows[i, 0], w]
                for j in range(1, rows.shape[1]):
                    inside &= masks[j, rows[i, j], w]
                while inside:
                    low = inside & (~inside + one)
                    people[w * 64 + _PLACES[(low * _DE_BRUIJN) >> np.uint64(58)]] += 1
                    inside ^= low
        return people

    return {"choose": choose, "scatter": scatter, "count": count, "answer": answer}


def small_type(sizes: Sequence[int]) -> type[np.uint8] | type[np.uint16]:
    """The narrowest type that holds the codes of every attribute."""
    largest = max(sizes)
    if largest > 1 << 16:
        raise ValueError(f"expected at most {1 << 16} codes per attribute, got {largest}")
    return np.uint8 if largest <= 1 << 8 else np.uint16


def empty_rows(n: int, sizes: Sequence[int]) -> Small:
    """Room for rows of codes, filled up with zeros to whole words of eight bytes, which move fast."""
    kind = np.dtype(small_type(sizes))
    return np.zeros((n, -(-len(sizes) * kind.itemsize // 8) * 8 // kind.itemsize), kind)


@dataclass(frozen=True, slots=True, eq=False)
class Crowd(Population):
    """People as rows of small codes, see `empty_rows`. Groups are drawn to within 2**-32 of their shares."""

    rows: Small | None = None

    @classmethod
    def of(cls, rows: NDArray[np.integer], sizes: Sequence[int]) -> Crowd:
        """One row of codes per person."""
        given = np.asarray(rows)
        if not np.issubdtype(given.dtype, np.integer) or given.ndim != 2 or given.shape[1] != len(sizes):
            raise ValueError(f"expected codes of shape (n, {len(sizes)}), got {given.dtype} {given.shape}")
        if not len(given):
            raise ValueError("expected a population of at least one person, got none")
        if ((given.min(axis=0) < 0) | (given.max(axis=0) >= np.array(sizes))).any():
            raise ValueError(f"expected codes below {tuple(sizes)} and >= 0")
        padded = empty_rows(len(given), sizes)
        padded[:, : len(sizes)] = given
        return cls(tuple(sizes), rows=padded)

    @property
    def padded(self) -> Small:
        """The rows, in whole words."""
        assert self.rows is not None
        return self.rows

    @property
    def codes(self) -> Small:  # (n, m)
        """The codes themselves."""
        return self.padded[:, : len(self.sizes)]

    @property
    def n(self) -> int:
        """How many people."""
        return len(self.codes)

    def divide(self, groups: Sequence[Group], rng: Generator) -> dict[str, Population]:
        """Every person draws a group by its share, whatever the value: the rows again, group by group."""
        chosen = _draw_groups(self.n, [group.share for group in groups], rng)
        counts = np.bincount(chosen, minlength=len(groups))
        starts = np.concatenate([[0], np.cumsum(counts)])
        fast = compiled()
        if fast is None:
            ordered = self.padded[np.argsort(chosen, kind="stable")]
        else:
            ordered = np.empty_like(self.padded)
            fast["scatter"](self.padded.view(np.uint64), chosen, starts[:-1].copy(), ordered.view(np.uint64))
        return {g.id: Crowd(self.sizes, rows=ordered[starts[i] : starts[i + 1]]) for i, g in enumerate(groups)}

    def cells(self, question: Question) -> Ints:  # -> (cells,)
        """The histogram of a question's cells."""
        asked = list(question.attributes)
        shape = tuple(self.sizes[i] for i in asked)
        if prod(shape) > _MOST_ASKED:
            located = question.partition.locate(self.codes[:, asked].astype(np.int64))
            return np.bincount(located, minlength=question.partition.cells).astype(np.int64)
        return question.partition.aggregate(self.histogram_of(asked).reshape(shape))

    def histogram_of(self, attributes: Sequence[int]) -> Ints:  # -> (cells,)
        """How many people have each combination of codes of some attributes, the last one fastest."""
        shape = [self.sizes[i] for i in attributes]
        fast = compiled()
        if fast is not None:
            people: Ints = fast["count"](self.codes, np.array(attributes), np.array(shape), prod(shape))
            return people
        cell = np.zeros(self.n, np.int64)
        for i, size in zip(attributes, shape, strict=True):
            cell = cell * size + self.codes[:, i]
        return np.bincount(cell, minlength=prod(shape)).astype(np.int64)

    def true_answers(self, workload: Workload) -> Floats:
        """The share of people in each query, for queries of whole codes."""
        if (workload.boxes != np.floor(workload.boxes)).any():
            raise ValueError("expected queries that end between codes, got one that cuts a code")
        return workload.add_up(self._counts(workload.boxes.astype(np.int64))) / self.n

    def _counts(self, boxes: Ints) -> Floats:  # (k, m, 2) -> (k,)
        masks = _masks(boxes, self.sizes)
        fast = compiled()
        if fast is not None:
            people: Floats = fast["answer"](self.codes, masks, len(boxes)).astype(np.float64)
            return people
        total = np.zeros(len(boxes))
        for start in range(0, self.n, _CHUNK):
            rows = self.codes[start : start + _CHUNK]
            inside = np.full((len(rows), masks.shape[2]), ~np.uint64(0))
            for j in range(rows.shape[1]):
                inside &= masks[j][rows[:, j]]
            bits = np.unpackbits(inside.view(np.uint8), axis=1, bitorder="little")
            total += bits.sum(axis=0)[: len(boxes)]
        return total


def _draw_groups(n: int, shares: Sequence[int], rng: Generator) -> NDArray[np.uint16]:
    """The group of every person, from one word of 32 bits each."""
    if len(shares) > 1 << 16:
        raise ValueError(f"expected at most {1 << 16} groups, got {len(shares)}")
    ends = np.cumsum(np.array(shares, float))
    borders = np.minimum(np.rint(ends[:-1] / ends[-1] * 2.0**32), 2.0**32 - 1).astype(np.uint32)
    first = np.searchsorted(borders, np.arange(1 << 16, dtype=np.uint32) << np.uint32(16), side="right")
    chosen = np.empty(n, np.uint16)
    fast = compiled()
    for start in range(0, n, _CHUNK):
        part = chosen[start : start + _CHUNK]
        words = rng.integers(0, 1 << 32, part.size, dtype=np.uint32)
        if fast is None:
            part[:] = np.searchsorted(borders, words, side="right")
        else:
            fast["choose"](words, borders, first.astype(np.uint16), part)
    return chosen


def _masks(boxes: Ints, sizes: Sequence[int]) -> NDArray[np.uint64]:  # -> (m, largest size, words)
    """For every code of every attribute, one bit for each box that holds it."""
    k, words = len(boxes), -(-len(boxes) // 64)
    masks = np.zeros((len(sizes), max(sizes), words), np.uint64)
    for j, size in enumerate(sizes):
        code = np.arange(size)[:, None]
        inside = np.zeros((size, 64 * words), np.uint8)
        inside[:, :k] = (code >= boxes[:, j, 0]) & (code < boxes[:, j, 1])
        masks[j, :size] = np.packbits(inside, axis=1, bitorder="little").view(np.uint64)
    return masks
