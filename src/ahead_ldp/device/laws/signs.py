"""What the Hadamard laws share: a uniform row of a matrix of signs, and the value's sign in it, kept or flipped."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

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
class SignLaw(Law):
    """A row below ``order`` and a sign that is true with probability ``keep / 2**bits``.

    Words: ``below(order)`` for the row, on 32-bit words; one for the coin. Payload: 2 row + s, big-endian, where s is 1
    for the sign -1.
    """

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
    @abstractmethod
    def order(self) -> int:
        """K, the rows of the matrix: a power of two."""

    @abstractmethod
    def sign(self, row: int, code: int) -> int:
        """0 for the sign +1 of a code in a row, 1 for -1."""

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
        flip = words.take(self.bits) >= self.keep
        return pack_integer(2 * row + (self.sign(row, code) ^ flip), 2 * self.order - 1)

    def check_payload(self, payload: bytes) -> None:
        """A row below K."""
        self.check_length(payload)
        unpack_integer(payload, 2 * self.order - 1)
