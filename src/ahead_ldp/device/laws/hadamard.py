"""Hadamard randomised response: one noisy entry of the value's Hadamard column (CKS19)."""

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
from ahead_ldp.device.laws.grr import two_level_ratio
from ahead_ldp.device.words import Words, below


@dataclass(frozen=True, slots=True)
class HRRLaw(Law):
    """A uniform row j of the Hadamard matrix of order K, and the sign (-1)**popcount(j & code), kept or flipped.

    K is the smallest power of two that is at least ``cells``. The sign is kept with probability
    ``keep / 2**bits``. Words: ``below(K)`` for the row, on 32-bit words; one for the coin. Payload: 2 j + s,
    big-endian, where s is 1 for the sign -1.
    """

    name: ClassVar[str] = "hrr"
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
        e, d = exact_epsilon(epsilon), check_cells(cells)
        return sharpest(lambda bits: cls(d, bits, largest_keep(e, 1, 1, bits)), e)

    @property
    def order(self) -> int:
        """K, the order of the matrix."""
        return 1 << (self.cells - 1).bit_length()

    def ratio(self) -> Fraction:
        """p / (1 - p)."""
        return two_level_ratio(self.keep, self.bits, 1, 1)

    @property
    def payload_length(self) -> int:
        """Row and sign in one integer."""
        return integer_length(2 * self.order - 1)

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        row = below(self.order, words, 32)
        sign = (row & code).bit_count() & 1
        flip = words.take(self.bits) >= self.keep
        return pack_integer(2 * row + (sign ^ flip), 2 * self.order - 1)

    def check_payload(self, payload: bytes) -> None:
        """A row below K."""
        self.check_length(payload)
        unpack_integer(payload, 2 * self.order - 1)
