"""Optimised local hashing (OLH)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.device.laws.grr import GRRLaw
from ahead_ldp.device.laws.hashing import PRIME, OLHLaw
from ahead_ldp.oracles import kernels
from ahead_ldp.oracles.base import CoinOracle, SupportOracle, pack_integers, unpack_integers
from ahead_ldp.oracles.bits import HAS_NUMBA
from ahead_ldp.oracles.grr import randomised_response
from ahead_ldp.schema.arrays import Bools, Bytes, Floats, Ints

_BLOCK = 1 << 13  # reports counted at a time: their words take 160 KB


@dataclass(frozen=True, slots=True)
class OLH(CoinOracle, SupportOracle):
    """GRR on a hash of the code, the hash drawn afresh by each device (WBLJ17).

    OUE's variance in a report of 13 to 14 bytes; counting costs n d hash values. ``simulate`` has the exact
    mean, variance and covariance of every two cells, not the joint law of many.
    """

    name: ClassVar[str] = "olh"
    law_type: ClassVar[type[OLHLaw]] = OLHLaw
    joint: ClassVar[bool] = False
    law: OLHLaw

    @property
    def q(self) -> float:
        """Probability that a report supports another code: 1/g but for the unevenness of P / g."""
        return self._support_moment(1)

    @property
    def pairs(self) -> tuple[float, float]:
        """The own hash value was kept and the other code shares it; two other codes hash to the reported value."""
        shared = float(Fraction(sum(x * x for x in self._buckets()), PRIME**2))
        return self.p * shared, self._support_moment(2)

    def _buckets(self) -> list[int]:
        """How many residues of P go to each hash value."""
        borders = [-(-y * PRIME // self.law.g) for y in range(self.law.g + 1)]
        return [b - a for a, b in pairwise(borders)]

    def _support_moment(self, k: int) -> float:
        """Sum over the reported value y of P(y) P(a given other code hashes to y)^k."""
        g, one = self.law.g, 2**self.law.bits
        total = Fraction(0)
        sizes = self._buckets()
        for size in set(sizes):
            share = Fraction(size, PRIME)
            reported = share * Fraction(self.law.keep, one) + (1 - share) * Fraction(one - self.law.keep, one * (g - 1))
            total += sizes.count(size) * reported * share**k
        return float(total)

    def _perturb(self, codes: Ints, rng: Generator) -> Bytes:
        a, b, c = rng.integers(0, PRIME, size=(3, codes.size))
        h = self.law.g * ((((a * codes + b) % PRIME) * codes + c) % PRIME) // PRIME
        y = randomised_response(GRRLaw(self.law.g, self.law.bits, self.law.keep), h, rng)
        return np.hstack([*(pack_integers(x, 4) for x in (a, b, c)), pack_integers(y, self.report_bytes - 12)])

    def fields(self, reports: Bytes) -> tuple[Ints, Ints, Ints, Ints]:  # (n, report_bytes) -> four of (n,)
        """The coefficients a, b, c of each report's polynomial, and its hash value."""
        a, b, c = (unpack_integers(reports[:, 4 * i : 4 * i + 4]) for i in range(3))
        return a, b, c, unpack_integers(reports[:, 12:])

    def _count(self, reports: Bytes) -> Ints:
        a, b, c, y = self.fields(reports)
        lo = -(-y * PRIME // self.law.g)  # h(x) == y exactly for residues in [lo, lo + width)
        width = -(-(y + 1) * PRIME // self.law.g) - lo
        words = np.stack([a, b, c, lo, width]).astype(np.uint32)
        if HAS_NUMBA and len(reports) * self.d > 1 << 20:
            return kernels.olh_support(words, self.d)
        counts = np.zeros(self.d, np.int64)
        for start in range(0, len(reports), _BLOCK):
            _add_support(counts, words[:, start : start + _BLOCK])
        return counts

    def valid(self, reports: Bytes) -> Bools:
        """Coefficients below P and a hash value below g."""
        a, b, c, y = self.fields(reports)
        return (a < PRIME) & (b < PRIME) & (c < PRIME) & (y < self.law.g)

    def _log_prob(self, reports: Bytes, code: int) -> Floats:
        """Of the hash value given the hash, plus that of the hash itself."""
        a, b, c, y = self.fields(reports)
        h = self.law.g * ((((a * code + b) % PRIME) * code + c) % PRIME) // PRIME
        moved = np.log1p(-self.p) - np.log(self.law.g - 1)
        return np.where(h == y, np.log(self.p), moved) - 3 * np.log(PRIME)


def _add_support(counts: Ints, words: NDArray[np.uint32]) -> None:
    """Add for each code the reports that support it; the polynomial advances by finite differences."""
    prime = np.uint32(PRIME)
    a, b, c, lo, width = words
    h, step, twice = c.copy(), a + b, a + a
    other = np.empty_like(h)
    for x in (step, twice):
        np.minimum(x, x - prime, out=x)
    for code in range(counts.size):
        np.subtract(h, lo, out=other)
        counts[code] += np.count_nonzero(other < width)
        for value, move in ((h, step), (step, twice)):  # value = (value + move) mod P, in wrapping uint32
            np.add(value, move, out=value)
            np.subtract(value, prime, out=other)
            np.minimum(value, other, out=value)
