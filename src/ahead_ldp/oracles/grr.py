"""Generalised randomised response (GRR)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws.grr import GRRLaw
from ahead_ldp.oracles.base import CoinOracle, IntegerOracle, SupportOracle, coins, pack_integers, unpack_integers
from ahead_ldp.schema.arrays import Bytes, Floats, Ints


@dataclass(frozen=True, slots=True)
class GRR(CoinOracle, IntegerOracle, SupportOracle):
    """Report the code itself, or another one (AHEAD Sec. 2.2.1, with |D| - 1 where the paper prints |D| + 1).

    The best oracle for few cells: its variance grows with d, and one report is one code.
    """

    name: ClassVar[str] = "grr"
    law_type: ClassVar[type[GRRLaw]] = GRRLaw
    law: GRRLaw

    @property
    def q(self) -> float:
        """Probability of any one other code."""
        return float(Fraction(2**self.law.bits - self.law.keep, 2**self.law.bits * (self.d - 1)))

    @property
    def pairs(self) -> tuple[float, float]:
        """A report names one code."""
        return 0.0, 0.0

    def _perturb(self, codes: Ints, rng: Generator) -> Bytes:
        return pack_integers(randomised_response(self.law, codes, rng), self.report_bytes)

    def _log_prob(self, reports: Bytes, code: int) -> Floats:
        """ln p or ln q."""
        kept = unpack_integers(reports) == code
        return np.array([np.log(self.q), np.log(self.p)])[kept.astype(int)]

    def _simulate(self, histogram: Ints, rng: Generator) -> Ints:
        # The truth with probability p - q, else a uniform code.
        truth = rng.binomial(histogram, self.p - self.q)
        return truth + rng.multinomial(histogram.sum() - truth.sum(), np.full(self.d, 1 / self.d))


def randomised_response(law: GRRLaw, codes: Ints, rng: Generator) -> Ints:  # (n,) -> (n,)
    """The reported codes of many people."""
    other = rng.integers(0, law.cells - 1, size=codes.size)
    return np.where(coins(law.keep, law.bits, codes.size, rng), codes, other + (other >= codes))
