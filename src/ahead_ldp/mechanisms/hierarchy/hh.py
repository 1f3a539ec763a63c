"""HH (CKS19: Cormode, Kulkarni, Srivastava, VLDB 2019): hierarchical histograms with constrained inference."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.hierarchy.hierarchies import Hierarchy
from ahead_ldp.mechanisms.hierarchy.hio import FullTrees
from ahead_ldp.protocol.mechanism import only_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class HH(FullTrees):
    """A full tree on one attribute; each group estimates one level, and least squares joins the levels.

    Without ``consistent`` the fewest nodes answer (the paper's HH without the superscript CI).
    """

    name: ClassVar[str] = "hh"
    idea: ClassVar[str] = "a full tree with constrained inference"
    source: ClassVar[str] = "Cormode et al., VLDB 2019"
    most_attributes: ClassVar[int | None] = 1
    fanout: int = 4  # CKS19

    @classmethod
    def paper(cls, epsilon: float | str | Fraction) -> Self:
        """CKS19's recommended form: fan-out 4, unary encoding, constrained inference."""
        return cls(epsilon=epsilon, oracle="oue", non_negative=False)

    @classmethod
    def strong(cls, epsilon: float | str | Fraction) -> Self:
        """The best setting found at the same epsilon (docs/methods/hierarchy/hh.md): the default."""
        return cls(epsilon=epsilon)

    def hierarchy(self, schema: Schema) -> Hierarchy:
        """The tree of the only attribute."""
        return Hierarchy.of([only_axis(schema, self.name)], self.fanout)
