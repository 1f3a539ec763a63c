"""Quantiles and means with their uncertainty, in the user's units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import (
    STRICT_NOTE,
    Answers,
    differing,
    kind_given,
    model_note,
    outside_notes,
    records,
    text_table,
)
from ahead_ldp.estimates.bands import Kind, reach
from ahead_ldp.estimates.cards import MOST_ROWS, card, whiskers
from ahead_ldp.estimates.frames import Backend, Framed
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.units import buckets, numbers_at, spoken, spoken_mean, text, unit


class StrictPlaces(Protocol):
    """Codes between which quantiles lie, whatever the data are like."""

    def codes(self, level: float, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """The first code of each interval, and one past the last."""


class StrictNumber(Protocol):
    """An interval of one number, from the reports alone."""

    def interval(self, level: float) -> tuple[float, float]:
        """Its ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles(Framed):
    """Values below which given shares of the people lie, read off one cumulative curve.

    The curve is monotone; an error in its height moves the place where it is crossed. Intervals hold the places whose
    interval for the share below them holds the level, so they stay inside the declared range. The standard error is
    half the way between the places one ``share_error`` below and above (the delta method, with the slope over that
    stretch).
    """

    attribute: Attribute
    levels: Floats  # (k,)
    share_error: Floats  # (k,) standard error of the curve where it crosses a level
    places: Floats  # (c,) positions among the codes
    curve: Floats  # (c,) share of people below each
    bias_not_included: Bools  # (k,)
    curve_error: Floats | None = None  # (c,) noise and bias at each place; left out, share_error around each level
    near: Answers | None = None  # shares below places around the levels: their joint law is the band's
    strict: StrictPlaces | None = None  # codes that the reports alone allow; None: nothing is known of them
    assumption: str = ""  # of the model's intervals
    backend: Backend | None = None  # of frames, where none is named

    def __len__(self) -> int:
        """How many levels."""
        return int(self.levels.size)

    def __eq__(self, other: object) -> bool:
        """The same levels, values and errors of the same attribute."""
        if not isinstance(other, Quantiles):
            return NotImplemented
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("levels", "places", "curve", "share_error")]
        return self.attribute == other.attribute and all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)

    def __hash__(self) -> int:
        return hash((self.attribute, self.levels.tobytes(), self.curve.tobytes()))

    def __repr__(self) -> str:
        """Short: the first values; `table` has them all, with their intervals."""
        values = [text(self.attribute, x, e) for x, e in zip(self._shown(), self.standard_error, strict=True)]
        shown = [f"{100 * level:g} %: {value}" for level, value in zip(self.levels, values, strict=True)]
        return f"<Quantiles of {self.attribute.name}: {', '.join(shown[:5])}{', ...' * (len(self) > 5)}>"

    def _repr_html_(self) -> str:
        """A table of the values with their intervals, for notebooks."""
        rows = self._rows(0.95, None)[:MOST_ROWS]
        low, high = self._ends(0.95, False)
        labels = [f"{row[0]}: {row[1]}" for row in rows]
        drawings = whiskers(self._numbers(self.levels)[:MOST_ROWS], low[:MOST_ROWS], high[:MOST_ROWS], labels)
        head = ["share below", self.attribute.name, "low", "high"]
        return card(f"Quantiles of {self.attribute.name}", head, rows, self.notes(), drawings, len(self) - len(rows))

    def _shown(self) -> Floats:
        """The numbers that texts are made of: whole where the values are."""
        numbers = self._numbers(self.levels)
        return spoken(self.attribute, numbers).astype(float) if self.attribute.kind == "integer" else numbers

    def _rows(self, level: float, kind: Kind | None) -> list[list[str]]:
        """Level, value and both ends of each interval, as people read them."""
        return [
            [f"{100 * x:g} %", *said] for x, said in zip(self.levels.tolist(), self._said(level, kind), strict=True)
        ]

    def table(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """The values with their intervals as text."""
        head = ["share below", self.attribute.name, "low", "high"]
        return "\n".join([text_table(head, self._rows(level, kind)), *self.notes(level, kind)])

    def records(self, level: float = 0.95, kind: Kind | None = None) -> list[dict[str, Any]]:
        """The columns as one record for each level, of values that JSON has."""
        return records(self.columns(level, kind))

    @property
    def value(self) -> NDArray[Any]:
        """The quantiles in the user's units; ``values`` is an older name."""
        return self.values

    @property
    def low(self) -> NDArray[Any]:
        """Lower ends of the 95 % intervals, each for itself; `interval` has other levels."""
        return self.interval()[0]

    @property
    def high(self) -> NDArray[Any]:
        """Upper ends of the 95 % intervals, each for itself."""
        return self.interval()[1]

    def _numbers(self, levels: Floats) -> Floats:
        clipped = np.clip(levels, 0.0, 1.0)
        return numbers_at(self.attribute, np.interp(clipped, self.curve, self.places))

    @property
    def values(self) -> NDArray[Any]:
        """The quantiles in the user's units."""
        return spoken(self.attribute, self._numbers(self.levels))

    @property
    def standard_error(self) -> Floats:
        """In the user's units: days for dates, seconds for times, codes for categories."""
        below, above = self._numbers(self.levels - self.share_error), self._numbers(self.levels + self.share_error)
        return (above - below) / 2

    def critical(self, level: float = 0.95, simultaneous: bool = False) -> tuple[float, str]:
        """How many errors of the curve an interval reaches, and by which rule: see ``Answers.critical``."""
        if not simultaneous or self.levels.size < 2:
            return reach(level, None, None)
        if self.near is None or self.near.joint is None:
            return reach(level, np.ones(self.levels.size), None)
        return self.near.critical(level, simultaneous=True)

    def interval(
        self, level: float = 0.95, simultaneous: bool = False, kind: Kind | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Intervals in the user's units: each for itself, or all at once, strict or the model's (``Answers``)."""
        low, high = self._ends(level, simultaneous, kind)
        return spoken(self.attribute, low), spoken(self.attribute, high)

    def _ends(self, level: float, simultaneous: bool, kind: Kind | None = None) -> tuple[Floats, Floats]:
        if kind_given(kind, self.strict) == "model":
            return self._model_ends(level, simultaneous)
        (low, high), at = self._strict_ends(level, simultaneous), self._numbers(self.levels)
        return np.minimum(low, at), np.maximum(high, at)

    @one_thread
    def _strict_ends(self, level: float, simultaneous: bool) -> tuple[Floats, Floats]:
        if self.strict is None:
            raise ValueError("expected quantiles that know their reports for strict intervals, got others")
        first, last = self.strict.codes(level, simultaneous and self.levels.size > 1)
        low = buckets(self.attribute, first.astype(np.int64))[0]
        return low, buckets(self.attribute, last.astype(np.int64) - 1)[1] - (self.attribute.kind != "real")

    def _model_ends(self, level: float, simultaneous: bool) -> tuple[Floats, Floats]:
        c = self.critical(level, simultaneous)[0]
        if self.curve_error is None:
            return self._numbers(self.levels - c * self.share_error), self._numbers(self.levels + c * self.share_error)
        upper = np.maximum.accumulate(self.curve + c * self.curve_error)
        lower = np.minimum.accumulate((self.curve - c * self.curve_error)[::-1])[::-1]
        first, last = (np.interp(self.levels, bound, self.places) for bound in (upper, lower))
        at = np.interp(self.levels, self.curve, self.places)
        return (
            numbers_at(self.attribute, np.minimum(np.where(np.isfinite(first), first, 0.0), at)),
            numbers_at(self.attribute, np.maximum(np.where(np.isfinite(last), last, self.places[-1]), at)),
        )

    def columns(self, level: float = 0.95, kind: Kind | None = None) -> dict[str, NDArray[Any]]:
        """Level, value, standard error, both intervals and mark."""
        low, high = self.interval(level, kind=kind)
        all_low, all_high = self.interval(level, simultaneous=True, kind=kind)
        numbers = {"level": self.levels, self.attribute.name: self.values, "standard_error": self.standard_error}
        ends = {"low": low, "high": high, "simultaneous_low": all_low, "simultaneous_high": all_high}
        return {**numbers, **ends, "bias_not_included": self.bias_not_included}

    def about(self, level: float = 0.95, kind: Kind | None = None) -> list[tuple[str, str, str]]:
        """Each quantile and both ends of its interval as people say them: in as many digits as the interval bears."""
        return [self._about(*ends) for ends in zip(self.values, *self.interval(level, kind=kind), strict=True)]

    def _about(self, value: Any, low: Any, high: Any) -> tuple[str, str, str]:
        """One of them; an interval that ends with a bucket of whole numbers ends at its border."""
        a = self.attribute
        if a.kind not in ("integer", "real"):
            return str(value), str(low), str(high)
        wide = float(high) - float(low)
        places = 1 - math.floor(math.log10(wide)) if wide > 0 else 0
        middle = round(float(value), min(places, 0) if a.kind == "integer" else places)
        last = float(high) + (a.kind == "integer" and a.edges is not None and high < a.hi)
        return text(a, middle), text(a, float(low)), text(a, last)

    def texts(self, level: float = 0.95, kind: Kind | None = None) -> list[str]:
        """Each quantile with its pointwise interval, as people read it: whole numbers are whole, dates are dates."""
        return [f"{value} [{low}, {high}]" for value, low, high in self._said(level, kind)]

    def _said(self, level: float, kind: Kind | None) -> list[tuple[str, ...]]:
        """Value and both ends of each interval as texts."""
        (low, high), errors = self._ends(level, False, kind), self.standard_error
        if kind_given(kind, self.strict) == "strict":
            errors = (high - low) / 4
        numbers = [self._numbers(self.levels), low, high]
        if self.attribute.kind == "integer":
            numbers = [spoken(self.attribute, xs).astype(float) for xs in numbers]
        written = ([text(self.attribute, x, e) for x, e in zip(xs, errors, strict=True)] for xs in numbers)
        return list(zip(*written, strict=True))

    def notes(self, level: float = 0.95, kind: Kind | None = None) -> list[str]:
        """What a reader of the intervals must know, a line each."""
        return notes_of([self], level, kind)

    def _compared(self, level: float) -> tuple[Floats, Floats, Bools]:
        """Widths of the strict intervals and of the model's, and which numbers lie outside the strict ones."""
        (low, high), (least, most) = self._strict_ends(level, False), self._model_ends(level, False)
        whole, at = float(self.attribute.kind != "real"), self._numbers(self.levels)
        outside = (np.floor(at) < low) | (np.floor(at) > high) if whole else (at < low) | (at > high)
        return high - low + whole, np.maximum(most - least, whole), outside


def notes_of(parts: list[Quantiles], level: float = 0.95, kind: Kind | None = None) -> list[str]:
    """What a reader of the quantiles of some attributes of one estimate must know, a line each."""
    if not parts:
        return []
    says = parts[0].assumption
    if kind_given(kind, parts[0].strict) == "model":
        return [model_note(says)] * bool(says)
    wide, narrow, outside = (np.concatenate(each) for each in zip(*(q._compared(level) for q in parts), strict=True))
    return [STRICT_NOTE, *differing(wide, narrow, says), *outside_notes(outside)]


@dataclass(frozen=True, slots=True, eq=False)
class Mean(Framed):
    """An average with its standard error. The middle of each bucket stands for the values inside it."""

    attribute: Attribute
    number: float
    standard_error: float  # in the user's units; days for dates, seconds for times
    bias_not_included: bool
    bias_error: float = 0.0  # of the density assumed inside cells, as a standard deviation
    strict: StrictNumber | None = None  # None: nothing is known of the reports
    assumption: str = ""  # of the model's interval
    backend: Backend | None = None  # of frames, where none is named

    def __eq__(self, other: object) -> bool:
        """The same average and error of the same attribute."""
        if not isinstance(other, Mean):
            return NotImplemented
        mine, theirs = ((m.attribute, m.number, m.standard_error, m.bias_error) for m in (self, other))
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.attribute, self.number))

    def __float__(self) -> float:
        return self.number

    def __repr__(self) -> str:
        return f"<Mean of {self.attribute.name}: {self.text()}>"

    def _repr_html_(self) -> str:
        """The average with its interval, for notebooks."""
        low, high = self._ends(0.95, None)
        row = [text(self.attribute, x, (high - low) / 4) for x in (self.number, low, high)]
        ends = [self.attribute.lo, self.attribute.hi]
        drawing = whiskers([self.number, *ends], [low, *ends], [high, *ends], ["mean", "", ""])[:1]
        title = f"Mean of {self.attribute.name}"
        return card(title, ["mean", "low", "high"], [row], self.notes(), drawing)

    @property
    def low(self) -> Any:
        """The lower end of the 95 % interval."""
        return self.interval()[0]

    @property
    def high(self) -> Any:
        """The upper end of the 95 % interval."""
        return self.interval()[1]

    def columns(self, level: float = 0.95, kind: Kind | None = None) -> dict[str, NDArray[Any]]:
        """Value, standard error, interval and mark, each a column of one row."""
        low, high = self.interval(level, kind)
        numbers = {self.attribute.name: self.value, "standard_error": self.standard_error, "low": low, "high": high}
        columns = {**numbers, "bias_not_included": self.bias_not_included}
        return {name: np.array([value]) for name, value in columns.items()}

    def table(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """The average with its interval as text, with what a reader must know below."""
        low, high = self._ends(level, kind)
        row = [text(self.attribute, x, (high - low) / 4) for x in (self.number, low, high)]
        head = [f"mean of {self.attribute.name}", "low", "high"]
        return "\n".join([text_table(head, [row], left=0), *self.notes(level, kind)])

    def records(self, level: float = 0.95, kind: Kind | None = None) -> list[dict[str, Any]]:
        """The columns as one record, of values that JSON has."""
        return records(self.columns(level, kind))

    @property
    def value(self) -> Any:
        """The average in the user's units: a float, or a moment for dates and times."""
        return spoken_mean(self.attribute, self.number)

    @property
    def spread(self) -> float:
        """Noise and bias together, as a standard deviation."""
        return float(np.hypot(self.standard_error, self.bias_error))

    def interval(self, level: float = 0.95, kind: Kind | None = None) -> tuple[Any, Any]:
        """An interval within the declared range: strict where the reports are known, or the model's, which is normal.

        Strict: of each bucket only its least and largest value are known.
        """
        low, high = self._ends(level, kind)
        return spoken_mean(self.attribute, low), spoken_mean(self.attribute, high)

    def _ends(self, level: float, kind: Kind | None) -> tuple[float, float]:
        if kind_given(kind, self.strict) == "strict":
            low, high = self._strict_ends(level)
        else:
            half = reach(level, None, None)[0] * self.spread
            low, high = self.number - half, self.number + half
        low, high = min(low, self.number), max(high, self.number)
        return max(low, self.attribute.lo), min(high, self.attribute.hi)

    @one_thread
    def _strict_ends(self, level: float) -> tuple[float, float]:
        if self.strict is None:
            raise ValueError("expected a mean that knows its reports for a strict interval, got another")
        return self.strict.interval(level)

    def notes(self, level: float = 0.95, kind: Kind | None = None) -> list[str]:
        """What a reader of the interval must know, a line each."""
        if kind_given(kind, self.strict) == "model":
            return [model_note(self.assumption)] * bool(self.assumption)
        (low, high), (least, most) = self._strict_ends(level), self._ends(level, "model")
        outside = np.array([not low <= self.number <= high])
        differ = differing(np.array([high - low]), np.array([most - least]), self.assumption)
        return [STRICT_NOTE, *differ, *outside_notes(outside)]

    def text(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """The average with its interval, as people read it; for the model's with the error on which it rests."""
        low, high = self._ends(level, kind)
        if kind_given(kind, self.strict) == "strict":
            said = [text(self.attribute, x, (high - low) / 4) for x in (self.number, low, high)]
            return f"{said[0]} ({100 * level:g} % interval {said[1]} to {said[2]})"
        error = " ".join(filter(None, [_two_digits(self.spread), unit(self.attribute)]))
        return f"{text(self.attribute, self.number, self.spread)} (standard error {error})"

    def __str__(self) -> str:
        return self.text()


def _two_digits(number: float) -> str:
    """A size to two digits, without an exponent."""
    if not 0 < number < np.inf:
        return f"{number:g}"
    places = 1 - int(np.floor(np.log10(number)))
    return f"{round(number, places):,.{max(places, 0)}f}"
