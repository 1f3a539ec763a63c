"""A plan before anybody is asked: groups, waves, what a report weighs, the error and the intervals to expect.

What depends on the people is what the method makes of reference populations, said to be such. It is read from tables
(`forecasts`), or simulated where they do not reach or somebody asks for it. Nothing here has seen private data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp
from typing import Any

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.cards import card, whiskers
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms.ahead.decomposition import GrownTrees, threshold
from ahead_ldp.mechanisms.few_people import MINIMUM
from ahead_ldp.oracles import LinearOracle
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Mechanism, Question, Wave, axes_of, check_count
from ahead_ldp.protocol.session import Provenance
from ahead_ldp.protocol.turnout import Staffing, refusal, staffing
from ahead_ldp.research import forecasts
from ahead_ldp.research.evaluation import Spread, Task, trial_rng, workload_rng
from ahead_ldp.research.forecasts import NotTabled, Outlook, Source
from ahead_ldp.research.references import (
    QUERIES,
    SEED,
    SHAPES,
    IndependentPeople,
    reference_population,
    reference_shares,
    shape_rng,
)
from ahead_ldp.research.widths import KINDS, LEVEL, WIDTH_REPEATS, half_widths, means
from ahead_ldp.schema.workloads import random_workload

REPEATS = 5
LAID_OUT = "zipf"  # the reference whose first run shows the questions of the groups
ASKED_FOR = "asked for"  # the simulation


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """One group: the wave it answers in, its share, the people expected, and its question in the reference run."""

    id: str
    wave: int
    share: int
    people: float
    cells: int
    report_bytes: int
    theta: float | None  # AHEAD's threshold at the expected size, for a node that all attributes can cut

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The mean squared error of random queries on a reference population of this shape.

    From a table, its standard deviation is that of single runs, and its interval says how far the table may be off.
    """

    shape: str
    people: int
    mse: Spread
    queries: int = QUERIES
    repeats: int = REPEATS  # 0: read from a table

    def record(self) -> dict[str, Any]:
        """As plain values."""
        sizes = {"queries": self.queries, "repeats": self.repeats}
        return {"shape": self.shape, "people": self.people, **sizes, "mse": self.mse.record()}


@dataclass(frozen=True, slots=True)
class PredictedWidths:
    """Half the width of the intervals that would be printed, in the mean, on a reference population of this shape."""

    shape: str
    people: int
    half: dict[str, float | None]  # by kind of question; None where the attributes have none of it
    repeats: int = WIDTH_REPEATS  # 0: read from a table

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {"shape": self.shape, "people": self.people, "level": LEVEL, "repeats": self.repeats, **self.half}


def _widths(half: dict[str, float | None]) -> list[str]:
    """Half the widths of intervals in percentage points, where the attributes have the kind of question."""
    known = [half.get(kind) for kind in KINDS]
    return ["" if width is None else f"{100 * width:.2f}" for width in known]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a collection would look like."""

    mechanism: Mechanism
    schema: Schema
    users: int
    groups: tuple[PlannedGroup, ...]
    minimum: int = MINIMUM  # reports without which a group is not counted
    predictions: tuple[Prediction, ...] = ()
    widths: tuple[PredictedWidths, ...] = ()
    simulated: str = ""  # why nothing was read from a table; empty if the predictions were

    @property
    def source(self) -> Source:
        """Where the predictions are from."""
        return "simulation" if self.simulated else "table"

    @property
    def waves(self) -> int:
        """How many times questions go out, one after another."""
        return max((group.wave for group in self.groups), default=0)

    @property
    def fanout(self) -> int | None:
        """B, for methods that have one."""
        return getattr(self.mechanism, "fanout", None)

    @property
    def theta(self) -> tuple[float, float] | None:
        """The smallest and the largest threshold, for methods that have one."""
        thetas = [group.theta for group in self.groups if group.theta is not None]
        return (min(thetas), max(thetas)) if thetas else None

    @property
    def report_bytes(self) -> tuple[int, int] | None:
        """The shortest and the longest report on the wire, its random name included; ``None`` if nobody is asked."""
        lengths = [group.report_bytes for group in self.groups]
        return (min(lengths), max(lengths)) if lengths else None

    @property
    def warnings(self) -> list[str]:
        """What to think about before starting."""
        found = self.staffing
        if not self.groups or found.works:
            return []
        return [f"a campaign would be refused: {refusal(self.mechanism, self.schema, found)}"]

    @property
    def staffing(self) -> Staffing:
        """Whether the people are enough for a campaign in which no group below the minimum is counted."""
        asked = [[group.id for group in self.groups if group.wave == k + 1] for k in range(self.waves)]
        return staffing(self.mechanism, self.schema, self.users, self.minimum, asked)

    def __repr__(self) -> str:
        """Short; `record` has everything."""
        names, epsilon = ", ".join(self.schema.names), epsilon_text(self.mechanism.epsilon)
        size = f"{self.users:,} people, {len(self.groups)} groups, {self.waves} waves"
        return f"<Plan for {names}: {self.mechanism.name}, epsilon {epsilon}, {size}>"

    def _repr_html_(self) -> str:
        """The error and the intervals to expect on each reference population, for notebooks."""
        half = {w.shape: w.half for w in self.widths}
        rows = [[p.shape, f"{p.mse.mean:.1e}", *_widths(half.get(p.shape, {}))] for p in self.predictions]
        errors = [p.mse.mean for p in self.predictions]
        drawings = whiskers(errors, [0.0] * len(errors), errors, [f"{row[0]}: {row[1]}" for row in rows])
        head = ["people like", "mean squared error", *(f"half width, {kind}" for kind in KINDS)]
        return card(repr(self).strip("<>"), head, rows, self.warnings, drawings)

    def record(self) -> dict[str, Any]:
        """As plain values; docs/cli.md has the fields."""
        return {
            "method": self.mechanism.name,
            "epsilon": float(epsilon_text(self.mechanism.epsilon)),
            "users": self.users,
            "attributes": [{"name": a.name, "kind": a.kind, "codes": a.size} for a in self.schema.attributes],
            "waves": self.waves,
            "groups": [group.record() for group in self.groups],
            "fanout": self.fanout,
            "theta": None if self.theta is None else list(self.theta),
            "report_bytes": None if self.report_bytes is None else list(self.report_bytes),
            "source": self.source,
            "simulated": self.simulated,
            "predicted": [prediction.record() for prediction in self.predictions],
            "widths": [widths.record() for widths in self.widths],
            "turnout": self.staffing.record(),
            "warnings": self.warnings,
        }


def plan(
    mechanism: Mechanism,
    schema: Schema,
    users: int,
    progress: Callable[[int, int], None] | None = None,
    minimum: int = MINIMUM,
    simulate: bool = False,
) -> Plan:
    """Groups and questions from one run on the Zipf reference; errors and widths from a table, if one reaches so far.

    Else, or with ``simulate``, they come from repeated runs on every reference.
    """
    if users < 1:
        raise ValueError(f"expected users >= 1, got {users}")
    check_count("minimum", minimum)
    try:
        outlook = None if simulate else forecasts.look_up(mechanism, schema, users)
        why = ASKED_FOR if simulate else ""
    except NotTabled as reason:
        outlook, why = None, str(reason)
    if outlook is None:
        laid_out, predictions, widths = _simulated(mechanism, schema, users, progress)
    else:
        laid_out, (predictions, widths) = lay_out(mechanism, schema, users, quick=True), _tabled(outlook, users)
    return replace(laid_out, minimum=minimum, predictions=predictions, widths=widths, simulated=why)


def _tabled(outlook: Outlook, users: int) -> tuple[tuple[Prediction, ...], tuple[PredictedWidths, ...]]:
    predictions = []
    for shape, mse in outlook.mse.items():
        between = mse * exp(-outlook.doubt), mse * exp(outlook.doubt)
        predictions.append(Prediction(shape, users, Spread(mse, outlook.scatter * mse, between), repeats=0))
    widths = (PredictedWidths(shape, users, half, repeats=0) for shape, half in outlook.half.items())
    return tuple(predictions), tuple(widths)


def _simulated(
    mechanism: Mechanism, schema: Schema, users: int, progress: Callable[[int, int], None] | None
) -> tuple[Plan, tuple[Prediction, ...], tuple[PredictedWidths, ...]]:
    """Every run serves all that is said of it: its error, the widths of the first ones, the questions of the first."""
    laid_out, predictions, widths, done = Plan(mechanism, schema, users, ()), [], [], 0
    for shape in SHAPES:
        people = reference_population(shape, schema.sizes, users, shape_rng(shape))
        task = Task.of(schema, people, random_workload(schema, QUERIES, workload_rng(SEED)))
        errors, half = list[float](), _no_widths()
        for repetition in range(REPEATS):
            estimate = run_simulation(mechanism, schema, people, _trial_rng(mechanism, repetition))
            errors.append(float(np.mean((estimate.answer(task.workload, errors=False).values - task.truth) ** 2)))
            if repetition < WIDTH_REPEATS:
                _look_at_widths(estimate, shape, half)
            if shape == LAID_OUT and repetition == 0:
                laid_out = _planned(mechanism, schema, users, _asked(estimate))
            done += 1
            if progress:
                progress(done, len(SHAPES) * REPEATS)
        predictions.append(Prediction(shape, people.n, Spread.of(errors)))
        widths.append(PredictedWidths(shape, people.n, means(half)))
    return laid_out, tuple(predictions), tuple(widths)


def predict_widths(mechanism: Mechanism, schema: Schema, shape: str, people: Population) -> PredictedWidths:
    """What intervals would reach on a reference population, by the kind of question."""
    half = _no_widths()
    for repetition in range(WIDTH_REPEATS):
        _look_at_widths(run_simulation(mechanism, schema, people, _trial_rng(mechanism, repetition)), shape, half)
    return PredictedWidths(shape, people.n, means(half))


def _no_widths() -> dict[str, list[float]]:
    return {kind: [] for kind in KINDS}


def _look_at_widths(estimate: Estimate, shape: str, half: Mapping[str, list[float]]) -> None:
    """Add what the intervals of one run reach."""
    shares = reference_shares(shape, estimate.schema.sizes)
    for kind in KINDS:
        half[kind].extend(half_widths(estimate, shares, kind, SEED).tolist())


def lay_out(mechanism: Mechanism, schema: Schema, users: int, quick: bool = False) -> Plan:
    """The plan without its predictions: groups, and the questions that they get in a run on the Zipf reference.

    The quick way knows the people by their shares alone and makes no estimate: many attributes take no longer.
    """
    rng = _trial_rng(mechanism, 0)
    if quick:
        waves = IndependentPeople(reference_shares(LAID_OUT, schema.sizes), users).asked(mechanism, schema, rng)
    else:
        people = reference_population(LAID_OUT, schema.sizes, users, shape_rng(LAID_OUT))
        waves = _asked(run_simulation(mechanism, schema, people, rng))
    return _planned(mechanism, schema, users, waves)


def _asked(estimate: Estimate) -> list[Wave]:
    """The questions behind an estimate."""
    origin = estimate.provenance
    assert isinstance(origin, Provenance)
    return [after.wave for after in origin.waves]


def _planned(mechanism: Mechanism, schema: Schema, users: int, waves: Sequence[Wave]) -> Plan:
    """The plan without its predictions, from the questions of a run."""
    groups = {group.id: group for group in mechanism.groups(schema)}
    everybody = sum(group.share for group in groups.values())
    planned = [
        PlannedGroup(
            id=name,
            wave=number,
            share=groups[name].share,
            people=(expected := users * groups[name].share / everybody),
            cells=question.partition.cells,
            report_bytes=ID_LENGTH + question.oracle.report_bytes,
            theta=_theta(mechanism, schema, question, expected),
        )
        for number, wave in enumerate(waves, start=1)
        for name, question in wave.items()
    ]
    return Plan(mechanism, schema, users, tuple(planned))


def _theta(mechanism: Mechanism, schema: Schema, question: Question, people: float) -> float | None:
    if not isinstance(mechanism, GrownTrees) or not isinstance(question.oracle, LinearOracle):
        return None
    root = Tree.root(axes_of(schema, question.attributes), mechanism.fanout)
    variance = float(question.oracle.variance(1)) / people
    return float(threshold(variance, root.prospective_children[0], mechanism.scale))


def _trial_rng(mechanism: Mechanism, repetition: int) -> Generator:
    return trial_rng(SEED, mechanism.name, mechanism.epsilon, repetition)
