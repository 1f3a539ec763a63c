"""Estimates from noisy wavelet coefficients: the inverse transform up to the highest order asked, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import DensityEstimate, less_everyone
from ahead_ldp.mechanisms.haar_contrasts import HaarContrasts, halves_of
from ahead_ldp.oracles import Haar, LinearOracle, Tally
from ahead_ldp.partitions.shares import column_shares, cut
from ahead_ldp.protocol.mechanism import Question
from ahead_ldp.schema.arrays import Bools, Floats, Ints

_ROUNDING = 1e-9  # a coefficient below this is rounding
_TINY = 1e-300  # sums below this are 0


@dataclass(frozen=True, slots=True, eq=False)
class Order(HaarContrasts):
    """What the people asked about one order said, through noisy coefficients or noisy cells.

    A contrast is the wavelet's coefficient times the root of the interval's width.
    """

    oracle: LinearOracle | Haar

    @classmethod
    def of(cls, question: Question, tally: Tally) -> Order:
        """From the question of an order, whose cells are halves of its intervals, and its tally."""
        oracle, cells = question.oracle, question.partition
        assert isinstance(oracle, LinearOracle | Haar)
        halves = halves_of((cells.hi - cells.lo)[:, 0])
        if isinstance(oracle, Haar):
            return cls(oracle.contrasts(tally), halves, tally.n, oracle)
        f = _pairs(oracle.estimate(tally)) if tally.n else np.zeros(halves.shape)
        return cls(f[:, 0] - f[:, 1], halves, tally.n, oracle)

    def variance(self, weights: Floats, f: Floats, cells: Floats) -> Floats:  # (k, intervals), .., (halves,) -> (k,)
        """Variance of weighted sums of the contrasts, the chance of who fell into the group included."""
        if isinstance(self.oracle, Haar):
            noise = weights**2 @ np.asarray(self.oracle.variance(self.n, f))
            return np.asarray(noise + (weights**2 @ f - (weights @ self.contrasts) ** 2) / self.n)
        signed = np.stack([weights, -weights], axis=-1).reshape(len(weights), -1)[:, : cells.size]
        return self.oracle.group_variance(self.n, cells / max(cells.sum(), _TINY), signed)


@dataclass(frozen=True, eq=False)
class WaveletEstimate(DensityEstimate):
    """Shares of the intervals of the highest order's halves, evenly spread inside each.

    Standard errors are those of the linear transform, exact for the groups' reports; what clipping and the nearest
    rising curve do is left out of them. A range that ends inside an interval says that its evenness is assumed.
    """

    assumption: ClassVar[str] = "shares are even inside the intervals that no order of coefficients divides further"
    borders: Ints  # (intervals + 1,)
    orders: tuple[Order, ...]
    intervals: tuple[Floats, ...]  # the shares of each order's intervals

    @classmethod
    def of(cls, schema: Schema, orders: Sequence[Order], curve: str) -> WaveletEstimate:
        """The estimate from all orders, the lowest first."""
        f, intervals = np.ones(1), []
        for order in orders:
            intervals.append(f)
            f = order.split(f, curve == "clipped")
        widths = orders[-1].halves.reshape(-1) if orders else np.array([schema.sizes[0]])
        widths = widths[widths > 0]
        if curve == "isotonic":
            f = rising(f)
        density = np.repeat(f / widths, widths)
        borders = np.append(0, np.cumsum(widths))
        return cls(schema, curve != "raw", density, borders, tuple(orders), tuple(intervals))

    @property
    def _width(self) -> int:
        return 4 * self.borders.size

    def _assumes(self, boxes: Floats) -> Bools:
        return cut(column_shares(boxes[:, 0], self.borders))

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        weights = np.zeros((answers.size, self.borders.size - 1))
        np.add.at(weights, owner, column_shares(boxes[:, 0], self.borders))
        variance, unmeasured = np.zeros(answers.size), np.zeros(answers.size, bool)
        cells = np.add.reduceat(self.density, self.borders[:-1])
        for order, f in zip(reversed(self.orders), reversed(self.intervals), strict=True):
            weights, a = order.join(weights)
            if order.n == 0:
                unmeasured |= (np.abs(a) > _ROUNDING).any(axis=1)
            else:
                variance += order.variance(a, np.maximum(f, 0.0), np.maximum(cells, 0.0))
            cells = f
        people = sum(order.n for order in self.orders)
        return np.where(unmeasured, np.inf, less_everyone(variance, answers, people))


def halvings(schema: Schema, orders: Sequence[Order]) -> bool:
    """Whether every order tells of the halves of the intervals that the one before has divided, the first of all."""
    widths = np.array(schema.sizes)
    for order in orders:
        if not np.array_equal(order.halves.sum(axis=1), widths):
            return False
        widths = order.halves[order.halves > 0]
    return True


def rising(shares: Floats) -> Floats:  # (c,) -> (c,)
    """Shares whose sums from the left are the nearest rising curve from 0 to 1, in the least-squares sense."""
    from scipy.optimize import isotonic_regression

    if shares.size == 1:
        return shares
    curve = np.clip(isotonic_regression(np.cumsum(shares)[:-1]).x, 0.0, 1.0)
    return np.diff(curve, prepend=0.0, append=1.0)


def _pairs(cells: Floats) -> Floats:  # (halves,) -> (intervals, 2)
    return np.append(cells, [0.0] * (cells.size % 2)).reshape(-1, 2)
