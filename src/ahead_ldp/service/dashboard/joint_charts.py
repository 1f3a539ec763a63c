"""Two attributes together: a picture with a colour scale and the bars of each by itself, and a small table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.wording import Wording
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import blocks
from ahead_ldp.schema.arrays import Ints
from ahead_ldp.schema.workloads import Workload
from ahead_ldp.service.dashboard.axes import round_bins, ticks, widths
from ahead_ldp.service.dashboard.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    _chart,
    _named_bins,
    _slices,
    _text,
    _title,
)
from ahead_ldp.service.dashboard.summaries import LEVEL
from ahead_ldp.service.rehearsal.people import Truth

_MOST_SIDE = 32  # cells of a heat map
_MARGIN, _GAP = 40.0, 4.0  # of a heat map: the bars of each attribute by itself, and the space before them
_MOST_JOINT, _MOST_JOINT_NAMES = 5, 8  # rows and columns of the table of two attributes; of categories
_ROOM_UP = 3.0  # for names at the axis that goes up, where they stand one above the other
_SHADES = 6  # of the colour scale


def joint_rows(
    estimate: Estimate, pair: Sequence[Attribute], wording: Mapping[str, Wording], truth: Truth | None = None
) -> tuple[list[str], list[tuple[str, list[tuple[str, str, str]]]]]:
    """Two attributes as a small table: names of its columns, and rows of shares with intervals and the truth."""
    ends = [_joint_ends(a) for a in pair]
    across, down = (_named_bins(a, e, wording.get(a.name)) for a, e in zip(pair, ends, strict=True))
    workload = boxes_of(estimate, pair, ends)
    answers = estimate.answer_jointly(workload)
    low, high = answers.interval(LEVEL)
    true = [""] * len(answers) if truth is None else [f"{100 * x:.0f} %" for x in truth.shares(workload).tolist()]
    cells = [
        (f"{100 * max(x, 0):.0f} %", f"{100 * lo:.0f} to {100 * hi:.0f} %", said)
        for x, lo, hi, said in zip(answers.values.tolist(), low.tolist(), high.tolist(), true, strict=True)
    ]
    return across, [(name, cells[j :: len(down)]) for j, name in reversed(list(enumerate(down)))]


def has_joint_table(pair: Sequence[Attribute]) -> bool:
    """Whether two attributes fit into a small table: categories without an order cannot be put together."""
    return all(a.kind != "nominal" or a.ordered_size <= _MOST_JOINT_NAMES for a in pair)


def _joint_ends(a: Attribute) -> Ints:
    if a.kind == "nominal" or a.ordered_size <= _MOST_JOINT:
        return np.arange(a.ordered_size + 1)
    return blocks(a.ordered_size, _MOST_JOINT) if a.labels else round_bins(a, _MOST_JOINT)[0]


def pair_bins(pair: Sequence[Attribute], most: int = _MOST_SIDE) -> list[tuple[Ints, float]]:
    """Round bins of both attributes of a joint picture."""
    return [round_bins(a, most) if a.ordered_size > 2 else (blocks(a.ordered_size, most), 0.0) for a in pair]


def heat_map(estimate: Estimate, pair: Sequence[Attribute], wording: Mapping[str, Wording]) -> Markup:
    """How densely people lie in each box of two attributes, with a colour scale; drag a box to ask about it.

    Bars above and at the right are the two attributes each by itself.
    """
    across, down = pair
    found = pair_bins(pair)
    ends = [e for e, _ in found]
    columns, rows = (e.size - 1 for e in ends)
    shares = estimate.answer(boxes_of(estimate, pair, ends), errors=False).values.reshape(columns, rows)
    wide = [np.ones(e.size - 1) if a.labels else widths(a, e) for a, e in zip(pair, ends, strict=True)]
    steps = [step or float(np.median(w)) for (_, step), w in zip(found, wide, strict=True)]
    grid = np.maximum(shares, 0.0) / np.outer(wide[0] / steps[0], wide[1] / steps[1])  # as dense as a box of full size
    most = float(grid.max()) or 1.0
    marks = [(1 - place, label) for place, label in ticks(down, _ROOM_UP, wording.get(down.name))]
    left = max(LEFT, 26 + 5.5 * max(len(label) for _, label in marks))
    right, high = RIGHT + _MARGIN + _GAP, TOP + _MARGIN + _GAP
    side = WIDTH - left - right
    x, y = (side * e / e[-1] for e in ends)
    parts = []
    for along, a, e, full, step in zip((True, False), pair, ends, wide, steps, strict=True):
        alone = np.maximum(estimate.answer(_slices(estimate, a, e), errors=False).values, 0.0) / (full / step)
        bars = _MARGIN * alone / (float(alone.max()) or 1.0)
        for i, tall in enumerate(bars.tolist()):
            first, last = ((x if along else y)[i + k] for k in (0, 1))
            if along:
                corner, extent = (left + first, high - _GAP - tall), (last - first, tall)
            else:
                corner, extent = (left + side + _GAP, high + side - last), (tall, last - first)
            where = f'x="{corner[0]:.2f}" y="{corner[1]:.2f}" width="{extent[0]:.2f}" height="{extent[1]:.2f}"'
            parts.append(f'<rect class="bar" {where}/>')
    for i in range(columns):
        for j in range(rows):
            shade = float(grid[i, j]) / most
            if shade < 0.004:
                continue
            size = f'width="{x[i + 1] - x[i]:.2f}" height="{y[j + 1] - y[j]:.2f}"'
            place = f'x="{left + x[i]:.2f}" y="{high + side - y[j + 1]:.2f}"'
            parts.append(f'<rect class="cell" {place} {size} fill-opacity="{shade:.3f}"/>')
    parts += _scale(left, side + high + BOTTOM, side, most)
    return _chart(
        across,
        f"Share of people by {across.name} and {down.name}",
        parts,
        marks,
        down=down,
        height=side + high + BOTTOM,
        left=left,
        right=right,
        top=high,
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
