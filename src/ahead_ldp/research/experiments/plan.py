"""Figures as data: panels, lines, and the cell behind every point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ahead_ldp.research.experiments.cells import Cell, Data


@dataclass(frozen=True, slots=True)
class Point:
    """Where a cell's result is drawn; ``y`` is the other axis of a heat map."""

    x: float
    cell: Cell
    y: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """The points of one method; hidden ones are there for the rules alone."""

    method: str
    points: tuple[Point, ...]
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One small picture: the people of its first point say what it is about."""

    name: str
    title: str
    lines: tuple[Line, ...]

    def line(self, method: str) -> Line:
        """The line of this method."""
        return next(line for line in self.lines if line.method == method)

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell, line by line."""
        return (point.cell for line in self.lines for point in line.points)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the paper: its number there, its label in the source, what is varied, and its panels.

    ``kind`` is "lines", "bars", "theta", "leaves" or "heat".
    """

    name: str
    title: str
    kind: str
    x_label: str
    panels: tuple[Panel, ...]
    y_label: str = "mean squared error"

    @property
    def cells(self) -> list[Cell]:
        """Every cell, each once."""
        return list(dict.fromkeys(cell for panel in self.panels for cell in panel.cells))

    def panel(self, name: str) -> Panel:
        """The panel of this name."""
        return next(panel for panel in self.panels if panel.name == name)


def all_cells(figures: Iterable[Figure]) -> list[Cell]:
    """Every cell of some figures, each once, cells on the same people together."""
    cells = dict.fromkeys(cell for figure in figures for cell in figure.cells)
    places: dict[tuple[Data, int], int] = {}
    for cell in cells:
        places.setdefault((cell.data, cell.queries), len(places))
    return sorted(cells, key=lambda cell: places[cell.data, cell.queries])
