"""What cells gave, and the journal of a run: one line of JSON for each, written through before the next one begins."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a cell gave: rows of numbers, the same in every run, and beside them what it cost.

    A row has the repetition and its "mse", or another metric; or, of a cell about leaves, the "bin", its true "share"
    and its "leaves".
    """

    cell: str
    key: str
    rows: tuple[Mapping[str, Any], ...]
    note: str = ""  # of data that stand in for others
    cost: Mapping[str, float] | None = None

    def record(self) -> dict[str, Any]:
        """As plain values, one line of the journal."""
        return {"cell": self.cell, "key": self.key, "rows": list(self.rows), "note": self.note, "cost": self.cost}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Outcome:
        """From a line of the journal."""
        return cls(record["cell"], record["key"], tuple(record["rows"]), record["note"], record["cost"])


def append(path: Path, outcome: Outcome) -> None:
    """Add a finished cell, durably; several processes may write to one journal."""
    line = json.dumps(outcome.record(), ensure_ascii=False, allow_nan=False) + "\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)


def read(path: Path) -> dict[str, Outcome]:
    """Finished cells by their key. A line that a killed process left unfinished is skipped."""
    if not path.exists():
        return {}
    outcomes = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            outcome = Outcome.from_record(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
        outcomes[outcome.key] = outcome
    return outcomes


def heal(path: Path) -> None:
    """End an unfinished last line, so that the next one begins on its own."""
    if path.exists() and (size := path.stat().st_size):
        with path.open("rb+") as file:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                file.write(b"\n")
                os.fsync(file.fileno())
