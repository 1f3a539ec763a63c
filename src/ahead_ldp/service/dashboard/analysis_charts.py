"""Pictures of analyses: rows with intervals, two curves and what moved between them, and the Lorenz curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.wording import Wording
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.findings import Findings
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.units import numbers_of, positions_after
from ahead_ldp.service.dashboard.axes import short
from ahead_ldp.service.dashboard.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    _chart,
    _line,
    _path,
    _percent_marks,
    _percent_ticks,
    _text,
)
from ahead_ldp.service.dashboard.summaries import LEVEL

_ROW = 22
_NAMES, _NUMBERS = 112, 58  # room for the names of rows at the left, and for their numbers at the right
_LONGEST = 15  # letters of a name
_WIDE_NAMES, _LONGEST_WIDE = 166, 23  # both, where a name is longer
_TICKS = 4
_MOST_ROWS = 60

Interval = tuple[Floats, Floats]


def caterpillar(findings: Findings, label: str, *, sort: bool = True) -> Markup:
    """A row for each number, the largest first: a dot, its interval as a thick line, and one for all at once."""
    order = np.argsort(-findings.values, kind="stable") if sort else np.arange(len(findings))
    order = order[:_MOST_ROWS]
    columns = [np.asarray(column)[order].tolist() for column in findings.labels.values()]
    names = [", ".join(map(str, row)) for row in zip(*columns, strict=True)]
    own, together = findings.interval(LEVEL), findings.interval(LEVEL, simultaneous=True)
    said = _speaker(findings, float(np.median(own[1] - own[0])))
    inner, outer = ((low[order], high[order]) for low, high in (own, together))
    return _rows(names, findings.values[order], inner, outer, said, label)


def changed_rows(answers: Answers, name: str, label: str) -> Markup:
    """A row for each category: by how much its share changed, in percentage points."""
    own, together = answers.interval(LEVEL), answers.interval(LEVEL, simultaneous=True)
    names = [str(category) for category in answers.labels[name].tolist()]
    shown = slice(_MOST_ROWS)
    inner, outer = ((low[shown], high[shown]) for low, high in (own, together))
    return _rows(names[shown], answers.values[shown], inner, outer, points, label)


def points(change: float) -> str:
    """A change of a share, in percentage points."""
    rounded = round(100 * change, 1) + 0.0
    return f"{'+' if rounded > 0 else '−' if rounded < 0 else ''}{abs(rounded):.1f}"


def signed(change: float) -> str:
    """A round change of a share at an axis, in percentage points."""
    return f"{'+' if change > 0 else '−' if change < 0 else ''}{abs(round(100 * change, 6)):g}"


def _round_reach(reach: float) -> float:
    """A round change that is not below this one, and whose half is round as well."""
    power = math.floor(math.log10(reach)) - 1
    steps = (factor * 10.0**exponent for exponent in (power, power + 1) for factor in (2, 4, 10))
    return next(step for step in (*steps, 10.0 ** (power + 2)) if step >= reach * (1 - 1e-9))


def _distinct(names: Sequence[str], longest: int = _LONGEST) -> list[str]:
    """Names that fit; where their beginnings are alike, the ends are kept as well."""
    cut = [short(name, longest) for name in names]
    half = (longest - 1) // 2
    return [
        one if cut.count(one) == 1 or len(name) <= longest else f"{name[:half]}…{name[-half:]}"
        for name, one in zip(names, cut, strict=True)
    ]


def _speaker(findings: Findings, width: float) -> Any:
    if findings.is_share:
        return lambda number: f"{round(100 * number, 1) + 0.0:.1f} %"
    return lambda number: findings.said(number, width)


def _rows(names: Sequence[str], values: Floats, inner: Interval, outer: Interval, said: Any, label: str) -> Markup:
    ends = [side[np.isfinite(side)] for side in (*inner, *outer, values)]
    low, high = (
        min(float(side.min(initial=np.inf)) for side in ends),
        max(float(side.max(initial=-np.inf)) for side in ends),
    )
    marks = _round_marks(low, high)
    low, high = min(low, marks[0]), max(high, marks[-1])
    long = any(len(name) > _LONGEST for name in names)
    room, longest = (_WIDE_NAMES, _LONGEST_WIDE) if long else (_NAMES, _LONGEST)
    wide, base = WIDTH - room - RIGHT - _NUMBERS, TOP + len(names) * _ROW

    def at(number: float) -> float:
        """Where a number stands along the picture."""
        return room + wide * (number - low) / (high - low)

    parts, cut = list[str](), _distinct(names, longest)
    for mark in marks:
        look = "zero" if mark == 0 and low < 0 else "grid"
        parts.append(f'<line class="{look}" x1="{at(mark):.1f}" x2="{at(mark):.1f}" y1="{TOP}" y2="{base}"/>')
        parts.append(_text(at(mark), base + 14, said(mark), "middle"))
    for i, name in enumerate(cut):
        y = TOP + (i + 0.5) * _ROW
        parts.append(_text(room - 8, y + 3, name, "end"))
        for look, (least, most) in (("wide whisker", outer), ("whisker", inner)):
            x1, x2 = at(float(least[i])), at(float(most[i]))
            parts.append(f'<line class="{look}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle class="dot" cx="{at(float(values[i])):.1f}" cy="{y}" r="3.6"/>')
        parts.append(_text(WIDTH - RIGHT, y + 3, said(float(values[i])), "end"))
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {base + 22}" role="img" aria-label="{escape(label)}">'
    return Markup(head + "".join(parts) + "</svg>")


def _round_marks(low: float, high: float) -> list[float]:
    """Round numbers between two, at most four; where none is, the two themselves."""
    span = high - low
    if not span > 0:
        return [low, low + (abs(low) or 1.0)]
    power = math.floor(math.log10(span)) - 1
    for step in (factor * 10.0**exponent for exponent in (power, power + 1, power + 2) for factor in (1, 2, 5)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if 2 <= last - first + 1 <= _TICKS:
            return [round(i * step, 12) for i in range(first, last + 1)]
    return [low, high]


def both_curves(a: Attribute, before: Floats, after: Floats, at: Sequence[Any], words: Wording | None) -> Markup:
    """The share of people up to each value, in the earlier campaign (dashed) and in the later one."""
    x = _places(a, at)
    parts = []
    for look, shares in (("before line", before), ("line", after)):
        curve = np.concatenate([[0.0], np.clip(shares, 0.0, 1.0), [1.0]])
        parts.append(_line(_inside(x, curve, 0.0, 1.0), look))
    label = f"Share of people up to each value of {a.name}, earlier (dashed) and now"
    return _chart(a, label, parts, _percent_ticks(_percent_marks(1.0)), words=words, up="share of people")


def change_curve(a: Attribute, answers: Answers, words: Wording | None) -> Markup:
    """By how much the share of people up to each value changed, with both 95 % bands about it."""
    x = _places(a, answers.labels[a.name].tolist())
    own, together = answers.interval(LEVEL), answers.interval(LEVEL, simultaneous=True)
    reach = max(float(np.abs(np.stack(together)).max()), 1e-4)
    top = _round_reach(reach)
    parts = []
    for look, (low, high) in (("wide band", together), ("band", own)):
        upper, lower = (np.concatenate([[0.0], side, [0.0]]) for side in (high, low))
        parts.append(_path(_inside(x, upper, -top, top), _inside(x, lower, -top, top), look))
    parts.append(_line(_inside(x, np.concatenate([[0.0], answers.values, [0.0]]), -top, top), "line"))
    zero = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<line class="zero" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{zero}" y2="{zero}"/>')
    marks = [
        (place, signed(change))
        for place, change in ((0.0, top), (0.25, top / 2), (0.5, 0.0), (0.75, -top / 2), (1.0, -top))
    ]
    label = f"Change of the share of people up to each value of {a.name}, with 95 % bands"
    return _chart(a, label, parts, marks, words=words, up="change, in percentage points")


def lorenz_curve(levels: Floats, held: Floats, findings: Findings, label: str) -> Markup:
    """What part of the total the people with the least hold, below the line on which all would hold the same."""
    side = 230.0
    left, low = 48.0, 18.0

    def at(people: float, part: float) -> tuple[float, float]:
        """A point of the picture."""
        return left + side * people, low + side * (1 - part)

    parts = []
    for mark in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(mark, mark)
        parts.append(f'<line class="grid" x1="{left}" x2="{left + side}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(left - 6, y + (3 if mark else -1), f"{100 * mark:.0f} %", "end"))
        parts.append(_text(x, low + side + 14, f"{100 * mark:.0f} %", "middle" if mark else "start"))
    parts.append(_line([at(0, 0), at(1, 1)], "before line"))
    curve = zip([0.0, *levels.tolist(), 1.0], [0.0, *held.tolist(), 1.0], strict=True)
    parts.append(_line([at(*point) for point in curve], "line"))
    for look, together in (("wide whisker", True), ("whisker", False)):
        least, most = findings.interval(LEVEL, together)
        for p, lowest, highest in zip(findings.labels["bottom"].tolist(), least.tolist(), most.tolist(), strict=True):
            (x, y1), (_, y2) = at(p, lowest), at(p, highest)
            parts.append(f'<line class="{look}" x1="{x:.1f}" x2="{x:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>')
    parts.append(_text(left + side / 2, low + side + 29, "people, those with the least first", "middle", "title"))
    parts.append(_text(4, 9, "part of the total", "start", "title"))
    head = f'<svg class="chart" data-square="" viewBox="0 0 {left + side + 20:g} {low + side + 36:g}" role="img"'
    return Markup(f'{head} aria-label="{escape(label)}">{"".join(parts)}</svg>')


def _places(a: Attribute, values: Sequence[Any]) -> Floats:
    """Where values end along the codes, 0 to 1, with both ends."""
    ends = positions_after(a, numbers_of(a, values)) / max(a.ordered_size, 1)
    return np.concatenate([[0.0], ends, [1.0]])


def _inside(x: Floats, y: Floats, low: float, high: float) -> list[tuple[float, float]]:
    """Points of a picture, from places along it and numbers between two."""
    across = LEFT + (WIDTH - LEFT - RIGHT) * x
    up = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * np.clip((y - low) / (high - low), 0.0, 1.0)
    return list(zip(across.tolist(), up.tolist(), strict=True))
