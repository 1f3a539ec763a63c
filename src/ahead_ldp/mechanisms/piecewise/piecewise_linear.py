"""Continuous piecewise-linear fits to a histogram, with breakpoints found one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ahead_ldp.mechanisms.grain import PRIPL_RESIDUE
from ahead_ldp.schema.arrays import Floats, Ints

_GAIN = 1.005  # of the squares: a smaller ratio rounds to 1.00, where the published code ends (WYHM24, Alg. 1)
_SPAN_RESIDUE = 1e-9  # of a hinge's squared norm: what is left of it after the basis is rounding
_RESIDUE = 1e-20  # squares of a histogram's rest that are rounding
_DEPENDENCE = 1e-10  # of a norm: a direction with less is in the basis already, but for rounding
_TINY = 1e-300  # sums below this are 0


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Segments of a histogram: segment k is [borders[k], borders[k+1]), with the slope of its line."""

    borders: Ints  # (segments + 1,)
    slopes: Floats  # (segments,)

    @classmethod
    def equal(cls, d: int, most: int) -> Pieces:
        """Level segments, as equal as possible: for when nothing is known of the histogram."""
        count = min(most, d)
        return cls(np.arange(count + 1) * d // count, np.zeros(count))

    def with_code(self) -> Pieces:
        """One more code after the last, a segment of its own."""
        return Pieces(np.append(self.borders, self.borders[-1] + 1), np.append(self.slopes, 0.0))

    def masses(self, histogram: Floats) -> Floats:  # (d,) -> (segments,)
        """The histogram's mass in each segment."""
        return np.add.reduceat(histogram, self.borders[:-1])

    def density(self, masses: Floats) -> Floats:  # (segments,) -> (d,)
        """Frequencies of the codes: lines of these masses, no steeper than keeps them non-negative (WYHM24 Eq. 10)."""
        lengths = np.diff(self.borders)
        some = np.maximum(masses, 0.0)
        bound = np.divide(2 * some, lengths * (lengths - 1), out=np.zeros(masses.size), where=lengths > 1)
        slopes = np.clip(self.slopes, -bound, bound)
        middle = (self.borders[:-1] + self.borders[1:] - 1) / 2
        k = np.repeat(np.arange(masses.size), lengths)
        lines = (masses / lengths)[k] + slopes[k] * (np.arange(k.size) - middle[k])
        return np.where(masses[k] < 0, lines, np.maximum(lines, 0.0))  # a negative mass is kept


def fit_pieces(rough: Floats, smooth: Floats, least_mass: float, most: int) -> Pieces:
    """Greedy breakpoints, half of them for the rough histogram, then the rest for the smooth one (WYHM24, Alg. 1).

    The segment that fits worst is cut next, if it has ``least_mass`` in the smooth histogram, at the best of all
    places; it ends when a cut gains less than half a percent. At least one cut is made where there are two codes.
    """
    d = rough.size
    cuts: list[int] = []
    basis = _extend(np.zeros((d, 0)), np.ones(d))
    basis = _extend(basis, np.arange(d, dtype=np.float64) - (d - 1) / 2)
    for histogram, limit in ((rough, most // 2), (smooth, most)):
        residual = histogram - basis @ (basis.T @ histogram)
        first = True
        while len(cuts) + 1 < (most if first else limit):
            segment = _worst(residual, smooth, cuts, least_mass, alone=not cuts)
            if segment is None:
                break
            cut = _best_cut(basis, residual, *segment)
            cuts = sorted([*cuts, cut])
            basis = _extend(basis, hinge(d, cut))
            before = residual @ residual
            residual = histogram - basis @ (basis.T @ histogram)
            first = False
            if (after := residual @ residual) * _GAIN > before or after <= _RESIDUE:
                break
    return Pieces(np.array([0, *cuts, d]), _slopes(smooth, cuts))


def hinge(d: int, cut: int) -> Floats:  # -> (d,)
    """The function that is 0 before a cut, which lies between two codes, and rises with slope 1 after it."""
    return np.maximum(np.arange(d) - (cut - 0.5), 0.0)


def _extend(basis: Floats, column: Floats) -> Floats:
    """The orthonormal basis with one direction more, if the column has one."""
    rest = column
    for _ in range(2):  # twice is enough (Kahan and Parlett)
        rest = rest - basis @ (basis.T @ rest)
    norm = np.linalg.norm(rest)
    if norm <= _DEPENDENCE * np.linalg.norm(column) or norm == 0:
        return basis
    return np.column_stack([basis, rest / norm])


def _worst(residual: Floats, smooth: Floats, cuts: list[int], least_mass: float, alone: bool) -> tuple[int, int] | None:
    """The segment of the largest residual among those that may be cut."""
    borders = np.array([0, *cuts, residual.size])
    error = np.add.reduceat(residual**2, borders[:-1])
    mass = np.add.reduceat(smooth, borders[:-1])
    may = (np.diff(borders) > 1) & ((mass >= least_mass) | alone)
    if not may.any():
        return None
    k = int(np.argmax(np.where(may, _coarse(error / max(error.max(), _TINY)), -1.0)))
    return int(borders[k]), int(borders[k + 1])


def _best_cut(basis: Floats, residual: Floats, lo: int, hi: int) -> int:
    """The cut inside [lo, hi) that leaves the least residual: all are tried, with running sums.

    A new hinge h lowers the squares by (h r)^2 / |h - B B'h|^2, B the basis so far and r the residual.
    """
    cuts = np.arange(lo + 1, hi)
    with_residual = _hinge_sums(residual[:, None])[cuts, 0]
    norm = _hinge_squares(residual.size)[cuts]
    rest = norm - (_hinge_sums(basis)[cuts] ** 2).sum(axis=1)
    gain = np.divide(with_residual**2, rest, out=np.zeros(cuts.size), where=rest > _SPAN_RESIDUE * norm)
    return int(cuts[np.argmax(_coarse(gain / max(gain.max(), _TINY)))])


def _hinge_sums(columns: Floats) -> Floats:  # (d, k) -> (d + 1, k)
    """Inner products of the hinge max(v - (c - 1/2), 0) with each column, for every cut c."""
    v = np.arange(len(columns), dtype=float)[:, None]
    tail = np.vstack([np.cumsum(columns[::-1], axis=0)[::-1], np.zeros((1, columns.shape[1]))])
    moment = np.vstack([np.cumsum((columns * v)[::-1], axis=0)[::-1], np.zeros((1, columns.shape[1]))])
    return moment - (np.arange(len(columns) + 1)[:, None] - 0.5) * tail


def _hinge_squares(d: int) -> Floats:  # -> (d + 1,)
    """Squared norms of the hinges: the sum of (j + 1/2)^2 for j below d - c."""
    m = d - np.arange(d + 1, dtype=float)
    return m * (4 * m**2 - 1) / 12


def _slopes(histogram: Floats, cuts: list[int]) -> Floats:  # -> (segments,)
    """The slopes of the best fit."""
    d = histogram.size
    design = np.stack([np.ones(d), np.arange(d) - (d - 1) / 2, *(hinge(d, cut) for cut in cuts)], axis=1)
    coefficients = np.linalg.lstsq(design / d, histogram, rcond=_DEPENDENCE)[0] / d
    return np.cumsum(coefficients[1:])


def _coarse(x: Floats) -> Floats:
    """In whole steps, so that the last bit does not ask another question."""
    return np.round(x * PRIPL_RESIDUE)  # A12
