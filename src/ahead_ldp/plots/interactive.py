"""The same pictures to be looked at closely: Altair charts that say the number, its interval and what it is about.

A notebook shows them without another program. They hold their data, so nothing is read from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import Answers, Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import blocks, equal_blocks, slices
from ahead_ldp.plots.densities import joint_shares
from ahead_ldp.plots.style import BLUE, HEAT, SKY, title_of
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.units import buckets, text

if TYPE_CHECKING:
    import altair

Rows = list[dict[str, Any]]

_NUMBERS = ("share", "low", "high", "all_low", "all_high")
_MOST_BINS = 48  # with strict intervals, each of which takes milliseconds
_FEW = 8  # categories whose names stand upright below their bars
_MOST_CELLS = 64  # of each side of a heat map
_WIDTH, _HEIGHT, _ROW = 560, 300, 26  # pixels
_MS_PER_DAY, _MS_PER_SECOND = 86_400_000.0, 1000.0


def chart_estimate(
    estimate: Estimate, *attributes: str, level: float = 0.95, kind: Kind | None = None
) -> altair.LayerChart | altair.Chart:
    """One attribute as bins with their intervals, or two as a heat map.

    Of two bands the inner one holds for each bin, the outer one for all bins at once.
    """
    alt = _altair()
    names = attributes or estimate.schema.names
    if len(names) not in (1, 2):
        raise ValueError(f"expected one or two attributes among {', '.join(estimate.schema.names)}, got {len(names)}")
    chosen = [estimate.schema.attributes[estimate.schema.index(name)] for name in names]
    if len(chosen) == 2:
        return _heat(alt, estimate, chosen)
    a = chosen[0]
    ends = equal_blocks(a.ordered_size, a.ordered_size if a.labels else _MOST_BINS)
    answers = estimate.answer_jointly(slices(estimate.schema, a.name, ends[:-1].astype(float), ends[1:].astype(float)))
    rows = _numbers(answers, level, kind)
    lengths = np.diff(ends)
    for row, place, length in zip(rows, _places(a, ends), lengths.tolist(), strict=True):
        row.update(place | {f"at_{name}": row[name] * float(lengths[0]) / length for name in _NUMBERS})
    bins = "" if a.labels else f", in {ends.size - 1} equal bins"
    return _banded(alt, rows, a, f"people, %{bins}", title_of(estimate))


def chart_cdf(
    estimate: Estimate, attribute: str | None = None, *, level: float = 0.95, kind: Kind | None = None
) -> altair.LayerChart:
    """The share of people with a value up to each point, with its intervals."""
    alt = _altair()
    name = estimate.schema.names[0] if attribute is None and len(estimate.schema.names) == 1 else attribute
    answers = estimate.cdf(name, _MOST_BINS)
    a = estimate.schema.attributes[estimate.schema.index(str(name))]
    rows = _numbers(answers, level, kind)
    for row, place in zip(rows, _places(a, blocks(a.ordered_size, len(answers))), strict=True):
        row.update(place | {f"at_{name}": row[name] for name in _NUMBERS})
    return _banded(alt, rows, a, "people up to here, %", title_of(estimate))


def chart_answers(answers: Answers, *, level: float = 0.95, kind: Kind | None = None) -> altair.LayerChart:
    """A row for each answer: the estimate, its interval, and the wider one that holds for all of them at once."""
    alt = _altair()
    rows = _numbers(answers, level, kind)
    for row, name in zip(rows, answers.names, strict=True):
        row["name"] = name
    shown = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", sort=None, title=None), tooltip=_tooltip(alt, "name")
    )
    percent = alt.Axis(title="people, %")
    thin = shown.mark_rule(color=SKY, size=2).encode(x=alt.X("all_low:Q", axis=percent), x2="all_high:Q")
    thick = shown.mark_rule(color=BLUE, size=4).encode(x=alt.X("low:Q", axis=percent), x2="high:Q")
    points = shown.mark_point(color=BLUE, filled=True, size=70).encode(x=alt.X("share:Q", axis=percent))
    return alt.layer(thin, thick, points).properties(width=_WIDTH, height=_ROW * max(len(rows), 1))


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise ImportError("interactive charts need Altair: pip install 'ahead-ldp[interactive]'") from None
    return altair


def _numbers(answers: Answers, level: float, kind: Kind | None) -> Rows:
    """Percentages of every answer: itself, its own interval, and that of all together."""
    (low, high), all_ends = answers.interval(level, kind=kind), answers.interval(level, simultaneous=True, kind=kind)
    columns = [np.asarray(column, float).reshape(-1) for column in (answers.values, low, high, *all_ends)]
    return [dict(zip(_NUMBERS, row, strict=True)) for row in np.round(100 * np.stack(columns, axis=1), 4).tolist()]


def _places(a: Attribute, ends: Ints) -> Rows:
    """Where bins lie on the axis, and what they are called."""
    if a.labels:
        return [{"name": a.labels[i]} for i in ends[:-1].tolist()]
    left, right = buckets(a, ends[:-1])[0], buckets(a, ends[1:] - 1)[1]
    shown = [_on_axis(a, side).tolist() for side in (left, right)]
    last = right - (a.kind != "real")
    called = [f"{text(a, lo)} to {text(a, hi)}" for lo, hi in zip(left.tolist(), last.tolist(), strict=True)]
    return [{"left": x, "right": y, "name": name} for x, y, name in zip(*shown, called, strict=True)]


def _on_axis(a: Attribute, numbers: Floats) -> Floats:
    """Moments as milliseconds, which is what an axis of time counts."""
    scale = {"date": _MS_PER_DAY, "datetime": _MS_PER_SECOND, "time": _MS_PER_SECOND}.get(a.kind, 1.0)
    return numbers * scale


def _axis(alt: Any, a: Attribute) -> tuple[str, Any]:
    """The type of an attribute's axis, and its scale: moments are in UTC, as they were coded."""
    if a.kind in ("date", "datetime", "time"):
        return "T", alt.Scale(type="utc", nice=False)
    return "Q", alt.Scale(zero=False, nice=False)


def _tooltip(alt: Any, name: str) -> list[Any]:
    fields = {"share": "estimate, %", "low": "from", "high": "to", "all_low": "all at once from", "all_high": "to "}
    numbers = [alt.Tooltip(f"{field}:Q", title=title, format=".2f") for field, title in fields.items()]
    return [alt.Tooltip("name:N", title=name), *numbers]


def _banded(alt: Any, rows: Rows, a: Attribute, what: str, title: str) -> Any:
    """Bins or categories with two bands and a line each."""
    base = alt.Chart(alt.InlineData(values=rows)).encode(tooltip=_tooltip(alt, a.name))
    if a.labels:
        x = alt.X("name:N", sort=None, title=a.name, axis=alt.Axis(labelAngle=0 if len(rows) <= _FEW else -45))
        bars = base.mark_bar(color=SKY, opacity=0.5).encode(x=x, y=alt.Y("at_share:Q", title=what))
        thin = base.mark_rule(color=BLUE, size=1).encode(x=x, y="at_all_low:Q", y2="at_all_high:Q")
        thick = base.mark_rule(color=BLUE, size=4).encode(x=x, y="at_low:Q", y2="at_high:Q")
        return alt.layer(bars, thin, thick).properties(width=_WIDTH, height=_HEIGHT, title=title)
    kind, scale = _axis(alt, a)
    x = alt.X(f"left:{kind}", title=a.name, scale=scale, axis=alt.Axis(labelOverlap=True))
    outer = base.mark_rect(color=SKY, opacity=0.3).encode(
        x=x, x2="right", y=alt.Y("at_all_low:Q", title=what), y2="at_all_high"
    )
    inner = base.mark_rect(color=SKY, opacity=0.6).encode(x=x, x2="right", y="at_low:Q", y2="at_high")
    line = base.mark_rule(color=BLUE, size=2).encode(x=x, x2="right", y="at_share:Q")
    return alt.layer(outer, inner, line).properties(width=_WIDTH, height=_HEIGHT, title=title).interactive(bind_y=False)


def _heat(alt: Any, estimate: Estimate, chosen: list[Attribute]) -> Any:
    ends, shares = joint_shares(estimate, chosen, _MOST_CELLS)
    across, up = (_places(a, e) for a, e in zip(chosen, ends, strict=True))
    rows = [
        {"x": x["name"], "y": y["name"], "share": round(100 * max(float(shares[i, j]), 0.0), 4)}
        | {f"x_{k}": x[k] for k in ("left", "right") if k in x}
        | {f"y_{k}": y[k] for k in ("left", "right") if k in y}
        for i, x in enumerate(across)
        for j, y in enumerate(up)
    ]
    sides: dict[str, Any] = {}
    for letter, encoding, a in (("x", alt.X, chosen[0]), ("y", alt.Y, chosen[1])):
        if a.labels:
            sides[letter] = encoding(f"{letter}:N", sort=None, title=a.name)
        else:
            kind, scale = _axis(alt, a)
            sides[letter] = encoding(
                f"{letter}_left:{kind}", title=a.name, scale=scale, axis=alt.Axis(labelOverlap=True)
            )
            sides[f"{letter}2"] = f"{letter}_right"
    colour = alt.Color("share:Q", title="people, %", scale=alt.Scale(scheme=HEAT, type="sqrt"))
    tooltip = [
        alt.Tooltip("x:N", title=chosen[0].name), alt.Tooltip("y:N", title=chosen[1].name),
        alt.Tooltip("share:Q", title="estimate, %", format=".3f"),
    ]  # fmt: skip
    shown = alt.Chart(alt.InlineData(values=rows)).mark_rect().encode(**sides, color=colour, tooltip=tooltip)
    return shown.properties(width=420, height=420, title=title_of(estimate))
