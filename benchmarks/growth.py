"""How the cost grows: with the codes, the attributes, and the nodes of the tree."""

from __future__ import annotations

import numpy as np

from ahead_ldp import Estimate
from ahead_ldp.engines.simulation import Population
from ahead_ldp.mechanisms.ahead.pair_estimates import PairEstimate
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from benchmarks.ahead import QUERIES, Build, asker, builder
from benchmarks.measuring import Section, Sizes, at_most, cpu_s, fresh_cpu_s
from benchmarks.populations import gaussian, gaussian_grid, gaussian_records, ranges
from benchmarks.rendering import seconds

Row = tuple[str, ...]


def run(sizes: Sizes) -> Section:
    """Three tables under one head."""
    rows: list[Row] = []
    for d in sizes.domains:
        build = builder("ahead", (d,), Population.of_histogram(gaussian(sizes.people, d)))
        rows.append(_row(f"ahead, |D| {d}", (d,), build, sizes)[0])
    for m in sizes.attributes:
        records = gaussian_records(sizes.people, 64, m)
        if m <= 3:
            people = Population.of_histogram(gaussian_grid(sizes.people, 64, m))
            rows.append(_row(f"ahead, m {m}, |D| 64", (64,) * m, builder("ahead", (64,) * m, people), sizes)[0])
        people = Population.of_records(records, (64,) * m)
        rows.append(_row(f"lle from records, m {m}, |D| 64", (64,) * m, builder("lle", (64,) * m, people), sizes)[0])
    largest = max(sizes.domains)
    nodes, spent = [], []
    for n in sizes.grown:
        build = builder("ahead", (largest,), Population.of_histogram(gaussian(n, largest)))
        row, count, built = _row(f"ahead, |D| {largest}, N {n:.0e}", (largest,), build, sizes)
        rows.append(row)
        nodes.append(count)
        spent.append(built)
    slope = (spent[-1] - spent[0]) / (nodes[-1] - nodes[0])  # the domain alone costs what the smallest tree costs
    power = float((np.diff(np.log(spent)) / np.diff(np.log(nodes))).max())
    notes = (
        f"CPU time, epsilon 1, {sizes.people:,} people where N is not named; answers are {QUERIES} first ones.",
        f"From the smallest to the largest tree on {largest} codes every node adds {seconds(slope)}; from one"
        f" tree to the next the time grows at most with the power {power:.2f} of the nodes (1 is linear).",
    )
    target = at_most("growth with nodes, as a power", power, 1.2)
    numbers = {"rows": rows, "nodes": nodes, "build_s": spent}
    return Section("Growth", ("what", "nodes", "build", "first answers"), tuple(rows), notes, (target,), numbers)


def _row(name: str, shape: tuple[int, ...], build: Build, sizes: Sizes) -> tuple[Row, int, float]:
    built = cpu_s(build, min(sizes.repeats, 3))
    first = fresh_cpu_s(build, asker(shape, ranges(shape, QUERIES)), 2)
    count = _nodes(build())
    return (name, f"{count:,}", seconds(built), seconds(first)), count, built


def _nodes(estimate: Estimate) -> int:
    if isinstance(estimate, PairEstimate):
        return sum(averaged.tree.size for averaged in estimate.trees.values())
    assert isinstance(estimate, TreeEstimate)
    return estimate.tree.size
