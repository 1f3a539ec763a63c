"""The public benchmark: every registered method on the same people, for each epsilon and metric.

python -m tools.leaderboard [--out FILE] [--list tuning] [--methods ahead,package.module:Class] [--write]

What is measured goes to FILE, a table with one row for each method, people and epsilon, and is not measured again: a
run that was stopped goes on where it was, and a new method costs its own rows alone. ``--write`` puts the tables into
docs/leaderboard. People are those of `tools.splits`, each with the list that it stands on: methods may be tuned on
``tuning``, and ``report`` is for releases. Whoever works on a method takes ``--list tuning`` and a file elsewhere.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from ahead_ldp.device.canonical import digest
from ahead_ldp.engines.progress import Bar
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.distances import METRICS
from ahead_ldp.research.evaluation import SETTINGS, Task, check_runs, choose, run_trial, trial_rng
from tools.accuracy import QUERIES, SEED, task_of
from tools.docs import ROOT
from tools.splits import SPLITS, Setting, data_folder

FOLDER = ROOT / "docs" / "leaderboard"
RESULTS = FOLDER / "results.csv"
LAW = 1  # raised when people or queries are made in another way: everything is then measured anew
EPSILONS = ("0.2", "1", "2")
REPEATS = 5
BASE = ("ahead", "default")  # the paper's method with the paper's settings: what all others are set beside
DEFAULTS = {"1": ("adaptive", "default"), "2": ("fused", "default")}  # what a user gets who names no method
LEFT_OUT = {"lle": "it asks about pairs of attributes, and with one or two it is AHEAD"}
PEOPLE = {
    "1": (
        "gaussian", "laplacian", "zipf 1.1", "cauchy", "salaries total", "loan amounts", "departure delay", "HEPTH",
        "three bumps", "zipf 1.5", "heaped gamma", "purchases", "payments", "arrival delay", "body mass index",
        "INCOME",
    ),
    "2": (
        "gaussian r 0.3", "gaussian r 0.8", "base and total pay", "MD_SAL_2D",
        "laplacian r 0.2", "laplacian r 0.8", "category, purchase", "TWITTER",
    ),
}  # fmt: skip
PARTS = {"1": "One attribute", "2": "Two attributes"}
UNITS = {"mse": 1e-5, "wasserstein": 1e-3, "ks": 1e-3}
FIELDS = [
    "part", "people", "list", "method", "settings", "epsilon",
    *(f"{metric}{suffix}" for metric in METRICS for suffix in ("", "_std")), "repeats", "key",
]  # fmt: skip
MARKS = re.compile(r"(?P<start><!-- leaderboard: (?P<name>\w+) -->\n).*?(?P<end><!-- end leaderboard -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one kind of people at one epsilon: mean and standard deviation of each metric."""

    part: str
    people: str
    split: str  # the list of people in tools.splits
    method: str
    settings: str
    epsilon: str
    errors: dict[str, tuple[float, float]]
    repeats: int
    key: str

    @property
    def entry(self) -> tuple[str, str]:
        """What has a line in the tables: a method with its settings."""
        return self.method, self.settings

    @property
    def place(self) -> tuple[str, str, str]:
        """What every entry is measured on: the number of attributes, the people, epsilon."""
        return self.part, self.people, self.epsilon

    def texts(self) -> list[str]:
        """The fields of the table."""
        about = [self.part, self.people, self.split, self.method, self.settings, self.epsilon]
        numbers = [f"{x:.4g}" for metric in METRICS for x in self.errors[metric]]
        return [*about, *numbers, str(self.repeats), self.key]

    @classmethod
    def from_texts(cls, row: dict[str, str]) -> Row:
        """Back from the table."""
        errors = {metric: (float(row[metric]), float(row[f"{metric}_std"])) for metric in METRICS}
        part, people, split, method, settings, epsilon = (row[name] for name in FIELDS[:6])
        return cls(part, people, split, method, settings, epsilon, errors, int(row["repeats"]), row["key"])


def people(part: str, lists: Sequence[str] = tuple(SPLITS)) -> Iterator[tuple[str, Setting]]:
    """The settings of this many attributes, each with the list that it stands on."""
    for name in PEOPLE[part]:
        for which in lists:
            yield from ((which, setting) for setting in SPLITS[which][part] if setting.name == name)


def entries(task: Task, epsilon: str, methods: Iterable[str]) -> dict[tuple[str, str], Mechanism]:
    """Every method that can run here with each of its settings, those that are the same once."""
    found: dict[tuple[str, str], Mechanism] = {}
    for method in methods:
        for settings in SETTINGS:
            try:
                mechanism = choose(method, task.schema, epsilon, task.people.n, settings)[0]
                check_runs(mechanism, task.schema, task.workload)
            except ValueError:  # for another number of attributes
                continue
            if mechanism not in [known for (name, _), known in found.items() if name == mechanism.name]:
                found[mechanism.name, settings] = mechanism
    return found


def key_of(part: str, setting: Setting, mechanism: Mechanism, repeats: int) -> str:
    """A digest of all that a row depends on, but for the numerics of the method; its version stands in its record."""
    about = {"law": LAW, "part": part, "people": setting.name, "sizes": list(setting.sizes), "n": setting.n}
    more = {"method": mechanism.record(), "repeats": repeats, "queries": QUERIES, "seed": SEED}
    return digest({**about, **more})[:12]


def measure(
    out: Path, parts: Sequence[str], lists: Sequence[str], epsilons: Sequence[str], methods: Sequence[str], repeats: int
) -> list[Row]:
    """Measure what the file does not have yet, and return the rows that were asked for."""
    stored, wanted = {row.key: row for row in read(out)}, []
    todo = [(part, which, setting) for part in parts for which, setting in people(part, lists)]
    with Bar("leaderboard") as bar:
        for i, (part, which, setting) in enumerate(todo):
            task = task_of(setting)
            for epsilon in epsilons:
                for (method, settings), mechanism in entries(task, epsilon, methods).items():
                    key = key_of(part, setting, mechanism, repeats)
                    if key not in stored:
                        errors = errors_of(task, mechanism, epsilon, repeats)
                        row = Row(part, setting.name, which, method, settings, epsilon, errors, repeats, key)
                        append(out, row)
                        stored[key] = row
                    wanted.append(stored[key])
            bar(i + 1, len(todo))
    return wanted


def errors_of(task: Task, mechanism: Mechanism, epsilon: str, repeats: int) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each metric over the repetitions."""
    curves, errors = task.curves, {}
    rngs = [trial_rng(SEED, mechanism.name, epsilon, k) for k in range(repeats)]
    trials = [run_trial(task, mechanism, rng, curves) for rng in rngs]
    for metric in METRICS:
        values = [trial.error(metric) for trial in trials]
        errors[metric] = (float(np.mean(values)), float(np.std(values, ddof=1)))
    return errors


def read(path: Path) -> list[Row]:
    """The rows of a file; a last line that a stopped run left unfinished is no row."""
    if not path.exists():
        return []
    lines = path.read_text("utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    return [Row.from_texts(row) for row in csv.DictReader(whole)]


def append(path: Path, row: Row) -> None:
    """Add a row, after the heading if it is the first; an unfinished last line is cut off before."""
    there = path.read_text("utf-8") if path.exists() else ""
    if there and not there.endswith("\n"):
        path.write_text(there[: there.rfind("\n") + 1], "utf-8")
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([*([] if there else [FIELDS]), row.texts()])


def sort(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows in the order of the people and methods, whatever the order that they were measured in."""
    order = {(part, name): i for part in PEOPLE for i, name in enumerate(PEOPLE[part])}
    methods = {name: i for i, name in enumerate(MECHANISMS)}
    ranked = sorted(
        rows,
        key=lambda r: (r.part, order[r.part, r.people], float(r.epsilon), methods.get(r.method, 99), r.settings),
    )
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([FIELDS, *(row.texts() for row in ranked)])
    path.write_text(text.getvalue(), "utf-8")


# Tables.


@dataclass(frozen=True, slots=True)
class Mean:
    """A geometric mean of ratios of errors, with the half width of its 95 % interval as a factor."""

    ratio: float
    factor: float

    @classmethod
    def of(cls, pairs: Sequence[tuple[Row, Row]], metric: str) -> Mean:
        """Of the rows over those beside them; what varies are the repetitions, drawn anew for each row."""
        logs = [log(row.errors[metric][0] / base.errors[metric][0]) for row, base in pairs]
        varied = sum(
            _relative(row, metric) + (_relative(base, metric) if base is not row else 0) for row, base in pairs
        )
        varied = 0.0 if all(row is base for row, base in pairs) else varied
        return cls(exp(sum(logs) / len(logs)), exp(1.96 * sqrt(varied) / len(logs)))

    @property
    def text(self) -> str:
        """The mean and its interval."""
        if self.factor == 1.0:
            return _number(self.ratio)
        return f"{_number(self.ratio)} ({_number(self.ratio / self.factor)} to {_number(self.ratio * self.factor)})"


def _relative(row: Row, metric: str) -> float:
    """The variance of the logarithm of a row's mean, to first order."""
    mean, std = row.errors[metric]
    return (std / mean) ** 2 / row.repeats if mean else 0.0


def _number(x: float) -> str:
    return f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:,.0f}"


def ranked(rows: Sequence[Row], metric: str) -> str:
    """The methods of one part and epsilon in order: their errors over those of AHEAD, on each list of people."""
    base = {row.people: row for row in rows if row.entry == BASE}
    lists = [which for which in SPLITS if any(row.split == which for row in rows)]
    lines = []
    for entry in {row.entry: None for row in rows}:
        mine = [row for row in rows if row.entry == entry]
        means = [Mean.of([(r, base[r.people]) for r in mine if r.split == which], metric) for which in lists]
        worst = max(mine, key=lambda r: r.errors[metric][0] / base[r.people].errors[metric][0])
        most = worst.errors[metric][0] / base[worst.people].errors[metric][0]
        told = [called(entry), *(mean.text for mean in means), f"{_number(most)} ({worst.people})"]
        lines.append((means[-1].ratio, f"| {' | '.join(told)} |"))
    head = ["method", *(f"{which} list" for which in lists), "most"]
    return "\n".join([_head(head), *(line for _, line in sorted(lines))])


def by_people(rows: Sequence[Row], metric: str) -> str:
    """For each kind of people of one part and epsilon: the least error and whose it is, the default's, and AHEAD's."""
    lines = [_head(["people", "list", "least error", "of", "the default", "AHEAD"])]
    for name in {row.people: None for row in rows}:
        mine = {row.entry: row for row in rows if row.people == name}
        best = min(mine.values(), key=lambda row: row.errors[metric][0])
        default = mine[DEFAULTS[best.part]]
        told = [_error(row, metric) for row in (best, default, mine[BASE])]
        lines.append(f"| {name} | {best.split} | {told[0]} | {called(best.entry)} | {told[1]} | {told[2]} |")
    return "\n".join(lines)


def _error(row: Row, metric: str) -> str:
    mean, std = (x / UNITS[metric] for x in row.errors[metric])
    from scipy.special import stdtrit

    half = float(stdtrit(row.repeats - 1, 0.975)) * std / sqrt(row.repeats)
    return f"{_number(mean)} ± {_number(half)}"


def called(entry: tuple[str, str]) -> str:
    """How a line names a method with its settings."""
    method, settings = entry
    return f"`{method}`" if settings == "default" else f"`{method}`, {settings}"


def _head(names: Sequence[str]) -> str:
    return f"| {' | '.join(names)} |\n{'| --- ' * len(names)}|"


def tables(rows: Sequence[Row], metric: str) -> str:
    """All tables of a metric, by the number of attributes and epsilon."""
    said = []
    for part in {row.part: None for row in rows}:
        for epsilon in EPSILONS:
            mine = [row for row in rows if (row.part, row.epsilon) == (part, epsilon)]
            if mine:
                said += [f"## {PARTS[part]}, epsilon {epsilon}", ranked(mine, metric), by_people(mine, metric)]
    return "\n\n".join(said)


def summary(rows: Sequence[Row], metric: str = "mse") -> str:
    """The methods in order for each number of attributes: errors over AHEAD's on the report list, by epsilon."""
    said = []
    for part in {row.part: None for row in rows}:
        mine = [row for row in rows if row.part == part and row.split == "report"]
        base = {row.place: row for row in mine if row.entry == BASE}
        lines = []
        for entry in {row.entry: None for row in mine}:
            own = [(row, base[row.place]) for row in mine if row.entry == entry]
            means = [Mean.of([p for p in own if p[0].epsilon == e], metric) for e in EPSILONS]
            lines.append(
                (Mean.of(own, metric).ratio, f"| {called(entry)} | " + " | ".join(m.text for m in means) + " |")
            )
        head = _head(["method", *(f"epsilon {e}" for e in EPSILONS)])
        said += [f"### {PARTS[part]}", "\n".join([head, *(line for _, line in sorted(lines))])]
    return "\n\n".join(said)


def scope(rows: Sequence[Row]) -> str:
    """What was measured, in one line for each number of attributes."""
    said = []
    for part in {row.part: None for row in rows}:
        mine = [row for row in rows if row.part == part]
        counts = {which: len({row.people for row in mine if row.split == which}) for which in SPLITS}
        methods, choices = len({row.method for row in mine}), len({row.entry for row in mine})
        kinds = " and ".join(f"{count} of the {which} list" for which, count in counts.items())
        of = f"{methods} methods in {choices} settings, on {kinds}"
        said.append(f"- {PARTS[part]}: {of}; {mine[0].repeats} repetitions.")
    return "\n".join([*said, *(f"- Left out: `{name}`, because {why}." for name, why in LEFT_OUT.items())])


def page_of(text: str, rows: Sequence[Row]) -> str:
    """A page with its tables between the marks."""

    def fill(match: re.Match[str]) -> str:
        makers: dict[str, Any] = {"summary": summary, "scope": scope}
        name = match["name"]
        made = makers[name](rows) if name in makers else tables(rows, name)
        return f"{match['start']}\n{made}\n\n{match['end']}"

    return MARKS.sub(fill, text)


def pages() -> list[Path]:
    """The pages that hold tables of the leaderboard."""
    return [page for page in sorted(FOLDER.glob("*.md")) if MARKS.search(page.read_text("utf-8"))]


def main() -> None:
    """Measure what is missing, then print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--part", choices=PEOPLE, action="append", help="numbers of attributes; both if not given")
    parser.add_argument("--list", choices=SPLITS, action="append", help="lists of people; both if not given")
    parser.add_argument("--methods", help="names or package.module:Class, with commas between; all if not given")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/leaderboard")
    given = parser.parse_args()
    if given.write and (given.part or given.list or given.methods):
        parser.error("expected all of it for --write, got a part (--part, --list or --methods)")
    if not data_folder().is_dir():
        parser.error(
            f"expected the data sets in {data_folder()}, or AHEAD_DATA to name their folder (docs/datasets.md)"
        )
    named = given.methods.split(",") if given.methods else [name for name in MECHANISMS if name not in LEFT_OUT]
    methods = list(dict.fromkeys([BASE[0], *(name for name, _ in DEFAULTS.values()), *named]))
    rows = measure(given.out, given.part or list(PEOPLE), given.list or list(SPLITS), EPSILONS, methods, REPEATS)
    if not given.write:
        print("\n\n".join(tables(rows, metric) for metric in METRICS))
        return
    sort(given.out, rows)
    for page in pages():
        page.write_text(page_of(page.read_text("utf-8"), read(given.out)), "utf-8")
        print(f"{page.relative_to(ROOT)} written anew")


if __name__ == "__main__":
    main()
