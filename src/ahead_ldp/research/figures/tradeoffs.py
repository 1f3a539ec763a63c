"""The price of privacy as a picture: predicted error, or width, against epsilon, a curve for each number of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ahead_ldp.plots.style import BLACK, BLUE, GREEN, PURPLE, VERMILLION, Size, Style, canvas
from ahead_ldp.research.targets import LEVEL, Forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZES = {
    "error": f"error in points that {100 * LEVEL:g} % of\nrandom range answers stay within",
    "range": "half the width of intervals of\nrandom ranges, in points",
    "code": "half the width of intervals of\nsingle codes, in points",
    "quantile": "half the width of intervals of\nquartiles, in hundredths of the range",
}
_MARKS = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "^"), (PURPLE, "D"))


def plot_tradeoff(
    curves: Mapping[int, Sequence[Forecast]],
    target: float | None = None,
    ax: Axes | None = None,
    size: Size | None = None,
    style: Style | None = None,
) -> Figure:
    """One curve for each number of people (forecasts by rising epsilon), the slope of N ε² constant, and the target."""
    with canvas(ax, (7.0, 4.4), size, style) as figure:
        _draw(figure.subplots() if ax is None else ax, curves, target)
    return figure


def _draw(ax: Axes, curves: Mapping[int, Sequence[Forecast]], target: float | None) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    for (people, forecasts), (colour, mark) in zip(sorted(curves.items()), _MARKS * len(curves), strict=False):
        epsilons, errors = [f.case.epsilon for f in forecasts], [100 * f.error for f in forecasts]
        ax.plot(epsilons, errors, color=colour, marker=mark, markersize=4, label=f"{people:,} people")
        middle = len(forecasts) // 2
        rule = [errors[middle] * epsilons[middle] / e for e in epsilons]
        ax.plot(epsilons, rule, color=colour, linewidth=0.8, linestyle=":", zorder=0)
    ax.plot([], [], color=BLACK, linewidth=0.8, linestyle=":", label="if N ε² were all")
    if target is not None:
        ax.axhline(100 * target, color=BLACK, linewidth=0.8, linestyle="--", label=f"target, {100 * target:g} points")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = [f.case.epsilon for f in next(iter(curves.values()))]
    ax.set_xticks(ticks, [f"{e:g}" for e in ticks], minor=False)
    ax.set_xticks([], minor=True)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(axis="y", color="0.5", alpha=0.2)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel("ε")
    method = next(iter(curves.values()))[0]
    ax.set_ylabel(_SIZES[method.meaning])
    sizes = " x ".join(str(size) for size in method.case.schema.sizes)
    ax.set_title(f"{method.method}, {sizes} codes, least favourable reference shape", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
