"""How often intervals hold the truth, and how wide they are, on the settings of `tools.splits`.

python -m tools.coverage tuning 1 --methods default,ahead:paper [--repeats 10] [--epsilons 0.1,1] [--queries random]
                         [--intervals strict]

For every setting and epsilon: the share of answers inside their pointwise 95 % interval, the share of repetitions with
all answers inside their simultaneous one, and the width over the needed width. The needed width is that of the same
intervals, all scaled about their middle by the one factor with which 95 % of the answers would have been inside. The
intervals are the model's, if strict ones are not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.engines.progress import Bar
from ahead_ldp.engines.simulation import run_simulation
from ahead_ldp.estimates.answers import Kind
from ahead_ldp.research.evaluation import Task, workload_rng
from ahead_ldp.schema.workloads import Workload, fixed_volume_workload, random_workload
from tools.accuracy import SEED, common_options, named
from tools.splits import SPLITS, Setting

LEVEL = 0.95
QUERIES = 100
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Coverage:
    """Of one method on one setting at one epsilon."""

    pointwise: float  # share of answers inside
    simultaneous: float  # share of repetitions with all answers inside
    width: float  # over the needed width
    error: float  # root mean squared error
    half: float  # half the pointwise width, root mean square


def asked(setting: Setting, kind: str) -> Workload:
    """Queries of one kind: random ranges, short ones, or from the first code up."""
    rng = workload_rng(SEED)
    if kind == "short":
        return fixed_volume_workload(setting.schema, 0.05, QUERIES, rng)
    drawn = random_workload(setting.schema, QUERIES, rng)
    if kind == "prefix":
        boxes = drawn.boxes.copy()
        boxes[..., 0] = 0.0
        return Workload(drawn.sizes, boxes, drawn.owner, drawn.n)
    return drawn


def measure(
    setting: Setting, method: str, epsilon: float, repeats: int, kind: str = "random", intervals: Kind = "model"
) -> Coverage:
    """Run the method some times and compare its intervals with the truth."""
    task = Task.of(setting.schema, setting.people(), asked(setting, kind))
    truth, mechanism = task.truth, named(method)(setting, epsilon, task.people.n)
    error, off, half, inside, all_inside = [], [], [], [], []
    for k in range(repeats):
        rng = np.random.default_rng([SEED, int(1000 * epsilon), k])
        found = run_simulation(mechanism, setting.schema, task.people, rng).answer_jointly(task.workload)
        low, high = found.interval(LEVEL, simultaneous=True, kind=intervals)
        all_inside.append(bool(((low <= truth + 1e-12) & (truth <= high + 1e-12)).all()))
        low, high = found.interval(LEVEL, kind=intervals)
        inside.append((low <= truth + 1e-12) & (truth <= high + 1e-12))
        strict = intervals == "strict"
        error.append(np.abs(found.values - truth))
        off.append(np.abs((low + high) / 2 - truth) if strict else error[-1])
        half.append((high - low) / 2 if strict else found.half_width(LEVEL))
    e, h = np.stack(error), np.stack(half)
    needed = float(np.quantile(np.stack(off) / np.maximum(h, 1e-300), LEVEL))
    sizes = float(np.sqrt((e**2).mean())), float(np.sqrt((h**2).mean()))
    return Coverage(float(np.mean(inside)), float(np.mean(all_inside)), 1 / max(needed, 1e-12), *sizes)


def compare(
    settings: Sequence[Setting],
    methods: Sequence[str],
    epsilons: Sequence[float],
    repeats: int,
    kind: str,
    jobs: int,
    intervals: Kind,
) -> dict[tuple[str, float, str], Coverage]:
    """Every setting, epsilon and method."""
    cases = [(s.name, m, e) for s in settings for e in epsilons for m in methods]
    found = {}
    with ProcessPoolExecutor(jobs) as pool, Bar("measuring") as bar:
        futures = [pool.submit(_one, *case, repeats, kind, intervals) for case in cases]
        for i, ((name, method, epsilon), future) in enumerate(zip(cases, futures, strict=True)):
            found[name, epsilon, method] = future.result()
            bar(i + 1, len(cases))
    return found


def _one(name: str, method: str, epsilon: float, repeats: int, kind: str, intervals: Kind) -> Coverage:
    known = {s.name: s for split in SPLITS.values() for part in split.values() for s in part}
    return measure(known[name], method, epsilon, repeats, kind, intervals)


def table(methods: Sequence[str], found: dict[tuple[str, float, str], Coverage]) -> str:
    """Each setting, then for each method the mean, the worst setting and the widths."""
    lines = [f"{'':30s}" + "".join(f"{m:>30s}" for m in methods)]
    lines.append(f"{'':30s}" + f"{'inside %, all inside %, width':>30s}" * len(methods))
    for name, epsilon in dict.fromkeys((n, e) for n, e, _ in found):
        cells = (found[name, epsilon, m] for m in methods)
        texts = "".join(f"{100 * c.pointwise:15.1f} {100 * c.simultaneous:6.0f} {c.width:7.2f}" for c in cells)
        lines.append(f"{name[:24]:24s} {epsilon:5g}{texts}")
    for label, of in (("mean", np.mean), ("least", np.min), ("most", np.max)):
        cells_of = [[c for (_, _, m), c in found.items() if m == method] for method in methods]
        texts = "".join(
            f"{100 * of([c.pointwise for c in cs]):15.1f} {100 * of([c.simultaneous for c in cs]):6.0f}"
            f" {of([c.width for c in cs]):7.2f}"
            for cs in cells_of
        )
        lines.append(f"{label:30s}{texts}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = common_options(__doc__)
    parser.add_argument("--queries", choices=("random", "short", "prefix"), default="random")
    parser.add_argument("--intervals", choices=("model", "strict"), default="model")
    given = parser.parse_args()
    settings = [s for s in SPLITS[given.split][given.part] if given.settings in s.name]
    methods, epsilons = given.methods.split(","), [float(e) for e in given.epsilons.split(",")]
    found = compare(settings, methods, epsilons, given.repeats, given.queries, given.jobs, given.intervals)
    print(table(methods, found))


if __name__ == "__main__":
    main()
