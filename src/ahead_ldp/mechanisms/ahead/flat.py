"""Flat: one question on all cells, answered by everybody."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.measurements import Measurement
from ahead_ldp.estimates.solvers.norm_sub import nearest_in_simplex
from ahead_ldp.mechanisms.ahead.averaging import average
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.oracles import linear_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat(Mechanism):
    """A frequency oracle on every code, and sums of its estimates: the baseline without any hierarchy.

    ``oracle`` is a registered name, or "best" for the least variance; ``non_negative`` applies Norm-Sub.
    """

    name: ClassVar[str] = "flat"
    idea: ClassVar[str] = "one question on all cells, no hierarchy"
    source: ClassVar[str] = "Wang et al., USENIX Security 2017"
    oracle: str = "best"
    non_negative: bool = True

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One, unless there is nothing to ask."""
        return (Group("1"),) if prod(schema.sizes) > 1 else ()

    def run(self, schema: Schema) -> Run:
        """One wave, one question."""
        axes = axes_of(schema)
        tree = Tree.root(axes, max(2, *schema.sizes))
        measurements = []
        for group in self.groups(schema):
            tree = tree.split(np.array([True]))[0]
            oracle = linear_oracle(self.oracle, self.epsilon, tree.leaves.size)
            question = Question(tuple(range(len(axes))), Partition.of_tree(tree), oracle)
            tally = (yield {group.id: question})[group.id]
            estimate = oracle.estimate(tally)
            kept = nearest_in_simplex(estimate) if self.non_negative else estimate
            measurements.append(Measurement(tree.leaves, kept, tally.n, oracle, projected=self.non_negative))
        return TreeEstimate(schema, average(tree, measurements), consistent=self.non_negative)
