"""Results as tables: sorted by cell, the same bytes for the same plan however and in how many sittings it was run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahead_ldp.research.evaluation import Spread
from ahead_ldp.research.experiments.cells import Cell
from ahead_ldp.research.experiments.measuring import Outcome

PARTS = ("data", "columns", "sizes", "n", "r", "skew", "method", "epsilon", "theta", "queries")


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcomes of the cells of a plan, by cell; some may be missing."""

    outcomes: Mapping[str, Outcome]  # cell id -> outcome

    @classmethod
    def of(cls, cells: Iterable[Cell], found: Mapping[str, Outcome]) -> Measured:
        """What is there of these cells, from outcomes by key."""
        keys = {cell.id: cell.key for cell in cells}
        return cls({name: found[key] for name, key in keys.items() if key in found})

    def __contains__(self, cell: Cell) -> bool:
        return cell.id in self.outcomes

    def errors(self, cell: Cell) -> list[float]:
        """The mean squared error of every repetition."""
        return [row["mse"] for row in self.outcomes[cell.id].rows]

    def spread(self, cell: Cell) -> Spread:
        """Mean, deviation and 95 % interval."""
        return Spread.of(self.errors(cell))

    def rows(self, cell: Cell) -> tuple[Mapping[str, Any], ...]:
        """The rows as they were measured."""
        return self.outcomes[cell.id].rows

    def note(self, cell: Cell) -> str:
        """What a caption must say of the data."""
        return self.outcomes[cell.id].note if cell.id in self.outcomes else ""


def write_tables(folder: Path, cells: Iterable[Cell], measured: Measured) -> list[Path]:
    """Write the tables of a run: every repetition, every mean, where leaves are, and apart from them what it cost."""
    there = sorted((cell for cell in cells if cell in measured), key=lambda cell: cell.id)
    errors = [cell for cell in there if cell.task == "mse"]
    leaves = [cell for cell in there if cell.task == "leaves"]
    repetitions = [[cell.id, row["repetition"], row["mse"]] for cell in errors for row in measured.rows(cell)]
    bins = [[cell.id, row["bin"], row["share"], row["leaves"]] for cell in leaves for row in measured.rows(cell)]
    costs = [_cost(cell, measured) for cell in there]
    written = {
        "results.csv": (["cell", "repetition", "mse"], repetitions),
        "summary.csv": (
            ["cell", *PARTS, "repetitions", "mse", "std", "ci95_low", "ci95_high", "note"],
            [_summary(c, measured) for c in errors],
        ),
        "leaves.csv": (["cell", "bin", "share", "leaves"], bins),
        "timings.csv": (["cell", "prepare_cpu_s", "run_cpu_s", "build_s", "query_s", "peak_memory_bytes"], costs),
    }
    for name, (head, rows) in written.items():
        write_csv(folder / name, head, rows)
    return [folder / name for name in written]


def write_csv(path: Path, head: list[str], rows: Iterable[list[Any]]) -> None:
    """A table with a header line; numbers in their shortest exact form."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([["" if value is None else value for value in row] for row in rows])
    path.write_text(text.getvalue(), encoding="utf-8")


def _summary(cell: Cell, measured: Measured) -> list[Any]:
    data, spread = cell.data, measured.spread(cell)
    low, high = spread.ci95 if spread.ci95 else (None, None)
    about = [data.name, " ".join(data.columns), "x".join(map(str, data.sizes)), data.n, data.r, data.skew or None]
    setting = [cell.method, cell.epsilon, cell.theta, cell.queries, len(measured.rows(cell))]
    return [cell.id, *about, *setting, spread.mean, spread.std, low, high, measured.note(cell)]


def _cost(cell: Cell, measured: Measured) -> list[Any]:
    cost = measured.outcomes[cell.id].cost or {}
    names = ("prepare_cpu_s", "run_cpu_s", "build_s", "query_s")
    return [cell.id, *(round(cost.get(name, 0.0), 4) for name in names), int(cost.get("peak_memory_bytes", 0))]
