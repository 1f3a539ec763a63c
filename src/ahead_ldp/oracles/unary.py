"""What the unary encodings share: one noisy bit per cell, packed, independent of each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws.unary import UnaryLaw
from ahead_ldp.oracles.base import SupportOracle, coins
from ahead_ldp.oracles.bits import (
    bernoulli_bits,
    clear_padding,
    padding_is_zero,
    popcount_rows,
    positional_popcount,
    set_bits,
)
from ahead_ldp.schema.arrays import Bools, Bytes, Floats, Ints


@dataclass(frozen=True, slots=True)
class UnaryOracle(SupportOracle):
    """Bit p for the own cell, bit q for every other."""

    law: UnaryLaw

    @property
    def p(self) -> float:
        """Probability of a one in the own cell."""
        return self.law.own / 2**self.law.bits

    @property
    def q(self) -> float:
        """Probability of a one in another cell."""
        return self.law.other / 2**self.law.bits

    @property
    def pairs(self) -> tuple[float, float]:
        """Bits are independent."""
        return self.p * self.q, self.q * self.q

    def _perturb(self, codes: Ints, rng: Generator) -> Bytes:
        reports = bernoulli_bits(self.law.other, self.law.bits, codes.size, self.report_bytes, rng)
        set_bits(reports, codes, coins(self.law.own, self.law.bits, codes.size, rng))
        clear_padding(reports, self.d)
        return reports

    def _count(self, reports: Bytes) -> Ints:
        return positional_popcount(reports, self.d)

    def valid(self, reports: Bytes) -> Bools:
        """Zero padding."""
        return padding_is_zero(reports, self.d)

    def _log_prob(self, reports: Bytes, code: int) -> Floats:
        """A product over the bits."""
        own = reports[:, code // 8] >> (code % 8) & 1
        ones = popcount_rows(reports) - own
        p, q = self.p, self.q
        rest = ones * np.log(q) + (self.d - 1 - ones) * np.log1p(-q)
        return rest + np.where(own == 1, np.log(p), np.log1p(-p))
