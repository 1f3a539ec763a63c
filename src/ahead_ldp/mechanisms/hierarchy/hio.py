"""HIO (WDZ+19: Wang, Ding, Zhou, Hong, Huang, Li, Jha, SIGMOD 2019): hierarchical intervals over all attributes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.hierarchy.hierarchies import Hierarchy, LevelMeasurement, Measured
from ahead_ldp.mechanisms.hierarchy.hierarchy_estimates import CoverEstimate, LeastSquaresEstimate
from ahead_ldp.oracles import UNBIASED, LinearOracle, linear_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of, check_count, dotted

SHORT = ("grr", "olh", "hrr")  # oracles whose reports do not grow with the cells
MANY_CELLS = 512  # from here on bit vectors gain a per cent at most (docs/methods/hierarchy/hio.md)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullTrees(Mechanism):
    """A full tree on each attribute; each group estimates one combination of their levels.

    ``oracle`` is a registered name, or "best" for the least variance on each question. ``consistent`` replaces the
    sum over the fewest nodes by least squares over all of them, ``non_negative`` also removes negative frequencies.
    """

    fanout: int
    oracle: str = "best"
    consistent: bool = True
    non_negative: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for a fan-out below 2, an oracle that is not linear, and bounds without consistency."""
        Mechanism.__post_init__(self)
        check_count("fanout", self.fanout, 2)
        if self.non_negative and not self.consistent:
            raise ValueError("expected consistent=True for non_negative=True")
        self.make_oracle(2)

    def make_oracle(self, cells: int) -> LinearOracle:
        """The oracle for a question on this many cells; of many, the best is chosen among those with short reports."""
        return linear_oracle(self.oracle, self.epsilon, cells, UNBIASED if cells <= MANY_CELLS else SHORT)

    def hierarchy(self, schema: Schema) -> Hierarchy:
        """The trees of all attributes."""
        return Hierarchy.of(axes_of(schema), self.fanout)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each combination of levels, all of one share (CKS19: levels are sampled uniformly)."""
        return tuple(Group(dotted(combination)) for combination in self.hierarchy(schema).combinations())

    def run(self, schema: Schema) -> Run:
        """One wave with a question for each combination of levels; attributes at their root are not asked."""
        hierarchy = self.hierarchy(schema)
        questions: dict[str, Question] = {}
        for combination in hierarchy.combinations():
            asked = tuple(a for a, level in enumerate(combination) if level)
            partition = Partition.grid(axes_of(schema, asked), [hierarchy.cuts(a, combination[a]) for a in asked])
            questions[dotted(combination)] = Question(asked, partition, self.make_oracle(partition.cells))
        tallies = (yield questions) if questions else {}
        groups = []
        for combination, (group, question) in zip(hierarchy.combinations(), questions.items(), strict=True):
            tally, shape = tallies[group], [nodes.size for nodes in hierarchy.nodes(combination)]
            assert isinstance(question.oracle, LinearOracle)
            estimate = question.oracle.estimate(tally).reshape(shape)
            groups.append(LevelMeasurement(combination, estimate, tally.n, question.oracle))
        measured = Measured.of(hierarchy, groups)
        if self.consistent:
            return LeastSquaresEstimate.of(schema, measured, self.non_negative)
        return CoverEstimate(schema, False, measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class HIO(FullTrees):
    """A full tree on each attribute; each group estimates one combination of their levels."""

    name: ClassVar[str] = "hio"
    idea: ClassVar[str] = "a full tree, minimal covers, no consistency"
    source: ClassVar[str] = "Wang et al., SIGMOD 2019"
    fanout: int = 5  # WDZ+19

    @classmethod
    def paper(cls, epsilon: float | str | Fraction) -> Self:
        """WDZ+19: fan-out 5, local hashing, the fewest nodes answer, nothing is made consistent."""
        return cls(epsilon=epsilon, oracle="olh", consistent=False, non_negative=False)

    @classmethod
    def strong(cls, epsilon: float | str | Fraction) -> Self:
        """The best setting found at the same epsilon (docs/methods/hierarchy/hio.md): binary trees, least squares."""
        return cls(epsilon=epsilon, fanout=2)
