"""The tables of the report: complexity as measured, and how many settings were run and what they took."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from ahead_ldp.research.experiments.complexity import STATED, Cost, growth
from ahead_ldp.research.experiments.counting import PAPER, Count
from ahead_ldp.research.experiments.table import Measured

_COMPLEXITY = """<h2 id="table3">Table 3: complexity, measured</h2>
<p>Real reports are made and counted, each row in a fresh process. Memory is what the server held at most beyond
program, people and reports. |D| is the number of codes of one attribute.</p>"""
_COUNTS = """<h2 id="cost">Parameter combinations and cost</h2>
<p>The paper speaks of {paper} parameter combinations of its 1- and 2-dim study and does not say how they are counted.
Here a setting is one choice of people (data, domain, number, correlation, skewness), ε and, in Figure 10, θ. A cell is
a setting and a method. Runs and processor seconds are counted where a cell first appears. The largest process held
{memory:.2f} GB. The complexity table is apart: a process of a few seconds for each of its rows.</p>"""


def complexity_table(costs: Sequence[Cost]) -> str:
    """Every measured setting; how it grows, and what the paper states, beside the first of each method."""
    found = list(costs)
    grown = [growth(found, *what) for what in (("seconds", "n"), ("seconds", "side"), ("question_bytes", "side"))]
    rows, told = [], set()
    for cost in found:
        s = cost.setting
        key = (s.method, s.attributes)
        first = key not in told
        told.add(key)
        rows.append(
            [
                f"{s.method}, {s.attributes}-dim",
                f"{s.side}{'²' if s.attributes == 2 else ''}",
                f"{s.n:,}",
                f"{1e3 * cost.count_s:.1f}",
                f"{1e3 * cost.estimate_s:.1f}",
                f"{cost.memory_bytes / 1e6:.2f}",
                str(cost.report_bytes),
                str(cost.question_bytes),
                *(f"{g[key]:.2f}" if first and key in g else "" for g in grown),
                escaped("; ".join(STATED[key])) if first else "",
            ]
        )
    head = ["method", "|D|", "N", "counting, ms", "estimate and 200 answers, ms", "memory, MB", "report, bytes"]
    head += ["question, bytes", "time: power of N", "time: power of |D|", "question: power of |D|"]
    return _COMPLEXITY + table([*head, "in the paper: time; space; communication"], rows)


def count_table(counts: Sequence[Count], measured: Measured) -> str:
    """Settings, cells, runs and processor seconds, figure by figure."""
    rows = [
        [
            c.figure,
            f"{c.settings:,}",
            f"{c.one_or_two:,}",
            str(c.methods),
            f"{c.cells:,}",
            f"{c.runs:,}",
            f"{c.cpu_s:.0f}",
        ]
        for c in counts
    ]
    memory = max((o.cost["peak_memory_bytes"] for o in measured.outcomes.values() if o.cost), default=0)
    head = ["figure", "settings", "of these 1- and 2-dim", "methods", "cells", "runs", "CPU s"]
    return _COUNTS.format(paper=PAPER, memory=memory / 1e9) + table(head, rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; cells are HTML already."""
    top = "".join(f"<th>{escaped(name)}</th>" for name in head)
    body = "\n".join("<tr>" + "".join(f"<td>{value}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table>"


def escaped(text: str) -> str:
    """Text as HTML, with powers raised."""
    return re.sub(r"\^(-?[\d.]*\d|m\b)", r"<sup>\1</sup>", html.escape(text))
