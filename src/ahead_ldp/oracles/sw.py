"""Discrete square wave (SW), read by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws import SWLaw
from ahead_ldp.oracles.base import Oracle, coins, pack_integers, unpack_integers
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Bools, Bytes, Floats, Ints


@dataclass(frozen=True, slots=True)
class SW(Oracle):
    """An outcome near the code, on a domain b cells longer at both ends (LWLLS20, in whole cells).

    There is no unbiased estimate to speak of; it offers its likelihood, and EM on it. Outcome o is near code v
    when v <= o <= v + 2 b.
    """

    name: ClassVar[str] = "sw"
    law: SWLaw

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """SW with the published choice of b."""
        return cls(SWLaw.make(epsilon, cells))

    @property
    def outcomes(self) -> int:
        """d + 2 b."""
        return self.law.outcomes

    @property
    def p(self) -> float:
        """Probability of one near outcome."""
        return float(Fraction(self.law.keep, 2**self.law.bits * (2 * self.law.b + 1)))

    @property
    def q(self) -> float:
        """Probability of one far outcome."""
        return float(Fraction(2**self.law.bits - self.law.keep, 2**self.law.bits * (self.d - 1)))

    def outcome_probabilities(self, f: Floats) -> Floats:  # (d,) -> (outcomes,)
        """The law of one report when codes have frequencies f: the likelihood, in O(d)."""
        padded = np.concatenate([np.zeros(2 * self.law.b + 1), np.cumsum(f), np.full(2 * self.law.b, f.sum())])
        near = padded[2 * self.law.b + 1 :] - padded[: self.outcomes]
        return self.q * f.sum() + (self.p - self.q) * near

    def back(self, x: Floats) -> Floats:  # (outcomes,) -> (d,)
        """The transpose of ``outcome_probabilities``: for each code the sum of x times its report's law."""
        sums = np.concatenate([[0.0], np.cumsum(x)])
        near = sums[2 * self.law.b + 1 :] - sums[: self.d]
        return self.q * x.sum() + (self.p - self.q) * near

    def log_likelihood(self, tally: Tally, f: Floats) -> float:
        """Log-likelihood of the frequencies f."""
        self.check_tally(tally)
        return float(tally.counts @ np.log(np.maximum(self.outcome_probabilities(f), 1e-300)))

    def em(self, tally: Tally, *, smooth: bool = False, tolerance: float = 1e-3, most_steps: int = 10_000) -> Floats:
        """Frequencies by expectation maximisation (LWLLS20); ``smooth`` averages neighbours 1-2-1 each step.

        It stops when a step gains less than ``tolerance`` (times exp(epsilon) without smoothing, as published) in
        log-likelihood.
        """
        self.check_tally(tally)
        f = np.full(self.d, 1 / self.d)
        if tally.n == 0:
            return f
        limit = tolerance if smooth else tolerance * self.p / self.q
        before = -np.inf
        for _ in range(most_steps):
            likely = self.outcome_probabilities(f)
            f = f * self.back(tally.counts / likely)
            f /= f.sum()
            if smooth:
                f = _smooth(f)
            now = self.log_likelihood(tally, f)
            if now - before < limit:
                break
            before = now
        return f

    def _perturb(self, codes: Ints, rng: Generator) -> Bytes:
        near = 2 * self.law.b + 1
        other = rng.integers(0, self.d - 1, size=codes.size)
        far = other + np.where(other >= codes, near, 0)
        close = codes + rng.integers(0, near, size=codes.size)
        outcome = np.where(coins(self.law.keep, self.law.bits, codes.size, rng), close, far)
        return pack_integers(outcome, self.report_bytes)

    def _count(self, reports: Bytes) -> Ints:
        return np.bincount(unpack_integers(reports), minlength=self.outcomes).astype(np.int64)

    def valid(self, reports: Bytes) -> Bools:
        """An outcome that exists."""
        return unpack_integers(reports) < self.outcomes

    def _log_prob(self, reports: Bytes, code: int) -> Floats:
        """ln p near the code, ln q elsewhere."""
        offset = unpack_integers(reports) - code
        near = (offset >= 0) & (offset <= 2 * self.law.b)
        return np.array([np.log(self.q), np.log(self.p)])[near.astype(int)]

    def _simulate(self, histogram: Ints, rng: Generator) -> Ints:
        # Near with the chance above that of a uniform outcome, else a uniform outcome.
        near = 2 * self.law.b + 1
        close = rng.binomial(histogram, near * (self.p - self.q))
        counts = rng.multinomial(histogram.sum() - close.sum(), np.full(self.outcomes, 1 / self.outcomes)).astype(
            np.int64
        )
        codes = np.flatnonzero(close)
        if close.sum() < codes.size * near:  # person by person
            people = np.repeat(codes, close[codes])
            return counts + np.bincount(people + rng.integers(0, near, size=people.size), minlength=self.outcomes)
        for code in codes:
            counts[code : code + near] += rng.multinomial(close[code], np.full(near, 1 / near))
        return counts


def _smooth(f: Floats) -> Floats:
    """Each entry averaged with its neighbours, weights 1-2-1; at the ends 2-1."""
    padded = np.concatenate([[0.0], f, [0.0]])
    weight = np.full(f.size, 4.0)
    weight[[0, -1]] = 3.0
    smoothed = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / weight
    return smoothed / smoothed.sum()
