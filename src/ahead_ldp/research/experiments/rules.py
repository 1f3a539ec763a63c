"""Rules that decide whether our figures agree with what the paper writes about its own. Each gives its evidence.

Numbers are the paper's where it prints one. Where it uses a word we fix a number once: "almost one order of magnitude"
and the like mean nearer to that than to nothing on a log scale (a factor of 10^0.5); "almost does not change" means
within a factor of 2, and "most" two thirds. A line that does not change must also lie below Uni's, since a method no
better than Uni is, in the paper's words, meaningless: without this Uni itself would count as robust.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ahead_ldp.research.experiments.plan import Panel
from ahead_ldp.research.experiments.results import (
    NotMeasured,
    Parts,
    View,
    clearly_above,
    crossing,
    geometric,
    makes_rule,
    rank_correlation,
    spread,
)

HALF_DECADE = 10**0.5
STEADY = 2.0
MOST = 2 / 3


@makes_rule
def smallest(view: View, figure: str, ours: str, rivals: Sequence[str]) -> Parts:
    """Ours has the least error in every panel (geometric mean), and at no point is clearly above the best rival."""
    for panel in view.panels(figure):
        best = min((view.ratio(panel, rival, ours), rival) for rival in rivals)
        lost = 0
        for i, trial in enumerate(view.trials(panel, ours)):
            lost += any(clearly_above(trial, view.trials(panel, rival)[i]) for rival in rivals)
        text = f"{panel.title}: {best[1]} / {ours} = {best[0]:.2f}, clearly lost at {lost} of {i + 1} points"
        yield best[0] > 1 and lost == 0, text


@makes_rule
def mostly_below(view: View, figure: str, ours: Callable[[Panel], str], rival: str) -> Parts:
    """Ours is below the rival at two thirds of all points or more."""
    won = points = 0
    for panel in view.panels(figure):
        better = view.means(panel, ours(panel)) < view.means(panel, rival)
        won, points = won + int(better.sum()), points + better.size
    yield won >= MOST * points, f"below {rival} at {won} of {points} points"


@makes_rule
def factor(view: View, figure: str, panel: str, ours: str, rivals: Sequence[str], low: float, high: float) -> Parts:
    """The best rival's error over ours lies between two factors (geometric mean over epsilon), and nowhere outside
    by more than a quarter.
    """
    shown = view.panel(figure, panel)
    ratios = np.min([view.means(shown, rival) for rival in rivals], axis=0) / view.means(shown, ours)
    mean = geometric(ratios)
    everywhere = ratios.min() >= min(low, 1.0) / 1.25 and ratios.max() <= high * 1.25
    text = f"best rival / {ours} = {mean:.2f} (from {ratios.min():.2f} to {ratios.max():.2f} over ε)"
    yield bool(low <= mean <= high and everywhere), text


@makes_rule
def best_factor(view: View, figures: Sequence[str], ours: Sequence[str], rivals: Sequence[str], least: float) -> Parts:
    """Somewhere a previous method's error is at least this many times ours."""
    most, where = 0.0, ""
    for panel in (panel for figure in figures for panel in view.panels(figure)):
        names = {line.method for line in panel.lines}
        for a in names & set(ours):
            for b in names & set(rivals):
                ratios = view.means(panel, b) / view.means(panel, a)
                if ratios.max() > most:
                    x = view.xs(panel, a)[int(ratios.argmax())]
                    most, where = float(ratios.max()), f"{b} on {panel.title} at {x:g}"
    yield most >= least, f"at most {most:.0f} times ({where})"


@makes_rule
def steady(view: View, figure: str, method: str, within: float = STEADY, only: str = "") -> Parts:
    """The largest error of a line is within a factor of its smallest, and below Uni's."""
    for panel in view.panels(figure):
        if only and only not in panel.name:
            continue
        ratio = spread(view.means(panel, method))
        far = view.meaningful(panel, method)
        text = f"{panel.title}: largest / smallest = {ratio:.2f}{'' if far else ', not below Uni'}"
        yield ratio <= within and far, text


@makes_rule
def rises(view: View, figure: str, method: str, times: float) -> Parts:
    """The error grows along the line: rank correlation at least 0.9, and the last over the first at least a factor."""
    for panel in view.panels(figure):
        means = view.means(panel, method)
        rank = rank_correlation(view.xs(panel, method), means)
        text = f"{panel.title}: last / first = {means[-1] / means[0]:.1f}, rank correlation {rank:.2f}"
        yield rank >= 0.9 and means[-1] / means[0] >= times, text


@makes_rule
def crosses(view: View, figure: str, rival: str, ours: str, low: float, high: float) -> Parts:
    """The rival's curve rises above ours between two places, in every panel."""
    for panel in view.panels(figure):
        xs = view.xs(panel, ours)
        if len(xs) < 5:
            raise NotMeasured("needs the full grid of correlations")
        at = crossing(xs, view.means(panel, rival), view.means(panel, ours))
        first = view.means(panel, rival)[0] / view.means(panel, ours)[0]
        text = f"{panel.title}: " + (
            f"no crossing ({rival} / {ours} = {first:.2f} at r = {xs[0]:g})" if at is None else f"r = {at:.2f}"
        )
        yield at is not None and low <= at <= high, text


@makes_rule
def same_across(
    view: View, method: str, pairs: Callable[[View], list[tuple[Panel, Panel]]], within: float = STEADY
) -> Parts:
    """A method's line hardly differs between panels (geometric mean of the ratio), and is below Uni's."""
    for a, b in pairs(view):
        ratio = geometric(view.means(b, method) / view.means(a, method))
        far = view.meaningful(a, method) and view.meaningful(b, method)
        text = f"{b.title} / {a.title} = {ratio:.2f}{'' if far else ', not below Uni'}"
        yield 1 / within <= ratio <= within and far, text


@makes_rule
def larger_across(
    view: View, method: str, over: str | None, pairs: Callable[[View], list[tuple[Panel, Panel]]]
) -> Parts:
    """From the first panel to the second a method's error grows, in geometric mean; or its ratio to another's grows,
    to above 1.
    """
    for a, b in pairs(view):
        first, second = (_relative(view, panel, method, over) for panel in (a, b))
        what = method if over is None else f"{method} / {over}"
        better = second > first and (over is None or second > 1)
        yield better, f"{what}: {first:.3g} on {a.title}, {second:.3g} on {b.title}"


def _relative(view: View, panel: Panel, method: str, over: str | None) -> float:
    return geometric(view.means(panel, method)) if over is None else view.ratio(panel, method, over)


@makes_rule
def below_in_mean(view: View, figure: str, ours: str, rival: str) -> Parts:
    """In every panel that has both, ours is below the rival in geometric mean and at two thirds of the points."""
    for panel in view.panels(figure):
        if {ours, rival} <= {line.method for line in panel.lines}:
            ratios = view.means(panel, rival) / view.means(panel, ours)
            won = int((ratios > 1).sum())
            text = f"{panel.title}: {rival} / {ours} = {geometric(ratios):.2f}, below at {won} of {ratios.size}"
            yield geometric(ratios) > 1 and won >= MOST * ratios.size, text


@makes_rule
def superiority_grows(view: View, figure: str, steps: Sequence[tuple[str, str]], rival: str) -> Parts:
    """The rival's error over ours grows from panel to panel (each with our method there), at two thirds of the points
    of every step, to above 1.
    """
    panels = [(view.panel(figure, name), ours) for name, ours in steps]
    ratios = [view.means(panel, rival) / view.means(panel, ours) for panel, ours in panels]
    grown = all((b > a).sum() >= MOST * a.size for a, b in pairwise(ratios))
    by_panel = [f"{panel.title} {geometric(r):.2f}" for (panel, _), r in zip(panels, ratios, strict=True)]
    yield bool(grown and geometric(ratios[-1]) > 1), f"{rival} / ours: {', '.join(by_panel)}"


def pairs_of(figure: str, swap: Callable[[str], str | None]) -> Callable[[View], list[tuple[Panel, Panel]]]:
    """Panels, each with the one whose name ``swap`` gives."""

    def pairs(view: View) -> list[tuple[Panel, Panel]]:
        """The pairs that are there."""
        by_name = {panel.name: panel for panel in view.panels(figure)}
        return [(panel, by_name[other]) for name, panel in by_name.items() if (other := swap(name)) in by_name]

    return pairs


@makes_rule
def fades(view: View, figures: tuple[str, str], method: str) -> Parts:
    """A method's error rises along the lines of the first figure, and varies less in every panel of the second."""
    for a, b in zip(view.panels(figures[0]), view.panels(figures[1]), strict=True):
        first, second = (spread(view.means(panel, method)) for panel in (a, b))
        rises_first = rank_correlation(view.xs(a, method), view.means(a, method)) >= 0.5
        text = f"{method}, largest / smallest: {first:.2f} on {a.title}, {second:.2f} on {b.title}"
        yield second < first and rises_first, text
