"""Answers with their uncertainty: as arrays, as text, as data frames."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ahead_ldp.estimates.bands import Joint, reach
from ahead_ldp.schema.arrays import Bools, Floats

Backend = Literal["pandas", "polars", "dict"]

BIAS_NOTE = "* rests on a density assumed inside a cell that was not divided further: its bias is not in the error"
INCONSISTENT_NOTE = "Answers are not consistent: a range may differ from the sum of its parts."


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Shares of the people who took part, one for each query of a workload, in order.

    Errors are about the frequencies among the people who took part. ``standard_error`` is the noise's;
    ``bias_error`` says how far the density assumed inside cells that were not divided further may be off, as a
    standard deviation. Intervals hold both (``spread``). Where ``bias_not_included`` is set, the answer rests on such a
    density and no error says how far that is off. ``labels`` say what was asked, a column each. ``consistent`` is the
    estimate's.
    """

    values: Floats  # (n,), or (codes, codes) for a marginal of two attributes
    standard_error: Floats  # the same shape
    bias_not_included: Bools
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    consistent: bool = True
    bias_error: Floats | None = None  # the same shape; 0 if left out
    joint: Joint | None = None  # of all answers, flat: Estimate.joint_errors

    def __len__(self) -> int:
        """How many queries."""
        return int(self.values.size)

    @property
    def spread(self) -> Floats:
        """Noise and bias together, as a standard deviation."""
        return self.standard_error if self.bias_error is None else np.hypot(self.standard_error, self.bias_error)

    def critical(self, level: float = 0.95, simultaneous: bool = False) -> tuple[float, str]:
        """How many ``spread`` an interval reaches to each side, and by which rule (``bands.reach``)."""
        return reach(level, self.spread.reshape(-1) if simultaneous else None, self.joint)

    def half_width(self, level: float = 0.95, simultaneous: bool = False) -> Floats:
        """How far intervals reach to each side before they are clipped to [0, 1]."""
        return np.asarray(self.critical(level, simultaneous)[0] * self.spread)

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Intervals, clipped to [0, 1].

        Pointwise: each holds the truth with probability ``level``. Simultaneous: with this probability all of them do.
        Where ``bias_not_included`` is set, what an assumed density adds is not in them.
        """
        half = self.half_width(level, simultaneous)
        return np.clip(self.values - half, 0.0, 1.0), np.clip(self.values + half, 0.0, 1.0)

    def reshaped(self, shape: tuple[int, ...]) -> Answers:
        """The same answers as a table."""
        values, error = self.values.reshape(shape), self.standard_error.reshape(shape)
        marks = self.bias_not_included.reshape(shape)
        bias = None if self.bias_error is None else self.bias_error.reshape(shape)
        return replace(self, values=values, standard_error=error, bias_error=bias, bias_not_included=marks)

    def columns(self, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """Labels, share, errors, both intervals and mark as flat columns."""
        low, high = self.interval(level)
        all_low, all_high = self.interval(level, simultaneous=True)
        numbers = {
            "share": self.values,
            "standard_error": self.standard_error,
            "bias_error": np.zeros_like(self.values) if self.bias_error is None else self.bias_error,
            "low": low,
            "high": high,
            "simultaneous_low": all_low,
            "simultaneous_high": all_high,
        }
        flat = {name: column.reshape(-1) for name, column in numbers.items()}
        return {**self.labels, **flat, "bias_not_included": self.bias_not_included.reshape(-1)}

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """The columns as one record for each answer, of values that JSON has."""
        return records(self.columns(level))

    def to_frame(self, backend: Backend | None = None, level: float = 0.95) -> Any:
        """The columns as a pandas or Polars frame, whichever is installed; without them a dict of arrays."""
        return frame(self.columns(level), backend)

    def table(self, truth: ArrayLike | None = None, level: float = 0.95) -> str:
        """The answers as text, in percent, with the true shares beside them where they are given.

        The standard error is of noise and bias together.
        """
        columns = self.columns(level)
        labels = [name for name in columns if name in self.labels] or ["query"]
        if not self.labels:
            columns["query"] = np.arange(len(self))
        head = [*labels, "share", "std. error", f"{100 * level:g} % interval"]
        together = len(self) > 1
        rows = []
        for i, (share, error) in enumerate(zip(self.values.reshape(-1), self.spread.reshape(-1), strict=True)):
            mark, ends = bool(columns["bias_not_included"][i]), (columns["low"][i], columns["high"][i])
            rows.append(
                [*(str(columns[name][i]) for name in labels), _percent(share, mark), _percent(error), _between(*ends)]
            )
            if together:
                rows[-1].append(_between(columns["simultaneous_low"][i], columns["simultaneous_high"][i]))
        if together:
            head.append("simultaneous")
        if truth is not None:
            head.append("truth")
            for row, true in zip(rows, np.asarray(truth, float).reshape(-1), strict=True):
                row.append(_percent(true))
        return "\n".join([text_table(head, rows, left=len(labels)), *self.notes(level)])

    def notes(self, level: float = 0.95) -> list[str]:
        """What a reader of the intervals must know, a line each."""
        notes = [] if len(self) < 2 else [simultaneous_note(len(self), level, self.critical(level, True)[1])]
        return notes + [BIAS_NOTE] * bool(self.bias_not_included.any()) + [INCONSISTENT_NOTE] * (not self.consistent)


def simultaneous_note(count: int, level: float, rule: str) -> str:
    """What the simultaneous intervals are."""
    return f"simultaneous: with {100 * level:g} % probability all {count} intervals hold at once ({rule})"


def records(columns: Mapping[str, ArrayLike]) -> list[dict[str, Any]]:
    """Columns as one record for each row, of values that JSON has: dates are text, what is not finite is None."""
    lists = [[plain(value) for value in np.asarray(column).reshape(-1).tolist()] for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers, texts and None as they are, what is not finite as None, all else as text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


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


def _percent(share: float, mark: bool = False) -> str:
    """A share in percent to two digits after the point; ``?`` where it is not known."""
    return (f"{100 * share:.2f} %" if np.isfinite(share) else "?") + ("*" if mark else "")


def _between(low: float, high: float) -> str:
    return f"{100 * low:.2f} .. {100 * high:.2f} %" if np.isfinite(low + high) else "?"
