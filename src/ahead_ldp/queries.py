"""Questions people ask of the data, as boxes of codes; sets of them; and their true answers.

People speak closed ranges in their own units. Inside, a box is half open, ``[lo, hi)`` for each attribute, in
code coordinates: code c covers [c, c + 1), so an end inside a bucket is a fraction. Whole numbers share a
bucket evenly, reals linearly.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor, prod
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ahead_ldp.device.codes import Attribute, Number, Schema
from ahead_ldp.schema import Floats, Ints, declared_range, public_number
from ahead_ldp.summed_area import SummedArea

Snap = Literal["outward", "inward", "nearest"]
Span = tuple[float, float]

_MOST_BOXES = 2**16  # of one query
_MOST_QUERIES = 2**24  # of a workload that enumerates cells
_CHUNK = 2**22  # pairs of a box and a record looked at together


@dataclass(frozen=True, slots=True)
class Query:
    """Conditions by attribute name; attributes not named are unrestricted, missing values included.

    A condition is ``(lo, hi)``, closed, with ``None`` for an open end; a set of values; ``None`` for
    "missing"; or one value. Values are the user's: numbers, dates or their text, labels. A range never
    includes missing values, so ``(None, None)`` means "not missing". Queries are checked when they meet a schema.
    """

    conditions: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Give every condition one of the three forms."""
        plain = {name: _condition(name, value) for name, value in self.conditions.items()}
        object.__setattr__(self, "conditions", plain)

    def __str__(self) -> str:
        """The text that `parse_query` reads back."""
        return " and ".join(_text(name, condition) for name, condition in self.conditions.items())


def _condition(name: str, value: Any) -> Any:
    if isinstance(value, set | frozenset):
        if not value:
            raise ValueError(f"expected at least one value in the set for {name}, got none")
        return frozenset(value)
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise ValueError(f"expected (lo, hi) for {name}, got {value!r}")
        return tuple(value)
    return None if value is None else (value, value)


# The text form.

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<mark>\.\.|<=|>=|[={},])|(?P<bare>(?:(?!\.\.)[^\s"'{}=<>,])+))"""
)
_KEYWORDS = ("and", "in", "missing", "not")
_FORMS = "NAME in LO..HI, NAME in {A, B}, NAME = A, NAME >= A, NAME <= A, NAME missing or NAME not missing"


class _Tokens:
    """The words and marks of a query, read from the left; a quoted word is never a keyword."""

    def __init__(self, text: str) -> None:
        self.text, self.found, at = text, list[tuple[str, str]](), 0
        end = len(text.rstrip())
        while at < end:
            token = _TOKEN.match(text, at)
            if token is None:
                raise self.error(f"no {text[at:].lstrip()[0]!r} outside quotes")
            quoted, mark, bare = token["quoted"], token["mark"], token["bare"]
            if quoted is not None:
                self.found.append(("word", re.sub(r"\\(.)", r"\1", quoted[1:-1])))
            else:
                is_mark = mark is not None or bare in _KEYWORDS
                self.found.append(("mark" if is_mark else "word", mark or bare))
            at = token.end()
        self.found.reverse()

    def error(self, rule: str) -> ValueError:
        return ValueError(f"expected {rule} in the query {self.text!r}; conditions are {_FORMS}, joined by and")

    def word(self, what: str) -> str:
        if not self.found or self.found[-1][0] != "word":
            raise self.error(what)
        return self.found.pop()[1]

    def mark(self, *choices: str) -> str:
        if not self.found or self.found[-1][0] != "mark" or self.found[-1][1] not in choices:
            raise self.error(" or ".join(choices))
        return self.found.pop()[1]


def parse_query(text: str) -> Query:
    """The query behind a text such as ``salary in 100000..120000 and size in {S, M}``.

    Names and values with spaces or marks are quoted. An attribute may stand twice only as ``>=`` and ``<=``.
    """
    tokens = _Tokens(text)
    conditions: dict[str, Any] = {}
    while True:
        name = tokens.word("the name of an attribute")
        new = _parse_condition(tokens)
        conditions[name] = _both(tokens, name, conditions[name], new) if name in conditions else new
        if not tokens.found:
            return Query(conditions)
        tokens.mark("and")


def _parse_condition(tokens: _Tokens) -> Any:
    mark = tokens.mark("in", "=", ">=", "<=", "missing", "not")
    if mark == "missing":
        return None
    if mark == "not":
        tokens.mark("missing")
        return (None, None)
    if mark != "in":
        value = tokens.word(f"a value after {mark}")
        return (value if mark != "<=" else None, value if mark != ">=" else None)
    if tokens.found and tokens.found[-1] == ("mark", "{"):
        tokens.mark("{")
        values = {tokens.word("a value in the set")}
        while tokens.mark(",", "}") == ",":
            values.add(tokens.word("a value in the set"))
        return values
    lo = tokens.word("a value after in")
    tokens.mark("..")
    return (lo, tokens.word("a value after .."))


def _both(tokens: _Tokens, name: str, old: Any, new: Any) -> tuple[Any, Any]:
    if isinstance(old, tuple) and isinstance(new, tuple):
        if old[1] is None and new[0] is None:
            return (old[0], new[1])
        if old[0] is None and new[1] is None:
            return (new[0], old[1])
    raise tokens.error(f"{name} to stand once, or with one >= and one <=")


def _text(name: str, condition: Any) -> str:
    name = _quoted(name)
    if condition is None:
        return f"{name} missing"
    if isinstance(condition, frozenset):
        return f"{name} in {{{', '.join(sorted(map(_quoted, condition)))}}}"
    lo, hi = condition
    if lo is None and hi is None:
        return f"{name} not missing"
    if lo is None or hi is None:
        return f"{name} >= {_quoted(lo)}" if hi is None else f"{name} <= {_quoted(hi)}"
    return f"{name} in {_quoted(lo)}..{_quoted(hi)}"


def _quoted(value: Any) -> str:
    text = str(value)
    whole = _TOKEN.fullmatch(text)
    if whole is not None and whole["bare"] == text and text not in _KEYWORDS and text[-1] != ".":
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


# From conditions to boxes.


def query_boxes(schema: Schema, query: Query, snap: Snap | None = None) -> Floats:
    """The boxes (k, m, 2) of a query, apart from one another; a set gives one for each run of codes.

    A range partly outside the declared one is clipped to it. ``snap`` moves ends inside a bucket to a border:
    ``"outward"`` to the smallest cover, ``"inward"`` to the largest part, or to the ``"nearest"``.
    """
    if snap not in (None, "outward", "inward", "nearest"):
        raise ValueError(f"expected snap to be outward, inward, nearest or None, got {snap!r}")
    sides: list[list[Span]] = [[(0.0, float(size))] for size in schema.sizes]
    for name, condition in query.conditions.items():
        i = schema.index(name)
        attribute = schema.attributes[i]
        spans = _merged(_spans(attribute, condition))
        sides[i] = _merged([_snapped(span, snap, attribute.ordered_size) for span in spans])
    count = prod(map(len, sides))
    if count > _MOST_BOXES:
        raise ValueError(f"expected a query of at most {_MOST_BOXES} boxes, got {count} for {query}")
    return np.array(list(product(*sides)), dtype=np.float64)


def _spans(attribute: Attribute, condition: Any) -> list[Span]:
    name = attribute.name
    if condition is None:
        if attribute.missing != "cell":
            raise ValueError(f"expected missing='cell' for {name} to ask for it, got {attribute.missing!r}")
        return [(float(attribute.ordered_size), float(attribute.size))]
    if isinstance(condition, frozenset):
        if attribute.kind == "real":
            raise ValueError(
                f"expected a range for the real attribute {name}, got the set {sorted(condition, key=str)}"
            )
        return [_span(attribute, value, value) for value in condition]
    lo, hi = condition
    if attribute.kind == "nominal" and lo != hi:
        raise ValueError(f"expected a set for the nominal attribute {name}, got the range {lo!r}..{hi!r}")
    return [_span(attribute, lo, hi)]


def _span(attribute: Attribute, lo: Any, hi: Any) -> Span:
    """The user's closed range in code coordinates; ``None`` is an open end."""
    first, last = (0, len(attribute.labels) - 1) if attribute.labels else (attribute.lo, attribute.hi)
    low = first if lo is None else _place(attribute, lo)
    high = last if hi is None else _place(attribute, hi)
    if lo is not None and hi is not None and low > high:
        raise ValueError(f"expected lo <= hi in the range for {attribute.name}, got {lo!r}..{hi!r}")
    if low > last or high < first:
        declared = f"{declared_range(attribute)}, declared for {attribute.name}"
        raise ValueError(f"expected a range that meets {declared}, got {lo!r}..{hi!r}")
    start = _coordinate(attribute, max(low, first))
    if high >= last:  # covers the last bucket, even where that is the maximum alone
        return (start, float(attribute.ordered_size))
    return (start, _coordinate(attribute, high if attribute.kind == "real" else high + 1))


def _place(attribute: Attribute, value: Any) -> Number:
    if not attribute.labels:
        return public_number(attribute.name, attribute.kind, value)
    if value not in attribute.labels:
        raise ValueError(f"expected a category of {attribute.name} among {', '.join(attribute.labels)}, got {value!r}")
    return attribute.labels.index(value)


def _coordinate(attribute: Attribute, x: Number) -> float:
    """Where a number stands among the codes: its bucket, and how far into it."""
    if attribute.edges is None:
        return float(x - attribute.lo)
    code = bisect_right(attribute.edges, x)
    end = attribute.hi if attribute.kind == "real" else attribute.hi + 1
    borders = (attribute.edges[code - 1] if code else attribute.lo, *attribute.edges[code : code + 1], end)
    width = borders[1] - borders[0]
    return code + float((x - borders[0]) / width) if width else float(code)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for lo, hi in sorted(spans):
        if merged and lo <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
        else:
            merged.append((lo, hi))
    return merged


def _snapped(span: Span, snap: Snap | None, size: int) -> Span:
    lo, hi = span
    if snap == "outward":
        start = min(floor(lo), size - 1) if lo == hi else floor(lo)
        return (start, max(ceil(hi), start + 1))
    if snap == "inward":
        return (ceil(lo), max(floor(hi), ceil(lo)))
    return (floor(lo + 0.5), floor(hi + 0.5)) if snap == "nearest" else span


# Many queries at once.


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Queries as boxes: the answer to query i is the sum over its boxes, which are apart from one another."""

    sizes: tuple[int, ...]  # (m,) codes of each attribute
    boxes: Floats  # (k, m, 2) half open, in code coordinates
    owner: Ints  # (k,) the query of each box
    n: int  # queries

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

    def __len__(self) -> int:
        return self.n

    def add_up(self, values: Floats) -> Floats:
        """The sum of one value per box (k,) over the boxes of each query (n,)."""
        return np.bincount(self.owner, weights=values, minlength=self.n).astype(np.float64)

    @classmethod
    def from_queries(cls, schema: Schema, queries: Iterable[Query | str], snap: Snap | None = None) -> Workload:
        """Queries in the user's units, as `Query` or text."""
        parsed = [parse_query(q) if isinstance(q, str) else q for q in queries]
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
