"""Discrete square wave: a cell near the value's, on a domain that is b cells longer at both ends (LWLLS20)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.canonical import integer
from ahead_ldp.device.epsilon import exact_epsilon, exp_bounds
from ahead_ldp.device.laws.base import (
    Law,
    check_cells,
    check_threshold,
    integer_length,
    largest_keep,
    pack_integer,
    sharpest,
    unpack_integer,
)
from ahead_ldp.device.laws.grr import two_level_ratio
from ahead_ldp.device.words import Words, below


@dataclass(frozen=True, slots=True)
class SWLaw(Law):
    """One of ``cells + 2 b`` outcomes; those at most b away from code + b share the probability keep / 2**bits.

    Words: one for the coin; near: ``below(2 b + 1)``; far: ``below(cells - 1)`` among the others in order.
    Payload: the outcome, big-endian.
    """

    name: ClassVar[str] = "sw"
    cells: int
    bits: int
    keep: int
    b: int

    def __post_init__(self) -> None:
        """Refuse integers that are no law."""
        check_cells(self.cells)
        integer(self.b, "b", 0, self.cells)
        check_threshold(self.keep, self.bits, "keep")

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The law with the b of LWLLS20 (in cells, rounded down) and the largest private ``keep``."""
        e, d = exact_epsilon(epsilon), check_cells(cells)
        x = exp_bounds(e)[0]
        b = int((e * x - x + 1) / (2 * x * (x - 1 - e)) * d)
        return sharpest(lambda bits: cls(d, bits, largest_keep(e, 2 * b + 1, d - 1, bits), b), e)

    @property
    def outcomes(self) -> int:
        """Different reports."""
        return self.cells + 2 * self.b

    def ratio(self) -> Fraction:
        """p / q of a near and a far outcome."""
        return two_level_ratio(self.keep, self.bits, 2 * self.b + 1, self.cells - 1)

    @property
    def payload_length(self) -> int:
        """The outcome."""
        return integer_length(self.outcomes - 1)

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        near = 2 * self.b + 1
        if words.take(self.bits) < self.keep:
            outcome = code + below(near, words, self.bits)
        else:
            other = below(self.cells - 1, words, self.bits)
            outcome = other + (near if other >= code else 0)
        return pack_integer(outcome, self.outcomes - 1)

    def check_payload(self, payload: bytes) -> None:
        """An outcome that exists."""
        self.check_length(payload)
        unpack_integer(payload, self.outcomes - 1)
