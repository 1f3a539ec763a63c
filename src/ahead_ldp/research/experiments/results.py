"""Results: tables of what was measured, and what a rule sees of a figure, also with the wrong labels.

Tables are sorted by cell: the same bytes for the same plan however and in how many sittings it was run. Parameter
combinations are counted from the plan, and what they cost from the journal.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from math import isclose, log
from pathlib import Path
from statistics import fmean
from typing import Any, Concatenate, ParamSpec

import numpy as np

from ahead_ldp.research.evaluation import Spread
from ahead_ldp.research.experiments.journal import Outcome
from ahead_ldp.research.experiments.plan import Cell, Figure, Line, Panel, rng_of
from ahead_ldp.schema.arrays import Floats

P = ParamSpec("P")
PARTS = ("data", "columns", "sizes", "n", "r", "skew", "method", "epsilon", "theta", "queries")
PAPER = 757  # Sec. 1; the paper does not say how they are counted


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcomes of the cells of a plan, by cell; some may be missing."""

    outcomes: Mapping[str, Outcome]  # cell id -> outcome

    @classmethod
    def of(cls, cells: Iterable[Cell], by_key: Mapping[str, Outcome]) -> Measured:
        """What is there of these cells, from outcomes by key."""
        keys = {cell.id: cell.key for cell in cells}
        return cls({name: by_key[key] for name, key in keys.items() if key in by_key})

    def __contains__(self, cell: Cell) -> bool:
        return cell.id in self.outcomes

    def errors(self, cell: Cell) -> list[float]:
        """The error of every repetition, by the cell's metric."""
        return [row[cell.task] for row in self.outcomes[cell.id].rows]

    def spread(self, cell: Cell) -> Spread:
        """Mean, deviation and 95 % interval."""
        return Spread.of(self.errors(cell))

    def rows(self, cell: Cell) -> tuple[Mapping[str, Any], ...]:
        """The rows as they were measured."""
        return self.outcomes[cell.id].rows

    def note(self, cell: Cell) -> str:
        """What a caption must say of the data."""
        return self.outcomes[cell.id].note if cell.id in self.outcomes else ""


def write_tables(folder: Path, cells: Iterable[Cell], measured: Measured) -> list[Path]:
    """Write the tables of a run: every repetition, every mean, where leaves are, and apart from them what it cost."""
    there = sorted((cell for cell in cells if cell in measured), key=lambda cell: cell.id)
    errors = [cell for cell in there if cell.task != "leaves"]
    metric = errors[0].task if errors else "mse"
    leaves = [cell for cell in there if cell.task == "leaves"]
    repetitions = [[cell.id, row["repetition"], row[cell.task]] for cell in errors for row in measured.rows(cell)]
    bins = [[cell.id, row["bin"], row["share"], row["leaves"]] for cell in leaves for row in measured.rows(cell)]
    costs = [_cost(cell, measured) for cell in there]
    written = {
        "results.csv": (["cell", "repetition", metric], repetitions),
        "summary.csv": (
            ["cell", *PARTS, "repetitions", metric, "std", "ci95_low", "ci95_high", "note"],
            [_summary(c, measured) for c in errors],
        ),
        "leaves.csv": (["cell", "bin", "share", "leaves"], bins),
        "timings.csv": (["cell", "prepare_cpu_s", "run_cpu_s", "build_s", "query_s", "peak_memory_bytes"], costs),
    }
    for name, (head, rows) in written.items():
        write_csv(folder / name, head, rows)
    return [folder / name for name in written]


def write_csv(path: Path, head: list[str], rows: Iterable[list[Any]]) -> None:
    """A table with a header line; numbers in their shortest exact form."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([["" if value is None else value for value in row] for row in rows])
    path.write_text(text.getvalue(), encoding="utf-8")


def _summary(cell: Cell, measured: Measured) -> list[Any]:
    data, spread = cell.data, measured.spread(cell)
    low, high = spread.ci95 if spread.ci95 else (None, None)
    about = [data.name, " ".join(data.columns), "x".join(map(str, data.sizes)), data.n, data.r, data.skew or None]
    setting = [cell.method, cell.epsilon, cell.theta, cell.queries, len(measured.rows(cell))]
    return [cell.id, *about, *setting, spread.mean, spread.std, low, high, measured.note(cell)]


def _cost(cell: Cell, measured: Measured) -> list[Any]:
    cost = measured.outcomes[cell.id].cost or {}
    names = ("prepare_cpu_s", "run_cpu_s", "build_s", "query_s")
    return [cell.id, *(round(cost.get(name, 0.0), 4) for name in names), int(cost.get("peak_memory_bytes", 0))]


OURS = ("AHEAD", "LLE", "unprocessed")  # the paper's method, by the names of its lines


class NotMeasured(LookupError):
    """A rule needs a point that the plan does not have, or that was not run."""


@dataclass(frozen=True, slots=True)
class View:
    """Measured figures by name; ``places`` gives some cells the results of others."""

    figures: Mapping[str, Figure]
    measured: Measured
    places: Mapping[str, Cell] = field(default_factory=dict)
    number: int = 0  # of the shuffle

    def figure(self, name: str) -> Figure:
        """The figure of this name."""
        if name not in self.figures:
            raise NotMeasured(f"{name} is not part of this run")
        return self.figures[name]

    def panel(self, figure: str, name: str) -> Panel:
        """One panel of a figure."""
        for panel in self.panels(figure):
            if panel.name == name:
                return panel
        raise NotMeasured("a panel is missing")

    def panels(self, figure: str) -> tuple[Panel, ...]:
        """The panels of a figure."""
        return self.figure(figure).panels

    def line(self, panel: Panel, method: str) -> Line:
        """The line of a method in a panel."""
        drawn = next((line for line in panel.lines if line.method == method), None)
        if drawn is None:
            raise NotMeasured(f"no line {method} in {panel.title}")
        return drawn

    def errors(self, cell: Cell) -> list[float]:
        """The repetitions of a cell."""
        shown = self.places.get(cell.id, cell)
        if shown not in self.measured:
            raise NotMeasured(f"not run: {cell.id}")
        return self.measured.errors(shown)

    def xs(self, panel: Panel, method: str) -> list[float]:
        """Where the points of a line are."""
        return [point.x for point in self.line(panel, method).points]

    def means(self, panel: Panel, method: str) -> Floats:
        """The means of a line, in order."""
        return np.array([fmean(self.errors(point.cell)) for point in self.line(panel, method).points])

    def trials(self, panel: Panel, method: str) -> list[list[float]]:
        """The repetitions of a line's points, in order."""
        return [self.errors(point.cell) for point in self.line(panel, method).points]

    def at(self, panel: Panel, method: str, x: float, y: float | None = None) -> float:
        """The mean at one place."""
        for point in self.line(panel, method).points:
            if isclose(point.x, x) and (y is None or (point.y is not None and isclose(point.y, y))):
                return fmean(self.errors(point.cell))
        raise NotMeasured(f"no point at {x:g}{'' if y is None else f', {y:g}'} in {panel.title}")

    def ratio(self, panel: Panel, above: str, below: str) -> float:
        """The geometric mean over a line of one method's error over another's."""
        return geometric(self.means(panel, above) / self.means(panel, below))

    def meaningful(self, panel: Panel, method: str) -> bool:
        """Whether a method is better than Uni at every point of a panel."""
        return bool((self.means(panel, method) < self.means(panel, "Uni")).all())

    def leaves(self, panel: Panel) -> tuple[Floats, Floats]:
        """Shares of people and of leaves, bin by bin."""
        cell = next(iter(panel.cells))
        if cell not in self.measured:
            raise NotMeasured(f"not run: {cell.id}")
        rows = self.measured.rows(cell)
        share, leaves = (np.array([row[name] for row in rows]) for name in ("share", "leaves"))
        if cell.id in self.places:
            leaves = rng_of(self.number, cell.id).permutation(leaves)
        return share, leaves / leaves.sum()

    def only(self, figures: Sequence[str]) -> View:
        """Some of the figures."""
        kept = {name: figure for name, figure in self.figures.items() if name in figures}
        return View(kept, self.measured, self.places, self.number)

    # Wrong on purpose.

    def with_uni(self) -> View:
        """Uni's results in the place of the paper's method."""
        places = {}
        for panel in (panel for figure in self.figures.values() for panel in figure.panels):
            uni = next((line for line in panel.lines if line.method == "Uni"), None)
            if uni is None:
                continue
            for line in panel.lines:
                if line.points and line.points[0].cell.method in OURS:
                    for i, point in enumerate(line.points):
                        places[point.cell.id] = uni.points[min(i, len(uni.points) - 1)].cell
        return View(self.figures, self.measured, places)

    def shuffled(self, number: int = 0) -> View:
        """Every figure with the labels of its results mixed up: methods, places and panels; one of many ways."""
        places = {}
        for figure in self.figures.values():
            cells = figure.cells
            order = rng_of(number, f"shuffle {figure.name}").permutation(len(cells))
            places.update({cell.id: cells[i] for cell, i in zip(cells, order, strict=True)})
        return View(self.figures, self.measured, places, number)


def geometric(values: Sequence[float] | Floats) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(np.asarray(values, float)))))


def spread(values: Sequence[float] | Floats) -> float:
    """The largest over the smallest."""
    array = np.asarray(values, float)
    return float(array.max() / array.min())


def rank_correlation(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Spearman's."""
    from scipy.stats import rankdata

    first, second = rankdata(np.asarray(x, float)), rankdata(np.asarray(y, float))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def clearly_above(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether a mean lies above another by more than chance (Welch's t, one-sided, 1 %)."""
    from scipy.special import stdtrit

    gap = float(np.mean(first) - np.mean(second))
    if gap <= 0 or min(len(first), len(second)) < 2:
        return gap > 0
    a, b = (float(np.var(values, ddof=1)) / len(values) for values in (first, second))
    if a + b <= 1e-24 * gap**2:
        return True
    freedom = (a + b) ** 2 / (a**2 / (len(first) - 1) + b**2 / (len(second) - 1))
    return bool(gap > float(stdtrit(freedom, 0.99)) * np.sqrt(a + b))


def crossing(x: Sequence[float], first: Floats, second: Floats) -> float | None:
    """Where the first curve rises above the second for good, on a log scale; ``None`` if it does not cross."""
    gap = [log(a / b) for a, b in zip(first, second, strict=True)]
    for i in reversed(range(len(gap) - 1)):
        if gap[i] <= 0 < gap[i + 1]:
            return x[i] + (x[i + 1] - x[i]) * -gap[i] / (gap[i + 1] - gap[i])
    return None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Whether a rule is met, and the numbers that say so."""

    met: bool
    text: str


Rule = Callable[[View], Evidence]
Parts = Iterator[tuple[bool, str]]  # of a rule: whether each is met, and its numbers


def makes_rule(parts: Callable[Concatenate[View, P], Parts]) -> Callable[P, Rule]:
    """A function of results and settings that yields parts, as a function of the settings that gives the rule.

    All parts must be met; all are told.
    """

    @wraps(parts)
    def settled(*args: P.args, **kwargs: P.kwargs) -> Rule:
        """The rule of these settings."""

        def rule(view: View) -> Evidence:
            """The evidence of some results."""
            said = list(parts(view, *args, **kwargs))
            return Evidence(all(met for met, _ in said), "; ".join(text for _, text in said))

        return rule

    return settled


@dataclass(frozen=True, slots=True)
class Count:
    """A figure: its settings of people and privacy (and threshold), its cells, and its runs.

    A setting is counted once, whatever the number of methods; ``one_or_two`` of them have one or two attributes.
    """

    figure: str
    settings: int
    one_or_two: int
    methods: int
    cells: int
    runs: int
    cpu_s: float  # of cells that no earlier figure had


def count(figures: Sequence[Figure], measured: Measured | None = None) -> list[Count]:
    """Every figure in order, and a last line for all of them together."""
    seen: set[Cell] = set()
    counts = []
    for figure in figures:
        new = [cell for cell in figure.cells if cell not in seen]
        counts.append(_count(figure.name, figure.cells, new, measured))
        seen.update(new)
    everything = list(seen)
    return [*counts, _count("all", everything, everything, measured)]


def _count(name: str, cells: Sequence[Cell], new: Sequence[Cell], measured: Measured | None) -> Count:
    settings = {(cell.data, cell.epsilon, cell.theta, cell.task) for cell in cells}
    few = [setting for setting in settings if len(setting[0].sizes) <= 2]
    seconds = 0.0
    for cell in new:
        cost = measured.outcomes[cell.id].cost if measured and cell in measured else None
        seconds += cost["prepare_cpu_s"] + cost["run_cpu_s"] if cost else 0.0
    methods, runs = len({cell.method for cell in cells}), sum(cell.repeats for cell in new)
    return Count(name, len(settings), len(few), methods, len(cells), runs, seconds)
