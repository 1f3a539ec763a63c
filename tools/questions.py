"""How often the intervals of docs/analysis.md hold, over smooth and lumpy people, and when "no change" is rejected.

python -m tools.questions one|two|changes|rounds|tests|speed|rate [--repeats 20] [--epsilons 0.2,1,4] [--kind strict]

`one`: functionals of one attribute. `two`: groups, weights and pairs. `changes`: differences of two estimates, about
the people who took part and about everybody, with a tenth of the people moved. `rounds`: a share that walks over six
rounds. Runs are clusters: the last number says how many runs a share rests on. `tests`: only the tests of "no change",
on smooth people. `rate`: how far numbers miss for more and more people. `speed`: seconds of one processor for each
question, with ten attributes and a million people.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import lognorm

import ahead_ldp
from ahead_ldp.estimates.analysis.differences import difference
from ahead_ldp.estimates.analysis.weights import _raked

Ints = NDArray[np.int64]
CODES, PEOPLE = 64, 30_000
BORDERS = np.array([0, 16, 24, 40, CODES - 1])  # of the bins of `changes`
Held = Iterator[tuple[str, bool]]


def smooth(rng: np.random.Generator, people: int = PEOPLE) -> Ints:
    """Log-normal numbers, none 0."""
    return np.clip(rng.lognormal(3.0, 0.4, people), 1, CODES - 1).astype(np.int64)


def lumpy(rng: np.random.Generator, people: int = PEOPLE) -> Ints:
    """The same, of which six in ten round to tens."""
    x = smooth(rng, people)
    return np.where(rng.random(people) < 0.6, np.clip(np.round(x, -1), 10, 60), x)


PEOPLES = {"smooth": smooth, "lumpy": lumpy}


def truths(x: Ints) -> dict[str, float]:
    """What the functionals are among these people."""
    ordered = np.sort(x).astype(float)
    held = np.append(0.0, np.cumsum(ordered)) / ordered.sum()
    n, median = len(x), float(np.quantile(x, 0.5, method="inverted_cdf"))
    return {
        "std": float(x.std()),
        "below 15": float(np.mean(x < 15)),
        "above 40": float(np.mean(x > 40)),
        "below 0.6 of the median": float(np.mean(x < 0.6 * median)),
        "bottom half": float(held[n // 2]),
        "top tenth": float(1 - held[n - n // 10]),
        "Gini": 1 - float(np.sum(held[1:] + held[:-1])) / n,
    }


def one(kind: str, epsilon: float, seed: int, intervals: str) -> Held:
    """Functionals of one attribute."""
    x = PEOPLES[kind](np.random.default_rng(1))
    e = ahead_ldp.simulate(x, f"x=integer,0,{CODES - 1}", epsilon=epsilon, seed=1000 + seed)
    found = {
        "std": e.std(),
        "below 15": e.below("x", 15),
        "above 40": e.above("x", 40),
        "below 0.6 of the median": e.below_median("x"),
        "bottom half": e.lorenz("x", [0.5]),
        "top tenth": e.top_share("x", [0.1]),
        "Gini": e.gini("x"),
    }
    for name, truth in truths(x).items():
        yield name, _holds(found[name], [truth], intervals)
    if intervals == "strict":
        mode = e.mode("x")
        counts = np.histogram(x, np.append(np.arange(16) * CODES // 16, CODES))[0]
        yield "mode region", bool(mode.region()[int(np.argmax(counts))])


def two(kind: str, epsilon: float, seed: int, intervals: str) -> Held:
    """Groups and pairs: numbers that differ between four groups of 40, 30, 20 and 10 %, and a number beside them."""
    rng = np.random.default_rng(2)
    group = rng.choice(4, PEOPLE, p=[0.4, 0.3, 0.2, 0.1])
    x = np.clip(PEOPLES[kind](rng) + 5 * group, 0, CODES - 1)
    y = np.clip(x // 2 + rng.integers(0, 16, PEOPLE), 0, 47)
    names = np.array(["a", "b", "c", "d"])
    columns = {"x": x, "y": y, "g": names[group]}
    schema = [f"x=integer,0,{CODES - 1}", "y=integer,0,47", "g=nominal,a|b|c|d"]
    e = ahead_ldp.simulate(columns, schema, epsilon=epsilon, seed=1000 + seed)
    groups = e.by("g")
    parts = [x[group == g] for g in range(4)]
    mean = groups.mean("x")
    yield "share in a group", _holds(groups.share("x >= 25"), [np.mean(p >= 25) for p in parts], intervals, each=True)
    both = (x >= 25) & (y < 20)
    of_both = [np.mean(both[group == g]) for g in range(4)]
    yield "share of two in a group", _holds(groups.share("x >= 25 and y < 20"), of_both, intervals, each=True)
    yield "mean in a group", _holds(mean, [p.mean() for p in parts], intervals, each=True)
    medians = [np.quantile(p, 0.5, method="inverted_cdf") for p in parts]
    yield "median in a group", _holds(groups.quantiles("x"), medians, intervals, each=True)
    gap = parts[1].mean() - parts[0].mean()
    yield "mean of b less a", _holds(groups.compare(mean, "a", "b"), [gap], intervals)
    if intervals == "strict":
        yield "correlation", _holds(e.correlation("x", "y"), [np.corrcoef(x, y)[0, 1]], intervals)
    cells = np.zeros((4, 4))
    np.add.at(cells, (x * 4 // CODES, y * 4 // 48), 1 / PEOPLE)
    apart = np.multiply.outer(cells.sum(axis=1), cells.sum(axis=0))
    some = cells > 0
    information = float(np.sum(cells[some] * np.log2(cells[some] / apart[some])))
    if intervals == "strict":
        yield "mutual information", _holds(e.mutual_information("x", "y"), [information], intervals)
    margin = {"g": dict(zip(names.tolist(), [0.25] * 4, strict=True))}
    weighted = e.calibrated(margin).ask("x >= 25")
    yield "share after weighting", _holds(weighted, [np.mean([np.mean(p >= 25) for p in parts])], intervals)
    if intervals == "model":  # strict intervals are given for one margin
        margin["y"] = {"0..11": 0.5, "12..47": 0.5}
        strata = 2 * group + (y > 11)
        shares = np.bincount(strata, minlength=8) / PEOPLE
        weights = _raked(shares.reshape(4, 2), (np.full(4, 0.25), np.array([0.5, 0.5]))).reshape(-1)
        raked = e.calibrated(margin).ask("x >= 25")
        yield "share after raking", _holds(raked, [np.mean(weights[strata] * (x >= 25))], intervals)


def changes(kind: str, epsilon: float, seed: int, intervals: str) -> Held:
    """Differences, with people of either round drawn anew, and tests of "no change".

    Of the people who took part, and of everybody, from whose law they are drawn.
    """
    rng = np.random.default_rng(10 + seed)
    x, y, moved = (PEOPLES[kind](rng) for _ in range(3))
    moved = np.where(rng.random(PEOPLE) < 0.1, np.minimum(moved + 20, CODES - 1), moved)
    schema = f"x=integer,0,{CODES - 1}"
    made = [ahead_ldp.simulate(z, schema, epsilon=epsilon, seed=seed * 10 + i) for i, z in enumerate((x, y, moved))]
    own, same = difference(made[0], made[2], sampled=False), difference(made[0], made[1])
    cuts = np.array([12, 18, 24, 36])
    shares = [np.mean(moved <= c) - np.mean(x <= c) for c in cuts]
    yield "share up to", _holds(own.cdf("x", cuts.tolist()), shares, intervals, each=True)
    yield "mean", _holds(own.mean("x"), [moved.mean() - x.mean()], intervals)
    medians = [np.quantile(z, 0.5, method="inverted_cdf") for z in (x, moved)]
    yield "median", _holds(own.quantiles("x", [0.5]), [medians[1] - medians[0]], intervals)
    drawn, laws = difference(made[0], made[2]), laws_of(kind)
    curves = [np.cumsum(law) for law in laws]
    middles = [float(np.searchsorted(curve, 0.5)) for curve in curves]
    yield (
        "everybody: share up to",
        _holds(drawn.cdf("x", cuts.tolist()), (curves[1] - curves[0])[cuts], intervals, True),
    )
    bins = np.add.reduceat(laws[1] - laws[0], BORDERS[:-1])
    yield "everybody: share in a bin", _holds(drawn.histogram("x", BORDERS.tolist()), bins, intervals, True)
    yield "everybody: mean", _holds(drawn.mean("x"), [(laws[1] - laws[0]) @ np.arange(CODES)], intervals)
    yield "everybody: median", _holds(drawn.quantiles("x", [0.5]), [middles[1] - middles[0]], intervals)
    yield "rejected: nothing changed", same.test("x", kind=intervals).rejected  # type: ignore[arg-type]
    yield "rejected: a tenth moved", difference(made[0], made[2]).test("x", kind=intervals).rejected  # type: ignore[arg-type]


def laws_of(kind: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The shares of everybody at every code, before and after a tenth moved: those of `changes` are drawn so."""
    codes = np.arange(CODES)
    below = lognorm(0.4, scale=np.exp(3.0)).cdf(codes.astype(float))
    below[:2] = 0.0  # all below 2 have the code 1
    law = np.diff(below, append=1.0)
    if kind == "lumpy":
        law = 0.4 * law + 0.6 * np.bincount(np.clip(np.round(codes, -1), 10, 60), weights=law, minlength=CODES)
    moved = np.bincount(np.minimum(codes + 20, CODES - 1), weights=law, minlength=CODES)
    return law, 0.9 * law + 0.1 * moved


def rounds(kind: str, epsilon: float, seed: int, intervals: str) -> Held:
    """A share of everybody that walks over six rounds: smooth people by steps of 0.02, lumpy ones not at all."""
    rng = np.random.default_rng(seed)
    walk = np.clip(0.3 + np.cumsum(np.append(0.0, rng.normal(0, 0.02 * (kind == "smooth"), 5))), 0.0, 1.0)
    made = {}
    for i, share in enumerate(walk):
        counts = rng.multinomial(PEOPLE // 3, [0.5 * (1 - share), 0.3 * (1 - share), 0.2 * (1 - share), share])
        schema = "v=nominal,no|hardly|perhaps|yes"  # of two categories alone, two rounds may happen to count the same
        made[str(i)] = ahead_ldp.simulate(histogram=counts, schema=schema, epsilon=epsilon, seed=10 * seed + i)
    series = ahead_ldp.Series(made)
    yield "share in a round", _holds(series.trend("v = yes"), walk, intervals, each=True)
    if intervals == "model":
        yield "smoothed share", _holds(series.trend("v = yes", smooth=True), walk, intervals, each=True)
    else:
        steps = series.changes("v = yes")
        yield (
            "all steps at once",
            all(s["low"] <= d <= s["high"] for s, d in zip(steps, np.diff(walk).tolist(), strict=True)),
        )


def tests(kind: str, epsilon: float, seed: int, intervals: str, method: str | None) -> Held:
    """Tests of "no change" alone, on a quarter of the codes: of samples of everybody, and of the same people twice."""
    rng, codes = np.random.default_rng(10 + seed), CODES // 4
    x, y, moved = (PEOPLES[kind](rng) // 4 for _ in range(3))
    moved = np.where(rng.random(PEOPLE) < 0.1, np.minimum(moved + codes // 3, codes - 1), moved)
    made = [
        ahead_ldp.simulate(histogram=np.bincount(z, minlength=codes), schema=f"x=integer,0,{codes - 1}",
                           epsilon=epsilon, method=method, seed=seed * 10 + i)
        for i, z in enumerate((x, y, moved, x))
    ]  # fmt: skip
    given: Any = intervals
    yield "rejected: nothing changed", difference(made[0], made[1]).test("x", kind=given).rejected
    yield "rejected: the same people", difference(made[0], made[3], sampled=False).test("x", kind=given).rejected
    yield "rejected: a tenth moved", difference(made[0], made[2]).test("x", kind=given).rejected


def speed(epsilon: float = 1.0, people: int = 1_000_000) -> None:
    """Seconds of one processor for each question, the making of its estimate apart."""
    rng = np.random.default_rng(3)
    group = rng.choice(8, people)
    columns: dict[str, Any] = {"pay": rng.lognormal(3.5 + 0.05 * group, 0.4).clip(1, 255)}
    columns["age"] = rng.normal(45, 15, people).clip(18, 89).astype(np.int64)
    columns["team"] = np.array(list("abcdefgh"))[group]
    columns |= {f"x{i}": (rng.integers(0, 16, people) + group) // 2 for i in range(7)}
    schema = ["pay=real,0,256,256", "age=integer,18,89", "team=nominal,a|b|c|d|e|f|g|h"]
    schema += [f"x{i}=integer,0,15" for i in range(7)]
    e, f = (ahead_ldp.simulate(columns, schema, epsilon=epsilon, seed=i) for i in (1, 2))
    margins = {"team": dict.fromkeys("abcdefgh", 1.0)}
    ages = {"age": {"18..29": 1.0, "30..49": 2.0, "50..89": 2.0}}
    asked: dict[str, Callable[[], Any]] = {
        "standard deviation": lambda: e.std("pay"),
        "Gini coefficient": lambda: e.gini("pay"),
        "one point of the Lorenz curve": lambda: e.lorenz("pay", [0.5]),
        "share below 0.6 of the median": lambda: e.below_median("pay"),
        "correlation": lambda: e.correlation("pay", "age"),
        "mutual information": lambda: e.mutual_information("pay", "age"),
        "difference: curve": lambda: difference(e, f).cdf("pay"),
        "difference of means": lambda: difference(e, f).mean("pay"),
        "difference of quartiles": lambda: difference(e, f).quantiles("pay"),
        "share in eight groups": lambda: e.by("team").share("pay >= 50"),
        "mean in eight groups": lambda: e.by("team").mean("pay"),
        "median in eight groups": lambda: e.by("team").quantiles("pay"),
        "share of two in eight groups": lambda: e.by("team").share("pay >= 50 and age >= 40"),
        "weights of eight groups": lambda: e.calibrated(margins).ask("pay >= 50"),
        "weights of two margins": lambda: e.calibrated(margins | ages).ask("pay >= 50"),
        "share in two rounds": lambda: ahead_ldp.Series({"one": e, "two": f}).trend("pay >= 50"),
        "mode region": lambda: e.mode("pay").answers,
    }
    for name, ask in asked.items():
        start = time.process_time()
        ask().interval()
        print(f"{name}: {time.process_time() - start:.2f} s", flush=True)


def rate(repeats: int, epsilons: Sequence[float]) -> None:
    """How the mean miss and the mean width of strict intervals fall with people and with epsilon, on smooth people."""
    once = np.bincount(smooth(np.random.default_rng(1)), minlength=CODES)
    truth = truths(np.repeat(np.arange(CODES), once))
    for epsilon, times in product(epsilons, (1, 16, 256)):
        misses, widths = defaultdict(list), defaultdict(list)
        for seed in range(repeats):
            schema = f"x=integer,0,{CODES - 1}"
            e = ahead_ldp.simulate(histogram=times * once, schema=schema, epsilon=epsilon, seed=1000 + seed)
            for name, found in {"std": e.std(), "top tenth": e.top_share("x", [0.1]), "Gini": e.gini("x")}.items():
                (low,), (high,) = found.interval()
                misses[name].append(abs(found.value - truth[name]))
                widths[name].append(high - low)
        for name in misses:
            miss, width = np.mean(misses[name]), np.mean(widths[name])
            print(f"{epsilon:g}, {times * PEOPLE:,} people, {name}: off by {miss:.4f}, width {width:.4f}", flush=True)


def _holds(found: object, truth: object, intervals: str, each: bool = False) -> bool:
    """Whether an interval holds; of several, one is looked at, the same in every run of a seed."""
    low, high = found.interval(kind=intervals)  # type: ignore[attr-defined]
    held = (low <= np.asarray(truth) + 1e-9) & (np.asarray(truth) <= high + 1e-9)
    return float(held.mean()) if each else bool(held.all())  # type: ignore[return-value]


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tools.questions", description="Coverage of analyses.")
    parser.add_argument("what", choices=("one", "two", "changes", "rounds", "tests", "speed", "rate"))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--epsilons", default="0.2,1,4")
    parser.add_argument("--method", help="of `tests`; left out, the default")
    parser.add_argument("--kind", default="strict", choices=("strict", "model"))
    asked = parser.parse_args(arguments)
    if asked.what == "speed":
        speed()
        return
    if asked.what == "rate":
        rate(asked.repeats, [float(e) for e in asked.epsilons.split(",")])
        return
    given = partial(tests, method=asked.method)
    asks: dict[str, Callable[[str, float, int, str], Held]] = {
        "one": one, "two": two, "changes": changes, "rounds": rounds, "tests": given
    }  # fmt: skip
    run = asks[asked.what]
    over_all = defaultdict(list)
    for epsilon in map(float, asked.epsilons.split(",")):
        for kind in PEOPLES if asked.what != "tests" else ("smooth",):
            held = defaultdict(list)
            for seed in range(asked.repeats):
                for name, holds in run(kind, epsilon, seed, asked.kind):
                    held[name].append(holds)
            for name, runs in held.items():
                over_all[name].append(np.mean(runs))
                print(f"{kind}, {epsilon:g}, {name}: {np.mean(runs):.3f} of {len(runs)}", flush=True)
    for name, shares in over_all.items():
        print(f"all, {name}: {np.mean(shares):.3f}, least {np.min(shares):.3f}")


if __name__ == "__main__":
    main()
