"""Questions people ask of the data, in their own units, where ranges are closed; `boxes` has what they are in codes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ahead_ldp.schema.attributes import midnight_as_day

Snap = Literal["outward", "inward", "nearest"]


@dataclass(frozen=True, slots=True)
class Beyond:
    """The end of a range that is not part of it: ``(Beyond(30), None)`` is "above 30"."""

    value: Any


@dataclass(frozen=True, slots=True)
class Either:
    """Several conditions on one attribute, of which one must hold: ``Either(((None, 19), (65, None)))``."""

    conditions: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Give every condition a plain form."""
        given: object = self.conditions
        if not isinstance(given, tuple | list) or not given:
            raise ValueError(f"expected a tuple of conditions of which one holds, got {given!r}")
        object.__setattr__(self, "conditions", tuple(_condition("an attribute", c) for c in self.conditions))


@dataclass(frozen=True, slots=True)
class Query:
    """Conditions by attribute name; attributes not named are unrestricted, missing values included.

    A condition is ``(lo, hi)``, closed, with ``None`` for an open end and `Beyond` for one that is left out; a set or
    list of values; ``None`` for "missing"; `Either` of several; or one value. Values are the user's: numbers, dates or
    their text, labels. A range never includes missing values, so ``(None, None)`` means "not missing". Queries are
    checked when they meet a schema.
    """

    conditions: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Give every condition a plain form."""
        given: object = self.conditions  # callers without types may pass anything
        if not isinstance(given, Mapping):
            got = f"{given!r}; a text is asked without a Query"
            raise ValueError(f"expected conditions by attribute name, such as {{'age': (30, 39)}}, got {got}")
        plain = {name: _condition(name, value) for name, value in self.conditions.items()}
        object.__setattr__(self, "conditions", plain)

    def __str__(self) -> str:
        """The text that `parse_query` reads back."""
        return " and ".join(_text(name, condition) for name, condition in self.conditions.items())

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.conditions)))


def _condition(name: str, value: Any) -> Any:
    if isinstance(value, set | frozenset | list):
        if not value:
            raise ValueError(f"expected at least one value in the set for {name}, got none")
        if None in value:
            raise ValueError(f"expected values in the set for {name}, got None; a range is a tuple (lo, hi)")
        return frozenset(value)
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(f"expected (lo, hi) for {name}, got {value!r}; several values are a list")
        return value
    return value if value is None or isinstance(value, Either) else (value, value)


Asked = Query | str | Mapping[str, Any] | tuple[Any, ...]

_SIGNS = ("=", "==", ">", ">=", "<", "<=", "in")


def as_query(asked: object) -> Query:
    """A query in any of its forms.

    A text, a `Query`, conditions by name such as ``{"age": (30, 39), "town": ["A", "B"]}``, or a tuple for one
    attribute: ``("age", 30, 39)``, ``("town", "A")`` or ``("age", ">=", 30)``.
    """
    if isinstance(asked, Query):
        return asked
    if isinstance(asked, str):
        return parse_query(asked)
    if isinstance(asked, Mapping):
        return Query(asked)
    if not isinstance(asked, tuple) or len(asked) not in (2, 3) or not isinstance(asked[0], str):
        forms = 'a text such as "age in 30..39", a Query, {"age": (30, 39)} or ("age", 30, 39)'
        raise ValueError(f"expected a query as {forms}, got {asked!r}")
    name, *rest = asked
    if len(rest) == 2 and isinstance(rest[0], str) and rest[0] in _SIGNS:
        return Query({name: _signed(*rest) if rest[0] != "in" else rest[1]})
    return Query({name: tuple(rest) if len(rest) == 2 else rest[0]})


def _signed(sign: str, value: Any) -> tuple[Any, Any]:
    """The range behind a comparison."""
    end = Beyond(value) if sign in (">", "<") else value
    return (None if sign in ("<", "<=") else end, None if sign in (">", ">=") else end)


# The text form.

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<mark>\.\.|<=|>=|==|[=<>{},])|(?P<bare>(?:(?!\.\.)[^\s"'{}=<>,])+))"""
)
_KEYWORDS = ("and", "in", "missing", "not")  # wherever they stand; "or" and "between" only where a sign may stand
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?")  # a number with its thousands apart
_FORMS = (
    "NAME in LO..HI, NAME between LO and HI, NAME in {A, B}, NAME = A, NAME > A, NAME >= A, NAME < A, NAME <= A, "
    "NAME missing or NAME not missing"
)


def _tokens(text: str) -> list[tuple[str, str]]:
    """The marks, bare words and quoted words of a text; what stands outside all of them is a token of its own."""
    tokens, at, end = list[tuple[str, str]](), 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            return [*tokens, ("odd", text[at:].lstrip()[0])]
        quoted, mark, bare = token["quoted"], token["mark"], token["bare"]
        if quoted is not None:
            tokens.append(("quoted", re.sub(r"\\(.)", r"\1", quoted[1:-1])))
        elif mark is not None or bare in _KEYWORDS:
            tokens.append(("mark", mark or bare))
        else:
            tokens += _bare(bare)
        at = token.end()
    return tokens


def _bare(word: str) -> list[tuple[str, str]]:
    """A bare word, and the parentheses around it: those at its ends that have no partner in it."""
    extra = word.count("(") - word.count(")")
    before = min(max(extra, 0), len(word) - len(word.lstrip("(")))
    after = min(max(-extra, 0), len(word) - len(word.rstrip(")")))
    inner = word[before : len(word) - after]
    return [("mark", "(")] * before + [("bare", inner)] * bool(inner) + [("mark", ")")] * after


def _is_one_of(token: tuple[str, str], choices: tuple[str, ...]) -> bool:
    """Whether a token is one of these marks or, not quoted, one of these words in any case."""
    kind, text = token
    return (kind == "mark" and text in choices) or (kind == "bare" and text.lower() in choices)


class _Reader:
    """The tokens of a query, read from the left; a quoted word is never a keyword."""

    def __init__(self, text: str) -> None:
        self.text, self.left = text, _tokens(text)
        if self.left and self.left[-1][0] == "odd":
            raise self.error(f"no {self.left[-1][1]!r} outside quotes")
        self.left.reverse()

    def error(self, rule: str) -> ValueError:
        """What to raise where the rule is broken."""
        kind, text = self.left[-1] if self.left else ("", "")
        marks = kind in ("odd", "quoted") or (kind == "mark" and text not in _KEYWORDS)
        quotes = "; a name or value with such marks in it stands in quotes" * marks
        joined = "joined by and; or joins conditions on one attribute"
        return ValueError(f"expected {rule} in the query {self.text!r}{quotes}; conditions are {_FORMS}, {joined}")

    def word(self, what: str) -> str:
        """The next token, which must be a word."""
        if not self.left or self.left[-1][0] == "mark":
            raise self.error(what)
        return self.left.pop()[1]

    def words(self, what: str, *ends: str) -> str:
        """The next token, and if it is a bare word those after it, up to a mark or one of the words ``ends``."""
        bare = bool(self.left) and self.left[-1][0] == "bare"
        text = self.word(what)
        while bare and self.left and self.left[-1][0] == "bare" and not self.sees(*ends) and not self._joins():
            text += f" {self.left.pop()[1]}"
        return text

    def _joins(self) -> bool:
        """Whether the next token is the ``or`` before another condition, not one inside a value ("by bus or train")."""
        if not self.sees("or"):
            return False
        for at, token in enumerate(reversed(self.left[:-1])):
            if _is_one_of(token, (*_SIGNS, "between", "missing", "not")):
                return True
            if token[0] == "mark" or _is_one_of(token, ("and", "or")):
                return at == 0
        return len(self.left) == 1

    def name(self) -> str:
        """The name of an attribute."""
        return self.words("the name of an attribute", "between", "in", "missing", "not", "!")

    def value(self, what: str) -> str:
        """A value outside a set. Commas and spaces between the thousands of a number are left out."""
        text = self.words(what, "and")
        while re.fullmatch(r"[+-]?\d{1,3}(,\d{3})*", text) and self.sees(",") and len(self.left) > 1:
            if self.left[-2][0] != "bare" or not re.fullmatch(r"\d{3}(\.\d+)?", self.left[-2][1]):
                break
            text += "".join(self.left.pop()[1] for _ in range(2))
        return re.sub("[ ,]", "", text) if _GROUPED.fullmatch(text) else text

    def sees(self, *choices: str) -> bool:
        """Whether the next token is one of these marks or, not quoted, one of these words in any case."""
        return bool(self.left) and _is_one_of(self.left[-1], choices)

    def mark(self, *choices: str) -> str:
        """The next token, which must be one of these marks."""
        if not self.sees(*choices):
            raise self.error(" or ".join(choices))
        return self.left.pop()[1].lower()


def parse_query(text: str) -> Query:
    """The query behind a text such as ``salary in 100k..120k and size in {S, M}``.

    Names and values may have spaces; those with marks in them are quoted. An attribute may stand twice only with a
    lower and an upper end, or in conditions joined by ``or``; these are put in parentheses where the query has others.
    """
    reader = _Reader(text)
    conditions: dict[str, Any] = {}
    bare = False  # an or without parentheses
    while True:
        inside = reader.sees("(")
        name, alternatives = _alternatives(reader)
        bare = bare or (len(alternatives) > 1 and not inside)
        new = alternatives[0] if len(alternatives) == 1 else Either(tuple(alternatives))
        conditions[name] = _both(reader, name, conditions[name], new) if name in conditions else new
        if bare and (reader.left or len(conditions) > 1):
            raise reader.error("parentheses around the conditions joined by or")
        if not reader.left:
            return Query(conditions)
        reader.mark("and")


def _alternatives(reader: _Reader) -> tuple[str, list[Any]]:
    """Conditions on one attribute joined by or, in parentheses or not; the name, and one or more of them."""
    inside = reader.sees("(")
    if inside:
        reader.mark("(")
    name = reader.name()
    alternatives = [_parse_condition(reader)]
    while reader.sees("or") or (inside and reader.sees("and")):
        joined, other = reader.mark("or", "and"), reader.name()
        if other != name:
            way = "weighted(['a', 'b', 'a and b'], [1, 1, -1]) is the share of a or b"
            raise reader.error(f"{joined} between conditions on one attribute here, got {name} and {other} ({way})")
        new = _parse_condition(reader)
        if joined == "or":
            alternatives.append(new)
        else:
            alternatives[-1] = _both(reader, name, alternatives[-1], new)
    if inside:
        reader.mark("or", ")")
    return name, alternatives


def _parse_condition(reader: _Reader) -> Any:
    if not reader.sees(*_SIGNS, "between", "missing", "not"):
        raise reader.error("in, =, >, >=, <, <=, between, missing or not")
    mark = reader.mark(*_SIGNS, "between", "missing", "not")
    if mark == "missing":
        return None
    if mark == "not":
        reader.mark("missing")
        return (None, None)
    if mark == "between":
        lo = reader.value("a value after between")
        reader.mark("and")
        return (lo, reader.value("a value after between and and"))
    if mark != "in":
        return _signed(mark, reader.value(f"a value after {mark}"))
    if reader.sees("{"):
        reader.mark("{")
        values = {reader.words("a value in the set")}
        while reader.mark(",", "}") == ",":
            values.add(reader.words("a value in the set"))
        return values
    lo = reader.value("a value after in")
    reader.mark("..")
    return (lo, reader.value("a value after .."))


def _both(reader: _Reader, name: str, old: Any, new: Any) -> tuple[Any, Any]:
    if isinstance(old, tuple) and isinstance(new, tuple):
        if old[1] is None and new[0] is None:
            return (old[0], new[1])
        if old[0] is None and new[1] is None:
            return (new[0], old[1])
    raise reader.error(f"{name} to stand once, or with one >= and one <=")


def _text(name: str, condition: Any) -> str:
    if isinstance(condition, Either):
        return f"({' or '.join(_text(name, c) for c in condition.conditions)})"
    quoted = _quoted(name)
    if condition is None:
        return f"{quoted} missing"
    if isinstance(condition, frozenset):
        return f"{quoted} in {{{', '.join(sorted(map(_quoted, condition)))}}}"
    lo, hi = condition
    if lo is None and hi is None:
        return f"{quoted} not missing"
    if lo is None or hi is None or isinstance(lo, Beyond) or isinstance(hi, Beyond):
        ends = [_one_end(quoted, ">", lo)] * (lo is not None) + [_one_end(quoted, "<", hi)] * (hi is not None)
        return " and ".join(ends)
    return f"{quoted} = {_quoted(lo)}" if lo is hi else f"{quoted} in {_quoted(lo)}..{_quoted(hi)}"


def _one_end(name: str, sign: str, end: Any) -> str:
    return f"{name} {sign} {_quoted(end.value)}" if isinstance(end, Beyond) else f"{name} {sign}= {_quoted(end)}"


def _quoted(value: Any) -> str:
    text = str(midnight_as_day(value))
    if _tokens(text) == [("bare", text)] and text[-1] != "." and not set("()") & set(text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
