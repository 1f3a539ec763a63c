"""HIO (WDZ+19: Wang, Ding, Zhou, Hong, Huang, Li, Jha, SIGMOD 2019): hierarchical intervals over all attributes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import BoxEstimate
from ahead_ldp.mechanisms.hierarchy.hierarchies import Hierarchy, LevelMeasurement, Measured
from ahead_ldp.mechanisms.hierarchy.hierarchy_estimates import CoverEstimate, LeastSquaresEstimate
from ahead_ldp.oracles import LinearOracle, choose_oracle, make_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, Tallies, Wave, axes_of

ALL = ("grr", "oue", "olh", "ss", "hrr", "sue")
SHORT = ("grr", "olh", "hrr")
MANY_CELLS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class HIO(Mechanism):
    """A full tree on each attribute; each group estimates one combination of their levels.

    ``oracle`` is a registered name, or "best" for the least variance on each question. ``consistent`` replaces the
    sum over the fewest nodes by least squares over all of them, ``non_negative`` also removes negative frequencies.
    """

    name: ClassVar[str] = "hio"
    idea: ClassVar[str] = "a full tree, minimal covers, no consistency"
    source: ClassVar[str] = "Wang et al., SIGMOD 2019"
    fanout: int = 5
    oracle: str = "best"
    consistent: bool = True
    non_negative: bool = True

    def __post_init__(self) -> None:
        """Refuse choices that are none."""
        Mechanism.__post_init__(self)
        check_hierarchy_choices(self.fanout, self.oracle, self.epsilon, self.consistent, self.non_negative)

    @classmethod
    def paper(cls, epsilon: float | str | Fraction) -> Self:
        """WDZ+19: fan-out 5, local hashing, the fewest nodes answer, nothing is made consistent."""
        return cls(epsilon=epsilon, oracle="olh", consistent=False, non_negative=False)

    @classmethod
    def strong(cls, epsilon: float | str | Fraction) -> Self:
        """The best setting found at the same epsilon (docs/methods/hierarchy/hio.md): binary trees, least squares."""
        return cls(epsilon=epsilon, fanout=2)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each combination of levels."""
        hierarchy = Hierarchy.of(axes_of(schema), self.fanout)
        return tuple(Group(_name(combination)) for combination in hierarchy.combinations())

    def run(self, schema: Schema) -> Run:
        """One wave."""
        hierarchy = Hierarchy.of(axes_of(schema), self.fanout)
        found = yield from ask_levels(hierarchy, schema, self.oracle, self.epsilon)
        return hierarchy_estimate(schema, found, self.consistent, self.non_negative)


def check_hierarchy_choices(
    fanout: int, oracle: str, epsilon: float | str | Fraction, consistent: bool, non_negative: bool
) -> None:
    """Refuse a fan-out below 2, an oracle without an unbiased estimate, and bounds without consistency."""
    if type(fanout) is not int or fanout < 2:
        raise ValueError(f"expected fanout to be an integer >= 2, got {fanout!r}")
    if non_negative and not consistent:
        raise ValueError("expected consistent=True for non_negative=True")
    linear_oracle(oracle, epsilon, 2)


@lru_cache(maxsize=4096)
def linear_oracle(name: str, epsilon: float | str | Fraction, cells: int) -> LinearOracle:
    """The named oracle, or the best one; it must have an unbiased estimate.

    Of many cells the best is chosen among those with short reports: bit vectors gain a per cent at most there.
    """
    if name == "best":
        return choose_oracle(epsilon, cells, ALL if cells <= MANY_CELLS else SHORT).oracle
    oracle = make_oracle(name, epsilon, cells)
    if not isinstance(oracle, LinearOracle):
        raise ValueError(f"expected an oracle with an unbiased estimate, got {name!r}")
    return oracle


def ask_levels(
    hierarchy: Hierarchy, schema: Schema, oracle: str, epsilon: float | str | Fraction
) -> Generator[Wave, Tallies, Measured]:
    """One wave with a question for each combination of levels; attributes at their root are not asked."""
    questions: dict[str, Question] = {}
    read: dict[str, tuple[tuple[int, ...], LinearOracle]] = {}
    for combination in hierarchy.combinations():
        asked = tuple(a for a, level in enumerate(combination) if level)
        cuts = [hierarchy.cuts(a, combination[a]) for a in asked]
        partition = Partition.grid(axes_of(schema, asked), cuts)
        group, chosen = _name(combination), linear_oracle(oracle, epsilon, partition.cells)
        questions[group], read[group] = Question(asked, partition, chosen), (combination, chosen)
    tallies = (yield questions) if questions else {}
    groups = []
    for group, (combination, chosen) in read.items():
        tally, shape = tallies[group], [nodes.size for nodes in hierarchy.nodes(combination)]
        groups.append(LevelMeasurement(combination, chosen.estimate(tally).reshape(shape), tally.n, chosen))
    return Measured.of(hierarchy, groups)


def hierarchy_estimate(schema: Schema, measured: Measured, consistent: bool, non_negative: bool) -> BoxEstimate:
    """The estimate that the choices ask for."""
    if consistent:
        return LeastSquaresEstimate.of(schema, measured, non_negative)
    return CoverEstimate(schema, False, measured)


def _name(combination: Sequence[int]) -> str:
    return ".".join(map(str, combination))
