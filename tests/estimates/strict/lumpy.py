"""People who lie in lumps, runs that ask them, and how often intervals hold."""

from __future__ import annotations

from functools import cache

import numpy as np

from ahead_ldp.engines.simulation import Population
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import make_mechanism
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Bools, Ints
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, true_answers


def spike(share: float, people: int, codes: int) -> Ints:
    """One code that holds this share, the others alike."""
    histogram = np.full(codes, int(people * (1 - share) / (codes - 1)))
    histogram[codes // 3] += people - histogram.sum()
    return histogram


def comb(people: int, codes: int) -> Ints:
    """Every eighth code holds somebody, more in the middle."""
    x = np.arange(codes)
    p = np.where(x % 8 == 3, np.exp(-(((x - codes / 2) / (codes / 5)) ** 2)), 0.0)
    return np.random.default_rng(1).multinomial(people, p / p.sum())


def heaped(people: int, codes: int) -> Ints:
    """A skewed density with heaps at multiples of ten and fifty."""
    x = np.arange(codes)
    p = np.exp(-(((np.log(x + 1) - np.log(codes / 4)) / 0.6) ** 2))
    p *= np.where(x % 50 == 0, 60, np.where(x % 10 == 0, 10, 1.0))
    return np.random.default_rng(2).multinomial(people, p / p.sum())


def smooth(people: int, codes: int) -> Ints:
    """Two bumps."""
    x = np.arange(codes)
    p = np.exp(-(((x - 0.3 * codes) / (0.05 * codes)) ** 2)) + 0.6 * np.exp(-(((x - 0.7 * codes) / (0.1 * codes)) ** 2))
    return np.random.default_rng(3).multinomial(people, p / p.sum())


def asked(histogram: Ints, epsilon: float, seed: int, method: str | None = None) -> Estimate:
    """The estimate of one seeded run with these people."""
    names = "abc"[: histogram.ndim]
    schema = as_schema([f"{name}=codes,{size}" for name, size in zip(names, histogram.shape, strict=True)])
    default = "adaptive" if histogram.ndim == 1 else "fused"
    mechanism = make_mechanism(method or default, schema, str(epsilon), int(histogram.sum()))
    rng = np.random.default_rng(seed)
    groups = mechanism.groups(schema)
    parts = Population.of_histogram(histogram).divide(groups, rng) if groups else {}
    session = Session(mechanism, schema)
    while session.is_open:
        wave = session.wave.items()
        session.tell({group: q.oracle.simulate(parts[group].cells(q), rng) for group, q in wave})
    assert session.estimate is not None
    return session.estimate


def heaps_and_ranges(histogram: Ints) -> Workload:
    """The three heaviest codes (or cells), a neighbour of the first, ranges that end there, and two more."""
    heavy = np.argsort(-histogram.reshape(-1), kind="stable")[:3]
    if histogram.ndim == 2:
        rows, size = np.stack(np.unravel_index(heavy, histogram.shape), axis=1), np.array(histogram.shape)
        points = [[[i, i], [j, j]] for i, j in rows.tolist()]
        i, j = rows[0].tolist()
        boxes = [[[i, i], [0, size[1] - 1]], [[0, i], [0, j]], [[0, size[0] // 2], [size[1] // 3, size[1] - 1]]]
        return Workload.from_codes(histogram.shape, np.array(points + boxes))
    size, first = histogram.size, int(heavy[0])
    ranges = [[h, h] for h in heavy.tolist()] + [[min(first + 1, size - 1)] * 2, [first, min(first + 30, size - 1)]]
    ranges += [[0, size // 2 - 1], [size // 10, size // 3 - 1]]
    return Workload.from_codes(histogram.shape, np.array(ranges)[:, None])


@cache
def holds(kind: str, epsilon: float, runs: int, method: str | None = None, interval: str = "strict") -> Bools:
    """Which answers of which runs held, (runs, queries)."""
    people = PEOPLE[kind]
    workload = heaps_and_ranges(people)
    truth = true_answers(workload, people)
    held = []
    for seed in range(runs):
        answers = asked(people, epsilon, seed, method).answer_jointly(workload)
        low, high = answers.interval(0.95, kind=interval)  # type: ignore[arg-type]
        held.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
    return np.stack(held)


PEOPLE: dict[str, Ints] = {
    "half": spike(0.5, 40_000, 128),
    "most": spike(0.9, 40_000, 128),
    "all": spike(1.0, 40_000, 128),
    "comb": comb(60_000, 256),
    "heaped": heaped(400_000, 256),
    "smooth": smooth(400_000, 256),
}
