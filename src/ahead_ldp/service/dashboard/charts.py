"""Pictures for pages: SVG made on the server, coloured by the page's style sheet, so that light and dark both work.

A chart that can be dragged over carries the attribute's name and how many codes its width stands for; the script of the
page turns a drag into codes, and the server turns codes into the user's units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.wording import Wording
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import blocks, slices
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.coding import bucket_label
from ahead_ldp.schema.units import borders, text
from ahead_ldp.schema.workloads import Workload
from ahead_ldp.service.dashboard.axes import coarser, round_bins, short, ticks, widths
from ahead_ldp.service.dashboard.summaries import LEVEL, end_of, level_among
from ahead_ldp.service.rehearsal.people import Truth

WIDTH, HEIGHT = 420, 210
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 18, 36
_MOST_BANDS = 40  # strict intervals of a picture: each takes milliseconds
_MOST_SIDE = 32  # cells of a heat map
_READABLE = 0.75  # of an average bar, at most, is half an interval of bins that fit the error
_FEWEST = 4  # bins of a picture
_SHADES = 6  # of the colour scale
_MOST_BARS = 30
_MOST_BUCKETS_AS_BARS = 12
_ROW = 19  # of a bar
_LONGEST_BAR = 16  # letters of a name


def has_bars(attribute: Attribute) -> bool:
    """Whether an attribute is shown as bars rather than as a curve: categories, and few buckets."""
    return attribute.kind == "nominal" or attribute.size <= _MOST_BUCKETS_AS_BARS


@dataclass(frozen=True, slots=True)
class Bins:
    """Bars of a picture: codes between borders, the round step between these (0 if there is none), and the answers."""

    ends: Ints
    step: float
    answers: Answers
    coarsened: bool  # finer bars would be nearly all error


def fitting_bins(estimate: Estimate, a: Attribute, *, fine: bool = False) -> Bins:
    """Bars at round numbers, as many as the error bears; ``fine``: as many as there is room for."""
    ends, step = round_bins(a, _MOST_BANDS)
    found = Bins(ends, step, estimate.answer_jointly(_slices(estimate, a, ends)), False)
    for ends, step in coarser(a, found.ends.size - 1):
        if fine or _is_readable(found) or ends.size - 1 < _FEWEST:
            break
        found = Bins(ends, step, estimate.answer_jointly(_slices(estimate, a, ends)), True)
    return found


def _is_readable(bins: Bins) -> bool:
    low, high = bins.answers.interval(LEVEL)
    return float(np.mean(high - low)) / 2 <= _READABLE / (bins.ends.size - 1)


def distribution(
    estimate: Estimate,
    attribute: Attribute,
    words: Wording | None = None,
    *,
    fine: bool = False,
    truth: Truth | None = None,
) -> Markup:
    """The share of people in bars, with 95 % intervals; categories lie. A rehearsal has a mark at the true shares."""
    if has_bars(attribute):
        return _bars(estimate, attribute, words, truth)
    bins = fitting_bins(estimate, attribute, fine=fine)
    wide = widths(attribute, bins.ends)
    whole = bins.step or float(np.median(wide))
    scale = whole / np.maximum(wide, 1e-12)  # a short bin at an end is drawn as dense as it is
    shares, codes = np.maximum(bins.answers.values * scale, 0.0), attribute.ordered_size
    bands = [(name, low * scale, high * scale) for name, (low, high) in _bands(bins.answers)]
    true = None if truth is None else truth.shares(_slices(estimate, attribute, bins.ends)) * scale
    tallest = [shares, bands[1][2], *([] if true is None else [true])]
    marks = _percent_marks(min(max(float(side.max()) for side in tallest) or 1.0, 1.0))
    top, x = marks[-1], LEFT + (WIDTH - LEFT - RIGHT) * bins.ends / codes
    parts = []
    for i, share in enumerate(shares.tolist()):
        tall = (HEIGHT - TOP - BOTTOM) * min(share / top, 1.0)
        gap = min(1.0, 0.1 * (x[i + 1] - x[i]))
        place = f'x="{x[i] + gap:.1f}" y="{HEIGHT - BOTTOM - tall:.1f}"'
        parts.append(f'<rect class="bar" {place} width="{x[i + 1] - x[i] - 2 * gap:.1f}" height="{tall:.1f}"/>')
        for name, low, high in bands:
            ends = [HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(float(side[i]) / top, 1.0) for side in (low, high)]
            middle = f"{(x[i] + x[i + 1]) / 2:.1f}"
            look = name.replace("band", "whisker")
            parts.append(f'<line class="{look}" x1="{middle}" x2="{middle}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"/>')
        if true is not None:
            y = f"{HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(float(true[i]) / top, 1.0):.1f}"
            parts.append(f'<line class="truth" x1="{x[i] + gap:.1f}" x2="{x[i + 1] - gap:.1f}" y1="{y}" y2="{y}"/>')
    label = f"Distribution of {attribute.name}: share of people, with 95 % intervals"
    return _chart(
        attribute, label, parts, _percent_ticks(marks), words=words, up=f"share of people{_per(attribute, bins, words)}"
    )


def _per(a: Attribute, bins: Bins, words: Wording | None) -> str:
    """What a bar stands for, to go behind "share of people"."""
    if not bins.step or a.kind not in ("integer", "real"):
        return " per bar"
    unit = f" {words.unit}" if words is not None and words.unit else ""
    return f" per {text(a, bins.step) if a.kind == 'real' else f'{bins.step:,.0f}'}{unit}"


def bin_rows(estimate: Estimate, a: Attribute, bins: Bins, truth: Truth | None = None) -> list[tuple[str, ...]]:
    """The bars as a table: what each stands for, its share, the interval, and the truth of a rehearsal."""
    low, high = bins.answers.interval(LEVEL)
    known = borders(a)[bins.ends]
    named = [
        bucket_label(a, int(bins.ends[i])) if a.labels else f"{text(a, known[i])} to {end_of(a, float(known[i + 1]))}"
        for i in range(known.size - 1)
    ]
    shares = [f"{100 * max(x, 0):.1f} %" for x in bins.answers.values.tolist()]
    spans = [f"{100 * lo:.1f} to {100 * hi:.1f} %" for lo, hi in zip(low.tolist(), high.tolist(), strict=True)]
    columns = [named, shares, spans]
    if truth is not None:
        columns.append([f"{100 * x:.1f} %" for x in truth.shares(_slices(estimate, a, bins.ends)).tolist()])
    return list(zip(*columns, strict=True))


def category_rows(estimate: Estimate, a: Attribute, words: Wording | None, truth: Truth) -> list[tuple[str, ...]]:
    """The categories of a rehearsal as a table: each with its share, the interval, and the truth."""
    names = _names(a, words)
    shown = _shown(estimate, a)
    workload = _one_each(estimate, a, shown)
    answers = estimate.answer_jointly(workload)
    low, high = answers.interval(LEVEL)
    found = zip(shown.tolist(), answers.values.tolist(), low, high, truth.shares(workload).tolist(), strict=True)
    return [
        (names[i], f"{100 * max(x, 0):.1f} %", f"{100 * lo:.1f} to {100 * hi:.1f} %", f"{100 * true:.1f} %")
        for i, x, lo, hi, true in found
    ]


def cumulative(
    estimate: Estimate, attribute: Attribute, words: Wording | None = None, truth: Truth | None = None
) -> Markup:
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
    if truth is not None:
        zeros = np.zeros(ends.size - 1)
        below = truth.shares(slices(estimate.schema, attribute.name, zeros, ends[1:]))
        parts.append(_line(_points(ends, np.concatenate([[0.0], below]), codes, 1.0), "truth"))
    label = f"Share of people up to each value of {attribute.name}, with 95 % bands"
    return _chart(attribute, label, parts, _percent_ticks(_percent_marks(1.0)), words=words, up="share of people")


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
    return _chart(attribute, f"Cells of {attribute.name} asked about, round by round", parts, [], up="round")


def pair_bins(pair: Sequence[Attribute], most: int = _MOST_SIDE) -> list[tuple[Ints, float]]:
    """Round bins of both attributes of a joint picture."""
    return [round_bins(a, most) if a.ordered_size > 2 else (blocks(a.ordered_size, most), 0.0) for a in pair]


def heat_map(estimate: Estimate, pair: Sequence[Attribute], wording: Mapping[str, Wording]) -> Markup:
    """How densely people lie in each box of two attributes, with a colour scale; drag a box to ask about it."""
    across, down = pair
    found = pair_bins(pair)
    ends = [e for e, _ in found]
    columns, rows = (e.size - 1 for e in ends)
    shares = estimate.answer(boxes_of(estimate, pair, ends), errors=False).values.reshape(columns, rows)
    wide = [np.ones(e.size - 1) if a.labels else widths(a, e) for a, e in zip(pair, ends, strict=True)]
    steps = [step or float(np.median(w)) for (_, step), w in zip(found, wide, strict=True)]
    grid = np.maximum(shares, 0.0) / np.outer(wide[0] / steps[0], wide[1] / steps[1])  # as dense as a box of full size
    most = float(grid.max()) or 1.0
    marks = [(1 - place, label) for place, label in ticks(down)]
    left = max(LEFT, 26 + 5.5 * max(len(label) for _, label in marks))
    side = WIDTH - left - RIGHT
    x, y = (side * e / e[-1] for e in ends)
    parts = []
    for i in range(columns):
        for j in range(rows):
            shade = float(grid[i, j]) / most
            if shade < 0.004:
                continue
            size = f'width="{x[i + 1] - x[i]:.2f}" height="{y[j + 1] - y[j]:.2f}"'
            place = f'x="{left + x[i]:.2f}" y="{TOP + side - y[j + 1]:.2f}"'
            parts.append(f'<rect class="cell" {place} {size} fill-opacity="{shade:.3f}"/>')
    parts += _scale(left, side + TOP + BOTTOM, side, most)
    return _chart(
        across,
        f"Share of people by {across.name} and {down.name}",
        parts,
        marks,
        down=down,
        height=side + TOP + BOTTOM,
        left=left,
        below=30.0,
        words=wording.get(across.name),
        up=_title(down, wording.get(down.name)),
    )


def _scale(left: float, top: float, wide: float, most: float) -> list[str]:
    """The colour scale below a joint picture: from nobody to the fullest box."""
    parts = []
    for i in range(_SHADES):
        x = left + 0.4 * wide * i / _SHADES
        shade = (i + 0.5) / _SHADES
        size = f'width="{0.4 * wide / _SHADES:.1f}" height="8"'
        parts.append(f'<rect class="cell" x="{x:.1f}" y="{top + 2:.1f}" {size} fill-opacity="{shade:.2f}"/>')
    parts.append(f'<rect class="frame" x="{left}" y="{top + 2:.1f}" width="{0.4 * wide:.1f}" height="8"/>')
    parts.append(_text(left, top + 22, "0 %", "start"))
    parts.append(_text(left + 0.4 * wide, top + 22, f"{100 * most:.2g} % of people in a box", "start"))
    return parts


def boxes_of(estimate: Estimate, pair: Sequence[Attribute], ends: Sequence[Ints]) -> Workload:
    """One query for each box of two attributes, between borders of codes; the second attribute's fastest."""
    schema = estimate.schema
    index = np.indices([e.size - 1 for e in ends]).reshape(2, -1)
    boxes = np.zeros((index.shape[1], len(schema.sizes), 2))
    boxes[..., 1] = schema.sizes
    for a, e, at in zip(pair, ends, index, strict=True):
        boxes[:, schema.index(a.name)] = np.stack([e[at], e[at + 1]], axis=1)
    return Workload(schema.sizes, boxes, np.arange(len(boxes)), len(boxes))


# Parts.


def _title(a: Attribute, words: Wording | None) -> str:
    """The title of an axis: what it is, and in which unit."""
    return f"{short(a.name, 30)} ({words.unit})" if words is not None and words.unit else short(a.name, 40)


def _chart(
    attribute: Attribute,
    label: str,
    parts: Sequence[str],
    marks: Sequence[tuple[float, str]],
    down: Attribute | None = None,
    height: float = HEIGHT,
    left: float = LEFT,
    below: float = 0.0,
    words: Wording | None = None,
    up: str = "",
) -> Markup:
    base, side = height - BOTTOM, height - TOP - BOTTOM
    axes = [f'<line class="axis" x1="{left}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}"/>']
    for place, said in marks:
        y = TOP + side * place
        axes.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        axes.append(_text(left - 6, y + 3, said, "end"))
    for place, said in ticks(attribute):
        x = left + (WIDTH - left - RIGHT) * place
        anchor = "start" if place < 0.02 else "end" if place > 0.98 else "middle"
        axes.append(f'<line class="axis" x1="{x:.1f}" y1="{base}" x2="{x:.1f}" y2="{base + 4}"/>')
        axes.append(_text(x, base + 14, said, anchor))
    axes.append(_text(left + (WIDTH - left - RIGHT) / 2, base + 29, _title(attribute, words), "middle", "title"))
    axes.append(_text(4, 9, up, "start", "title"))
    asked = f'data-attribute="{escape(attribute.name)}" data-codes="{attribute.ordered_size}"'
    if down is not None:
        asked += f' data-down="{escape(down.name)}" data-down-codes="{down.ordered_size}"'
    frame = f'data-left="{left}" data-right="{WIDTH - RIGHT}" data-top="{TOP}" data-bottom="{base:g}"'
    box = f'viewBox="0 0 {WIDTH} {height + below:g}"'
    head = f'<svg class="chart" {box} role="img" aria-label="{escape(label)}" {asked} {frame}>'
    return Markup(head + "".join(axes) + "".join(parts) + "</svg>")


def _shown(estimate: Estimate, attribute: Attribute) -> Ints:
    """The categories with a bar: all, or of many those with most people."""
    values = estimate.histogram(attribute.name, errors=False).values
    if values.size > _MOST_BARS:
        return np.argsort(-values, kind="stable")[:_MOST_BARS]
    return np.arange(values.size)


def _one_each(estimate: Estimate, attribute: Attribute, shown: Ints) -> Workload:
    return slices(estimate.schema, attribute.name, shown.astype(np.float64), (shown + 1).astype(np.float64))


def _names(attribute: Attribute, words: Wording | None) -> list[str]:
    """What people read for each code."""
    names = [bucket_label(attribute, i) for i in range(attribute.size)]
    if words is not None and words.choices:
        names[: len(words.choices)] = words.choices
    return names


def _bars(estimate: Estimate, attribute: Attribute, words: Wording | None = None, truth: Truth | None = None) -> Markup:
    """A row for each category; of many nominal ones those with most people."""
    values = estimate.histogram(attribute.name, errors=False).values
    shown = _shown(estimate, attribute)
    workload = _one_each(estimate, attribute, shown)
    answers = estimate.answer_jointly(workload)
    true = None if truth is None else truth.shares(workload)
    bands = _bands(answers, values.size)  # those that are shown were picked among all
    top = max(float(values[shown].max()), *(float(high.max()) for _, (_, high) in bands)) or 1.0
    top = top if true is None else max(top, float(true.max()))
    left, wide, parts = 100, WIDTH - 100 - RIGHT - 48, []
    names = _names(attribute, words)
    for row, i in enumerate(shown):
        y, value = TOP + row * _ROW, float(values[i])
        long = wide * max(value, 0.0) / top
        parts.append(_text(left - 6, y + 12, short(names[int(i)], _LONGEST_BAR), "end"))
        parts.append(f'<rect class="bar" x="{left}" y="{y + 2}" width="{long:.1f}" height="{_ROW - 6}"/>')
        for name, sides in bands:
            ends = [left + wide * float(side[row]) / top for side in sides]
            middle = f'y1="{y + _ROW / 2 - 1}" y2="{y + _ROW / 2 - 1}"'
            look = name.replace("band", "whisker")
            parts.append(f'<line class="{look}" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" {middle}/>')
        if true is not None:
            x = f"{left + wide * float(true[row]) / top:.1f}"
            parts.append(f'<line class="truth" x1="{x}" x2="{x}" y1="{y + 1}" y2="{y + _ROW - 3}"/>')
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
    together = answers.interval(level_among(among)) if picked else answers.interval(LEVEL, simultaneous=True)
    return [("wide band", together), ("band", answers.interval(LEVEL))]


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


def _text(x: float, y: float, said: str, anchor: str, look: str = "") -> str:
    named = f' class="{look}"' if look else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'


def _percent_marks(top: float) -> list[float]:
    """Round shares from 0 to the first one that is not below the top, at most five."""
    power = math.floor(math.log10(top)) - 1
    for step in (factor * 10.0**exponent for exponent in (power, power + 1) for factor in (1, 2, 2.5, 5)):
        count = math.ceil(top / step - 1e-9)
        if count <= 5:
            return [step * i for i in range(count + 1)]
    return [0.0, top]


def _percent_ticks(marks: Sequence[float]) -> list[tuple[float, str]]:
    return [(1 - mark / marks[-1], f"{round(100 * mark, 6):g} %") for mark in marks]
