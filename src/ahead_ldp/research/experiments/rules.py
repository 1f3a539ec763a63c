"""Rules that decide whether our figures agree with what the paper writes about its own. Each gives its evidence.

Numbers are the paper's where it prints one. Where it uses a word we fix a number once: "almost one order of magnitude"
and the like mean nearer to that than to nothing on a log scale (a factor of 10^0.5); "almost does not change" means
within a factor of 2, and "most" two thirds. A line that does not change must also lie below Uni's, since a method no
better than Uni is, in the paper's words, meaningless: without this Uni itself would count as robust.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ahead_ldp.research.experiments.plan import Panel
from ahead_ldp.research.experiments.views import (
    NotMeasured,
    View,
    clearly_above,
    crossing,
    geometric,
    rank_correlation,
    spread,
)

HALF_DECADE = 10**0.5
STEADY = 2.0
MOST = 2 / 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """Whether a rule is met, and the numbers that say so."""

    met: bool
    text: str


Rule = Callable[[View], Evidence]


def together(parts: Sequence[tuple[bool, str]]) -> Evidence:
    """All parts must be met; all are told."""
    return Evidence(all(met for met, _ in parts), "; ".join(text for _, text in parts))


def meaningful(view: View, panel: Panel, method: str) -> bool:
    """Whether a method is better than Uni at every point of a panel."""
    return bool((view.means(panel, method) < view.means(panel, "Uni")).all())


def smallest(figure: str, ours: str, rivals: Sequence[str]) -> Rule:
    """Ours has the least error in every panel (geometric mean), and at no point is clearly above the best rival."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            best = min((view.ratio(panel, rival, ours), rival) for rival in rivals)
            lost = 0
            for i, trial in enumerate(view.trials(panel, ours)):
                lost += any(clearly_above(trial, view.trials(panel, rival)[i]) for rival in rivals)
            text = f"{panel.title}: {best[1]} / {ours} = {best[0]:.2f}, clearly lost at {lost} of {i + 1} points"
            parts.append((best[0] > 1 and lost == 0, text))
        return together(parts)

    return rule


def mostly_below(figure: str, ours: Callable[[Panel], str], rival: str) -> Rule:
    """Ours is below the rival at two thirds of all points or more."""

    def rule(view: View) -> Evidence:
        won = points = 0
        for panel in view.panels(figure):
            better = view.means(panel, ours(panel)) < view.means(panel, rival)
            won, points = won + int(better.sum()), points + better.size
        return Evidence(won >= MOST * points, f"below {rival} at {won} of {points} points")

    return rule


def factor(figure: str, panel: str, ours: str, rivals: Sequence[str], low: float, high: float) -> Rule:
    """The best rival's error over ours lies between two factors (geometric mean over epsilon), and nowhere outside
    by more than a quarter.
    """

    def rule(view: View) -> Evidence:
        found = view.figure(figure).panel(panel)
        ratios = np.min([view.means(found, rival) for rival in rivals], axis=0) / view.means(found, ours)
        mean = geometric(ratios)
        everywhere = ratios.min() >= min(low, 1.0) / 1.25 and ratios.max() <= high * 1.25
        text = f"best rival / {ours} = {mean:.2f} (from {ratios.min():.2f} to {ratios.max():.2f} over ε)"
        return Evidence(bool(low <= mean <= high and everywhere), text)

    return rule


def best_factor(figures: Sequence[str], ours: Sequence[str], rivals: Sequence[str], least: float) -> Rule:
    """Somewhere a previous method's error is at least this many times ours."""

    def rule(view: View) -> Evidence:
        most, where = 0.0, ""
        for panel in (panel for figure in figures for panel in view.panels(figure)):
            names = {line.method for line in panel.lines}
            for a in names & set(ours):
                for b in names & set(rivals):
                    ratios = view.means(panel, b) / view.means(panel, a)
                    if ratios.max() > most:
                        x = view.xs(panel, a)[int(ratios.argmax())]
                        most, where = float(ratios.max()), f"{b} on {panel.title} at {x:g}"
        return Evidence(most >= least, f"at most {most:.0f} times ({where})")

    return rule


def steady(figure: str, method: str, within: float = STEADY, only: str = "") -> Rule:
    """The largest error of a line is within a factor of its smallest, and below Uni's."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            if only and only not in panel.name:
                continue
            found = spread(view.means(panel, method))
            far = meaningful(view, panel, method)
            text = f"{panel.title}: largest / smallest = {found:.2f}{'' if far else ', not below Uni'}"
            parts.append((found <= within and far, text))
        return together(parts)

    return rule


def rises(figure: str, method: str, times: float) -> Rule:
    """The error grows along the line: rank correlation at least 0.9, and the last over the first at least a factor."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            means = view.means(panel, method)
            rank = rank_correlation(view.xs(panel, method), means)
            text = f"{panel.title}: last / first = {means[-1] / means[0]:.1f}, rank correlation {rank:.2f}"
            parts.append((rank >= 0.9 and means[-1] / means[0] >= times, text))
        return together(parts)

    return rule


def crosses(figure: str, rival: str, ours: str, low: float, high: float) -> Rule:
    """The rival's curve rises above ours between two places, in every panel."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            xs = view.xs(panel, ours)
            if len(xs) < 5:
                raise NotMeasured("needs the full grid of correlations")
            at = crossing(xs, view.means(panel, rival), view.means(panel, ours))
            first = view.means(panel, rival)[0] / view.means(panel, ours)[0]
            text = f"{panel.title}: " + (
                f"no crossing ({rival} / {ours} = {first:.2f} at r = {xs[0]:g})" if at is None else f"r = {at:.2f}"
            )
            parts.append((at is not None and low <= at <= high, text))
        return together(parts)

    return rule


def same_across(method: str, pairs: Callable[[View], list[tuple[Panel, Panel]]], within: float = STEADY) -> Rule:
    """A method's line hardly differs between panels (geometric mean of the ratio), and is below Uni's."""

    def rule(view: View) -> Evidence:
        parts = []
        for a, b in pairs(view):
            found = geometric(view.means(b, method) / view.means(a, method))
            far = meaningful(view, a, method) and meaningful(view, b, method)
            text = f"{b.title} / {a.title} = {found:.2f}{'' if far else ', not below Uni'}"
            parts.append((1 / within <= found <= within and far, text))
        return together(parts)

    return rule


def larger_across(method: str, over: str | None, pairs: Callable[[View], list[tuple[Panel, Panel]]]) -> Rule:
    """From the first panel to the second a method's error grows, in geometric mean; or its ratio to another's grows,
    to above 1.
    """

    def rule(view: View) -> Evidence:
        parts = []
        for a, b in pairs(view):
            first, second = (_relative(view, panel, method, over) for panel in (a, b))
            what = method if over is None else f"{method} / {over}"
            better = second > first and (over is None or second > 1)
            parts.append((better, f"{what}: {first:.3g} on {a.title}, {second:.3g} on {b.title}"))
        return together(parts)

    return rule


def _relative(view: View, panel: Panel, method: str, over: str | None) -> float:
    return geometric(view.means(panel, method)) if over is None else view.ratio(panel, method, over)


def below_in_mean(figure: str, ours: str, rival: str) -> Rule:
    """In every panel that has both, ours is below the rival in geometric mean and at two thirds of the points."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            if {ours, rival} <= {line.method for line in panel.lines}:
                ratios = view.means(panel, rival) / view.means(panel, ours)
                won = int((ratios > 1).sum())
                text = f"{panel.title}: {rival} / {ours} = {geometric(ratios):.2f}, below at {won} of {ratios.size}"
                parts.append((geometric(ratios) > 1 and won >= MOST * ratios.size, text))
        return together(parts)

    return rule


def superiority_grows(figure: str, steps: Sequence[tuple[str, str]], rival: str) -> Rule:
    """The rival's error over ours grows from panel to panel (each with our method there), at two thirds of the points
    of every step, to above 1.
    """

    def rule(view: View) -> Evidence:
        panels = [(view.figure(figure).panel(name), ours) for name, ours in steps]
        ratios = [view.means(panel, rival) / view.means(panel, ours) for panel, ours in panels]
        grown = all((b > a).sum() >= MOST * a.size for a, b in pairwise(ratios))
        told = [f"{panel.title} {geometric(r):.2f}" for (panel, _), r in zip(panels, ratios, strict=True)]
        return Evidence(bool(grown and geometric(ratios[-1]) > 1), f"{rival} / ours: {', '.join(told)}")

    return rule


def pairs_of(figure: str, swap: Callable[[str], str | None]) -> Callable[[View], list[tuple[Panel, Panel]]]:
    """Panels, each with the one whose name ``swap`` gives."""

    def pairs(view: View) -> list[tuple[Panel, Panel]]:
        by_name = {panel.name: panel for panel in view.panels(figure)}
        return [(panel, by_name[other]) for name, panel in by_name.items() if (other := swap(name)) in by_name]

    return pairs


def fades(figures: tuple[str, str], method: str) -> Rule:
    """A method's error rises along the lines of the first figure, and varies less in every panel of the second."""

    def rule(view: View) -> Evidence:
        parts = []
        for a, b in zip(view.panels(figures[0]), view.panels(figures[1]), strict=True):
            first, second = (spread(view.means(panel, method)) for panel in (a, b))
            rises_first = rank_correlation(view.xs(a, method), view.means(a, method)) >= 0.5
            text = f"{method}, largest / smallest: {first:.2f} on {a.title}, {second:.2f} on {b.title}"
            parts.append((second < first and rises_first, text))
        return together(parts)

    return rule
