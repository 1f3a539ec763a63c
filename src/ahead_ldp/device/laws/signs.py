"""Hadamard response (CKS19): a uniform row of a matrix of signs, and the value's sign in it, kept or flipped."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

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


@dataclass(frozen=True, slots=True)
class HRRLaw(SignLaw):
    """The matrix with entries (-1)**popcount(row & code), of the smallest order that holds the cells."""

    name: ClassVar[str] = "hrr"

    @property
    def order(self) -> int:
        """K, the order of the matrix."""
        return 1 << (self.cells - 1).bit_length()

    def sign(self, row: int, code: int) -> int:
        """The parity of the bits that row and code share."""
        return (row & code).bit_count() & 1


@dataclass(frozen=True, slots=True)
class HaarLaw(SignLaw):
    """Haar coefficients: the signs (-1)**(popcount(row & i) + c) for the half c of node i, cells 2 i and 2 i + 1.

    There are K rows, the smallest power of two that holds the nodes: the odd rows of the Hadamard matrix of order 2 K,
    which are those that tell the halves of a node apart.
    """

    name: ClassVar[str] = "haar"

    @property
    def order(self) -> int:
        """K, the order of the matrix over the nodes."""
        return 1 << ((self.cells - 1) // 2).bit_length()

    def sign(self, row: int, code: int) -> int:
        """The parity of the bits that row and node share, turned in the second half."""
        return ((row & code >> 1).bit_count() + code) & 1
