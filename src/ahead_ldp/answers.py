"""Answers with their uncertainty: as arrays, as text, as data frames."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ahead_ldp.device.codes import Attribute
from ahead_ldp.units import numbers_at, spoken, spoken_mean, text, unit

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Backend = Literal["pandas", "polars", "dict"]

BIAS_NOTE = "* rests on a density assumed inside a cell that was not divided further: its bias is not in the error"
INCONSISTENT_NOTE = "Answers are not consistent: a range may differ from the sum of its parts."


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Shares of the people who took part, one for each query of a workload, in order.

    ``standard_error`` is the noise's: about the frequencies among the people who took part. Where
    ``bias_not_included`` is set, the query ends inside a cell that was not divided further, and the answer also
    rests on an assumed density there. ``labels`` say what was asked, a column each. ``consistent`` is the
    estimate's.
    """

    values: Floats  # (n,), or (codes, codes) for a marginal of two attributes
    standard_error: Floats  # the same shape
    bias_not_included: Bools
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    consistent: bool = True

    def __len__(self) -> int:
        """How many queries."""
        return int(self.values.size)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Pointwise normal intervals, clipped to [0, 1]: each holds the truth with probability ``level``.

        What an assumed density adds (``bias_not_included``) is not in them.
        """
        half = _z(level) * self.standard_error
        return np.clip(self.values - half, 0.0, 1.0), np.clip(self.values + half, 0.0, 1.0)

    def columns(self, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """Labels, share, standard error, interval and mark as flat columns."""
        low, high = self.interval(level)
        numbers = {"share": self.values, "standard_error": self.standard_error, "low": low, "high": high}
        flat = {name: column.reshape(-1) for name, column in numbers.items()}
        marks = self.bias_not_included.reshape(-1)
        return {**self.labels, **flat, "bias_not_included": marks}

    def to_frame(self, backend: Backend | None = None, level: float = 0.95) -> Any:
        """The columns as a pandas or Polars frame, whichever is installed; without them a dict of arrays."""
        return frame(self.columns(level), backend)

    def table(self, truth: ArrayLike | None = None, level: float = 0.95) -> str:
        """The answers as text, in percent, with the true shares beside them where they are given."""
        given = self.columns(level)
        labels = [name for name in given if name in self.labels] or ["query"]
        if not self.labels:
            given["query"] = np.arange(len(self))
        head = [*labels, "share", "std. error", f"{100 * level:g} % interval"]
        rows = [
            [*(str(given[name][i]) for name in labels), _percent(share, mark), _percent(error), _between(low, high)]
            for i, (share, error, low, high, mark) in enumerate(
                zip(*(given[k] for k in ("share", "standard_error", "low", "high", "bias_not_included")), strict=True)
            )
        ]
        if truth is not None:
            head.append("truth")
            for row, true in zip(rows, np.asarray(truth, float).reshape(-1), strict=True):
                row.append(_percent(true))
        notes = [BIAS_NOTE] * bool(self.bias_not_included.any()) + [INCONSISTENT_NOTE] * (not self.consistent)
        return "\n".join([text_table(head, rows, left=len(labels)), *notes])


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles:
    """Values below which given shares of the people lie, read off one cumulative curve.

    The curve is monotone; an error of ``share_error`` in its height moves the place where it is crossed. The
    standard error is half the way between the places one standard error below and above (the delta method, with
    the slope over that stretch); intervals are read off in the same way, so they stay inside the declared range.
    """

    attribute: Attribute
    levels: Floats  # (k,)
    share_error: Floats  # (k,) standard error of the curve where it crosses a level
    places: Floats  # (c,) positions among the codes
    curve: Floats  # (c,) share of people below each
    bias_not_included: Bools  # (k,)

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

    def interval(self, level: float = 0.95) -> tuple[NDArray[Any], NDArray[Any]]:
        """Pointwise intervals in the user's units."""
        half = _z(level) * self.share_error
        low, high = self._numbers(self.levels - half), self._numbers(self.levels + half)
        return spoken(self.attribute, low), spoken(self.attribute, high)

    def columns(self, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """Level, value, standard error, interval and mark."""
        low, high = self.interval(level)
        found = {"level": self.levels, self.attribute.name: self.values, "standard_error": self.standard_error}
        return {**found, "low": low, "high": high, "bias_not_included": self.bias_not_included}

    def to_frame(self, backend: Backend | None = None, level: float = 0.95) -> Any:
        """The columns as a data frame, or as a dict of arrays."""
        return frame(self.columns(level), backend)

    def texts(self, level: float = 0.95) -> list[str]:
        """Each quantile with its interval, as people read it."""
        half = _z(level) * self.share_error
        numbers = (self._numbers(levels) for levels in (self.levels, self.levels - half, self.levels + half))
        errors = self.standard_error
        written = ([text(self.attribute, x, e) for x, e in zip(xs, errors, strict=True)] for xs in numbers)
        return [f"{value} [{low}, {high}]" for value, low, high in zip(*written, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Mean:
    """An average with its standard error. The middle of each bucket stands for the values inside it."""

    attribute: Attribute
    number: float
    standard_error: float  # in the user's units; days for dates, seconds for times
    bias_not_included: bool

    @property
    def value(self) -> Any:
        """The average in the user's units: a float, or a moment for dates and times."""
        return spoken_mean(self.attribute, self.number)

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """The normal interval, clipped to the declared range."""
        half = _z(level) * self.standard_error
        low, high = max(self.number - half, self.attribute.lo), min(self.number + half, self.attribute.hi)
        return spoken_mean(self.attribute, low), spoken_mean(self.attribute, high)

    def __str__(self) -> str:
        error = " ".join(filter(None, [_two_digits(self.standard_error), unit(self.attribute)]))
        return f"{text(self.attribute, self.number, self.standard_error)} (standard error {error})"


def frame(columns: Mapping[str, NDArray[Any]], backend: Backend | None = None) -> Any:
    """Columns as a pandas or Polars frame, whichever is installed; a dict without either, or for "dict"."""
    if backend not in (None, "pandas", "polars", "dict"):
        raise ValueError(f"expected backend to be pandas, polars, dict or None, got {backend!r}")
    chosen = backend or next((name for name in ("pandas", "polars") if importlib.util.find_spec(name)), "dict")
    if chosen == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns))
    if chosen == "polars":
        import polars as pl

        return pl.DataFrame({name: _for_polars(column) for name, column in columns.items()})
    return dict(columns)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns under their names; the first ``left`` to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in (head, ["-" * w for w in widths], *rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


def _for_polars(column: NDArray[Any]) -> Any:
    if column.dtype.kind == "m":
        return column.astype("timedelta64[ms]")
    if column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] == "s":
        return column.astype("datetime64[ms]")
    return column.tolist() if column.dtype == object else column


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"expected 0 < level < 1, got {level!r}")
    return NormalDist().inv_cdf((1 + level) / 2)


def _two_digits(number: float) -> str:
    """A size to two digits, without an exponent."""
    if not 0 < number < np.inf:
        return f"{number:g}"
    places = 1 - int(np.floor(np.log10(number)))
    return f"{round(number, places):,.{max(places, 0)}f}"


def _percent(share: float, mark: bool = False) -> str:
    """A share in percent to two digits after the point; ``?`` where it is not known."""
    return (f"{100 * share:.2f} %" if np.isfinite(share) else "?") + ("*" if mark else "")


def _between(low: float, high: float) -> str:
    return f"{100 * low:.2f} .. {100 * high:.2f} %" if np.isfinite(low + high) else "?"
