"""How often strict intervals hold for what people ask of lumpy data, and how wide they are beside the model's.

python -m tools.lumps tuning 1 [--repeats 10] [--epsilons 0.05,0.2,1,4] [--settings NAME,...] [--jobs 2]

For every setting of `tools.splits`, kind of query and epsilon: the share of 95 % intervals that hold the truth; how
often the simultaneous ones of all kinds hold together; and the width beside that of the best weights in hindsight.
Kinds for one attribute: the six heaviest codes, their neighbours, ranges that end there, random ranges. For two: the
six heaviest cells, the heaviest codes of one attribute, boxes that end there, random boxes. Runs are clusters: an
interval for a share needs the number of runs, not of queries.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from ahead_ldp.engines.simulation import run_simulation
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.strict.bounds import Evidence
from ahead_ldp.estimates.strict.functionals import Shares
from ahead_ldp.estimates.strict.problem import _FOLDS
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.research.evaluation import Task
from ahead_ldp.schema.workloads import Workload, random_workload
from tools.accuracy import named
from tools.splits import SPLITS, Setting

HEAVY = 6
LEAST = 0.93  # share that every combination should hold
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
HINDSIGHT = 2  # runs whose groups hindsight is worked out for: they hardly differ
FLOOR = 1e-6  # even, of the true shares: programs start inside the simplex
Z = 1.959964


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


@dataclass(frozen=True, eq=False)
class Found:
    """All runs of one setting at one epsilon, (runs, queries)."""

    held: NDArray[np.bool_]  # each interval for itself
    together: NDArray[np.bool_]  # (runs,) all simultaneous ones at once
    wide: Floats
    narrow: Floats  # the model's
    best: Floats  # (queries,) the strict width with the best weights in hindsight


def run(split: str, place: int, attributes: int, epsilon: float, repeats: int) -> tuple[dict[str, slice], Found]:
    """All runs of one setting at one epsilon, and where the queries of each kind stand."""
    setting = SPLITS[split][str(attributes)][place]
    people, histogram, asked = setting.people(), _histogram(setting), kinds(setting, _histogram(setting))
    boxes = np.concatenate([workload.boxes for workload in asked.values()])
    task = Task.of(setting.schema, people, Workload(setting.sizes, boxes, np.arange(len(boxes)), len(boxes)))
    ends = np.cumsum([0, *(workload.n for workload in asked.values())]).tolist()
    mechanism = named("default")(setting, epsilon, people.n)
    runs, best = [], []
    for repeat in range(repeats):
        estimate = run_simulation(mechanism, setting.schema, people, np.random.default_rng([16, repeat]))
        answers = estimate.answer_jointly(task.workload)
        (low, high), model = answers.interval(), answers.interval(kind="model")
        all_low, all_high = answers.interval(simultaneous=True)
        at_once = _holds(all_low, all_high, task.truth).all()
        runs.append((_holds(low, high, task.truth), at_once, high - low, model[1] - model[0]))
        if repeat < HINDSIGHT:
            best.append(hindsight(estimate, task.workload, histogram))
    held, together, wide, narrow = (np.stack(part) for part in zip(*runs, strict=True))
    found = Found(held, together, wide, narrow, np.mean(best, axis=0))
    return dict(zip(asked, map(slice, ends, ends[1:]), strict=True)), found


def hindsight(estimate: Estimate, workload: Workload, histogram: Ints) -> Floats:
    """Widths of strict intervals if the weights were chosen by the true shares, and the reports were their means."""
    assert estimate.provenance is not None
    evidence, sides = Evidence(estimate.schema, estimate.provenance), []
    for box in workload.boxes:
        whole = (box[:, 0] <= 0) & (box[:, 1] >= np.array(workload.sizes))
        attributes = tuple(np.flatnonzero(~whole).tolist())
        functional = Shares(attributes, ((1.0, box[None, list(attributes)]),))
        piece = evidence.ground(attributes).near(functional.boxes)
        dropped = tuple(np.flatnonzero(whole).tolist())
        sums = SummedArea.of(histogram.sum(axis=dropped) / histogram.sum())
        f = sums.fractional_boxes(np.stack([piece.lo, piece.hi], axis=-1))
        problem = replace(piece.problem)
        problem.__dict__["pilot"] = f = (1 - FLOOR) * f + FLOOR * problem.even
        problem.__dict__["folds"] = np.tile(problem.matrix @ f, (_FOLDS, 1)), np.tile(f, (_FOLDS, 1))
        q = np.stack([functional.highest(piece), functional.negative().highest(piece)])
        upper = problem.upper(q, Z)
        high, low = np.minimum(upper.centre + Z * upper.error, q.max(axis=1))
        sides.append(min(high, 1.0) - max(-low, 0.0))
    return np.array(sides)


def _holds(low: Floats, high: Floats, truth: Floats) -> NDArray[np.bool_]:
    return np.asarray((low <= truth + 1e-9) & (truth <= high + 1e-9))


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
    chosen = [place for place, setting in enumerate(listed) if not wanted or setting.name in wanted]
    cases = list(product(chosen, map(float, asked.epsilons.split(","))))
    over_all, at_once, best = defaultdict(list), defaultdict(list), list[float]()
    with ProcessPoolExecutor(asked.jobs) as pool:
        runs = [pool.submit(run, asked.split, i, asked.attributes, epsilon, asked.repeats) for i, epsilon in cases]
        for (i, epsilon), done in zip(cases, runs, strict=True):
            places, found = done.result()
            at_once[epsilon].append(float(found.together.mean()))
            best.append(float(np.mean(found.wide.mean(axis=0) / found.best)))
            name, all_hold = listed[i].name, at_once[epsilon][-1]
            print(f"{name}, {epsilon:g}: {all_hold:.3f} hold together, {best[-1]:.2f} of hindsight", flush=True)
            for kind, place in places.items():
                held, wide, narrow = found.held[:, place], found.wide[:, place], found.narrow[:, place]
                over_all[kind, epsilon].append((held, wide, narrow))
                print(f"  {kind}: {held.mean():.3f}, width {wide.mean():.4f}{_short(held, len(cases) * len(places))}")
    for (kind, epsilon), parts in sorted(over_all.items()):
        held = np.concatenate([part[0].reshape(-1) for part in parts])
        ratio = np.mean([np.median(part[1] / np.maximum(part[2], 1e-9)) for part in parts])
        print(f"all, {epsilon:g}, {kind}: {held.mean():.3f} hold, {ratio:.2f} times the model's width")
    for epsilon, shares in at_once.items():
        print(f"all, {epsilon:g}: simultaneous {np.mean(shares):.3f}, least {min(shares):.3f}")
    print(f"width over that of the best weights in hindsight: {np.mean(best):.3f}, largest {max(best):.2f}")


def _short(held: NDArray[np.bool_], combinations: int) -> str:
    """A mark where the upper 95 % bound of the share is below what is promised: runs as clusters, Bonferroni."""
    runs, share = len(held), float(held.mean())
    upper = 1.0 if share == 1 else float(beta.ppf(1 - 0.05 / combinations, share * runs + 1, runs - share * runs))
    return "  SHORT" if upper < LEAST else ""


if __name__ == "__main__":
    main()
