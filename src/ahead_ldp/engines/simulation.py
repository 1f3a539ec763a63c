"""Populations, and the exact sampling of what their groups would report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Floats, Ints

MOST_CELLS = 2**20  # of a domain that is held as a histogram
_PARTS = 1 << 12  # unit: of [0, 1), each with the groups that a number in it may mean
_DRAWN_AT_ONCE = 1 << 15  # random numbers, which stay near the processor
_DENSE = 2  # codes per person up to which people are counted by code, not looked up one by one


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """People as codes: a histogram over all combinations of codes, or one record each."""

    sizes: tuple[int, ...]
    histogram: Ints | None = None  # (size, ...)
    records: Ints | None = None  # (n, m); those of a part of the people may be smaller integers

    @classmethod
    def of_histogram(cls, histogram: NDArray[np.integer]) -> Population:
        """People counted by code; simulation costs nothing for more of them."""
        histogram = np.asarray(histogram)
        if not np.issubdtype(histogram.dtype, np.integer) or histogram.ndim == 0 or (histogram < 0).any():
            raise ValueError(f"expected a histogram of counts >= 0, got {histogram.dtype} {histogram.shape}")
        return cls(histogram.shape, histogram=histogram.astype(np.int64))._not_empty()

    @classmethod
    def of_records(cls, records: NDArray[np.integer], sizes: Sequence[int]) -> Population:
        """One row of codes per person."""
        records = np.asarray(records)
        if not np.issubdtype(records.dtype, np.integer) or records.ndim != 2 or records.shape[1] != len(sizes):
            raise ValueError(
                f"expected records of codes of shape (n, {len(sizes)}), got {records.dtype} {records.shape}"
            )
        if records.size and ((records < 0) | (records >= np.array(sizes))).any():
            raise ValueError(f"expected codes below {tuple(sizes)} and >= 0")
        rows = records.astype(
            np.int64, order="C"
        )  # people are taken by rows: from columns each group would copy them all
        return cls(tuple(sizes), records=rows)._not_empty()

    def _not_empty(self) -> Population:
        if self.n == 0:
            raise ValueError("expected a population of at least one person, got none")
        return self

    @property
    def n(self) -> int:
        """How many people."""
        if self.records is not None:
            return len(self.records)
        assert self.histogram is not None
        return int(self.histogram.sum())

    def counted(self) -> Population:
        """The same people as a histogram, which changes no law."""
        assert self.records is not None
        cells = np.ravel_multi_index(tuple(self.records.T), self.sizes)
        return Population.of_histogram(np.bincount(cells, minlength=prod(self.sizes)).reshape(self.sizes))

    def divide(self, groups: Sequence[Group], rng: Generator) -> dict[str, Population]:
        """Every person draws a group by its share, whatever the value: AHEAD's user partition."""
        shares = np.array([g.share for g in groups], float)
        shares /= shares.sum()
        if self.records is not None:
            ends = np.cumsum(shares)
            chosen = drawn_groups(ends / ends[-1], self.n, rng)  # as Generator.choice draws
            rows = np.split(np.argsort(chosen, kind="stable"), np.cumsum(np.bincount(chosen, minlength=len(groups))))
            small = self.records.astype(_kind_of(self.sizes), copy=False)
            taken = [small.take(row, axis=0) for row in rows[: len(groups)]]
            return {g.id: Population(self.sizes, records=part) for g, part in zip(groups, taken, strict=True)}
        assert self.histogram is not None
        flat = self.histogram.reshape(-1)
        parts = _divide_histogram(flat, shares, rng)
        return {
            g.id: Population(self.sizes, histogram=part.reshape(self.sizes))
            for g, part in zip(groups, parts, strict=True)
        }

    def cells(self, question: Question) -> Ints:  # -> (cells,)
        """The histogram of a question's cells."""
        attributes = list(question.attributes)
        if self.records is not None:
            records = self.records[:, attributes].astype(np.int64, copy=False)
            sizes = [self.sizes[a] for a in attributes]
            if prod(sizes) <= _DENSE * len(records):
                codes = np.ravel_multi_index(tuple(records.T), sizes)
                return question.partition.aggregate(np.bincount(codes, minlength=prod(sizes)).reshape(sizes))
            return np.bincount(question.partition.locate(records), minlength=question.partition.cells).astype(np.int64)
        assert self.histogram is not None
        others = tuple(i for i in range(len(self.sizes)) if i not in attributes)
        marginal = self.histogram.sum(axis=others) if others else self.histogram
        order = np.argsort(np.argsort(attributes))
        return question.partition.aggregate(marginal.transpose(order))


def is_counted(sizes: Sequence[int], n: int) -> bool:
    """Whether a histogram of all combinations is the cheaper form of so many people."""
    return prod(sizes) <= min(MOST_CELLS, 2 * n)


def run_simulation(mechanism: Mechanism, schema: Schema, population: Population, rng: Generator) -> Estimate:
    """The mechanism's estimate when everybody takes part, sampled from its exact law.

    People are thinned into groups once; each group answers from its own people (oracles say whether their
    ``simulate`` has the exact joint law).
    """
    if population.sizes != schema.sizes:
        raise ValueError(f"expected a population over {schema.sizes}, got {population.sizes}")
    groups = mechanism.groups(schema)
    people = population.divide(groups, rng) if groups else {}
    session = Session(mechanism, schema)
    while session.estimate is None:
        session.tell({group: q.oracle.simulate(people[group].cells(q), rng) for group, q in session.wave.items()})
    return session.estimate


def _divide_histogram(flat: Ints, shares: Floats, rng: Generator) -> Ints:  # (d,) -> (groups, d)
    some = np.flatnonzero(flat)
    people = int(flat.sum())
    if people < 4 * some.size * shares.size:  # few people per cell: each draws a group
        cell = np.repeat(np.arange(some.size), flat[some])
        chosen = drawn_groups(np.cumsum(shares), people, rng)
        drawn = np.bincount(chosen.astype(np.int64) * some.size + cell, minlength=shares.size * some.size)
        counts = drawn.reshape(shares.size, some.size)
    else:
        counts = rng.multinomial(flat[some], shares).T
    parts = np.zeros((shares.size, flat.size), np.int64)
    parts[:, some] = counts
    return parts


def _kind_of(sizes: Sequence[int]) -> np.dtype[np.integer]:
    """The smallest integers that hold all codes: moving people is moving bytes."""
    kind = np.min_scalar_type(max(sizes) - 1)
    return kind if kind.itemsize < 8 else np.dtype(np.int64)


def drawn_groups(ends: Floats, count: int, rng: Generator) -> Ints:  # (groups,) -> (count,)
    """Groups drawn by the shares up to the end of each: searchsorted(ends[:-1], u, "right") for uniform u.

    A table says where to begin the search for every part of [0, 1); most parts lie in one group. Small integers, so
    that sorting counts.
    """
    inner = ends[:-1]
    begin = np.searchsorted(inner, np.arange(_PARTS + 1) / _PARTS, side="right")
    inside = int(np.diff(begin).max(initial=0))  # borders that a part may have inside
    begin, padded = begin.astype(np.min_scalar_type(ends.size)), np.append(inner, np.inf)
    drawn = np.empty(count, begin.dtype)
    for first in range(0, count, _DRAWN_AT_ONCE):
        here = drawn[first : first + _DRAWN_AT_ONCE]
        uniform = rng.random(here.size)
        here[:] = begin.take((uniform * _PARTS).astype(np.int32))
        for _ in range(inside):
            here += uniform >= padded.take(here)
    return drawn
