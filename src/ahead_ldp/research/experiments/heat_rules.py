"""Rules about the heat maps, the threshold and the leaves."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import numpy as np

from ahead_ldp.research.experiments.plan import Panel
from ahead_ldp.research.experiments.results import (
    NotMeasured,
    Parts,
    View,
    geometric,
    makes_rule,
    rank_correlation,
    spread,
)


@makes_rule
def enough_users(
    view: View, figure: str, methods: Sequence[str], epsilon: float, target: float, users: int, reached: bool
) -> Parts:
    """With so many users or more all these methods have reached the target; or, with as many or fewer, none has."""
    for panel in view.panels(figure):
        for method in methods:
            error = view.at(panel, method, epsilon, users)
            numbers = {p.y for p in view.line(panel, method).points if p.y is not None}
            asked = [n for n in numbers if (n >= users if reached else n <= users)]
            met = all((view.at(panel, method, epsilon, n) <= target) == reached for n in asked)
            yield met, f"{panel.title}, {method}: {error:.1e} with {users:,} users"


@makes_rule
def exchange(
    view: View, figure: str, methods: Sequence[str], first: tuple[float, int], second: tuple[float, int], decades: float
) -> Parts:
    """Two pairs of epsilon and users with the same N epsilon^2 give errors within some decades, below Uni's."""
    for panel in view.panels(figure):
        for method in methods:
            a, b = view.at(panel, method, *first), view.at(panel, method, *second)
            far = max(a, b) < view.at(panel, "Uni", *first)
            text = f"{panel.title}, {method}: 10^{log10(a):.2f} and 10^{log10(b):.2f}"
            yield abs(log10(a / b)) <= decades and (far or method != methods[0]), text


@makes_rule
def printed(
    view: View, figure: str, panel: str, method: str, points: Sequence[tuple[float, int, float]], decades: float
) -> Parts:
    """The printed errors (epsilon, users, log10 of the error) are met to within some decades."""
    shown = view.panel(figure, panel)
    for epsilon, users, exponent in points:
        ours = log10(view.at(shown, method, epsilon, users))
        text = f"ε = {epsilon:g}, N = {users:,}: 10^{ours:.2f}, printed 10^{exponent:.2f}"
        yield abs(ours - exponent) <= decades, text


def _ends(view: View, panel: Panel, method: str) -> float:
    """Error at the last y over that at the first, geometric mean over x."""
    points = view.line(panel, method).points
    ys = [point.y for point in points if point.y is not None]
    xs = sorted({point.x for point in points})
    return geometric([view.at(panel, method, x, max(ys)) / view.at(panel, method, x, min(ys)) for x in xs])


@makes_rule
def robust(view: View, figure: str, ours: str, rivals: Sequence[str]) -> Parts:
    """From the smallest to the largest domain ours grows less than every rival, which all grow; it is below Uni."""
    for panel in view.panels(figure):
        own = _ends(view, panel, ours)
        others = {rival: _ends(view, panel, rival) for rival in rivals}
        far = view.meaningful(panel, ours)
        text = f"{panel.title}: x{own:.2f}, " + ", ".join(f"{rival} x{value:.2f}" for rival, value in others.items())
        yield own < min(others.values()) and min(others.values()) > 1 and far, text


@makes_rule
def falls_with_skewness(view: View, figure: str, users: str, most_epsilon: float) -> Parts:
    """At small epsilon the error falls with skewness: rank correlation at most -0.5, and Uni's does not explain it."""
    for panel in (panel for panel in view.panels(figure) if panel.title.endswith(users)):
        for epsilon in sorted({point.x for point in view.line(panel, "AHEAD").points}):
            if epsilon > most_epsilon:
                continue
            skews, errors = _over_y(view, panel, "AHEAD", epsilon)
            if len(skews) < 5:
                raise NotMeasured("needs the full grid of skewness")
            uni = _over_y(view, panel, "Uni", epsilon)[1]
            rank = rank_correlation(skews, errors)
            ends = errors[-1] / errors[0]
            text = f"{panel.title}, ε = {epsilon:g}: rank correlation {rank:.2f}, last / first {ends:.2f}"
            yield rank <= -0.5 and float(np.mean(errors)) < float(np.mean(uni)), text


@makes_rule
def skewness_fades(view: View, figure: str) -> Parts:
    """With more users, and with a larger epsilon, the error varies less over skewness; it is below Uni's there."""
    by_shape: dict[str, list[Panel]] = {}
    for panel in view.panels(figure):
        by_shape.setdefault(panel.title.split(",")[0], []).append(panel)
    for shape, panels in by_shape.items():
        xs = sorted({point.x for point in view.line(panels[0], "AHEAD").points})
        weak = spread(_over_y(view, panels[0], "AHEAD", 0.1)[1])
        strong = spread(_over_y(view, panels[-1], "AHEAD", xs[-1])[1])
        last = [_over_y(view, panels[-1], method, xs[-1])[1] for method in ("AHEAD", "Uni")]
        far = geometric(last[0]) < geometric(last[1])
        text = f"{shape}: largest / smallest {weak:.2f} with little data (ε = 0.1), {strong:.2f} with most"
        yield strong < weak and far, text


def _over_y(view: View, panel: Panel, method: str, x: float) -> tuple[list[float], list[float]]:
    ys = sorted({p.y for p in view.line(panel, method).points if p.y is not None})
    return ys, [view.at(panel, method, x, y) for y in ys]


@makes_rule
def large_threshold(view: View, panel: str, theta: float, times: float) -> Parts:
    """At this threshold the error is so many times the least of its line, and the largest up to there.

    For the three largest epsilons: at the smallest, noise hides the difference.
    """
    shown = view.panel("fig10", panel)
    for method in _epsilon_lines(shown)[-3:]:
        upto = [view.at(shown, method, x) for x in view.xs(shown, method) if x <= theta * 1.001]
        ratio = upto[-1] / min(upto)
        text = f"{method}: {upto[-1]:.1e}, {ratio:.0f} times the least"
        yield ratio >= times and upto[-1] == max(upto), text


@makes_rule
def small_threshold(view: View, panel: str, theta: float, within: float = 2.0) -> Parts:
    """Below this threshold the error hardly changes, and is below Uni's."""
    shown = view.panel("fig10", panel)
    for method in _epsilon_lines(shown)[-3:]:
        errors = [view.at(shown, method, x) for x in view.xs(shown, method) if x <= theta * 1.001]
        far = max(errors) < float(np.mean(view.means(shown, "Uni")))
        yield spread(errors) <= within and far, f"{method}: largest / smallest {spread(errors):.2f}"


@makes_rule
def near_best_threshold(view: View, within: float) -> Parts:
    """The error at the paper's threshold is within a factor of the least of its line (geometric mean)."""
    for panel in view.panels("fig10"):
        ratios, far = [], True
        for method in _epsilon_lines(panel):
            star = float(view.means(panel, method.replace("ε =", "star"))[0])
            ratios.append(star / float(view.means(panel, method).min()))
            far &= star < float(view.means(panel, "Uni")[0])
        text = f"{panel.title}: {geometric(ratios):.2f} times the least"
        yield geometric(ratios) <= within and far, text


@makes_rule
def best_thresholds_differ(view: View, epsilon: float, expected: dict[str, float]) -> Parts:
    """The best threshold at this epsilon is within a factor of 2 of the printed one, on each of these data sets."""
    for name, theta in expected.items():
        panel = view.panel("fig10", name)
        means = view.means(panel, f"ε = {epsilon:g}")
        best = view.xs(panel, f"ε = {epsilon:g}")[int(means.argmin())]
        yield theta / 2.001 <= best <= theta * 2.001, f"{panel.title}: {best:g}, printed {theta:g}"


def _epsilon_lines(panel: Panel) -> list[str]:
    return [line.method for line in panel.lines if line.method.startswith("ε")]


@makes_rule
def leaves_follow(view: View, figure: str, least: float) -> Parts:
    """Leaves are where the people are: rank correlation of both shares over the bins."""
    for panel in view.panels(figure):
        share, leaves = view.leaves(panel)
        rank = rank_correlation(share, leaves)
        yield rank >= least, f"{panel.title}: rank correlation {rank:.2f}"
