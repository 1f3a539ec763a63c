"""Columns as frames hold them, made into what a declared kind takes: truth values, moments, durations, decimals.

Everything here happens on the side of whoever holds the data, before a value becomes a code. Nothing is guessed: a
value that has no one meaning for the kind stays as it is, and coding refuses it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute, Number
from ahead_ldp.device.refusals import ValueRefused
from ahead_ldp.schema.arrays import Bools

TRUTH_WORDS = (("false", "true"), ("no", "yes"), ("0", "1"), ("f", "t"), ("n", "y"))
_DAY_S = 86_400


def fitted(attribute: Attribute, column: NDArray[Any]) -> NDArray[Any]:
    """A column as the attribute's kind takes it; as it is where nothing has to change.

    Truth values are 0 and 1 of integers, or two categories such as ``no`` and ``yes``. Numbers name the category that
    is written like them. A moment counts on its day for a date, and at its clock for a time of day. A duration is a
    number of seconds, or the time of day that long after midnight. Decimals are numbers.
    """
    masked, plain = np.ma.getmaskarray(column), np.asarray(column)
    kind, dtype = attribute.kind, plain.dtype.kind
    if dtype == "O" or masked.any():
        gone = masked | np.fromiter((is_missing(x) for x in plain), bool, plain.size)
        return _objects(attribute, plain, gone)
    if dtype == "M" and kind == "date":
        return plain.astype("datetime64[D]")
    if dtype == "m" and kind in ("integer", "real"):
        return _seconds(plain, whole=kind == "integer")
    if dtype == "b" and kind == "integer":
        return plain.astype(np.int64)
    if dtype in "mM" and kind == "time":
        return _clocks(plain)
    if dtype in "biuf" and attribute.labels:
        return _objects(
            attribute, plain.astype(object), np.isnan(plain) if dtype == "f" else np.zeros(plain.size, bool)
        )
    return column


def _seconds(durations: NDArray[Any], whole: bool) -> NDArray[Any]:
    """Durations in seconds; NaN where there is none."""
    gone = np.isnat(durations)
    seconds = durations / np.timedelta64(1, "s")
    seconds = np.floor(seconds) if whole else seconds
    return seconds.astype(np.int64) if whole and not gone.any() else seconds


def _clocks(moments: NDArray[Any]) -> NDArray[Any]:
    """Moments or durations as times of day; a duration of a day or more, or below zero, stays one."""
    days = moments.astype("datetime64[D]") if moments.dtype.kind == "M" else np.zeros(1, "timedelta64[D]")
    seconds = (moments - days) // np.timedelta64(1, "s")
    result = np.empty(moments.size, object)
    for i, (second, gone) in enumerate(zip(seconds.tolist(), np.isnat(moments).tolist(), strict=True)):
        if not gone:
            result[i] = _time(second) if 0 <= second < _DAY_S else dt.timedelta(seconds=second)
    return result


def _time(second: int) -> dt.time:
    return (dt.datetime.min + dt.timedelta(seconds=second)).time()


def _objects(attribute: Attribute, column: NDArray[Any], gone: Bools) -> NDArray[Any]:
    """A column of objects, where some are missing."""
    kinds = {type(x) for x in column[~gone]}
    if not gone.any() and kinds <= _AS_THEY_ARE.get(attribute.kind, {str}):
        return column
    change = _changes(attribute)
    result = np.empty(column.size, object)
    result[:] = [None if absent else change(x) for x, absent in zip(column, gone, strict=True)]
    return result


_AS_THEY_ARE: dict[str, set[type]] = {
    "integer": {int, str},
    "real": {int, float, str},
    "date": {dt.date, str},
    "time": {dt.time, str},
    "datetime": {dt.datetime, str},
}


def _changes(attribute: Attribute) -> Callable[[Any], Any]:
    """What is done with each value that is there."""
    if attribute.labels:
        words, labels = truth_words(attribute.labels), set(attribute.labels)
        return lambda x: _label(x.item() if isinstance(x, np.generic) else x, words, labels)
    change = {"integer": _integer, "real": _real, "date": _date, "time": _clock}.get(attribute.kind, lambda x: x)
    return lambda x: change(_plain(x))


def truth_words(labels: tuple[str, ...]) -> tuple[str, str] | None:
    """The categories that mean false and true, in this order, if they are such words."""
    lower = {label.lower(): label for label in labels}
    for false, true in TRUTH_WORDS:
        if len(labels) == 2 and lower.keys() == {false, true}:
            return lower[false], lower[true]
    return None


def label_of(attribute: Attribute, value: Any) -> Any:
    """A value as the category that is meant by it, or itself."""
    plain = value.item() if isinstance(value, np.generic) else value
    return _label(plain, truth_words(attribute.labels), set(attribute.labels))


def _label(value: Any, words: tuple[str, str] | None, labels: set[str]) -> Any:
    if isinstance(value, bool):
        return words[value] if words else value
    if isinstance(value, int | float | Decimal):
        whole = str(int(value)) if value == value and abs(value) != float("inf") and value == int(value) else ""
        return whole if whole in labels else str(value)
    if words and value in ("False", "True") and value not in labels:
        return words[value == "True"]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype("datetime64[us]" if isinstance(value, np.datetime64) else "timedelta64[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def _integer(value: Any) -> Any:
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(seconds=1)
    if not isinstance(value, bool | float | Decimal) or not -(2**63) < value < 2**63:
        return value
    return int(value) if value == int(value) else value


def _real(value: Any) -> Any:
    if isinstance(value, dt.timedelta):
        return value / dt.timedelta(seconds=1)
    return float(value) if isinstance(value, Decimal) else value


def _date(value: Any) -> Any:
    return value.date() if isinstance(value, dt.datetime) else value


def _clock(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.time()
    if isinstance(value, dt.timedelta) and dt.timedelta(0) <= value < dt.timedelta(days=1):
        return _time(value // dt.timedelta(seconds=1))
    return value


def is_missing(value: Any) -> bool:
    """Whether an object stands for no value: None, NaN, NaT or pandas.NA."""
    if value is None or isinstance(value, str):
        return value is None
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"  # pandas.NA refuses to be a truth value


# Values beyond the declared ends.


def clipped(attribute: Attribute, column: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """A fitted column with what lies beyond the declared range moved to its nearer end, and how many were moved.

    Categories have no nearer end and stay.
    """
    if attribute.labels:
        return column, 0
    dtype, kind = column.dtype.kind, attribute.kind
    if (dtype in "iuf" and kind in ("integer", "real")) or (dtype == "M" and kind in ("date", "datetime")):
        unit = {"date": "datetime64[D]", "datetime": "datetime64[s]"}.get(kind)
        low, high = (np.array(int(x)).astype(unit) if unit else x for x in (attribute.lo, attribute.hi))
        seen = column.astype(unit) if unit else column
        below, above = np.less(seen, low), np.greater(seen, high)
        moved = np.where(below, low, np.where(above, high, seen))
        if dtype in "iu" and kind == "integer":
            moved = moved.astype(np.int64)
        return moved, int((below | above).sum())
    result, count = column.astype(object), 0
    for i, value in enumerate(result):
        end = None if is_missing(value) else _end_beyond(attribute, value)
        if end is not None:
            result[i], count = _spoken(attribute, end), count + 1
    return (result, count) if count else (column, 0)


def _end_beyond(attribute: Attribute, value: Any) -> Number | None:
    """The end of the declared range that a value lies beyond, if any."""
    if attribute.kind == "real" and isinstance(value, float) and abs(value) == float("inf"):
        return attribute.hi if value > 0 else attribute.lo
    try:
        number = attribute.number(value)
    except ValueRefused:
        return None
    return attribute.lo if number < attribute.lo else attribute.hi if number > attribute.hi else None


def _spoken(attribute: Attribute, number: Number) -> Any:
    if attribute.kind in ("integer", "real"):
        return number
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(**{"days" if attribute.kind == "date" else "seconds": number})
    return {"date": moment.date(), "time": moment.time()}.get(attribute.kind, moment)
