"""What a notebook shows of a result: a small table and a small drawing, as HTML that needs nothing else.

Colours are the page's own, so that a card is readable on light and on dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

MOST_ROWS = 20  # of a card
_WIDTH, _ROW, _SPARK = 180, 16, 28  # pixels


def card(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    drawings: Sequence[str] = (),
    more: int = 0,
) -> str:
    """A table under a title; ``drawings``, one for each row, stand in a last column. Cells are texts, not HTML."""
    cells = ["".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) for row in rows]
    if drawings:
        cells = [f"{row}<td>{svg}</td>" for row, svg in zip(cells, drawings, strict=True)]
    names = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in [*head, *[""] * bool(drawings)])
    lines = [f"<tr>{row}</tr>" for row in cells]
    if more:
        lines.append(f'<tr><td colspan="{len(head) + bool(drawings)}">and {more:,} more</td></tr>')
    below = "".join(f"<div><small>{escape(note)}</small></div>" for note in notes)
    table = f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f"<div><strong>{escape(title)}</strong>{table}{below}</div>"


def spark(values: ArrayLike, label: str) -> str:
    """Bars side by side, from 0 to the largest."""
    heights = np.maximum(np.nan_to_num(np.asarray(values, float).reshape(-1)), 0.0)
    top, step = float(heights.max(initial=0.0)) or 1.0, _WIDTH / max(heights.size, 1)
    bars = "".join(
        f'<rect x="{i * step:.2f}" y="{_SPARK * (1 - h / top):.2f}" width="{max(step - 0.5, 0.5):.2f}" '
        f'height="{_SPARK * h / top:.2f}"/>'
        for i, h in enumerate(heights.tolist())
    )
    return _svg(f'<g fill="currentColor" fill-opacity="0.6">{bars}</g>', _SPARK, label)


def whisker(at: float, low: float, high: float, ends: tuple[float, float], label: str) -> str:
    """A point and its interval between two ends that all rows share."""
    first, last = ends
    span = (last - first) or 1.0

    def place(x: float) -> float:
        """Where a number stands in the drawing."""
        return round(4 + (_WIDTH - 8) * min(max((x - first) / span, 0.0), 1.0), 2)

    y, parts = _ROW / 2, ""
    if isfinite(low) and isfinite(high):
        parts = f'<line x1="{place(low)}" y1="{y}" x2="{place(high)}" y2="{y}" stroke="currentColor"/>'
    if isfinite(at):
        parts += f'<circle cx="{place(at)}" cy="{y}" r="3" fill="currentColor"/>'
    return _svg(parts, _ROW, label)


def whiskers(at: ArrayLike, low: ArrayLike, high: ArrayLike, labels: Sequence[str]) -> list[str]:
    """A point and its interval for each row, on one scale."""
    rows = [np.asarray(x, float).reshape(-1) for x in (at, low, high)]
    known = np.concatenate([row[np.isfinite(row)] for row in rows])
    ends = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    points = zip(*(row.tolist() for row in rows), strict=True)
    return [whisker(a, b, c, ends, label) for (a, b, c), label in zip(points, labels, strict=True)]


def _svg(inside: str, height: int, label: str) -> str:
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    return f'<svg {size} role="img" aria-label="{escape(label, quote=True)}">{inside}</svg>'
