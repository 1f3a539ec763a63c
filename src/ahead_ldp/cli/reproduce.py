"""`ahead reproduce`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ahead_ldp.cli import printing
from ahead_ldp.engines.progress import Bar
from ahead_ldp.research.experiments import journal
from ahead_ldp.research.experiments.paper import FULL, QUICK
from ahead_ldp.research.experiments.plan import all_cells
from ahead_ldp.research.experiments.results import count
from ahead_ldp.research.experiments.running import estimate
from ahead_ldp.research.figures.reproduction import JOURNAL, Reproduction, plan_of, reproduce


def run(
    targets: Sequence[str], quick: bool, out: Path, jobs: int | None, engine: str, plan_only: bool, as_json: bool
) -> None:
    """Say how long it will take, run, and say what was found."""
    sizes = QUICK if quick else FULL
    wanted = [] if "all" in targets else list(targets)
    workers = jobs if jobs is not None else os.cpu_count() or 1
    if workers < 1:
        raise ValueError(f"expected --jobs >= 1, got {workers}")
    if engine not in ("local", "spark"):
        raise ValueError(f"expected --engine to be local or spark, got {engine!r}")
    figures = plan_of(sizes, wanted)
    cells = all_cells(figures)
    stored = journal.read(out / JOURNAL)
    left = [cell for cell in cells if cell.key not in stored]
    cpu_s = estimate(left)
    before = f"{len(cells):,} cells, {len(cells) - len(left):,} of them done before"
    each = f"{_minutes(cpu_s / workers)} with {workers} job{'s' if workers > 1 else ''}"
    printing.note(f"{before}; about {_minutes(cpu_s)} of processor time, {each}")
    if plan_only:
        _print_plan(figures, as_json)
        return
    with Bar("reproducing, CPU-s") as bar:
        made = reproduce(out, sizes, wanted, workers, lambda done, total: bar(round(done), round(total)), _say, engine)
    _print(made, as_json)
    if made.failed:
        raise ValueError(
            f"expected every cell to run, got {len(made.failed):,} that failed: run again to try them again"
        )


def _say(text: str) -> None:
    if text:
        printing.note(text)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _print_plan(figures: Sequence[object], as_json: bool) -> None:
    counts = count(figures)  # type: ignore[arg-type]
    if as_json:
        printing.print_json({"figures": [{name: getattr(c, name) for name in c.__slots__[:-1]} for c in counts]})
        return
    rows = [
        [c.figure, f"{c.settings:,}", f"{c.one_or_two:,}", str(c.methods), f"{c.cells:,}", f"{c.runs:,}"]
        for c in counts
    ]
    printing.print_table("Plan", ["figure", "settings", "1- and 2-dim", "methods", "cells", "runs"], rows)


def _print(made: Reproduction, as_json: bool) -> None:
    for reason in dict.fromkeys(made.missing.values()):
        printing.note(f"missing: {reason}")
    for cell, reason in made.failed.items():
        printing.note(f"failed: {cell}: {reason}")
    if as_json:
        found = [
            {"figure": v.finding.figure, "finding": v.finding.name, "outcome": v.outcome, "evidence": v.evidence}
            for v in made.verdicts
        ]
        printing.print_json(
            {"report": str(made.report), "findings": found, "missing": made.missing, "failed": made.failed}
        )
        return
    rows = [[v.finding.figure, v.finding.sentence, v.outcome] for v in made.verdicts]
    if rows:
        printing.print_table(
            "The paper's findings, decided by the rules of the report", ["figure", "finding", "ours"], rows, left=3
        )
    print(f"written: {made.report}")
