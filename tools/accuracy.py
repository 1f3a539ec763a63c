"""Errors of several methods on the settings of `tools.splits`, paired: the same people, queries and repetition numbers.

python -m tools.accuracy tuning 1 --methods default,ahead:paper [--repeats 10] [--epsilons 0.1,1] [--out FILE]

A method is written NAME or NAME:SETTINGS, "default" being what a user gets who names none; choices of its own follow,
as in adaptive:waves=2 or ahead:paper:fanout=4. The table shows each
method's error over the first one's, by setting and epsilon and as a geometric mean. ``--out`` keeps the error of every
repetition.
"""

from __future__ import annotations

import argparse
import json
import os
from ast import literal_eval
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.engines.progress import Bar
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.evaluation import Task, choose, run_trial, trial_rng, workload_rng
from ahead_ldp.schema.workloads import Workload, random_workload
from tools.splits import EPSILONS, SPLITS, Setting

SEED = 52_021
QUERIES = 200
_MOST_RESTRICTED, _RESTRICTED = 10, 3  # attributes, up to which queries restrict all, and otherwise so many
Maker = Callable[[Setting, float, int], Mechanism]  # setting, epsilon, people -> method
Floats = NDArray[np.float64]


def named(text: str) -> Maker:
    """The maker of NAME or NAME:SETTINGS, with choices."""
    name, *rest = text.split(":")
    settings = next((part for part in rest if "=" not in part), "default")
    choices = {key: literal_eval(value) for key, value in (part.split("=") for part in rest if "=" in part)}

    def make(setting: Setting, epsilon: float, people: int) -> Mechanism:
        """The method for this setting."""
        made = choose(None if name == "default" else name, setting.schema, epsilon, people, settings)[0]
        return replace(made, **choices) if choices else made

    return make


def boxes_of(sizes: tuple[int, ...], kind: str) -> Workload:
    """200 boxes whose sides are all one code, a 32nd of the domain or a half of it, placed at random; or the whole."""
    m = len(sizes)
    if kind == "whole":
        whole = np.array([[[0.0, size] for size in sizes]])
        return Workload(sizes, whole, np.zeros(1, np.int64), 1)
    sides = np.array([{"points": 1, "short": max(size // 32, 1), "half": max(size // 2, 1)}[kind] for size in sizes])
    lo = workload_rng(SEED).integers(0, np.array(sizes) - sides + 1, size=(QUERIES, m))
    return Workload(sizes, np.stack([lo, lo + sides], axis=-1).astype(float), np.arange(QUERIES), QUERIES)


def restricted(workload: Workload, most: int, rng: Generator) -> Workload:
    """The same queries with at most so many attributes restricted in each, picked at random."""
    m = len(workload.sizes)
    order = rng.random((workload.n, m)).argsort(axis=1)
    free = order.argsort(axis=1) >= most
    whole = np.stack([np.zeros(m), np.array(workload.sizes, float)], axis=1)
    return Workload(workload.sizes, np.where(free[:, :, None], whole, workload.boxes), workload.owner, workload.n)


def task_of(setting: Setting, kind: str = "random") -> Task:
    """The people of the setting and 200 random ranges, or boxes of one kind.

    With more than ten attributes a random query restricts three of them: on all, every answer would be nothing.
    """
    if kind == "random":
        asked = random_workload(setting.schema, QUERIES, workload_rng(SEED))
        if len(setting.sizes) > _MOST_RESTRICTED:
            asked = restricted(asked, _RESTRICTED, workload_rng(SEED + 1))
    else:
        asked = boxes_of(setting.sizes, kind)
    return Task.of(setting.schema, setting.people(), asked)


def errors(
    setting: Setting, makers: Sequence[Maker], epsilons: Sequence[float], repeats: Iterable[int], kind: str = "random"
) -> Floats:
    """Mean squared errors of shape (epsilons, methods, repeats) on one setting."""
    task = task_of(setting, kind)
    return np.array(
        [
            [
                [run_trial(task, made, trial_rng(SEED, made.name, epsilon, k)).mse for k in repeats]
                for made in (make(setting, epsilon, task.people.n) for make in makers)
            ]
            for epsilon in epsilons
        ]
    )


def compare(
    settings: Sequence[Setting],
    methods: Sequence[str],
    epsilons: Sequence[float],
    repeats: int,
    jobs: int = 2,
    kind: str = "random",
    people: int | None = None,
) -> Floats:
    """Mean squared errors of shape (settings, epsilons, methods, repeats); ``people`` in place of the settings' own."""
    with ProcessPoolExecutor(jobs) as pool, Bar("measuring") as bar:
        futures = [pool.submit(_one, setting.name, methods, epsilons, repeats, kind, people) for setting in settings]
        found = []
        for i, future in enumerate(futures):
            found.append(future.result())
            bar(i + 1, len(futures))
    return np.stack(found)


def _one(
    name: str, methods: Sequence[str], epsilons: Sequence[float], repeats: int, kind: str, people: int | None
) -> Floats:
    known = {s.name: s for split in SPLITS.values() for part in split.values() for s in part}
    setting = known[name] if people is None else replace(known[name], n=people)
    return errors(setting, [named(m) for m in methods], epsilons, range(repeats), kind)


def table(settings: Sequence[Setting], methods: Sequence[str], epsilons: Sequence[float], found: Floats) -> str:
    """Errors over the first method's, in text."""
    mean = found.mean(axis=-1)
    ratio = mean / mean[:, :, :1]
    lines = [f"{'':28s}" + "".join(f"{m:>22s}" for m in methods)]
    for i, setting in enumerate(settings):
        for j, epsilon in enumerate(epsilons):
            cells = "".join(f"{mean[i, j, k]:12.3e} x{ratio[i, j, k]:<8.2f}" for k in range(len(methods)))
            lines.append(f"{setting.name[:22]:22s} {epsilon:5g}{cells}")
    overall = np.exp(np.log(ratio).mean(axis=(0, 1)))
    by_epsilon = np.exp(np.log(ratio).mean(axis=0))
    for j, epsilon in enumerate(epsilons):
        lines.append(f"{'geometric mean':22s} {epsilon:5g}" + "".join(f"{'':12s} x{x:<8.2f}" for x in by_epsilon[j]))
    lines.append(f"{'geometric mean':28s}" + "".join(f"{'':12s} x{x:<8.2f}" for x in overall))
    lines.append(f"{'least, most':28s}" + "".join(f" {x.min():9.2f} {x.max():9.2f} " for x in np.moveaxis(ratio, 2, 0)))
    return "\n".join(lines)


def common_options(about: str | None) -> argparse.ArgumentParser:
    """Which settings are measured, with which methods and how often: the same words for every measurement of them."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("split", choices=SPLITS)
    parser.add_argument("part", choices=("1", "2", "m"))
    parser.add_argument("--methods", default="default,ahead:paper")
    parser.add_argument("--settings", default="", help="only settings whose name contains this")
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser


def main() -> None:
    """Measure and print."""
    parser = common_options(__doc__)
    parser.add_argument("--workload", choices=("random", "points", "short", "half", "whole"), default="random")
    parser.add_argument("--people", type=int, help="draw every setting's people down to so many")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    settings = [s for s in SPLITS[given.split][given.part] if given.settings in s.name]
    methods, epsilons = given.methods.split(","), [float(e) for e in given.epsilons.split(",")]
    found = compare(settings, methods, epsilons, given.repeats, given.jobs, given.workload, given.people)
    print(table(settings, methods, epsilons, found))
    if given.out:
        about = {
            "split": given.split,
            "part": given.part,
            "workload": given.workload,
            "people": given.people,
            "methods": methods,
            "epsilons": epsilons,
        }
        given.out.write_text(json.dumps({**about, "settings": [s.name for s in settings], "mse": found.tolist()}))


if __name__ == "__main__":
    main()
