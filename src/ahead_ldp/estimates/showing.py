"""How an estimate is seen, copied and compared: texts, pictures, cards for notebooks, frames, synthetic records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, overload

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.canonical import Record
from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.bands import Kind
from ahead_ldp.estimates.cards import card, spark
from ahead_ldp.estimates.frames import BACKENDS, Backend, Columns, frame
from ahead_ldp.estimates.origin import Origin
from ahead_ldp.estimates.pictures import picture
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.units import decode

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from altair import Chart, LayerChart
    from matplotlib.figure import Figure

    from ahead_ldp.estimates.frames import Frame

Seed = int | Generator | None
P = ParamSpec("P")
R = TypeVar("R")

_MOST_SHOWN = 5  # attributes on a card
_MOST_BARS = 60  # of a drawing on a card


def seeded(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which takes ``random_state``, the word of many libraries, for ``seed`` too."""

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        """The same."""
        given: dict[str, Any] = named
        if "random_state" in given:
            if "seed" in given:
                raise ValueError("expected seed or random_state, which are the same, got both")
            given["seed"] = given.pop("random_state")
        return function(*args, **given)

    return called


class Shown:
    """The part of an estimate that shows it; the part that answers is `Estimate`."""

    schema: Schema
    consistent: bool
    provenance: Origin | None = None
    backend: Backend | None = None  # the library of data frames that the data came in
    clipped: Mapping[str, int] = MappingProxyType({})  # values that were moved to an end of the range, by attribute

    if TYPE_CHECKING:

        def marginal(self, *attributes: str, errors: bool = True) -> Answers:
            """Of `Estimate`."""

        def sample_codes(self, n: int, rng: Generator) -> Ints:
            """Of `Estimate`."""

        def fingerprint(self) -> Floats:
            """Of `Estimate`."""

        def record(self) -> Record:
            """Of `Estimate`."""

        def histogram(self, attribute: str | None = None, bins: int | None = None, *, errors: bool = True) -> Answers:
            """Of `Estimate`."""

        def _quartile_texts(self, a: Attribute, level: float, kind: Kind | None) -> tuple[list[str], Any]: ...

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]  # else a data class would print its arrays

    def plot(self, *attributes: str, **options: Any) -> Figure:
        """A picture of one or two attributes, as a matplotlib Figure; see ``plots.plot_estimate``."""
        figure: Figure = picture("plot_estimate", self, *attributes, **options)
        return figure

    def chart(self, *attributes: str, **options: Any) -> Chart | LayerChart:
        """The same as an interactive Altair chart; see ``plots.chart_estimate``."""
        chart: Chart | LayerChart = picture("chart_estimate", self, *attributes, **options)
        return chart

    @overload
    def sample(self, n: int, seed: Seed = None, *, backend: Literal["dict"]) -> Columns:
        """As plain arrays by name."""

    @overload
    def sample(self, n: int, seed: Seed = None, *, backend: Literal["pandas"]) -> pandas.DataFrame:
        """With pandas."""

    @overload
    def sample(self, n: int, seed: Seed = None, *, backend: Literal["polars"]) -> polars.DataFrame:
        """With Polars."""

    @overload
    def sample(self, n: int, seed: Seed = None, *, backend: Literal["arrow"]) -> pyarrow.Table:
        """As a table of Arrow."""

    @overload
    def sample(self, n: int, seed: Seed = None, *, backend: None = None) -> Frame:
        """In the library that the data came in, else in one that is installed."""

    @seeded
    def sample(self, n: int, seed: Seed = None, *, backend: Backend | None = None) -> Frame:
        """Synthetic records in the user's units as a frame (see `to_frame`), drawn from the joint distribution.

        They carry no more about anybody than the estimate does, and its noise; they are for programs that need
        records, not for counting.
        """
        if isinstance(n, bool) or not hasattr(n, "__index__") or n < 0:
            raise ValueError(f"expected n to be a whole number >= 0, got {n!r}")
        rng = generator(seed)
        return frame(decode(self.schema, self.sample_codes(int(n), rng), rng), backend or self.backend)

    @overload
    def to_frame(
        self, *attributes: str, backend: Literal["pandas"], level: float = 0.95, kind: Kind | None = None
    ) -> pandas.DataFrame:
        """With pandas."""

    @overload
    def to_frame(
        self, *attributes: str, backend: Literal["polars"], level: float = 0.95, kind: Kind | None = None
    ) -> polars.DataFrame:
        """With Polars."""

    @overload
    def to_frame(
        self, *attributes: str, backend: Literal["arrow"], level: float = 0.95, kind: Kind | None = None
    ) -> pyarrow.Table:
        """As a table of Arrow."""

    @overload
    def to_frame(
        self, *attributes: str, backend: Literal["dict"], level: float = 0.95, kind: Kind | None = None
    ) -> Columns:
        """As plain arrays by name."""

    @overload
    def to_frame(self, *attributes: str, backend: None = None, level: float = 0.95, kind: Kind | None = None) -> Frame:
        """In the library that the data came in, else in one that is installed."""

    def to_frame(
        self, *attributes: str, backend: Backend | None = None, level: float = 0.95, kind: Kind | None = None
    ) -> Frame:
        """One or two attributes' marginal as a data frame; without a name, every attribute's in one long frame.

        The frame is of the library named by ``backend``, else of the one that the data came in, else of pandas or
        Polars, whichever is installed.
        """
        if libraries := [name for name in attributes if name in BACKENDS and name not in self.schema.names]:
            raise ValueError(f"expected names of attributes, got {libraries[0]!r}: use backend={libraries[0]!r}")
        backend = backend or self.backend
        if attributes:
            return frame(self.marginal(*attributes).columns(level, kind), backend)
        parts = []
        for name in self.schema.names:
            columns = self.marginal(name).columns(level, kind)
            bucket = columns.pop(name)
            parts.append({"attribute": np.full(bucket.size, name, object), "bucket": bucket, **columns})
        return frame({key: np.concatenate([part[key] for part in parts]) for key in parts[0]}, backend)

    def __repr__(self) -> str:
        """Short; `summary` says more."""
        names = ", ".join(self.schema.names[:4]) + ", ..." * (len(self.schema.names) > 4)
        p = self.provenance
        origin = "" if p is None else f": {p.method}, epsilon {p.epsilon}, {p.people:,} people"
        return f"<Estimate of {names}{origin}>"

    def _repr_html_(self) -> str:
        """Each attribute's distribution as a drawing, with its quartiles, for notebooks."""
        rows, drawings = [], []
        for a in self.schema.attributes[:_MOST_SHOWN]:
            bins = None if a.kind == "nominal" else _MOST_BARS
            shares = self.histogram(a.name, bins, errors=False).share
            drawings.append(spark(shares, f"distribution of {a.name}"))
            rows.append([a.name, a.kind, f"{a.size:,}", *self._quartile_texts(a, 0.95, None)[0]])
        head = ["attribute", "kind", "codes", "25 %", "median", "75 %"]
        notes = [*self._clipped_notes(), "[ , ]: 95 % intervals; summary() has the notes that belong to them."]
        return card(repr(self).strip("<>"), head, rows, notes, drawings, len(self.schema.names) - len(rows))

    def _clipped_notes(self) -> list[str]:
        moved = [f"{count:,} of {name}" for name, count in self.clipped.items() if count]
        return [f"Values counted at an end of the declared range: {', '.join(moved)}."] * bool(moved)

    def __eq__(self, other: object) -> bool:
        """The same method's answers from the same tallies."""
        if not isinstance(other, Shown):
            return NotImplemented
        if type(self) is not type(other) or self.schema != other.schema:
            return False
        if self.provenance is None or other.provenance is None:
            return self.provenance is other.provenance and np.array_equal(self.fingerprint(), other.fingerprint())
        return self is other or self.record() == other.record()

    def __hash__(self) -> int:
        links = () if self.provenance is None else self.provenance.links
        return hash((type(self), self.schema, *links[-1:]))  # rounds of one survey have the same schema

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies and pickles: what is known of the run goes along; what can be worked out again does not."""
        slots = [name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ())]
        state = {name: getattr(self, name) for name in slots if hasattr(self, name)} | self.__dict__
        return _restored, (type(self), {name: value for name, value in state.items() if name != "_reports"})

    def came_from(self, backend: Backend | None, clipped: Mapping[str, int]) -> Self:
        """This estimate, with the library that its data came in and how many values were moved to an end."""
        object.__setattr__(self, "backend", backend)
        object.__setattr__(self, "clipped", {name: count for name, count in clipped.items() if count})
        return self


def generator(seed: Seed) -> Generator:
    """The generator of a seed, or the one that was given; without either a new one."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        rule = "expected seed to be a whole number >= 0 or a numpy Generator"
        raise ValueError(f"{rule}, got {seed!r}") from None


def _restored(cls: type[Shown], state: Mapping[str, Any]) -> Shown:
    estimate = cls.__new__(cls)
    for name, value in state.items():
        object.__setattr__(estimate, name, value)
    return estimate
