"""Attributes as people declare them: constructors, the text grammar, schema files.

The classes are the device's own (``device.codes``), so that a device and the bulk path cannot disagree on a
bucket. Bounds are declared, never read from private data. Everything declared is public, so errors about a
declaration show what was given; errors about data never show a value.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import operator
import re
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.device.codes import (
    Attribute,
    Kind,
    Number,
    Schema,
    day_number,
    equal_edges,
    equal_integer_edges,
    second_of_day,
    second_of_epoch,
)
from ahead_ldp.device.codes import spoken as spoken

_MOST_BUCKETS = 2**16  # edges travel one by one
_WHOLE = ("integer", "date", "time", "datetime")


# Constructors. `missing` is "refused", "cell", or the value that an absent one is counted as.


def integer(name: str, lo: int, hi: int, buckets: int | None = None, missing: object = "refused") -> Attribute:
    """The integers lo..hi: each a code of its own, or in buckets as equal as possible."""
    return _whole(name, "integer", lo, hi, buckets, missing)


def real(name: str, lo: float, hi: float, buckets: int, missing: object = "refused") -> Attribute:
    """The interval [lo, hi] in equal buckets."""
    low, high = _bounds(name, "real", lo, hi)
    edges = equal_edges(low, high, _count(f"buckets of {name}", buckets))
    return _declare(name, "real", missing, lo=low, hi=high, edges=edges)


def real_edges(name: str, edges: Sequence[float], missing: object = "refused") -> Attribute:
    """The interval between the first and the last edge, cut at those between.

    The last edge given twice makes the last bucket the maximum alone.
    """
    return _edged(name, "real", edges, missing)


def date(name: str, first: object, last: object, buckets: int | None = None, missing: object = "refused") -> Attribute:
    """The days first..last (dates, or text such as 1950-01-31), each alone or in buckets."""
    return _whole(name, "date", first, last, buckets, missing)


def time(name: str, first: object, last: object, buckets: int | None = None, missing: object = "refused") -> Attribute:
    """Times of day first..last (times, or text such as 08:30), by the second or in buckets."""
    return _whole(name, "time", first, last, buckets, missing)


def datetime(
    name: str, first: object, last: object, buckets: int | None = None, missing: object = "refused"
) -> Attribute:
    """Moments first..last (or text: 2020-01-31T08:30), by the second or in buckets; UTC without a zone."""
    return _whole(name, "datetime", first, last, buckets, missing)


def ordered(name: str, labels: Sequence[str], missing: object = "refused") -> Attribute:
    """Categories in the order given: ranges of them make sense."""
    return _declare(name, "ordered", missing, labels=_labels(name, labels))


def nominal(name: str, labels: Sequence[str], missing: object = "refused") -> Attribute:
    """Categories without an order: asked for by sets."""
    return _declare(name, "nominal", missing, labels=_labels(name, labels))


def boolean(name: str, missing: object = "refused") -> Attribute:
    """Yes or no: the categories ``false`` and ``true``, which columns of truth values are counted in."""
    return nominal(name, ("false", "true"), missing)


def paper_buckets(name: str, lo: float, hi: float, d: int, missing: object = "refused") -> Attribute:
    """The paper's d buckets, floor((x - lo) / (hi - lo) * (d - 1)): the last one is the maximum alone."""
    low, high = _bounds(name, "real", lo, hi)
    edges = (*equal_edges(low, high, _count(f"buckets of {name}", d, low=2) - 1), high)
    return _declare(name, "real", missing, lo=low, hi=high, edges=edges)


def codes(name: str, d: int, missing: object = "refused") -> Attribute:
    """Values that are codes 0..d-1 already."""
    return _whole(name, "integer", 0, _count(f"codes of {name}", d, most=2**31 - 2) - 1, None, missing)


def as_schema(attributes: Schema | Attribute | str | Sequence[Attribute | str]) -> Schema:
    """A schema from attributes or their texts, one or several."""
    if isinstance(attributes, Schema):
        return attributes
    given: object = attributes
    form = "an attribute, a text such as 'age=integer,18,99', or a list of them"
    if not isinstance(given, Attribute | str | Sequence):
        raise ValueError(f"expected a schema as {form}, got a {type(given).__name__}")
    if not given:
        raise ValueError(f"expected a schema as {form}, got none; `ahead_ldp.infer(data)` drafts one")
    several: Sequence[object] = [attributes] if isinstance(attributes, Attribute | str) else attributes
    return Schema(tuple(_declared(a) for a in several))


def _declared(given: object) -> Attribute:
    if isinstance(given, Attribute):
        return given
    if not isinstance(given, str):
        raise ValueError(f"expected attributes or texts such as 'age=integer,18,99' in a schema, got {given!r}")
    return parse_attribute(given)


def public_number(name: str, kind: str, value: object) -> Number:
    """The number behind a declared bound or the end of a query, which may be text; errors show the value."""
    try:
        plain = value.item() if isinstance(value, np.generic) else value
        plain = midnight_as_day(plain) if kind == "date" else plain
        number: Number = _NUMBERS[kind](plain)
        if isinstance(plain, bool) or not math.isfinite(number):
            raise ValueError
        if kind != "real" and abs(number) >= 2**53:
            raise OverflowError
    except OverflowError:
        raise ValueError(f"expected numbers below 2**53 in magnitude for {name}, got {value!r}") from None
    except (TypeError, ValueError):
        raise ValueError(f"expected a value of kind {kind} for {name}, got {value!r}") from None
    return number


def midnight_as_day(value: object) -> object:
    """The day of a midnight without a zone, which is how frames hold days; anything else as it is."""
    plain = value.item() if isinstance(value, np.datetime64) else value
    if isinstance(plain, dt.datetime) and plain == plain and plain.tzinfo is None:  # NaT is not itself
        return plain.date() if plain == dt.datetime(plain.year, plain.month, plain.day) else plain
    return plain


_SHORT = re.compile(r"([+-]?[0-9][0-9_]*(?:\.[0-9]+)?)([kKM])")


def _short(text: str) -> Decimal | None:
    """The number behind a text such as ``50k`` or ``1.5M``: thousands and millions."""
    short = _SHORT.fullmatch(text.strip())
    return None if short is None else Decimal(short[1]) * (10**6 if short[2] == "M" else 1000)


def _whole_number(value: Any) -> int:
    if not isinstance(value, str):
        return operator.index(value)
    short = _short(value)
    if short is not None and short != int(short):
        raise ValueError
    return int(value) if short is None else int(short)


def _real_number(value: Any) -> float:
    short = _short(value) if isinstance(value, str) else None
    return float(value) if short is None else float(short)


_NUMBERS: dict[str, Any] = {
    "integer": _whole_number,
    "real": _real_number,
    "date": day_number,
    "time": second_of_day,
    "datetime": second_of_epoch,
}


def _bounds(name: str, kind: str, lo: object, hi: object) -> tuple[Any, Any]:
    low, high = (public_number(f"the bounds of {name}", kind, x) for x in (lo, hi))
    if low > high or (low == high and kind == "real"):
        raise ValueError(f"expected lo < hi for {name}, got {lo!r} and {hi!r}")
    return low, high


def _whole(name: str, kind: Kind, lo: object, hi: object, buckets: object, missing: object) -> Attribute:
    low, high = _bounds(name, kind, lo, hi)
    edges = None
    if buckets is not None:
        span = high - low + 1
        count = _count(f"buckets of {name}", buckets, most=span)
        if count < span:
            edges = equal_integer_edges(low, high, _count(f"buckets of {name}", count))
    return _declare(name, kind, missing, lo=low, hi=high, edges=edges)


def _edged(name: str, kind: Kind, edges: object, missing: object) -> Attribute:
    given = edges.tolist() if isinstance(edges, np.ndarray) else edges
    if not isinstance(given, list | tuple) or len(given) < 2:
        raise ValueError(f"expected at least two edges for {name}, got {edges!r}")
    low, *inner, high = (public_number(f"the edges of {name}", kind, x) for x in given)
    return _declare(name, kind, missing, lo=low, hi=high, edges=tuple(inner))


def _labels(name: str, labels: object) -> tuple[str, ...]:
    if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        raise ValueError(f"expected a list of categories for {name}, got {labels!r}")
    return tuple(str(x) if isinstance(x, np.str_) else x for x in labels)


def _count(what: str, value: object, low: int = 1, most: int = _MOST_BUCKETS) -> int:
    try:
        count = int(value) if isinstance(value, str) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        count = low - 1
    if isinstance(value, bool) or not low <= count <= most:
        raise ValueError(f"expected the number of {what} to be in {low}..{most}, got {value!r}")
    return count


def _declare(name: str, kind: Kind, missing: object, **rest: Any) -> Attribute:
    plain = Attribute(name, kind, **rest)
    if isinstance(missing, str) and missing == "refused":
        return plain
    if isinstance(missing, str) and missing == "cell":
        return dataclasses.replace(plain, missing="cell")
    try:
        numeric = isinstance(missing, str | np.generic) and kind in ("integer", "real")
        value = public_number(name, kind, missing) if numeric else missing
        plain.code(value)
    except ValueError:
        rule = f"expected missing of {name} to be refused, cell or a value in its declared range"
        raise ValueError(f"{rule}, got {missing!r}") from None
    return dataclasses.replace(plain, missing="value", missing_value=value)


# The grammar, and schema files.

_BUCKETED = ("lo", "hi", "buckets")
_FIELDS: dict[str, tuple[str, ...]] = {
    **{kind: _BUCKETED for kind in (*_WHOLE, "real", "paper")},
    "codes": ("buckets",),
    "boolean": (),
    **{kind: ("labels",) for kind in ("category", "ordered", "nominal")},
}


def parse_attribute(spec: str) -> Attribute:
    """The attribute behind a text such as ``pay=real,0,500000,512``; docs/schema.md has the grammar."""
    name, _, declared = spec.partition("=")
    kind, _, rest = declared.partition(",")
    kind, body, missing = kind.strip(), *_split_missing(rest)
    if not name.strip() or kind not in _FIELDS:
        raise ValueError(f"expected NAME=KIND,... with a kind among {', '.join(_FIELDS)}, got {spec!r}")
    table: dict[str, Any] = {"name": name.strip(), "kind": kind, "missing": missing}
    if _FIELDS[kind] == ("labels",) or "|" in body:
        field = "labels" if _FIELDS[kind] == ("labels",) else "edges"
        table[field] = [part.strip() for part in body.split("|")]
    else:
        parts = [part.strip() for part in body.split(",")] if body.strip() else []
        if len(parts) > len(_FIELDS[kind]):
            form = ",".join([kind, *_FIELDS[kind]]).upper()
            raise ValueError(f"expected NAME={form} and at most ',missing=...' after it, got {spec!r}")
        table.update(zip(_FIELDS[kind], parts, strict=False))
    return _from_table(table, repr(spec))


def _split_missing(rest: str) -> tuple[str, str]:
    body, mark, missing = f",{rest}".rpartition(",missing=")
    return (body.removeprefix(","), missing.strip()) if mark else (rest, "refused")


def _from_table(table: Mapping[str, Any], where: str) -> Attribute:
    name, kind, missing = table.get("name"), table.get("kind"), table.get("missing", "refused")
    if not isinstance(name, str) or not isinstance(kind, str) or kind not in _FIELDS:
        raise ValueError(f"expected a name and a kind among {', '.join(_FIELDS)} in {where}")
    given = {key: value for key, value in table.items() if key not in ("name", "kind", "missing")}
    edged = "edges" in given and kind in (*_WHOLE, "real")
    allowed = ("edges",) if edged else _FIELDS[kind]
    needed = [f for f in allowed if f != "buckets" or kind not in _WHOLE]
    if set(given) - set(allowed) or set(needed) - set(given):
        raise ValueError(
            f"expected {' and '.join(needed)} for kind {kind} in {where}, got {', '.join(given) or 'none'}"
        )
    if edged:
        return _edged(name, kind, given["edges"], missing)  # type: ignore[arg-type]
    if kind in _WHOLE:
        return _whole(name, kind, given["lo"], given["hi"], given.get("buckets"), missing)  # type: ignore[arg-type]
    if kind in ("real", "paper"):
        return (real if kind == "real" else paper_buckets)(name, given["lo"], given["hi"], given["buckets"], missing)
    if kind == "boolean":
        return boolean(name, missing)
    if kind == "codes":
        return codes(name, given["buckets"], missing)
    return (nominal if kind == "nominal" else ordered)(name, given["labels"], missing)


def load_schema(path: str | PathLike[str]) -> Schema:
    """The schema in a file: ``[[attribute]]`` tables in .toml, else the canonical record as JSON."""
    try:
        text = Path(path).read_text("utf-8")
        parsed = tomllib.loads(text) if Path(path).suffix == ".toml" else json.loads(text)
    except (OSError, ValueError) as error:
        raise ValueError(f"expected a readable schema file, got {str(path)!r}: {error}") from None
    return _from_toml(parsed, str(path)) if Path(path).suffix == ".toml" else Schema.from_record(parsed)


def _from_toml(parsed: Mapping[str, Any], where: str) -> Schema:
    tables = parsed.get("attribute")
    if set(parsed) != {"attribute"} or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise ValueError(
            f"expected [[attribute]] tables and nothing else in {where}, got {', '.join(parsed) or 'none'}"
        )
    return Schema(tuple(_from_table(t, f"table {i} of {where}") for i, t in enumerate(tables, start=1)))


def dump_schema(schema: Schema, path: str | PathLike[str]) -> None:
    """Write a file that `load_schema` reads back as an equal schema."""
    if Path(path).suffix != ".toml":
        Path(path).write_bytes(canonical_bytes(schema.record()) + b"\n")
        return
    text = "\n".join(_toml(a) for a in schema.attributes)
    if _from_toml(tomllib.loads(text), str(path)) != schema:
        raise ValueError(f"expected a schema that TOML can hold, use a .json file for {', '.join(schema.names)}")
    Path(path).write_text(text, "utf-8")


def attribute_text(attribute: Attribute) -> str:
    """The text that `parse_attribute` reads back as an equal attribute."""
    table = _table(attribute)
    missing = table.pop("missing", None)
    listed = table.get("labels", table.get("edges"))
    body = "|".join(map(str, listed)) if listed else ",".join(str(table[f]) for f in _BUCKETED if f in table)
    text = f"{attribute.name}={table['kind']},{body}" + (f",missing={missing}" if missing is not None else "")
    try:
        same = parse_attribute(text) == attribute
    except ValueError:
        same = False
    if not same:
        raise ValueError(f"expected an attribute whose names have no marks of the text form, got {attribute.name}")
    return text


def _toml(attribute: Attribute) -> str:
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in _table(attribute).items()]
    return "\n".join(["[[attribute]]", *lines, ""])


def _table(attribute: Attribute) -> dict[str, Any]:
    """What a file says about an attribute, by field."""
    kind, lo, hi, edges = attribute.kind, attribute.lo, attribute.hi, attribute.edges
    table: dict[str, Any] = {"name": attribute.name, "kind": kind}
    if attribute.labels:
        table["labels"] = list(attribute.labels)
    elif edges is None or edges == _equal(attribute, len(edges) + 1):
        table |= {"lo": spoken(kind, lo), "hi": spoken(kind, hi)}
        table |= {} if edges is None else {"buckets": len(edges) + 1}
    elif kind == "real" and len(edges) > 1 and edges == (*equal_edges(lo, hi, len(edges)), hi):
        table |= {
            "kind": "paper",
            "lo": spoken(kind, lo),
            "hi": spoken(kind, hi),
            "buckets": len(edges) + 1,
        }
    else:
        table["edges"] = [spoken(kind, x) for x in (lo, *edges, hi)]
    if attribute.missing == "cell":
        table["missing"] = "cell"
    elif attribute.missing_code is not None:  # any value of the bucket has the same meaning
        code = attribute.missing_code
        table["missing"] = attribute.labels[code] if attribute.labels else spoken(kind, start_of(attribute, code))
    return table


def _equal(attribute: Attribute, buckets: int) -> tuple[Number, ...]:
    make: Any = equal_edges if attribute.kind == "real" else equal_integer_edges
    return make(attribute.lo, attribute.hi, buckets)


def start_of(attribute: Attribute, code: int) -> Number:
    """The first number of a code's bucket."""
    if attribute.edges is None:
        return attribute.lo + code
    return attribute.lo if code == 0 else attribute.edges[code - 1]
