"""Measured tables for the docs: methods side by side, the crossing of AHEAD and HDG, what AHEAD's readings cost.

Also the default beside the wavelet expansion, by distances of distributions, and beside quadtree and kd-tree.

python -m tools.comparison methods|crossing|readings|distances|places [--repeats 10] [--write]

Every table is printed as Markdown; ``--write`` puts it between the marks of its page. Seeds are fixed, so a table can
be made again; a cell's seed depends on the method, epsilon and repetition alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
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
from tools.accuracy import compare
from tools.accuracy import task_of as setting_task
from tools.splits import EPSILONS as SPLIT_EPSILONS
from tools.splits import SPLITS

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


def numerical(d: int) -> dict[str, Floats]:
    """Kinds of people for distances of distributions: smooth ones, and ones with spikes."""
    x = (np.arange(d) + 0.5) / d
    spikes = np.full(d, 0.2 / d)
    spikes[np.random.default_rng(SEED).choice(d, 12, replace=False)] += 0.8 / 12
    incomes = np.exp(-0.5 * ((np.log(x) - np.log(0.12)) / 0.7) ** 2) / x
    round_values = np.arange(d) % (d // 32) == 0
    heaped = 0.6 * incomes / incomes.sum()
    heaped[round_values] += 0.4 * incomes[round_values] / incomes[round_values].sum()
    bumps = sum(
        w * np.exp(-0.5 * ((x - c) / s) ** 2) / s for w, c, s in ((3, 0.2, 0.04), (4, 0.5, 0.07), (3, 0.8, 0.03))
    )
    made = {
        "uniform": np.ones(d),
        "Beta(5, 2)": x**4 * (1 - x),
        "three bumps": np.asarray(bumps),
        "incomes": incomes,
        "heaped incomes": heaped,
        "a dozen spikes": spikes,
    }
    return {name: f / f.sum() for name, f in made.items()}


DISTANCE_EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
DISTANCE_RIVALS = ("wavelet:paper", "wavelet:strong", "sw:paper", "sw:strong")
COLUMNS = ("salaries total", "age", "departure delay")  # of the tuning list of tools.splits


def distances(repeats: int) -> str:
    """Wasserstein and KS distances of the default, and how many times larger those of its rivals are."""
    tasks = {name: task_of(f, 10**5) for name, f in numerical(1024).items()}
    tasks |= {s.name: setting_task(s) for s in SPLITS["tuning"]["1"] if s.name in COLUMNS}
    return distances_text(list(tasks), measured_distances(list(tasks.values()), repeats))


def measured_distances(tasks: Sequence[Task], repeats: int) -> Floats:  # -> (tasks, epsilons, methods, 2, repeats)
    """Distances of every repetition: the default first, then its rivals; Wasserstein, then KS."""
    methods = ("default", *DISTANCE_RIVALS)
    found = np.zeros((len(tasks), len(DISTANCE_EPSILONS), len(methods), 2, repeats))
    with Bar("distances") as bar:
        for i, task in enumerate(tasks):
            for j, epsilon in enumerate(DISTANCE_EPSILONS):
                for k, text in enumerate(methods):
                    name, _, settings = text.partition(":")
                    method = None if name == "default" else name
                    chosen, _ = choose(method, task.schema, epsilon, task.people.n, settings or "default")
                    trials = measure(task, chosen, repeats, SEED, memory=False).trials
                    found[i, j, k] = [[getattr(t, metric) for t in trials] for metric in ("wasserstein", "ks")]
            bar(i + 1, len(tasks))
    return found


def distances_text(people: Sequence[str], found: Floats) -> str:
    """The tables of the page, and which rivals have a smaller distance."""
    mean, error = found.mean(axis=-1), found.std(axis=-1, ddof=1) / np.sqrt(found.shape[-1])
    lines, lost = list[str](), list[str]()
    for m, metric in enumerate(("Wasserstein", "KS")):
        lines += [f"\n**{metric}**\n", "| people | " + " | ".join(f"ε = {e:g}" for e in DISTANCE_EPSILONS) + " |"]
        lines.append("|---" * (len(DISTANCE_EPSILONS) + 1) + "|")
        ours, theirs = mean[:, :, :1, m], mean[:, :, 1:, m]
        for i, name in enumerate(people):
            cells = [
                f"{1e3 * own:.2f}: " + ", ".join(f"{other / own:.2f}" for other in rivals)
                for (own,), rivals in zip(ours[i], theirs[i], strict=True)
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        whole = np.exp(np.log(theirs / ours).mean(axis=0))
        lines.append("| geometric mean | " + " | ".join(", ".join(f"{x:.2f}" for x in row) for row in whole) + " |")
        less = ours - theirs > 2 * np.hypot(error[:, :, :1, m], error[:, :, 1:, m])
        for i, j, k in np.argwhere(less):
            times = f"{ours[i, j, 0] / theirs[i, j, k]:.2f} times"
            lost.append(f"{people[i]}, ε {DISTANCE_EPSILONS[j]:g}, {metric}: {DISTANCE_RIVALS[k]} ({times})")
    head = (
        f"1000 times the distance of the default, then how many times larger that of {', '.join(DISTANCE_RIVALS)} is;"
    )
    head += f" {found.shape[-1]} repetitions, |D| = 1024 and N = 10^5 for the shapes."
    said = "Rivals with a smaller distance by more than two standard errors: " + ("; ".join(lost) or "none") + "."
    return "\n".join([head, *lines, "", said])


def places(repeats: int) -> str:
    """Two attributes, the tuning list: errors of quadtree, kd-tree, AHEAD and HDG over the default's."""
    settings, rivals = (
        SPLITS["tuning"]["2"],
        ("quadtree:paper", "quadtree:strong", "kdtree:paper", "kdtree:strong", "ahead:paper", "hdg:strong"),
    )
    found = compare(settings, ("default", *rivals), SPLIT_EPSILONS, repeats, jobs=1)
    ratio = found.mean(axis=-1)[:, :, 1:] / found.mean(axis=-1)[:, :, :1]
    lines = ["| rival | " + " | ".join(f"ε = {e:g}" for e in SPLIT_EPSILONS) + " | all | least, most |"]
    lines.append("|---" * (len(SPLIT_EPSILONS) + 3) + "|")
    for k, rival in enumerate(rivals):
        by = [*np.exp(np.log(ratio[:, :, k]).mean(axis=0)), np.exp(np.log(ratio[:, :, k]).mean())]
        place = np.unravel_index(np.argmin(ratio[:, :, k]), ratio.shape[:2])
        worst = f"{settings[place[0]].name}, ε {SPLIT_EPSILONS[place[1]]:g}"
        lines.append(
            f"| {rival} | "
            + " | ".join(f"{x:.1f}" for x in by)
            + f" | {ratio[:, :, k].min():.2f} ({worst}), {ratio[:, :, k].max():.0f} |"
        )
    best = ratio.min(axis=2)
    lines.append(
        "| the best of them | "
        + " | ".join(f"{x:.1f}" for x in [*np.exp(np.log(best).mean(axis=0)), np.exp(np.log(best).mean())])
        + f" | {best.min():.2f}, {best.max():.0f} |"
    )
    head = f"Mean squared errors over the default's, geometric means over {len(settings)} kinds of people,"
    head += f" {repeats} repetitions."
    return "\n".join([head, "", *lines])


TABLES: dict[str, tuple[Callable[[int], str], str]] = {
    "methods": (methods, "docs/comparison.md"),
    "crossing": (crossing, "docs/comparison.md"),
    "readings": (readings, "docs/departures.md"),
    "distances": (distances, "docs/accuracy.md"),
    "places": (places, "docs/accuracy.md"),
}


def write(name: str, table: str, page: str) -> None:
    """Put a table between its marks on a page."""
    path = ROOT / page
    text = path.read_text("utf-8")
    marks = re.compile(rf"(<!-- table {name} -->\n).*?(\n<!-- end table {name} -->)", re.S)
    assert marks.search(text), f"{path.name} has no place for the table {name}"
    path.write_text(marks.sub(lambda m: m[1] + table + m[2], text), "utf-8")


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
        write(given.table, table, TABLES[given.table][1])


if __name__ == "__main__":
    main()
