"""Pages with everything in them, figures as vector graphics: the report of a reproduction, and that of a comparison."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ahead_ldp.research.contrasts import explanation
from ahead_ldp.research.distances import WRITTEN_OUT
from ahead_ldp.research.evaluation import Spread
from ahead_ldp.research.experiments.comparing import DEFAULT, Recommendation, overall
from ahead_ldp.research.experiments.complexity import STATED, Cost, growth
from ahead_ldp.research.experiments.paper import Sizes
from ahead_ldp.research.experiments.plan import Figure
from ahead_ldp.research.experiments.results import PAPER, Count, Measured, geometric
from ahead_ldp.research.experiments.verdicts import Verdict
from ahead_ldp.research.figures.evaluation import draw, save

SIGNS = {"agrees": "✓ agrees", "differs": "✗ differs", "undecided": "? undecided"}
_COUNTER = {"uni": "Uni in the place of the paper's method", "shuffled": "shuffled labels (19 of 20)"}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
h1, h2 { line-height: 1.2 }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem }
table { border-collapse: collapse; font-size: 0.88rem; margin: 1rem 0 }
td, th { padding: 0.25rem 0.7rem; text-align: left; border-bottom: 1px solid #e4e4e4; vertical-align: top }
th { border-bottom: 2px solid #999 }
figure { margin: 1rem 0 }
figure svg { max-width: 100%; height: auto }
figcaption { font-size: 0.88rem; color: #444 }
code { background: #f3f3f3; padding: 0.1rem 0.3rem; border-radius: 3px }
.v { font-weight: 600; white-space: nowrap }
.agrees { color: #00664b }
.differs { color: #a03c00 }
.undecided { color: #777; font-weight: 400 }
nav ol { columns: 2; font-size: 0.92rem }
nav h2 { border: 0; margin-top: 1rem; padding: 0 }
.a { color: inherit; text-decoration: none }
.e { color: #444; font-size: 0.85rem }
.m { background: #fff4d6; border-left: 4px solid #e69f00; padding: 0.5rem 1rem }
"""
_ABOUT = """<h1>The evaluation of AHEAD, reproduced</h1>
<p>Every figure of the evaluation of <i>AHEAD: Adaptive Hierarchical Decomposition for Range Query under Local
Differential Privacy</i> (Du et al., CCS 2021), measured anew: {amount}. Methods have the settings of their own papers;
“this package's default” is an extra line. Error bars are 95 % intervals of the mean. Environment: {environment}.</p>"""
_QUICK = "Quick sizes: few people, few repetitions. The page shows that everything runs, and decides nothing."

_COMPLEXITY = """<p>
Real reports are made and counted, each row in a fresh process. Memory is what the server held at most beyond
program, people and reports. |D| is the number of codes of one attribute.</p>"""
_COUNTS = """<p>
The paper speaks of {paper} parameter combinations of its 1- and 2-dim study and does not say how they are counted.
Here a setting is one choice of people (data, domain, number, correlation, skewness), ε and, in Figure 10, θ. A cell is
a setting and a method. Runs and processor seconds are counted where a cell first appears. The largest process held
{memory:.2f} GB. The complexity table is apart: a process of a few seconds for each of its rows.</p>"""
MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that a report tells."""

    sizes: Sizes
    figures: Sequence[Figure]
    measured: Measured
    missing: dict[str, str]
    failed: dict[str, str]
    verdicts: Sequence[Verdict]
    counts: Sequence[Count]
    costs: Sequence[Cost]
    environment: str


def write_report(path: Path, results: Results, pictures: dict[str, Path]) -> None:
    """Write the page; ``pictures`` are the SVG files by figure."""
    sections = [("findings", "Findings", _overview(results))] * bool(results.verdicts)
    sections += [
        (figure.name, _figure_title(figure), _section(figure, results, pictures[figure.name]))
        for figure in results.figures
    ]
    sections += [("table3", "Table 3: complexity, measured", complexity_table(results.costs))] * bool(results.costs)
    sections += [("cost", "Parameter combinations and cost", count_table(results.counts, results.measured))]
    parts = [_head(results), contents([(name, title) for name, title, _ in sections])]
    parts += [section(*each) for each in sections]
    path.write_text(page("AHEAD, reproduced", parts), encoding="utf-8")


def contents(sections: Sequence[tuple[str, str]]) -> str:
    """Links to the sections, by anchor and title."""
    items = "".join(f'<li><a href="#{name}">{escaped(title)}</a></li>' for name, title in sections)
    return f'<nav id="contents"><h2>Contents</h2><ol>{items}</ol></nav>'


def section(name: str, title: str, body: str) -> str:
    """A section with an anchor, a title that links to itself, and a way back to the contents."""
    top = f'<h2><a class="a" href="#{name}">{escaped(title)}</a></h2>'
    return f'<section id="{name}">{top}{body}<p class="e"><a href="#contents">contents</a></p></section>'


def _figure_title(figure: Figure) -> str:
    return f"Figure {figure.name.removeprefix('fig')}: {figure.title}"


def page(title: str, parts: Sequence[str]) -> str:
    """A whole HTML page that needs nothing from elsewhere."""
    body = "\n".join(parts)
    head = f'<meta charset="utf-8">\n<title>{escaped(title)}</title>\n<style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def command_of(name: str, sizes: Sizes) -> str:
    """What makes a figure again."""
    return f"ahead reproduce {name} {'--quick ' if sizes.name == 'quick' else ''}--out DIR"


def _head(results: Results) -> str:
    sizes = results.sizes
    amount = f"{sizes.queries} random queries and {sizes.repeats} repetitions per point"
    amount += f" ({sizes.default_repeats} of our default beyond Figure 5)" * (sizes.default_repeats != sizes.repeats)
    marks = [_QUICK] * (sizes.name == "quick")
    marks += [f"Missing data, panels marked: {reason}" for reason in dict.fromkeys(results.missing.values())]
    marks += [f"Failed, points left out: {cell} ({reason})" for cell, reason in results.failed.items()]
    about = _ABOUT.format(amount=amount, environment=escaped(results.environment))
    return about + "".join(f'<p class="m">{escaped(mark)}</p>' for mark in marks)


def _overview(results: Results) -> str:
    rows = []
    for v in results.verdicts:
        link = f'<a href="#{_anchor(v)}">{v.finding.figure}</a>'
        rows.append([link, escaped(v.finding.sentence), _badge(v)])
    agreed = sum(v.outcome == "agrees" for v in results.verdicts)
    differ = sum(v.outcome == "differs" for v in results.verdicts)
    summary = (
        f"{agreed} of {len(rows)} written findings hold here, {differ} do not, {len(rows) - agreed - differ} are open."
    )
    return f"<p>{summary}</p>" + table(["figure", "the paper's finding", "ours"], rows)


def _anchor(v: Verdict) -> str:
    return f"{v.finding.figure}-finding-{v.finding.name}"


def _section(figure: Figure, results: Results, picture: Path) -> str:
    number = re.sub(r"\D", "", figure.name)
    notes = {f"{cell.data.title}: {note}" for cell in figure.cells if (note := results.measured.note(cell))}
    caption = [f"Figure {number} of the paper. {escaped(figure.title)}.", *sorted(map(escaped, notes))]
    gone = {results.missing[cell.data.id] for cell in figure.cells if cell.data.id in results.missing}
    caption += [f"<b>Missing:</b> {escaped(reason)}." for reason in sorted(gone)]
    caption += [_above(figure, results.measured)]
    svg = inline(picture.read_text("utf-8"), figure.name)
    files = " ".join(f'<a href="figures/{picture.stem}.{kind}">{kind.upper()}</a>' for kind in ("svg", "pdf"))
    rows = [_row(v) for v in results.verdicts if v.finding.figure == figure.name]
    return "\n".join(
        [
            f"<figure>{svg}<figcaption>{' '.join(filter(None, caption))}</figcaption></figure>",
            table(["the paper's finding", "ours", "rule", "evidence"], rows) if rows else "",
            f"<p><code>{escaped(command_of(figure.name, results.sizes))}</code> · {files}</p>",
        ]
    )


def _row(v: Verdict) -> list[str]:
    rule = f'{escaped(v.finding.rule_name)}<div class="e">{_counter(v)}</div>'
    sentence = f'<span id="{_anchor(v)}">{escaped(v.finding.sentence)}</span>'
    return [sentence, _badge(v), rule, f'<span class="e">{escaped(v.evidence)}</span>']


def _above(figure: Figure, measured: Measured) -> str:
    """Baselines that the paper leaves out of its figure because they are out of scale."""
    left_out = []
    for method in ("Uni", "CALM"):
        lines = [line for panel in figure.panels for line in panel.lines if line.method == method and line.hidden]
        means = [
            measured.spread(p.cell).mean
            for line in lines
            for p in line.points
            if p.cell in measured and p.cell.task == "mse"
        ]
        left_out += [f"{method} {min(means):.1e} to {max(means):.1e}"] if means else []
    return f"Not drawn: {', '.join(left_out)}." if left_out else ""


def _badge(v: Verdict) -> str:
    return f'<span class="v {v.outcome}">{SIGNS[v.outcome]}</span>'


def _counter(v: Verdict) -> str:
    if not v.refused:
        return ""
    return "refuses: " + ", ".join(f"{_COUNTER[name]} {'yes' if no else '<b>no</b>'}" for name, no in v.refused.items())


def inline(svg: str, name: str) -> str:
    """The drawing alone, with names that no other drawing on the page has."""
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', drawing)
    return re.sub(r'(href="#|url\(#)', rf"\1{name}-", drawing)


def complexity_table(costs: Sequence[Cost]) -> str:
    """Every measured setting; how it grows, and what the paper states, beside the first of each method."""
    listed = list(costs)
    grown = [growth(listed, *what) for what in (("seconds", "n"), ("seconds", "side"), ("question_bytes", "side"))]
    rows, seen = [], set()
    for cost in listed:
        s = cost.setting
        key = (s.method, s.attributes)
        first = key not in seen
        seen.add(key)
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


def write_comparison(folder: Path, figure: Figure, measured: Measured, advice: Sequence[Recommendation]) -> Path:
    """Write figure and page; the page draws the best methods, and the default in any case."""
    shown = best_lines(figure, measured)
    picture = save(draw(shown, measured), folder, figure.name)
    svg = inline(picture.read_text("utf-8"), figure.name)
    items = "".join(f"<li>{escaped(text)}</li>" for text in (*(a.text for a in advice), overall(advice)))
    parts = [f"<h1>{escaped(figure.title)}</h1><ul>{items}</ul>"]
    parts += [f"<figure>{svg}<figcaption>The best methods; bars are 95 % intervals of the mean.</figcaption></figure>"]
    for panel in figure.panels:
        head = ["method", *(f"ε = {point.x:g}" for point in panel.lines[0].points)]
        rows = [[line.method, *(_with_interval(measured.spread(p.cell)) for p in line.points)] for line in panel.lines]
        title = f"{panel.title}: {WRITTEN_OUT[advice[0].metric]}, with 95 % intervals of the mean"
        parts.append(f"<h2>{escaped(title)}</h2>" + table(head, rows))
    parts.append("<h2>Which methods can be told apart</h2>")
    if advice[0].contrasts:
        said = explanation(len(advice[0].means), figure.cells[0].repeats)
        parts += [f"<p>{escaped(said)}</p>", *map(_contrast_table, advice)]
    path = folder / "comparison.html"
    path.write_text(page(figure.title, parts), encoding="utf-8")
    return path


def _with_interval(spread: Spread) -> str:
    ends = f' <span class="e">[{spread.ci95[0]:.2e}, {spread.ci95[1]:.2e}]</span>' if spread.ci95 else ""
    return f"{spread.mean:.2e}{ends}"


def _contrast_table(advice: Recommendation) -> str:
    """Every method beside the best, at one number of people and epsilon."""
    rows = [[escaped(advice.best), f"{advice.means[advice.best]:.2e}", "1", "", "least error"]]
    for c in advice.contrasts:
        needed = f"; about {c.needed:,} repetitions would decide" if c.verdict == "open" and c.needed else ""
        rows.append(
            [escaped(c.method), f"{advice.means[c.method]:.2e}", f"{c.ratio:.2f}", c.interval, c.verdict + needed]
        )
    head = ["method", WRITTEN_OUT[advice.metric], "times the least", "interval", "verdict"]
    return f"<h3>N = {advice.n:,}, ε = {advice.epsilon:g}</h3>" + table(head, rows)


def best_lines(figure: Figure, measured: Measured) -> Figure:
    """The figure with the few lines whose errors are least over all panels, and the default."""
    means: dict[str, list[float]] = {}
    for panel in figure.panels:
        for line in panel.lines:
            means.setdefault(line.method, []).extend(measured.spread(point.cell).mean for point in line.points)
    order = sorted(means, key=lambda method: geometric(means[method]))
    kept = {*order[:MOST_LINES], DEFAULT}
    panels = [
        replace(panel, lines=tuple(line for line in panel.lines if line.method in kept)) for panel in figure.panels
    ]
    return replace(figure, panels=tuple(panels))
