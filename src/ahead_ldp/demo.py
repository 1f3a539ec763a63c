"""The demonstration: synthetic salaries, collected person by person, and what can be said about them afterwards.

Run it with ``make demo`` or ``python -m ahead_ldp.demo``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.coding import encode
from ahead_ldp.estimates import Estimate
from ahead_ldp.figures import plot_answers, plot_estimate, plot_tree
from ahead_ldp.front import collect
from ahead_ldp.schema import as_schema
from ahead_ldp.tree_estimates import TreeEstimate

Ints = NDArray[np.int64]

PEOPLE = 100_000
EPSILON = 2.0
TOP = 160_000
SCHEMA = as_schema(f"salary=integer,0,{TOP - 1},64")
RANGES = [(0, 19_999), (20_000, 39_999), (30_000, 49_999), (40_000, 59_999), (60_000, 99_999), (100_000, TOP - 1)]

QUERIES = [f"salary in {lo}..{hi}" for lo, hi in RANGES]


def synthetic_salaries(n: int, rng: Generator) -> Ints:
    """Log-normal salaries, one in five rounded to a multiple of 10,000, none above the declared maximum."""
    exact = rng.lognormal(mean=np.log(38_000), sigma=0.5, size=n)
    rounded = np.where(rng.random(n) < 0.2, np.round(exact, -4), exact)
    return np.minimum(rounded, TOP - 1).astype(np.int64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Collect, print a table beside the truth, and draw."""
    options = _options(arguments)
    salaries = synthetic_salaries(options.people, np.random.default_rng(2021))
    print(
        f"Synthetic salaries, log-normal with heaping, {options.people:,} people. Each device sends one report that\n"
        f"is {options.epsilon:g}-locally differentially private; every report crosses the wire form. No true value\n"
        "leaves a device.\n"
    )
    started = time.perf_counter()
    estimate = collect({"salary": salaries}, SCHEMA, epsilon=options.epsilon, method=options.method)
    seconds = time.perf_counter() - started
    print(f"Collected in {seconds:.1f} s, {1e3 * seconds / options.people:.2f} ms a person, both sides together.\n")

    answers = estimate.ask(*QUERIES)
    truth = [((salaries >= lo) & (salaries <= hi)).mean() for lo, hi in RANGES]
    print(answers.table(truth=truth))
    low, high = answers.interval()
    inside = int(((low <= truth) & (truth <= high)).sum())
    print(f"{inside} of {len(truth)} intervals hold the truth; the widest is {100 * (high - low).max():.1f} points.\n")
    print(estimate.summary())
    print(f"mean: {estimate.mean()}; truth {salaries.mean():,.0f}\n")
    _draw(estimate, salaries, options.out)
    plot_answers(answers, truth=truth).savefig(options.out.with_stem(options.out.stem + "-answers"), dpi=110)
    print(f"Pictures: {options.out} and {options.out.with_stem(options.out.stem + '-answers')}")


def _draw(estimate: Estimate, salaries: Ints, out: Path) -> None:
    counts = np.bincount(encode(SCHEMA, [salaries])[:, 0], minlength=SCHEMA.sizes[0])
    is_tree = isinstance(estimate, TreeEstimate)
    figure = plot_tree(estimate, truth=counts) if is_tree else plot_estimate(estimate, truth=counts)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ahead_ldp.demo", description=__doc__)
    parser.add_argument("--people", type=int, default=PEOPLE, help="how many people (%(default)s)")
    parser.add_argument("--epsilon", type=float, default=EPSILON, help="privacy parameter (%(default)s)")
    parser.add_argument("--method", default=None, help="the best for one attribute where left out")
    parser.add_argument("--out", type=Path, default=Path("out/demo.png"), help="where the picture goes (%(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, ImportError) as error:
        sys.exit(f"{error}")
