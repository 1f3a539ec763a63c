"""`ahead reproduce`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from ahead_ldp.cli import printing
from ahead_ldp.cli.options import Texts, argument, at_least, check_engine, flag, option
from ahead_ldp.cli.printing import Shown, Table
from ahead_ldp.engines import progress
from ahead_ldp.research.experiments import journal, paper, results
from ahead_ldp.research.experiments import plan as plans
from ahead_ldp.research.figures import reproduction


def reproduce(
    *,
    out: Annotated[Path, option("--out", "DIR", "A folder; started again, it goes on there.")],
    figures: Annotated[Texts, argument("FIGURE", "fig5 to fig18, table3, or all; all if left out.")] = None,
    quick: Annotated[bool, flag("--quick", "Small sizes: a minute or two.")] = False,
    jobs: Annotated[int | None, option("--jobs", "J", "Processes; left out, one per core.")] = None,
    engine: Annotated[str, option("--engine", "E", "local, or spark for a cluster.")] = "local",
    plan: Annotated[bool, flag("--plan", "Say what would run and how long, and stop.")] = False,
) -> Shown:
    """Reproduce the evaluation of the AHEAD paper.

    Tables, figures, and a report with the paper's findings beside ours.
    A run that was killed goes on where it was.
    """
    scale = paper.QUICK if quick else paper.FULL
    wanted = [] if not figures or "all" in figures else figures
    workers = jobs if jobs is not None else os.cpu_count() or 1
    at_least(1, jobs=workers)
    check_engine(engine)
    planned = reproduction.plan_of(scale, wanted)
    _say_how_long(planned, out, scale, wanted, workers)
    if plan:
        return _shown_plan(planned)
    with progress.Bar("reproducing, CPU-s") as bar:
        done = reproduction.reproduce(
            out, scale, wanted, workers, lambda done, total: bar(round(done), round(total)), _say, engine
        )
    for reason in dict.fromkeys(done.missing.values()):
        printing.note(f"missing: {reason}")
    for cell, reason in done.failed.items():
        printing.note(f"failed: {cell}: {reason}")
    return _shown(done)


def _say_how_long(
    figures: Sequence[plans.Figure], out: Path, scale: paper.Sizes, wanted: Sequence[str], workers: int
) -> None:
    cells = plans.all_cells(figures)
    done = journal.read(out / reproduction.JOURNAL)
    left = [cell for cell in cells if cell.key not in done]
    cpu_s, wall_s = reproduction.estimate(scale, wanted, left, workers)
    before = f"{len(cells):,} cells, {len(cells) - len(left):,} of them done before"
    each = f"{_minutes(wall_s)} with {workers} job{'s' if workers > 1 else ''}"
    printing.note(f"{before}; about {_minutes(cpu_s)} of processor time, {each}")


def _say(text: str) -> None:
    if text:
        printing.note(text)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _shown_plan(figures: Sequence[plans.Figure]) -> Shown:
    counts = results.count(figures)
    record = {"figures": [{name: getattr(c, name) for name in c.__slots__[:-1]} for c in counts]}
    rows = [
        [c.figure, f"{c.settings:,}", f"{c.one_or_two:,}", str(c.methods), f"{c.cells:,}", f"{c.runs:,}"]
        for c in counts
    ]
    return Shown(record, [Table("Plan", ["figure", "settings", "1- and 2-dim", "methods", "cells", "runs"], rows)])


def _shown(done: reproduction.Reproduction) -> Shown:
    findings = [
        {"figure": v.finding.figure, "finding": v.finding.name, "outcome": v.outcome, "evidence": v.evidence}
        for v in done.verdicts
    ]
    record = {"report": str(done.report), "findings": findings, "missing": done.missing, "failed": done.failed}
    rows = [[v.finding.figure, v.finding.sentence, v.outcome] for v in done.verdicts]
    title = "The paper's findings, decided by the rules of the report"
    tables = [Table(title, ["figure", "finding", "ours"], rows, left=3)] if rows else []
    failed = f"expected every cell to run, got {len(done.failed):,} that failed: run again to try them again"
    return Shown(record, [*tables, f"written: {done.report}"], failed if done.failed else "")
