"""Shapes that columns of people often have, each weighed by how well it agrees with the reports.

Where people are few or epsilon is small, the reports tell a handful of numbers. Then no fit can be trusted: its mode
follows the noise. What is right is the mean over everything that the reports leave possible. So 3,000 shapes are laid
out once, evenly over what is known of such columns: trends and waves of the logarithm, in the codes or in the logarithm
of the distance from an end, and one to three bumps on an even ground. The reports' likelihood is their weight. Where
the reports tell so much that few shapes are left, the mean over them says nothing, and the number left says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData
from ahead_ldp.schema.arrays import Floats, Ints

_SHAPES = 3_000  # decision 024
_PLACES = 128  # of the domain that a shape is given in (choice A50)
_LINEAR_SHARE = 0.63  # of all shapes: a logarithm of trends and waves; the others have bumps (decision 024)
_DISTANCE_SHARE = 0.4  # of these: in the logarithm of the distance from an end (choice A50)
_DISTANCE_PARTS = 64  # of the domain: the logarithm begins at one of them, as ``coordinates`` has it (decision 012)
_AMPLITUDES = 0.05, 6.0  # of the logarithm, from hardly any to all people in one place (decision 024)
_WAVES = 8  # cosines of the logarithm, which fall as 1/j or as 1/j^2 (choice A50)
_BUMPS = 3  # at most (choice A50)
_WIDTHS = 0.03, 0.35  # of a bump, as a share of the domain (choice A50)
_POINTED_SHARE = 0.3  # of the bumps: two exponentials back to back; the others are bells (choice A50)
_GROUNDS = np.array([0.0, 0.1, 0.3, 1.0, 3.0])  # even people for each one in the bumps (choice A50)
_FIRST_CELLS = 8  # unit: those that shapes are compared by; then as many again as were looked at (decision 025)
_BEHIND = 40.0  # tolerance: log-likelihood; shapes that are further behind the best weigh less than 1e-13 together
_DIMENSIONS = 16  # unit: numbers that a shape is made of


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """How likely each shape is after the reports."""

    weights: Floats  # (shapes,) of sum 1
    log_likelihood: Floats  # (shapes,) up to the constant of the data that others leave out too; -inf: cannot count

    def log_evidence(self, apart: float = 0.0) -> float:
        """Of all shapes together that are so far from even ones, as ``far`` has it."""
        log = self.log_likelihood[far() >= apart]
        most = float(log.max())
        return most + float(np.log(np.exp(log - most).mean())) if np.isfinite(most) else most  # A52

    @property
    def left(self) -> float:
        """How many shapes are left, were all of them equally likely."""
        return 1 / float(self.weights @ self.weights)  # A52

    def below(self, size: int) -> Floats:  # -> (size + 1,)
        """The share below every one of ``size`` codes, in the mean."""
        return _at(self.weights @ bank(), np.linspace(0.0, 1.0, size + 1))  # A52

    def drawn(self, size: int, at: Floats) -> Floats:  # (draws,) in [0, 1) -> (size + 1, draws)
        """The same for single shapes, picked by numbers that are spread evenly."""
        picked = np.searchsorted(np.cumsum(self.weights)[:-1], at, side="right")
        return _at(bank()[picked], np.linspace(0.0, 1.0, size + 1)).T


def weigh(data: CellData, size: int, total: float = 1.0) -> Shapes:
    """From estimates of cells of ``size`` ordered codes, which hold ``total`` of the people.

    Borders beyond these codes are those of people without a value, who are the rest. Each cell adds to a misfit.
    So cells are looked at a few at a time, and a shape that can no longer count is not looked at again. Its weight is 0
    in place of less than e^-40 of the highest.
    """
    wide = np.argsort(data.first - data.last, kind="stable")  # wide cells tell most shapes apart
    curves, left, misfit, done = bank().T, np.arange(_SHAPES), np.zeros(_SHAPES), 0
    while done < wide.size:
        now, later = np.split(wide[done:], [max(done, _FIRST_CELLS)])
        done += now.size
        misfit = misfit + _misfit(data, now, size, total, curves)
        nearest = int(misfit.argmin())
        least = misfit[nearest] + _misfit(data, later, size, total, curves[:, [nearest]])[0]
        counts = misfit <= least + 2 * _BEHIND  # A51
        if not counts.all():
            curves, left, misfit = curves[:, counts], left[counts], misfit[counts]
    log = np.full(_SHAPES, -np.inf)
    log[left] = -0.5 * misfit
    weights = np.exp(log - log.max())
    return Shapes(weights / weights.sum(), log)


@lru_cache(maxsize=1)
def far() -> Floats:  # -> (shapes,)
    """How far the share below a place is from that of even people in every shape: root mean square."""
    away: Floats = bank() - np.linspace(0.0, 1.0, _PLACES + 1)
    return np.sqrt((away**2).mean(axis=1))  # A53


def _misfit(data: CellData, cells: Ints, size: int, total: float, curves: Floats) -> Floats:  # (places + 1, n) -> (n,)
    """By how much shapes miss the estimates of some cells: the sum of squares, in their standard deviations."""
    first, last = (_shares(data.borders[ends[cells]], size, total, curves) for ends in (data.first, data.last))
    off = (last - first) * data.root[cells, None] - data.estimate[cells, None]
    return np.einsum("ij,ij->j", off, off)


def _shares(borders: Ints, size: int, total: float, curves: Floats) -> Floats:  # (k,), (places + 1, n) -> (k, n)
    """The share below some borders by shapes of the ``size`` ordered codes; of all people beyond those."""
    below = total * _at(curves.T, np.minimum(borders, size) / size).T
    below[borders > size] = 1.0
    return below


@lru_cache(maxsize=1)
def bank() -> Floats:  # -> (shapes, places + 1)
    """The share below every place in all shapes; those of all shapes below a place stand side by side in memory."""
    spread, middle = _spread(_SHAPES, _DIMENSIONS), (np.arange(_PLACES) + 0.5) / _PLACES
    linear = spread[:, 0] < _LINEAR_SHARE
    shares = np.empty((_SHAPES, _PLACES))
    shares[linear], shares[~linear] = _log_linear(spread[linear], middle), _bumps(spread[~linear], middle)
    below = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    return np.asfortranarray(np.hstack([np.zeros((_SHAPES, 1)), below / below[:, -1:]]))


def _spread(count: int, dimensions: int) -> Floats:  # -> (count, dimensions)
    """Points that fill the unit cube evenly: multiples of a vector modulo 1, made of the root of x^(d+1) = x + 1."""
    root = 2.0
    for _ in range(100):
        root = (1 + root) ** (1 / (dimensions + 1))
    return (0.5 + np.arange(1, count + 1)[:, None] * root ** -np.arange(1.0, dimensions + 1)) % 1  # A49


def _log_linear(u: Floats, middle: Floats) -> Floats:  # (n, dimensions), (places,) -> (n, places)
    """Shapes whose logarithm has a trend and waves."""
    from scipy.special import ndtri

    left = np.arcsinh(_DISTANCE_PARTS * middle) / np.arcsinh(_DISTANCE_PARTS)
    ends = np.searchsorted([1 - _DISTANCE_SHARE, 1 - _DISTANCE_SHARE / 2], u[:, 1], side="right")
    amplitude, wave = _between(_AMPLITUDES, u[:, 2:3]), np.arange(1, _WAVES + 1)
    normal, fall = ndtri(u[:, 6:]), np.where(u[:, 3:4] < 0.5, 1.0, 2.0)
    trends, waves = normal[:, :2] * u[:, 4:5], normal[:, 2:] / wave**fall * u[:, 5:6]
    coefficients, log = amplitude * np.hstack([trends, waves]), np.empty((len(u), middle.size))
    for end, at in enumerate((middle, left, 1 - left[::-1])):
        t = 2 * at - 1
        log[ends == end] = coefficients[ends == end] @ np.vstack([t, t**2, np.cos(np.pi * wave[:, None] * at)])
    return np.exp(log - log.max(axis=1, keepdims=True))  # A50


def _bumps(u: Floats, middle: Floats) -> Floats:  # (n, dimensions), (places,) -> (n, places)
    """Shapes with one to three bumps on an even ground."""
    shares, count = np.zeros((len(u), middle.size)), 1 + (_BUMPS * u[:, 1:2]).astype(np.int64)
    for i in range(_BUMPS):
        centre, width, mass, kind = (u[:, 2 + 4 * i + k, None] for k in range(4))
        width = _between(_WIDTHS, width)
        away = np.abs(middle - centre) / width
        one = np.where(kind > 1 - _POINTED_SHARE, 0.5 * np.exp(-away), np.exp(-0.5 * away**2) / np.sqrt(2 * np.pi))
        shares += np.where(count > i, -np.log(mass), 0.0) * one / width
    ground = _GROUNDS[(_GROUNDS.size * u[:, -1:]).astype(np.int64)]
    return shares / np.maximum(shares.mean(axis=1, keepdims=True), 1e-300) + ground + 1e-12  # A50


def _between(ends: tuple[float, float], u: Floats) -> Floats:
    """Numbers spread evenly in their logarithm."""
    low, high = ends
    return low * (high / low) ** u


def _at(curves: Floats, points: Floats) -> Floats:  # (..., places + 1), (k,) in [0, 1] -> (..., k)
    """Curves read between the places."""
    places = points * _PLACES
    low = np.minimum(places.astype(np.int64), _PLACES - 1)
    part = places - low
    return curves[..., low] * (1 - part) + curves[..., low + 1] * part
