"""Norm-Sub: frequencies that are non-negative and sum to 1 (AHEAD Sec. 4.2, step 4; WLLS20)."""

from __future__ import annotations

import numpy as np

from ahead_ldp.schema.arrays import Floats


def norm_sub(x: Floats, total: float = 1.0) -> Floats:
    """Where the paper's loop ends: negative entries to 0, the mean difference off the positive ones, and again.

    If the positive entries sum to more than the total, that is the nearest point of the simplex. If to less, they
    are raised and the others stay at 0, which is not the nearest point. Without a positive entry the loop is not
    defined; the nearest point is taken.
    """
    positive = x > 0
    lack = total - x[positive].sum()
    if lack <= 0 or not positive.any():
        return nearest_in_simplex(x, total)
    return np.where(positive, x + lack / positive.sum(), 0.0)


def nearest_in_simplex(x: Floats, total: float = 1.0) -> Floats:
    """The nearest point with non-negative entries and the given sum: the Euclidean projection, in one sort."""
    if total < 0:
        raise ValueError(f"expected total >= 0, got {total}")
    descending = np.sort(x)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, x.size + 1)
    kept = np.flatnonzero(descending > excess)
    shift = excess[kept[-1]] if kept.size else excess[0]
    return np.maximum(x - shift, 0.0)
