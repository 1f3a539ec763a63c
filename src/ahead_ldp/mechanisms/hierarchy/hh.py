"""HH (CKS19: Cormode, Kulkarni, Srivastava, VLDB 2019): hierarchical histograms with constrained inference."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.hierarchy.hierarchies import Hierarchy
from ahead_ldp.mechanisms.hierarchy.hio import ask_levels, check_hierarchy_choices, hierarchy_estimate
from ahead_ldp.protocol.mechanism import Group, Mechanism, Run, axes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HH(Mechanism):
    """A full tree on one attribute; each group estimates one level, and least squares joins the levels.

    ``oracle`` is a registered name, or "best" for the least variance on each level. Without ``consistent`` the fewest
    nodes answer (the paper's HH without the superscript CI); ``non_negative`` also removes negative frequencies.
    """

    name: ClassVar[str] = "hh"
    idea: ClassVar[str] = "a full tree with constrained inference"
    source: ClassVar[str] = "Cormode et al., VLDB 2019"
    most_attributes: ClassVar[int | None] = 1
    fanout: int = 4
    oracle: str = "best"
    consistent: bool = True
    non_negative: bool = True

    def __post_init__(self) -> None:
        """Refuse choices that are none."""
        Mechanism.__post_init__(self)
        check_hierarchy_choices(self.fanout, self.oracle, self.epsilon, self.consistent, self.non_negative)

    @classmethod
    def paper(cls, epsilon: float | str | Fraction) -> Self:
        """CKS19's recommended form: fan-out 4, unary encoding, constrained inference."""
        return cls(epsilon=epsilon, oracle="oue", non_negative=False)

    @classmethod
    def strong(cls, epsilon: float | str | Fraction) -> Self:
        """The best setting found at the same epsilon (docs/methods/hierarchy/hh.md): the default."""
        return cls(epsilon=epsilon)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each level below the root (CKS19: levels are sampled uniformly)."""
        return tuple(Group(str(level)) for (level,) in self._hierarchy(schema).combinations())

    def run(self, schema: Schema) -> Run:
        """One wave."""
        found = yield from ask_levels(self._hierarchy(schema), schema, self.oracle, self.epsilon)
        return hierarchy_estimate(schema, found, self.consistent, self.non_negative)

    def _hierarchy(self, schema: Schema) -> Hierarchy:
        if len(schema.attributes) != 1:
            raise ValueError(f"expected one attribute for {self.name}, got {len(schema.attributes)}")
        return Hierarchy.of(axes_of(schema), self.fanout)
