"""Coding in bulk: columns of values to codes with the device's own edges, and codes back to people's units.

Errors about data name the attribute, the rule and how many values break it, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.refusals import ValueRefused
from ahead_ldp.schema.arrays import Bools, Ints
from ahead_ldp.schema.attributes import spoken, start_of
from ahead_ldp.schema.fitting import is_missing


class ColumnRefused(ValueRefused):
    """Values of a column break its declaration: ``attribute`` says which one, ``rule`` in which way."""

    attribute: Attribute
    rule: str

    @classmethod
    def of(cls, attribute: Attribute, count: int, rule: str) -> ColumnRefused:
        """So many values of an attribute break a rule."""
        error = cls(f"{attribute.name}: {count} {'value' if count == 1 else 'values'} {rule}")
        error.attribute, error.rule = attribute, rule
        return error


def encode(schema: Schema, columns: Mapping[str, Any] | Sequence[Any] | NDArray[Any]) -> Ints:
    """Codes (n, m) of n records, the same as the device's one by one.

    Columns go by name in a mapping, else in the schema's order (an array has one record per row). ``None``,
    NaN, NaT and masked entries are missing. Frames with nulls hold whole numbers as floats and days as moments,
    so whole floats and midnights are accepted. Errors name the attribute, the rule and how many rows break it,
    never a value.
    """
    arrays = [column_array(a.name, c) for a, c in zip(schema.attributes, _in_order(schema, columns), strict=True)]
    if len({a.size for a in arrays}) > 1:
        lengths = ", ".join(f"{name} {a.size}" for name, a in zip(schema.names, arrays, strict=True))
        raise ValueError(f"expected columns of the same length, got {lengths}")
    coded = [_encode_column(a, column) for a, column in zip(schema.attributes, arrays, strict=True)]
    return np.stack(coded, axis=1)


def _in_order(schema: Schema, columns: Any) -> list[Any]:
    names = schema.names
    if isinstance(columns, Mapping):
        if absent := [name for name in names if name not in columns]:
            raise ValueError(f"expected columns {', '.join(names)}, got none for {', '.join(absent)}")
        return [columns[name] for name in names]
    if isinstance(columns, np.ndarray) and columns.ndim <= 2:
        columns = list(columns.T) if columns.ndim == 2 else [columns]
    if len(columns) != len(names):
        raise ValueError(f"expected {len(names)} columns ({', '.join(names)}), got {len(columns)}")
    return list(columns)


def column_array(name: str, values: Any) -> NDArray[Any]:
    """A column as an array of one dimension."""
    array = object_array(values) if isinstance(values, list | tuple) else np.asanyarray(values)
    if array.ndim != 1:
        raise ValueError(f"expected the column {name} to have one dimension, got {array.ndim}")
    return array


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """A list as it is: numbers as numbers, anything mixed or with nulls as objects, which NumPy would turn to text."""
    if values and set(map(type, values)) in ({int}, {float}):
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _encode_column(attribute: Attribute, column: NDArray[Any]) -> Ints:
    absent = _missing(column)
    if absent.any() and attribute.missing_code is None:
        raise ColumnRefused.of(attribute, int(absent.sum()), "missing, which its declaration refuses")
    result = np.full(column.size, -1 if attribute.missing_code is None else attribute.missing_code, dtype=np.int64)
    present = np.asarray(column)[~absent]
    if attribute.labels or present.dtype.kind in "OUST":
        result[~absent] = _codes_one_by_one(attribute, present)
    else:
        result[~absent] = _codes_of_numbers(attribute, _numbers(attribute, present))
    return result


def _missing(column: NDArray[Any]) -> Bools:
    masked = np.ma.getmaskarray(column)
    plain = np.asarray(column)
    if plain.dtype.kind == "O":
        absent = np.fromiter((is_missing(x) for x in plain), dtype=bool, count=plain.size)
    elif plain.dtype.kind in "fcmM":
        absent = np.isnan(plain) if plain.dtype.kind in "fc" else np.isnat(plain)
    else:
        absent = np.zeros(plain.size, dtype=bool)
    return masked | absent


def _codes_one_by_one(attribute: Attribute, values: NDArray[Any]) -> Ints:
    seen: dict[str, int] = {}
    refusals: dict[str, int] = {}
    result = np.empty(values.size, dtype=np.int64)
    for i, value in enumerate(values.tolist()):
        code = seen.get(value) if isinstance(value, str) else None
        if code is None:
            try:
                code = attribute.code(value)
            except ValueRefused as refusal:
                rule = str(refusal).removeprefix(f"{attribute.name} is ").replace("not a value of", "not of")
                refusals[rule] = refusals.get(rule, 0) + 1
                continue
            if isinstance(value, str):
                seen[value] = code
        result[i] = code
    if refusals:
        rule, count = max(refusals.items(), key=lambda item: item[1])
        raise ColumnRefused.of(attribute, count, rule)
    return result


def _numbers(attribute: Attribute, values: NDArray[Any]) -> NDArray[Any]:
    """The column in the attribute's unit, in its own type where that is wide; the wrong type is refused."""
    kind, dtype = attribute.kind, values.dtype.kind
    if kind == "real" and dtype in "iuf":
        return values.astype(np.float64)
    if kind == "integer" and dtype in "iuf":
        bad = values != np.floor(values) if dtype == "f" else np.zeros(values.size, dtype=bool)
        numbers = values
    elif kind in ("date", "datetime") and dtype == "M":
        moments = values.astype("datetime64[D]" if kind == "date" else "datetime64[s]")
        bad = moments != values if kind == "date" else np.zeros(values.size, dtype=bool)
        numbers = moments.astype(np.int64)
    else:
        bad, numbers = np.ones(values.size, dtype=bool), np.zeros(values.size, dtype=np.int64)
    if bad.any():
        raise ColumnRefused.of(attribute, int(bad.sum()), f"not of kind {kind}")
    return numbers


def _codes_of_numbers(attribute: Attribute, numbers: NDArray[Any]) -> Ints:
    outside = ~((numbers >= attribute.lo) & (numbers <= attribute.hi))
    if outside.any():
        raise ColumnRefused.of(attribute, int(outside.sum()), "outside the declared range")
    if attribute.kind != "real":
        numbers = numbers.astype(np.int64)
    if attribute.edges is None:
        return numbers - np.int64(attribute.lo)
    edges = np.array(attribute.edges, dtype=numbers.dtype)
    return np.searchsorted(edges, numbers, side="right").astype(np.int64)


def decode_edges(attribute: Attribute) -> NDArray[Any]:
    """The borders of the ordered codes, one more than there are, in the user's unit; code c is [c], [c+1].

    Half open, so the last border of integers is hi + 1 and of days the day after. Times of day are seconds
    since midnight (timedelta64); categories have their codes as borders.
    """
    if attribute.labels:
        return np.arange(attribute.ordered_size + 1)
    end = attribute.hi + (attribute.kind != "real")
    if attribute.edges is None:
        borders = np.arange(int(attribute.lo), int(end) + 1)
    else:
        dtype = np.float64 if attribute.kind == "real" else np.int64
        borders = np.array([attribute.lo, *attribute.edges, end], dtype=dtype)
    units = {"date": "datetime64[D]", "datetime": "datetime64[s]", "time": "timedelta64[s]"}
    return borders.astype(units[attribute.kind]) if attribute.kind in units else borders


def declared_range(attribute: Attribute) -> str:
    """The declared bounds as people write them, or the categories."""
    if attribute.labels:
        return ", ".join(attribute.labels)
    return f"{spoken(attribute.kind, attribute.lo)}..{spoken(attribute.kind, attribute.hi)}"


def bucket_label(attribute: Attribute, code: int) -> str:
    """A code as people read it: ``S``, ``30``, ``30..39``, ``[0, 976.5625)``, ``missing``."""
    if not 0 <= code < attribute.size:
        raise ValueError(f"expected a code of {attribute.name} in 0..{attribute.size - 1}, got {code!r}")
    if code == attribute.ordered_size:
        return "missing"
    if attribute.labels:
        return attribute.labels[code]
    last = code == attribute.ordered_size - 1
    lo, end = start_of(attribute, code), attribute.hi if last else start_of(attribute, code + 1)
    if attribute.kind == "real":
        return f"{lo:.10g}" if lo == end else f"[{lo:.10g}, {end:.10g}{']' if last else ')'}"
    top = end if last else end - 1
    first = str(spoken(attribute.kind, lo))
    return first if lo == top else f"{first}..{spoken(attribute.kind, top)}"
