"""Questions people ask of the data, and the boxes of codes that they mean.

People speak closed ranges in their own units. Inside, a box is half open, ``[lo, hi)`` for each attribute, in
code coordinates: code c covers [c, c + 1), so an end inside a bucket is a fraction. Whole numbers share a
bucket evenly, reals linearly.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import ceil, floor, prod
from typing import Any, Literal

import numpy as np

from ahead_ldp.device.codes import Attribute, Number, Schema
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.attributes import public_number
from ahead_ldp.schema.coding import declared_range

Snap = Literal["outward", "inward", "nearest"]
Span = tuple[float, float]

_MOST_BOXES = 2**16  # of one query


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
        self.text, self.left, at = text, list[tuple[str, str]](), 0
        end = len(text.rstrip())
        while at < end:
            token = _TOKEN.match(text, at)
            if token is None:
                raise self.error(f"no {text[at:].lstrip()[0]!r} outside quotes")
            quoted, mark, bare = token["quoted"], token["mark"], token["bare"]
            if quoted is not None:
                self.left.append(("word", re.sub(r"\\(.)", r"\1", quoted[1:-1])))
            else:
                is_mark = mark is not None or bare in _KEYWORDS
                self.left.append(("mark" if is_mark else "word", mark or bare))
            at = token.end()
        self.left.reverse()

    def error(self, rule: str) -> ValueError:
        """What to raise where the rule is broken."""
        return ValueError(f"expected {rule} in the query {self.text!r}; conditions are {_FORMS}, joined by and")

    def word(self, what: str) -> str:
        """The next token, which must be a word."""
        if not self.left or self.left[-1][0] != "word":
            raise self.error(what)
        return self.left.pop()[1]

    def mark(self, *choices: str) -> str:
        """The next token, which must be one of these marks."""
        if not self.left or self.left[-1][0] != "mark" or self.left[-1][1] not in choices:
            raise self.error(" or ".join(choices))
        return self.left.pop()[1]


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
        if not tokens.left:
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
    if tokens.left and tokens.left[-1] == ("mark", "{"):
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
