"""The page of a comparison: the figure of the best methods, the recommendations, and every number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ahead_ldp.research.experiments.comparing import DEFAULT, Recommendation, overall
from ahead_ldp.research.experiments.plan import Figure
from ahead_ldp.research.experiments.results import Measured, geometric
from ahead_ldp.research.figures.evaluation import draw, save
from ahead_ldp.research.figures.report import escaped, inline, page, table

MOST_LINES = 8


def write_comparison(folder: Path, figure: Figure, measured: Measured, advice: Sequence[Recommendation]) -> Path:
    """Write figure and page; the page draws the best methods, and the default in any case."""
    shown = best_lines(figure, measured)
    picture = save(draw(shown, measured), folder, figure.name)
    svg = inline(picture.read_text("utf-8"), figure.name)
    told = "".join(f"<li>{escaped(text)}</li>" for text in (*(a.text for a in advice), overall(advice)))
    parts = [f"<h1>{escaped(figure.title)}</h1><ul>{told}</ul>"]
    parts += [f"<figure>{svg}<figcaption>The best methods; bars are 95 % intervals of the mean.</figcaption></figure>"]
    for panel in figure.panels:
        head = ["method", *(f"ε = {point.x:g}" for point in panel.lines[0].points)]
        rows = [[line.method, *(f"{measured.spread(p.cell).mean:.2e}" for p in line.points)] for line in panel.lines]
        parts.append(f"<h2>{escaped(panel.title)}: mean squared error</h2>" + table(head, rows))
    path = folder / "comparison.html"
    path.write_text(page(figure.title, parts), encoding="utf-8")
    return path


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
