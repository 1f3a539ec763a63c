"""Grids of overlapping attributes made to agree: Norm-Sub in turn with weighted means of what they share.

YLWLS20 (HDG) has it for one attribute at a time, ZWLHC18 (CALM, after PriView) for every set of attributes that
two marginals share. Both are one linear map, which the standard errors follow backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

import numpy as np

from ahead_ldp.estimates.grids import Grid
from ahead_ldp.estimates.solvers.norm_sub import norm_sub
from ahead_ldp.estimates.solvers.slabs import Slabs
from ahead_ldp.schema.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A grid's part in an agreement: its slabs, and its share of the mean."""

    grid: int
    slabs: Slabs
    counts: Floats  # cells of each slab
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """The grids that hold some attributes, on the slabs that all of them can tell apart.

    Each grid has one weight, the inverse variance of its slab sums: 1 / (cells in a slab) for groups of one size, as
    in YLWLS20. Where slabs differ in their number of cells it is that of the mean slab, so that corrections
    add up to 0 and leave the other attributes' sums alone.
    """

    members: tuple[Member, ...]

    def apply(self, values: list[Floats]) -> None:
        """Move every grid's slab sums to their weighted mean, the difference shared evenly among a slab's cells."""
        sums = [m.slabs.sums(values[m.grid]) for m in self.members]
        mean = sum(m.weight * s for m, s in zip(self.members, sums, strict=True))
        for m, s in zip(self.members, sums, strict=True):
            values[m.grid] = values[m.grid] + m.slabs.spread((mean - s) / m.counts)

    def transpose(self, gradients: list[Floats]) -> None:
        """The same map backwards: from derivatives by the new values to derivatives by the old."""
        moved = [m.slabs.sums(gradients[m.grid]) / m.counts for m in self.members]
        total = reduce(np.add, moved)
        for m, part in zip(self.members, moved, strict=True):
            gradients[m.grid] = gradients[m.grid] + m.slabs.spread(m.weight * total - part)


def agreements(grids: Sequence[Grid], sets: Sequence[tuple[int, ...]]) -> tuple[Agreement, ...]:
    """One agreement for each set of attributes that at least two of the grids hold; all grids have reports."""
    found = []
    for attributes in sets:
        members = [i for i, g in enumerate(grids) if set(attributes) <= set(g.attributes)]
        if len(members) < 2:
            continue
        axes = [[grids[i].attributes.index(a) for a in attributes] for i in members]
        common = [
            reduce(np.intersect1d, (grids[i].borders[ax[place]] for i, ax in zip(members, axes, strict=True)))
            for place in range(len(attributes))
        ]
        slabs = [Slabs.of(grids[i].borders, ax, common) for i, ax in zip(members, axes, strict=True)]
        counts = [s.counts for s in slabs]
        weights = np.array([grids[i].precision / c.mean() for i, c in zip(members, counts, strict=True)])
        weights /= weights.sum()
        found.append(Agreement(tuple(map(Member, members, slabs, counts, weights.tolist()))))
    return tuple(found)


def shared_attributes(grids: Sequence[Grid]) -> list[tuple[int, ...]]:
    """Every set of attributes that is the intersection of some grids, small ones first (PriView's order)."""
    found = {frozenset(a.attributes) & frozenset(b.attributes) for a, b in combinations(grids, 2)}
    fresh = set(found)
    while fresh:
        fresh = {a & b for a in fresh for b in found} - found
        found |= fresh
    return sorted((tuple(sorted(s)) for s in found if s), key=lambda s: (len(s), s))


def make_consistent(
    grids: Sequence[Grid], found: Sequence[Agreement], rounds: int = 100, tolerance: float = 1e-9
) -> list[Grid]:
    """Non-negative grids of sum 1 that nearly agree: both steps in turn, Norm-Sub first and last.

    Stops early when a round moves no cell by more than the tolerance.
    """
    values = [_normalised(g.values) for g in grids]
    for _ in range(rounds + 1 if found else 0):
        before = list(values)
        for agreement in found:
            agreement.apply(values)
        values = [_normalised(v) for v in values]
        if max(np.abs(v - b).max() for v, b in zip(values, before, strict=True)) <= tolerance:
            break
    return [replace(g, values=v) for g, v in zip(grids, values, strict=True)]


def _normalised(values: Floats) -> Floats:
    return norm_sub(values.reshape(-1)).reshape(values.shape)


def answer_variance(
    grids: Sequence[Grid], found: Sequence[Agreement], gradients: Sequence[Floats], answers: Floats
) -> Floats:  # (grids) of (k, columns, ...), (k,) -> (k,)
    """Variance of answers about the frequencies among the people who took part, to first order.

    ``gradients`` are the answers' derivatives by the consistent grids' cells. They are followed back through one
    round of agreement, Norm-Sub taken as the shift that makes a grid's sum 1; then the oracles' noise is added up
    with its covariance between cells, and the chance of who fell into which group.
    """
    pulled = list(gradients)
    for agreement in reversed(found):
        agreement.transpose(pulled)
    noise, drawn = np.zeros(len(answers)), np.zeros(len(answers))
    for grid, gradient in zip(grids, pulled, strict=True):
        weights = gradient.reshape(len(answers), -1)
        weights = weights - weights.mean(axis=1, keepdims=True)
        f = np.maximum(grid.values.reshape(-1), 0.0)
        noise += grid.oracle.quadratic(grid.n, f, weights)
        drawn += (weights**2 @ f - (weights @ f) ** 2) / grid.n
    p = np.clip(answers, 0.0, 1.0)
    everyone = p * (1 - p) / max(sum(g.n for g in grids), 1)  # groups share out the participants
    return np.maximum(noise, 0.0) + np.maximum(drawn - everyone, 0.0)
