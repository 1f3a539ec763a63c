"""From a plan to a folder: journal, tables, figures, report. Killed and started again, it goes on where it was."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ahead_ldp.research.experiments import journal
from ahead_ldp.research.experiments.complexity import Cost, Setting, measure_apart, settings
from ahead_ldp.research.experiments.findings import FINDINGS
from ahead_ldp.research.experiments.paper import FIGURES, Sizes, make_plan
from ahead_ldp.research.experiments.plan import Cell, Figure, all_cells
from ahead_ldp.research.experiments.results import Count, Measured, View, count, write_csv, write_tables
from ahead_ldp.research.experiments.running import Progress, run_cells, run_cells_on_spark, speed
from ahead_ldp.research.experiments.running import estimate as cells_estimate
from ahead_ldp.research.experiments.verdicts import Verdict, judge_all, left_open
from ahead_ldp.research.figures.evaluation import draw, save
from ahead_ldp.research.figures.report import Results, write_report

# Processor seconds on the machine of docs/evaluation.md, beside those of the cells.
_START_S = 1.5  # of a process that runs cells
_PANEL_S = 0.4  # drawn, and written as SVG and PDF
_ROW_S = 2.0  # of the complexity table
_JUDGE_S = 1.0  # all findings

TABLE = "table3"
TARGETS = (*FIGURES, TABLE)
JOURNAL = "journal.jsonl"


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was made, and where."""

    folder: Path
    report: Path
    verdicts: tuple[Verdict, ...]
    counts: tuple[Count, ...]
    missing: dict[str, str]
    failed: dict[str, str]


def plan_of(sizes: Sizes, targets: Sequence[str]) -> list[Figure]:
    """The figures among the targets; no target means all."""
    if unknown := [name for name in targets if name not in TARGETS]:
        raise ValueError(f"expected figures among all, {', '.join(TARGETS)}, got {', '.join(unknown)}")
    return [] if list(targets) == [TABLE] else make_plan(sizes, [name for name in targets if name != TABLE])


def estimate(sizes: Sizes, targets: Sequence[str], left: Sequence[Cell], jobs: int) -> tuple[float, float]:
    """Seconds of processor time and of waiting that remain, drawing and judging included, which use one core."""
    panels = sum(len(figure.panels) for figure in plan_of(sizes, targets))
    rows = len(settings(sizes)) if not targets or TABLE in targets else 0
    alone = (_PANEL_S * panels + _ROW_S * rows + _JUDGE_S) * speed()
    cells, starts = cells_estimate(left), _START_S * speed() * bool(left)
    return cells + jobs * starts + alone, cells / jobs + starts + alone


def reproduce(
    folder: Path, sizes: Sizes, targets: Sequence[str], jobs: int, progress: Progress | None = None,
    say: Callable[[str], None] = lambda _: None, engine: str = "local",
) -> Reproduction:  # fmt: skip
    """Run what is not in the folder's journal yet, then write tables, figures and the report.

    ``engine`` is "local", processes of this machine, or "spark", tasks of a cluster.
    """
    figures = plan_of(sizes, targets)
    cells = all_cells(figures)
    folder.mkdir(parents=True, exist_ok=True)
    run = {"local": run_cells, "spark": run_cells_on_spark}[engine]
    problems = run(cells, folder / JOURNAL, jobs, progress)
    missing = problems.missing
    measured = Measured.of(cells, journal.read(folder / JOURNAL))
    write_tables(folder, cells, measured)
    say("measuring the complexity table" if not targets or TABLE in targets else "")
    costs = _complexity(folder, sizes) if not targets or TABLE in targets else []
    say("drawing")
    pictures = {figure.name: save(draw(figure, measured, missing), folder, figure.name) for figure in figures}
    verdicts = judge_all(FINDINGS, View({figure.name: figure for figure in figures}, measured))
    if sizes.name == "quick":
        verdicts = [left_open(verdict, "quick sizes do not decide") for verdict in verdicts]
    counts = count(figures, measured)
    _write_verdicts(folder, verdicts)
    write_csv(folder / "costs.csv", list(counts[0].__slots__), [[getattr(c, n) for n in c.__slots__] for c in counts])
    results = Results(sizes, figures, measured, missing, problems.failed, verdicts, counts, costs, environment())
    report = folder / "report.html"
    write_report(report, results, pictures)
    return Reproduction(folder, report, tuple(verdicts), tuple(counts), missing, problems.failed)


def environment() -> str:
    """Python, NumPy and the number of cores."""
    return f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores"


def _complexity(folder: Path, sizes: Sizes) -> list[Cost]:
    """Measured rows of an earlier sitting are kept."""
    path = folder / "complexity.jsonl"
    stored = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        record = json.loads(line)
        setting = Setting(**record.pop("setting"))
        stored[setting] = Cost(setting, **record)
    for setting in settings(sizes):
        if setting not in stored:
            stored[setting] = measure_apart(setting)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(stored[setting])) + "\n")
    costs = [stored[setting] for setting in settings(sizes)]
    names = [name for name in Cost.__slots__ if name != "setting"]
    rows = [[*asdict(c.setting).values(), *(getattr(c, name) for name in names)] for c in costs]
    write_csv(folder / "complexity.csv", [*Setting.__slots__, *names], rows)
    return costs


def _write_verdicts(folder: Path, verdicts: Sequence[Verdict]) -> None:
    rows = [
        [v.finding.figure, v.finding.name, v.finding.sentence, v.finding.rule_name, v.outcome, v.evidence,
         " ".join(f"{name}={'refused' if no else 'accepted'}" for name, no in v.refused.items())]
        for v in verdicts
    ]  # fmt: skip
    write_csv(folder / "findings.csv", ["figure", "name", "sentence", "rule", "outcome", "evidence", "counter"], rows)
