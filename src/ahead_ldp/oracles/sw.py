"""Discrete square wave (SW), read by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws.wave import SWLaw
from ahead_ldp.oracles.base import IntegerOracle, coins, pack_integers, unpack_integers
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Bytes, Floats, Ints

_LEAST_LIKELY = 1e-300  # keeps the logarithm of an outcome that cannot happen finite


@dataclass(frozen=True, slots=True)
class SW(IntegerOracle):
    """An outcome near the code, on a domain b cells longer at both ends (LWLLS20, in whole cells).

    There is no unbiased estimate to speak of; it offers its likelihood, and EM on it. Outcome o is near code v
    when v <= o <= v + 2 b.
    """

    name: ClassVar[str] = "sw"
    law_type: ClassVar[type[SWLaw]] = SWLaw
    law: SWLaw

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

    def outcome_probabilities(self, f: Floats) -> Floats:  # (..., d) -> (..., outcomes)
        """The law of one report when codes have frequencies f: the likelihood, in O(d)."""
        reach, total = 2 * self.law.b, f.sum(axis=-1, keepdims=True)
        below = np.empty((*f.shape[:-1], self.outcomes + reach + 1))
        below[..., : reach + 1], below[..., reach + 1 + self.d :] = 0.0, total
        np.cumsum(f, axis=-1, out=below[..., reach + 1 : reach + 1 + self.d])
        near = below[..., reach + 1 :] - below[..., : self.outcomes]
        return np.asarray(self.q * total + (self.p - self.q) * near)

    def back(self, x: Floats) -> Floats:  # (..., outcomes) -> (..., d)
        """The transpose of ``outcome_probabilities``: for each code the sum of x times its report's law."""
        below = np.zeros((*x.shape[:-1], self.outcomes + 1))
        np.cumsum(x, axis=-1, out=below[..., 1:])
        near = below[..., 2 * self.law.b + 1 :] - below[..., : self.d]
        return np.asarray(self.q * x.sum(axis=-1, keepdims=True) + (self.p - self.q) * near)

    def log_likelihood(self, tally: Tally, f: Floats) -> float:
        """Log-likelihood of the frequencies f."""
        self.check_tally(tally)
        return float(_log_likelihood(tally.counts, self.outcome_probabilities(f)))

    def em(self, tally: Tally, *, smooth: bool = False, tolerance: float = 1e-3, most_steps: int = 10_000) -> Floats:
        """Frequencies by expectation maximisation (LWLLS20); ``smooth`` averages neighbours 1-2-1 each step.

        It stops when a step gains less than ``tolerance`` (times exp(epsilon) without smoothing, as published) in
        log-likelihood.
        """
        self.check_tally(tally)
        return self.em_rows(tally.counts[None], smooth=smooth, tolerance=tolerance, most_steps=most_steps)[0]

    def em_rows(self, counts: Ints, *, smooth: bool, tolerance: float, most_steps: int = 10_000) -> Floats:
        """``em`` for the counts of many tallies (r, outcomes) side by side: frequencies (r, d).

        Each row stops on its own; one without reports stays uniform.
        """
        estimate = np.full((len(counts), self.d), 1 / self.d)
        rows = np.flatnonzero(counts.any(axis=1))
        f, seen = estimate[rows], counts[rows]
        limit = tolerance if smooth else tolerance * self.p / self.q
        before, likely = np.full(rows.size, -np.inf), self.outcome_probabilities(f)
        for _ in range(most_steps if rows.size else 0):
            f = f * self.back(seen / likely)
            f /= f.sum(axis=1, keepdims=True)
            if smooth:
                f = _smooth(f)
            likely = self.outcome_probabilities(f)
            now = _log_likelihood(seen, likely)
            going = now - before >= limit
            before = now
            if not going.all():
                estimate[rows[~going]] = f[~going]
                rows, f, seen, likely, before = rows[going], f[going], seen[going], likely[going], before[going]
                if rows.size == 0:
                    break
        estimate[rows] = f
        return estimate

    def _perturb(self, codes: Ints, rng: Generator) -> Bytes:
        near = 2 * self.law.b + 1
        other = rng.integers(0, self.d - 1, size=codes.size)
        far = other + np.where(other >= codes, near, 0)
        close = codes + rng.integers(0, near, size=codes.size)
        outcome = np.where(coins(self.law.keep, self.law.bits, codes.size, rng), close, far)
        return pack_integers(outcome, self.report_bytes)

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


def _log_likelihood(counts: Ints, likely: Floats) -> Floats:  # (..., outcomes), (..., outcomes) -> (...)
    return np.asarray((counts * np.log(np.maximum(likely, _LEAST_LIKELY))).sum(axis=-1))


def _smooth(f: Floats) -> Floats:  # (r, d) -> (r, d)
    """Each entry averaged with its neighbours, weights 1-2-1; at the ends 2-1."""
    smoothed = 2 * f
    smoothed[:, 1:] += f[:, :-1]
    smoothed[:, :-1] += f[:, 1:]
    smoothed[:, 1:-1] /= 4
    smoothed[:, [0, -1]] /= 3
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))
