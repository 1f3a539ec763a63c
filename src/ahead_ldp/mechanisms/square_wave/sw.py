"""SW (LWLLS20: Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric, SIGMOD 2020): square wave and expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.square_wave.wave_estimates import WaveEstimate
from ahead_ldp.oracles import SW as SquareWave
from ahead_ldp.oracles import Tally
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of, check_ordered, only_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class SW(Mechanism):
    """Everybody reports a code near the own one; the distribution is the likeliest, found by EM.

    ``smooth`` averages neighbours after every step (EMS). ``tolerance`` is the gain in log-likelihood at which EM
    stops, times exp(epsilon) without smoothing.
    """

    name: ClassVar[str] = "sw"
    idea: ClassVar[str] = "reports near the value, read by EM"
    source: ClassVar[str] = "Li et al., SIGMOD 2020"
    most_attributes: ClassVar[int | None] = 1
    ordered_only: ClassVar[bool] = True
    smooth: bool = False
    tolerance: float = 1e-3  # LWLLS20

    def __post_init__(self) -> None:
        """Refuse a tolerance that would never stop."""
        Mechanism.__post_init__(self)
        if not 0 < self.tolerance < float("inf"):
            raise ValueError(f"expected tolerance > 0, got {self.tolerance!r}")

    @classmethod
    def paper(cls, epsilon: float | str | Fraction) -> Self:
        """LWLLS20's recommended form, SW with EMS."""
        return cls(epsilon=epsilon, smooth=True)

    @classmethod
    def strong(cls, epsilon: float | str | Fraction) -> Self:
        """The best setting found at the same epsilon (docs/methods/square_wave/sw.md): the default."""
        return cls(epsilon=epsilon)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """Everybody, unless there is nothing to ask."""
        return (Group("1"),) if _size(schema) > 1 else ()

    def run(self, schema: Schema) -> Run:
        """One wave, one question: the code itself."""
        tally, oracle = Tally.empty(0), None
        for group in self.groups(schema):
            oracle = SquareWave.make(self.epsilon, _size(schema))
            question = Question((0,), Partition.cells_of(axes_of(schema)), oracle)
            tally = (yield {group.id: question})[group.id]
        return WaveEstimate.of(schema, oracle, tally, self.smooth, self.tolerance)


def _size(schema: Schema) -> int:
    axis = only_axis(schema, SW.name)
    check_ordered([axis], SW.name)
    return axis.size
