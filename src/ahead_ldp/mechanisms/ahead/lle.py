"""LLE: leveraging low-dimensional estimation, one AHEAD tree for each pair of attributes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import ClassVar

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.ahead.decomposition import Decomposition, GrownTrees, levels
from ahead_ldp.mechanisms.ahead.pair_estimates import PairEstimate
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.protocol.mechanism import Group, Run, axes_of, check_choice


@dataclass(frozen=True, slots=True, kw_only=True)
class LLE(GrownTrees):
    """AHEAD for many attributes (DZB+21, Sec. 4.5 and App. F): pairs, consistency on attributes, maximum entropy.

    The trees of all C(m, 2) pairs grow side by side, one level a wave. Privacy is that of ``AHEAD``: a person answers
    one question about one pair. One attribute alone makes a single tree. ``combine`` says how a query on three or more
    attributes is put together: "entropy", or the paper's "weighted_update".
    """

    name: ClassVar[str] = "lle"
    idea: ClassVar[str] = "an adaptive tree for each pair of attributes"
    combine: str = "entropy"

    def __post_init__(self) -> None:
        """Refuse a choice that does not exist."""
        GrownTrees.__post_init__(self)
        check_choice("combine", self.combine, ("entropy", "weighted_update"))

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each level of each pair's tree; a pair gets the same share of people however deep it is."""
        depth = {pair: levels(axes_of(schema, pair), self.fanout) for pair in subsets(schema)}
        common = prod(max(count, 1) for count in set(depth.values()))
        return tuple(
            Group(_id(pair, level), common // count) for pair, count in depth.items() for level in range(1, count + 1)
        )

    def run(self, schema: Schema) -> Run:
        """Algorithm 3: all trees, level by level."""
        trees = {pair: Decomposition.start(self, axes_of(schema, pair)) for pair in subsets(schema)}
        depth = {pair: levels(axes_of(schema, pair), self.fanout) for pair in trees}
        for level in range(1, max(depth.values()) + 1):
            growing = [pair for pair in trees if depth[pair] >= level]
            trees.update({pair: trees[pair].divided() for pair in growing})
            tallies = yield {_id(pair, level): trees[pair].question(pair) for pair in growing}
            trees.update({pair: trees[pair].measured(tallies[_id(pair, level)]) for pair in growing})
        if len(schema.attributes) <= 2:
            return TreeEstimate(schema, next(iter(trees.values())).averaged(), consistent=False)
        return PairEstimate(schema, {pair: tree.averaged() for pair, tree in trees.items()}, self.combine)  # type: ignore[misc]


def subsets(schema: Schema) -> list[tuple[int, ...]]:
    """All pairs of attributes; the only attribute where there is one."""
    m = len(schema.attributes)
    return list(combinations(range(m), 2)) if m > 1 else [(0,)]


def _id(pair: tuple[int, ...], level: int) -> str:
    return "-".join(str(a + 1) for a in pair) + f".{level}"
