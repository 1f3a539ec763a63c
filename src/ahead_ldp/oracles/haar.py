"""Haar coefficients by Hadamard randomised response (HaarHRR)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws import HaarLaw
from ahead_ldp.oracles.base import Oracle, coins, pack_integers, unpack_integers
from ahead_ldp.oracles.hrr import hadamard
from ahead_ldp.oracles.tally import Bools, Bytes, Floats, Ints, Tally

_CELLS = 1 << 22


@dataclass(frozen=True, slots=True)
class Haar(Oracle):
    """One noisy sign of the signed Hadamard column of the code's node (CKS19).

    It knows nothing of a cell's own frequency: what it estimates is, for each node, the frequency of the first half
    less that of the second. HRR on the same cells would do so with twice the variance, since half of its rows say
    nothing about halves.

    Guarantees, besides those of ``Oracle``:
        mean      E[contrasts] is f[2 i] - f[2 i + 1], for every node i
        variance  Var[contrasts] == variance(n, f[2 i] + f[2 i + 1]), exactly, given the group's people; estimates of
                  different nodes are uncorrelated
    """

    name: ClassVar[str] = "haar"
    law: HaarLaw

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """Haar with the largest private p."""
        return cls(HaarLaw.make(epsilon, cells))

    @property
    def p(self) -> float:
        """Probability that the sign is kept."""
        return self.law.keep / 2**self.law.bits

    @property
    def nodes(self) -> int:
        """Pairs of cells; the second half of the last one may not exist."""
        return (self.d + 1) // 2

    @property
    def outcomes(self) -> int:
        """Rows times signs."""
        return 2 * self.law.order

    def contrasts(self, tally: Tally) -> Floats:  # counts (outcomes,) -> (nodes,)
        """Unbiased Haar coefficients of the nodes; 0 without reports, which no variance supports."""
        self.check_tally(tally)
        if tally.n == 0:
            return np.zeros(self.nodes)
        signs = tally.counts[0::2] - tally.counts[1::2]
        return hadamard(signs.astype(float))[: self.nodes] / (tally.n * (2 * self.p - 1))

    def variance(self, n: int, f: Floats | float = 0.0) -> Floats | float:
        """Variance of a node's coefficient given the group's people, f the node's frequency; infinite for n = 0."""
        return (1 / (2 * self.p - 1) ** 2 - f) / n if n else np.full(np.shape(f), np.inf)[()]

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
        codes = np.flatnonzero(truth)
        if truth.sum() < codes.size * order:  # person by person
            people = np.repeat(codes, truth[codes])
            row = rng.integers(0, order, size=people.size)
            return counts + np.bincount(2 * row + _sign(row, people), minlength=2 * order)
        rows = np.arange(order)
        for start in range(0, codes.size, max(1, _CELLS // order)):
            some = codes[start : start + max(1, _CELLS // order)]
            drawn = rng.multinomial(truth[some], np.full(order, 1 / order))
            minus = _sign(rows[None, :], some[:, None]) == 1
            counts[0::2] += np.where(minus, 0, drawn).sum(axis=0)
            counts[1::2] += np.where(minus, drawn, 0).sum(axis=0)
        return counts


def _sign(row: Ints, code: Ints) -> Ints:
    """0 for the sign +1, 1 for -1."""
    return (np.bitwise_count(row & code >> 1).astype(np.int64) + code) & 1
