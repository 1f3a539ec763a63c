"""Measured tables for the docs: methods side by side, the crossing of AHEAD and HDG, what AHEAD's readings cost.

python -m tools.comparison methods|crossing|readings [--repeats 10] [--write]

Every table is printed as Markdown; ``--write`` puts it between the marks of its page. Seeds are fixed, so a table can
be made again; a cell's seed depends on the method, epsilon and repetition alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.engines.progress import Bar
from ahead_ldp.engines.simulation import Population
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.grids.hdg import HDG
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.evaluation import Score, Task, choose, measure, workload_rng
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.workloads import random_workload

ROOT = Path(__file__).resolve().parent.parent
EPSILONS = (0.1, 0.5, 1.0, 1.5)
SEED = 20260
Floats = NDArray[np.float64]


def shapes(d: int) -> dict[str, Floats]:
    """Four shapes on d codes, as frequencies: skewed, smooth, peaked, and heaped on round values with a spike at 0."""
    x = np.arange(d)
    centre = (x + 0.5) / d * 10 - 5
    heaped = np.exp(-0.5 * ((np.log(x + 1.0) - np.log(d / 5)) / 0.6) ** 2) / (x + 1)
    heaped = 0.55 * heaped / heaped.sum()
    round_values = x % (d // 16) == 0
    heaped[round_values] += 0.35 * heaped[round_values] / heaped[round_values].sum()
    heaped[0] += 0.1
    made = {
        "Zipf 1.1": (x + 1.0) ** -1.1,
        "Gaussian": np.exp(-(centre**2) / 2),
        "Laplacian": np.exp(-np.abs(centre) * np.sqrt(2)),
        "heaped": heaped,
    }
    return {name: f / f.sum() for name, f in made.items()}


def correlated(d: int, r: float) -> Floats:  # -> (d, d)
    """A Gaussian with correlation r on [-5, 5]^2, as frequencies of d x d cells (density at the centres)."""
    x = (np.arange(d) + 0.5) / d * 10 - 5
    a, b = x[:, None], x[None, :]
    density = np.exp(-(a**2 - 2 * r * a * b + b**2) / (2 * (1 - r**2)))
    return density / density.sum()


def task_of(frequencies: Floats, n: int) -> Task:
    """n people drawn once from the frequencies, and 200 random queries."""
    drawn = np.random.default_rng(SEED).multinomial(n, frequencies.reshape(-1)).reshape(frequencies.shape)
    schema = as_schema([codes(f"x{i + 1}", size) for i, size in enumerate(frequencies.shape)])
    workload = random_workload(schema, 200, workload_rng(SEED))
    return Task.of(schema, Population.of_histogram(drawn), workload)


def cell(score: Score) -> str:
    """Mean and half the 95 % interval, in units of 1e-5."""
    spread = score.mse
    half = (spread.ci95[1] - spread.ci95[0]) / 2 if spread.ci95 else float("nan")
    return f"{spread.mean * 1e5:.2f} ± {half * 1e5:.2f}"


def methods(repeats: int) -> str:
    """All methods x four shapes x four epsilons, 1-dim, N = 10^6, 256 codes; each with its settings."""
    d, n, lines = 256, 10**6, []
    names = [m for m in MECHANISMS if m != "lle"]  # with one attribute LLE is AHEAD
    rows = [(m, s) for m in names for s in ("paper", "strong") if s == "paper" or hasattr(MECHANISMS[m], "strong")]
    best: list[str] = []
    for shape, frequencies in shapes(d).items():
        task = task_of(frequencies, n)
        scores: dict[tuple[str, str, float], Score] = {}
        with Bar(shape) as bar:
            for method, settings in rows:
                for epsilon in EPSILONS:
                    mechanism, used = choose(method, task.schema, epsilon, n, settings)
                    scores[method, settings, epsilon] = measure(task, mechanism, repeats, SEED, used)
                    bar(len(scores), len(rows) * len(EPSILONS))
        lines += [f"\n**{shape}**\n", "| method | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |"]
        lines.append("|---" * (len(EPSILONS) + 1) + "|")
        least = {e: min(scores[m, s, e].mse.mean for m, s in rows) for e in EPSILONS}
        for method, settings in rows:
            shown = []
            for e in EPSILONS:
                score = scores[method, settings, e]
                text = cell(score)
                shown.append(f"**{text}**" if score.mse.mean == least[e] else text)
            lines.append(f"| {method}{' (strong)' if settings == 'strong' else ''} | " + " | ".join(shown) + " |")
        for e in EPSILONS:
            winner = min(rows, key=lambda row: scores[row[0], row[1], e].mse.mean)
            best.append(f"{shape}, ε = {e:g}: {winner[0]}{' (strong)' if winner[1] == 'strong' else ''}")
    head = f"Mean squared error x 10^5 ± half the 95 % interval over {repeats} repetitions; N = 10^6, |D| = {d},"
    head += " 200 random ranges. Bold: least mean of the column, which within the intervals need not be the best."
    return "\n".join([head, *lines, "", "Least mean: " + "; ".join(best) + "."])


def crossing(repeats: int) -> str:
    """AHEAD against HDG, paper settings, by the correlation of two attributes: |D| = 256^2, N = 10^7."""
    n, correlations = 10**7, (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9)
    lines = ["| correlation | AHEAD | HDG | HDG / AHEAD |", "|---|---|---|---|"]
    with Bar("crossing") as bar:
        for i, r in enumerate(correlations):
            task = task_of(correlated(256, r), n)
            found = []
            for mechanism in (AHEAD.paper(1.1), HDG(epsilon=1.1, users=n)):
                found.append(measure(task, mechanism, repeats, SEED, "paper"))
                bar(2 * i + len(found), 2 * len(correlations))
            ratio = found[1].mse.mean / found[0].mse.mean
            lines.append(f"| {r:g} | {cell(found[0])} | {cell(found[1])} | {ratio:.2f} |")
    head = "Mean squared error x 10^5, ε = 1.1, N = 10^7, |D| = 256 x 256, Gaussian, 200 random boxes,"
    return "\n".join([f"{head} {repeats} repetitions.", "", *lines])


def readings(repeats: int) -> str:
    """What the open points of AHEAD cost: error of each reading over the paper preset's."""
    made: dict[str, Callable[[float], Mechanism]] = {
        "paper": AHEAD.paper,
        "published: Norm-Sub before the test": AHEAD.published,
        "literal: stopped nodes tested again": AHEAD.literal,
        "fanout 4": lambda e: AHEAD.paper(e, fanout=4),
        "theta x 0.7": lambda e: AHEAD(epsilon=e, scale=0.7),
        "theta x 1.5": lambda e: AHEAD(epsilon=e, scale=1.5),
        "oracle: least variance": lambda e: AHEAD(epsilon=e, oracle="best"),
    }
    cases = [("1-dim " + name, f) for name, f in shapes(256).items()] + [("2-dim r 0.8", correlated(64, 0.8))]
    lines = ["| reading | " + " | ".join(f"{name}, ε {e:g}" for name, _ in cases for e in (0.1, 1.0)) + " |"]
    lines.append("|---" * (2 * len(cases) + 1) + "|")
    tasks = {name: task_of(f, 10**6) for name, f in cases}
    base: dict[tuple[str, float], float] = {}
    with Bar("readings") as bar:
        for i, (label, make) in enumerate(made.items()):
            row = []
            for name, task in tasks.items():
                for e in (0.1, 1.0):
                    found = measure(task, make(e), repeats, SEED).mse.mean
                    base.setdefault((name, e), found)
                    row.append(f"{found * 1e5:.2f}" if label == "paper" else f"x{found / base[name, e]:.2f}")
                    bar(i * len(cases) * 2 + len(row), len(made) * len(cases) * 2)
            lines.append(f"| {label} | " + " | ".join(row) + " |")
    head = "First row: mean squared error x 10^5 of the paper preset; below, the ratio to it."
    return "\n".join([f"{head} N = 10^6, {repeats} repetitions.", "", *lines])


TABLES: dict[str, tuple[Callable[[int], str], str]] = {
    "methods": (methods, "docs/comparison.md"),
    "crossing": (crossing, "docs/comparison.md"),
    "readings": (readings, "docs/departures.md"),
}


def write(name: str, table: str) -> None:
    """Put a table between its marks."""
    path = ROOT / TABLES[name][1]
    page = path.read_text("utf-8")
    marks = re.compile(rf"(<!-- table {name} -->\n).*?(\n<!-- end table {name} -->)", re.S)
    assert marks.search(page), f"{path.name} has no place for the table {name}"
    path.write_text(marks.sub(lambda m: m[1] + table + m[2], page), "utf-8")


def main() -> None:
    """Measure one table and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    table = TABLES[given.table][0](given.repeats)
    print(table)
    if given.write:
        write(given.table, table)


if __name__ == "__main__":
    main()
