"""DHT, or HaarHRR (CKS19: Cormode, Kulkarni, Srivastava, VLDB 2019): noisy Haar coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.hierarchy.haar_estimates import HaarEstimate, HaarLevel, widths
from ahead_ldp.oracles import Haar
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, only_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class DHT(Mechanism):
    """The discrete Haar transform of the frequencies, each group estimating the coefficients of one level.

    The transform is on the next power of two; values beyond the domain hold nobody. ``non_negative`` keeps every
    coefficient within its node's frequency, from the top down.
    """

    name: ClassVar[str] = "dht"
    idea: ClassVar[str] = "Haar coefficients by Hadamard response"
    source: ClassVar[str] = "Cormode et al., VLDB 2019"
    most_attributes: ClassVar[int | None] = 1
    non_negative: bool = True

    @classmethod
    def paper(cls, epsilon: float | str | Fraction) -> Self:
        """CKS19's HaarHRR: the inverse transform, nothing else."""
        return cls(epsilon=epsilon, non_negative=False)

    @classmethod
    def strong(cls, epsilon: float | str | Fraction) -> Self:
        """The best setting found at the same epsilon (docs/methods/hierarchy/dht.md): the default."""
        return cls(epsilon=epsilon)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each level of coefficients, the coarsest first (CKS19: sampled uniformly)."""
        return tuple(Group(str(i + 1)) for i in range(len(widths(only_axis(schema, self.name).size))))

    def run(self, schema: Schema) -> Run:
        """One wave; level i asks for the half of a node, coded so that only halves are told apart."""
        axis = only_axis(schema, self.name)
        questions: dict[str, Question] = {}
        for group, width in zip(self.groups(schema), widths(axis.size), strict=True):
            partition = Partition.grid([axis], [range(width, axis.size, width)])
            questions[group.id] = Question((0,), partition, Haar.make(self.epsilon, partition.cells))
        tallies = (yield questions) if questions else {}
        levels = [HaarLevel.of(question, tallies[group]) for group, question in questions.items()]
        return HaarEstimate.of(schema, levels, self.non_negative)
