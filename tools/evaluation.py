"""The evaluation's pages from a finished run: figures into docs/img, tables into docs/evaluation.md.

python -m tools.evaluation DIR

DIR is what `ahead reproduce all --out DIR` wrote. Only what was run is shown.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ahead_ldp.research.experiments import journal
from ahead_ldp.research.experiments.findings import FINDINGS
from ahead_ldp.research.experiments.paper import FULL, make_plan
from ahead_ldp.research.experiments.plan import Figure, all_cells
from ahead_ldp.research.experiments.results import Count, Measured, View, count
from ahead_ldp.research.experiments.verdicts import Verdict, judge_all
from ahead_ldp.research.figures.evaluation import draw
from ahead_ldp.research.figures.reproduction import JOURNAL

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evaluation.md"
IMAGES = ROOT / "docs" / "img"


def findings_text(figures: list[Figure], verdicts: list[Verdict], measured: Measured) -> str:
    """Every figure with its picture, and a table of its findings."""
    parts = []
    for figure in figures:
        notes = sorted({f"{cell.data.title}: {note}" for cell in figure.cells if (note := measured.note(cell))})
        parts += [f"### Figure {figure.name.removeprefix('fig')}: {figure.title}", ""]
        parts += [f"![{figure.title}](img/evaluation-{figure.name}.png)", ""]
        parts += [f"`ahead reproduce {figure.name} --out DIR`." + "".join(f" {note}." for note in notes), ""]
        parts += ["| the paper's finding | ours | rule | evidence |", "| --- | --- | --- | --- |"]
        for v in verdicts:
            if v.finding.figure == figure.name:
                evidence = v.evidence.replace("|", "\\|")
                parts.append(f"| {v.finding.sentence} | **{v.outcome}** | {v.finding.rule_name} | {evidence} |")
        parts.append("")
    agreed = sum(v.outcome == "agrees" for v in verdicts)
    differ = sum(v.outcome == "differs" for v in verdicts)
    open_ = len(verdicts) - agreed - differ
    head = f"{agreed} of {len(verdicts)} written findings hold, {differ} do not, {open_} are undecided."
    return "\n".join([head, "", *parts]).rstrip()


def costs_text(counts: list[Count], measured: Measured) -> str:
    """Settings, runs and processor time, figure by figure."""
    lines = [
        "| figure | settings | of these 1- and 2-dim | cells | runs | CPU min |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for c in counts:
        lines.append(
            f"| {c.figure} | {c.settings:,} | {c.one_or_two:,} | {c.cells:,} | {c.runs:,} | {c.cpu_s / 60:.1f} |"
        )
    memory = max((o.cost["peak_memory_bytes"] for o in measured.outcomes.values() if o.cost), default=0)
    return "\n".join([*lines, "", f"The largest process held {memory / 1e9:.2f} GB."])


def fill(page: str, name: str, text: str) -> str:
    """The page with new text between the marks of a block."""
    pattern = re.compile(rf"(<!-- evaluation {name} -->\n).*?(<!-- end evaluation {name} -->)", re.DOTALL)
    assert pattern.search(page), name
    return pattern.sub(lambda m: f"{m[1]}{text}\n{m[2]}", page)


def main(folder: Path) -> None:
    """Draw, judge, write."""
    stored = journal.read(folder / JOURNAL)
    everything = make_plan(FULL)
    measured = Measured.of(all_cells(everything), stored)
    figures = [figure for figure in everything if any(cell in measured for cell in figure.cells)]
    IMAGES.mkdir(exist_ok=True)
    for figure in figures:
        draw(figure, measured).savefig(IMAGES / f"evaluation-{figure.name}.png", dpi=110)
    verdicts = judge_all(FINDINGS, View({figure.name: figure for figure in figures}, measured))
    page = PAGE.read_text("utf-8")
    page = fill(page, "findings", findings_text(figures, verdicts, measured))
    PAGE.write_text(fill(page, "costs", costs_text(count(figures, measured), measured)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
