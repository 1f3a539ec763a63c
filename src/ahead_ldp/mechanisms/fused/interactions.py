"""How two attributes depend on each other, beyond their margins: a smooth log-linear model with learned shrinkage.

A pair's table is the product of its margins times exp(g), brought back to the margins by proportional fitting; g is a
sum of products of smooth functions of the two ranks. Coefficients are normal with a variance for each degree of
roughness, which the reports themselves choose (empirical Bayes): without dependence they shrink towards 0, and the
table to the product. Single cells may depart from what the functions say, the more the more coefficients the reports
determine (``rough_cells``).

The first function is the normal score of the rank, so a Gaussian copula of any correlation needs one coefficient:
its logarithm is z w r / (1 - r^2) and terms of z or w alone, which the margins take care of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.estimates.solvers.proportional_fitting import margin_scales, margin_system, scaled
from ahead_ldp.mechanisms.adaptive.log_linear import softmax
from ahead_ldp.mechanisms.fused.grid_reports import GridReport, column_shares, pooled
from ahead_ldp.mechanisms.fused.rough_cells import fit_cells
from ahead_ldp.schema.arrays import Floats, Ints

_MOST_STEPS = 40  # tolerance: fits end after some ten
_LARGEST_LOG = 30.0  # tolerance: of g, so that exp stays finite
_FIRST_SD = 0.7  # of the first coefficient before anything is known (choice F9)
_ROUGHNESS_POWER = 3.0  # prior variances fall with this power of the roughness (choice F9)
_ROUGH_VARIANCE = 0.001  # expected of coefficients of roughness 2 or more, times that power of it (choice F9)
_WIDER_PRIORS = (0.0, 0.1, 1.0, 10.0)  # of the first prior's variances, which coefficients have at least (decision 004)
_ALIKE_SHARE = 0.5  # of the errors for which these count alike, whatever their evidence (choice F10)
_CELL_STRENGTH = 100_000.0  # of the smooth table among single cells, times the square of ``determined`` (choice F12)
_FEWEST_DETERMINED = 0.1  # coefficients that a table is taken to need: no strength is infinite (choice F12)
_LEAST_MASS = 1e-12  # tolerance: of a cell, so that it has a variance


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Functions on the bins of one attribute, orthonormal under the bins' masses and to the constant."""

    functions: Floats  # (bins, k)
    roughness: Ints  # (k,) from 1

    @classmethod
    def of(cls, mass: Floats, most: int, nominal: bool = False, missing: bool = False) -> Basis:
        """The normal score of the rank, then cosines of it; contrasts for nominal bins and for the missing one."""
        from scipy.special import ndtri

        bins = mass.size
        mass = np.maximum(mass / mass.sum(), 1e-9)
        parts: list[Floats] = []
        if nominal:
            parts.append(np.eye(bins)[:, np.argsort(-mass, kind="stable")[: min(bins - 1, 2 * most)]])
            roughness = np.ones(parts[0].shape[1], np.int64)
        else:
            ordered = bins - missing
            rank = np.cumsum(mass[:ordered]) - mass[:ordered] / 2
            rank /= mass[:ordered].sum()
            smooth = [ndtri(rank), *(np.cos(np.pi * k * rank) for k in range(2, most + 1))][: max(ordered - 1, 0)]  # F7
            roughness = np.arange(1, len(smooth) + 1)
            if missing:
                parts.append(np.eye(bins)[:, -1:])
                roughness = np.concatenate([[1], roughness]) if ordered else np.array([], np.int64)
            parts += [np.pad(f, (0, int(missing)))[:, None] for f in smooth]
        root = np.sqrt(mass)[:, None]
        q, r = np.linalg.qr(np.hstack([root, *(p * root for p in parts)]))
        functions = (q * np.where(np.diag(r) < 0, -1.0, 1.0) / root)[:, 1:]
        return cls(functions, roughness[: functions.shape[1]])


@dataclass(frozen=True, slots=True, eq=False)
class Interaction:
    """A pair's table of bins with its margins, and how uncertain its dependence is."""

    table: Floats  # (r, c)
    bases: tuple[Basis, Basis]
    coefficients: Floats  # (k l,)
    covariance: Floats  # (k l, k l)
    report: GridReport | None  # the finest; None: nobody was asked
    cell_variance: Floats  # (g, h) of the departures of its single cells

    def answers(self, first: Floats, second: Floats) -> Floats:  # (n, r), (n, c) -> (n,)
        """The mass of boxes that cover these shares of the bins."""
        return ((first @ self.table) * second).sum(axis=1)

    def slopes(self, first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
        """How boxes move with the row masses (n, r), the column masses (n, c) and the coefficients (n, k l)."""
        r = len(self.table)
        weights = np.hstack([first * (second @ self.table.T), second * (first @ self.table)])
        by_margin: Floats = np.linalg.solve(margin_system(self.table), weights.T).T.astype(float, copy=False)  # F18
        b1, b2 = (b.functions for b in self.bases)
        inner = np.einsum("ij,njl->nil", self.table, second[:, :, None] * b2)
        direct = np.einsum("ni,ik,nil->nkl", first, b1, inner)
        row_sums = b1[:, :, None] * (self.table @ b2)[:, None, :]  # (r, k, l)
        column_sums = (self.table.T @ b1)[:, :, None] * b2[:, None, :]
        direct -= np.tensordot(by_margin[:, :r], row_sums, 1) + np.tensordot(by_margin[:, r:], column_sums, 1)  # F18
        return by_margin[:, :r], by_margin[:, r:], direct.reshape(len(first), -1)

    def cell_slopes(self, first: Floats, second: Floats) -> Floats:  # (n, r), (n, c) -> (n, g h)
        """How boxes move with departures of single cells: the share of a cell inside, less the margins' part."""
        assert self.report is not None
        one = column_shares(first, self.table.sum(axis=1), self.report.rows)
        other = column_shares(second, self.table.sum(axis=0), self.report.columns)
        one, other = (side - side.mean(axis=1, keepdims=True) for side in (one, other))  # F15
        return (one[:, :, None] * other[:, None, :]).reshape(len(first), -1)


@one_thread
def fit_interaction(
    rows: Floats,
    columns: Floats,
    bases: tuple[Basis, Basis],
    reports: Sequence[GridReport],
) -> Interaction:
    """The table with these margins that the reports make likeliest, given shrinkage that they choose themselves.

    Columns of finer grids are cut out of those of coarser ones.
    """
    table, told = np.outer(rows, columns), pooled(reports)
    size = bases[0].roughness.size * bases[1].roughness.size
    if not told or size == 0:
        return Interaction(table, bases, np.zeros(size), np.zeros((size, size)), None, np.zeros((0, 0)))
    smooth = _smooth(rows, columns, bases, told)
    table = fit_cells(smooth.table, rows, columns, told, smooth.strength)
    return Interaction(table, bases, smooth.theta, smooth.covariance, told[-1], _cell_variance(smooth, told[-1]))


@one_thread
def misfit(rows: Floats, columns: Floats, bases: tuple[Basis, Basis], reports: Sequence[GridReport]) -> float:
    """How far the reports are from the smooth table of these functions, in standard errors; 0 without any.

    That is of the sum of squares of all grids' cells, less their row and column means; it is about normal.
    """
    told = pooled(reports)
    if not told or bases[0].roughness.size * bases[1].roughness.size == 0:
        return 0.0
    table, off, freedom = _smooth(rows, columns, bases, told).table, 0.0, 0
    for report in told:
        lack = report.values - report.sums(table)
        lack -= lack.mean(axis=0)
        lack -= lack.mean(axis=1, keepdims=True)
        off += float((lack**2).sum()) / report.variance
        freedom += (lack.shape[0] - 1) * (lack.shape[1] - 1)
    return (off - freedom) / float(np.sqrt(2 * max(freedom, 1)))  # F3


@dataclass(frozen=True, slots=True, eq=False)
class _Smooth:
    """The smooth part of a fit."""

    table: Floats
    theta: Floats
    covariance: Floats
    determined: float  # coefficients, counted as far as the reports and not the prior say what they are

    @property
    def strength(self) -> float:
        """Of the table among single cells: the more coefficients it needed, the more single cells may depart."""
        return _CELL_STRENGTH / max(self.determined, _FEWEST_DETERMINED) ** 2  # F12


def _smooth(rows: Floats, columns: Floats, bases: tuple[Basis, Basis], told: Sequence[GridReport]) -> _Smooth:
    table, model = np.outer(rows, columns), _Model(rows, columns, bases, told)
    prior = before = model.first_prior
    theta, covariance = np.zeros(prior.size), np.diag(prior)
    for _ in range(_MOST_STEPS):
        precision, right = model.law(table, theta)
        covariance = np.linalg.inv(precision + np.diag(1 / prior)).astype(float, copy=False)
        moved, table = model.search(table, theta, covariance @ right - theta, prior)
        change = float(np.abs(moved - theta).max())
        theta, before = moved, prior
        prior = model.next_prior(theta, covariance, prior)
        if change < 0.01 and np.abs(np.log(prior / before)).max() < 0.1:
            break
    determined = float(_determined(covariance, before).sum())
    mean, covariance = _averaged(*model.law(table, theta), before, model.first_prior)
    return _Smooth(model.table(mean), mean, covariance, determined)


def _averaged(precision: Floats, right: Floats, prior: Floats, first: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the coefficients when their prior may be wider than the likeliest one.

    Some priors, from the likeliest to the one before anything is known, are averaged by their evidence.
    """
    priors = [np.maximum(prior, share * first) for share in _WIDER_PRIORS]
    covariances = np.stack([np.linalg.inv(precision + np.diag(1 / each)) for each in priors])
    means = np.stack([covariance @ right for covariance in covariances])
    determinants = [np.linalg.slogdet(inverse / each)[1] for inverse, each in zip(covariances, priors, strict=True)]
    weights = softmax(
        np.array([right @ mean / 2 + log / 2 for mean, log in zip(means, determinants, strict=True)])
    )  # F10
    mean = weights @ means
    weights, apart = (1 - _ALIKE_SHARE) * weights + _ALIKE_SHARE / weights.size, means - mean  # F11
    return mean, np.einsum("k,kij->ij", weights, covariances) + (weights[:, None] * apart).T @ apart  # F11


def _determined(covariance: Floats, prior: Floats) -> Floats:
    """How far the reports say what each coefficient is: 1 less the part of its variance that is left."""
    return np.clip(1 - np.diag(covariance) / prior, 0.0, 1.0)  # F9


def _cell_variance(smooth: _Smooth, report: GridReport) -> Floats:  # -> (g, h)
    """Of what single cells of the finest grid depart from the smooth table, after it was told how much.

    A cell of mass t departs by a variance t / s. Over all cells that is 1 / s, and the residuals measure it, within a
    standard error. In that interval the strength s of the fit is believed; outside, the nearest end of the interval is.
    """
    mass = np.maximum(report.sums(smooth.table), _LEAST_MASS)
    off, cells = report.values - mass, mass.size
    measured = float((off**2).sum()) - report.variance * max(cells - smooth.determined, 1.0)  # F14
    error = report.variance * float(np.sqrt(2 * cells))
    least, most = measured - error, max(measured, 0.0) + error
    spread = max(least, min(most, 1 / smooth.strength))  # F14
    return 1 / (1 / report.variance + 1 / (mass * spread))  # F14


class _Model:
    """The penalised least squares behind a fit: cells of the grids against exp(g) with the margins."""

    def __init__(
        self, rows: Floats, columns: Floats, bases: tuple[Basis, Basis], reports: Sequence[GridReport]
    ) -> None:
        self.rows, self.columns, self.reports = rows, columns, reports
        b1, b2 = (b.functions for b in bases)
        self.features = np.einsum("ik,jl->ijkl", b1, b2).reshape(rows.size, columns.size, -1)
        self.flat = self.features.reshape(rows.size * columns.size, -1)
        self.base = np.outer(rows, columns)
        self.bands = np.maximum.outer(bases[0].roughness, bases[1].roughness).reshape(-1)
        self.expected = np.where(self.bands == 1, _FIRST_SD**2, _ROUGH_VARIANCE / self.bands**_ROUGHNESS_POWER)  # F9
        self.first_prior: Floats = _FIRST_SD**2 / self.bands**_ROUGHNESS_POWER  # F9: before anything is known
        self.guess = np.ones(columns.size)  # factors of the columns, from one fit to the next

    def next_prior(self, theta: Floats, covariance: Floats, prior: Floats) -> Floats:
        """Each band's mean square, with the weight of one coefficient for what is expected.

        The fixed point of EM, by MacKay's faster way: coefficients count as far as the reports determine them.
        """
        count = np.bincount(self.bands, weights=_determined(covariance, prior))[self.bands]
        total = np.bincount(self.bands, weights=theta**2)[self.bands]
        return (total + self.expected) / (count + 1)  # F9

    def table(self, theta: Floats) -> Floats:
        """The table of these coefficients."""
        g = np.clip((self.flat @ theta).reshape(self.base.shape), -_LARGEST_LOG, _LARGEST_LOG)  # F6
        start = self.base * np.exp(g)
        by_row, self.guess = margin_scales(start, self.rows, self.columns, self.guess, 100, 1e-9)
        return scaled(start, by_row, self.guess)

    def law(self, table: Floats, theta: Floats) -> tuple[Floats, Floats]:
        """What the reports say about the coefficients, to first order: their precision, and that times the mean."""
        r = self.rows.size
        moved = table[:, :, None] * self.features
        sums = np.concatenate([moved.sum(axis=1), moved.sum(axis=0)])
        shift = np.linalg.solve(margin_system(table), sums)
        moved -= table[:, :, None] * (shift[:r, None] + shift[None, r:])  # F8
        precision, right = np.zeros((theta.size, theta.size)), np.zeros(theta.size)
        for report in self.reports:
            slopes = report.sums(moved).reshape(-1, theta.size)
            precision += slopes.T @ slopes / report.variance  # F8
            right += slopes.T @ (report.values - report.sums(table)).reshape(-1) / report.variance
        return precision, right + precision @ theta

    def search(self, table: Floats, theta: Floats, step: Floats, prior: Floats) -> tuple[Floats, Floats]:
        """The coefficients after the longest of the steps 1, 1/2, ... that does not lose, and their table."""
        before = self.loss(table, theta, prior)
        for length in 0.5 ** np.arange(8):
            there = theta + length * step
            reached = self.table(there)
            if self.loss(reached, there, prior) <= before + 1e-9:
                return there, reached
        return theta, table

    def loss(self, table: Floats, theta: Floats, prior: Floats) -> float:
        """Half the squared misfit, in units of the noise, and the prior's."""
        off = sum(float(((r.values - r.sums(table)) ** 2).sum()) / r.variance for r in self.reports)
        return (off + float((theta**2 / prior).sum())) / 2  # F8
