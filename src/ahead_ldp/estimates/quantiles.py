"""Quantiles and means with their uncertainty, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import Answers, Backend, frame
from ahead_ldp.estimates.bands import reach
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.units import numbers_at, spoken, spoken_mean, text, unit


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles:
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

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
        """Intervals in the user's units: each for itself, or all at once (see ``Answers.interval``)."""
        low, high = self._ends(level, simultaneous)
        return spoken(self.attribute, low), spoken(self.attribute, high)

    def _ends(self, level: float, simultaneous: bool) -> tuple[Floats, Floats]:
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

    def columns(self, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """Level, value, standard error, both intervals and mark."""
        (low, high), (all_low, all_high) = self.interval(level), self.interval(level, simultaneous=True)
        numbers = {"level": self.levels, self.attribute.name: self.values, "standard_error": self.standard_error}
        ends = {"low": low, "high": high, "simultaneous_low": all_low, "simultaneous_high": all_high}
        return {**numbers, **ends, "bias_not_included": self.bias_not_included}

    def to_frame(self, backend: Backend | None = None, level: float = 0.95) -> Any:
        """The columns as a data frame, or as a dict of arrays."""
        return frame(self.columns(level), backend)

    def texts(self, level: float = 0.95) -> list[str]:
        """Each quantile with its pointwise interval, as people read it."""
        numbers, errors = (self._numbers(self.levels), *self._ends(level, False)), self.standard_error
        written = ([text(self.attribute, x, e) for x, e in zip(xs, errors, strict=True)] for xs in numbers)
        return [f"{value} [{low}, {high}]" for value, low, high in zip(*written, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Mean:
    """An average with its standard error. The middle of each bucket stands for the values inside it."""

    attribute: Attribute
    number: float
    standard_error: float  # in the user's units; days for dates, seconds for times
    bias_not_included: bool
    bias_error: float = 0.0  # of the density assumed inside cells, as a standard deviation

    @property
    def value(self) -> Any:
        """The average in the user's units: a float, or a moment for dates and times."""
        return spoken_mean(self.attribute, self.number)

    @property
    def spread(self) -> float:
        """Noise and bias together, as a standard deviation."""
        return float(np.hypot(self.standard_error, self.bias_error))

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """The normal interval, clipped to the declared range."""
        half = reach(level, None, None)[0] * self.spread
        low, high = max(self.number - half, self.attribute.lo), min(self.number + half, self.attribute.hi)
        return spoken_mean(self.attribute, low), spoken_mean(self.attribute, high)

    def __str__(self) -> str:
        error = " ".join(filter(None, [_two_digits(self.spread), unit(self.attribute)]))
        return f"{text(self.attribute, self.number, self.spread)} (standard error {error})"


def _two_digits(number: float) -> str:
    """A size to two digits, without an exponent."""
    if not 0 < number < np.inf:
        return f"{number:g}"
    places = 1 - int(np.floor(np.log10(number)))
    return f"{round(number, places):,.{max(places, 0)}f}"
