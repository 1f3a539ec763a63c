"""Pictures for pages: SVG made on the server, coloured by the page's style sheet, so that light and dark both work.

A chart that can be dragged over carries the attribute's name and how many codes its width stands for; the script of the
page turns a drag into codes, and the server turns codes into the user's units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from ahead_ldp.answers import Answers
from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates import Estimate
from ahead_ldp.slices import blocks
from ahead_ldp.units import numbers_at, text

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 26
_MOST_BINS = 128
_MOST_SIDE = 48  # cells of a heat map
_TICKS = 5


def distribution(estimate: Estimate, attribute: Attribute) -> Markup:
    """The share of people per bucket with its 95 % band, as steps; categories as bars with whiskers."""
    if attribute.kind == "nominal" or attribute.size <= 12:
        return _bars(attribute, estimate.histogram(attribute.name))
    ends = blocks(attribute.ordered_size, _MOST_BINS)
    found = estimate.histogram(attribute.name, bins=ends.size - 1) if ends.size - 1 < attribute.ordered_size else None
    answers = found or estimate.histogram(attribute.name)
    counts = np.diff(ends).astype(float)
    n = counts.size
    low, high = (part[:n] / counts for part in answers.interval())
    share = answers.values[:n] / counts
    top = float(np.nanmax(np.where(np.isfinite(high), high, share))) or 1.0
    parts = [
        _path(_steps(ends, high, attribute.ordered_size, top), _steps(ends, low, attribute.ordered_size, top), "band"),
        _line(_steps(ends, share, attribute.ordered_size, top), "line"),
    ]
    label = f"Distribution of {attribute.name}: share of people per bucket, with 95 % band"
    return _chart(attribute, label, parts, _percent_ticks(top))


def cumulative(estimate: Estimate, attribute: Attribute) -> Markup:
    """The share of people up to each value, with the pointwise and the simultaneous 95 % band."""
    answers = estimate.cdf(attribute.name)
    ends = blocks(attribute.ordered_size, answers.values.size).astype(float)
    parts = []
    for name, (low, high) in _bands(answers):
        upper = _points(ends, np.concatenate([[0.0], high]), attribute.ordered_size, 1.0)
        lower = _points(ends, np.concatenate([[0.0], low]), attribute.ordered_size, 1.0)
        parts.append(_path(upper, lower, name))
    parts.append(_line(_points(ends, np.concatenate([[0.0], answers.values]), attribute.ordered_size, 1.0), "line"))
    label = f"Share of people up to each value of {attribute.name}, with 95 % bands"
    return _chart(attribute, label, parts, _percent_ticks(1.0))


def decomposition(estimate: Estimate, attribute: Attribute, waves: Sequence[Sequence[int]]) -> Markup:
    """The cells that were asked about, a row for each wave, darker where more people are per bucket."""
    rows, parts = len(waves), []
    height = HEIGHT - TOP - BOTTOM
    step = height / max(rows, 1)
    for i, cuts in enumerate(waves):
        ends = np.array([0, *cuts, attribute.ordered_size], float)
        shares = _shares(estimate, attribute, ends)
        density = shares / np.maximum(np.diff(ends), 1e-12)
        most = float(density.max()) or 1.0
        for lo, hi, value in zip(ends[:-1], ends[1:], density, strict=True):
            x0, x1 = (LEFT + (WIDTH - LEFT - RIGHT) * x / attribute.ordered_size for x in (lo, hi))
            shade = 0.08 + 0.92 * max(float(value), 0.0) / most
            rect = f'<rect class="cell" x="{x0:.1f}" y="{TOP + i * step:.1f}" width="{max(x1 - x0, 0.5):.2f}"'
            parts.append(f'{rect} height="{max(step - 1.5, 1):.1f}" fill-opacity="{shade:.3f}"/>')
        parts.append(_text(LEFT - 6, TOP + (i + 0.5) * step + 4, f"{i + 1}", "end"))
    return _chart(attribute, f"Cells of {attribute.name} asked about, wave by wave", parts, [])


def heat_map(estimate: Estimate, across: Attribute, down: Attribute) -> Markup:
    """The share of people per box of two attributes; drag a box to ask about it."""
    values = estimate.marginal(across.name, down.name, errors=False).values
    grid = _coarsened(_coarsened(values, across.size, 0), down.size, 1)
    columns, rows = grid.shape
    most = float(grid.max()) or 1.0
    side = WIDTH - LEFT - RIGHT
    parts = []
    for i in range(columns):
        for j in range(rows):
            shade = max(float(grid[i, j]), 0.0) / most
            if shade < 0.004:
                continue
            x, y = LEFT + side * i / columns, TOP + side * (rows - 1 - j) / rows
            size = f'width="{side / columns + 0.3:.2f}" height="{side / rows + 0.3:.2f}"'
            parts.append(f'<rect class="cell" x="{x:.2f}" y="{y:.2f}" {size} fill-opacity="{shade:.3f}"/>')
    ticks = [(1 - place, label) for place, label in _ticks(down)]
    label = f"Share of people by {across.name} and {down.name}"
    return _chart(across, label, parts, ticks, down=down, height=side + TOP + BOTTOM)


# Parts.


def _chart(
    attribute: Attribute,
    label: str,
    parts: Sequence[str],
    ticks: Sequence[tuple[float, str]],
    down: Attribute | None = None,
    height: float = HEIGHT,
) -> Markup:
    base, side = height - BOTTOM, height - TOP - BOTTOM
    axes = [f'<line class="axis" x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}"/>']
    for place, said in ticks:
        y = TOP + side * place
        axes.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        axes.append(_text(LEFT - 6, y + 4, said, "end"))
    for place, said in _ticks(attribute):
        anchor = "start" if place == 0 else "end" if place == 1 else "middle"
        axes.append(_text(LEFT + (WIDTH - LEFT - RIGHT) * place, base + 17, said, anchor))
    asked = f'data-attribute="{escape(attribute.name)}" data-codes="{attribute.ordered_size}"'
    if down is not None:
        asked += f' data-down="{escape(down.name)}" data-down-codes="{down.ordered_size}"'
    frame = f'data-left="{LEFT}" data-right="{WIDTH - RIGHT}" data-top="{TOP}" data-bottom="{base:g}"'
    head = (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}" {asked} {frame}>'
    )
    return Markup(head + "".join(axes) + "".join(parts) + "</svg>")


def _bars(attribute: Attribute, answers: Answers) -> Markup:
    low, high = answers.interval()
    n, top = answers.values.size, float(np.max(np.where(np.isfinite(high), high, answers.values))) or 1.0
    wide, side = (WIDTH - LEFT - RIGHT) / n, HEIGHT - TOP - BOTTOM
    base, parts = HEIGHT - BOTTOM, []
    names = [str(x) for x in next(iter(answers.labels.values()))]
    for i, value in enumerate(answers.values):
        x, tall = LEFT + i * wide, side * max(float(value), 0.0) / top
        size = f'width="{0.8 * wide:.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class="bar" x="{x + 0.1 * wide:.1f}" y="{base - tall:.1f}" {size}/>')
        if np.isfinite(high[i]):
            y0, y1 = base - side * low[i] / top, base - side * high[i] / top
            parts.append(
                f'<line class="whisker" x1="{x + wide / 2:.1f}" x2="{x + wide / 2:.1f}" y1="{y0:.1f}" y2="{y1:.1f}"/>'
            )
        parts.append(_text(x + wide / 2, base + 17, names[i][: max(int(wide / 7), 3)], "middle"))
    label = f"Share of people by {attribute.name}, with 95 % intervals"
    ticks = _percent_ticks(top)
    axes = [f'<line class="axis" x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}"/>']
    for place, said in ticks:
        axes.append(_text(LEFT - 6, TOP + side * place + 4, said, "end"))
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
    return Markup(head + "".join(axes) + "".join(parts) + "</svg>")


def _bands(answers: Answers) -> list[tuple[str, tuple[Floats, Floats]]]:
    return [("wide band", answers.interval(0.95, simultaneous=True)), ("band", answers.interval(0.95))]


def _shares(estimate: Estimate, attribute: Attribute, ends: Floats) -> Floats:
    cdf = np.concatenate([[0.0], estimate.cdf(attribute.name, errors=False).values])
    places = np.linspace(0.0, attribute.ordered_size, cdf.size)
    return np.diff(np.interp(ends, places, cdf))


def _steps(ends: NDArray[np.int64], values: Floats, codes: int, top: float) -> list[tuple[float, float]]:
    return _points(np.repeat(ends.astype(float), 2)[1:-1], np.repeat(values, 2), codes, top)


def _points(places: Floats, values: Floats, codes: int, top: float) -> list[tuple[float, float]]:
    x = LEFT + (WIDTH - LEFT - RIGHT) * places / codes
    inside = np.clip(np.nan_to_num(values, nan=0.0, posinf=top, neginf=0.0) / top, 0.0, 1.0)
    y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * inside
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _line(points: Sequence[tuple[float, float]], name: str) -> str:
    return f'<polyline class="{name}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _path(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], name: str) -> str:
    around = [*upper, *reversed(lower)]
    return f'<polygon class="{name}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in around)}"/>'


def _text(x: float, y: float, said: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'


def _ticks(attribute: Attribute) -> list[tuple[float, str]]:
    """Places along the codes, 0 to 1, and what stands there in the user's units."""
    places = np.linspace(0.0, 1.0, _TICKS)
    numbers = numbers_at(attribute, places * attribute.ordered_size)
    if attribute.labels or attribute.kind != "real":
        numbers = np.minimum(numbers, (attribute.ordered_size - 1) if attribute.labels else attribute.hi)
    return [(float(p), text(attribute, float(x))) for p, x in zip(places, numbers, strict=True)]


def _percent_ticks(top: float) -> list[tuple[float, str]]:
    return [(1 - part, f"{100 * top * part:.3g} %") for part in (0.0, 0.5, 1.0)]


def _coarsened(values: Floats, size: int, axis: int) -> Floats:
    ends = blocks(size, _MOST_SIDE)
    return np.add.reduceat(values, ends[:-1], axis=axis)
