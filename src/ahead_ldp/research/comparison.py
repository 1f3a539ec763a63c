"""Methods side by side in one call: for a notebook, where methods may be classes that are written there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.engines.api import population
from ahead_ldp.estimates.answers import text_table
from ahead_ldp.estimates.cards import card, whiskers
from ahead_ldp.mechanisms import Declared, Epsilon, known_method, plain_epsilon
from ahead_ldp.plots.style import BLUE, VERMILLION, Size, Style, canvas
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.contrasts import Contrast, contrasts, explanation
from ahead_ldp.research.distances import WRITTEN_OUT, check_metric
from ahead_ldp.research.evaluation import SETTINGS, Spread, Task, check_runs, choose, measure, workload_rng
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, random_workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Comparison:
    """What was measured: for each method the errors of all repetitions, on the same people and queries."""

    epsilon: str
    people: int
    queries: int
    errors: dict[str, tuple[float, ...]]
    metric: str = "mse"

    @cached_property
    def _contrasts(self) -> tuple[str, list[Contrast]]:
        return contrasts(self.errors)

    @property
    def best(self) -> str:
        """The method of least mean error."""
        return self._contrasts[0]

    @property
    def others(self) -> list[Contrast]:
        """Every other method beside it, in order of their means: worse, as good, or open."""
        return self._contrasts[1]

    @property
    def repeats(self) -> int:
        """How often each method ran."""
        return len(self.errors[self.best])

    def spread(self, method: str) -> Spread:
        """Mean, deviation and 95 % interval of a method's error."""
        return Spread.of(self.errors[method])

    @property
    def explanation(self) -> str:
        """What the verdicts rest on."""
        return explanation(len(self.errors), self.repeats)

    def _rows(self) -> list[list[str]]:
        rows = [[self.best, _error(self.spread(self.best)), "1", "", "least error"]]
        rows += [
            [c.method, _error(self.spread(c.method)), f"{c.ratio:.2f}", c.interval, c.verdict] for c in self.others
        ]
        return rows

    @property
    def _head(self) -> list[str]:
        return ["method", WRITTEN_OUT[self.metric], "times the least", "interval", "verdict"]

    def table(self) -> str:
        """A row for each method, the best first, and what the verdicts mean."""
        lines = [f"epsilon {self.epsilon}, {self.people:,} people, {self.queries} queries, {self.repeats} repetitions"]
        lines += [text_table(self._head, self._rows(), left=1)]
        return "\n".join([*lines, self.explanation] if self.others else lines)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        """Short; `table` has everything."""
        names = ", ".join(self.errors)
        size = f"epsilon {self.epsilon}, {self.people:,} people, {self.repeats} repetitions"
        return f"<Comparison of {names}: {size}; least error: {self.best}>"

    def _repr_html_(self) -> str:
        """The table with the errors drawn on one logarithmic scale, for a notebook."""
        shown = [self.spread(row[0]) for row in self._rows()]
        ends = [(s.mean, *(s.ci95 or (s.mean, s.mean))) for s in shown]
        least = min(s.mean for s in shown) / 10  # where an interval reaches to 0
        at, low, high = np.log10(np.maximum(np.array(ends), max(least, 1e-300))).T
        drawings = whiskers(at, low, high, [f"{row[0]}: {row[1]}" for row in self._rows()])
        return card(repr(self).strip("<>"), self._head, self._rows(), [self.explanation], drawings)

    def plot(self, ax: Axes | None = None, size: Size | None = None, style: Style | None = None) -> Figure:
        """A row for each method, the best first: its error with its 95 % interval, on a log axis."""
        order = [self.best, *(c.method for c in self.others)]
        with canvas(ax, (7.0, 1.3 + 0.32 * len(order)), size, style) as figure:
            drawn = figure.add_subplot() if ax is None else ax
            for row, method in enumerate(order):
                spread = self.spread(method)
                low, high = spread.ci95 or (spread.mean, spread.mean)
                sides = [[spread.mean - max(low, spread.mean / 20)], [high - spread.mean]]
                colour = VERMILLION if method == self.best else BLUE
                drawn.errorbar(spread.mean, row, xerr=sides, fmt="o", color=colour, elinewidth=2.0, capsize=3)
            verdicts = ["least error", *(c.verdict for c in self.others)]
            drawn.set_yticks(range(len(order)), [f"{m} ({v})" for m, v in zip(order, verdicts, strict=True)])
            drawn.set_ylim(len(order) - 0.5, -0.5)
            drawn.set_xscale("log")
            drawn.set_xlabel(f"{WRITTEN_OUT[self.metric]}, with 95 % intervals of the mean")
            drawn.grid(axis="x", color="0.5", alpha=0.2)
            drawn.set_axisbelow(True)
            drawn.spines[["top", "right"]].set_visible(False)
            title = f"ε = {self.epsilon}, {self.people:,} people, {self.repeats} repetitions"
            drawn.set_title(title, loc="right", fontsize="small")
        return figure


def _error(spread: Spread) -> str:
    return f"{spread.mean:.2e}" + (f" [{spread.ci95[0]:.1e}, {spread.ci95[1]:.1e}]" if spread.ci95 else "")


def compare(
    data: Any = None,
    schema: Declared = (),
    *,
    epsilon: Epsilon,
    methods: Sequence[str | type[Mechanism]],
    histogram: Any = None,
    queries: int | Workload = 200,
    repeats: int = 10,
    seed: int = 0,
    metric: str = "mse",
) -> Comparison:
    """Simulate several methods on the same people and queries, and say which can be told apart.

    ``data``, ``schema`` and ``histogram`` are as for `simulate`. A method is a class, a name, or a name with settings,
    "hio:strong"; "default" is the one that `simulate` takes, "paper" that of the paper. ``queries`` is a number of
    random ranges, or a workload. ``metric`` is "mse", the mean squared error of the queries, or a distance of the
    distributions themselves, "wasserstein" or "ks".
    """
    check_metric(metric)
    declared = as_schema(schema)
    people = population(data, declared, histogram)
    workload = queries if isinstance(queries, Workload) else random_workload(declared, queries, workload_rng(seed))
    task, errors, number = Task.of(declared, people, workload), {}, plain_epsilon(epsilon)
    if number is None:
        raise ValueError("expected epsilon > 0, got none")
    for method in methods:
        label, mechanism = _choose(method, task, number)
        if label in errors:
            raise ValueError(f"expected different methods, got {label} twice")
        check_runs(mechanism, declared, workload)
        trials = measure(task, mechanism, repeats, seed, memory=False).trials
        errors[label] = tuple(trial.error(metric) for trial in trials)
    if not errors:
        raise ValueError("expected at least one method, got none")
    return Comparison(epsilon_text(number), people.n, workload.n, errors, metric)


def _choose(method: str | type[Mechanism], task: Task, epsilon: float | str | Fraction) -> tuple[str, Mechanism]:
    if not isinstance(method, str):
        return method.name, choose(method, task.schema, epsilon, task.people.n)[0]
    if method in SETTINGS:  # of the default method
        return method, choose(None, task.schema, epsilon, task.people.n, method)[0]
    name, _, settings = method.rpartition(":")
    if settings not in SETTINGS:
        name, settings = known_method(method), "default"
    mechanism = choose(name, task.schema, epsilon, task.people.n, settings)[0]
    return method if settings != "default" else name, mechanism
