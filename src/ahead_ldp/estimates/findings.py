"""Numbers about the people that are no shares: each with a name, an interval, and what a reader must know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
from ahead_ldp.estimates.cards import MOST_ROWS, card, whiskers
from ahead_ldp.estimates.frames import Backend, Framed
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.estimates.pauses import pause
from ahead_ldp.estimates.pictures import picture
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.units import spoken_mean, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
                pause()
        found = [self.known[own, i] for i in range(len(self.ends))]
        return np.array([low for low, _ in found], float), np.array([high for _, high in found], float)


@dataclass(frozen=True, slots=True, eq=False)
class Findings(Framed):
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
    middle: Floats | None = None  # of the model's intervals, where values are whole numbers; their ends are whole too
    remarks: tuple[str, ...] = ()
    backend: Backend | None = None  # of frames, where none is named

    def __len__(self) -> int:
        """How many numbers."""
        return int(self.values.size)

    def __eq__(self, other: object) -> bool:
        """The same numbers with the same errors about the same things."""
        if not isinstance(other, Findings):
            return NotImplemented
        if list(self.labels) != list(other.labels) or self.names != other.names:
            return False
        pairs = [(self.values, other.values)]
        if self.error is not None and other.error is not None:
            pairs.append((self.error, other.error))
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
        return same and (self.error is None) == (other.error is None)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def __repr__(self) -> str:
        """Short: the first numbers; `table` has them all, with their intervals."""
        shown = [f"{name}: {self._brief(i)}" for i, name in enumerate(self.names[:3])]
        more = f"; ... ({len(self)} in all)" if len(self) > 3 else ""
        return f"<Findings: {'; '.join(shown)}{more}>"

    def _repr_html_(self) -> str:
        """A table of the first numbers with their intervals, for notebooks; of many, the model's."""
        kind: Kind | None = None if len(self) <= MOST_ROWS or self.error is None else "model"
        low, high = self.interval(kind=kind)
        rows = [row[:-1] + row[-1].split(" .. ") for row in self._rows(0.95, kind)[:MOST_ROWS]]
        drawings = whiskers(
            self.values[:MOST_ROWS], low[:MOST_ROWS], high[:MOST_ROWS], [f"{row[0]}: {row[-3]}" for row in rows]
        )
        head, notes = [*self.labels, "value", "low", "high"], self.notes(kind=kind)[len(self) > 1 :]
        return card(
            f"{len(self):,} finding{'s' * (len(self) != 1)}", head, rows, notes, drawings, len(self) - len(rows)
        )

    @property
    def names(self) -> list[str]:
        """What each number is about, as text: its labels."""
        columns = [[str(x) for x in column] for column in self.labels.values()]
        return [" ".join(row) for row in zip(*columns, strict=True)]

    @property
    def value(self) -> float:
        """The number, where there is only one."""
        if len(self) != 1:
            raise ValueError(f"expected one number, got {len(self)}")
        return float(self.values[0])

    @property
    def low(self) -> Floats:
        """Lower ends of the 95 % intervals, each for itself; `interval` has other levels."""
        return self.interval()[0]

    @property
    def high(self) -> Floats:
        """Upper ends of the 95 % intervals, each for itself."""
        return self.interval()[1]

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
            middle = self.values if self.middle is None else self.middle
            low, high = middle - z * error, middle + z * error
            if self.middle is not None:
                low, high = np.floor(low), np.ceil(high)
        low, high = np.clip(low, *self.limits), np.clip(high, *self.limits)
        return np.minimum(low, self.values), np.maximum(high, self.values)

    def kind(self, kind: Kind | None = None) -> Kind:
        """The kind of interval that is given: the one asked for, or else strict where the reports tell."""
        given = kind_given(kind, self.ends)
        if given == "strict" and self.ends is None:
            raise ValueError("expected numbers that the reports alone can bound for strict intervals, got others")
        if given == "model" and self.error is None:
            said = ", ".join(self.names[:3]) + ", ..." * (len(self) > 3)
            raise ValueError(f"expected strict intervals, which alone are given for {said}, got the model's")
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

    def table(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """The numbers as text, with what a reader must know below."""
        head = [*self.labels, "value", f"{100 * level:g} % interval", *["simultaneous"] * (len(self) > 1)]
        rows = self._rows(level, kind)
        if len(self) > 1:
            least, most = self.interval(level, True, kind)
            rows = [[*row, self._between(least[i], most[i])] for i, row in enumerate(rows)]
        return "\n".join([text_table(head, rows, left=len(self.labels)), *self.notes(level, kind)])

    def _rows(self, level: float, kind: Kind | None) -> list[list[str]]:
        """Labels, value and interval of each number, as people read them."""
        low, high = self.interval(level, False, kind)
        labels = [[str(column[i]) for column in self.labels.values()] for i in range(len(self))]
        return [
            [*row, self.said(self.values[i], high[i] - low[i]), self._between(low[i], high[i])]
            for i, row in enumerate(labels)
        ]

    def plot(self, **options: Any) -> Figure:
        """A row for each number with its interval, as a matplotlib Figure; see ``plots.plot_findings``."""
        figure: Figure = picture("plot_findings", self, **options)
        return figure

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
        if self.middle is not None:
            return f"{number + 0.0:,.0f}"
        if not 0 < width < np.inf:
            return f"{number:,.0f}" if abs(number) >= 10**_DIGITS else f"{number + 0.0:,.{_DIGITS}g}"
        places = 1 - int(np.floor(np.log10(width / 4)))  # two digits of what is not known
        return f"{round(number, places) + 0.0:,.{max(places, 0)}f}"

    def _brief(self, i: int) -> str:
        """One number, in as many digits as its standard error bears: strict intervals are worth asking for."""
        return self.said(self.values[i], 4 * float(self.error[i]) if self.error is not None else 0.0)

    def _between(self, low: float, high: float) -> str:
        return f"{self.said(low, high - low)} .. {self.said(high, high - low)}"

    def _spoken(self, numbers: Floats) -> NDArray[Any]:
        if self.attribute is None or self.attribute.kind in ("integer", "real"):
            return numbers
        return np.array([spoken_mean(self.attribute, number) for number in numbers.tolist()])
