"""The people of plans: reference populations of four shapes, whose attributes are independent and alike.

They are held as a histogram or as records (``reference_population``), or as shares alone, from which every group draws
its answers when it is asked (``IndependentPeople``). The last costs nothing for more people or more attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.codes import Schema
from ahead_ldp.engines.simulation import MOST_CELLS, Population
from ahead_ldp.protocol.mechanism import Mechanism, Question, Tallies, Wave
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import Workload

SHAPES = ("uniform", "zipf", "bumps", "heaped")
SEED = 2021
QUERIES = 200  # random ones, of which errors are told
MOST_RECORDS = 1_000_000  # people of a reference population that is too wide for a histogram
_ZIPF = 1.1  # AHEAD, Sec. 5.1


def reference_population(shape: str, sizes: Sequence[int], users: int, rng: Generator) -> Population:
    """People whose attributes are independent and all of one shape.

    "uniform"; "zipf" with exponent 1.1, as in the paper; "bumps", two bells; "heaped", an exponential of whose people
    a third round to a sixteenth of the domain. A domain too wide for a histogram is filled with at most a million
    people.
    """
    margins = reference_shares(shape, sizes)
    if prod(sizes) <= MOST_CELLS:
        joint: Floats = reduce(np.multiply.outer, margins)
        return Population.of_histogram(rng.multinomial(users, joint.reshape(-1)).reshape(tuple(sizes)))
    n = min(users, MOST_RECORDS)
    columns = [rng.choice(p.size, size=n, p=p) for p in margins]
    return Population.of_records(np.stack(columns, axis=1), sizes)


def reference_shares(shape: str, sizes: Sequence[int]) -> list[Floats]:
    """The shares of the codes of each attribute, from which the people of a shape are drawn."""
    if shape not in SHAPES:
        raise ValueError(f"expected a shape among {', '.join(SHAPES)}, got {shape!r}")
    return [_margin(shape, size) for size in sizes]


def _margin(shape: str, size: int) -> Floats:
    x: Floats = (np.arange(size) + 0.5) / size
    weights: Floats = np.ones(size)  # uniform
    if shape == "zipf":
        weights = np.arange(1.0, size + 1) ** -_ZIPF
    elif shape == "bumps":
        weights = np.exp(-0.5 * ((x - 0.3) / 0.08) ** 2) + 0.5 * np.exp(-0.5 * ((x - 0.7) / 0.1) ** 2)
    elif shape == "heaped":
        weights = np.exp(-4 * x)
        every = max(size // 16, 1)
        rounded = np.bincount(np.arange(size) // every * every, weights=weights, minlength=size).astype(float)
        weights = 2 / 3 * weights + 1 / 3 * rounded
    return weights / weights.sum()


def shape_rng(shape: str) -> Generator:
    """The generator that draws the people of a reference shape."""
    return np.random.default_rng([SEED, SHAPES.index(shape)])


@dataclass(frozen=True, slots=True, eq=False)
class IndependentPeople:
    """People known by the shares of every attribute's codes, which are independent; each group draws its own.

    As a `Population` in a simulation, but that answers are compared with the shares they were drawn from, not with the
    shares among those who were drawn.
    """

    margins: Sequence[Floats]
    users: int

    def truth(self, workload: Workload) -> Floats:
        """The share of people in every query's boxes."""
        return workload.add_up(_inside(self.margins, workload.boxes[..., 0], workload.boxes[..., 1]))

    def asked(self, mechanism: Mechanism, schema: Schema, rng: Generator) -> list[Wave]:
        """The questions of every wave, as they are asked of such people; no estimate is made of the last answers."""
        people, waves, run = self.divide(mechanism, schema, rng), list[Wave](), mechanism.run(schema)
        while sum(map(len, waves)) < len(people):  # every group is asked once
            waves.append(run.send(self.answers(waves[-1], people, rng)) if waves else next(run))
        run.close()
        return waves

    def divide(self, mechanism: Mechanism, schema: Schema, rng: Generator) -> dict[str, int]:
        """How many people draw each group."""
        groups = mechanism.groups(schema)
        share = np.array([group.share for group in groups], float)
        drawn = rng.multinomial(self.users, share / share.sum()).tolist() if groups else []
        return dict(zip((group.id for group in groups), drawn, strict=True))

    def answers(self, wave: Wave, people: Mapping[str, int], rng: Generator) -> Tallies:
        """What the groups of a wave say, so many people in each."""
        return {g: q.oracle.simulate(self._cells(q, people[g], rng), rng) for g, q in wave.items()}

    def _cells(self, question: Question, n: int, rng: Generator) -> Ints:
        """How many of a group's people are in each cell of its question."""
        partition = question.partition
        shares = _inside([self.margins[a] for a in question.attributes], partition.lo, partition.hi)
        return rng.multinomial(n, shares / shares.sum())


def _inside(margins: Sequence[Floats], lo: Ints | Floats, hi: Ints | Floats) -> Floats:  # (k, m) -> (k,)
    """The share of people inside each box."""
    inside = np.ones(len(lo))
    for a, margin in enumerate(margins):
        below = np.append(0.0, np.cumsum(margin))
        inside = inside * (below[hi[:, a].astype(np.int64)] - below[lo[:, a].astype(np.int64)])
    return inside
