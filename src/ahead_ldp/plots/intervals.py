"""Answers to a list of queries, each with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ahead_ldp.estimates.answers import Answers, Kind
from ahead_ldp.plots.style import (
    BLUE,
    NOTES,
    SIMULTANEOUS,
    VERMILLION,
    Size,
    Style,
    canvas,
    footnote,
    height_of_rows,
    legend_above,
    marked,
    name_ticks,
    rows_named,
)
from ahead_ldp.schema.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_answers(
    answers: Answers,
    truth: ArrayLike | None = None,
    ax: Axes | None = None,
    level: float = 0.95,
    kind: Kind | None = None,
    size: Size | None = None,
    style: Style | None = None,
) -> Figure:
    """A row for each answer: the estimate, its interval, and the true share if given; ``*`` as in a table.

    The thick line is the pointwise interval, the thin one is part of intervals that all hold at once. ``kind``
    "model" draws the narrower intervals that rest on an assumption, which stands below. ``size`` is in inches,
    ``style`` one of matplotlib's.
    """
    n = len(answers)
    names = _names(answers)
    with canvas(ax, (7.0, NOTES + height_of_rows(names)), size, style) as figure:
        drawn = figure.add_subplot() if ax is None else ax
        values, marks = 100 * answers.values.reshape(-1), marked(answers, kind).reshape(-1)
        rows = np.arange(n)
        own = _sides(answers, level, False, kind)
        drawn.errorbar(
            values, rows, xerr=own, fmt="o", color=BLUE, elinewidth=2.5, capsize=3, markersize=5,
            label=f"estimate, {100 * level:g} % interval{'*' * bool(marks.any())}",
        )  # fmt: skip
        if n > 1:
            sides = _sides(answers, level, True, kind)
            drawn.errorbar(
                values, rows, xerr=sides, fmt="none", ecolor=BLUE, elinewidth=0.8, capsize=2, label=SIMULTANEOUS
            )
        if truth is not None:
            true = np.asarray(truth, float).reshape(-1)
            if true.size != n:
                raise ValueError(f"expected truth for {n} answers, got {true.size}")
            drawn.plot(100 * true, rows, "D", color=VERMILLION, fillstyle="none", markersize=8, zorder=3, label="truth")
        starred = [name + "*" * bool(mark) for name, mark in zip(names, marks, strict=True)]
        name_ticks(drawn.yaxis, rows.astype(float), rows_named(starred))
        drawn.set_ylim(n - 0.5, -0.5)
        if answers.limits[0] < 0:  # changes
            drawn.axvline(0.0, color="0.4", linewidth=0.8, zorder=0)
            drawn.set_xlabel("change, points of %")
        else:
            drawn.set_xlim(left=0.0)
            drawn.set_xlabel("people, %")
        drawn.grid(axis="x", color="0.5", alpha=0.2)
        drawn.set_axisbelow(True)
        drawn.spines[["top", "right"]].set_visible(False)
        legend_above(drawn)
        if ax is None:
            footnote(figure, answers, level, kind)
        return figure


def _sides(answers: Answers, level: float, simultaneous: bool, kind: Kind | None) -> Floats:  # -> (2, n)
    """How far the intervals reach to the left and to the right, in percent."""
    low, high = (side.reshape(-1) for side in answers.interval(level, simultaneous, kind))
    values = answers.values.reshape(-1)
    return 100 * np.stack([np.maximum(values - low, 0.0), np.maximum(high - values, 0.0)])


def _names(answers: Answers) -> list[str]:
    if not answers.labels:
        return [f"query {i + 1}" for i in range(len(answers))]
    columns = [np.asarray(column).tolist() for column in answers.labels.values()]
    return [", ".join(map(str, row)) for row in zip(*columns, strict=True)]
