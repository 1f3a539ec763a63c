"""Test statistics on one scale: standard deviations of a normal, so that one threshold fits all."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from ahead_ldp.schema.arrays import Floats, Ints

_FEWEST = 5.0  # expected in a cell of a chi-square
_HALF = log(0.5)


def chi_square(counts: Ints | Floats, probabilities: Floats) -> float | None:
    """Chi-square of counts against a law (Wilson, Hilferty 1931); None where there is nothing to compare.

    Neighbours are pooled until five are expected in each cell, so the order of the outcomes should mean something.
    """
    total = counts.sum()
    if total == 0 or (probabilities[counts > 0] <= 0).any():
        return None if total == 0 else float("inf")
    observed, expected = _pooled(counts, total * probabilities / probabilities.sum())
    if expected.size < 2:
        return None
    return wilson_hilferty(float(((observed - expected) ** 2 / expected).sum()), expected.size - 1)


def wilson_hilferty(value: float, freedom: int) -> float:
    """A chi-square of this many degrees of freedom as a normal deviate."""
    return float((np.cbrt(value / freedom) - (1 - 2 / (9 * freedom))) / sqrt(2 / (9 * freedom)))


def half_squares(value: float, cells: int) -> float:
    """A sum of squares of this many deviates, those above 0 left out, as a normal deviate.

    The number of deviates below 0 is binomial, and given it the sum is a chi-square: its tail is a mixture of theirs.
    """
    from scipy.special import gammaincc, gammaln, logsumexp, ndtri_exp

    value = max(value, 1e-12)
    k = np.arange(1, cells + 1)
    weights = gammaln(cells + 1) - gammaln(k + 1) - gammaln(cells - k + 1) + cells * _HALF
    tails = gammaincc(k / 2, value / 2)
    far = (k / 2 - 1) * log(value / 2) - value / 2 - gammaln(k / 2)  # its leading term, where the tail has no number
    tail = float(logsumexp(weights + np.where(tails > 0, np.log(np.maximum(tails, 1e-323)), far)))
    return float(-ndtri_exp(min(tail, -1e-15)))


def largest_of(z: float, tests: int) -> float:
    """The deviate of the largest among this many (Bonferroni): what is left of z once the search is paid for."""
    from scipy.special import log_ndtr, ndtri_exp

    tail = log(max(tests, 1)) + float(log_ndtr(-z))
    return 0.0 if tail >= _HALF else float(-ndtri_exp(tail))


def unskewed(z: Floats, skewness: Floats) -> Floats:
    """Deviates of right-skewed means on a normal scale: exact in the limit for counts of rare events.

    A Poisson count of mean m has skewness g = 1/sqrt(m), and 2 (sqrt(count) - sqrt(m)) is (2/g) (sqrt(1 + g z) - 1).
    """
    g = np.maximum(skewness, 1e-9)
    return np.where(z > 0, 2 / g * (np.sqrt(1 + g * np.maximum(z, 0.0)) - 1), z)


def distribution(estimate: Floats) -> Floats:
    """Unbiased estimates as frequencies: what is negative is nobody, and the rest adds up to 1."""
    f = np.maximum(estimate, 0.0)
    return f / f.sum() if f.sum() > 0 else np.full(f.size, 1 / f.size)


def _pooled(counts: Ints | Floats, expected: Floats) -> tuple[Floats, Floats]:
    borders, sum_ = [0], 0.0
    for i, e in enumerate(expected.tolist(), start=1):
        sum_ += e
        if sum_ >= _FEWEST:
            borders.append(i)
            sum_ = 0.0
    starts = np.array(borders[:-1] if len(borders) > 1 else [0])
    return np.add.reduceat(counts.astype(float), starts), np.add.reduceat(expected, starts)
