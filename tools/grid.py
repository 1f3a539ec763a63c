"""The default beside the paper's method and the rivals, from a thousand people to ten million.

python -m tools.grid --out FILE [--repeats 6] [--people 1000,10000,100000] [--write]
python -m tools.grid --out FILE --repeats 3 --people 1000000,10000000 --write
python -m tools.grid --out FILE --again 20

Twelve kinds of people of the tuning list, one attribute, seven epsilons. What is measured goes to FILE, a line for each
number of people, kind and method, and is not measured again: a run that was stopped goes on where it was. Columns of
real people stand only where they have so many rows. ``--write`` puts the table into docs/accuracy.md. ``--again``
takes the settings of FILE in which the default has more error than the paper's method, or than a rival by 1.25, and
collects as often with fresh noise: a setting that was picked for its loss has the bad luck of its runs in it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.engines.progress import Bar
from tools import comparison
from tools.accuracy import errors, named
from tools.splits import SPLITS, Setting

PEOPLE = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
KINDS = (
    "gaussian", "laplacian", "zipf 1.1", "two bumps", "heaped log-normal", "steps", "ADULT", "a dozen spikes", "age",
    "slope", "even with an edge", "heaped even",
)  # fmt: skip
DEFAULT, PAPER, EVEN = "default", "ahead:paper", "uni"
RIVALS = (
    PAPER, "sw:strong", "pripl:strong", "privnud:strong", "hh:strong", "dht:strong", "wavelet:strong", "hdg:strong",
    "quadtree:strong", "kdtree:strong",
)  # fmt: skip
TOLD = 0.25  # standard deviation of a half's share, from which on it cannot be told
WORSE = 1.25  # of the best rival's error: more than that is a loss
Floats = NDArray[np.float64]
Measured = dict[tuple[int, str, str], Floats]  # people, kind, method -> (epsilons, repeats)


def deviation(people: int, epsilon: float) -> float:
    """The standard deviation of the share of a half, if everybody answered yes or no about it and nothing else."""
    return sqrt(exp(epsilon) / people) / (exp(epsilon) - 1)


def kinds(people: int) -> Iterator[Setting]:
    """The kinds of people of which there are so many."""
    known = {setting.name: setting for setting in SPLITS["tuning"]["1"]}
    for name in KINDS:
        setting = replace(known[name], n=people)
        if setting.people().n == people:
            yield setting


def read(path: Path) -> Measured:
    """What a file holds; a last line that a stopped run left unfinished counts for nothing."""
    if not path.exists():
        return {}
    lines = [line for line in path.read_text("utf-8").splitlines(keepends=True) if line.endswith("\n")]
    rows = [json.loads(line) for line in lines]
    return {(row["people"], row["kind"], row["method"]): np.array(row["mse"]) for row in rows}


def measure(path: Path, people: Sequence[int], repeats: int) -> Measured:
    """Measure what the file does not have, and return all of it."""
    known = read(path)
    _cut(path)
    todo = [(setting, method) for n in people for setting in kinds(n) for method in (DEFAULT, *RIVALS, EVEN)]
    with Bar("grid") as bar, path.open("a", encoding="utf-8") as file:
        for i, (setting, method) in enumerate(todo):
            key = (setting.n, setting.name, method)
            if key not in known:
                known[key] = errors(setting, [named(method)], EPSILONS, range(repeats))[:, 0]
                row = {"people": setting.n, "kind": setting.name, "method": method, "mse": known[key].tolist()}
                file.write(json.dumps(row) + "\n")
                file.flush()
            bar(i + 1, len(todo))
    return known


def _cut(path: Path) -> None:
    """Take away a last line that is unfinished."""
    there = path.read_text("utf-8") if path.exists() else ""
    if there and not there.endswith("\n"):
        path.write_text(there[: there.rfind("\n") + 1], "utf-8")


@dataclass(frozen=True, slots=True)
class Against:
    """The default's error over another's for each kind of people, with standard errors of the logarithms."""

    ratio: Floats
    error: Floats
    repeats: int

    @property
    def mean(self) -> str:
        """The geometric mean and its standard error."""
        mean = exp(float(np.log(self.ratio).mean()))
        return f"{mean:.2f} ± {mean * float(np.sqrt((self.error**2).sum())) / len(self.ratio):.2f}"

    def surely_above(self, line: float, settings: int) -> int:
        """How many are above the line beyond chance, at 95 % for so many settings together (Bonferroni)."""
        from scipy.special import stdtrit

        low = np.log(self.ratio) - stdtrit(self.repeats - 1, 1 - 0.05 / settings) * self.error
        return int((low > np.log(line)).sum())


@dataclass(frozen=True, slots=True)
class Cell:
    """All kinds of people at one number of people and epsilon: errors of shape (kinds, repeats)."""

    people: int
    epsilon: float
    names: list[str]
    ours: Floats
    paper: Floats
    even: Floats
    rivals: Floats  # (kinds, rivals, repeats)

    @property
    def told(self) -> bool:
        """Whether the share of a half can be told at all."""
        return deviation(self.people, self.epsilon) < TOLD

    @property
    def best(self) -> Floats:
        """The errors of the best rival of each kind. In either half of the repetitions it is picked by the other half.

        The least of ten noisy means of the same runs would be lower than any method's error.
        """
        made, half = np.empty_like(self.ours), np.arange(self.repeats) % 2 == 0
        for mine in (half, ~half):
            chosen = self.rivals[..., ~mine].mean(axis=2).argmin(axis=1)
            made[:, mine] = self.rivals[np.arange(len(chosen)), chosen][:, mine]
        return made

    @property
    def repeats(self) -> int:
        """How often each method collected."""
        return self.ours.shape[1]

    def against(self, theirs: Floats) -> Against:
        """The default beside the method with these errors."""
        return _against(self.ours, theirs)


def _against(ours: Floats, theirs: Floats) -> Against:
    a, b = ours.mean(axis=1), theirs.mean(axis=1)
    influence = ours / a[:, None] - theirs / b[:, None]
    repeats = ours.shape[1]
    return Against(a / b, influence.std(axis=1, ddof=1) / sqrt(repeats), repeats)


def cells(known: Measured) -> list[Cell]:
    """The cells of which every method is there."""
    made = []
    for people in PEOPLE:
        every = [name for name in KINDS if all((people, name, m) in known for m in (DEFAULT, *RIVALS, EVEN))]
        for j, epsilon in enumerate(EPSILONS) if every else ():
            of = {m: np.stack([known[people, name, m][j] for name in every]) for m in (DEFAULT, *RIVALS, EVEN)}
            rivals = np.stack([of[m] for m in RIVALS], axis=1)
            made.append(Cell(people, epsilon, every, of[DEFAULT], of[PAPER], of[EVEN], rivals))
    return made


def table(known: Measured) -> str:
    """A line for each number of people and epsilon, and what all of them say together."""
    found = cells(known)
    head = ["people", "ε", "deviation", "over the paper's", "at most a half", "most", "over the best rival's"]
    head += [f"above {WORSE:g}", "over `uni`'s: most"]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|", *(_line(cell) for cell in found)]
    repeats = {cell.people: cell.repeats for cell in found}
    times = ", ".join(f"{count} with {people:,}" for people, count in repeats.items())
    about = (
        "Mean squared errors of the default over those of others; ± is one standard error. The best of ten rivals is"
    )
    about += " picked for each kind of people, by the other half of the repetitions."
    told = [cell for cell in found if cell.told]
    return "\n".join([f"{about} Repetitions: {times}.", "", *lines, "", *_together(told)])


def _line(cell: Cell) -> str:
    paper, best, even = cell.against(cell.paper), cell.against(cell.best), cell.against(cell.even).ratio
    lost = [f"{cell.names[i]} {best.ratio[i]:.2g}" for i in np.argsort(-best.ratio) if best.ratio[i] > WORSE]
    told = [
        f"{cell.people:,}", f"{cell.epsilon:g}", f"{deviation(cell.people, cell.epsilon):.2g}",
        paper.mean, f"{(paper.ratio <= 0.5).sum()} of {len(paper.ratio)}",
        f"{paper.ratio.max():.2f} ({cell.names[paper.ratio.argmax()]})", best.mean, ", ".join(lost),
        f"{even.max():.2f}",
    ]  # fmt: skip
    return f"| {' | '.join(told)} |"


def _together(found: Sequence[Cell]) -> list[str]:
    papers, bests = [c.against(c.paper) for c in found], [c.against(c.best) for c in found]
    paper, best = (np.concatenate([a.ratio for a in every]) for every in (papers, bests))
    sure_paper = sum(a.surely_above(1.0, len(paper)) for a in papers)
    sure_best = sum(a.surely_above(WORSE, len(best)) for a in bests)
    mean = [float(np.exp(np.log(ratio).mean())) for ratio in (paper, best)]
    return [
        f"Where a half can be told (deviation under {TOLD:g}; {len(paper)} settings):",
        "",
        f"- over the paper's: {1 / mean[0]:.2f} times lower in the geometric mean, at least 2x lower in"
        f" {100 * (paper <= 0.5).mean():.0f} %, higher in {(paper > 1).sum()}"
        f" ({sure_paper} of them beyond chance, all settings together);",
        f"- over the best rival's: {mean[1]:.2f} in the geometric mean, above {WORSE:g} in"
        f" {(best > WORSE).sum()} ({sure_best} of them beyond chance).",
    ]


@dataclass(frozen=True, slots=True)
class Loss:
    """A setting in which the default has more error than another method, and by how much that line is crossed."""

    people: int
    epsilon: float
    kind: str
    rival: str
    line: float
    seen: float  # our error over theirs, in the runs by which it was picked


def losses(known: Measured) -> list[Loss]:
    """The settings above the paper's error, and those above 1.25 of a rival's, where a half can be told."""
    found = []
    for cell in (cell for cell in cells(known) if cell.told):
        over = cell.ours.mean(axis=1)[:, None] / cell.rivals.mean(axis=2)  # (kinds, rivals)
        for kind, ratio in zip(cell.names, over, strict=True):
            worst = int(ratio.argmax())
            for j, line in ((0, 1.0), (worst, WORSE)):
                if ratio[j] > line:
                    found.append(Loss(cell.people, cell.epsilon, kind, RIVALS[j], line, float(ratio[j])))
    return found


def measure_again(known: Measured, repeats: int) -> str:
    """Every loss with repetitions that the file does not have."""
    picked = losses(known)
    first = max(row.shape[1] for row in known.values())
    lines = [
        "| people | ε | kind | against | over theirs: as picked | again |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    said: dict[float, list[tuple[float, int]]] = {1.0: [], WORSE: []}
    with Bar("again") as bar:
        for i, loss in enumerate(picked):
            setting = next(s for s in kinds(loss.people) if s.name == loss.kind)
            makers = [named(DEFAULT), named(loss.rival)]
            mse = errors(setting, makers, (loss.epsilon,), range(first, first + repeats))[0]
            against = _against(mse[:1], mse[1:])
            said[loss.line].append((float(against.ratio[0]), against.surely_above(loss.line, len(picked))))
            about = f"| {loss.people:,} | {loss.epsilon:g} | {loss.kind} | {loss.rival} | {loss.seen:.2f}"
            lines.append(f"{about} | {against.mean} |")
            bar(i + 1, len(picked))
    for line, ratios in said.items():
        above, sure = sum(ratio > line for ratio, _ in ratios), sum(count for _, count in ratios)
        lines.append(f"\nAbove {line:g}: {len(ratios)} as picked, {above} again, {sure} beyond chance.")
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--people", default=",".join(map(str, PEOPLE)))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--again", type=int, help="so many fresh repetitions of the settings that FILE has as losses")
    given = parser.parse_args()
    if given.again:
        print(measure_again(read(given.out), given.again))
        return
    made = table(measure(given.out, [int(n) for n in given.people.split(",")], given.repeats))
    print(made)
    if given.write:
        comparison.write("grid", made, "docs/accuracy.md")


if __name__ == "__main__":
    main()
