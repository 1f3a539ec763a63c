"""Many queries at once: boxes of codes with the query that owns each, and their true answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ahead_ldp.device.codes import Schema
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.boxes import query_boxes
from ahead_ldp.schema.queries import Asked, Snap, as_query
from ahead_ldp.schema.units import POINT

_MOST_QUERIES = 2**24  # of a workload that enumerates cells
_CHUNK = 2**22  # pairs of a box and a record looked at together


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Queries as boxes: the answer to query i is the sum over its boxes, which are apart from one another."""

    sizes: tuple[int, ...]  # (m,) codes of each attribute
    boxes: Floats  # (k, m, 2) half open, in code coordinates; may be given with room for real numbers at borders
    owner: Ints  # (k,) the query of each box
    n: int  # queries
    reach: Floats = field(init=False, repr=False)  # the boxes with that room, for bounds that assume nothing

    def __post_init__(self) -> None:
        """Refuse boxes that are reversed or leave the domain, and owners that are no query."""
        k, m = len(self.boxes), len(self.sizes)
        if self.boxes.shape != (k, m, 2) or self.owner.shape != (k,):
            shapes = f"{self.boxes.shape} and {self.owner.shape}"
            raise ValueError(f"expected boxes (k, {m}, 2) and owner (k,) of a workload, got {shapes}")
        lo, hi = self.boxes[..., 0], self.boxes[..., 1]
        if not ((lo >= 0) & (lo <= hi) & (hi <= np.array(self.sizes))).all():
            raise ValueError(f"expected boxes with 0 <= lo <= hi <= size for sizes {self.sizes}")
        if not ((self.owner >= 0) & (self.owner < self.n)).all():
            raise ValueError(f"expected owners in 0..{self.n - 1}")
        object.__setattr__(self, "reach", self.boxes)
        object.__setattr__(self, "boxes", _without_room(self.boxes))

    def __len__(self) -> int:
        return self.n

    def add_up(self, values: Floats) -> Floats:
        """The sum of one value per box (k,) over the boxes of each query (n,)."""
        return np.bincount(self.owner, weights=values, minlength=self.n).astype(np.float64)

    @classmethod
    def from_queries(cls, schema: Schema, queries: Iterable[Asked], snap: Snap | None = None) -> Workload:
        """Queries in the user's units, in any form that `as_query` takes."""
        parsed = [as_query(q) for q in queries]
        boxes = [query_boxes(schema, q, snap) for q in parsed]
        owner = np.repeat(np.arange(len(boxes)), np.array([len(b) for b in boxes], dtype=np.int64))
        empty = np.empty((0, len(schema.sizes), 2))
        return cls(schema.sizes, np.concatenate([empty, *boxes]), owner, len(boxes))

    @classmethod
    def from_codes(cls, sizes: Schema | Sequence[int], ranges: ArrayLike) -> Workload:
        """Closed ranges of codes, one lo and hi per attribute: shape (q, m, 2), or (q, 2m) as in a file."""
        counts = _sizes(sizes)
        given, m = np.asarray(ranges), len(counts)
        if given.dtype.kind not in "iuf" or given.shape[1:] not in ((m, 2), (2 * m,)):
            got = f"{given.dtype} of shape {given.shape}"
            raise ValueError(f"expected numbers of shape (queries, {m}, 2) or (queries, {2 * m}), got {got}")
        given = given.reshape(-1, m, 2)
        lo, hi = given[..., 0], given[..., 1]
        legal = (lo >= 0) & (lo <= hi) & (hi < np.array(counts)) & (lo == np.floor(lo)) & (hi == np.floor(hi))
        if not legal.all():
            i, j = np.argwhere(~legal)[0]
            rule = f"expected whole codes 0 <= lo <= hi <= {counts[j] - 1} for attribute {j} of query {i}"
            raise ValueError(f"{rule}, got {lo[i, j]}..{hi[i, j]}")
        boxes = given + np.array([0.0, 1.0])
        return cls(counts, boxes, np.arange(len(boxes)), len(boxes))


def _without_room(boxes: Floats) -> Floats:
    """Boxes whose ends are at the borders, and whose single numbers have no width."""
    border = np.rint(boxes)
    plain = np.where(np.abs(boxes - border) <= POINT, border, boxes)
    single = plain[..., 1] - plain[..., 0] <= 2 * POINT
    plain[..., 1] = np.where(single, plain[..., 0], plain[..., 1])
    return boxes if np.array_equal(plain, boxes) else plain


def random_workload(sizes: Schema | Sequence[int], count: int, rng: Generator) -> Workload:
    """The paper's random queries: for each attribute two uniform codes, in order, closed."""
    counts = _sizes(sizes)
    ends = rng.integers(0, np.array(counts)[:, None], size=(_positive("count", count), len(counts), 2))
    return Workload.from_codes(counts, np.sort(ends, axis=-1))


def fixed_volume_workload(sizes: Schema | Sequence[int], volume: float, count: int, rng: Generator) -> Workload:
    """Random places for ranges that take the share ``volume`` of each attribute's codes, at least one."""
    if not 0 < volume <= 1:
        raise ValueError(f"expected 0 < volume <= 1, got {volume!r}")
    counts = np.array(_sizes(sizes))
    length = np.clip(np.floor(volume * counts + 0.5).astype(np.int64), 1, counts)
    lo = rng.integers(0, counts - length + 1, size=(_positive("count", count), counts.size))
    return Workload.from_codes(counts.tolist(), np.stack([lo, lo + length - 1], axis=-1))


def point_workload(sizes: Schema | Sequence[int]) -> Workload:
    """Every cell of the domain, the last attribute fastest."""
    cells = _cells(_sizes(sizes))
    return Workload.from_codes(_sizes(sizes), np.stack([cells, cells], axis=-1))


def prefix_workload(sizes: Schema | Sequence[int]) -> Workload:
    """From code 0 up to every cell of the domain, the last attribute fastest: the cumulative distribution."""
    cells = _cells(_sizes(sizes))
    return Workload.from_codes(_sizes(sizes), np.stack([np.zeros_like(cells), cells], axis=-1))


def _cells(sizes: tuple[int, ...]) -> Ints:
    if prod(sizes) > _MOST_QUERIES:
        raise ValueError(f"expected a domain of at most {_MOST_QUERIES} cells, got {prod(sizes)}")
    return np.indices(sizes).reshape(len(sizes), -1).T


def _sizes(sizes: Schema | Sequence[int]) -> tuple[int, ...]:
    if isinstance(sizes, Schema):
        return sizes.sizes
    if not len(sizes):
        raise ValueError("expected the size of at least one attribute, got none")
    return tuple(_positive("every size", size) for size in sizes)


def _positive(what: str, value: object) -> int:
    if type(value) is bool or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"expected {what} to be a positive integer, got {value!r}")
    return int(value)


# True answers.


def true_answers(workload: Workload, histogram: ArrayLike) -> Floats:
    """The share of people in each query (n,), from counts or weights of every cell.

    A box that cuts a cell takes that share of it. Exact for counts and whole ends.
    """
    counts = np.asarray(histogram)
    if counts.shape != workload.sizes or counts.dtype.kind not in "iuf":
        got = f"{counts.dtype} of shape {counts.shape}"
        raise ValueError(f"expected a histogram of numbers of shape {workload.sizes}, got {got}")
    if not (np.isfinite(counts) & (counts >= 0)).all() or not counts.any():
        raise ValueError("expected a histogram of counts >= 0 that are not all 0")
    sums = SummedArea.of(counts).fractional_boxes(workload.boxes)
    return workload.add_up(sums) / float(counts.sum())


def true_answers_from_records(workload: Workload, codes: ArrayLike) -> Floats:
    """The share of people in each query (n,), from records (people, m) of codes."""
    records = np.asarray(codes)
    m = len(workload.sizes)
    if records.ndim != 2 or records.shape[1] != m or records.dtype.kind not in "iu" or not len(records):
        got = f"{records.dtype} of shape {records.shape}"
        raise ValueError(f"expected integer codes of shape (people, {m}) of at least one person, got {got}")
    if (outside := ((records < 0) | (records >= np.array(workload.sizes))).any(axis=0)).any():
        raise ValueError(f"expected codes below {workload.sizes}, got others in column {int(outside.argmax())}")
    if prod(workload.sizes) <= max(_CHUNK, len(records)):
        cells = np.ravel_multi_index(tuple(records.T), workload.sizes)
        counts = np.bincount(cells, minlength=prod(workload.sizes))
        return true_answers(workload, counts.reshape(workload.sizes))
    step = max(1, _CHUNK // max(1, len(workload.boxes)))
    sums = np.zeros(len(workload.boxes))
    for start in range(0, len(records), step):
        sums += _overlap(workload.boxes, records[start : start + step]).sum(axis=1)
    return workload.add_up(sums) / len(records)


def _overlap(boxes: Floats, records: NDArray[Any]) -> NDArray[Any]:
    """The share of each record's cell in each box, (k, records)."""
    whole = bool((boxes == np.floor(boxes)).all())
    share: NDArray[Any] = np.ones((len(boxes), len(records)), dtype=bool if whole else np.float64)
    kind = np.int32 if whole else np.float64  # codes stay below 2**31
    for code, (lo, hi) in zip(records.T.astype(kind), boxes.transpose(1, 2, 0)[..., None].astype(kind), strict=True):
        if whole:
            share &= (code >= lo) & (code < hi)
        else:
            share *= np.clip(np.minimum(hi, code + 1) - np.maximum(lo, code), 0, None)
    return share


def by_restriction(sizes: Sequence[int], boxes: Floats) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """The boxes (k, m, 2) by the attributes that they restrict: those, and the places of the boxes.

    Boxes with a side of no length hold nothing, and none of them is listed.
    """
    some = np.flatnonzero((boxes[..., 0] < boxes[..., 1]).all(axis=1))
    restricted = (boxes[some, :, 0] > 0) | (boxes[some, :, 1] < np.array(sizes))
    kinds, place = np.unique(restricted, axis=0, return_inverse=True)
    for i, kind in enumerate(kinds):
        yield tuple(np.flatnonzero(kind).tolist()), some[place.reshape(-1) == i]
