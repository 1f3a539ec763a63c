"""From a target to a plan: the error to expect, and how many people, which epsilon, how fine, how many attributes.

All is about the reference populations of `references`; what counts is the least favourable one. What is expected there
is read from tables (`forecasts`), or simulated where they do not reach. A target is about one of four sizes, the
``Meaning`` of a forecast. "error": the absolute error that 95 % of random range answers stay within. "range", "code"
and "quantile": half the width, in the mean, of the intervals that will be printed for random ranges, for single codes
and for quartiles (as a share of the attribute's range).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any, Literal, get_args

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import LEAST_NEW, MOST_NEW, epsilon_text
from ahead_ldp.engines.simulation import run_simulation
from ahead_ldp.estimates.cards import card, whiskers
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.evaluation import Task, choose, trial_rng, workload_rng
from ahead_ldp.research.forecasts import NotTabled, Outlook, Source, look_up
from ahead_ldp.research.references import QUERIES, SEED, SHAPES, reference_population, reference_shares, shape_rng
from ahead_ldp.research.widths import WIDTH_REPEATS, half_widths
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.workloads import random_workload

Unknown = Literal["users", "epsilon", "buckets", "attributes"]
Meaning = Literal["error", "range", "code", "quantile"]
Progress = Callable[[str], None]

UNKNOWNS: tuple[Unknown, ...] = ("users", "epsilon", "buckets", "attributes")
MEANINGS: tuple[Meaning, ...] = get_args(Meaning)
LEVEL = 0.95
MOST_USERS = 10**9
MOST_BUCKETS, MOST_ATTRIBUTES = 4096, 10
_REPEATS = 6
_CLOSE = 1.05  # a bracket this narrow is an answer: repetitions are noisier than that
_MOST_STEPS = 14


@dataclass(frozen=True, slots=True)
class Case:
    """A collection in the planner's words: who, how private, about what, by which method."""

    schema: Schema
    users: int
    epsilon: float
    method: str | None = None  # None: the default for the attributes
    settings: str = "default"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The error or the intervals to expect of a case on each reference population."""

    case: Case
    method: str
    mse: dict[str, float]  # by shape, over random ranges
    errors: dict[str, float]  # by shape: the size that ``meaning`` names
    meaning: Meaning = "error"
    source: Source = "simulation"

    @property
    def error(self) -> float:
        """The size on the least favourable shape."""
        return max(self.errors.values())

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "method": self.method,
            "settings": self.case.settings,
            "users": self.case.users,
            "epsilon": self.case.epsilon,
            "sizes": list(self.case.schema.sizes),
            "level": LEVEL,
            "meaning": self.meaning,
            "source": self.source,
            "error": self.error,
            "by_shape": {s: {"mse": self.mse[s], "error": self.errors[s]} for s in self.mse},
        }


@dataclass(frozen=True, slots=True)
class Solution:
    """The value of the unknown that keeps the target, the forecast there, and what was tried on the way."""

    unknown: Unknown
    target: float
    reached: bool
    forecast: Forecast
    tried: tuple[Forecast, ...]

    @property
    def value(self) -> float:
        """The unknown's value: the smallest found for people and epsilon, the largest for buckets and attributes."""
        return _value(self.forecast.case, self.unknown)

    def __repr__(self) -> str:
        """Short; `record` has everything."""
        reached = "" if self.reached else ", which does not reach the target"
        return f"<Solution: {self.unknown} {self.value:,g} for a target of {self.target:g}{reached}>"

    def _repr_html_(self) -> str:
        """What was tried on the way, for notebooks."""
        rows = [[f"{_value(f.case, self.unknown):,g}", f"{100 * f.error:.2f}"] for f in self.tried]
        errors = [f.error for f in self.tried]
        drawings = whiskers(errors, [0.0] * len(errors), errors, [f"{row[0]}: {row[1]}" for row in rows])
        return card(repr(self).strip("<>"), [self.unknown, "error in points"], rows, (), drawings)

    def record(self) -> dict[str, Any]:
        """As plain values."""
        head = {"unknown": self.unknown, "target": self.target, "reached": self.reached, "value": self.value}
        return {**head, "forecast": self.forecast.record(), "tried": [f.record() for f in self.tried]}


def forecast(
    case: Case,
    repeats: int | None = None,
    shapes: Iterable[str] = SHAPES,
    meaning: Meaning = "error",
    simulate: bool = False,
) -> Forecast:
    """What to expect of the case on the reference populations, from a table if one reaches so far.

    Else, or with ``simulate``, it is simulated; ``repeats`` left out are then six for errors, two for widths.
    """
    if meaning not in MEANINGS:
        raise ValueError(f"expected meaning to be one of {', '.join(MEANINGS)}, got {meaning!r}")
    mechanism, _ = choose(case.method, case.schema, epsilon_text(case.epsilon), case.users, case.settings)
    outlook = None if simulate else _read(case, mechanism)
    if outlook is None:
        return _simulated(case, mechanism, repeats, shapes, meaning)
    return _tabled(case, mechanism.name, outlook, shapes, meaning)


def is_tabled(case: Case) -> bool:
    """Whether a forecast of the case takes no simulation."""
    mechanism, _ = choose(case.method, case.schema, epsilon_text(case.epsilon), case.users, case.settings)
    return _read(case, mechanism) is not None


def _read(case: Case, mechanism: Mechanism) -> Outlook | None:
    try:
        return look_up(mechanism, case.schema, case.users)
    except NotTabled:
        return None


def _tabled(case: Case, method: str, outlook: Outlook, shapes: Iterable[str], meaning: Meaning) -> Forecast:
    mse = {shape: outlook.mse[shape] for shape in shapes}
    sizes = {}
    for shape in mse:
        half = outlook.error[shape] if meaning == "error" else outlook.half[shape][meaning]
        sizes[shape] = _mean([] if half is None else [half], meaning)
    return Forecast(case, method, mse, sizes, meaning, "table")


def _simulated(
    case: Case, mechanism: Mechanism, repeats: int | None, shapes: Iterable[str], meaning: Meaning
) -> Forecast:
    workload = random_workload(case.schema, QUERIES, workload_rng(SEED))
    mse, sizes = {}, {}
    for shape in shapes:
        people = reference_population(shape, case.schema.sizes, case.users, shape_rng(shape))
        task, distances, widths = Task.of(case.schema, people, workload), [], list[float]()
        for k in range(repeats or (_REPEATS if meaning == "error" else WIDTH_REPEATS)):
            estimate = run_simulation(mechanism, case.schema, people, trial_rng(SEED, mechanism.name, case.epsilon, k))
            distances.append(estimate.answer(workload, errors=False).values - task.truth)
            if meaning != "error":
                shares = reference_shares(shape, case.schema.sizes)
                widths += half_widths(estimate, shares, meaning, SEED).tolist()
        distance = np.abs(np.stack(distances))
        mse[shape] = float(np.mean(distance**2))
        sizes[shape] = float(np.quantile(distance, LEVEL) if meaning == "error" else _mean(widths, meaning))
    return Forecast(case, mechanism.name, mse, sizes, meaning)


def _mean(widths: list[float], meaning: Meaning) -> float:
    if not widths:
        raise ValueError(f"expected attributes with several ordered codes for a target of meaning {meaning}, got none")
    return float(np.mean(widths))


def exchange(case: Case, epsilon: float) -> int:
    """People who at another epsilon give the same error, by the paper's rule: N epsilon^2 stays the same (Sec. 5.5)."""
    return round(case.users * (case.epsilon / epsilon) ** 2)


def solve(
    case: Case,
    unknown: Unknown,
    target: float,
    progress: Progress | None = None,
    meaning: Meaning = "error",
    simulate: bool = False,
) -> Solution:
    """The unknown that keeps the target; the case's own value of it is where the search begins.

    The fewest people or the smallest epsilon, to about 5 %; the most buckets (a power of two, of every attribute) or
    the most attributes (all like the first). Out of reach it is the best that was tried, and ``reached`` is False.
    """
    if unknown not in UNKNOWNS:
        raise ValueError(f"expected unknown to be one of {', '.join(UNKNOWNS)}, got {unknown!r}")
    if not 0 < target < 1:
        raise ValueError(f"expected 0 < target < 1, got {target!r}")
    tried: list[Forecast] = []

    def look(case: Case) -> Forecast:
        """Forecast and remember."""
        tried.append(forecast(case, meaning=meaning, simulate=simulate))
        if progress:
            progress(f"{unknown} {_value(case, unknown):g}: within {100 * tried[-1].error:.2f} points")
        return tried[-1]

    if unknown in ("users", "epsilon"):
        best = _continuous(case, unknown, target, look)
    else:
        best = _discrete(case, unknown, target, look)
    if best is None:
        return Solution(unknown, target, False, min(tried, key=lambda f: f.error), tuple(tried))
    return Solution(unknown, target, True, best, tuple(tried))


def _continuous(case: Case, unknown: Unknown, target: float, look: Callable[[Case], Forecast]) -> Forecast | None:
    """Errors fall like 1 / (sqrt(N) epsilon): leap by that rule until the target lies between, then close in."""
    power, least, most = (
        (2.0, 1.0, float(MOST_USERS)) if unknown == "users" else (1.0, float(LEAST_NEW), float(MOST_NEW))
    )
    x, below, above, best = _value(case, unknown), least, most, None
    at_below, at_above = 0.0, 0.0
    for _ in range(_MOST_STEPS):
        seen = look(_with(case, unknown, x))
        x = _value(seen.case, unknown)
        if seen.error <= target:
            above, at_above, best = x, seen.error, seen
        else:
            if x >= most:
                return None
            below, at_below = x, seen.error
        if best is not None and (above <= below * _CLOSE or above <= least):
            return best
        leap = x * (seen.error / target) ** power * (1.02 if seen.error > target else 0.98)
        if at_below and at_above:  # both sides known: where a power law through them meets the target
            slope = log(at_above / at_below) / log(above / below)
            leap = below * exp(log(target / at_below) / slope) if slope < 0 else (below * above) ** 0.5
            middle = (below * above) ** 0.5
            leap = min(max(leap, below * (middle / below) ** 0.2), above / (above / middle) ** 0.2)
        x = min(max(leap, least), most) if best is not None else min(max(leap, x * 1.1), most)
    return best


def _discrete(case: Case, unknown: Unknown, target: float, look: Callable[[Case], Forecast]) -> Forecast | None:
    """From the smallest up, until the target is missed."""
    if unknown == "buckets":
        values = [2**k for k in range(2, MOST_BUCKETS.bit_length())]
    else:
        values = list(range(1, MOST_ATTRIBUTES + 1))
    best = None
    for value in values:
        seen = look(_with(case, unknown, value))
        if seen.error > target:
            break
        best = seen
    return best


def _value(case: Case, unknown: Unknown) -> float:
    sizes = case.schema.sizes
    values = {"users": case.users, "epsilon": case.epsilon, "buckets": sizes[0], "attributes": len(sizes)}
    return values[unknown]


def _with(case: Case, unknown: Unknown, value: float) -> Case:
    if unknown == "users":
        return replace(case, users=round(value))
    if unknown == "epsilon":
        return replace(case, epsilon=float(f"{value:.4g}"))
    sizes = case.schema.sizes
    sizes = (int(value),) * len(sizes) if unknown == "buckets" else (sizes[0],) * int(value)
    return replace(case, schema=as_schema([codes(f"x{i + 1}", size) for i, size in enumerate(sizes)]))
