"""Densities whose logarithm is linear in some coefficients, fitted to noisy frequencies of cells.

The coefficients are normal a priori, each for itself; how far they go is chosen among several scales by the evidence,
in Laplace's approximation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, from_zero
from ahead_ldp.schema.arrays import Floats, Ints

# How far the coefficients may go a priori: a point is an index into each of the three lists of standard deviations.
_TREND = np.array([0.1, 10.0])  # of the trend's two coefficients: hardly any, or a fall by e^10 (decision 011)
_WALK = np.array([0.01, 0.15, 0.4, 1.0, 2.5, 7.0])  # of a random walk in the logarithm (choice A15)
_INTEGRATED = np.array([0.01, 0.3, 0.9, 2.5, 7.0, 20.0])  # of an integrated one (choice A15)
_NO_TREND = [(0, walk, integrated) for walk in (0, 1) for integrated in (0, 1)]  # then the walks stay small
_POINTS = np.array([*_NO_TREND, *((1, *point) for point in np.ndindex(_WALK.size, _INTEGRATED.size))])
# The points that are looked at first: without a trend all, with one every other. Each point is one or beside one.
_FIRST_POINTS = np.flatnonzero([trend == 0 or (w in (0, 2, 4) and i in (1, 3, 5)) for trend, w, i in _POINTS.tolist()])
_LOG_PRIOR = np.where(_POINTS[:, 0] == 0, -2.0, 0.0)  # few densities have no trend (decision 011)
_OWN_SD = 4.0  # of a coefficient that is a column's own: a share e^4 times as large (choice A15)
_LONGEST_STEP = 4.0  # that a step may move the logarithm anywhere (choice A17)
_MOST_STEPS = 25  # tolerance: fits end after some five
_LEAST_SHARE = 1e-12  # tolerance: that a place is taken to have, so that it has a logarithm
_LEAST_PRIOR = 1e-14  # tolerance: the prior's part in a precision that is factorised, over the largest of the reports'


@dataclass(frozen=True, slots=True, eq=False)
class LogLinear:
    """One normal law of a density's logarithm: basis, mean of the coefficients, a root of their covariance."""

    weight: float  # among the laws of a mixture
    log_evidence: float
    basis: Floats  # (d, k)
    mean: Floats  # (k,)
    spread: Floats  # (k, k) covariance = S S^T
    frequencies: Floats  # (d,) at the mean

    def on(self, basis: Floats) -> LogLinear:  # (d, k)
        """The same coefficients for another basis, such as that of all codes."""
        return replace(self, basis=basis, frequencies=softmax(basis @ self.mean))

    def cumulative_spread(self) -> Floats:  # (d + 1, k)
        """A root of the covariance of the share below each code, to first order."""
        moved, x = self.basis @ self.spread, self.frequencies
        return from_zero(x[:, None] * (moved - x @ moved))  # A25


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Densities of places whose logarithm per code is linear in coefficients, and the cells they are seen in."""

    data: CellData  # its borders count the places
    basis: Floats  # (places, k) trend, cosines, columns of their own
    width: Floats  # (places,) how many codes a place has
    own: int = 0  # columns that belong to neither the trend nor the walks; their prior is their own
    log_prior: float = 0.0  # of this model among others

    @property
    def scales(self) -> Floats:  # (amplitudes, k)
        """Prior standard deviations for each point of the grid."""
        shared = _scales(self.basis.shape[1] - self.own)
        return np.hstack([shared, np.full((len(shared), self.own), _OWN_SD)])

    def density(self, beta: Floats) -> Floats:  # (k,) -> (places,)
        """The share of every place."""
        return softmax(self.basis @ beta + np.log(self.width))  # A13

    def start(self, x: Floats) -> Start:  # (places,)
        """From the problem linearised at some shares of sum 1."""
        normal, scales = _Normal.near(self, np.maximum(x, _LEAST_SHARE)), self.scales
        evidence = normal.evidence(scales[_FIRST_POINTS]) + _LOG_PRIOR[_FIRST_POINTS]
        chosen = int(_FIRST_POINTS[evidence.argmax()])
        return Start(self, scales, chosen, normal.mean(scales[chosen]), self.log_prior + float(evidence.max()))


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where a fit begins. Evidences of models that were linearised at the same shares can be compared."""

    model: Model
    scales: Floats  # (amplitudes, k)
    chosen: int  # among them
    beta: Floats  # (k,)
    log_evidence: float

    def settled(self) -> Start:
        """Nearer to the mode of the problem itself."""
        scale, data = self.scales[self.chosen], self.model.data
        normal = _Normal.at(self.model, self.beta)
        if normal.penalised(scale) > data.estimate @ data.estimate:  # the linear problem was too far off
            normal = _Normal.at(self.model, np.zeros_like(self.beta))
        return replace(self, beta=_climb(self.model, normal, scale, 0.3).beta)

    def filled(self, basis: Floats, borders: Ints) -> Start:  # (d, k), (places + 1,)
        """Places not even inside, but as the coefficients have it for a basis of all codes."""
        inside = basis @ self.beta - np.repeat(self.model.basis @ self.beta, np.diff(borders))
        width = np.add.reduceat(np.exp(np.clip(inside, -_LONGEST_STEP, _LONGEST_STEP)), borders[:-1])  # A20
        return replace(self, model=replace(self.model, width=width))


@dataclass(frozen=True, slots=True, eq=False)
class _Normal:
    """The problem linearised at some coefficients."""

    beta: Floats  # (k,)
    residual: Floats  # (cells,)
    gram: Floats  # (k, k) J^T J
    right: Floats  # (k,) J^T (residual + J beta)

    @classmethod
    def at(cls, model: Model, beta: Floats) -> _Normal:
        """The model as a normal law near some coefficients."""
        x = model.density(beta)
        j, residual = model.data.jacobian(model.basis, x), model.data.residual(x)
        return cls(beta, residual, j.T @ j, j.T @ (residual + j @ beta))  # A16

    @classmethod
    def near(cls, model: Model, x: Floats) -> _Normal:
        """At shares that are none of the model's: what their own logarithm does stands for the coefficients."""
        j = model.data.jacobian(np.column_stack([model.basis, np.log(x / model.width)]), x)
        j, residual = j[:, :-1], model.data.residual(x) + j[:, -1]  # A19
        return cls(np.zeros(j.shape[1]), residual, j.T @ j, j.T @ residual)

    def penalised(self, scale: Floats) -> float:
        """Twice the negative log posterior at the coefficients."""
        return float(self.residual @ self.residual + ((self.beta / scale) ** 2).sum())  # A17

    def inner(self, scale: Floats) -> Floats:  # (..., k) -> (..., k, k)
        """I + S G S, S the prior standard deviations; more than I where G is so large that I would be lost."""
        told = scale[..., :, None] * self.gram * scale[..., None, :]
        diagonal = np.einsum("...ii->...i", told)
        diagonal += np.maximum(1.0, _LEAST_PRIOR * diagonal.max(axis=-1, keepdims=True))
        return told

    def mean(self, scale: Floats) -> Floats:  # (..., k) -> (..., k)
        """The coefficients to expect for these scales."""
        return scale * np.linalg.solve(self.inner(scale), (scale * self.right)[..., None])[..., 0]  # A16

    def evidence(self, scales: Floats) -> Floats:  # (a, k) -> (a,)
        """Of several priors, in the linearised problem.

        One factorisation gives the determinant of I + S G S and, in a row added below, its root's share of S b.
        """
        k, b = self.beta.size, scales * self.right
        whole = np.empty((len(scales), k + 1, k + 1))
        whole[:, :k, :k], whole[:, k, :k], whole[:, k, k] = self.inner(scales), b, 1 + (b**2).sum(axis=1)
        root = np.linalg.cholesky(whole)
        diagonal = np.diagonal(root, axis1=1, axis2=2)[:, :k]
        return 0.5 * (root[:, k, :k] ** 2).sum(axis=1) - np.log(diagonal).sum(axis=1)  # A18


def fit(start: Start) -> LogLinear:
    """Gauss-Newton steps for the coefficients; between them the walks' amplitudes with the highest evidence."""
    model, scales, chosen = start.model, start.scales, start.chosen
    normal = _Normal.at(model, start.beta)
    for nearly in (0.3, 0.1):
        normal = _climb(model, normal, scales[chosen], nearly)
        near = np.flatnonzero((np.abs(_POINTS - _POINTS[chosen]) <= 1).all(axis=1))
        best = int(near[(normal.evidence(scales[near]) + _LOG_PRIOR[near]).argmax()])
        if best == chosen:
            break
        chosen = best
    normal = _climb(model, normal, scales[chosen], 0.1)
    return _law(model, normal, scales, chosen, near)


def _climb(model: Model, normal: _Normal, scale: Floats, nearly: float) -> _Normal:
    """Steps towards the mode, none of which raises the penalised misfit, until one moves the logarithm less."""
    for _ in range(_MOST_STEPS):
        ahead = normal.mean(scale) - normal.beta
        far = float(np.ptp(model.basis @ ahead))
        share = min(1.0, _LONGEST_STEP / max(far, 1e-300))
        now = normal.penalised(scale)
        for _ in range(8):
            tried = _Normal.at(model, normal.beta + share * ahead)
            if tried.penalised(scale) <= now:
                break
            share /= 3
        else:
            return normal
        normal = tried
        if share * far < nearly:
            break
    return normal


def _law(model: Model, normal: _Normal, scales: Floats, chosen: int, near: Ints) -> LogLinear:
    """The coefficients' law, its mean averaged over points of the grid near the best."""
    best, evidence = scales[chosen], normal.evidence(scales[near]) + _LOG_PRIOR[near]
    mean = softmax(evidence) @ normal.mean(scales[near])  # A18
    root = np.linalg.cholesky(normal.inner(best))
    spread = best[:, None] * np.linalg.solve(root, np.eye(best.size)).T  # A16
    top = -0.5 * normal.penalised(best) - float(np.log(np.diag(root)).sum()) + float(_LOG_PRIOR[chosen])  # A18
    return LogLinear(1.0, model.log_prior + top, model.basis, mean, spread, model.density(mean))


def _scales(k: int) -> Floats:  # -> (amplitudes, k)
    """Prior standard deviations of the coefficients for each point of the grid: trend, walk, integrated walk.

    The cosines of a random walk go down as 1/j, those of an integrated one as 1/j^2.
    """
    j = np.arange(1, k - 1)
    walk, integrated = (falling / falling.sum() for falling in (1 / j**2, 1 / j**4.0))
    t, a, b = _TREND[_POINTS[:, :1]], _WALK[_POINTS[:, 1:2]], _INTEGRATED[_POINTS[:, 2:]]
    cosines = np.sqrt(2 * (a**2 * walk + b**2 * integrated))  # A15: a^2 + b^2 on average along the codes
    return np.hstack([t, t, cosines])


def softmax(eta: Floats) -> Floats:  # (..., d) -> (..., d)
    """Positive numbers of sum 1 with these logarithms, but for a constant."""
    weight = np.exp(eta - eta.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)
