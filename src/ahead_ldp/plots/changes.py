"""Two estimates of one attribute: both curves, and what moved between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from ahead_ldp.estimates.answers import Answers, Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.plots.intervals import plot_answers
from ahead_ldp.plots.style import BLUE, ORANGE, SIMULTANEOUS, SKY, dress, footnote, legend_above, new_figure, on_axis
from ahead_ldp.schema.units import numbers_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Change(Protocol):
    """What is drawn of a difference (``analysis.differences.Difference``)."""

    @property
    def first(self) -> Estimate:
        """The earlier estimate."""

    @property
    def second(self) -> Estimate:
        """The later one."""

    def cdf(self, attribute: str | None = None) -> Answers:
        """By how much the share of people up to each point changed."""

    def histogram(self, attribute: str | None = None) -> Answers:
        """By how much the share of people in each category changed."""


def plot_difference(
    change: Change, attribute: str | None = None, level: float = 0.95, kind: Kind | None = None
) -> Figure:
    """Above, the share of people up to each value in both estimates; below, the change with its intervals.

    Categories have the change alone, a row each. Where the outer band leaves 0, something changed.
    """
    a = change.first._attribute(attribute, ordered=False)
    if a.labels:
        return plot_answers(change.histogram(a.name), level=level, kind=kind)
    answers = change.cdf(a.name)
    points = answers.labels[a.name]
    x = on_axis(a, numbers_of(a, points.tolist() if a.kind in ("integer", "real") else list(points)))
    figure = new_figure(7.0, 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    for estimate, colour, name in ((change.first, ORANGE, "first"), (change.second, BLUE, "second")):
        upper.plot(x, 100 * estimate.cdf(a.name, points, errors=False).values, color=colour, label=name)
    upper.set_ylabel("people up to here, %")
    legend_above(upper)
    for together, alpha in ((True, 0.25), (False, 0.45)):
        low, high = answers.interval(level, together, kind)
        name = SIMULTANEOUS if together else f"{100 * level:g} % interval"
        lower.fill_between(x, 100 * low, 100 * high, color=SKY, alpha=alpha, label=name)
    lower.plot(x, 100 * answers.values, color=BLUE, label="change")
    lower.axhline(0.0, color="0.4", linewidth=0.8)
    lower.set_ylabel("change, points of %")
    dress(lower.xaxis, a)
    legend_above(lower)
    reach = 100 * float(np.max(np.abs(np.stack(answers.interval(level, True, kind)))))
    lower.set_ylim(-1.05 * reach - 0.1, 1.05 * reach + 0.1)
    footnote(figure, answers, level, kind)
    return figure
