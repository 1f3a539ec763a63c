"""How often strict intervals hold for what people ask of lumpy data, and how wide they are beside the model's.

python -m tools.lumps tuning 1 [--repeats 10] [--epsilons 0.05,0.2,1,4] [--settings NAME,...] [--jobs 2]

For every setting of `tools.splits`, kind of query and epsilon: the share of 95 % intervals that hold the truth. Kinds
for one attribute: the six heaviest codes, their neighbours, ranges that end there, random ranges. For two: the six
heaviest cells, the heaviest codes of one attribute, boxes that end there, random boxes. Runs are clusters: an interval
for a share needs the number of runs, not of queries.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from ahead_ldp.engines.simulation import run_simulation
from ahead_ldp.research.evaluation import Task
from ahead_ldp.schema.workloads import Workload, random_workload
from tools.accuracy import named
from tools.splits import SPLITS, Setting

HEAVY = 6
LEAST = 0.93  # share that every combination should hold
Ints = NDArray[np.int64]
Found = dict[str, tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]]  # kind -> held, widths


def kinds(setting: Setting, histogram: Ints) -> dict[str, Workload]:
    """The queries of every kind."""
    sizes, rng = setting.sizes, np.random.default_rng(8)
    heavy = np.argsort(-histogram.reshape(-1), kind="stable")[:HEAVY]
    codes = np.stack(np.unravel_index(heavy, sizes), axis=1)
    whole = np.array([[0, size - 1] for size in sizes])
    points = np.stack([codes, codes], axis=-1)
    below = np.stack([np.zeros_like(codes), codes], axis=-1)
    found = {"ranges that end there" if len(sizes) == 1 else "boxes that end there": below}
    if len(sizes) == 1:
        beside = np.clip(codes + 1, 0, sizes[0] - 1)
        found |= {"heaviest codes": points, "their neighbours": np.stack([beside, beside], axis=-1)}
    else:
        first = np.argsort(-histogram.sum(axis=1), kind="stable")[:HEAVY]
        columns = np.repeat(whole[None], len(first), axis=0)
        columns[:, 0] = first[:, None]
        found |= {"heaviest cells": points, "heaviest codes of one": columns}
    made = {kind: Workload.from_codes(sizes, boxes) for kind, boxes in found.items()}
    return {**made, "random": random_workload(sizes, HEAVY, rng)}


def run(setting: Setting, epsilon: float, repeats: int) -> Found:
    """All runs of one setting at one epsilon."""
    people = setting.people()
    workloads = kinds(setting, _histogram(setting))
    tasks = {kind: Task.of(setting.schema, people, workload) for kind, workload in workloads.items()}
    mechanism = named("default")(setting, epsilon, people.n)
    found = defaultdict(list)
    for repeat in range(repeats):
        estimate = run_simulation(mechanism, setting.schema, people, np.random.default_rng([16, repeat]))
        for kind, task in tasks.items():
            answers = estimate.answer_jointly(task.workload)
            (low, high), model = answers.interval(), answers.interval(kind="model")
            held = (low <= task.truth + 1e-9) & (task.truth <= high + 1e-9)
            found[kind].append((held, high - low, model[1] - model[0]))
    return {k: tuple(np.stack(part) for part in zip(*runs, strict=True)) for k, runs in found.items()}  # type: ignore[misc]


def _histogram(setting: Setting) -> Ints:
    people = setting.people()
    if people.records is None:
        return np.asarray(people.histogram, np.int64).reshape(setting.sizes)
    cells = np.ravel_multi_index(tuple(np.asarray(people.records).T), setting.sizes)
    return np.bincount(cells, minlength=prod(setting.sizes)).reshape(setting.sizes).astype(np.int64)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print: every combination, then each kind and epsilon over all data."""
    parser = argparse.ArgumentParser(prog="python -m tools.lumps", description="Coverage of strict intervals.")
    parser.add_argument("split", choices=sorted(SPLITS))
    parser.add_argument("attributes", type=int, choices=(1, 2))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--epsilons", default="0.05,0.2,1,4")
    parser.add_argument("--settings", default="", help="names, separated by commas; left out: all")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args(arguments)
    wanted = set(filter(None, asked.settings.split(",")))
    listed = SPLITS[asked.split][str(asked.attributes)]
    settings = [setting for setting in listed if not wanted or setting.name in wanted]
    cases = list(product(settings, map(float, asked.epsilons.split(","))))
    over_all = defaultdict(list)
    with ProcessPoolExecutor(asked.jobs) as pool:
        runs = [pool.submit(run, setting, epsilon, asked.repeats) for setting, epsilon in cases]
        for (setting, epsilon), done in zip(cases, runs, strict=True):
            for kind, (held, wide, narrow) in done.result().items():
                over_all[kind, epsilon].append((held, wide, narrow))
                print(f"{setting.name}, {epsilon:g}, {kind}: {held.mean():.3f}, width {wide.mean():.4f}{_short(held)}")
    for (kind, epsilon), parts in sorted(over_all.items()):
        held = np.concatenate([part[0].reshape(-1) for part in parts])
        ratio = np.mean([np.median(part[1] / np.maximum(part[2], 1e-9)) for part in parts])
        print(f"all, {epsilon:g}, {kind}: {held.mean():.3f} hold, {ratio:.2f} times the model's width")


def _short(held: NDArray[np.bool_]) -> str:
    """A mark where the upper 95 % bound of the share, runs as clusters, is below what is promised."""
    runs, share = len(held), float(held.mean())
    upper = 1.0 if share == 1 else float(beta.ppf(0.975, share * runs + 1, runs - share * runs))
    return "  SHORT" if upper < LEAST else ""


if __name__ == "__main__":
    main()
