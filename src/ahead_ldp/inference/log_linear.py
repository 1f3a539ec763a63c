"""Densities whose logarithm is linear in some coefficients, fitted to noisy frequencies of cells.

The coefficients are normal a priori, each for itself; how far they go is chosen among several scales by the evidence,
in Laplace's approximation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.inference.cell_estimates import CellData, from_zero

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_WALK = np.array([0.01, 0.15, 0.4, 1.0, 2.5, 7.0])  # amplitudes: typical size in the logarithm
_INTEGRATED = np.array([0.01, 0.3, 0.9, 2.5, 7.0, 20.0])
_TREND = np.array([0.1, 10.0])  # standard deviation of the trend's two coefficients: hardly any, or a fall by e^10
_GRID = np.array([g for g in np.ndindex(_TREND.size, _WALK.size, _INTEGRATED.size) if g[0] or max(g) < 2])
_START = int(np.flatnonzero((np.array([1, 0, 3]) == _GRID).all(axis=1))[0])  # where the search begins
_LOG_PRIOR = np.where(_GRID[:, 0] == 0, -2.0, 0.0)  # few densities have no trend
_OWN = 4.0  # standard deviation of a coefficient that is a column's own: a share e^4 times as large
_FARTHEST = 4.0  # that a step may move the logarithm anywhere
_STEPS = 25


@dataclass(frozen=True, slots=True, eq=False)
class LogLinear:
    """One normal law of a density's logarithm: basis, mean of the coefficients, a root of their covariance."""

    weight: float  # among the laws of a mixture
    log_evidence: float
    basis: Floats  # (d, k)
    mean: Floats  # (k,)
    spread: Floats  # (k, k) covariance = S S^T
    frequencies: Floats  # (d,) at the mean

    def cumulative_spread(self) -> Floats:  # (d + 1, k)
        """A root of the covariance of the share below each code, to first order."""
        moved, x = self.basis @ self.spread, self.frequencies
        return from_zero(x[:, None] * (moved - x @ moved))


@dataclass(frozen=True, slots=True, eq=False)
class _Normal:
    """The problem linearised at some coefficients."""

    beta: Floats  # (k,)
    residual: Floats  # (cells,)
    gram: Floats  # (k, k) J^T J
    right: Floats  # (k,) J^T (residual + J beta)

    @classmethod
    def at(cls, data: CellData, basis: Floats, beta: Floats) -> _Normal:
        x = softmax(basis @ beta)
        j, residual = data.jacobian(basis, x), data.residual(x)
        return cls(beta, residual, j.T @ j, j.T @ (residual + j @ beta))

    def penalised(self, scale: Floats) -> float:
        return float(self.residual @ self.residual + ((self.beta / scale) ** 2).sum())

    def inner(self, scale: Floats) -> Floats:  # (..., k) -> (..., k, k)
        """I + S G S, S the prior standard deviations."""
        found: Floats = scale[..., :, None] * self.gram * scale[..., None, :]
        places = np.arange(self.beta.size)
        found[..., places, places] += 1.0
        return found

    def mean(self, scale: Floats) -> Floats:  # (..., k) -> (..., k)
        found: Floats = scale * np.linalg.solve(self.inner(scale), (scale * self.right)[..., None])[..., 0]
        return found

    def evidence(self, scales: Floats) -> Floats:  # (a, k) -> (a,)
        """Of several priors, in the linearised problem.

        One factorisation gives the determinant of I + S G S and, in a row added below, its root's share of S b.
        """
        k, b = self.beta.size, scales * self.right
        whole = np.empty((len(scales), k + 1, k + 1))
        whole[:, :k, :k], whole[:, k, :k], whole[:, k, k] = self.inner(scales), b, 1 + (b**2).sum(axis=1)
        root = np.linalg.cholesky(whole)
        diagonal = np.diagonal(root, axis1=1, axis2=2)[:, :k]
        return 0.5 * (root[:, k, :k] ** 2).sum(axis=1) - np.log(diagonal).sum(axis=1)


def fit(data: CellData, basis: Floats, start: Floats | None = None, own: int = 0) -> LogLinear:
    """Gauss-Newton steps for the coefficients; between them the walks' amplitudes with the highest evidence.

    The last ``own`` columns belong to neither the trend nor the walks; their prior is their own.
    """
    scales = _scales(basis.shape[1] - own)
    scales = np.hstack([scales, np.full((len(scales), own), _OWN)])
    chosen, near = _START, np.arange(len(scales))
    normal = _Normal.at(data, basis, np.zeros(basis.shape[1]) if start is None else start)
    for nearly in (1.0, 0.3, 0.1):
        normal = _climb(data, basis, normal, scales[chosen], nearly)
        best = int(near[(normal.evidence(scales[near]) + _LOG_PRIOR[near]).argmax()])
        near = np.flatnonzero((np.abs(_GRID - _GRID[best]) <= 1).all(axis=1))
        if best == chosen and nearly < 1:
            break
        chosen = best
    normal = _climb(data, basis, normal, scales[chosen], 0.1)
    return _law(basis, normal, scales, chosen, near)


def _climb(data: CellData, basis: Floats, normal: _Normal, scale: Floats, nearly: float) -> _Normal:
    """Steps towards the mode, none of which raises the penalised misfit, until one moves the logarithm less."""
    for _ in range(_STEPS):
        ahead = normal.mean(scale) - normal.beta
        far = float(np.ptp(basis @ ahead))
        share = min(1.0, _FARTHEST / max(far, 1e-300))
        now = normal.penalised(scale)
        for _ in range(8):
            tried = _Normal.at(data, basis, normal.beta + share * ahead)
            if tried.penalised(scale) <= now:
                break
            share /= 3
        else:
            return normal
        normal = tried
        if share * far < nearly:
            break
    return normal


def _law(basis: Floats, normal: _Normal, scales: Floats, chosen: int, near: Ints) -> LogLinear:
    """The coefficients' law, its mean averaged over places of the grid near the best."""
    best, evidence = scales[chosen], normal.evidence(scales[near]) + _LOG_PRIOR[near]
    mean = softmax(evidence) @ normal.mean(scales[near])
    root = np.linalg.cholesky(normal.inner(best))
    spread = best[:, None] * np.linalg.solve(root, np.eye(best.size)).T
    top = float(_LOG_PRIOR[chosen]) - 0.5 * normal.penalised(best) - float(np.log(np.diag(root)).sum())
    return LogLinear(1.0, top, basis, mean, spread, softmax(basis @ mean))


def _scales(k: int) -> Floats:  # -> (amplitudes, k)
    """Prior standard deviations of the coefficients for each place of the grid: trend, walk, integrated walk.

    The cosines of a random walk go down as 1/j, those of an integrated one as 1/j^2.
    """
    j = np.arange(1, k - 1)
    walk, integrated = 1 / j**2, 1 / j**4.0
    walk, integrated = walk / walk.sum(), integrated / integrated.sum()
    t, a, b = _TREND[_GRID[:, :1]], _WALK[_GRID[:, 1:2]], _INTEGRATED[_GRID[:, 2:]]
    cosines = np.sqrt(2 * (a**2 * walk + b**2 * integrated))  # of variance a^2 + b^2 on average along the codes
    return np.hstack([t, t, cosines])


def softmax(eta: Floats) -> Floats:  # (..., d) -> (..., d)
    """Positive numbers of sum 1 with these logarithms, but for a constant."""
    weight = np.exp(eta - eta.max(axis=-1, keepdims=True))
    found: Floats = weight / weight.sum(axis=-1, keepdims=True)
    return found
