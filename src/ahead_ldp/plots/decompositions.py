"""Tree and leaves over the estimated density, as in the paper's pictures of leaf distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.plots.densities import draw_density, draw_heat, joint_shares
from ahead_ldp.plots.style import HEAT, VERMILLION, Size, Style, canvas, dress, footnote, head, on_axis, title_of
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.units import buckets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_tree(
    estimate: Estimate,
    truth: ArrayLike | None = None,
    level: float = 0.95,
    kind: Kind | None = None,
    ax: Axes | None = None,
    size: Size | None = None,
    style: Style | None = None,
) -> Figure:
    """The decomposition of one attribute under its density, level by level, or the leaves of two on a heat map.

    Where leaves are narrow the method looked closely; where they are wide it saw little to divide. With ``ax`` the
    levels of one attribute are drawn there without the density. ``size`` is in inches, ``style`` one of matplotlib's.
    """
    schema = estimate.schema
    if not isinstance(estimate, TreeEstimate) or len(schema.attributes) > 2:
        got = f"{type(estimate).__name__} of {len(schema.attributes)} attributes"
        raise ValueError(f"expected an estimate that is a tree over one or two attributes, got {got}")
    if len(schema.attributes) == 2:
        with canvas(ax, (6.2, 5.0), size, style) as figure:
            return _leaves_on_heat(figure, estimate, ax)
    with canvas(ax, (7.2, 5.4), size, style) as figure:
        if ax is not None:
            _bar(figure, _draw_levels(ax, estimate), [ax])
            return figure
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        answers = draw_density(above, estimate, schema.attributes[0], truth, level, kind)
        head(above, estimate)
        above.set_xlabel("")
        _bar(figure, _draw_levels(below, estimate), [above, below])
        footnote(figure, answers, level, kind)
    return figure


def _bar(figure: Figure, mesh: Any, axes: list[Axes]) -> None:
    bar = figure.colorbar(mesh, ax=axes, label="people in a node, %", pad=0.01, aspect=35)
    bar.ax.yaxis.set_major_formatter("{x:g}")


def _draw_levels(ax: Axes, estimate: TreeEstimate) -> Any:
    """Every node as a bar from its first to its last value; leaves have an edge, and reach to the bottom."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    tree, a = estimate.tree, estimate.schema.attributes[0]
    lo, hi = _sides(a, tree, 0)
    bottom = np.where(tree.is_split, tree.level + 1, tree.height + 1).astype(float)
    boxes = _rectangles(lo, hi, tree.level.astype(float), bottom)
    share = 100 * np.maximum(estimate.values, 0.0)
    smallest = max(float(share[share > 0].min(initial=10.0)), 0.1)
    many = tree.leaves.size > 100
    bars = PolyCollection(
        list(boxes), array=np.maximum(share, smallest), cmap=HEAT, norm=LogNorm(smallest, 100.0),
        edgecolors="white", linewidths=0.2 if many else 0.6,
    )  # fmt: skip
    ax.add_collection(bars)
    ax.set_ylim(tree.height + 1, 0)
    ax.set_yticks(np.arange(tree.height + 1) + 0.5, [str(i) for i in range(tree.height + 1)])
    ax.set_ylabel("level of the tree")
    dress(ax.xaxis, a)
    ax.spines[["top", "right"]].set_visible(False)
    return bars


def _leaves_on_heat(figure: Figure, estimate: TreeEstimate, given: Axes | None) -> Figure:
    from matplotlib.collections import PolyCollection

    tree, chosen = estimate.tree, list(estimate.schema.attributes)
    ax = figure.add_subplot() if given is None else given
    ends, picture = joint_shares(estimate, chosen)
    mesh = draw_heat(ax, chosen, ends, picture)
    (left, right), (low, high) = (_sides(a, tree, i) for i, a in enumerate(chosen))
    leaves = tree.leaves
    boxes = _rectangles(left[leaves], right[leaves], low[leaves], high[leaves])
    width = 0.8 if leaves.size <= 400 else 0.3
    ax.add_collection(PolyCollection(list(boxes), facecolors="none", edgecolors=VERMILLION, linewidths=width))
    ax.set_title(title_of(estimate), fontsize="small")
    figure.colorbar(mesh, ax=ax, label="people, % per cell", pad=0.02)
    footnote_text = f"lines: the {leaves.size:,} leaves of the decomposition; density is even inside each"
    if given is None:
        figure.supxlabel(footnote_text, fontsize="x-small", color="0.35", x=0.01, ha="left")
    return figure


def _sides(a: Attribute, tree: Tree, i: int) -> tuple[Floats, Floats]:
    """Where the nodes' boxes begin and end on the axis; the cell of missing values is not drawn."""
    last = a.ordered_size
    lo, hi = np.minimum(tree.lo[:, i], last - 1), np.minimum(tree.hi[:, i], last)
    start, end = buckets(a, lo)[0], buckets(a, np.maximum(hi, 1) - 1)[1]
    return on_axis(a, start), on_axis(a, np.where(tree.lo[:, i] >= last, start, end))


def _rectangles(left: Floats, right: Floats, low: Floats, high: Floats) -> Floats:  # -> (k, 4, 2)
    x, y = np.stack([left, right, right, left], axis=1), np.stack([low, low, high, high], axis=1)
    return np.stack([x, y], axis=-1)
