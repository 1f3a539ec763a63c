"""Running a plan on Spark: a task for each batch of cells, the same outcomes as on one machine.

Executors need this package and read the data from the folder that `AHEAD_DATA` names there. The journal is the
driver's; it is written after every round of tasks, so a run that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ahead_ldp.engines.mapping import spark_map
from ahead_ldp.research.experiments import journal
from ahead_ldp.research.experiments.journal import Outcome
from ahead_ldp.research.experiments.local import Problems, Progress, batches, run_batch, seconds
from ahead_ldp.research.experiments.plan import Cell


def run_cells_on_spark(
    cells: Sequence[Cell], path: Path, jobs: int, progress: Progress | None = None, session: Any = None
) -> Problems:
    """Run what the journal does not have yet, ``jobs`` batches a round; the session is given, or started here."""
    if jobs < 1:
        raise ValueError(f"expected jobs >= 1, got {jobs}")
    journal.heal(path)
    stored = journal.read(path)
    todo = batches([cell for cell in cells if cell.key not in stored])
    total, done, problems = sum(seconds(cell) for batch in todo for cell in batch), 0.0, Problems()
    for start in range(0, len(todo), jobs):
        here = todo[start : start + jobs]
        for outcomes, found in spark_map(_outcomes, here, session):
            for outcome in outcomes:
                journal.append(path, outcome)
            problems.missing.update(found.missing)
            problems.failed.update(found.failed)
        done += sum(seconds(cell) for batch in here for cell in batch)
        if progress:
            progress(done, total)
    return problems


def _outcomes(cells: Sequence[Cell]) -> tuple[list[Outcome], Problems]:
    outcomes: list[Outcome] = []
    return outcomes, run_batch(cells, outcomes.append)
