"""How much of each column or code lies inside a range: what every answer that cuts a cell rests on."""

from __future__ import annotations

import numpy as np

from ahead_ldp.schema.arrays import Bools, Floats, Ints


def shares(sides: Floats, lo: Ints, hi: Ints) -> Floats:  # (k, 2), (c,), (c,) -> (k, c)
    """The share of each interval [lo, hi) that lies inside each side of a box."""
    inside = np.minimum(hi, sides[:, 1:]) - np.maximum(lo, sides[:, :1])
    return np.clip(inside / (hi - lo), 0.0, 1.0)


def column_shares(sides: Floats, borders: Ints) -> Floats:  # (k, 2), (columns + 1,) -> (k, columns)
    """The share of each column between neighbouring borders."""
    return shares(sides, borders[:-1], borders[1:])


def code_shares(sides: Floats, size: int) -> Floats:  # (k, 2) -> (k, size)
    """The share of each code of an attribute."""
    return column_shares(sides, np.arange(size + 1))


def cut(share: Floats) -> Bools:  # (k, c) -> (k,)
    """Which sides end inside one of the intervals."""
    return np.asarray(((share > 0) & (share < 1)).any(axis=1))
