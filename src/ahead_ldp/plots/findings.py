"""Numbers with intervals, a row each: a caterpillar plot."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from ahead_ldp.estimates.answers import Kind
from ahead_ldp.estimates.findings import Findings
from ahead_ldp.plots.style import (
    BLUE,
    NOTES,
    SIMULTANEOUS,
    dress,
    figure_of,
    height_of_rows,
    legend_above,
    name_ticks,
    new_figure,
    on_axis,
    rows_named,
)
from ahead_ldp.schema.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTERS = 118  # of a line below a picture


def plot_findings(
    findings: Findings,
    ax: Axes | None = None,
    level: float = 0.95,
    kind: Kind | None = None,
    *,
    sort: bool = True,
) -> Figure:
    """A row for each number, the largest first: the estimate with its interval, and those that all hold at once.

    Without ``sort`` rows keep their order, as rounds of a series should.
    """
    n = len(findings)
    columns = [np.asarray(column).tolist() for column in findings.labels.values()]
    names = [", ".join(map(str, row)) for row in zip(*columns, strict=True)]
    figure = new_figure(7.0, NOTES + height_of_rows(names)) if ax is None else figure_of(ax)
    drawn = figure.add_subplot() if ax is None else ax
    order = np.argsort(-findings.values, kind="stable") if sort else np.arange(n)
    rows = np.arange(n)
    values = _places(findings, findings.values)[order]
    for together, width in ((False, 2.5), (True, 0.8))[: 1 + (n > 1)]:
        low, high = (_places(findings, side)[order] for side in findings.interval(level, together, kind))
        drawn.errorbar(
            values, rows, xerr=np.stack([values - low, high - values]), fmt="none" if together else "o", color=BLUE,
            elinewidth=width, capsize=2 if together else 3, markersize=5,
            label=SIMULTANEOUS if together else f"estimate, {100 * level:g} % interval",
        )  # fmt: skip
    name_ticks(drawn.yaxis, rows.astype(float), rows_named([names[i] for i in order]))
    drawn.set_ylim(n - 0.5, -0.5)
    if findings.attribute is not None and not findings.is_share:
        dress(drawn.xaxis, findings.attribute)
    else:
        drawn.set_xlabel("people, %" if findings.is_share else "")
    drawn.grid(axis="x", color="0.9")
    drawn.set_axisbelow(True)
    drawn.spines[["top", "right"]].set_visible(False)
    legend_above(drawn)
    if ax is None:
        lines = [line for note in findings.notes(level, kind) for line in wrap(note, _LETTERS)]
        figure.supxlabel("\n".join(lines), fontsize="x-small", color="0.35", x=0.01, ha="left")
    return figure


def _places(findings: Findings, numbers: Floats) -> Floats:
    """Where numbers are drawn: shares in percent, values of an attribute on its axis."""
    if findings.is_share or findings.attribute is None:
        return numbers * (100.0 if findings.is_share else 1.0)
    return on_axis(findings.attribute, numbers)
