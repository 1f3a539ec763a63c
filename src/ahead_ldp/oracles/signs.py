"""What the Hadamard oracles share: reports of a row and a noisy sign, counted by (row, sign)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws.signs import SignLaw
from ahead_ldp.oracles.base import CoinOracle, IntegerOracle, coins, pack_integers, unpack_integers
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Bytes, Floats, Ints

_ENTRIES = 1 << 22  # of a (codes, rows) matrix held at a time (32 MB)


@dataclass(frozen=True, slots=True)
class SignOracle(CoinOracle, IntegerOracle):
    """Bulk form of ``SignLaw``. The tally's entry 2 row + s counts the reports of that row and sign, s = 1 for -1."""

    law: SignLaw

    @property
    def outcomes(self) -> int:
        """Rows times signs."""
        return 2 * self.law.order

    @abstractmethod
    def _sign(self, row: Ints, code: Ints) -> Ints:
        """The law's ``sign``, elementwise."""

    def _transform(self, tally: Tally) -> Floats:  # counts (outcomes,) -> (K,)
        """For each column the unbiased mean of its signs times the reported ones."""
        signs = tally.counts[0::2] - tally.counts[1::2]
        return hadamard(signs.astype(float)) / (tally.n * (2 * self.p - 1))

    def _perturb(self, codes: Ints, rng: Generator) -> Bytes:
        row = rng.integers(0, self.law.order, size=codes.size)
        flip = ~coins(self.law.keep, self.law.bits, codes.size, rng)
        return pack_integers(2 * row + (self._sign(row, codes) ^ flip), self.report_bytes)

    def _log_prob(self, reports: Bytes, code: int) -> Floats:
        """Of the sign given the row, plus that of the row."""
        both = unpack_integers(reports)
        kept = self._sign(both >> 1, np.array(code)) == both % 2
        return np.where(kept, np.log(self.p), np.log1p(-self.p)) - np.log(self.law.order)

    def _simulate(self, histogram: Ints, rng: Generator) -> Ints:
        # With probability 2p - 1 the true sign of a uniform row, else any (row, sign).
        order, truth = self.law.order, rng.binomial(histogram, 2 * self.p - 1)
        counts = rng.multinomial(histogram.sum() - truth.sum(), np.full(2 * order, 0.5 / order)).astype(np.int64)
        codes = np.flatnonzero(truth)
        if truth.sum() < codes.size * order:  # person by person
            people = np.repeat(codes, truth[codes])
            row = rng.integers(0, order, size=people.size)
            return counts + np.bincount(2 * row + self._sign(row, people), minlength=2 * order)
        rows, step = np.arange(order), max(1, _ENTRIES // order)
        for start in range(0, codes.size, step):
            some = codes[start : start + step]
            drawn = rng.multinomial(truth[some], np.full(order, 1 / order))
            minus = self._sign(rows[None, :], some[:, None]) == 1
            counts[0::2] += np.where(minus, 0, drawn).sum(axis=0)
            counts[1::2] += np.where(minus, drawn, 0).sum(axis=0)
        return counts


def hadamard(x: Floats) -> Floats:  # (K,) -> (K,)
    """The unnormalised Hadamard transform, entries (-1)^popcount(i & j), for K a power of two."""
    x = x.copy()
    half = 1
    while half < x.size:
        pairs = x.reshape(-1, 2, half)
        pairs[:] = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return x
