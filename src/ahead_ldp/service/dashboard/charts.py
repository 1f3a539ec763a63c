"""Pictures for pages: SVG made on the server, coloured by the page's style sheet, so that light and dark both work.

A chart that can be dragged over carries the attribute's name and how many codes its width stands for; the script of the
page turns a drag into codes, and the server turns codes into the user's units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
_READABLE = 0.75  # of an average bar, at most, is half an interval of bins that fit the error
_FEWEST = 4  # bins of a picture
_MOST_BARS = 30
_MOST_BUCKETS_AS_BARS = 12
_ROW = 19  # of a bar
_LONGEST_BAR = 16  # letters of a name beside its bar; longer ones stand above
_LONGEST_ABOVE, _ROW_ABOVE = 52, 34
_LONGEST_TITLE, _LONGEST_UNIT = 44, 24  # letters of an axis' title
_LETTER = 7.0  # width of a letter on a phone, where it is largest


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
    unit = f" {short(words.unit, _LONGEST_UNIT)}" if words is not None and words.unit else ""
    return f" per {text(a, bins.step) if a.kind == 'real' else f'{bins.step:,.0f}'}{unit}"


def bin_rows(estimate: Estimate, a: Attribute, bins: Bins, truth: Truth | None = None) -> list[tuple[str, ...]]:
    """The bars as a table: what each stands for, its share, the interval, and the truth of a rehearsal."""
    low, high = bins.answers.interval(LEVEL)
    named = _named_bins(a, bins.ends, None)
    shares = [f"{100 * max(x, 0):.1f} %" for x in bins.answers.values.tolist()]
    spans = [f"{100 * lo:.1f} to {100 * hi:.1f} %" for lo, hi in zip(low.tolist(), high.tolist(), strict=True)]
    columns = [named, shares, spans]
    if truth is not None:
        columns.append([f"{100 * x:.1f} %" for x in truth.shares(_slices(estimate, a, bins.ends)).tolist()])
    return list(zip(*columns, strict=True))


def category_rows(
    estimate: Estimate, a: Attribute, words: Wording | None, truth: Truth | None = None
) -> list[tuple[str, ...]]:
    """The categories that have a bar, as a table: each with its share, the interval, and the truth of a rehearsal."""
    names = _names(a, words)
    shown = _shown(estimate, a)
    workload = _one_each(estimate, a, shown)
    answers = estimate.answer_jointly(workload)
    low, high = answers.interval(LEVEL)
    shares = [f"{100 * max(x, 0):.1f} %" for x in answers.values.tolist()]
    spans = [f"{100 * lo:.1f} to {100 * hi:.1f} %" for lo, hi in zip(low.tolist(), high.tolist(), strict=True)]
    columns = [[names[i] for i in shown.tolist()], shares, spans]
    if truth is not None:
        columns.append([f"{100 * x:.1f} %" for x in truth.shares(workload).tolist()])
    return list(zip(*columns, strict=True))


def _named_bins(a: Attribute, ends: Ints, words: Wording | None) -> list[str]:
    """What people read for each part of an attribute."""
    if a.labels and ends.size == a.ordered_size + 1:
        return _names(a, words)[: a.ordered_size]
    if a.labels:
        return [f"{a.labels[i]} to {a.labels[j - 1]}" for i, j in pairwise(ends.tolist())]
    known = borders(a)[ends]
    return [f"{text(a, known[i])} to {end_of(a, float(known[i + 1]))}" for i in range(known.size - 1)]


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


# Parts.


def _title(a: Attribute, words: Wording | None) -> str:
    """The title of an axis: what it is, and in which unit."""
    if words is None or not words.unit:
        return short(a.name, _LONGEST_TITLE)
    unit = short(words.unit, _LONGEST_UNIT)
    return f"{short(a.name, _LONGEST_TITLE - len(unit) - len(' ()'))} ({unit})"


def _chart(
    attribute: Attribute,
    label: str,
    parts: Sequence[str],
    marks: Sequence[tuple[float, str]],
    down: Attribute | None = None,
    height: float = HEIGHT,
    left: float = LEFT,
    right: float = RIGHT,
    top: float = TOP,
    below: float = 0.0,
    words: Wording | None = None,
    up: str = "",
) -> Markup:
    base, side, end = height - BOTTOM, height - top - BOTTOM, WIDTH - right
    axes = [f'<line class="axis" x1="{left}" y1="{base}" x2="{end}" y2="{base}"/>']
    for place, said in marks:
        y = top + side * place
        axes.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{end}" y2="{y:.1f}"/>')
        axes.append(_text(left - 6, y + 3, said, "end"))
    for place, said in ticks(attribute, (end - left) / (WIDTH - LEFT - RIGHT), words):
        x = left + (end - left) * place
        half = _LETTER * len(said) / 2
        anchor = "start" if x < half else "end" if x + half > WIDTH else "middle"
        axes.append(f'<line class="axis" x1="{x:.1f}" y1="{base}" x2="{x:.1f}" y2="{base + 4}"/>')
        axes.append(_text(x, base + 14, said, anchor))
    axes.append(_text(left + (end - left) / 2, base + 29, _title(attribute, words), "middle", "title"))
    axes.append(_text(4, 9, up, "start", "title"))
    asked = f'data-attribute="{escape(attribute.name)}" data-codes="{attribute.ordered_size}"'
    if down is not None:
        asked += f' data-down="{escape(down.name)}" data-down-codes="{down.ordered_size}"'
    frame = f'data-left="{left}" data-right="{end:g}" data-top="{top:g}" data-bottom="{base:g}"'
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
    names = _names(attribute, words)
    above = any(len(names[int(i)]) > _LONGEST_BAR for i in shown)
    left, start, tall = (4, 8, _ROW_ABOVE) if above else (100, TOP, _ROW)
    wide, parts = WIDTH - left - RIGHT - 48, list[str]()
    for row, i in enumerate(shown):
        y, value = start + row * tall, float(values[i])
        long = wide * max(value, 0.0) / top
        if above:
            parts.append(_text(left, y + 12, short(names[int(i)], _LONGEST_ABOVE), "start"))
            y += tall - _ROW
        else:
            parts.append(_text(left - 6, y + 12, names[int(i)], "end"))
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
    height = start + shown.size * tall + 6
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
