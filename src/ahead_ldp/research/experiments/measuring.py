"""Running a cell: a pure function of the cell and the data folder, so that any machine can run any cell alone."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.research.datasets.crowds import Crowd
from ahead_ldp.research.datasets.loading import drawn, load, population_of
from ahead_ldp.research.datasets.synthetic import people
from ahead_ldp.research.datasets.tables import DATASETS
from ahead_ldp.research.evaluation import Task, run_trial
from ahead_ldp.research.experiments.journal import Outcome
from ahead_ldp.research.experiments.plan import Cell, Data, rng_of
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.coding import encode
from ahead_ldp.schema.columns import declared_columns
from ahead_ldp.schema.workloads import Workload

BINS = {1: (64,), 2: (32, 32)}  # in which leaves are counted, by the number of attributes


def run_cell(cell: Cell) -> Outcome:
    """All repetitions of a cell. People and queries are the same in every cell on the same data."""
    begun = time.process_time()
    task, note = prepare(cell.data, cell.queries, cell.seed)
    ready = time.process_time()
    rows = _leaves(cell, task) if cell.task == "leaves" else _errors(cell, task)
    build, answer = (sum(row.pop(name, 0.0) for row in rows) for name in ("build_seconds", "query_seconds"))
    cost = {
        "prepare_cpu_s": ready - begun,
        "run_cpu_s": time.process_time() - ready,
        "build_s": build,
        "query_s": answer,
        "peak_memory_bytes": peak_memory_bytes(),
    }
    return Outcome(cell.id, cell.key, tuple(rows), note, cost)


def _errors(cell: Cell, task: Task) -> list[dict[str, Any]]:
    mechanism, rows, curves = cell.mechanism, [], None if cell.task == "mse" else task.curves
    for repetition in range(cell.repeats):
        trial = run_trial(task, mechanism, rng_of(cell.seed, cell.id, repetition), curves)
        seconds = {"build_seconds": trial.build_seconds, "query_seconds": trial.query_seconds}
        rows.append({"repetition": repetition, cell.task: trial.error(cell.task), **seconds})
    return rows


def _leaves(cell: Cell, task: Task) -> list[dict[str, Any]]:
    """The mean number of leaves in each of a few equal parts of the domain, beside the share of people there.

    A leaf counts in every part that it meets, with that share of itself.
    """
    bins = BINS[len(cell.data.sizes)]
    counts = np.zeros(bins)
    for repetition in range(cell.repeats):
        estimate = run_simulation(cell.mechanism, task.schema, task.people, rng_of(cell.seed, cell.id, repetition))
        assert isinstance(estimate, TreeEstimate)
        leaves = estimate.tree.leaves
        counts += coarse(_density(estimate.tree.lo[leaves], estimate.tree.hi[leaves], cell.data.sizes), bins)
    assert task.people.histogram is not None
    true = (coarse(task.people.histogram, bins) / task.people.n).reshape(-1)
    means = (counts / cell.repeats).reshape(-1)
    return [
        {"bin": i, "share": float(share), "leaves": float(count)}
        for i, (share, count) in enumerate(zip(true, means, strict=True))
    ]


def _density(lo: NDArray[Any], hi: NDArray[Any], sizes: tuple[int, ...]) -> Floats:
    """Leaves per code, from the corners of their boxes."""
    leaves = np.zeros([size + 1 for size in sizes])
    each = 1.0 / np.prod(hi - lo, axis=1)
    for corner in np.ndindex(*(2,) * len(sizes)):
        at = np.where(np.array(corner, bool), hi, lo)
        np.add.at(leaves, tuple(at.T), each * (-1) ** sum(corner))
    for axis in range(len(sizes)):
        leaves = np.cumsum(leaves, axis=axis)
    return leaves[tuple(slice(size) for size in sizes)]


def coarse(histogram: NDArray[Any], bins: tuple[int, ...]) -> NDArray[Any]:
    """Neighbouring cells added up, where the bins divide the sizes."""
    for axis, count in enumerate(bins):
        step = histogram.shape[axis] // count
        histogram = np.add.reduceat(histogram, np.arange(0, histogram.shape[axis], step), axis=axis)
    return histogram


@lru_cache(maxsize=2)
def prepare(data: Data, queries: int, seed: int) -> tuple[Task, str]:
    """The people of some data, their queries and true answers, and what a caption must say of them."""
    crowd, note = find_people(data, seed)
    workload = draw_queries(data.sizes, queries, seed)
    if isinstance(crowd, Crowd):
        return Task(data.schema, crowd, workload, crowd.true_answers(workload)), note
    return Task.of(data.schema, crowd, workload), note


def draw_queries(sizes: tuple[int, ...], count: int, seed: int) -> Workload:
    """The paper's random queries: for each attribute two uniform codes, in order, closed.

    They are places on the unit interval, the same for every domain of as many attributes, so that figures over domain
    size, correlation or users compare like with like.
    """
    places = rng_of(seed, f"{count} queries on {len(sizes)}").random((count, len(sizes), 2))
    ends = np.floor(places * np.array(sizes)[:, None]).astype(np.int64)
    return Workload.from_codes(sizes, np.sort(ends, axis=-1))


def find_people(data: Data, seed: int) -> tuple[Population, str]:
    """The same people every time."""
    rng = rng_of(seed, f"people {data.id}")
    if data.file:
        schema = data.schema
        codes = encode(schema, declared_columns(data.file, schema, data.columns))
        return population_of(drawn(codes, data.n, rng), data.sizes), ""
    if data.name in DATASETS:
        sample = load(data.name, data.columns, data.sizes, rng, data.n)
        return sample.people, sample.note
    return people(data.name, data.sizes, data.n, rng, data.r, data.skew), ""


def peak_memory_bytes() -> int:
    """The most memory that this process has held, everything included; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
