"""Strict intervals: many at once, one at a time, and a plain loop with a general solver beside them."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from ahead_ldp.engines.simulation import Population
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.estimates.strict.answers import StrictAnswers
from ahead_ldp.estimates.strict.bounds import Evidence
from ahead_ldp.estimates.strict.problem import Problem
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import Workload
from benchmarks.ahead import builder
from benchmarks.measuring import Section, Sizes, at_least, at_most, fresh_cpu_s
from benchmarks.populations import gaussian, ranges
from benchmarks.rendering import seconds

QUERIES = 200
_MANY = 100_000  # users of a measurement; a look has fewer
LOOPED = 3  # queries of the plain loop, which is slow


def run(sizes: Sizes) -> Section:
    """200 intervals of one attribute and of two, and one `ask`, after the build; a general solver beside them."""
    rows, numbers, targets = [], {}, []
    queries = QUERIES if sizes.users >= _MANY else QUERIES // 10
    cases = [("one attribute", (sizes.cells,), 2.0), ("two attributes", (128, 128), 10.0)]
    for name, shape, bound in cases:
        people = Population.of_histogram(
            gaussian(sizes.people, sizes.cells) if len(shape) == 1 else _pair(sizes.people)
        )
        build = builder("adaptive" if len(shape) == 1 else "fused", shape, people)
        workload = Workload.from_codes(shape, ranges(shape, queries))
        spent = fresh_cpu_s(build, _intervals(workload), 1)
        one = fresh_cpu_s(build, _ask(shape), 2)
        rows.append((f"{queries} intervals, {name}", seconds(spent), seconds(spent / queries)))
        rows.append((f"one ask, {name}", seconds(one), seconds(one)))
        targets += [at_most(f"{queries} strict intervals, {name}", spent, bound * queries / QUERIES, "s")]
        targets += [at_most(f"one ask with its strict interval, {name}", one, 0.1, "s")]
        numbers[name] = {"intervals_s": spent, "ask_s": one}
        if len(shape) == 1:
            loop = _plain(build(), workload)
            rows.append((f"a plain loop with SLSQP, {name}", "", seconds(loop)))
            targets.append(at_least("times faster than the plain loop", loop * queries / spent, 5))
            numbers["plain_loop_s_per_interval"] = loop
    notes = (
        f"CPU time of one core after the build, epsilon 1, {sizes.people:,} people, random ranges and boxes.",
        "The plain loop solves the same programs, on the same atoms, one by one with a general solver.",
    )
    head = ("what", "in all", "each")
    return Section("Strict intervals", head, tuple(rows), notes, tuple(targets), numbers)


def _intervals(workload: Workload) -> Callable[[Estimate], object]:
    @one_thread  # as Answers.interval does
    def intervals(estimate: Estimate) -> object:
        assert estimate.provenance is not None
        return StrictAnswers(Evidence(estimate.schema, estimate.provenance), workload).interval(0.95)

    return intervals


def _ask(shape: tuple[int, ...]) -> Callable[[Estimate], object]:
    boxes = np.array([[[size // 7, size // 2] for size in shape]])
    return _intervals(Workload.from_codes(shape, boxes))


def _pair(people: int) -> Ints:
    """Two attributes that go together."""
    x = np.arange(128)
    p = np.exp(-(((x[:, None] - 40) / 20) ** 2) - ((x[None] - 0.6 * x[:, None] - 30) / 18) ** 2)
    return np.random.default_rng(1).multinomial(people, (p / p.sum()).reshape(-1)).reshape(128, 128)


@one_thread
def _plain(estimate: Estimate, workload: Workload) -> float:
    """CPU seconds for an interval: a program for each end and fold, by a solver that knows nothing about it."""
    assert estimate.provenance is not None
    ground = Evidence(estimate.schema, estimate.provenance).ground((0,))
    start = time.process_time()
    for box in workload.boxes[:LOOPED]:
        piece = ground.near(box[None])
        share = piece.share(box[None])
        for q in (share > 0, -1.0 * (share >= 1)):
            for f in piece.problem.folds[1]:
                _farthest(piece.problem, np.asarray(q, float), f)
    return (time.process_time() - start) / LOOPED


def _farthest(problem: Problem, q: Floats, f: Floats) -> None:
    matrix = problem.cone.matrix
    inside = {
        "type": "ineq",
        "fun": lambda x: 3.84 - (x - f) @ matrix @ (x - f),
        "jac": lambda x: -2 * matrix @ (x - f),
    }
    whole = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(x.size)}
    minimize(
        lambda x: -q @ x, f, jac=lambda x: -q, bounds=[(0, 1)] * f.size, constraints=[inside, whole], method="SLSQP"
    )
