"""Coordinates in which a density may be smooth: the codes themselves, and others that are finer where people are dense.

Many columns have people near one end and fewer and fewer far from it: pay, delays, counts. In the logarithm of the
distance from that end their density is smooth, in the codes it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ahead_ldp.schema.arrays import Floats, Ints

_RANK, _LOGARITHM = -0.5, -2.0  # log prior weights; that of the codes is 0
_NARROW = 4  # neighbouring cells that are narrow together are where people are densest
_FAR, _FEWEST = 64, 4  # logarithms begin at one code, or at this part of the domain and at least so many codes


@dataclass(frozen=True, slots=True, eq=False)
class Coordinate:
    """Where the codes lie, and how likely it is a priori that a density is smooth there."""

    log_prior: float
    at: Floats  # (d,) rising from 0 to 1

    def means(self, borders: Ints) -> Floats:  # (places + 1,) -> (places,)
        """Where the places between neighbouring borders lie."""
        found: Floats = np.add.reduceat(self.at, borders[:-1]) / np.diff(borders)
        return found


def coordinates(borders: Ints, near: Floats) -> list[Coordinate]:  # (places + 1,), (d,)
    """Those that are tried, for cells with these borders and people who lie about so.

    The codes; the rank of the cells, which are narrow where a decomposition looked closely, and midway; the logarithm
    of the distance from the narrowest cells, and from the end that people are nearer to.
    """
    d, widths = near.size, np.diff(borders)
    codes = np.arange(0.5, d)
    found = [Coordinate(0.0, codes / d)]
    if widths.size >= _NARROW and widths.max() > 2 * widths.min():
        rank, across = _rank(codes, borders), borders[_NARROW:] - borders[:-_NARROW]
        found += [Coordinate(_RANK, share * rank + (1 - share) * codes / d) for share in (0.5, 1.0)]
        i = int(across.argmin())
        found.append(_logarithm(codes, float(borders[i] + borders[i + _NARROW]) / 2, float(across[i])))
    leaning = float(near @ codes) / d - 0.5
    if abs(leaning) > 1e-9:
        end = 0.0 if leaning < 0 else float(d)
        found += [_logarithm(codes, end, scale) for scale in (1.0, max(d / _FAR, _FEWEST))]
    return found


def _logarithm(codes: Floats, place: float, scale: float) -> Coordinate:
    """The logarithm of the distance from a place, as soon as that is more than ``scale``; even before."""
    at = np.arcsinh((codes - place) / scale)
    return Coordinate(_LOGARITHM, (at - at[0]) / (at[-1] - at[0]))


def _rank(codes: Floats, borders: Ints) -> Floats:
    """How far along the cells a code lies, in [0, 1]; smooth, so that the density's slope has no steps."""
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(borders, np.linspace(0.0, 1.0, borders.size))(codes))
