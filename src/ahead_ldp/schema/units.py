"""Between codes and the user's units, for whole arrays.

A *number* is what an attribute counts in: itself, days for a date, seconds for a time, the code for a category. A
*position* is a place among the codes, where code c covers [c, c + 1), as in `queries`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.attributes import public_number

POINT = 2.0**-30  # of a bucket: the room of one real number. A choice: nothing in an answer, and no rounding either
_DTYPES = {"date": "datetime64[D]", "datetime": "datetime64[s]", "time": "timedelta64[s]"}
_UNITS = {"date": "days", "datetime": "seconds", "time": "seconds"}


def numbers_of(attribute: Attribute, values: Sequence[Any] | NDArray[Any]) -> Floats:
    """The numbers behind values in the user's units, which may be text."""
    if not attribute.labels:
        return np.array([public_number(attribute.name, attribute.kind, _plain(v)) for v in values], float)
    if unknown := [v for v in values if v not in attribute.labels]:
        expected = f"expected categories of {attribute.name} among {', '.join(attribute.labels)}"
        raise ValueError(f"{expected}, got {unknown[0]!r}")
    return np.array([attribute.labels.index(v) for v in values], float)


def buckets(attribute: Attribute, codes: NDArray[Any]) -> tuple[Floats, Floats]:
    """The borders of the buckets of ordered codes, as numbers; half open."""
    if attribute.edges is None:
        first = np.asarray(codes, float) + float(attribute.lo)
        return first, first + 1
    inner = borders(attribute)
    return inner[codes], inner[np.asarray(codes) + 1]


def borders(attribute: Attribute) -> Floats:  # -> (ordered_size + 1,)
    """All borders of the ordered codes, as numbers."""
    if attribute.edges is None:
        return np.arange(attribute.ordered_size + 1, dtype=np.float64) + float(attribute.lo)
    end = attribute.hi + (attribute.kind != "real")
    return np.array([attribute.lo, *attribute.edges, end], float)


def centres(attribute: Attribute, first: Ints, last: Ints) -> Floats:
    """The middle of the values in the buckets first..last, both included, if they are spread evenly."""
    whole = attribute.kind != "real"
    return (buckets(attribute, first)[0] + buckets(attribute, last)[1] - whole) / 2


def positions(attribute: Attribute, numbers: Floats) -> Floats:
    """Where numbers stand among the codes; beyond the declared range, at its ends."""
    last = attribute.ordered_size
    if attribute.edges is None:
        return np.clip(numbers - float(attribute.lo), 0.0, last)
    known = borders(attribute)
    if known[-1] == known[-2]:  # the last bucket is the maximum alone
        inside = np.interp(numbers, known[:-1], np.arange(last))
    else:
        inside = np.interp(numbers, known, np.arange(last + 1))
    return np.where(numbers >= known[-1], float(last), inside)


def positions_after(attribute: Attribute, numbers: Floats) -> Floats:
    """Where the values up to these numbers, included, end among the codes."""
    inside = positions(attribute, numbers + (attribute.kind != "real"))
    if attribute.kind == "real":  # who is exactly at a border is in the bucket above it, and may be many
        inside = inside + POINT * ((inside == np.floor(inside)) & (numbers >= attribute.lo))
    return np.where(numbers >= attribute.hi, attribute.ordered_size, inside) if not attribute.labels else inside


def numbers_at(attribute: Attribute, places: Floats) -> Floats:
    """The numbers at positions, which are inside the ordered codes."""
    if attribute.edges is None:
        return places + float(attribute.lo)
    known = borders(attribute)
    return np.interp(places, np.arange(known.size), known)


def spoken(attribute: Attribute, numbers: Floats) -> NDArray[Any]:
    """Numbers in the user's units: the value that people hold there, so whole numbers and categories round down."""
    if attribute.kind == "real":
        return numbers
    last = attribute.ordered_size - 1 if attribute.labels else attribute.hi
    whole = np.clip(np.floor(numbers + 1e-9), attribute.lo, last).astype(np.int64)
    if attribute.labels:
        return np.array(attribute.labels, object)[whole]
    return whole.astype(_DTYPES[attribute.kind]) if attribute.kind in _DTYPES else whole


def spoken_mean(attribute: Attribute, number: float) -> Any:
    """An average in the user's units: a float, or a moment for dates."""
    if attribute.kind == "date":
        return np.datetime64(round(number * 86400), "s")
    if attribute.kind in _DTYPES:
        return np.array(round(number)).astype(_DTYPES[attribute.kind])[()]
    return number


def text(attribute: Attribute, number: float, error: float = 0.0) -> str:
    """One number as people read it: reals to two digits of the error, or to six digits without one."""
    if attribute.kind == "real" or (attribute.kind == "integer" and number != np.floor(number)):
        if 0 < error < np.inf:
            places = 1 - int(np.floor(np.log10(error)))
            return f"{round(number, places) + 0.0:,.{max(places, 0)}f}"  # never -0
        return f"{number:,.0f}" if abs(number) >= 1e5 else f"{number + 0.0:,.6g}"
    value = spoken(attribute, np.array([number]))[0]
    if attribute.kind == "integer":
        return f"{value:,}"
    if attribute.kind == "time":
        return clock(int(value.astype(int)))
    return str(value)


def clock(seconds: int) -> str:
    """A time of day, as queries have it."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def unit(attribute: Attribute) -> str:
    """The unit of a difference of two numbers, for an axis or a column; empty where it is the attribute's own."""
    return "codes" if attribute.labels else _UNITS.get(attribute.kind, "")


def decode(schema: Schema, codes: Ints, rng: Generator) -> dict[str, NDArray[Any]]:  # (n, m)
    """Records in the user's units that have these codes: values inside a bucket are drawn evenly.

    Missing values are NaN, NaT or None, so that `coding.encode` gives the codes back.
    """
    return {a.name: _decode_column(a, column, rng) for a, column in zip(schema.attributes, codes.T, strict=True)}


def _decode_column(attribute: Attribute, codes: Ints, rng: Generator) -> NDArray[Any]:
    absent = codes >= attribute.ordered_size
    lo, hi = buckets(attribute, np.where(absent, 0, codes))
    if attribute.kind == "real":
        drawn = np.minimum(lo + rng.random(codes.size) * (hi - lo), np.maximum(np.nextafter(hi, lo), lo))
        return np.where(absent, np.nan, drawn)
    whole = rng.integers(lo.astype(np.int64), hi.astype(np.int64))
    if attribute.labels or attribute.kind == "time":
        objects = np.empty(codes.size, object)
        objects[:] = [None if gone else _object(attribute, v) for v, gone in zip(whole, absent, strict=True)]
        return objects
    if attribute.kind in _DTYPES:
        values: NDArray[Any] = whole.astype(_DTYPES[attribute.kind])
        values[absent] = np.array("NaT", values.dtype)
        return values
    return np.where(absent, np.nan, whole) if absent.any() else whole


def _object(attribute: Attribute, number: int) -> object:
    if attribute.labels:
        return attribute.labels[number]
    return (dt.datetime.min + dt.timedelta(seconds=int(number))).time()


def _plain(value: Any) -> Any:
    """NumPy's dates and times as the standard library's."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[D]" if np.datetime_data(value.dtype)[0] == "D" else "datetime64[s]").item()
    if isinstance(value, np.timedelta64):
        return (dt.datetime.min + dt.timedelta(seconds=int(value.astype("timedelta64[s]").astype(int)))).time()
    return value
