"""Rules about the heat maps, the threshold and the leaves."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import numpy as np

from ahead_ldp.research.experiments.plan import Panel
from ahead_ldp.research.experiments.rules import STEADY, Evidence, Rule, meaningful, together
from ahead_ldp.research.experiments.views import NotMeasured, View, geometric, rank_correlation, spread


def enough_users(figure: str, methods: Sequence[str], epsilon: float, target: float, users: int, reached: bool) -> Rule:
    """With so many users or more all these methods have reached the target; or, with as many or fewer, none has."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            for method in methods:
                error = view.at(panel, method, epsilon, users)
                numbers = {p.y for p in view.line(panel, method).points if p.y is not None}
                asked = [n for n in numbers if (n >= users if reached else n <= users)]
                met = all((view.at(panel, method, epsilon, n) <= target) == reached for n in asked)
                parts.append((met, f"{panel.title}, {method}: {error:.1e} with {users:,} users"))
        return together(parts)

    return rule


def exchange(
    figure: str, methods: Sequence[str], first: tuple[float, int], second: tuple[float, int], decades: float
) -> Rule:
    """Two pairs of epsilon and users with the same N epsilon^2 give errors within some decades, below Uni's."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            for method in methods:
                a, b = view.at(panel, method, *first), view.at(panel, method, *second)
                far = max(a, b) < view.at(panel, "Uni", *first)
                text = f"{panel.title}, {method}: 10^{log10(a):.2f} and 10^{log10(b):.2f}"
                parts.append((abs(log10(a / b)) <= decades and (far or method != methods[0]), text))
        return together(parts)

    return rule


def printed(figure: str, panel: str, method: str, points: Sequence[tuple[float, int, float]], decades: float) -> Rule:
    """The printed errors (epsilon, users, log10 of the error) are met to within some decades."""

    def rule(view: View) -> Evidence:
        found = view.figure(figure).panel(panel)
        parts = []
        for epsilon, users, exponent in points:
            ours = log10(view.at(found, method, epsilon, users))
            text = f"ε = {epsilon:g}, N = {users:,}: 10^{ours:.2f}, printed 10^{exponent:.2f}"
            parts.append((abs(ours - exponent) <= decades, text))
        return together(parts)

    return rule


def _ends(view: View, panel: Panel, method: str) -> float:
    """Error at the last y over that at the first, geometric mean over x."""
    points = view.line(panel, method).points
    ys = [point.y for point in points if point.y is not None]
    xs = sorted({point.x for point in points})
    return geometric([view.at(panel, method, x, max(ys)) / view.at(panel, method, x, min(ys)) for x in xs])


def robust(figure: str, ours: str, rivals: Sequence[str]) -> Rule:
    """From the smallest to the largest domain ours grows less than every rival, which all grow; it is below Uni."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            own = _ends(view, panel, ours)
            others = {rival: _ends(view, panel, rival) for rival in rivals}
            far = meaningful(view, panel, ours)
            text = f"{panel.title}: x{own:.2f}, " + ", ".join(
                f"{rival} x{value:.2f}" for rival, value in others.items()
            )
            parts.append((own < min(others.values()) and min(others.values()) > 1 and far, text))
        return together(parts)

    return rule


def falls_with_skewness(figure: str, users: str, most_epsilon: float) -> Rule:
    """At small epsilon the error falls with skewness: rank correlation at most -0.5, and Uni's does not explain it."""

    def rule(view: View) -> Evidence:
        parts = []
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
                parts.append((rank <= -0.5 and float(np.mean(errors)) < float(np.mean(uni)), text))
        return together(parts)

    return rule


def skewness_fades(figure: str) -> Rule:
    """With more users, and with a larger epsilon, the error varies less over skewness; it is below Uni's there."""

    def rule(view: View) -> Evidence:
        by_shape: dict[str, list[Panel]] = {}
        for panel in view.panels(figure):
            by_shape.setdefault(panel.title.split(",")[0], []).append(panel)
        parts = []
        for shape, panels in by_shape.items():
            xs = sorted({point.x for point in view.line(panels[0], "AHEAD").points})
            weak = spread(_over_y(view, panels[0], "AHEAD", 0.1)[1])
            strong = spread(_over_y(view, panels[-1], "AHEAD", xs[-1])[1])
            last = [_over_y(view, panels[-1], method, xs[-1])[1] for method in ("AHEAD", "Uni")]
            far = geometric(last[0]) < geometric(last[1])
            text = f"{shape}: largest / smallest {weak:.2f} with little data (ε = 0.1), {strong:.2f} with most"
            parts.append((strong < weak and far, text))
        return together(parts)

    return rule


def _over_y(view: View, panel: Panel, method: str, x: float) -> tuple[list[float], list[float]]:
    ys = sorted({p.y for p in view.line(panel, method).points if p.y is not None})
    return ys, [view.at(panel, method, x, y) for y in ys]


def large_threshold(panel: str, theta: float, times: float) -> Rule:
    """At this threshold the error is so many times the least of its line, and the largest up to there.

    For the three largest epsilons: at the smallest, noise hides the difference.
    """

    def rule(view: View) -> Evidence:
        found = view.figure("fig10").panel(panel)
        parts = []
        for method in _epsilon_lines(found)[-3:]:
            upto = [view.at(found, method, x) for x in view.xs(found, method) if x <= theta * 1.001]
            ratio = upto[-1] / min(upto)
            text = f"{method}: {upto[-1]:.1e}, {ratio:.0f} times the least"
            parts.append((ratio >= times and upto[-1] == max(upto), text))
        return together(parts)

    return rule


def small_threshold(panel: str, theta: float) -> Rule:
    """Below this threshold the error hardly changes, and is below Uni's."""

    def rule(view: View) -> Evidence:
        found = view.figure("fig10").panel(panel)
        parts = []
        for method in _epsilon_lines(found)[-3:]:
            errors = [view.at(found, method, x) for x in view.xs(found, method) if x <= theta * 1.001]
            far = max(errors) < float(np.mean(view.means(found, "Uni")))
            parts.append((spread(errors) <= STEADY and far, f"{method}: largest / smallest {spread(errors):.2f}"))
        return together(parts)

    return rule


def near_best_threshold(within: float) -> Rule:
    """The error at the paper's threshold is within a factor of the least of its line (geometric mean)."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels("fig10"):
            ratios, far = [], True
            for method in _epsilon_lines(panel):
                star = float(view.means(panel, method.replace("ε =", "star"))[0])
                ratios.append(star / float(view.means(panel, method).min()))
                far &= star < float(view.means(panel, "Uni")[0])
            text = f"{panel.title}: {geometric(ratios):.2f} times the least"
            parts.append((geometric(ratios) <= within and far, text))
        return together(parts)

    return rule


def best_thresholds_differ(epsilon: float, expected: dict[str, float]) -> Rule:
    """The best threshold at this epsilon is within a factor of 2 of the printed one, on each of these data sets."""

    def rule(view: View) -> Evidence:
        parts = []
        for name, theta in expected.items():
            panel = view.figure("fig10").panel(name)
            means = view.means(panel, f"ε = {epsilon:g}")
            best = view.xs(panel, f"ε = {epsilon:g}")[int(means.argmin())]
            parts.append((theta / 2.001 <= best <= theta * 2.001, f"{panel.title}: {best:g}, printed {theta:g}"))
        return together(parts)

    return rule


def _epsilon_lines(panel: Panel) -> list[str]:
    return [line.method for line in panel.lines if line.method.startswith("ε")]


def leaves_follow(figure: str, least: float) -> Rule:
    """Leaves are where the people are: rank correlation of both shares over the bins."""

    def rule(view: View) -> Evidence:
        parts = []
        for panel in view.panels(figure):
            share, leaves = view.leaves(panel)
            rank = rank_correlation(share, leaves)
            parts.append((rank >= least, f"{panel.title}: rank correlation {rank:.2f}"))
        return together(parts)

    return rule
