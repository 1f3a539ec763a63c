"""A first draft of a schema, read off data, for somebody to review.

A bound that is read from the data is a value of one of the people: whoever publishes it gives that value away, and no
epsilon covers it. So a draft is no schema. It says what was read from the data, and becomes a schema when every such
line has been replaced by a declaration that does not depend on the data, or accepted in so many words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.texts import LONGEST_NAME, check_name
from ahead_ldp.schema import attributes as declare
from ahead_ldp.schema.columns import read_columns
from ahead_ldp.schema.fitting import is_missing

_MOST_ALONE = 128  # whole numbers that each have a code of their own; more are put in buckets
_MOST_CATEGORIES = 64
_LARGEST = 2.0**52  # of a number; rounded outward it is below 2**53, the most that a bound may be
_NAME = f"1 to {LONGEST_NAME} printable characters without spaces around"
WARNING = (
    "Bounds and categories marked 'from data' are values of people in the data. Publishing them gives these values "
    "away, and no epsilon covers that. Replace them by what you know without the data."
)


@dataclass(frozen=True, slots=True)
class Draft:
    """Attributes as the data suggest them. ``from_data`` says of which ones bounds or categories were read there."""

    attributes: tuple[Attribute, ...]
    from_data: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)  # columns that suggest nothing, and why

    def review(self, **declared: object) -> Draft:
        """The draft with declarations of yours in place of what was read.

        Each is an attribute, a text such as ``"age=integer,18,99"``, the two bounds ``(18, 99)``, or a list of
        categories.
        """
        known = {a.name: a for a in self.attributes}
        if unknown := [name for name in declared if name not in known]:
            raise ValueError(f"expected attributes among {', '.join(known)}, got {', '.join(unknown)}")
        new = known | {name: _reviewed(known[name], given) for name, given in declared.items()}
        left = tuple(name for name in self.from_data if name not in declared)
        return dataclasses.replace(self, attributes=tuple(new.values()), from_data=left)

    def schema(self, accept: bool = False) -> Schema:
        """The schema, once nothing in it is from the data; ``accept`` takes it as it is, for experiments."""
        if self.from_data and not accept:
            way = "give bounds of your own with review(NAME=(LO, HI)), or take them as they are with accept=True"
            raise ValueError(f"expected a reviewed draft: {', '.join(self.from_data)} read from data; {way}")
        return Schema(self.attributes)

    def __str__(self) -> str:
        lines = [f"# {WARNING}"] * bool(self.from_data)
        for a in self.attributes:
            lines.append(_line(a) + "  # from data" * (a.name in self.from_data))
        return "\n".join(lines + [f"# {name}: left out, {why}" for name, why in self.left_out.items()])

    def __repr__(self) -> str:
        flagged = f", to review: {', '.join(self.from_data)}" if self.from_data else ""
        return f"<Draft of {', '.join(a.name for a in self.attributes)}{flagged}>"

    def _repr_html_(self) -> str:
        """The attributes, and what has to be reviewed, for notebooks."""
        note = f"<p><strong>To review: {escape(', '.join(self.from_data))}.</strong> {escape(WARNING)}</p>"
        table = Schema(self.attributes)._repr_html_() if self.attributes else ""
        left = "".join(f"<p>{escape(name)}: left out, {escape(why)}</p>" for name, why in self.left_out.items())
        return f"{note if self.from_data else ''}{table}{left}"


def _line(attribute: Attribute) -> str:
    try:
        return declare.attribute_text(attribute)
    except ValueError:  # a name that the text form cannot hold
        return f"# {attribute!r}"


def _reviewed(read: Attribute, given: object) -> Attribute:
    if isinstance(given, str | Attribute):
        (attribute,) = declare.as_schema(given).attributes
        if attribute.name != read.name:
            raise ValueError(f"expected a declaration of {read.name}, got one of {attribute.name}")
        return attribute
    missing = "cell" if read.missing == "cell" else "refused"
    if isinstance(given, list) and read.labels:
        return (declare.nominal if read.kind == "nominal" else declare.ordered)(read.name, given, missing)
    if not isinstance(given, tuple) or len(given) != 2 or read.labels:
        form = "a list of categories" if read.labels else "two bounds (lo, hi)"
        raise ValueError(f"expected {form}, an attribute or its text for {read.name}, got {given!r}")
    return _ranged(read.name, read.kind, *given, read.ordered_size if read.edges else None, missing)


def infer(data: Any, columns: Sequence[str] | None = None, *, buckets: int = 64) -> Draft:
    """A draft of a schema for a table in any form that `simulate` takes, for you to review.

    Kinds come from the columns' types. Bounds are the extremes in the data, moved outward to round numbers, whole years
    or whole days, and marked as read from the data, as categories are. Real numbers and long ranges have ``buckets``
    buckets. A column with missing values gets a cell for them.
    """
    if isinstance(buckets, bool) or not hasattr(buckets, "__index__") or buckets < 2:
        raise ValueError(f"expected buckets to be a whole number >= 2, got {buckets!r}")
    found, flagged, left_out = [], [], {}
    for name, column in read_columns(data, columns).items():
        read = _read(name, column, buckets)
        if isinstance(read, str):
            left_out[name] = read
            continue
        attribute, from_data = read
        found.append(attribute)
        flagged += [name] * from_data
    if not found:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or "no columns"
        raise ValueError(f"expected at least one column that suggests an attribute, got {why}")
    return Draft(tuple(found), tuple(flagged), left_out)


def _read(name: str, column: NDArray[Any], buckets: int) -> tuple[Attribute, bool] | str:
    """The attribute that a column suggests and whether anything in it is from the data; or why there is none."""
    if not _is_name(name):
        return f"its name is not {_NAME}"
    gone = np.fromiter((is_missing(x) for x in column), bool, column.size)
    present, missing = np.asarray(column)[~gone], "cell" if gone.any() else "refused"
    if not present.size:
        return "it has no values"
    types = {type(x) for x in present} if present.dtype == object else set()
    names = {kind.__name__ for kind in types}
    if present.dtype.kind == "b" or (types and all(issubclass(t, bool | np.bool_) for t in types)):
        return declare.boolean(name, missing), False
    if names == {"time"}:
        return declare.time(name, "00:00", "23:59:59", 24, missing), False
    if present.dtype.kind in "US" or types == {str}:
        return _categories(name, present, missing)
    if names and names <= {"date", "datetime", "Timestamp"}:
        present = np.array([str(x)[:19] for x in present], "datetime64[s]" if names != {"date"} else "datetime64[D]")
    elif types:
        try:
            present = present.astype(float)
        except (TypeError, ValueError):
            return f"it holds {', '.join(sorted(names))}"
    return _range(name, present, buckets, missing)


def _categories(name: str, present: NDArray[Any], missing: str) -> tuple[Attribute, bool] | str:
    labels = sorted({str(x) for x in present})
    if len(labels) > _MOST_CATEGORIES:
        return f"it has more than {_MOST_CATEGORIES} different texts"
    if not all(map(_is_name, labels)):
        return f"not all of its texts are {_NAME}"
    return declare.nominal(name, labels, missing), True


def _is_name(text: str) -> bool:
    try:
        check_name(text, "a name")
    except ValueError:
        return False
    return True


def _range(name: str, present: NDArray[Any], buckets: int, missing: str) -> tuple[Attribute, bool] | str:
    """From the least to the largest, both moved outward."""
    kind = present.dtype.kind
    if kind == "M":
        if (present == present.astype("datetime64[D]")).all():
            years = [int(str(x)[:4]) for x in (present.min(), present.max())]
            return _ranged(name, "date", f"{years[0]}-01-01", f"{years[1]}-12-31", buckets, missing), True
        days = [str(x.astype("datetime64[D]")) for x in (present.min(), present.max())]
        return _ranged(name, "datetime", f"{days[0]}T00:00", f"{days[1]}T23:59:59", buckets, missing), True
    if kind == "m":
        kind, present = "f", present / np.timedelta64(1, "s")
    if kind not in "iuf" or not np.isfinite(present).all():
        return "it holds numbers that are not finite" if kind == "f" else "its type has no kind"
    low, high = float(present.min()), float(present.max())
    if max(-low, high) >= _LARGEST:
        return "it holds numbers of 2**52 and more, as identifiers are"
    step = 10.0 ** floor(log10(high - low)) if high > low else 1.0
    low, high = floor(low / step) * step, ceil(high / step) * step
    if (present == np.floor(present)).all() and step >= 1:
        return _ranged(name, "integer", int(low), int(high), buckets, missing), True
    return _ranged(name, "real", low, max(high, low + step), buckets, missing), True


def _ranged(name: str, kind: str, low: Any, high: Any, buckets: int | None, missing: str) -> Attribute:
    if kind == "real":
        return declare.real(name, low, high, buckets or 2, missing)
    make = {"integer": declare.integer, "date": declare.date, "time": declare.time, "datetime": declare.datetime}[kind]
    alone = make(name, low, high, None, missing)
    few = buckets is None or alone.ordered_size <= max(buckets, _MOST_ALONE if kind == "integer" else 0)
    return alone if few else make(name, low, high, buckets, missing)
