"""Numbers about the people that are no shares: each with a name, an interval, and what a reader must know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import (
    STRICT_NOTE,
    Kind,
    StrictIntervals,
    kind_given,
    model_note,
    percent,
    records,
    simultaneous_note,
    text_table,
)
from ahead_ldp.estimates.bands import bonferroni_quantile, pointwise_quantile, shared_level
from ahead_ldp.estimates.frames import Backend, frame
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.units import spoken_mean, text

Ends = Callable[[float], tuple[float, float]]  # of one interval, for a level

_DIGITS = 4  # of a number that has no width


@dataclass(frozen=True, eq=False)
class Each:
    """Intervals that are worked out one by one; all at once they share what may go wrong (Bonferroni)."""

    ends: Sequence[Ends]
    known: dict[tuple[float, int], tuple[float, float]] = field(default_factory=dict)

    @one_thread
    def interval(self, level: float, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Each for itself, or all at once."""
        own = shared_level(level, len(self.ends)) if simultaneous else shared_level(level, 1)
        for i, ends in enumerate(self.ends):
            if (own, i) not in self.known:
                self.known[own, i] = ends(own)
        found = [self.known[own, i] for i in range(len(self.ends))]
        return np.array([low for low, _ in found], float), np.array([high for _, high in found], float)


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Numbers with intervals, in order: a mean of every group, a standard deviation, a Gini coefficient.

    Intervals are strict: they come from the reports alone and hold whatever the data are like. They are extended to the
    estimate where that lies outside. The model's are narrower, and right if ``assumption`` is: the standard error of
    the number's linear part, by normal quantiles. With an ``attribute`` the numbers are values of it, and are said in
    its units; ``is_share`` numbers are said in percent.
    """

    labels: Mapping[str, NDArray[Any]]
    values: Floats  # (n,)
    ends: StrictIntervals | None  # strict; None: only the model tells
    error: Floats | None = None  # (n,) the model's standard error; None: only the reports tell
    assumption: str = ""  # of the model's intervals
    limits: tuple[Floats | float, Floats | float] = (-np.inf, np.inf)  # between which the numbers lie
    attribute: Attribute | None = None
    is_share: bool = False
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many numbers."""
        return int(self.values.size)

    @property
    def value(self) -> float:
        """The number, where there is only one."""
        if len(self) != 1:
            raise ValueError(f"expected one number, got {len(self)}")
        return float(self.values[0])

    def interval(
        self, level: float = 0.95, simultaneous: bool = False, kind: Kind | None = None
    ) -> tuple[Floats, Floats]:
        """Intervals: each holds with probability ``level``, or with this probability all of them do."""
        together = simultaneous and len(self) > 1
        if self.kind(kind) == "strict":
            low, high = self._strict(level, together)
        else:
            z = bonferroni_quantile(len(self), level) if together else pointwise_quantile(level)
            error = np.full(len(self), np.inf) if self.error is None else self.error
            low, high = self.values - z * error, self.values + z * error
        low, high = np.clip(low, *self.limits), np.clip(high, *self.limits)
        return np.minimum(low, self.values), np.maximum(high, self.values)

    def kind(self, kind: Kind | None = None) -> Kind:
        """The kind of interval that is given: the one asked for, or else strict where the reports tell."""
        given = kind_given(kind, self.ends)
        if given == "strict" and self.ends is None:
            raise ValueError("expected numbers that the reports alone can bound for strict intervals, got others")
        if given == "model" and self.error is None:
            raise ValueError("expected numbers that have a standard error for the model's intervals, got others")
        return given

    def _strict(self, level: float, simultaneous: bool) -> tuple[Floats, Floats]:
        if self.ends is None:
            raise ValueError("expected numbers that the reports alone can bound for strict intervals, got others")
        return self.ends.interval(level, simultaneous)

    def columns(self, level: float = 0.95, kind: Kind | None = None) -> dict[str, NDArray[Any]]:
        """Labels, value, and intervals each for itself and all at once."""
        (low, high), (all_low, all_high) = self.interval(level, False, kind), self.interval(level, True, kind)
        numbers = {"value": self.values, "low": low, "high": high}
        numbers |= {"simultaneous_low": all_low, "simultaneous_high": all_high}
        return {**self.labels, **{name: self._spoken(column) for name, column in numbers.items()}}

    def records(self, level: float = 0.95, kind: Kind | None = None) -> list[dict[str, Any]]:
        """The columns as one record for each number, of values that JSON has."""
        return records(self.columns(level, kind))

    def to_frame(self, backend: Backend | None = None, level: float = 0.95, kind: Kind | None = None) -> Any:
        """The columns as a pandas or Polars frame, whichever is installed; without them a dict of arrays."""
        return frame(self.columns(level, kind), backend)

    def table(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """The numbers as text, with what a reader must know below."""
        (low, high), together = self.interval(level, False, kind), self.interval(level, True, kind)
        head = [*self.labels, "value", f"{100 * level:g} % interval", *["simultaneous"] * (len(self) > 1)]
        rows = []
        for i in range(len(self)):
            row = [str(column[i]) for column in self.labels.values()]
            row += [self.said(self.values[i], high[i] - low[i]), self._between(low[i], high[i])]
            rows.append(row + [self._between(together[0][i], together[1][i])] * (len(self) > 1))
        return "\n".join([text_table(head, rows, left=len(self.labels)), *self.notes(level, kind)])

    def notes(self, level: float = 0.95, kind: Kind | None = None) -> list[str]:
        """What a reader must know, a line each."""
        together = [simultaneous_note(len(self), level, "")] if len(self) > 1 else []
        says = STRICT_NOTE if self.kind(kind) == "strict" else model_note(self.assumption)
        return [*together, says, *self.remarks]

    def said(self, number: float, width: float = 0.0) -> str:
        """A number as people read it."""
        if not np.isfinite(number):
            return "?"
        if self.is_share:
            return percent(number)
        if self.attribute is not None:
            return text(self.attribute, number, width / 4)
        if not 0 < width < np.inf:
            return f"{number + 0.0:,.{_DIGITS}g}"
        places = 1 - int(np.floor(np.log10(width / 4)))  # two digits of what is not known
        return f"{round(number, places) + 0.0:,.{max(places, 0)}f}"

    def _between(self, low: float, high: float) -> str:
        return f"{self.said(low, high - low)} .. {self.said(high, high - low)}"

    def _spoken(self, numbers: Floats) -> NDArray[Any]:
        if self.attribute is None or self.attribute.kind in ("integer", "real"):
            return numbers
        return np.array([spoken_mean(self.attribute, number) for number in numbers.tolist()])
