"""From a private value to its code: the number of declared edges at or below it, by comparison."""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

from ahead_ldp.device.canonical import Record, digest, expect, fields, integer
from ahead_ldp.device.refusals import ValueRefused
from ahead_ldp.device.texts import check_name

Kind = Literal["integer", "real", "date", "time", "datetime", "ordered", "nominal"]
Number = int | float

KINDS = ("integer", "real", "date", "time", "datetime", "ordered", "nominal")
MISSING = ("refused", "value", "cell")
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_MOST_CODES = 2**31 - 2
_MOST_ATTRIBUTES = 1024
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})  # of HTML


@dataclass(frozen=True, slots=True)
class Attribute:
    """One declared attribute: what values it takes and how they become codes ``0 .. size-1``.

    Bounds are declared, never read from private data. Dates count in days, times of day and moments in
    seconds (moments without a zone are taken as UTC); inside they are integers. ``edges`` are the inner bucket
    borders; ``None`` gives every integer, or every label, a code of its own. The value ``hi`` belongs to the
    last bucket, so an edge may equal it: then the last bucket is the maximum alone.

    ``missing`` says what an absent value is: ``"refused"``; ``"value"``, counted as ``missing_value``; or
    ``"cell"``, a last code of its own, outside the order.
    """

    name: str
    kind: Kind
    lo: Number = 0
    hi: Number = 0
    edges: tuple[Number, ...] | None = None
    labels: tuple[str, ...] = ()
    missing: Literal["refused", "value", "cell"] = "refused"
    missing_value: Any = field(default=None, compare=False)
    missing_code: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Refuse a declaration that does not give every legal value exactly one code."""
        check_name(self.name, "the name of an attribute")
        expect(self.kind in KINDS, f"the kind of {self.name} to be one of {', '.join(KINDS)}, got {self.kind!r}")
        known = f"missing of {self.name} to be one of {', '.join(MISSING)}, got {self.missing!r}"
        expect(self.missing in MISSING, known)
        for listed in (self.labels, () if self.edges is None else self.edges):
            if not isinstance(listed, tuple):  # in the text "SML" the category "ML" would be found at 1
                raise ValueError(f"expected categories and edges of {self.name} as tuples, got {listed!r}")
        self._check_labels() if self.kind in ("ordered", "nominal") else self._check_bounds()
        few = f"at most {_MOST_CODES} codes for {self.name}, got {self.ordered_size}"
        expect(self.ordered_size <= _MOST_CODES, few)
        if self.missing == "cell":
            object.__setattr__(self, "missing_code", self.ordered_size)
        elif self.missing == "value":
            try:
                object.__setattr__(self, "missing_code", self._code(self.missing_value))
            except ValueRefused:
                raise ValueError(
                    f"expected missing_value of {self.name} to be in its range, got {self.missing_value!r}"
                ) from None
        else:
            expect(self.missing_value is None, f"no missing_value for {self.name} unless missing='value'")

    def _check_labels(self) -> None:
        distinct = f"the categories of {self.name} to be distinct and not none, got {list(self.labels)}"
        expect(0 < len(self.labels) == len(set(self.labels)), distinct)
        for label in self.labels:
            check_name(label, f"a category of {self.name}")
        expect(
            self.edges is None and not (self.lo or self.hi), f"no bounds and edges for the categories of {self.name}"
        )

    def _check_bounds(self) -> None:
        legal = _is_double if self.kind == "real" else _is_whole
        for bound in (self.lo, self.hi, *(self.edges or ())):
            if not legal(bound):
                what = "finite doubles" if self.kind == "real" else "integers below 2**53"
                raise ValueError(f"expected {what} as bounds of {self.name}, got {bound!r}")
        real = self.kind == "real"
        expect(not self.labels, f"no categories for {self.name} of kind {self.kind}")
        rises = self.lo < self.hi or (self.lo == self.hi and not real)
        expect(rises, f"lo < hi for {self.name}, got {self.lo!r} and {self.hi!r}")
        expect(not real or self.edges is not None, f"buckets or edges for the real attribute {self.name}")
        for a, b in pairwise((self.lo, *(self.edges or ()))):
            if not a < b <= self.hi:
                rule = f"to rise strictly inside ({self.lo!r}, {self.hi!r}]"
                raise ValueError(f"expected the edges of {self.name} {rule}, got {b!r} after {a!r}")

    def __repr__(self) -> str:
        """Short: the declared range and the number of codes, not every edge."""
        return f"<{self.name}: {self.kind}, {self.range_text}, {self.size} codes>"

    @property
    def range_text(self) -> str:
        """The declared bounds, or the first categories, as people write them."""
        if self.labels:
            return ", ".join(self.labels[:6]) + ", ..." * (len(self.labels) > 6)
        return f"{spoken(self.kind, self.lo)}..{spoken(self.kind, self.hi)}"

    @property
    def ordered_size(self) -> int:
        """Codes without the cell for missing values."""
        if self.labels:
            return len(self.labels)
        return int(self.hi - self.lo) + 1 if self.edges is None else len(self.edges) + 1

    @property
    def size(self) -> int:
        """All codes."""
        return self.ordered_size + (self.missing == "cell")

    def code(self, value: object) -> int:
        """The code of one private value; ``None`` is a missing one. Errors never show the value."""
        if value is None:
            if self.missing_code is None:
                raise ValueRefused(f"{self.name} is missing, and the declaration refuses that")
            return self.missing_code
        return self._code(value)

    def _code(self, value: object) -> int:
        if self.labels:
            text = _text(value)
            if text not in self.labels:
                raise ValueRefused(f"{self.name} is none of the declared categories")
            return self.labels.index(text)
        number = self.number(value)
        if not self.lo <= number <= self.hi:
            raise ValueRefused(f"{self.name} is outside the declared range")
        return int(number - self.lo) if self.edges is None else bisect_right(self.edges, number)

    def number(self, value: object) -> Number:
        """The number behind a value: days for a date, seconds for a time, else itself. No range check."""
        number = _read(self.kind, value)
        if number is None:
            raise ValueRefused(f"{self.name} is not a value of kind {self.kind}")
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueRefused(f"{self.name} is not a finite number")
        return number

    def stand_in(self, value: object, spare: int) -> int:
        """The code that counts for a value which ``code`` refuses, given a code drawn evenly (decision 010).

        A number, date or time beyond the declared ends counts as the nearer one. What has no place in the order
        (missing where that is refused, of another kind, no declared category) is missing where the declaration has a
        code for that, else ``spare``.
        """
        number = None if self.labels else self._place(value)
        if number is not None and number < self.lo:
            return 0
        if number is not None and number > self.hi:
            return self.ordered_size - 1
        return spare if self.missing_code is None else self.missing_code

    def _place(self, value: object) -> Number | None:
        """Where a value stands in the order, if anywhere; a number may be too large for its kind, or infinite."""
        number = _read(self.kind, value)
        if number is None and self.kind in ("integer", "real"):
            return _plain_number(value)
        return number

    def record(self) -> Record:
        """The canonical form. Reals are decimal strings that read back as the same double."""
        write = (lambda x: repr(x + 0.0)) if self.kind == "real" else int
        record: Record = {
            "name": self.name,
            "kind": self.kind,
            "missing": self.missing,
            "missing_code": self.missing_code,
        }
        if self.labels:
            return {**record, "labels": list(self.labels)}
        edges = None if self.edges is None else [write(x) for x in self.edges]
        return {**record, "lo": write(self.lo), "hi": write(self.hi), "edges": edges}

    @classmethod
    def from_record(cls, record: object) -> Attribute:
        """The attribute behind its canonical form."""
        kind = record.get("kind") if isinstance(record, dict) else None
        if kind not in KINDS:
            raise ValueError(f"expected the kind of an attribute to be one of {', '.join(KINDS)}")
        inner = "labels" if kind in ("ordered", "nominal") else "lo hi edges"
        named = fields(record, f"name kind missing missing_code {inner}", "the attribute")
        read = _real if kind == "real" else _whole
        if inner == "labels":
            attribute = cls(named["name"], kind, labels=_texts(named["labels"]))
        else:
            edges = named["edges"]
            expect(edges is None or isinstance(edges, list), "edges to be a list")
            borders = None if edges is None else tuple(read(x) for x in edges)
            attribute = cls(named["name"], kind, read(named["lo"]), read(named["hi"]), borders)
        return attribute._with_missing(named["missing"], named["missing_code"])

    def _with_missing(self, missing: Any, code: object) -> Attribute:
        """This attribute with the wire's reading of missing values, where only the code of one is known."""
        expect(missing in MISSING, f"missing of {self.name} to be one of {', '.join(MISSING)}")
        last = self.ordered_size
        if missing == "value":
            integer(code, f"missing_code of {self.name}", 0, last - 1)
        else:
            right = code == (last if missing == "cell" else None) and not isinstance(code, bool | float)
            expect(right, f"another missing_code of {self.name} for missing={missing!r}")
        object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "missing_code", code)
        return self


@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of a collection, in order, with names that differ."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        """Refuse none at all, too many, or two of the same name."""
        count, names = len(self.attributes), [a.name for a in self.attributes]
        expect(1 <= count <= _MOST_ATTRIBUTES, f"1 to {_MOST_ATTRIBUTES} attributes, got {count}")
        expect(len(set(names)) == count, f"attributes of different names, got {names}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(a.name for a in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Codes of each attribute."""
        return tuple(a.size for a in self.attributes)

    def __repr__(self) -> str:
        """Short."""
        return f"<Schema of {', '.join(map(repr, self.attributes[:8]))}{', ...' * (len(self.attributes) > 8)}>"

    def _repr_html_(self) -> str:
        """A table of the attributes, each with a drawing of its buckets, for notebooks."""
        names = "".join(f"<th>{name}</th>" for name in ("attribute", "kind", "declared", "codes", "missing", "buckets"))
        rows = []
        for a in self.attributes:
            cells = (a.name, a.kind, a.range_text, f"{a.size:,}", a.missing)
            row = "".join(f'<td style="text-align:left">{cell.translate(_ESCAPES)}</td>' for cell in cells)
            rows.append(f"<tr>{row}<td>{_strip(a)}</td></tr>")
        return f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def index(self, name: str) -> int:
        """The place of an attribute."""
        expect(name in self.names, f"an attribute among {', '.join(self.names)}, got {name!r}")
        return self.names.index(name)

    def record(self) -> Record:
        """The canonical form."""
        return {"type": "schema", "version": 1, "attributes": [a.record() for a in self.attributes]}

    def digest(self) -> str:
        """SHA-256 of the canonical form."""
        return digest(self.record())

    @classmethod
    def from_record(cls, record: object) -> Schema:
        """The schema behind its canonical form."""
        named = fields(record, "type version attributes", "the schema")
        is_schema = named["type"] == "schema" and isinstance(named["attributes"], list)
        expect(is_schema, "a schema record with a list of attributes")
        integer(named["version"], "version", 1, 1)
        return cls(tuple(Attribute.from_record(a) for a in named["attributes"]))


def _strip(a: Attribute, width: int = 180, height: int = 16) -> str:
    """The borders of an attribute's buckets as lines; at most 90 of them."""
    first, last = (0, a.ordered_size) if a.edges is None else (a.lo, a.hi)
    inner = range(1, a.ordered_size) if a.edges is None else a.edges
    borders = [first, *inner[:: max(1, len(inner) // 90)], last]
    places = [f"{1 + (width - 2) * (x - first) / ((last - first) or 1):.1f}" for x in borders]
    lines = "".join(f'<line x1="{x}" y1="2" x2="{x}" y2="{height - 2}"/>' for x in places)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" aria-label="{a.ordered_size} buckets" stroke="currentColor">{lines}</svg>'


def spoken(kind: str, number: Number) -> Any:
    """A number as people write it: ISO text for dates and times, else itself."""
    if kind == "real":
        return float(number)
    if kind == "date":
        return (dt.date(1970, 1, 1) + dt.timedelta(days=number)).isoformat()
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=number) if kind != "integer" else None
    if kind == "time" and moment is not None:
        return moment.time().isoformat()
    return moment.isoformat() if moment is not None else int(number)


def equal_edges(lo: Number, hi: Number, buckets: int) -> tuple[float, ...]:
    """The inner edges of equal buckets of [lo, hi], each the double nearest to the exact quotient."""
    integer(buckets, "buckets", 1, _MOST_CODES)
    low, width = Fraction(lo), Fraction(hi) - Fraction(lo)
    return tuple(float(low + width * i / buckets) for i in range(1, buckets))


def equal_integer_edges(lo: int, hi: int, buckets: int) -> tuple[int, ...]:
    """The inner edges of buckets of the integers lo..hi, as equal as possible."""
    integer(buckets, "buckets", 1, _MOST_CODES)
    return tuple(lo + i * (hi - lo + 1) // buckets for i in range(1, buckets))


def day_number(value: object) -> int:
    """Days since 1970-01-01 of a date or its text, YYYY-MM-DD."""
    if isinstance(value, dt.datetime):
        raise TypeError("a moment is not a date")
    day = value if isinstance(value, dt.date) else dt.date.fromisoformat(_match(_DAY, value))
    return day.toordinal() - _EPOCH_DAY


def second_of_day(value: object) -> int:
    """Seconds since midnight of a time of day or its text, HH:MM[:SS[.f]]; fractions of a second are dropped."""
    time = value if isinstance(value, dt.time) else dt.time.fromisoformat(_match(_CLOCK, value))
    return time.hour * 3600 + time.minute * 60 + time.second


def second_of_epoch(value: object) -> int:
    """Seconds since 1970-01-01T00:00Z of a moment or its text; without a zone it is taken as UTC.

    The text is a day (its first second), or a day, ``T`` or a space, a time of day, and nothing, ``Z`` or a zone such
    as ``+02:00``.
    """
    moment = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(_match(_MOMENT, value))
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)


# A private value may be any object, with methods that raise anything. It is looked at in the next three functions only.
# Each gives a plain number or text, or None, and never raises: no value stops a device that has promised a report.


def _read(kind: str, value: object) -> Number | None:
    """The number that a value of this kind stands for; None for whatever is no such value."""
    try:
        return _plain_number(_READERS[kind](value))
    except Exception:  # a value's own methods decide what is raised
        return None


def _plain_number(value: object) -> Number | None:
    """An integer or a float, whatever kind is asked for: its size says at which end it lies."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return int.__add__(value, 0) if isinstance(value, int) else float.__add__(value, 0.0)  # of subclasses too
    except Exception:
        return None


def _text(value: object) -> str | None:
    """The text of a value that is one."""
    try:
        return str.__str__(value) if isinstance(value, str) else None
    except Exception:
        return None


def _read_integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _read_real(value: Any) -> float:
    if isinstance(value, bool | str | bytes):
        raise TypeError
    return float(value)


_READERS: dict[str, Any] = {
    "integer": _read_integer,
    "real": _read_real,
    "date": day_number,
    "time": second_of_day,
    "datetime": second_of_epoch,
}


# The one grammar of dates and times, the same in every language; what a library reads beyond it is refused.
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_MOMENT = rf"{_DAY}([T ]{_CLOCK}(Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?"


def _match(pattern: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise ValueError("another spelling")
    return value


def _real(text: object) -> float:
    try:
        value = float(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    if value is None or repr(value + 0.0) != text:  # -0.0 is 0.0
        raise ValueError("expected the shortest decimal string of a double in the bounds of a real attribute")
    return value


def _is_double(value: object) -> bool:
    """Whether a bound is a finite double, or an integer that is one exactly: the wire carries doubles."""
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) is int and abs(value) <= 2**53


def _is_whole(value: object) -> bool:
    return type(value) is int and abs(value) < 2**53


def _whole(value: object) -> int:
    return integer(value, "a bound", -(2**53) + 1)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise ValueError("expected categories to be a list of texts")
    return tuple(value)
