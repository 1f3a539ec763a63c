"""How two attributes depend on each other, beyond their margins: a smooth log-linear model with learned shrinkage.

A pair's table is the product of its margins times exp(g), brought back to the margins by proportional fitting; g is a
sum of products of smooth functions of the two ranks. Coefficients are normal with a variance for each degree of
roughness, which the reports themselves choose (empirical Bayes): without dependence they shrink towards 0, and the
table to the product. Single cells may depart from what the functions say, the more the more coefficients the reports
determine (``rough_cells``); in version 3 only if something says that they do (``pooled_dependence``).

The first function is the normal score of the rank, so a Gaussian copula of any correlation needs one coefficient:
its logarithm is z w r / (1 - r^2) and terms of z or w alone, which the margins take care of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.estimates.solvers.proportional_fitting import margin_scales, margin_system, scaled
from ahead_ldp.mechanisms.adaptive.log_linear import softmax
from ahead_ldp.mechanisms.fused.grid_reports import Blocks, GridReport, column_shares, pooled
from ahead_ldp.mechanisms.fused.rough_cells import FEW_STEPS, fit_cells
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
    told = pooled(reports)
    size = bases[0].roughness.size * bases[1].roughness.size
    return interaction(rows, columns, bases, told, _smooth(rows, columns, bases, told) if told and size else None)


def interaction(
    rows: Floats, columns: Floats, bases: tuple[Basis, Basis], told: Sequence[GridReport], smooth: Smooth | None
) -> Interaction:
    """The smooth part with single cells; None: nothing was told, or there is nothing to depend on each other."""
    if smooth is None:
        size = bases[0].roughness.size * bases[1].roughness.size
        nothing = np.zeros(size), np.zeros((size, size)), None, np.zeros((0, 0))
        return Interaction(np.outer(rows, columns), bases, *nothing)
    table = fit_cells(smooth.table, rows, columns, told, smooth.strength, smooth.steps)
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
class Smooth:
    """The smooth part of a fit."""

    table: Floats
    theta: Floats
    covariance: Floats
    determined: float  # coefficients, counted as far as the reports and not the prior say what they are
    strength: float  # of the table among single cells
    steps: int  # at most, until single cells are found


def strength_of_determined(determined: float) -> float:
    """Of a smooth table among single cells: the more coefficients it needed, the more single cells may depart."""
    return _CELL_STRENGTH / max(determined, _FEWEST_DETERMINED) ** 2  # F12


def _smooth(rows: Floats, columns: Floats, bases: tuple[Basis, Basis], told: Sequence[GridReport]) -> Smooth:
    found = likeliest(rows, columns, bases, told)
    mean, covariance = _averaged(*found.model.law(found.table, found.theta), found.prior, found.model.first_prior)
    strength = strength_of_determined(found.determined)
    return Smooth(found.model.table(mean), mean, covariance, found.determined, strength, FEW_STEPS)


class Likeliest(NamedTuple):
    """The likeliest coefficients, with the prior that the reports chose."""

    model: _Model
    table: Floats
    theta: Floats
    prior: Floats
    determined: float


def likeliest(rows: Floats, columns: Floats, bases: tuple[Basis, Basis], told: Sequence[GridReport]) -> Likeliest:
    """Coefficients and prior, each the likeliest one given the other."""
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
    return Likeliest(model, table, theta, before, float(_determined(covariance, before).sum()))


def law_without_dependence(
    rows: Floats, columns: Floats, bases: tuple[Basis, Basis], told: Sequence[GridReport]
) -> tuple[Floats, Floats, Floats]:  # -> (k,), (k, k), (k,)
    """The coefficients' variances before anything is known, and what the reports say near no dependence at all."""
    model = _Model(rows, columns, bases, told)
    return model.first_prior, *model.law(np.outer(rows, columns), np.zeros(model.first_prior.size))


def widened(prior: Floats, first: Floats) -> Floats:  # (k,), (k,) -> (widths, k)
    """Priors from the likeliest to wider ones than before anything is known."""
    return np.stack([np.maximum(prior, share * first) for share in _WIDER_PRIORS])


def _averaged(precision: Floats, right: Floats, prior: Floats, first: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the coefficients when their prior may be wider than the likeliest one.

    Some priors, from the likeliest to the one before anything is known, are averaged by their evidence.
    """
    priors = widened(prior, first)
    covariances = np.stack([np.linalg.inv(precision + np.diag(1 / each)) for each in priors])
    means = np.stack([covariance @ right for covariance in covariances])
    determinants = [np.linalg.slogdet(inverse / each)[1] for inverse, each in zip(covariances, priors, strict=True)]
    weights = softmax(
        np.array([right @ mean / 2 + log / 2 for mean, log in zip(means, determinants, strict=True)])
    )  # F10
    return mixture(means, covariances, weights)


def mixture(means: Floats, covariances: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of an average of laws; for the covariance the widened priors count alike, too."""
    mean = weights @ means
    alike = np.where(np.arange(weights.size) < weights.size - len(_WIDER_PRIORS), 0.0, 1 / len(_WIDER_PRIORS))
    weights, apart = (1 - _ALIKE_SHARE) * weights + _ALIKE_SHARE * alike, means - mean  # F11
    return mean, np.einsum("k,kij->ij", weights, covariances) + (weights[:, None] * apart).T @ apart  # F11


def _determined(covariance: Floats, prior: Floats) -> Floats:
    """How far the reports say what each coefficient is: 1 less the part of its variance that is left."""
    return np.clip(1 - np.diag(covariance) / prior, 0.0, 1.0)  # F9


def _cell_variance(smooth: Smooth, report: GridReport) -> Floats:  # -> (g, h)
    """Of what single cells of the finest grid depart from the smooth table, after it was told how much.

    A cell of mass t departs by a variance t / s. Over all cells that is 1 / s, and the residuals measure it, within a
    standard error. In that interval the strength s of the fit is believed; outside, the nearest end of the interval is.
    """
    measured, error = measured_spread(smooth.table, report, smooth.determined)
    least, most = measured - error, max(measured, 0.0) + error
    spread = max(least, min(most, 1 / smooth.strength))  # F14
    mass = np.maximum(report.sums(smooth.table), _LEAST_MASS)
    return 1 / (1 / report.variance + 1 / (mass * spread))  # F14


def measured_spread(table: Floats, report: GridReport, determined: float) -> tuple[float, float]:
    """The variance by which all cells of a grid together depart from a smooth table, and its standard error."""
    off = report.values - np.maximum(report.sums(table), _LEAST_MASS)
    measured = float((off**2).sum()) - report.variance * max(off.size - determined, 1.0)  # F14
    return measured, report.variance * float(np.sqrt(2 * off.size))


class _Model:
    """The penalised least squares behind a fit: cells of the grids against exp(g) with the margins."""

    def __init__(
        self, rows: Floats, columns: Floats, bases: tuple[Basis, Basis], reports: Sequence[GridReport]
    ) -> None:
        self.rows, self.columns, self.reports = rows, columns, reports
        self.functions = bases[0].functions, bases[1].functions
        self.base, self.finest = np.outer(rows, columns), reports[-1]
        self.cells = Blocks.of(self.finest, self.base.shape)
        # Columns of finer grids are cut out of those of coarser ones.
        self.blocks = [Blocks.of(report.within(self.finest), self.finest.values.shape) for report in reports]
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
        first, second = self.functions
        g = first @ theta.reshape(first.shape[1], -1) @ second.T  # F6
        g = np.minimum(np.maximum(g, -_LARGEST_LOG), _LARGEST_LOG)
        start = self.base * np.exp(g)
        by_row, self.guess = margin_scales(start, self.rows, self.columns, self.guess, 100, 1e-9)
        return scaled(start, by_row, self.guess)

    def law(self, table: Floats, theta: Floats) -> tuple[Floats, Floats]:
        """What the reports say about the coefficients, to first order: their precision, and that times the mean."""
        moved, sums = self.slopes(table), self.cells.sums(table)
        precision, right = np.zeros((theta.size, theta.size)), np.zeros(theta.size)
        for report, blocks in zip(self.reports, self.blocks, strict=True):
            slopes = blocks.sums_of_each(moved).reshape(-1, theta.size)
            precision += slopes.T @ slopes / report.variance  # F8
            right += slopes.T @ (report.values - blocks.sums(sums)).reshape(-1) / report.variance
        return precision, right + precision @ theta

    def slopes(self, table: Floats) -> Floats:  # -> (g, h, k l)
        """How the cells of the finest grid move with the coefficients when the margins stay as they are.

        Functions of two ranks are products, so most sums are taken for one attribute at a time.
        """
        (first, second), (r, c) = self.functions, table.shape
        across, down = table @ second, table.T @ first
        by_row = (first[:, :, None] * across[:, None, :]).reshape(r, -1)
        by_column = (down[:, :, None] * second[:, None, :]).reshape(c, -1)
        shift = np.linalg.solve(margin_system(table), np.concatenate([by_row, by_column]))
        rows, columns = self.cells.rows, self.cells.columns.T
        inside = columns @ (table[:, :, None] * second)  # (r, h, l)
        moved = (first[:, None, :, None] * inside[:, :, None, :]).reshape(r, len(columns), -1)
        moved -= (table @ columns.T)[:, :, None] * shift[:r, None]  # F8
        others = (rows @ table)[:, :, None] * shift[r:]  # F8
        return (rows @ moved.reshape(r, -1)).reshape(len(rows), len(columns), -1) - columns @ others

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
        sums, off = self.cells.sums(table), 0.0
        for report, blocks in zip(self.reports, self.blocks, strict=True):
            lack = (report.values - blocks.sums(sums)).reshape(-1)
            off += float(lack @ lack) / report.variance
        return (off + float((theta**2 / prior).sum())) / 2  # F8
