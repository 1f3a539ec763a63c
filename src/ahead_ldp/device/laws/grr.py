"""Generalised randomised response: the value itself, or uniformly another one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.epsilon import exact_epsilon
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
from ahead_ldp.device.words import Words, below


@dataclass(frozen=True, slots=True)
class GRRLaw(Law):
    """Keep the value with probability ``keep / 2**bits``, else one of the others (AHEAD Sec. 2.2.1).

    Words: one for the coin; if it says move, ``below(cells - 1)`` among the others in order.
    """

    name: ClassVar[str] = "grr"
    cells: int
    bits: int
    keep: int

    def __post_init__(self) -> None:
        """Refuse integers that are no law."""
        check_cells(self.cells)
        check_threshold(self.keep, self.bits, "keep")

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The law with the largest private ``keep``."""
        e, others = exact_epsilon(epsilon), check_cells(cells) - 1
        return sharpest(lambda bits: cls(cells, bits, largest_keep(e, 1, others, bits)), e)

    def ratio(self) -> Fraction:
        """p (d - 1) / (1 - p)."""
        return two_level_ratio(self.keep, self.bits, 1, self.cells - 1)

    @property
    def payload_length(self) -> int:
        """The code, big-endian."""
        return integer_length(self.cells - 1)

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        return pack_integer(self.draw_code(code, words), self.cells - 1)

    def draw_code(self, code: int, words: Words) -> int:
        """The reported code, not yet packed."""
        if words.take(self.bits) < self.keep:
            return code
        other = below(self.cells - 1, words, self.bits)
        return other + (other >= code)

    def check_payload(self, payload: bytes) -> None:
        """A code below ``cells``."""
        self.check_length(payload)
        unpack_integer(payload, self.cells - 1)


def two_level_ratio(keep: int, bits: int, inside: int, outside: int) -> Fraction:
    """keep / inside over (2**bits - keep) / outside, or its inverse, whichever is larger."""
    ratio = Fraction(keep * outside, ((1 << bits) - keep) * inside)
    return max(ratio, 1 / ratio)
