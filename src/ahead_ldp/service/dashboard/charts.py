"""Pictures for pages: SVG made on the server, coloured by the page's style sheet, so that light and dark both work.

A chart that can be dragged over carries the attribute's name and how many codes its width stands for; the script of the
page turns a drag into codes, and the server turns codes into the user's units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import blocks, equal_blocks, slices
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.coding import bucket_label
from ahead_ldp.schema.units import numbers_at, text
from ahead_ldp.schema.workloads import Workload

WIDTH, HEIGHT = 420, 190
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 24
_LEVEL = 0.95
_MOST_BINS = 128
_MOST_BANDS = 40  # strict intervals of a picture: each takes milliseconds
_MOST_SIDE = 48  # cells of a heat map
_MOST_BARS = 30
_MOST_BUCKETS_AS_BARS = 12
_ROW = 19  # of a bar
_TICKS = 5
_LETTERS = 40  # of the labels along an axis
_MOST_NAMED = 8  # categories with a name at an axis
_LONGEST_AXIS, _LONGEST_BAR = 7, 16  # letters of a name


def has_bars(attribute: Attribute) -> bool:
    """Whether an attribute is shown as bars rather than as a curve: categories, and few buckets."""
    return attribute.kind == "nominal" or attribute.size <= _MOST_BUCKETS_AS_BARS


def distribution(estimate: Estimate, attribute: Attribute) -> Markup:
    """The share of people per bucket, as steps, with 95 % bands of some stretches; categories as bars with whiskers."""
    if has_bars(attribute):
        return _bars(estimate, attribute)
    codes = attribute.ordered_size
    ends, stretches = blocks(codes, _MOST_BINS), equal_blocks(codes, _MOST_BANDS)
    share = estimate.answer(_slices(estimate, attribute, ends), errors=False).values / np.diff(ends)
    counts = np.diff(stretches)
    answers = estimate.answer_jointly(_slices(estimate, attribute, stretches))
    bands = [(name, low / counts, high / counts) for name, (low, high) in _bands(answers)]
    top = max(float(share.max()), *(float(high.max()) for _, _, high in bands)) or 1.0
    parts = []
    for name, low, high in bands:
        upper, lower = (_steps(stretches, side, codes, top) for side in (high, low))
        parts.append(_path(upper, lower, name))
    if ends.size > stretches.size:
        parts.append(_line(_steps(ends, share, codes, top), "fine line"))
        share, ends = answers.values / counts, stretches
    label = f"Distribution of {attribute.name}: share of people per bucket, with 95 % bands"
    return _chart(attribute, label, [*parts, _line(_steps(ends, share, codes, top), "line")], _percent_ticks(top))


def cumulative(estimate: Estimate, attribute: Attribute) -> Markup:
    """The share of people up to each value, with the pointwise and the simultaneous 95 % band.

    Bounds at some places hold between them as steps, since the share only grows: at least what it was at the place
    before, at most what it is at the next.
    """
    codes, curve = attribute.ordered_size, estimate.cdf(attribute.name, errors=False).values
    ends, places = blocks(codes, curve.size).astype(float), blocks(codes, _MOST_BANDS)
    answers = estimate.cdf(attribute.name, places.size - 1)
    parts = []
    for name, (low, high) in _bands(answers):
        lower = _steps(places, np.concatenate([[0.0], low[:-1]]), codes, 1.0)
        parts.append(_path(_steps(places, high, codes, 1.0), lower, name))
    parts.append(_line(_points(ends, np.concatenate([[0.0], curve]), codes, 1.0), "line"))
    label = f"Share of people up to each value of {attribute.name}, with 95 % bands"
    return _chart(attribute, label, parts, _percent_ticks(1.0))


def _slices(estimate: Estimate, attribute: Attribute, ends: Ints) -> Workload:
    return slices(estimate.schema, attribute.name, ends[:-1].astype(float), ends[1:].astype(float))


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
    """How densely people lie in each box of two attributes; drag a box to ask about it."""
    ends = [blocks(a.ordered_size, _MOST_SIDE) for a in (across, down)]
    columns, rows = (e.size - 1 for e in ends)
    shares = estimate.answer(_boxes(estimate, (across, down), ends), errors=False).values.reshape(columns, rows)
    grid = shares / np.outer(np.diff(ends[0]), np.diff(ends[1]))  # blocks differ by a bucket: density, not share
    most = float(grid.max()) or 1.0
    ticks = [(1 - place, label) for place, label in _ticks(down)]
    left = max(LEFT, 12 + 8 * max(len(label) for _, label in ticks))
    side = WIDTH - left - RIGHT
    x, y = (side * e / e[-1] for e in ends)
    parts = []
    for i in range(columns):
        for j in range(rows):
            shade = max(float(grid[i, j]), 0.0) / most
            if shade < 0.004:
                continue
            size = f'width="{x[i + 1] - x[i]:.2f}" height="{y[j + 1] - y[j]:.2f}"'
            place = f'x="{left + x[i]:.2f}" y="{TOP + side - y[j + 1]:.2f}"'
            parts.append(f'<rect class="cell" {place} {size} fill-opacity="{shade:.3f}"/>')
    label = f"Share of people by {across.name} and {down.name}"
    return _chart(across, label, parts, ticks, down=down, height=side + TOP + BOTTOM, left=left)


def _boxes(estimate: Estimate, pair: Sequence[Attribute], ends: Sequence[Ints]) -> Workload:
    schema = estimate.schema
    index = np.indices([e.size - 1 for e in ends]).reshape(2, -1)
    boxes = np.zeros((index.shape[1], len(schema.sizes), 2))
    boxes[..., 1] = schema.sizes
    for a, e, at in zip(pair, ends, index, strict=True):
        boxes[:, schema.index(a.name)] = np.stack([e[at], e[at + 1]], axis=1)
    return Workload(schema.sizes, boxes, np.arange(len(boxes)), len(boxes))


# Parts.


def _chart(
    attribute: Attribute,
    label: str,
    parts: Sequence[str],
    ticks: Sequence[tuple[float, str]],
    down: Attribute | None = None,
    height: float = HEIGHT,
    left: float = LEFT,
) -> Markup:
    base, side = height - BOTTOM, height - TOP - BOTTOM
    axes = [f'<line class="axis" x1="{left}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}"/>']
    for place, said in ticks:
        y = TOP + side * place
        axes.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        axes.append(_text(left - 6, y + 4, said, "end"))
    for place, said in _ticks(attribute):
        anchor = "start" if place == 0 else "end" if place == 1 else "middle"
        axes.append(_text(left + (WIDTH - left - RIGHT) * place, base + 15, said, anchor))
    asked = f'data-attribute="{escape(attribute.name)}" data-codes="{attribute.ordered_size}"'
    if down is not None:
        asked += f' data-down="{escape(down.name)}" data-down-codes="{down.ordered_size}"'
    frame = f'data-left="{left}" data-right="{WIDTH - RIGHT}" data-top="{TOP}" data-bottom="{base:g}"'
    head = (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}" {asked} {frame}>'
    )
    return Markup(head + "".join(axes) + "".join(parts) + "</svg>")


def _bars(estimate: Estimate, attribute: Attribute) -> Markup:
    """A row for each category; of many nominal ones those with most people."""
    values = estimate.histogram(attribute.name, errors=False).values
    shown = np.arange(values.size)
    if shown.size > _MOST_BARS:
        shown = np.argsort(-values, kind="stable")[:_MOST_BARS]
    first = shown.astype(np.float64)
    answers = estimate.answer_jointly(slices(estimate.schema, attribute.name, first, first + 1))
    bands = _bands(answers, values.size)  # those that are shown were picked among all
    top = max(float(values[shown].max()), *(float(high.max()) for _, (_, high) in bands)) or 1.0
    left, wide, parts = 100, WIDTH - 100 - RIGHT - 48, []
    for row, i in enumerate(shown):
        y, value = TOP + row * _ROW, float(values[i])
        long = wide * max(value, 0.0) / top
        parts.append(_text(left - 6, y + 12, _short(bucket_label(attribute, int(i)), _LONGEST_BAR), "end"))
        parts.append(f'<rect class="bar" x="{left}" y="{y + 2}" width="{long:.1f}" height="{_ROW - 6}"/>')
        for name, sides in bands:
            ends = [left + wide * float(side[row]) / top for side in sides]
            middle = f'y1="{y + _ROW / 2 - 1}" y2="{y + _ROW / 2 - 1}"'
            look = name.replace("band", "whisker")
            parts.append(f'<line class="{look}" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" {middle}/>')
        parts.append(_text(WIDTH - RIGHT, y + 12, f"{round(100 * value, 1) + 0.0:.1f} %", "end"))
    height = TOP + shown.size * _ROW + 6
    if shown.size < values.size:
        parts.append(_text(left, height + 10, f"the {shown.size} largest of {values.size}", "start"))
        height += 16
    label = f"Share of people by {attribute.name}, with 95 % intervals"
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">'
    return Markup(head + "".join(parts) + "</svg>")


def _bands(answers: Answers, among: int = 0) -> list[tuple[str, tuple[Floats, Floats]]]:
    """Simultaneous and pointwise intervals; answers that were picked among more are simultaneous with those."""
    picked = among > len(answers)
    together = answers.interval(level_among(among)) if picked else answers.interval(_LEVEL, simultaneous=True)
    return [("wide band", together), ("band", answers.interval(_LEVEL))]


def level_among(count: int) -> float:
    """The level of one interval that was picked among so many, for all of them to hold at once (Bonferroni)."""
    return 1 - (1 - _LEVEL) / max(count, 1)


def _shares(estimate: Estimate, attribute: Attribute, ends: Floats) -> Floats:
    cdf = np.concatenate([[0.0], estimate.cdf(attribute.name, errors=False).values])
    places = np.linspace(0.0, attribute.ordered_size, cdf.size)
    return np.diff(np.interp(ends, places, cdf))


def _steps(ends: Ints, values: Floats, codes: int, top: float) -> list[tuple[float, float]]:
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
    """Places along the codes, 0 to 1, and what stands there in the user's units; categories at their middle."""
    n = attribute.ordered_size
    if attribute.labels:
        codes = np.unique(np.linspace(0, n - 1, min(n, _MOST_NAMED)).astype(int))
        return [((c + 0.5) / n, _short(attribute.labels[c], _LONGEST_AXIS)) for c in codes.tolist()]
    for count in (_TICKS, 3, 2):  # long labels need room
        places = np.linspace(0.0, 1.0, count)
        numbers = numbers_at(attribute, places * n)
        if attribute.kind != "real":
            numbers = np.minimum(numbers, attribute.hi)
        said = [text(attribute, float(x)) for x in numbers]
        if max(map(len, said)) * count <= _LETTERS:
            break
    return list(zip(places.tolist(), said, strict=True))


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _percent_ticks(top: float) -> list[tuple[float, str]]:
    return [(1 - part, f"{100 * top * part:.3g} %") for part in (0.0, 0.5, 1.0)]
