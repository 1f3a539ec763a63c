"""How many parameter combinations a plan has, and what they cost: counted from the plan and the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ahead_ldp.research.experiments.plan import Cell, Figure
from ahead_ldp.research.experiments.results import Measured

PAPER = 757  # Sec. 1; the paper does not say how they are counted


@dataclass(frozen=True, slots=True)
class Count:
    """A figure: its settings of people and privacy (and threshold), its cells, and its runs.

    A setting is counted once, whatever the number of methods; ``one_or_two`` of them have one or two attributes.
    """

    figure: str
    settings: int
    one_or_two: int
    methods: int
    cells: int
    runs: int
    cpu_s: float  # of cells that no earlier figure had


def count(figures: Sequence[Figure], measured: Measured | None = None) -> list[Count]:
    """Every figure in order, and a last line for all of them together."""
    seen: set[Cell] = set()
    found = []
    for figure in figures:
        new = [cell for cell in figure.cells if cell not in seen]
        found.append(_count(figure.name, figure.cells, new, measured))
        seen.update(new)
    everything = list(seen)
    return [*found, _count("all", everything, everything, measured)]


def _count(name: str, cells: Sequence[Cell], new: Sequence[Cell], measured: Measured | None) -> Count:
    settings = {(cell.data, cell.epsilon, cell.theta, cell.task) for cell in cells}
    few = [setting for setting in settings if len(setting[0].sizes) <= 2]
    seconds = 0.0
    for cell in new:
        cost = measured.outcomes[cell.id].cost if measured and cell in measured else None
        seconds += cost["prepare_cpu_s"] + cost["run_cpu_s"] if cost else 0.0
    methods, runs = len({cell.method for cell in cells}), sum(cell.repeats for cell in new)
    return Count(name, len(settings), len(few), methods, len(cells), runs, seconds)
