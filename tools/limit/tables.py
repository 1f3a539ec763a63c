"""The tables of docs/limit.md from what was measured: `python -m tools.limit.tables`. A test holds the page to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tools.limit.bound import all_information
from tools.limit.classes import SHAPES, SPREAD
from tools.limit.measuring import EPSILONS, NAMED, PEOPLE, Choices, Line, lines_of
from tools.limit.picture import MEASURED, measured

TOLD = 3_000  # people times 4 sinh(epsilon / 2)^2 from which on reports tell more than the prior does


def mean(line: Line, curve: str) -> float:
    """Of a curve's error over the members, or of a number that the line has once."""
    return float(np.mean(line["errors"][curve])) if curve in line["errors"] else float(line[curve])


def ratio(lines: Sequence[Line], above: str, below: str) -> float:
    """The geometric mean over lines of one error over another."""
    return float(np.exp(np.mean([np.log(mean(line, above) / mean(line, below)) for line in lines])))


def told(line: Line) -> bool:
    """Whether reports tell much."""
    return 4 * int(line["n"]) * all_information(line["epsilon"]) >= TOLD


def by_people(lines: Sequence[Line], above: str, below: str = "bound") -> list[str]:
    """Rows of people and columns of epsilon, over all shapes."""
    rows = ["| people | " + " | ".join(f"ε {epsilon:g}" for epsilon in EPSILONS) + " |", "| --- |" + " --- |" * 4]
    for n in PEOPLE:
        cells = [[x for x in lines if (x["n"], x["epsilon"]) == (n, epsilon)] for epsilon in EPSILONS]
        rows.append(f"| {n:,} | " + " | ".join(f"{ratio(cell, above, below):.1f}" for cell in cells) + " |")
    return rows


def by_shape(lines: Sequence[Line], wanted: Callable[[Line], bool]) -> list[str]:
    """What each part of the gap is."""
    steps = [
        ("default", "bound"),
        ("default", "read risk"),
        ("read risk", "oracle risk"),
        ("oracle risk", "bound"),
        ("asked", "default"),
    ]
    rows = ["| shape | the whole gap | reading | questions | left | asked with the true density known |"]
    rows.append("| --- |" + " --- |" * len(steps))
    some = [line for line in lines if wanted(line)]
    parts = [(name, [line for line in some if line["shape"] == name]) for name in SHAPES] + [("**all**", some)]
    for name, part in parts:
        rows.append(f"| {name} | " + " | ".join(f"{ratio(part, *step):.2f}" for step in steps) + " |")
    return rows


def agreement(lines: Sequence[Line]) -> list[str]:
    """Errors over what those who know the class expect; and what the bound loses by holding everywhere."""
    compared = (
        ("the default's reports, read: error over what was expected", "read", "read risk"),
        ("the best questions, read: error over what was expected", "oracle", "oracle risk"),
        ("the bound at the shape alone, over the bound", "local", "bound"),
    )
    return [f"| {said} | {ratio(lines, above, below):.2f} |" for said, above, below in compared]


def coarser(lines: Sequence[Line]) -> list[str]:
    """The default with cells that do not grow as fine, over the bound: its error, and that of the better reader."""
    choices: tuple[Choices, ...] = ({}, {"finest": 0.05}, {"finest": 0.02})
    curves = "default", "read risk"
    rows = [
        "| shape | default: 0.1 | 0.05 | 0.02 | read with the class known: 0.1 | 0.05 | 0.02 |",
        "| --- |" + " --- |" * 6,
    ]
    for name in SHAPES:
        about = {"shape": name, "n": 10**6, "epsilon": 1.0, "spread": SPREAD}
        some = [one(lines, {**about, "choices": choice}) for choice in choices]
        cells = [f"{mean(line, curve) / line['bound']:.1f}" for curve in curves for line in some]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return rows


def wider(lines: Sequence[Line]) -> list[str]:
    """Errors over the bound where the class is twice as wide, and in brackets where it is as elsewhere."""
    rows = ["| people, ε | default | its reports, read | asked and read | the bound, over that of the narrower class |"]
    rows.append("| --- |" + " --- |" * 4)
    for n, epsilon in ((10_000, 0.1), (10_000, 1.0), (1_000_000, 0.1), (1_000_000, 1.0)):
        about = {"shape": "gaussian", "n": n, "epsilon": epsilon, "choices": {}}
        narrow, wide = (one(lines, {**about, "spread": spread}) for spread in (SPREAD, 2 * SPREAD))
        cells = [
            f"{mean(wide, curve) / wide['bound']:.1f} ({mean(narrow, curve) / narrow['bound']:.1f})"
            for curve in ("default", "read risk", "oracle risk")
        ]
        rows.append(f"| {n:,}, {epsilon:g} | " + " | ".join(cells) + f" | {wide['bound'] / narrow['bound']:.2f} |")
    return rows


def one(lines: Sequence[Line], about: Line) -> Line:
    """The line about this."""
    return next(line for line in lines if all(line[key] == about[key] for key in NAMED))


def tables() -> list[list[str]]:
    """All of them."""
    lines, every = measured(), lines_of(MEASURED)
    return [
        by_people(lines, "default"),
        by_people(lines, "oracle risk"),
        by_shape(lines, told),
        by_shape(lines, lambda line: not told(line)),
        agreement(lines),
        coarser(every),
        wider(every),
    ]


def main() -> None:
    """Print them."""
    print("\n\n".join("\n".join(rows) for rows in tables()))


if __name__ == "__main__":
    main()
