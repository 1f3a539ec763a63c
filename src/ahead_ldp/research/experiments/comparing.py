"""Methods side by side on people at hand, and the one to take: for every number of people and epsilon, as measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.cards import card, whiskers
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.research.contrasts import NEAR, Contrast, Verdict, contrasts
from ahead_ldp.research.distances import METRICS, WRITTEN_OUT
from ahead_ldp.research.evaluation import check_runs, choose
from ahead_ldp.research.experiments.plan import METHODS, Cell, Data, Figure, Line, Panel, Point, split_method
from ahead_ldp.research.experiments.results import Measured, geometric

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """For so many people and this epsilon: the method to take, the mean errors behind it, and how sure that is.

    ``contrasts`` set every method but the best beside it, in order of their means.
    """

    n: int
    epsilon: float
    method: str
    best: str
    means: dict[str, float]
    contrasts: tuple[Contrast, ...]
    metric: str = "mse"

    @classmethod
    def of(cls, n: int, epsilon: float, errors: Mapping[str, Sequence[float]], metric: str = "mse") -> Self:
        """The least mean, or the default where that is not worse and within a tenth of it."""
        best, others = contrasts(errors)
        means = {method: sum(values) / len(values) for method, values in errors.items()}
        default = next((c for c in others if c.method == DEFAULT), None)
        near = default is not None and default.verdict != "worse" and default.ratio <= NEAR
        return cls(n, epsilon, DEFAULT if near else best, best, means, tuple(others), metric)

    def among(self, verdict: Verdict) -> tuple[Contrast, ...]:
        """The methods with this verdict."""
        return tuple(c for c in self.contrasts if c.verdict == verdict)

    @property
    def text(self) -> str:
        """A sentence: the method to take, and how many others are worse, as good or open."""
        error = f"{METRICS[self.metric]} {self.means[self.method]:.1e}"
        sentence = f"for N = {self.n:,} and ε = {self.epsilon:g} use {called(self.method)} ({error})"
        counted = [f"{len(there)} {verdict}" for verdict in VERDICTS if (there := self.among(verdict))]
        sentence += f"; of the others {', '.join(counted)}" if counted else ""
        if self.method != self.best:
            sentence += (
                f"; the least error has {self.best}, {self.means[self.best]:.1e}, which is not told apart from it"
            )
        elif DEFAULT in self.means and self.method != DEFAULT:
            sentence += f"; the default has {self.means[DEFAULT] / self.means[self.method]:.1f} times its error"
        return sentence

    @property
    def reasons(self) -> list[str]:
        """For each verdict a line: the methods that have it, with the intervals that say so."""
        beside = f" beside {self.best}" if self.contrasts else ""
        return [f"{v}{beside}: {'; '.join(c.text for c in there)}" for v in VERDICTS if (there := self.among(v))]

    def record(self) -> dict[str, Any]:
        """As plain numbers."""
        named = {v.replace(" ", "_"): [c.method for c in self.among(v)] for v in VERDICTS}
        listed = [c.record() for c in self.contrasts]
        return {
            "users": self.n, "epsilon": self.epsilon, "metric": self.metric, "use": self.method, "best": self.best,
            **named, "contrasts": listed, "text": self.text,
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """The mean errors of all methods, the least first, for notebooks."""
        order = sorted(self.means, key=lambda method: self.means[method])
        rows = [[called(method), f"{self.means[method]:.1e}"] for method in order]
        errors = [self.means[method] for method in order]
        drawings = whiskers(errors, [0.0] * len(errors), errors, [f"{row[0]}: {row[1]}" for row in rows])
        return card(self.text, ["method", WRITTEN_OUT[self.metric]], rows, (), drawings)


VERDICTS: tuple[Verdict, ...] = ("as good", "open", "worse")


def called(method: str) -> str:
    """How a method is spoken of."""
    return "the default" if method == DEFAULT else method


def fitting(schema: Schema, epsilon: float, users: int, wanted: Iterable[str] = ()) -> tuple[list[str], dict[str, str]]:
    """The methods that can run here, and why the others cannot. Without wishes: the default, and all as they come and
    with their strongest settings.
    """
    asked = list(wanted) or [DEFAULT, *_everything()]
    fit, refused = [], {}
    for text in asked:
        try:
            name, settings = METHODS[DEFAULT] if text == DEFAULT else split_method(text)
            check_runs(choose(name, schema, f"{epsilon:g}", users, settings)[0], schema)
        except ValueError as reason:
            refused[text] = str(reason)
            continue
        fit.append(text)
    if wanted and refused:
        raise ValueError(next(iter(refused.values())))
    return fit, refused


def _everything() -> list[str]:
    strong = [f"{name}:strong" for name, cls in MECHANISMS.working()[0].items() if hasattr(cls, "strong")]
    return [*MECHANISMS, *strong]


def comparison(
    data: Data,
    users: Sequence[int],
    epsilons: Sequence[float],
    methods: Sequence[str],
    repeats: int,
    queries: int,
    seed: int,
    metric: str = "mse",
) -> Figure:
    """The plan: a panel for each number of people, a line for each method over epsilon."""
    panels = []
    for n in users:
        people = replace(data, n=n)
        lines = tuple(
            Line(m, tuple(Point(e, Cell(people, m, e, repeats, queries, None, metric, seed)) for e in epsilons))
            for m in methods
        )
        panels.append(Panel(f"{n}", f"{data.title}, N = {n:,}", lines))
    title = f"Methods on {data.title}"
    return Figure("comparison", title, "lines", "privacy budget ε", tuple(panels), WRITTEN_OUT[metric])


def recommend(figure: Figure, measured: Measured) -> list[Recommendation]:
    """Panel by panel and epsilon by epsilon: the least mean, or the default where it is within a tenth of that."""
    advice = []
    for panel in figure.panels:
        for i, point in enumerate(panel.lines[0].points):
            errors = {line.method: measured.errors(line.points[i].cell) for line in panel.lines}
            advice.append(Recommendation.of(point.cell.data.n, point.x, errors, point.cell.task))
    return advice


def overall(advice: Sequence[Recommendation]) -> str:
    """The one method for all of them: least in the geometric mean, with how far it is from the best at its worst."""
    regret = {m: [a.means[m] / min(a.means.values()) for a in advice] for m in advice[0].means}
    order = sorted(regret, key=lambda method: geometric(regret[method]))
    first = order[0]
    sentence = (
        f"over all of these {called(first)} is best: {geometric(regret[first]):.2f} times the least error in the mean"
    )
    return f"{sentence}, {max(regret[first]):.2f} times at worst"
