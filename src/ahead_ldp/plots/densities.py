"""The estimated density: steps with a band for one attribute, a heat map for two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import Answers, Kind, kind_given
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import blocks, equal_blocks, slices
from ahead_ldp.plots.style import (
    BLACK,
    BLUE,
    HEAT,
    SIMULTANEOUS,
    SKY,
    VERMILLION,
    Size,
    Style,
    canvas,
    dress,
    footnote,
    head,
    legend_above,
    marked,
    on_axis,
    shares,
    title_of,
)
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.units import buckets
from ahead_ldp.schema.workloads import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_BINS = 256
_MOST_BANDS = 48  # strict intervals: each takes milliseconds


def plot_estimate(
    estimate: Estimate,
    *attributes: str,
    truth: ArrayLike | None = None,
    ax: Axes | None = None,
    level: float = 0.95,
    kind: Kind | None = None,
    size: Size | None = None,
    style: Style | None = None,
) -> Figure:
    """One attribute as a density with its intervals, or two as a heat map; the true counts beside it if given.

    Of two bands the inner one holds for each bin, the outer one for all bins at once (``Answers.interval``). Strict
    ones are drawn for at most 48 bins; ``kind`` "model" draws the narrower ones that rest on an assumption.
    ``truth`` are counts or shares of every code. With ``ax`` it is drawn there, a heat map then without the truth.
    ``size`` is in inches, ``style`` one of matplotlib's.
    """
    names = attributes or estimate.schema.names
    if len(names) not in (1, 2):
        raise ValueError(f"expected one or two attributes among {', '.join(estimate.schema.names)}, got {len(names)}")
    chosen = [estimate.schema.attributes[estimate.schema.index(name)] for name in names]
    if len(chosen) == 2:
        panels = 2 if truth is not None and ax is None else 1
        with canvas(ax, (5.4 * panels, 4.4), size, style) as figure:
            return _heat_maps(figure, estimate, chosen, truth, ax)
    with canvas(ax, (7.0, 4.0), size, style) as figure:
        drawn = figure.add_subplot() if ax is None else ax
        answers = draw_density(drawn, estimate, chosen[0], truth, level, kind)
        head(drawn, estimate)
        if ax is None:
            footnote(figure, answers, level, kind)
    return figure


def plot_cdf(
    estimate: Estimate,
    attribute: str | None = None,
    *,
    truth: ArrayLike | None = None,
    ax: Axes | None = None,
    level: float = 0.95,
    kind: Kind | None = None,
    size: Size | None = None,
    style: Style | None = None,
) -> Figure:
    """The share of people with a value up to each point, with its intervals.

    The rest is as for `plot_estimate`.
    """
    name = estimate.schema.names[0] if attribute is None and len(estimate.schema.names) == 1 else attribute
    curve = estimate.cdf(name, _MOST_BINS, errors=False)
    a = estimate.schema.attributes[estimate.schema.index(str(name))]
    with canvas(ax, (7.0, 4.0), size, style) as figure:
        drawn = figure.add_subplot() if ax is None else ax
        answers = estimate.cdf(name, min(a.ordered_size, _MOST_BANDS))
        places = _ends(a, len(answers))
        for simultaneous, alpha, label in ((True, 0.25, SIMULTANEOUS), (False, 0.45, f"{100 * level:g} % interval")):
            low, high = (np.append(0.0, 100 * end) for end in answers.interval(level, simultaneous, kind))
            drawn.fill_between(places, low, high, color=SKY, alpha=alpha, linewidth=0, label=label)
        drawn.plot(
            _ends(a, len(curve)), np.append(0.0, 100 * curve.values), color=BLUE, linewidth=1.6, label="estimate"
        )
        if truth is not None:
            true = np.append(0.0, 100 * np.cumsum(shares(truth, (a.size,))[: a.ordered_size]))
            drawn.plot(_ends(a, a.ordered_size), true, color=BLACK, linewidth=1.0, linestyle="--", label="truth")
        drawn.set_xlim(places[0], places[-1])
        drawn.set_ylim(0.0, 100.0)
        drawn.set_yticks([0, 25, 50, 75, 100])
        drawn.grid(axis="y", color="0.5", alpha=0.2)
        dress(drawn.xaxis, a)
        drawn.set_ylabel("people up to here, %")
        drawn.spines[["top", "right"]].set_visible(False)
        legend_above(drawn)
        head(drawn, estimate)
        if ax is None:
            footnote(figure, answers, level, kind)
    return figure


def _ends(a: Attribute, points: int) -> Floats:
    """Where the domain begins and where each of so many blocks of codes ends, on the axis."""
    return bin_borders(a, blocks(a.ordered_size, points))


def draw_density(
    ax: Axes,
    estimate: Estimate,
    a: Attribute,
    truth: ArrayLike | None,
    level: float = 0.95,
    kind: Kind | None = None,
) -> Answers:
    """Draw one attribute's density on some axes; the answers whose intervals were drawn come back."""
    ends = blocks(a.ordered_size, a.ordered_size if a.labels else _MOST_BINS)
    values = estimate.answer(_bins(estimate, a, ends), errors=False).values
    borders = bin_borders(a, ends)
    height, what = _heights(a, borders)
    answers = _draw_intervals(ax, estimate, a, borders, level, kind)
    true = None if truth is None else np.add.reduceat(shares(truth, (a.size,))[: a.ordered_size], ends[:-1])
    if a.labels:
        ax.bar(borders[:-1] + 0.5, values * height, width=0.7, color=SKY, zorder=1, label="estimate")
        if true is not None:
            ax.plot(borders[:-1] + 0.5, true * height, "D", color=VERMILLION, markersize=5, label="truth")
    else:
        width, name = (0.7, "finer estimate") if len(answers) < values.size else (1.6, "estimate")
        ax.stairs(values * height, borders, color=BLUE, linewidth=width, baseline=None, label=name)
        if true is not None:
            ax.stairs(true * height, borders, color=BLACK, linewidth=1.0, linestyle="--", baseline=None, label="truth")
    ax.set_ylim(bottom=0.0)
    ax.set_xlim(borders[0], borders[-1])
    dress(ax.xaxis, a)
    ax.set_ylabel(what)
    ax.spines[["top", "right"]].set_visible(False)
    legend_above(ax)
    return answers


def _draw_intervals(
    ax: Axes, estimate: Estimate, a: Attribute, fine: Floats, level: float, kind: Kind | None
) -> Answers:
    """Two bands, or two lines for each category: pointwise and simultaneous, in people per ``fine`` bin."""
    strict = kind_given(kind, estimate.provenance) == "strict"
    ends = blocks(a.ordered_size, a.ordered_size if a.labels else _MOST_BINS)
    if strict and not a.labels:
        ends = equal_blocks(a.ordered_size, _MOST_BANDS)
    answers = estimate.answer_jointly(_bins(estimate, a, ends))
    borders = bin_borders(a, ends)
    own, together = answers.interval(level, kind=kind), answers.interval(level, simultaneous=True, kind=kind)
    interval = f"{100 * level:g} % interval{'*' * bool(marked(answers, kind).any())}"
    if a.labels:
        for ends_of, width, name in ((own, 3.0, interval), (together, 1.0, SIMULTANEOUS)):
            error = 100 * np.maximum(np.stack([answers.values - ends_of[0], ends_of[1] - answers.values]), 0.0)
            ax.errorbar(
                borders[:-1] + 0.5, 100 * answers.values, error,
                fmt="none", ecolor=BLUE, elinewidth=width, capsize=3, zorder=2, label=name,
            )  # fmt: skip
        return answers
    height = _heights(a, fine)[0] if borders.size == fine.size else 100 * np.median(np.diff(fine)) / np.diff(borders)
    for (bottom, top), alpha, name in ((together, 0.25, SIMULTANEOUS), (own, 0.45, interval)):
        ax.stairs(top * height, borders, baseline=bottom * height, fill=True, color=SKY, alpha=alpha, label=name)
    if borders.size < fine.size:
        ax.stairs(answers.values * height, borders, color=BLUE, linewidth=1.8, baseline=None, label="estimate")
    return answers


def _bins(estimate: Estimate, a: Attribute, ends: Ints) -> Workload:
    return slices(estimate.schema, a.name, ends[:-1].astype(float), ends[1:].astype(float))


def bin_borders(a: Attribute, ends: Ints) -> Floats:
    """Where blocks of codes begin, and the last one ends, on the axis."""
    borders = np.append(buckets(a, ends[:-1])[0], buckets(a, ends[-1:] - 1)[1])
    if borders[-1] == borders[-2]:  # the maximum alone has no width, so it is given some
        borders[-1] += borders[-2] - borders[-3] if borders.size > 2 else 1.0
    return on_axis(a, borders)


def _heights(a: Attribute, borders: Floats) -> tuple[Any, str]:
    """What a share is multiplied with, and what that is called."""
    widths = np.diff(borders)
    if a.labels:
        return 100.0, "people, %"
    typical = float(np.median(widths))
    per = {"date": "day", "datetime": "day", "time": "second"}.get(a.kind, "value")
    many = f"{typical:,.4g} {per}s" if per != "value" else f"{typical:,.4g}"
    what = f"people, % per {per if typical == 1 and a.kind != 'real' else many}"
    return (100.0 if np.ptp(widths) <= 1e-6 * typical else 100.0 * typical / widths), what


def _heat_maps(
    figure: Figure, estimate: Estimate, chosen: list[Attribute], truth: ArrayLike | None, ax: Axes | None
) -> Figure:
    panels = 2 if truth is not None and ax is None else 1
    axes = [ax] if ax is not None else list(figure.subplots(1, panels, sharex=True, sharey=True, squeeze=False)[0])
    ends, estimated = joint_shares(estimate, chosen)
    pictures = [estimated]
    if panels == 2:
        assert truth is not None
        true = shares(truth, tuple(a.size for a in chosen))[tuple(slice(a.ordered_size) for a in chosen)]
        pictures.append(np.add.reduceat(np.add.reduceat(true, ends[0][:-1], 0), ends[1][:-1], 1))
    top = 100 * max(p.max() for p in pictures)
    for drawn, picture, name in zip(axes, pictures, ("estimate", "truth"), strict=False):
        mesh = draw_heat(drawn, chosen, ends, picture, top)
        drawn.set_title(name if panels == 2 else title_of(estimate), fontsize="small")
    figure.colorbar(mesh, ax=axes, label="people, % per cell", pad=0.02)
    if panels == 2:
        figure.suptitle(title_of(estimate), fontsize="medium")
    return figure


def joint_shares(estimate: Estimate, chosen: list[Attribute], most: int = _MOST_BINS) -> tuple[list[Ints], Floats]:
    """Borders of blocks of codes of two attributes, and the share of people in each pair of blocks."""
    ends = [blocks(a.ordered_size, most) for a in chosen]
    sizes = estimate.schema.sizes
    index = np.indices([e.size - 1 for e in ends]).reshape(2, -1)
    boxes = np.zeros((index.shape[1], len(sizes), 2))
    boxes[..., 1] = sizes
    for a, e, i in zip(chosen, ends, index, strict=True):
        boxes[:, estimate.schema.index(a.name)] = np.stack([e[i], e[i + 1]], axis=1)
    answers = estimate.answer(Workload(sizes, boxes, np.arange(len(boxes)), len(boxes)), errors=False)
    return ends, answers.values.reshape([e.size - 1 for e in ends])


def draw_heat(ax: Axes, chosen: list[Attribute], ends: list[Ints], picture: Floats, top: float | None = None) -> Any:
    """Draw shares of pairs of blocks, the first attribute to the right and the second up."""
    from matplotlib.colors import PowerNorm

    x, y = (bin_borders(a, e) for a, e in zip(chosen, ends, strict=True))
    norm = PowerNorm(0.5, 0.0, 100 * picture.max() if top is None else top)  # one high cell must not hide the others
    shown = 100 * np.maximum(picture.T, 0.0)
    mesh = ax.pcolormesh(x, y, shown, cmap=HEAT, norm=norm, rasterized=picture.size > 4096)
    dress(ax.xaxis, chosen[0])
    dress(ax.yaxis, chosen[1])
    if chosen[0].kind == "real":
        ax.tick_params(axis="x", rotation=30)
    return mesh
