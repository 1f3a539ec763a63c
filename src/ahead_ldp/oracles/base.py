"""What every frequency oracle offers, and what the unbiased ones share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.canonical import integer
from ahead_ldp.device.laws.base import Law
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Bools, Bytes, Floats, Ints


@dataclass(frozen=True, slots=True)
class Oracle(ABC):
    """A frequency oracle on ``d`` cells: a device's integer law, in bulk, and how to read its reports.

    Guarantees, held for everything registered by the contract tests:
        privacy   every report is epsilon-LDP; the true epsilon is within 1e-6 of the declared one
        perturb   same law as the device's ``law.draw``, with the same integers
        simulate  same joint law as ``tally(perturb(codes))``; only the same mean, variance and covariance
                  where ``joint`` is False
    """

    name: ClassVar[str]
    law_type: ClassVar[type[Law]]
    joint: ClassVar[bool] = True
    law: Law

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The oracle with its best parameters for ``(epsilon, cells)``: those of its law."""
        return cls(cls.law_type.make(epsilon, cells))

    @property
    def d(self) -> int:
        """Cells; codes are 0 .. d-1."""
        return self.law.cells

    @property
    def outcomes(self) -> int:
        """Length of a tally's counts."""
        return self.d

    @property
    def report_bytes(self) -> int:
        """Bytes of one report."""
        return self.law.payload_length

    def perturb(self, codes: Ints, rng: Generator) -> Bytes:  # (n,) -> (n, report_bytes)
        """One packed report per code. The generator is a simulation's; devices use the law itself."""
        if not _are_counts(codes) or (codes.size and not codes.max() < self.d):
            raise ValueError(f"expected codes to be a flat array of integers in 0..{self.d - 1}")
        return self._perturb(codes.astype(np.int64, copy=False), rng)

    @abstractmethod
    def _perturb(self, codes: Ints, rng: Generator) -> Bytes: ...

    def tally(self, reports: Bytes) -> Tally:  # (n, report_bytes) -> counts (outcomes,)
        """Support counts of packed reports. Reports are taken as valid; ``valid`` says which are."""
        if reports.ndim != 2 or reports.shape[1] != self.report_bytes or reports.dtype != np.uint8:
            raise ValueError(
                f"expected reports of shape (n, {self.report_bytes}) and bytes, got {reports.shape} {reports.dtype}"
            )
        return Tally(len(reports), self._count(reports))

    @abstractmethod
    def _count(self, reports: Bytes) -> Ints: ...

    @abstractmethod
    def valid(self, reports: Bytes) -> Bools:  # (n, report_bytes) -> (n,)
        """Which reports the device could have made: the bulk form of ``law.check_payload``."""

    def log_prob(self, reports: Bytes, code: int) -> Floats:  # (n, report_bytes) -> (n,)
        """Natural logarithm of the probability of each report given the code."""
        return self._log_prob(reports, integer(code, "code", 0, self.d - 1))

    @abstractmethod
    def _log_prob(self, reports: Bytes, code: int) -> Floats: ...

    def simulate(self, histogram: Ints, rng: Generator) -> Tally:  # (d,) -> counts (outcomes,)
        """The tally of a group with this histogram of codes, at a cost that hardly depends on n."""
        if not _are_counts(histogram) or histogram.size != self.d:
            raise ValueError(
                f"expected a histogram of {self.d} counts >= 0, got {histogram.dtype} of shape {histogram.shape}"
            )
        return Tally(int(histogram.sum()), self._simulate(histogram.astype(np.int64, copy=False), rng))

    @abstractmethod
    def _simulate(self, histogram: Ints, rng: Generator) -> Ints: ...

    def check_tally(self, tally: Tally) -> None:
        """Refuse a tally of another question."""
        if tally.counts.size != self.outcomes:
            raise ValueError(
                f"expected a tally of {self.outcomes} counts for {self.name} on {self.d} cells, got {tally.counts.size}"
            )


class CoinOracle(Oracle):
    """An oracle whose law keeps what the value says with probability ``keep / 2**bits``, and draws anew otherwise."""

    __slots__ = ()

    @property
    def p(self) -> float:
        """Probability that the value's own outcome, cell or sign is kept."""
        return float(self.law.keep / 2**self.law.bits)  # type: ignore[attr-defined]


class IntegerOracle(Oracle):
    """An oracle whose report is one integer below ``outcomes``; the tally counts each."""

    __slots__ = ()

    def _count(self, reports: Bytes) -> Ints:
        return np.bincount(unpack_integers(reports), minlength=self.outcomes).astype(np.int64)

    def valid(self, reports: Bytes) -> Bools:
        """An outcome that exists."""
        return unpack_integers(reports) < self.outcomes


@dataclass(frozen=True, slots=True)
class Moments:
    """Variances and covariances that one person in cell x adds to n times the estimate."""

    own: float  # Var of the estimate's term for x itself
    other: float  # Var of the term for u != x
    cross_own: float  # Cov of the terms for x and u
    cross: float  # Cov of the terms for u and u', both not x


class LinearOracle(Oracle):
    """An oracle with an unbiased estimate that is linear in the counts.

    Guarantees, besides those of ``Oracle``:
        mean        E[estimate] is the group's frequency, for every cell
        variance    Var[estimate] == variance(n, f), exactly, given the group's people
        covariance  Cov[estimate] == covariance(n, f), exactly, given the group's people
    """

    __slots__ = ()

    @property
    @abstractmethod
    def moments(self) -> Moments:
        """The second moments of one report."""

    @abstractmethod
    def _estimate(self, tally: Tally) -> Floats: ...

    def estimate(self, tally: Tally) -> Floats:  # counts (outcomes,) -> (d,)
        """Unbiased frequencies; without reports the uniform ones, which no variance supports."""
        self.check_tally(tally)
        return self._estimate(tally) if tally.n else np.full(self.d, 1 / self.d)

    def variance(self, n: int, f: Floats | float = 0.0) -> Any:
        """Variance of a cell's estimate given the group's people, f its true frequency; infinite for n = 0."""
        m = self.moments
        if n == 0:
            return np.full(np.shape(f), np.inf)[()]
        return (f * m.own + (1 - f) * m.other) / n

    def covariance(self, n: int, f: Floats) -> Floats:  # (d,) -> (d, d)
        """Covariance of all cells' estimates given the group's people; for n = 0 infinite variances alone."""
        if n == 0:
            return np.diag(np.full(self.d, np.inf))
        m = self.moments
        cov = (m.cross + (m.cross_own - m.cross) * np.add.outer(f, f)) / n
        np.fill_diagonal(cov, self.variance(n, f))
        return cov

    def quadratic(self, n: int, f: Floats, weights: Floats) -> Floats:  # (d,), (..., d) -> (...)
        """Variance of ``weights @ estimate`` in O(d): the quadratic form of ``covariance``."""
        if n == 0:
            return np.where((weights != 0).any(-1), np.inf, 0.0)[()]
        m = self.moments
        w2 = weights**2
        total, squares = weights.sum(-1), w2.sum(-1)
        pairs = total**2 - squares
        pairs_f = 2 * (total * (weights @ f) - w2 @ f)
        return (w2 @ (f * m.own + (1 - f) * m.other) + m.cross * pairs + (m.cross_own - m.cross) * pairs_f) / n

    def group_variance(self, n: int, f: Floats, weights: Floats) -> Floats:  # (d,), (..., d) -> (...)
        """``quadratic``, and what the chance of who fell into the group adds: people are drawn from shares f."""
        return self.quadratic(n, f, weights) + (weights**2 @ f - (weights @ f) ** 2) / n

    def precision(self, n: int) -> float:
        """Inverse variance of a cell at f = 0; 0 without reports."""
        return 0.0 if n == 0 else 1 / float(self.variance(n))

    def contrast_precision(self, n: int) -> float:
        """Inverse of ``contrast_variance``; 0 without reports."""
        return 0.0 if n == 0 else 1 / self.contrast_variance(n)

    def contrast_variance(self, n: int) -> float:
        """Variance per cell that matters once the sum is known to be 1: Var - Cov, at uniform frequencies.

        A common shift of all cells carries no information about a distribution, so oracles are compared on
        the rest (an oracle whose estimates already sum to 1 gains nothing from knowing it).
        """
        m, f = self.moments, 1 / self.d
        cov = m.cross + (m.cross_own - m.cross) * 2 * f
        return float(f * m.own + (1 - f) * m.other - cov) / n if n else np.inf


class SupportOracle(LinearOracle):
    """An oracle whose report supports a set of cells: the value's own with probability p, another with q."""

    __slots__ = ()

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report supports its own cell."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report supports another cell."""

    @property
    @abstractmethod
    def pairs(self) -> tuple[float, float]:
        """Probabilities that a report supports its own and another given cell, and two given other cells."""

    @property
    def moments(self) -> Moments:
        """From the probabilities that a report supports one cell, or two."""
        p, q, scale = self.p, self.q, (self.p - self.q) ** 2
        own, other = self.pairs
        return Moments(p * (1 - p) / scale, q * (1 - q) / scale, (own - p * q) / scale, (other - q * q) / scale)

    def _estimate(self, tally: Tally) -> Floats:
        return (tally.counts / tally.n - self.q) / (self.p - self.q)  # AHEAD Sec. 2.2, Aggregation (WBLJ17)

    def _simulate(self, histogram: Ints, rng: Generator) -> Ints:
        # Every cell for itself: the joint law where cells are independent, each cell's own otherwise.
        return rng.binomial(histogram, self.p) + rng.binomial(histogram.sum() - histogram, self.q)


def _are_counts(x: Ints) -> bool:
    """Whether a flat array holds integers >= 0; anything else would be rounded without a word."""
    return x.ndim == 1 and np.issubdtype(x.dtype, np.integer) and not (x < 0).any()


def coins(threshold: int, bits: int, n: int, rng: Generator) -> Bools:
    """n coins that show True with probability ``threshold / 2**bits``, exactly."""
    dtype = np.uint32 if bits <= 32 else np.uint64
    return rng.integers(0, (1 << bits) - 1, size=n, dtype=dtype, endpoint=True) < threshold


def pack_integers(values: Ints, width: int) -> Bytes:  # (n,) -> (n, width)
    """Integers as big-endian bytes, the bulk form of the device's ``pack_integer``."""
    return np.ascontiguousarray(values.astype(">u8")).view(np.uint8).reshape(-1, 8)[:, 8 - width :].copy()


def unpack_integers(reports: Bytes) -> Ints:  # (n, width) -> (n,)
    """The integers behind ``pack_integers``."""
    wide = np.zeros((len(reports), 8), np.uint8)
    wide[:, 8 - reports.shape[1] :] = reports
    return wide.reshape(-1).view(">u8").astype(np.int64)
