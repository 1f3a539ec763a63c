"""Subset selection (SS)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import lgamma
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws.subset import SSLaw
from ahead_ldp.oracles.base import CoinOracle, SupportOracle, coins
from ahead_ldp.oracles.bits import padding_is_zero, popcount_rows, positional_popcount
from ahead_ldp.schema.arrays import Bools, Bytes, Floats, Ints

_ROWS = 1 << 12  # people drawn at a time: a (cells, people) array is held
_CELLS_AT_ONCE = 64  # whose chances are held
_PEOPLE_AT_ONCE = 5 * 10**8  # NumPy draws without replacement from fewer than 10**9


@dataclass(frozen=True, slots=True)
class SS(CoinOracle, SupportOracle):
    """A set of w cells out of d that favours the own one (Ye, Barg 2018): the least variance for any d.

    Its estimates sum to exactly 1. With w = 1 it is GRR, with w near d / (exp(epsilon) + 1) it is optimal.
    """

    name: ClassVar[str] = "ss"
    law_type: ClassVar[type[SSLaw]] = SSLaw
    law: SSLaw

    @property
    def q(self) -> float:
        """Probability that the set holds a given other cell."""
        return (self.law.w - self.p) / (self.d - 1)

    @property
    def pairs(self) -> tuple[float, float]:
        """The own cell and w - 1 of the others; two of the others, of which w - 1 or w are in the set."""
        w, pairs = self.law.w, max((self.d - 1) * (self.d - 2), 1)  # of two cells w is 1, and there is no such pair
        both_others = (self.p * (w - 1) * (w - 2) + (1 - self.p) * w * (w - 1)) / pairs
        return self.p * (w - 1) / (self.d - 1), both_others

    def _perturb(self, codes: Ints, rng: Generator) -> Bytes:
        reports = np.empty((codes.size, self.report_bytes), np.uint8)
        for start in range(0, codes.size, _ROWS):
            reports[start : start + _ROWS] = self._perturb_block(codes[start : start + _ROWS], rng)
        return reports

    def _perturb_block(self, codes: Ints, rng: Generator) -> Bytes:
        # Selection sampling: going through the others in order, take each with chance (still wanted) / (still left).
        d, own = self.d, coins(self.law.keep, self.law.bits, codes.size, rng)
        others = np.zeros((d, codes.size), bool)
        wanted = (self.law.w - own).astype(np.int32)
        for i in range(d - 1):
            np.less(rng.integers(0, d - 1 - i, size=codes.size, dtype=np.int32), wanted, out=others[i])
            wanted -= others[i]
        cell = np.arange(d)[:, None]
        chosen = np.where(cell <= codes, others, np.roll(others, 1, axis=0))  # the own cell pushes the rest up by one
        chosen[codes, np.arange(codes.size)] = own
        return np.packbits(chosen, axis=0, bitorder="little").T

    def _count(self, reports: Bytes) -> Ints:
        return positional_popcount(reports, self.d)

    def valid(self, reports: Bytes) -> Bools:
        """Zero padding and w ones."""
        return padding_is_zero(reports, self.d) & (popcount_rows(reports) == self.law.w)

    def _log_prob(self, reports: Bytes, code: int) -> Floats:
        """ln of p over the sets that hold the code, or of 1 - p over those that do not."""
        w, others = self.law.w, self.d - 1
        holds = (reports[:, code // 8] >> (code % 8) & 1) == 1
        inside = np.log(self.p) - _log_choose(others, w - 1)
        outside = np.log1p(-self.p) - _log_choose(others, w)
        return np.where(holds, inside, outside)

    def _simulate(self, histogram: Ints, rng: Generator) -> Ints:
        """The exact joint law in O(d w): people are told apart only by how many cells they still want.

        P(set | code) is the same for all sets, plus a bonus for those that hold the code. So with probability
        ``bonus`` a person takes the own cell and w - 1 others, else any w of all d cells. Go through the cells in
        order, as selection sampling does, with the numbers of people who want r more cells and (a) have an own
        cell ahead, to be skipped in their draw, or (b) have none.
        """
        if (parts := int(histogram.sum()) // _PEOPLE_AT_ONCE + 1) > 1:  # tallies of parts of a group add up
            borders = [histogram * i // parts for i in range(parts + 1)]
            return sum((self._simulate(b - a, rng) for a, b in pairwise(borders)), np.zeros(self.d, np.int64))
        d, w = self.d, self.law.w
        bonus = (self.p * d - w) / (d - w) if d > w else 0.0
        owners = rng.binomial(histogram, bonus)
        people = np.zeros((2, w + 1), np.int64)  # who want r more cells: with the own cell ahead, without
        people[0, w - 1], people[1, w] = owners.sum(), histogram.sum() - owners.sum()
        wants, counts = np.arange(w + 1), list[Ints]()
        for first in range(0, d, _CELLS_AT_ONCE):
            arriving = owners[first : first + _CELLS_AT_ONCE].tolist()
            left = np.arange(d - first, d - first - len(arriving), -1)[:, None, None] - [[1], [0]]
            chances = np.minimum(wants / np.maximum(left, 1), 1.0)  # (cells, 2, w + 1)
            taken = []
            for own, chance in zip(arriving, chances, strict=True):
                if own:
                    arrived = rng.multivariate_hypergeometric(people[0], own, method="marginals")
                    people[0] -= arrived
                take = rng.binomial(people, chance)
                people -= take
                people[:, :-1] += take[:, 1:]
                if own:
                    people[1] += arrived
                taken.append(take)
            counts.append(np.sum(taken, axis=(1, 2)))
        return owners + np.concatenate(counts)


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
