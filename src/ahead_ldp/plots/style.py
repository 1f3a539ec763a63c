"""What all pictures share: colours that everybody can tell apart, axes in the user's units, notes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import Answers, Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.schema.arrays import Bools, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito, "Color Universal Design", 2008.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
HEAT = "cividis"  # perceptually even, and the same for most kinds of colour vision

SIMULTANEOUS = "simultaneous"  # what a legend calls intervals that all hold at once
_MOST_TICKS = 24
_LETTERS = 118 / 7.0  # of a line below a picture, for every inch of it
_TICK_LETTERS = 12.0  # of a label of an axis, for every inch; measured with matplotlib's font
_MOST_LINES = 4  # of a label below an axis that stays upright
_TURNED = 35.0  # degrees of a label that would cover its neighbours
_TURNED_LETTERS = 28  # of such a label; of a longer one the beginning is shown
_SIDE_LETTERS = 20  # in a line of a name beside a heat map, which has two
_ROW_LETTERS, _ROW_LINES = 38, 3  # of the name of a row, in a line, and lines
_ROW, _LINE = 0.32, 0.17  # inches of a row, and of a line of its name
NOTES = 0.5  # inches, of the lines below a picture

Size = tuple[float, float]  # width and height of a picture, in inches
Style = str | dict[str, Any] | list[str | dict[str, Any]]  # whatever `matplotlib.style.context` takes


def new_figure(width: float = 7.0, height: float = 4.0) -> Figure:
    """An empty figure, in inches, that makes room for its labels."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'ahead-ldp[plot]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    setattr(figure, "_repr_png_", partial(_png, figure))  # noqa: B010 - a notebook shows it, with or without pyplot
    return figure


def _png(figure: Figure) -> bytes:
    """The picture as a notebook shows it."""
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


@contextmanager
def canvas(ax: Axes | None, default: Size, size: Size | None = None, style: Style | None = None) -> Iterator[Figure]:
    """The figure to draw on: that of ``ax``, or a new one of this size; what is drawn meanwhile has this style."""
    if ax is not None and size is not None:
        raise ValueError("expected ax or size, got both: given axes have a size of their own")
    sides = () if size is None else tuple(map(float, size))
    if size is not None and not (len(sides) == 2 and min(sides) > 0):
        raise ValueError(f"expected size to be a width and a height in inches, got {size!r}")
    new_figure()  # says what to install where matplotlib is missing
    with contextlib.nullcontext() if style is None else _styled(style):
        yield new_figure(*(default if size is None else size)) if ax is None else figure_of(ax)


@contextmanager
def _styled(style: Style) -> Iterator[None]:
    """The style, or a ValueError that names it."""
    from matplotlib import rc_context
    from matplotlib import style as styles

    with rc_context():
        try:
            styles.use(style)
        except (OSError, KeyError, ValueError) as error:
            raise ValueError(f"expected style to be one of matplotlib's, got {style!r}: {error}") from None
        yield


def figure_of(ax: Axes) -> Figure:
    """The figure that holds some axes."""
    return ax.get_figure(root=True)  # type: ignore[return-value]


def on_axis(attribute: Attribute, numbers: Floats) -> Floats:
    """Numbers as they are drawn: moments in days, which is how dates are drawn, categories at their middle."""
    return numbers / 86400 if attribute.kind == "datetime" else numbers


def dress(axis: Any, attribute: Attribute) -> None:
    """Give an axis the attribute's name and ticks in its units."""
    from matplotlib import dates, ticker

    axis.set_label_text(attribute.name, parse_math=False)
    if attribute.kind in ("date", "datetime"):
        locator = dates.AutoDateLocator()  # type: ignore[no-untyped-call]
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    elif attribute.kind == "time":
        axis.set_major_locator(ticker.MaxNLocator(8, steps=[1, 3, 6]))
        axis.set_major_formatter(ticker.FuncFormatter(lambda s, _: f"{int(s) // 3600:02d}:{int(s) % 3600 // 60:02d}"))
    elif attribute.labels:
        step = -(-len(attribute.labels) // _MOST_TICKS)
        places = np.arange(0, len(attribute.labels), step)
        _fit_names(axis, np.asarray(places + 0.5, np.float64), [attribute.labels[i] for i in places])
    else:
        axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:,.10g}"))


def name_ticks(axis: Any, places: Floats, names: Sequence[str], **text: Any) -> None:
    """Ticks with names as they are: "$10 to $20" is no formula."""
    axis.set_ticks(places, names, **text)
    for label in axis.get_ticklabels():
        label.set_parse_math(False)


def _fit_names(axis: Any, places: Floats, names: list[str]) -> None:
    """Ticks with names. Long ones are broken into lines below an axis, or turned; beside an axis they are broken."""
    if axis.axis_name == "y":
        name_ticks(axis, places, [_broken(name, _SIDE_LETTERS, 2) for name in names])
        return
    inches = axis.axes.get_position().width * figure_of(axis.axes).get_figwidth()
    room = int(_TICK_LETTERS * inches / len(names))
    lines = [wrap(name, max(room, 1), break_long_words=False, break_on_hyphens=False) for name in names]
    if max(len(line) for name in lines for line in name) <= room and max(map(len, lines)) <= _MOST_LINES:
        name_ticks(axis, places, ["\n".join(name) for name in lines])
    else:
        short = [_broken(name, _TURNED_LETTERS, 1) for name in names]
        name_ticks(axis, places, short, rotation=_TURNED, ha="right", rotation_mode="anchor")


def _broken(name: str, letters: int, lines: int) -> str:
    """A name in at most so many lines; of a longer one the beginning."""
    return "\n".join(wrap(name, letters, max_lines=lines, placeholder=" …"))


def rows_named(names: Sequence[str]) -> list[str]:
    """Names of rows as they stand beside them: long ones in several lines."""
    return [_broken(name, _ROW_LETTERS, _ROW_LINES) for name in names]


def height_of_rows(names: Sequence[str]) -> float:
    """Inches of a picture with a row for each name, a legend above and an axis below."""
    return 0.9 + sum(max(_ROW, _LINE * (name.count("\n") + 1) + 0.1) for name in rows_named(names))


def title_of(estimate: Estimate) -> str:
    """Method, epsilon and people, where they are known."""
    p = estimate.provenance
    return "" if p is None else f"{p.method}, ε = {p.epsilon}, {p.people:,} people"


def head(ax: Axes, estimate: Estimate) -> None:
    """Method, epsilon and people over the axes: to the right, above a legend where there is one."""
    ax.set_title(title_of(estimate), loc="right", fontsize="small", pad=22 if ax.get_legend() else None)


def legend_above(ax: Axes) -> None:
    """A legend over the axes, where it covers nothing."""
    handles, _ = ax.get_legend_handles_labels()
    if handles:
        ax.legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(handles), frameon=False, fontsize="small",
            borderaxespad=0.2, handlelength=1.6, columnspacing=1.2,
        )  # fmt: skip


def footnote(figure: Figure, answers: Answers, level: float = 0.95, kind: Kind | None = None) -> None:
    """Say below the picture what the intervals are and what they leave out."""
    letters = int(_LETTERS * figure.get_figwidth())
    lines = [line for note in answers.notes(level, kind) for line in wrap(note, letters)]
    if lines:
        figure.supxlabel("\n".join(lines), fontsize="x-small", color="0.45", x=0.01, ha="left")


def marked(answers: Answers, kind: Kind | None) -> Bools:
    """The answers whose interval leaves out what an assumed density costs: the model's alone do."""
    return answers.bias_not_included & (answers.kind(kind) == "model")


def shares(truth: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """True counts or shares of every code as shares."""
    counts = np.asarray(truth, float)
    if counts.shape != shape or not np.isfinite(counts).all() or (counts < 0).any() or not counts.sum() > 0:
        raise ValueError(f"expected truth to be counts or shares >= 0 of shape {shape}, got shape {counts.shape}")
    return counts / counts.sum()
