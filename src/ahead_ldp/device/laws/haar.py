"""Haar coefficients by Hadamard randomised response: a noisy sign that tells halves of nodes apart (CKS19)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ahead_ldp.device.laws.signs import SignLaw


@dataclass(frozen=True, slots=True)
class HaarLaw(SignLaw):
    """The signs (-1)**(popcount(row & i) + c) for the half c of node i, whose halves are the cells 2 i and 2 i + 1.

    There are K rows, the smallest power of two that holds the nodes: the odd rows of the Hadamard matrix of order 2 K,
    which are those that tell halves apart.
    """

    name: ClassVar[str] = "haar"

    @property
    def order(self) -> int:
        """K, the order of the matrix over the nodes."""
        return 1 << ((self.cells - 1) // 2).bit_length()

    def sign(self, row: int, code: int) -> int:
        """The parity of the bits that row and node share, turned in the second half."""
        return ((row & code >> 1).bit_count() + code) & 1
