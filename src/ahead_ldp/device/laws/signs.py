"""What the Hadamard laws share: a uniform row of a matrix of signs, and the value's sign in it, kept or flipped."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from ahead_ldp.device.laws.base import TwoLevelLaw
from ahead_ldp.device.words import Words, below


@dataclass(frozen=True, slots=True)
class SignLaw(TwoLevelLaw):
    """A row below ``order`` and a sign that is true with probability ``keep / 2**bits``.

    Words: ``below(order)`` for the row, on 32-bit words; one for the coin. Payload: 2 row + s, big-endian, where s is 1
    for the sign -1.
    """

    @property
    @abstractmethod
    def order(self) -> int:
        """K, the rows of the matrix: a power of two."""

    @abstractmethod
    def sign(self, row: int, code: int) -> int:
        """0 for the sign +1 of a code in a row, 1 for -1."""

    @property
    def sides(self) -> tuple[int, int]:
        """The true sign and the flipped one: the ratio is p / (1 - p)."""
        return 1, 1

    @property
    def outcomes(self) -> int:
        """Row and sign in one number."""
        return 2 * self.order

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        row = below(self.order, words, 32)
        flip = words.take(self.bits) >= self.keep
        return self.pack(2 * row + (self.sign(row, code) ^ flip))
