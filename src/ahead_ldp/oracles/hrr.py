"""Hadamard randomised response (HRR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahead_ldp.device.laws.signs import HRRLaw
from ahead_ldp.oracles.base import LinearOracle, Moments
from ahead_ldp.oracles.signs import SignOracle
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class HRR(SignOracle, LinearOracle):
    """One noisy sign of the code's Hadamard column (CKS19): a row index and one bit, decoded in O(K log K)."""

    name: ClassVar[str] = "hrr"
    law_type: ClassVar[type[HRRLaw]] = HRRLaw
    law: HRRLaw

    @property
    def moments(self) -> Moments:
        """A term is +-1/(2p-1); its mean is 1 in the own cell and 0 elsewhere; columns are orthogonal."""
        square = 1 / (2 * self.p - 1) ** 2
        return Moments(square - 1, square, 0.0, 0.0)

    def _estimate(self, tally: Tally) -> Floats:
        return self._transform(tally)[: self.d]

    def _sign(self, row: Ints, code: Ints) -> Ints:
        return np.bitwise_count(row & code).astype(np.int64) & 1
