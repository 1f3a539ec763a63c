"""Measuring: how far a method's answers are from the truth over repetitions, and what they cost.

People and queries stay fixed; a repetition draws groups and noise anew. Every repetition has a seed of its own, so any
of them can be run again alone.
"""

from __future__ import annotations

import hashlib
import inspect
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, Self

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.engines.simulation import Population, is_counted, run_simulation
from ahead_ldp.mechanisms import class_of, default_method, known_method, make_mechanism
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.protocol.session import finish
from ahead_ldp.research.distances import METRICS, Curves, distances, true_curves
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.workloads import Workload, true_answers, true_answers_from_records

SETTINGS = ("default", "paper", "strong")


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, standard deviation and 95 % interval of the mean (Student's t) of a size that cannot be negative.

    One value alone has neither deviation nor interval.
    """

    mean: float
    std: float | None
    ci95: tuple[float, float] | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """The spread of independent values."""
        mean, n = statistics.fmean(values), len(values)
        if n < 2:
            return cls(mean, None, None)
        from scipy.special import stdtrit

        std = statistics.stdev(values)
        half = float(stdtrit(n - 1, 0.975)) * std / sqrt(n)
        return cls(mean, std, (max(mean - half, 0.0), mean + half))

    def record(self) -> dict[str, Any]:
        """As plain numbers, ``None`` where there is none."""
        return {"mean": self.mean, "std": self.std, "ci95": None if self.ci95 is None else list(self.ci95)}


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What stays fixed over repetitions and methods: the people, the queries and their true answers."""

    schema: Schema
    people: Population
    workload: Workload
    truth: Floats

    @property
    def curves(self) -> Curves:
        """The true share of people up to each code."""
        return true_curves(self.schema, self.people.records, self.people.histogram)

    @classmethod
    def of(cls, schema: Schema, people: Population, workload: Workload) -> Self:
        """The task with its true answers, which are shares of the people."""
        if people.records is not None:
            return cls(schema, people, workload, true_answers_from_records(workload, people.records))
        assert people.histogram is not None
        return cls(schema, people, workload, true_answers(workload, people.histogram))


@dataclass(frozen=True, slots=True)
class Trial:
    """One repetition: mean squared error over the queries, seconds by the clock, distances of the distributions.

    Building goes from the people to the estimate; the queries are all those of the workload. Distances are `None`
    where no attribute has an order (`distances`).
    """

    mse: float
    build_seconds: float
    query_seconds: float
    wasserstein: float | None = None
    ks: float | None = None

    def error(self, metric: str) -> float:
        """By one of `METRICS`."""
        value: float | None = getattr(self, metric)
        if value is None:
            raise ValueError(f"expected an attribute with an order for the metric {metric}, got nominal ones alone")
        return value


@dataclass(frozen=True, slots=True)
class Score:
    """A method at one epsilon over all repetitions.

    Seconds are medians, so that a first, cold one does not count.
    """

    method: str
    settings: str
    epsilon: str
    trials: tuple[Trial, ...]
    peak_memory_bytes: int
    seed: int

    @property
    def mse(self) -> Spread:
        """The mean squared error over the queries, spread over the repetitions."""
        return Spread.of([trial.mse for trial in self.trials])

    def spread(self, metric: str) -> Spread | None:
        """By one of `METRICS`, spread over the repetitions; None where it means nothing."""
        values = [getattr(trial, metric) for trial in self.trials]
        return None if None in values else Spread.of(values)

    @property
    def build_seconds(self) -> float:
        """From the people to the estimate."""
        return statistics.median(trial.build_seconds for trial in self.trials)

    @property
    def query_seconds(self) -> float:
        """All queries of the workload."""
        return statistics.median(trial.query_seconds for trial in self.trials)

    def record(self) -> dict[str, Any]:
        """The score as plain numbers; docs/cli.md has the fields."""
        return {
            "method": self.method,
            "settings": self.settings,
            "epsilon": float(self.epsilon),
            **{metric: None if (found := self.spread(metric)) is None else found.record() for metric in METRICS},
            "seconds": {"build": self.build_seconds, "queries": self.query_seconds},
            "peak_memory_bytes": self.peak_memory_bytes,
            "repeats": len(self.trials),
            "seed": self.seed,
        }


def trial_rng(seed: int, method: str, epsilon: float | str | Fraction, repetition: int) -> Generator:
    """The generator of one repetition, a function of these four and nothing else."""
    return np.random.default_rng(SeedSequence(seed, spawn_key=(_key(f"{method} {epsilon_text(epsilon)}"), repetition)))


def workload_rng(seed: int) -> Generator:
    """The generator for random queries, apart from those of all repetitions."""
    return np.random.default_rng(SeedSequence(seed, spawn_key=(_key("queries"),)))


def _key(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def run_trial(task: Task, mechanism: Mechanism, rng: Generator, curves: Curves | None = None) -> Trial:
    """Simulate the mechanism once and compare its answers with the truth; with ``curves``, the distributions too."""
    started = time.perf_counter()
    estimate = run_simulation(mechanism, task.schema, task.people, rng)
    built = time.perf_counter()
    answers = estimate.answer(task.workload, errors=False)
    answered = time.perf_counter()
    error = float(np.mean((answers.values - task.truth) ** 2))
    return Trial(error, built - started, answered - built, *(distances(estimate, curves or {}) or (None, None)))


def peak_memory(task: Task, mechanism: Mechanism, rng: Generator) -> int:
    """The most memory that Python and NumPy hold at once in one repetition, beyond what they held before it.

    It is traced, which slows the work down: such a repetition is for its memory, not for its time. The people
    themselves are not in it.
    """
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        run_trial(task, mechanism, rng)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not tracing:
            tracemalloc.stop()


def measure(
    task: Task,
    mechanism: Mechanism,
    repeats: int,
    seed: int,
    settings: str = "default",
    progress: Callable[[], None] | None = None,
    memory: bool = True,
) -> Score:
    """Repeat, and once more for the memory (with the first repetition's seed). ``progress`` is called after each."""
    if repeats < 1:
        raise ValueError(f"expected repeats >= 1, got {repeats}")
    trials, curves = [], task.curves
    for repetition in range(repeats):
        rng = trial_rng(seed, mechanism.name, mechanism.epsilon, repetition)
        trials.append(run_trial(task, mechanism, rng, curves))
        if progress:
            progress()
    peak = peak_memory(task, mechanism, trial_rng(seed, mechanism.name, mechanism.epsilon, 0)) if memory else 0
    return Score(mechanism.name, settings, epsilon_text(mechanism.epsilon), tuple(trials), peak, seed)


def people_of(codes: ArrayLike, sizes: Sequence[int]) -> Population:
    """People from records of codes (n, m): counted by cell where that is smaller, which changes no law."""
    people = Population.of_records(np.asarray(codes), sizes)
    return people.counted() if is_counted(sizes, people.n) else people


def choose(
    method: str | type[Mechanism] | None,
    schema: Schema,
    epsilon: float | str | Fraction,
    users: int,
    settings: str = "default",
) -> tuple[Mechanism, str]:
    """The method with one of its settings, and which one it is: "default" where it has none of that name.

    The method is a class, a registered name, or the ``package.module:Class`` of a caller's own. "paper" are the
    settings of the method's own paper, "strong" the best published or found ones.
    """
    if settings not in SETTINGS:
        raise ValueError(f"expected settings to be default, paper or strong, got {settings!r}")
    if users < 1:
        raise ValueError(f"expected users >= 1, got {users}")
    named = default_method(schema, settings == "paper") if method is None else method
    cls = class_of(known_method(named) if isinstance(named, str) else named)
    preset = getattr(cls, settings, None)
    if settings != "strong" or preset is None:
        mechanism = make_mechanism(cls, schema, epsilon, users, paper=settings == "paper")
        return mechanism, settings if preset else "default"
    epsilon_text(epsilon)
    known = inspect.signature(preset).parameters
    given = {key: value for key, value in {"epsilon": epsilon, "users": users}.items() if key in known}
    return make_mechanism(preset(**given), schema, epsilon), settings


def check_runs(mechanism: Mechanism, schema: Schema, workload: Workload | None = None) -> None:
    """Let a method that cannot take this schema, or answer this workload, say so before anything long is begun."""
    mechanism.groups(schema)
    if workload is None:
        next(mechanism.run(schema), None)
    else:
        finish(mechanism, schema).answer(workload, errors=False)  # a run that nobody answers
