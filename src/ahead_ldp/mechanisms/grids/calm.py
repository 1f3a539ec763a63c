"""CALM (ZWLHC18: Zhang, Wang, Li, He, Chen, CCS 2018): whole marginals of a few attributes, made consistent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, prod
from typing import ClassVar

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.grids import Grid
from ahead_ldp.mechanisms.grids.marginal_estimates import MarginalEstimate
from ahead_ldp.oracles import adaptive_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of, check_count, dotted, several_codes

_CANDIDATE_SETS = 1 << 14  # looked at, at most: a bound on the work


@dataclass(frozen=True, slots=True, kw_only=True)
class CALM(Mechanism):
    """Consistent adaptive local marginals: each group reports one marginal in full, with GRR or OUE.

    ``users`` is the number of people expected; with epsilon, the sizes and ``theta`` it fixes how many attributes a
    marginal has, and how many marginals there are. On one or two attributes it is one oracle on the whole domain.
    Domains whose marginals have more than ``max_cells`` cells are refused.
    """

    name: ClassVar[str] = "calm"
    idea: ClassVar[str] = "whole marginals of a few attributes"
    source: ClassVar[str] = "Zhang et al., CCS 2018"
    users: int = 1_000_000  # where nobody declares how many will come
    theta: float = 0.001  # of squared error, as published (ZWLHC18; docs/methods/grids/calm.md)
    max_cells: int = 2**16  # of a question: bounds the work and the reports

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        check_count("users", self.users)
        check_count("max_cells", self.max_cells)
        if not 0 < self.theta < float("inf"):
            raise ValueError(f"expected theta > 0, got {self.theta!r}")

    def attribute_sets(self, schema: Schema) -> list[tuple[int, ...]]:
        """The attributes of each marginal; attributes of one value are in none."""
        several = several_codes(schema)
        if not several:
            return []
        sizes = [schema.sizes[a] for a in several]
        size, count = choose_marginals(self.users, self.epsilon, sizes, self.theta, self.max_cells)
        sets = [tuple(several[i] for i in s) for s in covering_sets(len(several), size, count)]
        for attributes in sets:
            self._check(schema, attributes)
        return sets

    def _check(self, schema: Schema, attributes: tuple[int, ...]) -> None:
        sizes = [schema.sizes[a] for a in attributes]
        if prod(sizes) > self.max_cells:
            names = ", ".join(schema.names[a] for a in attributes)
            cells = f"{' x '.join(map(str, sizes))} = {prod(sizes)} for {names}"
            raise ValueError(
                f"expected marginals of at most {self.max_cells} cells, CALM's reports list them all: {cells}"
            )

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One group for each marginal, named by its attributes' places."""
        return tuple(Group(dotted(attributes)) for attributes in self.attribute_sets(schema))

    def run(self, schema: Schema) -> Run:
        """Ask for all marginals at once, make them agree; others are put together when asked for."""
        sets = self.attribute_sets(schema)
        questions = {dotted(attributes): self._question(schema, attributes) for attributes in sets}
        tallies = (yield questions) if questions else {}
        grids = [Grid.of(q.attributes, q.partition, q.oracle, tallies[group]) for group, q in questions.items()]
        return MarginalEstimate.of(schema, grids, tolerance=1 / self.users)

    def _question(self, schema: Schema, attributes: tuple[int, ...]) -> Question:
        partition = Partition.cells_of(axes_of(schema, attributes))
        return Question(attributes, partition, adaptive_oracle(self.epsilon, partition.cells, ("grr", "oue")))


def noise_error(users: int, epsilon: float | str | Fraction, sizes: list[int], size: int) -> float:
    """Expected squared error that noise leaves in an attribute's marginal, summed over the marginal's cells.

    A marginal of l out of m attributes with L cells has L times the variance of a cell; an attribute is in the share
    l / m of all marginals, which are averaged: (m / l) L Var, however many marginals share the people out.
    """
    cells = _mean_cells(sizes, size)
    oracle = adaptive_oracle(epsilon, max(2, round(cells)), ("grr", "oue"))
    return len(sizes) / size * cells * float(oracle.variance(users))


def choose_marginals(
    users: int, epsilon: float | str | Fraction, sizes: list[int], theta: float, max_cells: int
) -> tuple[int, int]:
    """How many attributes a marginal has, and how many marginals to ask for.

    The reconstruction error falls with both, so both are as large as theta allows: the largest size whose noise error
    is at most theta, but pairs at least; then as many marginals as leave noise and sampling error, (marginals / users),
    at most theta in all.
    """
    m = len(sizes)
    size = min(2, m)
    largest = sorted(sizes, reverse=True)
    while size < m and comb(m, size + 1) <= _CANDIDATE_SETS and prod(largest[: size + 1]) <= max_cells:
        if noise_error(users, epsilon, sizes, size + 1) > theta:
            break
        size += 1
    room = theta - noise_error(users, epsilon, sizes, size)
    return size, max(1, min(comb(m, size), int(room * users)))


def covering_sets(m: int, size: int, count: int) -> list[tuple[int, ...]]:
    """About ``count`` sets of ``size`` out of m attributes in which every pair is found, more where that needs more."""
    every = list(combinations(range(m), size))
    if size <= 2 or count >= len(every):
        return every
    missing = set(combinations(range(m), 2))
    chosen: list[tuple[int, ...]] = []
    while missing:
        best = max(every, key=lambda s: len(missing.intersection(combinations(s, 2))))
        chosen.append(best)
        missing.difference_update(combinations(best, 2))
    rest = [s for s in every if s not in chosen]
    return sorted(chosen + rest[: max(0, count - len(chosen))])


def _mean_cells(sizes: list[int], size: int) -> float:
    """The mean number of cells of the marginals of this many attributes."""
    sums = [1] + [0] * size  # elementary symmetric polynomials
    for d in sizes:
        for i in range(size, 0, -1):
            sums[i] += d * sums[i - 1]
    return sums[size] / comb(len(sizes), size)
