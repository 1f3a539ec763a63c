"""AHEAD: adaptive hierarchical decomposition, one tree over all attributes (1-dim, 2-dim, and DE for more)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.ahead.decomposition import Decomposition, GrownTrees, levels
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.protocol.mechanism import Group, Run, axes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AHEAD(GrownTrees):
    """AHEAD (DZB+21, Sec. 4.2, Algorithms 1 and 2; Sec. 4.5 for several attributes, cut all at once).

    Privacy (Sec. 4.3 and App. B): a person draws a group without looking at the value and sends one report, through
    an epsilon-LDP oracle, about a partition that depends on other people's reports only. All the rest is
    post-processing.

    The choices are those of ``decomposition.GrownTrees``.
    """

    name: ClassVar[str] = "ahead"
    idea: ClassVar[str] = "one adaptive tree over all attributes"

    @classmethod
    def published(cls, epsilon: float | str, fanout: int = 2) -> Self:
        """The published code's reading: Norm-Sub comes before the test."""
        return cls(epsilon=epsilon, fanout=fanout, tested="norm_sub")

    @classmethod
    def literal(cls, epsilon: float | str, fanout: int = 2) -> Self:
        """Algorithm 1 to the letter: a node that was not divided is tested again by every later group."""
        return cls(epsilon=epsilon, fanout=fanout, stopped="retested")

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """c = log_B |D| groups of equal share, one for each level of the tree."""
        return tuple(Group(str(i + 1)) for i in range(levels(axes_of(schema), self.fanout)))

    def run(self, schema: Schema) -> Run:
        """Algorithm 1: one wave per group."""
        attributes = tuple(range(len(schema.attributes)))
        decomposition = Decomposition.start(self, axes_of(schema))
        for group in self.groups(schema):  # step 1, user partition
            decomposition = decomposition.divided()  # step 3, new decomposition generation
            tallies = yield {group.id: decomposition.question(attributes)}
            decomposition = decomposition.measured(tallies[group.id])  # step 2, noisy frequency construction
        return TreeEstimate(schema, decomposition.averaged(), consistent=False)  # step 4, post-processing
