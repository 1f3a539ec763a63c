"""Hadamard randomised response: one noisy entry of the value's Hadamard column (CKS19)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ahead_ldp.device.laws.signs import SignLaw


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
