"""The default's build, from people to the estimate, beside that of AHEAD with its paper's settings."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ahead_ldp.engines.simulation import Population
from benchmarks.ahead import Build, builder
from benchmarks.measuring import Section, Sizes, Target, at_most
from benchmarks.populations import gaussian, gaussian_grid, gaussian_records
from benchmarks.rendering import seconds, times

_BOUNDS_MS = 40, 100, 150, 300  # that were promised for the full sizes


def run(sizes: Sizes) -> Section:
    """One attribute with many people and with ten times as many, two attributes, five."""
    side, many = max(sizes.side // 4, 4), 10 * sizes.people
    one, more = (Population.of_histogram(gaussian(n, sizes.cells)) for n in (sizes.people, many))
    two = Population.of_histogram(gaussian_grid(sizes.people, side))
    five = Population.of_records(gaussian_records(sizes.people, 64, 5), (64,) * 5)
    cases = [
        (f"|D| {sizes.cells}, {sizes.people:,} people, epsilon 1", "adaptive", "ahead", one, 1.0),
        (f"|D| {sizes.cells}, {many:,} people, epsilon 1.5", "adaptive", "ahead", more, 1.5),
        (f"two attributes of {side}, {sizes.people:,} people, epsilon 1", "fused", "ahead", two, 1.0),
        (f"five attributes of 64, {sizes.people:,} people, epsilon 1", "fused", "lle", five, 1.0),
    ]
    rows, targets, numbers = list[tuple[str, ...]](), list[Target](), dict[str, float]()
    for (what, default, paper, people, epsilon), bound in zip(cases, _BOUNDS_MS, strict=True):
        ours = builder(default, people.sizes, people, epsilon=epsilon, paper=False)
        theirs = builder(paper, people.sizes, people, epsilon=epsilon)
        spent, old = in_turns([ours, theirs], sizes.repeats)
        rows.append((f"{default}: {what}", seconds(spent), f"{seconds(old)} ({paper})", times(spent / old)))
        targets.append(at_most(f"{default}: {what}", spent, bound / 1000, "s"))
        numbers |= {what: spent, f"{what}, {paper}": old}
    notes = (
        "CPU time: people are divided into groups, every group's tally is sampled, all waves are asked, the estimate"
        " is made. The default is told how many people there are.",
        "The paper's methods take turns with the default's: AHEAD, and LLE for three attributes or more.",
    )
    return Section("Build", ("what", "default", "paper", "ratio"), tuple(rows), notes, tuple(targets), numbers)


def in_turns(builds: Sequence[Build], repeats: int) -> list[float]:
    """CPU seconds of each build, the best of several after one that is not counted; they take turns."""
    best = [float("inf")] * len(builds)
    for turn in range(repeats + 1):
        for i, build in enumerate(builds):
            start = time.process_time()
            build()
            spent = time.process_time() - start
            best[i] = min(best[i], spent) if turn else best[i]
    return best
