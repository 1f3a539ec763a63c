"""Coordinates in which a density may be smooth: the codes themselves, and others that are finer where people are dense.

Many columns have people near one end and fewer and fewer far from it: pay, delays, counts. In the logarithm of the
distance from that end their density is smooth, in the codes it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ahead_ldp.schema.arrays import Floats, Ints

_RANK_PRIOR, _LOGARITHM_PRIOR = -0.5, -2.0  # logarithms of weights; that of the codes is 0 (decision 012)
_NARROW_CELLS = 4  # neighbours that are narrow together are where people are densest (choice A21)
_SCALE_PARTS = 64  # of the domain: a logarithm begins at one code, or at one of these (decision 012)
_SCALE_CODES = 4  # that such a part has at least (choice A21)


@dataclass(frozen=True, slots=True, eq=False)
class Coordinate:
    """Where the codes lie, and how likely it is a priori that a density is smooth there."""

    log_prior: float
    at: Floats  # (d,) rising from 0 to 1


def coordinates(borders: Ints, near: Floats) -> list[Coordinate]:  # (places + 1,), (d,)
    """Those that are tried, for cells with these borders and people who lie about so.

    The codes; the rank of the cells, which are narrow where a decomposition looked closely, and midway; the logarithm
    of the distance from the narrowest cells, and from the end that people are nearer to.
    """
    d, widths = near.size, np.diff(borders)
    codes = np.arange(0.5, d)
    tried = [Coordinate(0.0, codes / d)]
    if widths.size >= _NARROW_CELLS and widths.max() > 2 * widths.min():
        rank, across = _rank(codes, borders), borders[_NARROW_CELLS:] - borders[:-_NARROW_CELLS]
        tried += [Coordinate(_RANK_PRIOR, share * rank + (1 - share) * codes / d) for share in (0.5, 1.0)]
        i = int(across.argmin())
        tried.append(_logarithm(codes, float(borders[i] + borders[i + _NARROW_CELLS]) / 2, float(across[i])))
    leaning = float(near @ codes) / d - 0.5
    if abs(leaning) > 1e-9:
        end = 0.0 if leaning < 0 else float(d)
        tried += [_logarithm(codes, end, scale) for scale in (1.0, max(d / _SCALE_PARTS, _SCALE_CODES))]
    return tried


def _logarithm(codes: Floats, origin: float, scale: float) -> Coordinate:
    """The logarithm of the distance from an origin, as soon as that is more than ``scale``; even before."""
    at = np.arcsinh((codes - origin) / scale)  # A22
    return Coordinate(_LOGARITHM_PRIOR, (at - at[0]) / (at[-1] - at[0]))


def _rank(codes: Floats, borders: Ints) -> Floats:
    """How far along the cells a code lies, in [0, 1]; smooth, so that the density's slope has no steps."""
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(borders, np.linspace(0.0, 1.0, borders.size))(codes))
