"""From one interval that holds to many that hold at once."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Literal

import numpy as np

from ahead_ldp.schema.arrays import Floats

Kind = Literal["strict", "model"]  # of an interval
Joint = Callable[[], Floats | None]  # draws of all errors together, (draws, n), or None where nothing is known

_SUREST = 1 - 2**-52  # the largest level whose quantile is finite after rounding
_SEED = 1_962  # draws for a critical value are the same every time
_TRACE = 1e-6  # on the diagonal of correlations: a singular matrix gets a root, and quantiles move by less than chance


def pointwise_quantile(level: float) -> float:
    """How many standard deviations a normal error stays within, with probability ``level``."""
    if not 0 < level < 1:
        raise ValueError(f"expected 0 < level < 1, got {level!r}")
    return NormalDist().inv_cdf((1 + min(level, _SUREST)) / 2)


def shared_level(level: float, count: int) -> float:
    """The level of each of ``count`` intervals that share what may go wrong; a level itself at the ends of rounding."""
    pointwise_quantile(level)  # refuses what is no level
    return min(max(level, 1 - (1 - level) / max(count, 1)), _SUREST)


def bonferroni_quantile(count: int, level: float) -> float:
    """How many standard deviations ``count`` errors all stay within, however they depend on one another."""
    return pointwise_quantile(shared_level(level, count))


def largest_quantile(draws: Floats, spread: Floats, level: float) -> float:  # (k, n), (n,) -> scalar
    """How many of its standard deviations no error exceeds, with probability ``level``: the sup-t constant.

    Errors that are known to be 0 do not count. Between the pointwise quantile and Bonferroni's, which bound it.
    """
    some = (spread > 0) & np.isfinite(spread)
    least, most = pointwise_quantile(level), bonferroni_quantile(int(some.sum()), level)
    if some.sum() < 2:
        return least
    drawn = float(np.quantile(np.abs(draws[:, some] / spread[some]).max(axis=1), level))
    return min(max(drawn, least), most)


def largest_of(correlation: Floats, level: float, draws: int = 4000) -> float:  # (n, n)
    """How many standard deviations no one-sided bound is short by, with probability ``level``: sup-t for bounds.

    The two ends of one interval are bounds. Between the pointwise quantile of an interval and Bonferroni's.
    """
    least = pointwise_quantile(level)
    if len(correlation) <= 2:
        return least
    most = pointwise_quantile(1 - 2 * (1 - level) / len(correlation))  # each bound has one side
    drawn = float(np.quantile(normal_draws(correlation, draws).max(axis=1), level))
    return min(max(drawn, least), most)


def reach(level: float, spread: Floats | None, joint: Joint | None) -> tuple[float, str]:
    """How many standard deviations an interval reaches to each side, and by which rule: the one place that says so.

    "pointwise": the normal quantile, for ``spread`` None or a single error. "sup-t": the ``level`` quantile of the
    largest error of all, each in its spread (n,), from their joint law. "Bonferroni" where that is not known: right,
    but wider.
    """
    if spread is None or spread.size < 2:
        return pointwise_quantile(level), "pointwise"
    draws = None if joint is None else joint()
    if draws is None:
        return bonferroni_quantile(int((spread > 0).sum()), level), "Bonferroni"
    return largest_quantile(draws, spread, level), "sup-t"


def normal_draws(covariance: Floats, count: int) -> Floats:  # (n, n) -> (count, n)
    """Normal errors with this covariance; the same for the same matrix.

    A trace is added to the diagonal of the correlations, which may be singular.
    """
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    correlation = covariance * inverse[:, None] * inverse
    root = _root(correlation)
    z = np.random.default_rng(_SEED).standard_normal((count, len(root)))
    return np.asarray((z @ root.T) * scale)


def with_spread(draws: Floats, spread: Floats) -> Floats:  # (k, n), (n,) -> (k, n)
    """The draws, each column scaled to this standard deviation about 0."""
    own = np.sqrt((draws**2).mean(axis=0))
    return draws * np.divide(spread, own, out=np.zeros_like(own), where=own > 0)


def _root(correlation: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.cholesky(correlation + _TRACE * np.eye(len(correlation))), np.float64)
    except np.linalg.LinAlgError:  # not quite a covariance: keep what is
        values, vectors = np.linalg.eigh(correlation)
        # The symmetric root: others depend on the signs of the eigenvectors, and those on the machine.
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T, np.float64)
