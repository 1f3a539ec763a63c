"""How results look: JSON on standard output, or tables there; notes on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_CERTAIN = 0.9999
GAP = 3  # blanks between two columns of a table


def note(text: str) -> None:
    """One line for the person at the terminal."""
    print(text, file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first ``left`` columns are text; the others are numbers, to the right, and never broken.

    Where the terminal is too narrow for all numbers, the rest stands below, beside the same text columns once more.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(markup=False, highlight=False)
        with console.capture() as drawn:
            if self.title:
                console.print(self.title, style="bold")  # by itself: a title of the table would be broken at its width
            for i, columns in enumerate(self.parts(console.width)):
                if i:
                    console.print()
                console.print(self._drawn(columns))
        return "\n".join(line.rstrip() for line in drawn.get().splitlines())

    def parts(self, width: int) -> list[list[int]]:
        """The columns of each table that is drawn, one below the other, in a terminal of this width."""
        from rich.cells import cell_len

        texts = [[name, *(row[i] for row in self.rows)] for i, name in enumerate(self.head)]
        whole = [max(map(cell_len, column)) for column in texts]
        words = [
            max(cell_len(word) for text in column for word in [*text.split(), ""]) for column in texts[: self.left]
        ]
        text, numbers = list(range(self.left)), list(range(self.left, len(self.head)))
        if sum(words) + sum(whole[self.left :]) + GAP * (len(self.head) - 1) <= width:
            return [text + numbers]  # with the text broken between words, if need be
        taken = min(sum(whole[: self.left]) + GAP * (self.left - 1), width // 2)
        parts, room = [[*text]], width - taken
        for i in numbers:
            if room < whole[i] + GAP and len(parts[-1]) > self.left:
                parts.append([*text])
                room = width - taken
            parts[-1].append(i)
            room -= whole[i] + GAP
        return parts

    def _drawn(self, columns: Sequence[int]) -> Any:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as Drawn

        table = Drawn(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for i in columns:
            table.add_column(self.head[i], justify="left" if i < self.left else "right", no_wrap=i >= self.left)
        for row in self.rows:
            table.add_row(*(row[i] for i in columns))
        return table


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command found: a record for --json, else texts and tables; then how it ends, if not well."""

    record: Any
    text: Iterable[str | Table]
    problem: str = ""
    code: int = 0

    def show(self, as_json: bool) -> int:
        """Print one of the two; numbers that JSON does not have become null. The exit code, or an error."""
        if as_json:
            print(json.dumps(_finite(self.record), indent=2, ensure_ascii=False, allow_nan=False))
        else:
            print(*self.text, sep="\n")
        if self.problem:
            raise ValueError(self.problem)
        return self.code


def error_text(spread: Any) -> str:
    """A mean squared error with half the width of its 95 % interval; alone where it was measured once."""
    if spread.ci95 is None:
        return f"{spread.mean:.2e}"
    return f"{spread.mean:.2e} ± {spread.ci95[1] - spread.mean:.1e}"


def seconds_text(seconds: float) -> str:
    """A time in the unit that suits it."""
    return f"{1e3 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def bytes_text(size: float) -> str:
    """A size in memory."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def percent(share: float) -> str:
    """A share with two digits after the point, never a negative zero."""
    return f"{round(100 * share, 2) + 0.0:.2f} %"


def several(count: int, thing: str) -> str:
    """A number of things: `1 file`, `1,200 files`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def certainty(chance: float, turnout: float) -> str:
    """A chance at a turnout; nothing is called certain."""
    return f"{percent(min(chance, _MOST_CERTAIN))} at a turnout of {100 * turnout:g} %"


def between(low: float | None, high: float | None) -> str:
    """An interval of shares; ``?`` where it is not known."""
    if low is None or high is None or not math.isfinite(low + high):
        return "?"
    return f"{percent(low)} to {percent(high)}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
