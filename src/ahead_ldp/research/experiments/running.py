"""Running a plan: a journal, and a run that can be killed and goes on where it was.

On this machine cells run in processes of one thread each. On Spark there is a task for each batch of cells, with the
same outcomes; executors need this package and read the data from the folder that `AHEAD_DATA` names there.

How long it will take is known before: every cell has an estimate in processor seconds.

Anything that maps a function over cells can run a plan instead (a cluster, say): `measuring.run_cell` is pure, and
`results` does not care where outcomes come from.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from math import prod
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path
from typing import Any

import numpy as np

from ahead_ldp.engines.spark_session import spark_map
from ahead_ldp.research.datasets.loading import MissingData
from ahead_ldp.research.experiments import journal
from ahead_ldp.research.experiments.journal import Outcome
from ahead_ldp.research.experiments.measuring import run_cell
from ahead_ldp.research.experiments.plan import Cell

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_BATCH_S = 60.0  # estimated; cells on the same people stay together up to this
# What cells will take, for planning and for the progress bar, was measured on one core of the machine of
# docs/evaluation.md; a short calculation says how fast this one is.
_PROBE_S = 0.023  # `_probe` on the reference machine

# Seconds of one repetition: a fixed part, and per thousand cells of the domain.
_ONE = {"HIO": (0.004, 0.007), "DHT": (0.003, 0.003), "CALM": (0.0015, 0.001), "default": (0.065, 0.025)}
_TWO = {"HDG": (0.012, 1.5e-4), "CALM": (0.004, 2e-4), "default": (0.3, 7e-4)}
_AHEAD = {1: (0.004, 0.002), 2: (0.012, 5e-4)}
_PAIR = {"LLE": 0.012, "HDG": 0.006, "default": 0.1}  # per pair of attributes, queries included
_PER_PERSON = 3e-8  # of dividing a crowd and counting its groups
_PER_PERSON_OF_TWO = 1.1e-7  # where groups are many, of two attributes' histogram: the default's
Progress = Callable[[float, float], None]  # estimated seconds of work done, and in all


@dataclass(frozen=True, slots=True)
class Problems:
    """What could not be run: data that are missing (by their id), and cells that failed (by theirs), each with why."""

    missing: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


Run = Callable[[Sequence[list[Cell]], Path, int], Iterator[tuple[list[Cell], Problems]]]  # batches as they end


def run_cells(cells: Sequence[Cell], path: Path, jobs: int, progress: Progress | None = None) -> Problems:
    """Run what the journal does not have yet, and add it there. One cell that fails does not stop the others."""
    return _run(cells, path, jobs, progress, _in_processes)


def run_cells_on_spark(
    cells: Sequence[Cell], path: Path, jobs: int, progress: Progress | None = None, session: Any = None
) -> Problems:
    """As ``run_cells``, on Spark, ``jobs`` batches a round; the session is given, or started here."""
    return _run(cells, path, jobs, progress, partial(_on_spark, session=session))


def _run(cells: Sequence[Cell], path: Path, jobs: int, progress: Progress | None, run: Run) -> Problems:
    if jobs < 1:
        raise ValueError(f"expected jobs >= 1, got {jobs}")
    journal.heal(path)
    stored = journal.read(path)
    todo = [cell for cell in cells if cell.key not in stored]
    total, done, problems = sum(map(seconds, todo)), 0.0, Problems()
    for batch, went_wrong in run(batches(todo), path, jobs):
        problems.missing.update(went_wrong.missing)
        problems.failed.update(went_wrong.failed)
        done += sum(map(seconds, batch))
        if progress:
            progress(done, total)
    return problems


def batches(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Neighbours on the same people, a minute or so together; the longest first, so that all cores end together."""
    grouped: list[list[Cell]] = []
    length = 0.0
    for cell in cells:
        if not grouped or grouped[-1][-1].data != cell.data or length > _BATCH_S:
            grouped.append([])
            length = 0.0
        grouped[-1].append(cell)
        length += seconds(cell)
    return sorted(grouped, key=lambda batch: -sum(seconds(cell) for cell in batch))


def _in_processes(todo: Sequence[list[Cell]], path: Path, jobs: int) -> Iterator[tuple[list[Cell], Problems]]:
    """Batches as they end. Processes start afresh with one thread each, so that sums do not depend on the number."""
    if not todo:
        return
    with _environment(dict.fromkeys(_ONE_THREAD, "1")):
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(jobs, len(todo)), fresh, _end_with_parent) as pool:
            waiting: dict[Future[Problems], list[Cell]] = {}
            left = list(reversed(todo))
            try:
                while left or waiting:
                    while left and len(waiting) < 2 * jobs:
                        batch = left.pop()
                        waiting[pool.submit(_run_batch, batch, path)] = batch
                    ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in ended:
                        yield waiting.pop(future), future.result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def _run_batch(cells: Sequence[Cell], path: Path) -> Problems:
    return run_batch(cells, lambda outcome: journal.append(path, outcome))


def run_batch(cells: Sequence[Cell], keep: Callable[[Outcome], None]) -> Problems:
    """Run cells one after another, each kept as it ends; what goes wrong is told at the end."""
    problems = Problems()
    for cell in cells:
        try:
            keep(run_cell(cell))
        except MissingData as error:
            problems.missing[cell.data.id] = str(error)
        except Exception as error:  # told to the caller, who reports it
            problems.failed[cell.id] = f"{type(error).__name__}: {error}"
    return problems


def _end_with_parent() -> None:
    """A killed run leaves no process behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        watch = threading.Thread(target=lambda: (wait_for_end([parent.sentinel]), os._exit(1)), daemon=True)
        watch.start()


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def seconds(cell: Cell) -> float:
    """Estimated processor seconds of all repetitions of a cell."""
    return 0.002 + cell.repeats * (_repetition(cell) if cell.method != "Uni" else 1e-4)


def _repetition(cell: Cell) -> float:
    m, cells = len(cell.data.sizes), prod(cell.data.sizes) / 1000
    if m <= 2:
        fixed, each = (_ONE if m == 1 else _TWO).get(cell.method, _AHEAD[m])
        people = _PER_PERSON_OF_TWO * cell.data.n if m == 2 and cell.method == "default" else 0.0
        return fixed + each * cells + people
    people = 0.03 if cells <= 1 << 10 else _PER_PERSON * cell.data.n
    if cell.method == "DE":
        return 0.02 + people
    growth = 2.0 ** (max(m - 5, 0) * 0.35) if cell.method in ("HDG", "LLE") else 1.0
    fixed = 0.35 if cell.method == "default" else 0.02
    small = (max(cell.data.sizes) / 64) ** 0.7
    return people + small * (fixed + _PAIR.get(cell.method, 0.03) * m * (m - 1) / 2 * growth)


def estimate(cells: Iterable[Cell]) -> float:
    """Processor seconds of some cells on this machine, the making of their people included."""
    chosen = list(cells)
    people = {cell.data for cell in chosen}
    making = sum(0.005 + (1e-8 * data.n * (1 + 2 * len(data.sizes)) if data.r is not None else 0.0) for data in people)
    return (sum(map(seconds, chosen)) + making) * speed()


def speed() -> float:
    """How much longer this machine takes than the reference machine, from a fiftieth of a second of work."""
    return max(0.2, _probe() / _PROBE_S)


def _probe() -> float:
    rng = np.random.default_rng(0)
    begun = time.process_time()
    np.sort(rng.binomial(1000, 0.3, 300_000))
    return time.process_time() - begun


def _on_spark(todo: Sequence[list[Cell]], path: Path, jobs: int, session: Any) -> Iterator[tuple[list[Cell], Problems]]:
    for start in range(0, len(todo), jobs):
        here = todo[start : start + jobs]
        for batch, (outcomes, problems) in zip(here, spark_map(_outcomes, here, session), strict=True):
            for outcome in outcomes:
                journal.append(path, outcome)
            yield batch, problems


def _outcomes(cells: Sequence[Cell]) -> tuple[list[Outcome], Problems]:
    outcomes: list[Outcome] = []
    return outcomes, run_batch(cells, outcomes.append)
