"""Discrete square wave: a cell near the value's, on a domain that is b cells longer at both ends (LWLLS20)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ahead_ldp.device.canonical import integer
from ahead_ldp.device.epsilon import exp_bounds
from ahead_ldp.device.laws.base import TwoLevelLaw
from ahead_ldp.device.words import Words, below


@dataclass(frozen=True, slots=True)
class SWLaw(TwoLevelLaw):
    """One of ``cells + 2 b`` outcomes; those at most b away from code + b share the probability keep / 2**bits.

    Words: one for the coin; near: ``below(2 b + 1)``; far: ``below(cells - 1)`` among the others in order.
    """

    name: ClassVar[str] = "sw"
    b: int

    def check_parameters(self) -> None:
        """Refuse a window that is wider than the domain."""
        integer(self.b, "b", 0, self.cells)

    @classmethod
    def best_parameters(cls, epsilon: Fraction, cells: int) -> tuple[int, ...]:
        """The b of LWLLS20, in cells, rounded down."""
        x = exp_bounds(epsilon)[0]
        return (int((epsilon * x - x + 1) / (2 * x * (x - 1 - epsilon)) * cells),)

    @property
    def sides(self) -> tuple[int, int]:
        """Near and far outcomes: the ratio is p / q of one of each."""
        return 2 * self.b + 1, self.cells - 1

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        near, far = self.sides
        if words.take(self.bits) < self.keep:
            return self.pack(code + below(near, words, self.bits))
        other = below(far, words, self.bits)
        return self.pack(other + (near if other >= code else 0))
