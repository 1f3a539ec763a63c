"""Answers with their uncertainty: as arrays, as text, as data frames."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ahead_ldp.estimates.bands import Joint, reach
from ahead_ldp.estimates.bands import Kind as Kind
from ahead_ldp.estimates.cards import MOST_ROWS, card, whiskers
from ahead_ldp.estimates.frames import Backend, Framed
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.estimates.pictures import picture
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.queries import Asked, as_query
from ahead_ldp.schema.units import clock

if TYPE_CHECKING:
    from altair import LayerChart
    from matplotlib.figure import Figure

BIAS_NOTE = "* rests on a density assumed inside a cell that was not divided further: its bias is not in the error"
STRICT_NOTE = "Intervals come from the reports alone and hold whatever the data are like."
DIFFER_NOTE = "The model's intervals are much narrower here, up to {times} times: they hold only if {assumption}."
OUTSIDE_NOTE = "{some} lies outside what the reports alone allow; its interval is extended to it."
INCONSISTENT_NOTE = "Answers are not consistent: a range may differ from the sum of its parts."


_ROUNDING = 1e-9  # of a share
_MUCH = 3.0  # times as wide: from here on two intervals differ much
_MOST_TIMES = 100.0  # more than that is said as that
_MOST_STRICT = 64  # answers on a card whose intervals are worked out: each takes milliseconds


class StrictIntervals(Protocol):
    """Intervals from the reports alone, in the order of the answers."""

    def interval(self, level: float, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Each for itself, or all at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers(Framed):
    """Shares of the people who took part, one for each query of a workload, in order.

    Errors are about the frequencies among the people who took part. ``standard_error`` is the noise's;
    ``bias_error`` says how far the density assumed inside cells that were not divided further may be off, as a
    standard deviation. The model's intervals hold both (``spread``), and ``assumption`` says in a sentence when they
    are right. Where ``bias_not_included`` is set, the answer rests on such a density and no error says how far that is
    off. The strict intervals, which are shown unless the model's are asked for, need no assumption. ``labels`` say what
    was asked, a column each. ``consistent`` is the estimate's.

    ``share``, ``standard_error``, ``low`` and ``high`` are called the same here, in frames, in JSON and in tables;
    ``values`` is an older name of ``share``. One answer is found by what was asked, or by its place:
    ``answers["age >= 30"].share``.
    """

    values: Floats  # (n,), or (codes, codes) for a marginal of two attributes
    standard_error: Floats  # the same shape
    bias_not_included: Bools
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    consistent: bool = True
    bias_error: Floats | None = None  # the same shape; 0 if left out
    joint: Joint | None = None  # of all answers, flat: Estimate.joint_errors
    strict: StrictIntervals | None = None  # flat; None: nothing is known of the reports
    assumption: str = ""  # of the model's intervals
    limits: tuple[float, float] = (0.0, 1.0)  # between which the answers lie
    backend: Backend | None = None  # of frames, where none is named

    def __len__(self) -> int:
        """How many queries."""
        return int(self.values.size)

    def __getitem__(self, asked: int | Asked) -> Answer:
        """One answer: by its place, by what was asked, or by its labels (a tuple of them, if there are several)."""
        return Answer(self, self._place(asked))

    def __iter__(self) -> Iterator[Answer]:
        return (Answer(self, i) for i in range(len(self)))

    def _place(self, asked: Any) -> int:
        if isinstance(asked, int | np.integer) and not isinstance(asked, bool):
            if not -len(self) <= asked < len(self):
                raise IndexError(f"expected the place of one of {len(self)} answers, got {asked}")
            return int(asked) % len(self)
        names = self.names
        wanted = " and ".join(map(str, asked)) if isinstance(asked, tuple) else asked
        if wanted in names:
            return names.index(wanted)
        if list(self.labels) == ["query"]:
            query = as_query(asked)
            same = [i for i, name in enumerate(names) if str(as_query(name)) == str(query)]
            if same:
                return same[0]
        some = ", ".join(map(repr, names[:5])) + ", ..." * (len(names) > 5)
        raise KeyError(f"expected one of the answers {some}, got {asked!r}")

    @property
    def names(self) -> list[str]:
        """What each answer is about, as text: its labels."""
        if not self.labels:
            return [f"query {i}" for i in range(len(self))]
        columns = [[str(x) for x in column] for column in self.labels.values()]
        return [" and ".join(row) for row in zip(*columns, strict=True)]

    @property
    def share(self) -> Floats:
        """The estimated shares."""
        return self.values

    @property
    def low(self) -> Floats:
        """Lower ends of the 95 % intervals, each for itself; `interval` has other levels."""
        return self.interval()[0]

    @property
    def high(self) -> Floats:
        """Upper ends of the 95 % intervals, each for itself."""
        return self.interval()[1]

    @property
    def simultaneous_low(self) -> Floats:
        """Lower ends of 95 % intervals that hold all at once."""
        return self.interval(simultaneous=True)[0]

    @property
    def simultaneous_high(self) -> Floats:
        """Upper ends of 95 % intervals that hold all at once."""
        return self.interval(simultaneous=True)[1]

    def __eq__(self, other: object) -> bool:
        """The same answers with the same errors to the same questions."""
        if not isinstance(other, Answers):
            return NotImplemented
        pairs = [(self.values, other.values), (self.standard_error, other.standard_error)]
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
        return same and self.names == other.names and self.limits == other.limits

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def __repr__(self) -> str:
        """Short: the first answers; `table` has them all, with their intervals."""
        shown = [f"{name}: {_percent(share)}" for name, share in zip(self.names[:3], self.values.flat, strict=False)]
        return f"<Answers: {'; '.join(shown)}{'; ...' * (len(self) > 3)} ({len(self)} in all)>"

    def _repr_html_(self) -> str:
        """A table of the first answers with their intervals, for notebooks."""
        names, shares = self.names[:MOST_ROWS], self.values.reshape(-1)[:MOST_ROWS]
        notes, head = ["table() and to_frame() have the intervals."], ["answer", "share", "standard error"]
        reach = self.standard_error.reshape(-1)[:MOST_ROWS]
        low, high = shares - reach, shares + reach
        rows = [[name, _percent(s), _percent(e)] for name, s, e in zip(names, shares, reach, strict=True)]
        if len(self) <= _MOST_STRICT:
            low, high = (end.reshape(-1)[:MOST_ROWS] for end in self.interval())
            notes, head = self.remarks(), ["answer", "share", "low", "high"]
            columns = zip(names, shares, low, high, strict=True)
            rows = [[name, *(_percent(x) for x in row)] for name, *row in columns]
        drawings = whiskers(shares, low, high, [f"{row[0]}: {row[1]}" for row in rows])
        return card(f"{len(self):,} answer{'s' * (len(self) != 1)}", head, rows, notes, drawings, len(self) - len(rows))

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

    def interval(
        self, level: float = 0.95, simultaneous: bool = False, kind: Kind | None = None
    ) -> tuple[Floats, Floats]:
        """Intervals within the limits of the answers, [0, 1] for shares.

        Pointwise: each holds the truth with probability ``level``. Simultaneous: with this probability all of them do.
        "strict": from the reports alone, whatever the data are like, and extended to the estimate where it lies
        outside. "model": narrower, and right if ``assumption`` is. Left out, strict ones where the reports are known.
        """
        if self.kind(kind) == "model":
            half = self.half_width(level, simultaneous)
            return np.clip(self.values - half, *self.limits), np.clip(self.values + half, *self.limits)
        low, high = self._strict(level, simultaneous)
        inside = np.clip(self.values, *self.limits)
        return np.minimum(low, inside), np.maximum(high, inside)

    def kind(self, kind: Kind | None = None) -> Kind:
        """The kind of interval that is given: the one asked for, or else strict where the reports are known."""
        given = kind_given(kind, self.strict)
        if given == "strict" and self.strict is None:
            raise ValueError("expected answers that know their reports for strict intervals, got others")
        return given

    def outside(self, level: float = 0.95) -> Bools:
        """Which estimates lie outside what the reports alone allow."""
        if self.strict is None:
            return np.zeros(self.values.shape, bool)
        low, high = self._strict(level, False)
        inside = np.clip(self.values, *self.limits)
        return np.asarray((inside < low - _ROUNDING) | (inside > high + _ROUNDING))

    @one_thread
    def _strict(self, level: float, simultaneous: bool) -> tuple[Floats, Floats]:
        if self.strict is None:
            raise ValueError("expected answers that know their reports for strict intervals, got others")
        low, high = self.strict.interval(level, simultaneous)
        return low.reshape(self.values.shape), high.reshape(self.values.shape)

    def reshaped(self, shape: tuple[int, ...]) -> Answers:
        """The same answers as a table."""
        values, error = self.values.reshape(shape), self.standard_error.reshape(shape)
        marks = self.bias_not_included.reshape(shape)
        bias = None if self.bias_error is None else self.bias_error.reshape(shape)
        return replace(self, values=values, standard_error=error, bias_error=bias, bias_not_included=marks)

    def columns(self, level: float = 0.95, kind: Kind | None = None) -> dict[str, NDArray[Any]]:
        """Labels, share, errors, intervals each for itself and all at once, and mark as flat columns.

        A strict interval takes milliseconds, so thousands of cells take a while; the model's are there at once.
        The errors and the mark are the model's, whichever intervals are given.
        """
        low, high = self.interval(level, kind=kind)
        all_low, all_high = self.interval(level, simultaneous=True, kind=kind)
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

    def records(self, level: float = 0.95, kind: Kind | None = None) -> list[dict[str, Any]]:
        """The columns as one record for each answer, of values that JSON has."""
        return records(self.columns(level, kind))

    def table(self, truth: ArrayLike | None = None, level: float = 0.95, kind: Kind | None = None) -> str:
        """The answers as text, in percent, with the true shares beside them where they are given.

        Beside the model's intervals stands the standard error of noise and bias together, on which they rest.
        """
        columns, model = self.columns(level, kind), self.kind(kind) == "model"
        labels = [name for name in columns if name in self.labels] or ["query"]
        if not self.labels:
            columns["query"] = np.arange(len(self))
        together = len(self) > 1
        head = [*labels, "share", *["std. error"] * model, f"{100 * level:g} % interval", *["simultaneous"] * together]
        rows = []
        for i, (share, error) in enumerate(zip(self.values.reshape(-1), self.spread.reshape(-1), strict=True)):
            row = [str(columns[name][i]) for name in labels]
            row.append(_percent(share, mark=model and bool(columns["bias_not_included"][i])))
            row += [_percent(error)] * model + [_between(columns["low"][i], columns["high"][i])]
            row += [_between(columns["simultaneous_low"][i], columns["simultaneous_high"][i])] * together
            rows.append(row)
        if truth is not None:
            head.append("truth")
            for row, true in zip(rows, np.asarray(truth, float).reshape(-1), strict=True):
                row.append(_percent(true))
        return "\n".join([text_table(head, rows, left=len(labels)), *self.notes(level, kind)])

    def plot(self, truth: ArrayLike | None = None, **options: Any) -> Figure:
        """A row for each answer with its interval, as a matplotlib Figure; see ``plots.plot_answers``."""
        figure: Figure = picture("plot_answers", self, truth, **options)
        return figure

    def chart(self, **options: Any) -> LayerChart:
        """The same as an interactive Altair chart; see ``plots.chart_answers``."""
        chart: LayerChart = picture("chart_answers", self, **options)
        return chart

    def notes(self, level: float = 0.95, kind: Kind | None = None) -> list[str]:
        """What a reader of a table must know, a line each."""
        rule = "" if self.kind(kind) == "strict" else self.critical(level, True)[1]
        together = [simultaneous_note(len(self), level, rule)] if len(self) > 1 else []
        return together + self.remarks(level, kind)

    def remarks(self, level: float = 0.95, kind: Kind | None = None) -> list[str]:
        """What a reader of any interval must know, a line each."""
        if self.kind(kind) == "strict":
            notes = [STRICT_NOTE, *self._comparison(level)]
        else:
            notes = [model_note(self.assumption)] * bool(self.assumption)
            notes += [BIAS_NOTE] * bool(self.bias_not_included.any())
        return notes + [INCONSISTENT_NOTE] * (not self.consistent)

    def _comparison(self, level: float) -> list[str]:
        """What is to be said where strict and model intervals differ much, or an estimate is outside."""
        (low, high), (least, most) = self._strict(level, False), self.interval(level, kind="model")
        return differing(high - low, np.maximum(most - least, _ROUNDING), self.assumption) + outside_notes(
            self.outside(level)
        )


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """One of several answers; its numbers have the names that they have there."""

    answers: Answers
    place: int

    @property
    def name(self) -> str:
        """What it is about."""
        return self.answers.names[self.place]

    @property
    def share(self) -> float:
        """The estimated share."""
        return float(self.answers.values.reshape(-1)[self.place])

    @property
    def standard_error(self) -> float:
        """The noise's."""
        return float(self.answers.standard_error.reshape(-1)[self.place])

    @property
    def spread(self) -> float:
        """Noise and bias together, as a standard deviation."""
        return float(self.answers.spread.reshape(-1)[self.place])

    @property
    def low(self) -> float:
        """The lower end of its 95 % interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """The upper end of its 95 % interval."""
        return self.interval()[1]

    def interval(
        self, level: float = 0.95, simultaneous: bool = False, kind: Kind | None = None
    ) -> tuple[float, float]:
        """Its interval, as `Answers.interval` has it."""
        low, high = self.answers.interval(level, simultaneous, kind)
        return float(low.reshape(-1)[self.place]), float(high.reshape(-1)[self.place])

    def __float__(self) -> float:
        return self.share

    def __repr__(self) -> str:
        return f"<Answer {self.name}: {_percent(self.share)} [{_between(self.low, self.high)}]>"


def kind_given(kind: Kind | None, strict: object) -> Kind:
    """The kind of interval that is given: the one asked for, or else strict where the reports are known."""
    if kind not in (None, "strict", "model"):
        raise ValueError(f"expected kind to be strict or model, got {kind!r}")
    return kind or ("model" if strict is None else "strict")


def simultaneous_note(count: int, level: float, rule: str) -> str:
    """What the simultaneous intervals are."""
    how = f" ({rule})" if rule else ""
    return f"simultaneous: with {100 * level:g} % probability all {count} intervals hold at once{how}"


def differing(wide: Floats, narrow: Floats, assumption: str) -> list[str]:
    """What is to be said where the widths of strict intervals are much larger than those of the model's."""
    known = np.isfinite(narrow) & (narrow > 0) & (wide > _ROUNDING)
    ratio = float((wide[known] / narrow[known]).max(initial=1.0))
    times = f"{ratio:.1f}" if ratio < _MOST_TIMES else f"more than {_MOST_TIMES:.0f}"
    return [DIFFER_NOTE.format(times=times, assumption=assumption or "its assumption does")] * (ratio >= _MUCH)


def outside_notes(outside: Bools) -> list[str]:
    """What is to be said where estimates lie outside their strict intervals."""
    count = int(outside.sum())
    some = "The estimate" if outside.size == 1 else "One estimate" if count == 1 else f"Each of {count} estimates"
    return [OUTSIDE_NOTE.format(some=some)] * (count > 0)


def model_note(assumption: str) -> str:
    """What the model's intervals assume."""
    return f"Intervals of the model: they hold if {assumption}."


def records(columns: Mapping[str, ArrayLike]) -> list[dict[str, Any]]:
    """Columns as one record for each row, of values that JSON has: dates are text, what is not finite is None."""
    lists = [[plain(value) for value in np.asarray(column).reshape(-1).tolist()] for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers, texts and None as they are, what is not finite as None, all else as text.

    Moments and times of day have the form that queries have.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return clock(round(value.total_seconds()))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns under their names; the first ``left`` to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in (head, ["-" * w for w in widths], *rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


def percent(share: float) -> str:
    """A share in percent to two digits after the point, never a negative zero."""
    return f"{round(100 * share, 2) + 0.0:.2f} %"


def about(share: float, low: float, high: float) -> str:
    """A share and its interval as people say them: with digits as far as the interval bears them."""
    places = 0 if high - low >= 0.02 else 1 if high - low >= 0.002 else 2
    said = [f"{100 * x:.{places}f}" for x in (share, low, high)]
    return f"{said[0]} % ({said[1]} to {said[2]} %)"


def _percent(share: float, mark: bool = False) -> str:
    """The same; ``?`` where it is not known."""
    return (percent(share) if np.isfinite(share) else "?") + "*" * mark


def _between(low: float, high: float) -> str:
    return f"{percent(low).removesuffix(' %')} .. {percent(high)}" if np.isfinite(low + high) else "?"
