"""The tables of forecasts that `ahead plan` reads: simulate, fit, write. One command makes all of them anew.

python -m tools.forecasts [--only PART,...] [--runs FOLDER]
python -m tools.forecasts --check

A part is a method on a kind of attributes. Its collections are spread evenly over sizes, people and epsilon, simulated
on the four reference populations, and a smooth function of these is fitted to what came out (decision 026). ``--runs``
keeps what was simulated, so that a fit can be made again, and a run that was stopped goes on. ``--check`` simulates
collections that no table was made from, and prints what the tables say beside it. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, prod, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.engines.progress import Bar
from ahead_ldp.engines.simulation import MOST_CELLS, Population, run_simulation
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import class_of
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.protocol.session import Session
from ahead_ldp.research import forecasts, references, targets, widths
from ahead_ldp.research.evaluation import choose, trial_rng, workload_rng
from ahead_ldp.research.forecasts import NotTabled, Table, look_up
from ahead_ldp.research.references import IndependentPeople, reference_population, reference_shares, shape_rng
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.attributes import as_schema, codes, nominal
from ahead_ldp.schema.workloads import Workload, random_workload, true_answers, true_answers_from_records

SEED = 26_026
REPEATS = {1: 4, 2: 3}  # of errors, by the number of attributes; widths scatter less and are looked at once
OTHER_REPEATS = 2
WORST, WORST_REPEATS = "bumps", 6  # of three attributes and more: the shape that targets are about, nearly always
EPSILONS = (0.048, 6.2)
MOST_NOISE = 1.0  # standard deviation of a share: beyond it nothing is told
MOST_NOISE_OF_SEVERAL = 0.2
FEWEST_ASKED = 200  # people for every attribute and pair: with fewer, no pairs are asked (decision 019)
PEOPLE = {"adaptive": (280, 32_000_000), "pairs": (480, 21_000_000), "fused": (1_100, 11_000_000)}
REACH: dict[str, dict[str, list[float]]] = {  # what the tables say that they reach to: a little less
    "adaptive": {"codes, in the geometric mean": [2, 4096], "people": [300, 30_000_000], "epsilon": [0.05, 6]},
    "pairs": {"codes, in the geometric mean": [4, 1024], "people": [500, 20_000_000], "epsilon": [0.05, 6]},
    "fused": {
        "codes, in the geometric mean": [4, 256],
        "people": [1_200, 2_000_000],
        "epsilon": [0.05, 6],
        "standard deviation of a share": [0.0015, 0.06],  # beyond, fits bend: decision 026
    },
}
BITS = {"adaptive": (1.0, 12.0), "pairs": (1.5, 10.0), "fused": (1.9, 8.1)}  # codes, in the geometric mean
ATTRIBUTES = {  # of a part: how often so many are looked at
    "pairs": {2: 1.0},
    "fused": {3: 0.30, 4: 0.22, 5: 0.20, 6: 0.12, 8: 0.09, 10: 0.07},
}
AXIS_NAMES = ("attributes", "codes", "deviation", "epsilon")
FEWEST_CODES, MOST_CODES = 5, 4096  # up to four codes there is one question: that is quickly simulated
MOST_NOISY = 2.0  # epsilon up to which it counts for nothing who was drawn from a population of several attributes
POOLED = 6  # runs, of which a plan's target takes the 95 % point
LEAST_HALF = 1e-4  # of a width that is fitted: with few codes the interval of a quantile may be one code, of width 0
MANY = 6  # attributes whose strict intervals take seconds: they are looked at on two shapes of four


@dataclass(frozen=True, slots=True)
class Collection:
    """One that is simulated."""

    schema: Schema
    users: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Part:
    """A method on a kind of attributes, and how many collections are simulated."""

    name: str
    method: str
    settings: str
    points: int
    widths: int  # of them, the first: so many tell the widths, which scatter less
    ships: bool  # whether its table has agreed with simulations (decision 026)
    base: str = ""  # the part that this one is fitted over: what more attributes make of it

    def mechanism(self, collection: Collection) -> Mechanism:
        """The method as it is planned for a collection."""
        return choose(self.method, collection.schema, collection.epsilon, collection.users, self.settings)[0]


PARTS = (
    Part("adaptive", "adaptive", "default", 1800, 400, True),
    Part("pairs", "fused", "default", 790, 600, True),
    Part("fused", "fused", "default", 276, 110, True, base="pairs"),
)


def design(part: Part) -> Iterator[Collection]:
    """Collections without end, evenly spread over the logarithms of sizes, people and epsilon."""
    rng, several = np.random.default_rng([SEED, len(part.name)]), part.method == "fused"
    least, most = PEOPLE[part.name]
    for u in _evenly(5):
        epsilon = float(f"{np.exp(_between(log(0.04), log(9), u[0])):.3g}")
        users = round(10 ** (_between(2.5, 7.5, u[1]) if several else _between(2.0, 8.5, u[1])))
        if several:
            counts = ATTRIBUTES[part.name]
            m = int(np.searchsorted(np.cumsum(list(counts.values())), u[3]))
            schema = _mixed(list(counts)[m], _between(*BITS[part.name], u[2]), u[4], rng)
        else:
            schema = as_schema(codes("x1", round(2 ** _between(*BITS[part.name], u[2]))))
        reached = EPSILONS[0] <= epsilon <= EPSILONS[1] and least <= users <= most
        found = Collection(schema, users, epsilon)
        if len(schema.sizes) > 2 and not (_tells(found) and _can_be_drawn(found)):
            continue
        if reached and max(schema.sizes) >= FEWEST_CODES and forecasts.deviation(users, epsilon) < MOST_NOISE:
            yield found


def _can_be_drawn(c: Collection) -> bool:
    """Whether all people are drawn where errors are told of those who were (``_people``)."""
    return c.epsilon <= MOST_NOISY or prod(c.schema.sizes) <= MOST_CELLS or c.users <= references.MOST_RECORDS


def _mixed(m: int, bits: float, kind: float, rng: Generator) -> Schema:
    """Attributes of 2^bits codes in the geometric mean: alike, of different sizes, or some of them nominal."""
    spread = rng.normal(0.0, 1.5, m)
    sizes = np.clip(np.rint(2 ** (bits + (kind > 0.4) * (spread - spread.mean()))), 2, MOST_CODES).astype(int).tolist()
    named = [kind > 0.7 and size <= 64 and rng.random() < 0.4 for size in sizes]
    return as_schema([_attribute(f"x{a + 1}", size, n) for a, (size, n) in enumerate(zip(sizes, named, strict=True))])


def _attribute(name: str, size: int, named: bool) -> Attribute:
    return nominal(name, [f"v{i}" for i in range(size)]) if named else codes(name, size)


def _evenly(dimensions: int) -> Iterator[Floats]:
    """Points of the unit cube that fill it evenly: multiples of powers of the root of x^(dimensions + 1) = x + 1."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    n = 0
    while True:
        n += 1
        yield (0.5 + n * steps) % 1


def _between(low: float, high: float, share: float) -> float:
    return float(low + (high - low) * share)


# Simulation.


def simulated(
    mechanism: Mechanism,
    c: Collection,
    repeats: int,
    looked: Sequence[str],
    seed: int,
    shapes: Sequence[str] = references.SHAPES,
) -> dict[str, Any]:
    """Errors and widths by shape: the mean squared error of every repetition, the pooled 95 % point, half widths.

    Widths are of the last repetition, on the shapes that are looked at.
    """
    schema, found = c.schema, dict[str, Any]()
    workload = random_workload(schema, references.QUERIES, workload_rng(references.SEED))
    for shape in shapes:
        people = _people(shape, c)
        truth, shares, distances = _truth(people, workload), reference_shares(shape, schema.sizes), []
        for k in range(repeats):
            estimate = _estimate(mechanism, schema, people, trial_rng(seed, mechanism.name, c.epsilon, k))
            distances.append(np.abs(estimate.answer(workload, errors=False).values - truth))
        found[shape] = {"mse": np.mean(np.square(distances), axis=1).tolist()}
        found[shape]["error"] = float(np.quantile(distances, targets.LEVEL))
        for kind in widths.KINDS if shape in looked else ():
            half = widths.half_widths(estimate, shares, kind, references.SEED)
            found[shape][kind] = float(np.mean(half)) if len(half) else None
    return found


def _people(shape: str, c: Collection) -> Population | IndependentPeople:
    """As in a plan. With several attributes and much noise by their shares alone, which is quicker.

    Then the chance by which people differ from their shares counts as error: at the very most a sixth, at epsilon 2.
    """
    if len(c.schema.sizes) > 1 and c.epsilon <= MOST_NOISY:
        return IndependentPeople(reference_shares(shape, c.schema.sizes), c.users)
    return reference_population(shape, c.schema.sizes, c.users, shape_rng(shape))


def _truth(people: Population | IndependentPeople, workload: Workload) -> Floats:
    if isinstance(people, IndependentPeople):
        return people.truth(workload) + _who_was_drawn(people, workload)
    if people.records is not None:
        return true_answers_from_records(workload, people.records)
    assert people.histogram is not None
    return true_answers(workload, people.histogram)


def _who_was_drawn(people: IndependentPeople, workload: Workload) -> Floats:
    """How far shares among people who are drawn are from those that they are drawn from, beyond all pairs.

    What is drawn of single attributes and pairs is little beside the noise about them. Nobody is asked about three
    attributes, so what is drawn of more stays in the error as it is. The share of a box is a product; its variance is
    split by how many attributes a term is about.
    """
    upto = [np.ones(len(workload)), np.zeros(len(workload)), np.zeros(len(workload))]  # terms of 0, 1, 2 attributes
    inside = np.ones(len(workload))
    for margin, (lo, hi) in zip(people.margins, workload.boxes.astype(np.int64).transpose(1, 2, 0), strict=True):
        below = np.append(0.0, np.cumsum(margin))
        p = below[hi] - below[lo]
        alone, more = p**2, p * (1 - p)
        upto = [upto[0] * alone, upto[1] * alone + upto[0] * more, upto[2] * alone + upto[1] * more]
        inside = inside * p
    variance = np.maximum(inside - sum(upto), 0.0) / people.users
    return np.random.default_rng(SEED).normal(0.0, np.sqrt(variance))


def _estimate(mechanism: Mechanism, schema: Schema, people: Population | IndependentPeople, rng: Generator) -> Estimate:
    if isinstance(people, Population):
        return run_simulation(mechanism, schema, people, rng)
    n, session = people.divide(mechanism, schema, rng), Session(mechanism, schema)
    while session.estimate is None:
        session.tell(people.answers(session.wave, n, rng))
    return session.estimate


def simulate(part: Part, folder: Path) -> list[dict[str, Any]]:
    """What was simulated, a line for each collection; those that are not yet in the folder are simulated now."""
    path = folder / f"{part.name}.jsonl"
    done = len(path.read_text("utf-8").splitlines()) if path.exists() else 0
    collections = design(part)
    with path.open("a", encoding="utf-8") as file, Bar(f"simulating {part.name}") as bar:
        for i in range(part.points):
            collection = next(collections)
            if i < done:
                continue
            started = time.process_time()
            several, shapes = len(collection.schema.sizes), references.SHAPES
            looked = () if i >= part.widths else shapes[i % 2 :: 2] if several >= MANY else shapes
            repeats = REPEATS.get(several, OTHER_REPEATS)
            mechanism = part.mechanism(collection)
            found = simulated(mechanism, collection, repeats, looked, SEED)
            about = [[a.kind == "nominal", a.size] for a in collection.schema.attributes]
            if several > 2:
                found[WORST] |= simulated(mechanism, collection, WORST_REPEATS, (), SEED, [WORST])[WORST]
            line = {"attributes": about, "users": collection.users, "epsilon": collection.epsilon, "found": found}
            print(json.dumps({**line, "cpu_s": round(time.process_time() - started, 2)}), file=file, flush=True)
            bar(i + 1, part.points)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()[: part.points]]


# Fit.

AXES = {  # nodes of a part: attributes; as binary logarithms codes in the geometric mean, noise, epsilon
    "adaptive": (
        [0.0],
        [2, 3, 4, 5, 6, 7, 8, 9, 10.5, 12],
        [-15, -13, -11, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0],
        [-4.7, -2.5, -1, 0, 1, 2, 3.2],
    ),
    "pairs": (
        [2.0],
        [1, 2, 3, 4, 5, 6, 7, 8.5, 10],
        [-15, -13, -11, -9, -8, -7, -6, -5, -4, -3, -2, 0],
        [-4.7, -2.5, -1, 0, 1, 3.2],
    ),
    "fused": ([3, 4, 6, 10], [1.5, 3.5, 6, 9], [-13, -10, -7, -5, -2], [-4.7, -1.5, 1, 2.7]),  # over pairs
}
STIFFNESS = 10.0 ** np.arange(-2, 4)  # that are tried, for every axis and against twist
STIFFER = (1.0, 10.0, 100.0, 1e4)  # by which a shape's own part is, at least as much as what shapes have in common
_LEVEL = 1e-6  # of the penalty: pulls nodes that no data reach towards their neighbours


@dataclass(frozen=True, slots=True)
class Fit:
    """Nodes that were fitted, and how well."""

    nodes: Floats
    missed: Floats  # how far each value is from what the others alone would say of it
    own: float  # how much of a value's fit is itself, in the mean

    @property
    def off(self) -> float:
        """How far a value is from what the others say of it: the root of the mean square."""
        return _rms(self.missed)

    @property
    def variance(self) -> float:
        """Of the fit, in the mean over the values."""
        return self.own * self.off**2


@dataclass(frozen=True, slots=True)
class Smooth:
    """A function on the nodes with small second differences and little twist, near given values at given points."""

    basis: Floats  # (points, nodes): how much of each node a point has
    # (nodes, nodes) each: squared second differences along each axis, then mixed ones of all pairs
    bends: tuple[Floats, ...]

    @classmethod
    def of(cls, axes: Sequence[Floats], points: Floats) -> Smooth:
        counts = [len(nodes) for nodes in axes]
        basis = np.zeros((len(points), prod(counts)))
        for row, point in zip(basis, points, strict=True):
            weights, places = forecasts.corners(axes, point)
            row[places] = weights
        bends = [
            _squared([_second_differences(n) if a == b else None for b, n in enumerate(axes)], counts)
            for a in range(len(axes))
        ]
        twists = [
            _squared([_first_differences(n) if b in pair else None for b, n in enumerate(axes)], counts)
            for pair in combinations(range(len(axes)), 2)
        ]
        bends.append(np.sum(twists, axis=0))
        return cls(basis, tuple(bends))

    def fit(self, values: Floats, stiffness: Sequence[float]) -> Fit:
        """The nodes nearest to values that are not too bent. Unknown values are nan."""
        known = np.isfinite(values)
        basis = self.basis[known]
        cost = sum(s * bend for s, bend in zip(stiffness, self.bends, strict=True)) + _LEVEL * np.eye(basis.shape[1])
        solved = solve(basis.T @ basis + cost, basis.T, assume_a="pos")
        nodes, own = solved @ values[known], np.einsum("ij,ji->i", basis, solved)
        missed = np.full(values.shape, np.nan)
        missed[known] = (values[known] - basis @ nodes) / (1 - own)
        return Fit(nodes, missed, float(np.mean(own)))

    def best(self, values: Floats) -> list[float]:
        """The stiffness of every axis, and against twist, that foretells left-out values best."""
        chosen, least = [1.0 for _ in self.bends], float("inf")
        for _ in range(2):
            for a, bend in enumerate(self.bends):
                for s in STIFFNESS if bend.any() else ():
                    tried = [*chosen[:a], float(s), *chosen[a + 1 :]]
                    off = self.fit(values, tried).off
                    if off < least:
                        chosen, least = tried, off
        return chosen

    def stiffer(self, values: Floats, stiffness: Sequence[float]) -> Fit:
        """The fit with all axes stiffer by the same factor, the one that foretells left-out values best."""
        fits = [self.fit(values, [factor * s for s in stiffness]) for factor in STIFFER]
        return min(fits, key=lambda fit: fit.off)


def _squared(differences: Sequence[Floats | None], counts: Sequence[int]) -> Floats:  # -> (nodes, nodes)
    """The sum of squares of differences along some axes, as a quadratic form."""
    form: Floats = np.ones((1, 1))
    for rows, count in zip(differences, counts, strict=True):
        form = np.asarray(np.kron(form, np.eye(count) if rows is None else rows.T @ rows), np.float64)
    return form


def _first_differences(nodes: Floats) -> Floats:  # (n,) -> (n - 1, n)
    return np.diff(np.eye(len(nodes)), axis=0)


def _second_differences(nodes: Floats) -> Floats:  # (n,) -> (n - 2, n)
    rows = np.zeros((max(len(nodes) - 2, 0), len(nodes)))
    for i, row in enumerate(rows):
        left, right = nodes[i + 1] - nodes[i], nodes[i + 2] - nodes[i + 1]
        row[i : i + 3] = np.array([right, -(left + right), left]) / (left + right) * 2
    return rows


def _rms(missed: Floats) -> float:
    return float(np.sqrt(np.nanmean(missed**2)))


def fitted(part: Part, lines: Sequence[dict[str, Any]], base: Table | None = None) -> Table:
    """The table of a part: what the shapes have in common, and each shape's own, as functions on the nodes.

    Of the mean squared error that is fitted which goes beyond the square of the 95 % point: both scatter together.
    Over a base, that is fitted which goes beyond what the base says.
    """
    axes = [np.array(nodes, float) for nodes in AXES[part.name]]
    lines = [line for line in lines if _tells(_collection(line))]
    collections = [_collection(line) for line in lines]
    points = [forecasts.coordinates(c.schema.sizes, c.users, c.epsilon) for c in collections]
    smooth, scatter = Smooth.of(axes, np.array(points)), _scatter(lines)
    below = np.array([base.logarithms(point) for point in points]) if base else None  # (lines, size, shape)
    nodes, variance = dict[str, Floats](), dict[str, float]()
    for size in sorted(forecasts.SIZES, key=lambda size: size == "mse"):  # last: it rests on the nodes of "error"
        values = _beyond(lines, size, scatter, below)
        if size == "mse":
            values = values - 2 * _beyond(lines, "error", scatter, below)
        known = np.isfinite(values)
        mean = np.where(known.any(0), np.where(known, values, 0).sum(0) / np.maximum(known.sum(0), 1), np.nan)
        stiffness = smooth.best(mean)
        common = smooth.fit(mean, stiffness)
        own = [smooth.stiffer(row - smooth.basis @ common.nodes, stiffness) for row in values]
        nodes[size] = np.stack([common.nodes + fit.nodes for fit in own])
        variance[size] = common.variance + float(np.mean([fit.variance for fit in own]))
        if base:  # what shapes have in common is in the base: some are foretold better by themselves
            alone = [smooth.fit(row, smooth.best(row)) for row in values]
            for s, (fit, other) in enumerate(zip(alone, own, strict=True)):
                if fit.off < other.off:
                    nodes[size][s] = fit.nodes
        if size == "mse":
            nodes[size] += 2 * nodes["error"]
            variance[size] += 4 * variance["error"]
        off = _rms(np.stack([fit.missed for fit in own]))
        print(
            f"{part.name}, {size}: a left-out collection is off by {off:.3f}, the table by {sqrt(variance[size]):.3f}"
        )
    doubt = 1.96 * sqrt(variance["mse"])
    whole = np.rint(np.stack([nodes[size] for size in forecasts.SIZES]) / forecasts.STEP).astype(np.int64)
    return Table(
        _about(part, collections, axes, scatter, doubt),
        tuple(axes),
        whole.reshape(*whole.shape[:2], *(len(a) for a in axes)),
        base,
    )


def _beyond(lines: Sequence[dict[str, Any]], size: str, scatter: float, below: Floats | None) -> Floats:
    """What is fitted, (shapes, lines): all of it, or what goes beyond a base."""
    values = _values(lines, size, scatter)
    return values if below is None else values - below[:, forecasts.SIZES.index(size), :].T


def _values(lines: Sequence[dict[str, Any]], size: str, scatter: float) -> Floats:  # -> (shapes, lines)
    return np.array([[_logarithm(line, shape, size, scatter) for line in lines] for shape in references.SHAPES])


def _tells(c: Collection) -> bool:
    """Whether reports tell so much that errors follow the noise. With several attributes, pairs have to be asked too.

    Where they tell less, answers are what is believed beforehand, and no smooth function of these coordinates has that.
    """
    several = len(c.schema.sizes) > 1
    enough = c.users >= FEWEST_ASKED * forecasts.questions(len(c.schema.sizes))
    return not several or (enough and forecasts.deviation(c.users, c.epsilon) < MOST_NOISE_OF_SEVERAL)


def _collection(line: dict[str, Any]) -> Collection:
    attributes = [_attribute(f"x{a + 1}", size, named) for a, (named, size) in enumerate(line["attributes"])]
    return Collection(as_schema(attributes), line["users"], line["epsilon"])


def _about(part: Part, collections: Sequence[Collection], axes: Sequence[Floats], *doubts: float) -> dict[str, Any]:
    cls, several = class_of(part.method), part.method != "adaptive"
    scatter, doubt = doubts
    counts = [len(c.schema.sizes) for c in collections]
    noise = [forecasts.deviation(c.users, c.epsilon) for c in collections]
    return {
        "name": part.name,
        "method": part.method,
        "settings": part.settings,
        **({"base": part.base} if part.base else {}),
        "versions": [cls.version, cls.estimate_version],
        "shapes": list(references.SHAPES),
        "points": part.points,
        "collections": len(collections),
        "seed": SEED,
        "scatter": round(scatter, 3),
        "doubt": round(doubt, 3),
        "simulated": {
            "attributes": [min(counts), max(counts)],
            "codes": [2, MOST_CODES] if several else [FEWEST_CODES, MOST_CODES],
            "people for every attribute and pair": [FEWEST_ASKED if several else 1, 30_000_000],
            "standard deviation of a share": [min(noise), MOST_NOISE_OF_SEVERAL if several else MOST_NOISE],
            "share of nominal attributes": 0.5 if several else 0.0,
            **REACH[part.name],
        },
        "axes": {name: axis.tolist() for name, axis in zip(AXIS_NAMES, axes, strict=True)},
    }


def _scatter(lines: Sequence[dict[str, Any]]) -> float:
    """The standard deviation of one run's mean squared error over its mean, pooled over all collections."""
    runs = [np.array(found["mse"]) for line in lines for found in line["found"].values()]
    return float(np.sqrt(np.mean([r.var(ddof=1) / r.mean() ** 2 for r in runs])))


def _logarithm(line: dict[str, Any], shape: str, size: str, scatter: float) -> float:
    """What is fitted: the logarithm of what is expected; nan where nothing was measured.

    Means over few runs scatter, so the mean of their logarithms is too low, and so is the 95 % point of few runs
    pooled. Both are made up for, to the second order in the scatter (decision 026).
    """
    found, runs, c = line["found"][shape], len(line["found"][shape]["mse"]), _collection(line)
    unit = forecasts.weight(size, shape, c.schema, c.users, c.epsilon)
    if size == "mse":
        return float(np.log(np.mean(found["mse"]) / unit)) + scatter**2 / (2 * runs)
    if size == "error":
        return float(np.log(found["error"] / unit)) + scatter**2 * (1 / (4 * runs) - 1 / (8 * POOLED))
    half = found.get(size)
    return float("nan") if half is None else float(np.log(max(half, LEAST_HALF) / unit))


# Check.

CHECKED = (  # sizes, people, epsilon
    ([82], 100_000, 1.0),
    ([16], 5_000, 1.0),
    ([100], 20_000, 0.5),
    ([1024], 1_000_000, 0.2),
    ([256], 10_000, 0.3),
    ([2000], 300_000, 2.0),
    ([50], 2_000, 3.0),
    ([512], 10_000_000, 1.0),
    ([82, 64], 100_000, 1.0),
    ([256, 256], 1_000_000, 0.5),
    ([20, 5], 10_000, 1.0),
    ([100, 30], 50_000, 0.2),
    ([64, 16, 5], 200_000, 2.0),
    ([64, 64, 64], 1_000_000, 1.0),
    ([32, 32, 32], 20_000, 1.0),
    ([16, 16, 16], 5_000, 3.0),
    ([32, 32, 32, 32], 300_000, 0.5),
    ([100, 50, 20, 10], 50_000, 1.0),
    ([64, 64, 64, 64, 64], 1_000_000, 1.0),
    ([20, 20, 10, 10, 5], 30_000, 2.0),
    ([16] * 6, 100_000, 0.3),
    ([100] * 6, 2_000_000, 1.0),
    ([32] * 8, 300_000, 1.0),
    ([16] * 10, 100_000, 1.0),
)
CHECK_SEED, CHECK_REPEATS = 26_027, {1: 48, 2: 24}  # so many that chance is half of what is looked for
FEWER_REPEATS = 16


def check() -> None:
    """Print, for each checked collection, what its table says over what is simulated, by size and shape."""
    shapes, names = references.SHAPES, ("root of MSE", "95 % of errors", *widths.KINDS)
    print("| codes | people | epsilon |", " | ".join(["worst shape, 95 % of errors", *names]), "|")
    print("|", " --- |" * (4 + len(names)), sep="")
    off: dict[str, list[float]] = {name: [] for name in ("worst", *names)}
    with Bar("checking") as bar:
        for i, (sizes, users, epsilon) in enumerate(CHECKED):
            schema = as_schema([codes(f"x{a + 1}", size) for a, size in enumerate(sizes)])
            c, repeats = Collection(schema, users, epsilon), CHECK_REPEATS.get(len(sizes), FEWER_REPEATS)
            mechanism = choose(None, schema, epsilon, users)[0]
            try:
                said = look_up(mechanism, schema, users)
            except NotTabled:
                continue
            found = simulated(mechanism, c, repeats, shapes, CHECK_SEED)
            ratios: dict[str, list[float]] = {
                "worst": [max(said.error.values()) / max(found[s]["error"] for s in shapes)],
                names[0]: [sqrt(said.mse[s] / np.mean(found[s]["mse"])) for s in shapes],
                names[1]: [said.error[s] / found[s]["error"] for s in shapes],
            }
            for kind in widths.KINDS:
                ratios[kind] = [(said.half[s][kind] or 0.0) / found[s][kind] for s in shapes]
            for name, values in ratios.items():
                off[name] += np.log(values).tolist()
            row = [" x ".join(map(str, sizes)), f"{users:,}", f"{epsilon:g}"]
            print("|", " | ".join([*row, *(" ".join(f"{x:.2f}" for x in v) for v in ratios.values())]), "|", flush=True)
            bar(i + 1, len(CHECKED))
    for name, logs in off.items():
        within = np.mean(np.abs(logs) <= log(1.15))
        print(
            f"{name}: mean of logarithms {np.mean(logs):+.3f}, rms {_rms(np.array(logs)):.3f}, within 15 % {within:.0%}"
        )


# All of it.


def main() -> None:
    """Simulate what is missing, fit, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="parts to make anew, with commas between them; the others stay as they are")
    parser.add_argument("--runs", type=Path, help="a folder that keeps what is simulated")
    parser.add_argument("--check", action="store_true", help="simulate other collections, and write nothing")
    given = parser.parse_args()
    if given.check:
        check()
        return
    names = [part.name for part in PARTS if part.ships] if given.only is None else given.only.split(",")
    tables = {t.about["name"]: t for t in forecasts.read(forecasts.PATH)} if given.only else {}
    with TemporaryDirectory() as temporary:
        folder = given.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:  # a base stands before what is over it
            if part.name in names or (part.base in names and part.ships):
                tables[part.name] = fitted(part, simulate(part, folder), tables.get(part.base))
    write([tables[part.name] for part in PARTS if part.name in tables], forecasts.PATH)


def write(tables: Sequence[Table], path: Path) -> None:
    """All tables in one file."""
    abouts = json.dumps([table.about for table in tables])
    arrays: dict[str, Any] = {table.about["name"]: table.nodes.astype(np.int16) for table in tables}
    np.savez_compressed(path, about=np.array(abouts), **arrays)


if __name__ == "__main__":
    main()
