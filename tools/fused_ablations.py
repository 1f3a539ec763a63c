"""What each choice of the fused method does: the same people, queries and seeds, one choice changed at a time.

python -m tools.fused_ablations 2 [--repeats 3] [--epsilons 0.2,1] [--settings NAME] [--only CHOICE]

The table shows each variant's mean squared error over the default's, as a geometric mean over settings and epsilons,
with the least and the most. Some variants replace a step of the estimate, which no user can do.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.mechanisms.fused import fused, interactions
from ahead_ldp.mechanisms.fused.fused import Fused
from ahead_ldp.mechanisms.fused.margins import Margin
from ahead_ldp.mechanisms.fused.pairwise_models import PairwiseModel
from ahead_ldp.research.evaluation import run_trial, trial_rng
from tools.accuracy import SEED, task_of
from tools.splits import SPLITS

Floats = NDArray[np.float64]
Variant = tuple[dict[str, float | int], Callable[[], AbstractContextManager[None]]]


@contextmanager
def margins_alone() -> Iterator[None]:
    """Margins from the trees alone, without the pairs' sums."""
    with mock.patch.object(Margin, "agreed", lambda self, _: self):
        yield


@contextmanager
def even_start() -> Iterator[None]:
    """In/out cells of three and more attributes from equal ones, as LLE and HDG have them."""

    def start(_: PairwiseModel, attributes: tuple[int, ...], shares: tuple[Floats, ...]) -> Floats:
        return np.ones((len(shares[0]), *[2] * len(attributes)))

    with mock.patch.object(PairwiseModel, "_start", start):
        yield


def rough_from(standard_errors: float) -> Callable[[], AbstractContextManager[None]]:
    """Another misfit from which a pair counts as rough, and its trees' later groups are asked about it."""

    @contextmanager
    def patched() -> Iterator[None]:
        with mock.patch.object(fused, "least_misfit", return_value=standard_errors):
            yield

    return patched


@contextmanager
def functions_alone() -> Iterator[None]:
    """Tables as the smooth functions say, without departures of single cells."""
    with mock.patch.object(interactions, "fit_cells", lambda table, *_: table):
        yield


@contextmanager
def likeliest_prior() -> Iterator[None]:
    """Coefficients by the likeliest prior alone."""
    with mock.patch.object(interactions, "_WIDER_PRIORS", (0.0,)):
        yield


VARIANTS: dict[str, Variant] = {
    "default": ({}, nullcontext),
    "margins without the pairs' sums": ({}, margins_alone),
    "no pair is rough": ({}, rough_from(float("inf"))),
    "every pair is rough": ({}, rough_from(-float("inf"))),
    "no single cells": ({}, functions_alone),
    "likeliest prior alone": ({}, likeliest_prior),
    "even start for 3 and more attributes": ({}, even_start),
    "single 0.33": ({"single": 0.33}, nullcontext),
    "single 0.67": ({"single": 0.67}, nullcontext),
    "single 0.9": ({"single": 0.9}, nullcontext),
    "fineness 0.2": ({"fineness": 0.2}, nullcontext),
    "fineness 0.8": ({"fineness": 0.8}, nullcontext),
    "smoothness 1": ({"smoothness": 1}, nullcontext),
    "smoothness 3": ({"smoothness": 3}, nullcontext),
    "bins 16": ({"bins": 16}, nullcontext),
    "waves 1": ({"waves": 1}, nullcontext),
    "waves 2": ({"waves": 2}, nullcontext),
    "waves 3": ({"waves": 3}, nullcontext),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("2", "m"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epsilons", default="0.2,1")
    parser.add_argument("--settings", default="", help="only settings whose name contains one of these, by commas")
    parser.add_argument("--only", default="", help="only variants whose name contains this")
    given = parser.parse_args()
    wanted = {k: v for k, v in VARIANTS.items() if k == "default" or given.only in k}
    errors: dict[str, list[float]] = {name: [] for name in wanted}
    for setting in SPLITS["tuning"][given.part]:
        if not any(part in setting.name for part in given.settings.split(",")):
            continue
        task = task_of(setting)
        for epsilon in map(float, given.epsilons.split(",")):
            for name, (choices, patched) in wanted.items():
                made = Fused(epsilon=epsilon, users=task.people.n, **choices)  # type: ignore[arg-type]
                with patched():
                    trials = [run_trial(task, made, trial_rng(SEED, "fused", epsilon, k)) for k in range(given.repeats)]
                errors[name].append(float(np.mean([t.mse for t in trials])))
    base = np.array(errors["default"])
    for name, found in errors.items():
        ratio = np.array(found) / base
        mean = float(np.exp(np.log(ratio).mean()))
        print(f"{name:40s} x{mean:<6.2f} least {ratio.min():.2f} most {ratio.max():.2f}")


if __name__ == "__main__":
    main()
