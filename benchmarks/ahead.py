"""AHEAD: building from a histogram and answering, next to the times of the published code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ahead_ldp import Estimate, Workload, make_mechanism
from ahead_ldp.engines.simulation import Population, run_simulation
from benchmarks import published
from benchmarks.measuring import Section, Sizes, Target, at_least, at_most, cpu_s, fresh_cpu_s
from benchmarks.populations import Ints, gaussian, gaussian_grid, gaussian_records, ranges, schema
from benchmarks.rendering import seconds, times

EPSILON = 1.0
QUERIES = 200
Build = Callable[[], Estimate]
Row = tuple[str, ...]


def builder(
    method: str,
    sizes: tuple[int, ...],
    population: Population,
    epsilon: float = EPSILON,
    paper: bool = True,
    **choices: Any,
) -> Build:
    """A function that runs the method on the population, with the settings of its paper or the default ones."""
    declared = schema(*sizes)
    mechanism = make_mechanism(method, declared, epsilon, population.n, paper=paper, **choices)
    return lambda: run_simulation(mechanism, declared, population, np.random.default_rng(5))


def asker(sizes: tuple[int, ...], asked: Ints, errors: bool = False) -> Callable[[Estimate], object]:
    """A function that checks the ranges and has an estimate answer them."""
    return lambda estimate: estimate.answer(Workload.from_codes(sizes, asked), errors=errors)


def run(sizes: Sizes) -> Section:
    """One, two and five attributes."""
    parts = [one_attribute(sizes), two_attributes(sizes), five_attributes(sizes)]
    notes = (
        "CPU time, epsilon 1, the paper's settings. Building starts from a histogram (LLE: from records) and ends with"
        " the estimate: people are divided into groups, every group's tally is sampled, the tree grows.",
        "First answers: the checks of the ranges and the tables that a new estimate needs are included; standard"
        " errors, which the published code does not give, are a row of their own.",
        published.NOTE,
    )
    head = ("what", "CPU time", "published", "ratio")
    rows = tuple(row for found, _, _ in parts for row in found)
    targets = tuple(target for _, found, _ in parts for target in found)
    return Section("AHEAD", head, rows, notes, targets, {k: v for _, _, found in parts for k, v in found.items()})


Part = tuple[list[Row], list[Target], dict[str, float]]


def one_attribute(sizes: Sizes) -> Part:
    """|D| = 1024 and a million people."""
    shape, old = (sizes.cells,), published.AHEAD_1D
    build = builder("ahead", shape, Population.of_histogram(gaussian(sizes.people, sizes.cells)))
    estimate, asked = build(), ranges(shape, QUERIES)
    many = ranges(shape, sizes.queries)
    t = {
        "build": cpu_s(build, sizes.repeats),
        "first": fresh_cpu_s(build, asker(shape, asked), sizes.repeats),
        "again": cpu_s(lambda: asker(shape, asked)(estimate), sizes.repeats),
        "errors": cpu_s(lambda: asker(shape, asked, errors=True)(estimate), sizes.repeats),
        "many": cpu_s(lambda: asker(shape, many)(estimate), 3),
    }
    name = f"1-dim, |D| {sizes.cells}, {sizes.people:,} people"
    rows = [
        (f"{name}: build", *_beside(t["build"], old.build_s)),
        (f"{QUERIES} first answers", *_beside(t["first"], old.queries_s)),
        (f"{QUERIES} answers, tables ready", *_beside(t["again"], old.queries_s)),
        (f"{QUERIES} answers with standard errors", seconds(t["errors"]), "", ""),
        (f"{sizes.queries:,} answers", seconds(t["many"]), "", ""),
    ]
    targets = [
        at_least("AHEAD 1-dim build against the published time", old.build_s / t["build"], 300, "x"),
        at_least("AHEAD 1-dim 200 first answers against the published time", old.queries_s / t["first"], 300, "x"),
        at_least("1-dim range queries", sizes.queries / t["many"], 1e6, "per second"),
    ]
    return rows, targets, {f"1-dim {k}": v for k, v in t.items()}


def two_attributes(sizes: Sizes) -> Part:
    """1024 x 1024 codes and ten million people."""
    shape = (sizes.side, sizes.side)
    histogram = gaussian_grid(sizes.people_2d, sizes.side)
    build = builder("ahead", shape, Population.of_histogram(histogram))
    built = cpu_s(build, min(sizes.repeats, 3))
    first = fresh_cpu_s(build, asker(shape, ranges(shape, QUERIES)), 2)
    name = f"2-dim, {sizes.side} x {sizes.side}, {sizes.people_2d:,} people"
    rows: list[tuple[str, ...]] = [
        (f"{name}: build", seconds(built), "", ""),
        (f"{QUERIES} first answers", seconds(first), "", ""),
    ]
    target = at_most("AHEAD 2-dim build and 200 first answers", built + first, 2, "s")
    return rows, [target], {"2-dim build": built, "2-dim first": first}


def five_attributes(sizes: Sizes) -> Part:
    """LLE: 64 codes each and a million people."""
    shape, old = (64,) * 5, published.LLE_5D
    build = builder("lle", shape, Population.of_records(gaussian_records(sizes.people, 64, 5), shape))
    built = cpu_s(build, min(sizes.repeats, 2))
    first = fresh_cpu_s(build, asker(shape, ranges(shape, QUERIES)), min(sizes.repeats, 2))
    rows = [
        (f"LLE 5-dim, |D| 64, {sizes.people:,} people: build", *_beside(built, old.build_s)),
        (f"{QUERIES} first answers", *_beside(first, old.queries_s)),
    ]
    target = at_most("LLE 5-dim 200 first answers", first, 0.5, "s")
    return rows, [target], {"LLE 5-dim build": built, "LLE 5-dim first": first}


def _beside(ours: float, old: float) -> Row:
    return seconds(ours), seconds(old), times(old / ours)
