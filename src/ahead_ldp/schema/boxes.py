"""From the conditions of a query to boxes of codes.

A box is half open, ``[lo, hi)`` for each attribute, in code coordinates: code c covers [c, c + 1), so an end inside a
bucket is a fraction. Whole numbers share a bucket evenly, reals linearly. A real that is exactly at a border has no
width, and people may be heaped on it. They are in the bucket above. So a range that ends there and includes it reaches
into that bucket by ``POINT``.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import product
from math import ceil, floor, prod
from typing import Any

import numpy as np

from ahead_ldp.device.codes import Attribute, Number, Schema
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.attributes import public_number
from ahead_ldp.schema.coding import declared_range
from ahead_ldp.schema.fitting import label_of
from ahead_ldp.schema.queries import Beyond, Either, Query, Snap
from ahead_ldp.schema.units import POINT

Span = tuple[float, float]

_MOST_BOXES = 2**16  # of one query


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
        spans = _merged(_spans(attribute, condition, exact=snap is None))
        sides[i] = _merged([_snapped(span, snap, attribute.ordered_size) for span in spans])
    count = prod(map(len, sides))
    if count > _MOST_BOXES:
        raise ValueError(f"expected a query of at most {_MOST_BOXES} boxes, got {count} for {query}")
    return np.array(list(product(*sides)), dtype=np.float64)


def _spans(attribute: Attribute, condition: Any, exact: bool) -> list[Span]:
    name = attribute.name
    if isinstance(condition, Either):
        return [span for one in condition.conditions for span in _spans(attribute, one, exact)]
    if condition is None:
        if attribute.missing != "cell":
            raise ValueError(f"expected missing='cell' for {name} to ask for it, got {attribute.missing!r}")
        return [(float(attribute.ordered_size), float(attribute.size))]
    if isinstance(condition, frozenset):
        if attribute.kind == "real":
            raise ValueError(
                f"expected a range for the real attribute {name}, got the set {sorted(condition, key=str)}"
            )
        return [_span(attribute, value, value, exact) for value in condition]
    lo, hi = condition
    if attribute.kind == "nominal" and (lo != hi or isinstance(lo, Beyond)):
        raise ValueError(f"expected a set for the nominal attribute {name}, got the range {_said(attribute, lo, hi)}")
    return [_span(attribute, lo, hi, exact)]


def _span(attribute: Attribute, lo: Any, hi: Any, exact: bool) -> Span:
    """The user's range in code coordinates; ``None`` is an open end. ``exact`` minds who is exactly at an end."""
    first, last = (0, len(attribute.labels) - 1) if attribute.labels else (attribute.lo, attribute.hi)
    low = first if lo is None else _place(attribute, lo, 1)
    high = last if hi is None else _place(attribute, hi, -1)
    if lo is not None and hi is not None and low > high:
        raise ValueError(f"expected lo <= hi in the range for {attribute.name}, got {_said(attribute, lo, hi)}")
    if low > last or high < first:
        declared = f"{declared_range(attribute)}, declared for {attribute.name}"
        raise ValueError(f"expected a range that meets {declared}, got {_said(attribute, lo, hi)}")
    if attribute.kind == "real":
        return _real_span(attribute, (max(low, first), isinstance(lo, Beyond)), (high, isinstance(hi, Beyond)), exact)
    start = _coordinate(attribute, max(low, first))
    if high >= last:
        return (start, float(attribute.ordered_size))  # covers the last bucket, even where that is the maximum alone
    return (start, _coordinate(attribute, high + 1))


def _real_span(attribute: Attribute, low: tuple[Number, bool], high: tuple[Number, bool], exact: bool) -> Span:
    """The same for reals; each end with whether it is left out."""
    size, room = float(attribute.ordered_size), POINT * exact
    start = _coordinate(attribute, low[0])
    if low[0] == attribute.hi:
        start = size if low[1] else min(start, size - room)  # who has the maximum is in the last bucket
    elif low[1] and start == floor(start):
        start += room
    if high[0] > attribute.hi or (high[0] == attribute.hi and not high[1]):
        return (start, size)  # covers the last bucket, even where that is the maximum alone
    end = _coordinate(attribute, high[0])
    if high[0] == attribute.hi:
        end = min(end, size - room)
    elif not high[1] and (end == floor(end) or low[0] == high[0]):
        end += room
    return (min(start, end), end)


def _said(attribute: Attribute, lo: Any, hi: Any) -> str:
    """A range as it was given."""
    strict = isinstance(lo, Beyond) or isinstance(hi, Beyond)
    return str(Query({attribute.name: (lo, hi)})) if strict else f"{lo!r}..{hi!r}"


def _place(attribute: Attribute, value: Any, inward: int = 0) -> Number:
    """The number behind an end of a range; one left out is the next whole number inward, a real itself."""
    if isinstance(value, Beyond):
        return _place(attribute, value.value) + (inward if attribute.kind != "real" else 0)
    if not attribute.labels:
        return public_number(attribute.name, attribute.kind, value)
    label = label_of(attribute, value)
    if label not in attribute.labels:
        raise ValueError(f"expected a category of {attribute.name} among {', '.join(attribute.labels)}, got {value!r}")
    return attribute.labels.index(label)


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
