"""Two estimates of one attribute: both curves, and what moved between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from ahead_ldp.estimates.answers import Answers, Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.plots.intervals import plot_answers
from ahead_ldp.plots.style import (
    BLUE,
    NOTES,
    ORANGE,
    SIMULTANEOUS,
    SKY,
    dress,
    footnote,
    height_of_rows,
    legend_above,
    new_figure,
    on_axis,
)
from ahead_ldp.schema.units import numbers_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Verdict(Protocol):
    """What is said of a test (``analysis.differences.ChangeTest``)."""

    def text(self) -> str:
        """The verdict as a sentence."""


class Change(Protocol):
    """What is drawn of a difference (``analysis.differences.Difference``)."""

    @property
    def first(self) -> Estimate:
        """The earlier estimate."""

    @property
    def second(self) -> Estimate:
        """The later one."""

    @property
    def shared(self) -> list[str]:
        """Attributes that both have, of one kind."""

    def cdf(self, attribute: str | None = None) -> Answers:
        """By how much the share of people up to each point changed."""

    def histogram(self, attribute: str | None = None) -> Answers:
        """By how much the share of people in each category changed."""

    def test(self, attribute: str | None = None, level: float = 0.95, kind: Kind | None = None) -> Verdict:
        """Whether anything about an attribute changed."""


def plot_difference(
    change: Change, attribute: str | None = None, level: float = 0.95, kind: Kind | None = None
) -> Figure:
    """Above, the share of people up to each value in both estimates; below, the change with its intervals.

    Categories have the change alone, a row each. Where the outer band leaves 0, something changed.
    """
    a = change.first._attribute(attribute, ordered=False)
    figure = new_figure(7.0, NOTES + height_of_rows(a.labels) if a.labels else 5.6)
    footnote(figure, draw_difference(figure, change, a.name, level, kind), level, kind)
    return figure


def draw_difference(figure: Figure, change: Change, name: str, level: float, kind: Kind | None) -> Answers:
    """Draw it on an empty figure; the answers whose intervals were drawn come back."""
    a = change.first._attribute(name, ordered=False)
    if a.labels:
        answers = change.histogram(a.name)
        plot_answers(answers, ax=figure.add_subplot(), level=level, kind=kind)
        return answers
    answers = change.cdf(a.name)
    points = answers.labels[a.name]
    x = on_axis(a, numbers_of(a, points.tolist() if a.kind in ("integer", "real") else list(points)))
    upper, lower = figure.subplots(2, 1, sharex=True)
    for estimate, colour, said in ((change.first, ORANGE, "before"), (change.second, BLUE, "after")):
        upper.plot(x, 100 * estimate.cdf(a.name, points, errors=False).values, color=colour, label=said)
    upper.set_ylabel("people up to here, %")
    legend_above(upper)
    for together, alpha in ((True, 0.25), (False, 0.45)):
        low, high = answers.interval(level, together, kind)
        said = SIMULTANEOUS if together else f"{100 * level:g} % interval"
        lower.fill_between(x, 100 * low, 100 * high, color=SKY, alpha=alpha, label=said)
    lower.plot(x, 100 * answers.values, color=BLUE, label="change")
    lower.axhline(0.0, color="0.4", linewidth=0.8)
    lower.set_ylabel("change, points of %")
    dress(lower.xaxis, a)
    legend_above(lower)
    reach = 100 * float(np.max(np.abs(np.stack(answers.interval(level, True, kind)))))
    lower.set_ylim(-1.05 * reach - 0.1, 1.05 * reach + 0.1)
    return answers
