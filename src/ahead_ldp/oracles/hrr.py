"""Hadamard randomised response (HRR)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws import HRRLaw
from ahead_ldp.oracles.base import LinearOracle, Moments, coins, pack_integers, unpack_integers
from ahead_ldp.oracles.tally import Bools, Bytes, Floats, Ints, Tally

_CELLS = 1 << 22


@dataclass(frozen=True, slots=True)
class HRR(LinearOracle):
    """One noisy sign of the code's Hadamard column (CKS19): a row index and one bit, decoded in O(K log K).

    The tally counts (row, sign) pairs: entry 2 j + s, s = 1 for the sign -1.
    """

    name: ClassVar[str] = "hrr"
    law: HRRLaw

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """HRR with the largest private p."""
        return cls(HRRLaw.make(epsilon, cells))

    @property
    def p(self) -> float:
        """Probability that the sign is kept."""
        return self.law.keep / 2**self.law.bits

    @property
    def outcomes(self) -> int:
        """Rows times signs."""
        return 2 * self.law.order

    @property
    def moments(self) -> Moments:
        """A term is +-1/(2p-1); its mean is 1 in the own cell and 0 elsewhere; columns are orthogonal."""
        square = 1 / (2 * self.p - 1) ** 2
        return Moments(square - 1, square, 0.0, 0.0)

    def _estimate(self, tally: Tally) -> Floats:
        signs = tally.counts[0::2] - tally.counts[1::2]
        return hadamard(signs.astype(float))[: self.d] / (tally.n * (2 * self.p - 1))

    def _perturb(self, codes: Ints, rng: Generator) -> Bytes:
        row = rng.integers(0, self.law.order, size=codes.size)
        flip = ~coins(self.law.keep, self.law.bits, codes.size, rng)
        return pack_integers(2 * row + (_sign(row, codes) ^ flip), self.report_bytes)

    def _count(self, reports: Bytes) -> Ints:
        return np.bincount(unpack_integers(reports), minlength=self.outcomes).astype(np.int64)

    def valid(self, reports: Bytes) -> Bools:
        """A row below K."""
        return unpack_integers(reports) < self.outcomes

    def _log_prob(self, reports: Bytes, code: int) -> Floats:
        """Of the sign given the row, plus that of the row."""
        both = unpack_integers(reports)
        kept = _sign(both >> 1, np.array(code)) == both % 2
        return np.where(kept, np.log(self.p), np.log1p(-self.p)) - np.log(self.law.order)

    def _simulate(self, histogram: Ints, rng: Generator) -> Ints:
        # With probability 2p - 1 the true sign of a uniform row, else any (row, sign).
        order, truth = self.law.order, rng.binomial(histogram, 2 * self.p - 1)
        counts = rng.multinomial(histogram.sum() - truth.sum(), np.full(2 * order, 0.5 / order)).astype(np.int64)
        rows = np.arange(order)
        codes = np.flatnonzero(truth)
        if truth.sum() < codes.size * order:  # person by person
            people = np.repeat(codes, truth[codes])
            row = rng.integers(0, order, size=people.size)
            return counts + np.bincount(2 * row + _sign(row, people), minlength=2 * order)
        for start in range(0, codes.size, max(1, _CELLS // order)):
            some = codes[start : start + max(1, _CELLS // order)]
            drawn = rng.multinomial(truth[some], np.full(order, 1 / order))
            minus = _sign(rows[None, :], some[:, None]) == 1
            counts[0::2] += np.where(minus, 0, drawn).sum(axis=0)
            counts[1::2] += np.where(minus, drawn, 0).sum(axis=0)
        return counts


def _sign(row: Ints, code: Ints) -> Ints:
    """0 for the matrix entry +1, 1 for -1."""
    return np.bitwise_count(row & code).astype(np.int64) & 1


def hadamard(x: Floats) -> Floats:  # (K,) -> (K,)
    """The unnormalised Hadamard transform, entries (-1)^popcount(i & j), for K a power of two."""
    x = x.copy()
    half = 1
    while half < x.size:
        pairs = x.reshape(-1, 2, half)
        pairs[:] = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return x
