"""Heat maps of the evaluation: log10 of the error over epsilon and one more size, a row of panels per data set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ahead_ldp.plots.style import HEAT, new_figure
from ahead_ldp.research.experiments.plan import Figure as Planned
from ahead_ldp.research.experiments.plan import Line, Panel
from ahead_ldp.research.experiments.results import Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_heat_figure(planned: Planned, measured: Measured) -> Figure:
    """Every panel's methods side by side, all with one scale of colours; numbers are log10 of the error."""
    from matplotlib.colors import Normalize

    cells, columns = _arranged(planned)
    rows = -(-len(cells) // columns)
    matrices = [_matrix(line, measured) for _, line in cells]
    values = np.concatenate([matrix[np.isfinite(matrix)] for *_, matrix in matrices] or [np.zeros(1)])
    norm = Normalize(float(values.min()), float(values.max())) if values.size else Normalize(-4, 0)
    tall = max(len(ys) for _, ys, _ in matrices)
    figure = new_figure(2.9 * columns + 0.6, rows * (0.22 * tall + 0.85) + 0.3)
    grid = figure.subplots(rows, columns, squeeze=False)
    for ax, (panel, line), (xs, ys, matrix) in zip(grid.flat, cells, matrices, strict=False):
        mesh = ax.imshow(matrix, cmap=HEAT, norm=norm, aspect="auto", origin="lower")
        for (i, j), value in np.ndenumerate(matrix):
            if np.isfinite(value):
                dark = norm(value) < 0.55
                ax.text(
                    j, i, f"{value:.1f}", ha="center", va="center", fontsize=5.5, color="white" if dark else "black"
                )
        ax.set_xticks(range(len(xs)), [f"{x:g}" for x in xs], fontsize="x-small")
        ax.set_yticks(range(len(ys)), [_short(y) for y in ys], fontsize="x-small")
        name = "default" if line.method == "default" else line.method
        ax.set_title(raised(f"{name}: {panel.title}"), fontsize="small")
        ax.tick_params(length=2)
    for ax in grid[-1]:
        ax.set_xlabel(planned.x_label, fontsize="small")
    for row in grid:
        row[0].set_ylabel(planned.y_label, fontsize="small")
    figure.colorbar(mesh, ax=grid, label="log10 of the mean squared error", pad=0.01, aspect=30)
    return figure


def _arranged(planned: Planned) -> tuple[list[tuple[Panel, Line]], int]:
    """Which heat map goes where, and how many stand side by side.

    Many methods: a row for each panel. One or two: a row for each shape and method, so that users grow to the right.
    """
    shown = [(panel, [line for line in panel.lines if not line.hidden]) for panel in planned.panels]
    methods = max(len(lines) for _, lines in shown)
    if methods > 2:
        return [(panel, line) for panel, lines in shown for line in lines], methods
    shapes: dict[str, list[tuple[Panel, list[Line]]]] = {}
    for panel, lines in shown:
        shapes.setdefault(panel.title.partition(",")[0], []).append((panel, lines))
    cells = [(panel, lines[i]) for group in shapes.values() for i in range(methods) for panel, lines in group]
    return cells, max(len(group) for group in shapes.values())


def raised(text: str) -> str:
    """A title with its powers raised."""
    return re.sub(r"\^(\d+|m)", r"$^{\1}$", text)


def _matrix(line: Line, measured: Measured) -> tuple[list[float], list[float], Any]:
    xs = sorted({point.x for point in line.points})
    ys = sorted({point.y for point in line.points if point.y is not None})
    matrix = np.full((len(ys), len(xs)), np.nan)
    for point in line.points:
        if point.cell in measured and point.y is not None:
            matrix[ys.index(point.y), xs.index(point.x)] = np.log10(measured.spread(point.cell).mean)
    return xs, ys, matrix


def _short(y: float) -> str:
    """A number of users as a power of ten, others as they are."""
    if y < 1000 or y != round(y) or np.log2(y) == round(np.log2(y)):
        return f"{y:g}"
    power = int(np.log10(y))
    lead = y / 10**power
    return f"$10^{power}$" if lead == 1 else f"${lead:g}\\cdot10^{power}$"
