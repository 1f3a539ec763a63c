"""Every registered method: fitting and answering, one attribute and several."""

from __future__ import annotations

from ahead_ldp import MECHANISMS
from ahead_ldp.engines.simulation import Population
from benchmarks import published
from benchmarks.ahead import QUERIES, asker, builder
from benchmarks.measuring import Section, Sizes, Target, at_most, cpu_s, fresh_cpu_s
from benchmarks.populations import gaussian, gaussian_records, ranges
from benchmarks.rendering import seconds

ITERATIVE = {"sw", "pripl"}  # find a maximum of a likelihood step by step


def run(sizes: Sizes) -> Section:
    """The cost of each method at |D| = 1024 and a million people; of HDG with five attributes."""
    shape = (sizes.cells,)
    people = Population.of_histogram(gaussian(sizes.people, sizes.cells))
    rows, targets, numbers = [], [], {}
    for name in MECHANISMS:
        build = builder(name, shape, people)
        fit = cpu_s(build, min(sizes.repeats, 3))
        first = fresh_cpu_s(build, asker(shape, ranges(shape, QUERIES)), 2)
        rows.append((f"{name}, |D| {sizes.cells}", seconds(fit), seconds(first)))
        numbers[name] = {"fit_s": fit, "first_answers_s": first}
        targets.append(at_most(f"{name}: fit and first answers", fit + first, 3.0 if name in ITERATIVE else 0.3, "s"))
    if "hdg" in MECHANISMS:
        row, target = _five_attributes(sizes)
        rows.append(row)
        targets.append(target)
    notes = (
        f"CPU time, epsilon 1, {sizes.people:,} people from a histogram, each method with its paper's settings.",
        f"First answers: {QUERIES} random ranges, with whatever the estimate still has to prepare.",
    )
    head = ("method", "fit", "first answers")
    return Section("Every method", head, tuple(rows), notes, tuple(targets), numbers)


def _five_attributes(sizes: Sizes) -> tuple[tuple[str, ...], Target]:
    shape = (64,) * 5
    build = builder("hdg", shape, Population.of_records(gaussian_records(sizes.people, 64, 5), shape))
    fit = cpu_s(build, 1)
    first = fresh_cpu_s(build, asker(shape, ranges(shape, QUERIES)), 1)
    old = f"hdg, 5 attributes of 64 (published: {published.HDG_5D.build_s} s, {published.HDG_5D.queries_s} s)"
    return (old, seconds(fit), seconds(first)), at_most("HDG 5-dim 200 first answers", first, 0.2, "s")
