"""The figures of the evaluation: error curves, thresholds, leaves and heat maps, panel by panel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ahead_ldp.plots.style import BLACK, BLUE, GREEN, HEAT, ORANGE, PURPLE, SKY, VERMILLION, new_figure
from ahead_ldp.research.evaluation import Spread
from ahead_ldp.research.experiments.measuring import BINS
from ahead_ldp.research.experiments.plan import Figure as Planned
from ahead_ldp.research.experiments.plan import Line, Panel
from ahead_ldp.research.experiments.results import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colour, marker and dashes all differ, so that a grey copy can be read.
LOOKS: dict[str, tuple[str, str, Any]] = {
    "AHEAD": (VERMILLION, "o", "-"),
    "LLE": (VERMILLION, "v", "-"),
    "default": (BLACK, "*", "-"),
    "HDG": (BLUE, "s", "--"),
    "HIO": (BLUE, "s", "--"),
    "DHT": (GREEN, "^", "-."),
    "DE": (GREEN, "^", "-."),
    "CALM": (ORANGE, "D", ":"),
    "Uni": (PURPLE, "x", ":"),
}
NAMES = {"default": "this package's default"}


def look(method: str, among: list[str]) -> tuple[str, str, Any]:
    """Colour, marker and dashes of a method; those without their own take them by their place."""
    if method in LOOKS:
        return LOOKS[method]
    i = [other for other in among if other not in LOOKS].index(method)
    colours = (VERMILLION, BLUE, GREEN, ORANGE, PURPLE, SKY)
    return colours[i % 6], "os^Dvx<>P"[i % 9], ("-", "--", "-.", ":")[(i // 6 + i) % 4]


def draw(planned: Planned, measured: Measured, missing: dict[str, str] | None = None) -> Figure:
    """A figure of the plan from what was measured; a panel without its data says so."""
    gone = missing or {}
    if planned.kind == "heat":
        return draw_heat_figure(planned, measured)
    if planned.kind == "leaves":
        return _draw_leaves(planned, measured, gone)
    columns = 3 if len(planned.panels) == 9 else min(4, len(planned.panels))
    rows = -(-len(planned.panels) // columns)
    figure = new_figure(max(2.75 * columns, 5.0), 2.45 * rows + 0.7)
    grid = figure.subplots(rows, columns, squeeze=False, sharey="row" if planned.kind != "theta" else False)
    for ax in grid.flat[len(planned.panels) :]:
        ax.set_visible(False)
    for ax, panel in zip(grid.flat, planned.panels, strict=False):
        if not any(cell in measured for cell in panel.cells):
            mark_missing(ax, panel, gone)
        elif planned.kind == "theta":
            _draw_thresholds(ax, panel, measured)
        else:
            _draw_lines(ax, panel, measured)
        ax.set_title(panel_title(panel, measured), fontsize="small")
        _dress(ax, planned, sorted({point.x for line in panel.lines for point in line.points}))
    for row in grid:
        row[0].set_ylabel(planned.y_label)
    _legend(figure, grid)
    return figure


def panel_title(panel: Panel, measured: Measured) -> str:
    """The title, with a mark where the data stand in for others."""
    stands_in = any(measured.note(cell) for cell in panel.cells)
    return raised(panel.title) + ("\n(stand-in data)" if stands_in else "")


def mark_missing(ax: Axes, panel: Panel, missing: dict[str, str]) -> None:
    """Say in an empty panel why it is empty."""
    reasons = [missing[cell.data.id] for cell in panel.cells if cell.data.id in missing]
    text = "data set missing" if reasons else "not run"
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color="0.4", fontsize="small")


def _draw_lines(ax: Axes, panel: Panel, measured: Measured) -> None:
    for line in panel.lines:
        if line.hidden:
            continue
        points = [point for point in line.points if point.cell in measured]
        spreads = [measured.spread(point.cell) for point in points]
        colour, marker, dashes = look(line.method, [other.method for other in panel.lines])
        ax.errorbar(
            [point.x for point in points], [s.mean for s in spreads], yerr=_bars(spreads), color=colour, marker=marker,
            linestyle=dashes, markersize=7 if marker == "*" else 4.5, linewidth=1.3, elinewidth=0.9, capsize=2,
            label=NAMES.get(line.method, line.method),
        )  # fmt: skip


def _bars(spreads: list[Spread]) -> Any:
    """Below and above: the 95 % interval of the mean, cut where a log axis would."""
    below = [s.mean - max(s.ci95[0], s.mean / 20) if s.ci95 else 0.0 for s in spreads]
    above = [min(s.ci95[1], s.mean * 20) - s.mean if s.ci95 else 0.0 for s in spreads]
    return np.array([below, above])


def _draw_thresholds(ax: Axes, panel: Panel, measured: Measured) -> None:
    import matplotlib

    lines = [line for line in panel.lines if line.method.startswith("ε")]
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(lines)))
    for i, (line, shade) in enumerate(zip(lines, shades, strict=True)):
        spreads = [measured.spread(point.cell) for point in line.points]
        ax.errorbar(
            [point.x for point in line.points], [s.mean for s in spreads], yerr=_bars(spreads), color=shade,
            marker="os^Dv<>P"[i % 8], markersize=3, linewidth=1.1, elinewidth=0.7, label=line.method,
        )  # fmt: skip
    for line in lines:
        star = panel.line(line.method.replace("ε =", "star")).points[0]
        mean = measured.spread(star.cell).mean
        ax.plot(
            star.x, mean, "*", color=VERMILLION, markersize=10, markeredgecolor="white", zorder=5, label="paper's θ"
        )


def _dress(ax: Axes, planned: Planned, xs: list[float]) -> None:
    ax.set_yscale("log")
    ax.set_xlabel(planned.x_label)
    if planned.kind == "theta":
        ax.set_xscale("symlog", linthresh=1e-4)
        ax.set_xlim(-2e-5, 1.5)
        ax.set_xticks([0, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["0", "$10^{-4}$", "", "$10^{-2}$", "", "1"])
    else:
        ax.set_xticks(xs[:: -(-len(xs) // 5)], minor=False)
        ax.xaxis.set_major_formatter("{x:g}")
    ax.grid(axis="y", color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="small")


def _legend(figure: Figure, grid: Any) -> None:
    """One legend above all panels, each line once, where it covers nothing."""
    handles: dict[str, Any] = {}
    for ax in grid.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        many = min(len(handles), max(3, int(figure.get_figwidth() / 1.2)))
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper center", ncols=many, frameon=False,
            fontsize="small", handlelength=2.4, columnspacing=1.4,
        )  # fmt: skip


def _draw_leaves(planned: Planned, measured: Measured, missing: dict[str, str]) -> Figure:
    columns = len(planned.panels)
    figure = new_figure(2.75 * columns, 4.6)
    grid = figure.subplots(2, columns, squeeze=False, sharex="col")
    for i, panel in enumerate(planned.panels):
        line: Line = panel.lines[0]
        cell = line.points[0].cell
        upper, lower = grid[0, i], grid[1, i]
        upper.set_title(panel_title(panel, measured), fontsize="small")
        if cell not in measured:
            for ax in (upper, lower):
                mark_missing(ax, panel, missing)
            continue
        rows = measured.rows(cell)
        share = np.array([row["share"] for row in rows])
        leaves = np.array([row["leaves"] for row in rows])
        total = f"{leaves.sum():.0f} leaves"
        for ax, values, colour in ((upper, share, BLUE), (lower, leaves / leaves.sum(), ORANGE)):
            _draw_shares(ax, values, cell.data.sizes, colour)
            ax.tick_params(labelsize="small")
        lower.set_xlabel(f"{planned.x_label} ({total})")
    two = len(planned.panels[0].lines[0].points[0].cell.data.sizes) == 2
    grid[0, 0].set_ylabel("people by codes" if two else "people, % per bin")
    grid[1, 0].set_ylabel("leaves by codes" if two else "leaves, % per bin")
    return figure


def _draw_shares(ax: Axes, values: Any, sizes: tuple[int, ...], colour: str) -> None:
    if len(sizes) == 1:
        ax.stairs(100 * values, np.linspace(0, sizes[0], values.size + 1), fill=True, color=colour)
        ax.set_xlim(0, sizes[0])
        ax.spines[["top", "right"]].set_visible(False)
        return
    from matplotlib.colors import PowerNorm

    picture = 100 * values.reshape(BINS[2])
    edges = np.linspace(0, sizes[0], BINS[2][0] + 1)
    ax.pcolormesh(edges, edges, picture.T, cmap=HEAT, norm=PowerNorm(0.5, 0.0, picture.max()), rasterized=True)
    ax.set_aspect("equal")


def save(drawn: Figure, folder: Path, name: str) -> Path:
    """The figure as SVG and PDF, without the time of day."""
    import matplotlib

    (folder / "figures").mkdir(exist_ok=True)
    path = folder / "figures" / f"{name}.svg"
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")  # found once, kept for both files
    with matplotlib.rc_context({"svg.hashsalt": name, "pdf.fonttype": 42}):
        drawn.savefig(path, metadata={"Date": None})
        drawn.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
    return path


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
