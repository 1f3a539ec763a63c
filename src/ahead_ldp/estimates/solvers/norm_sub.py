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


def nearest_in_simplex(
    x: Floats, total: float | Floats = 1.0, scale: Floats | None = None
) -> Floats:  # (..., c), (...), (..., c) -> (..., c)
    """The nearest rows with non-negative entries and the given sums: the Euclidean projection, in one sort.

    With ``scale`` squared distances are divided by it, and an entry whose scale is 0 is held at 0. Each row is
    max(x - shift scale, 0) with the shift that makes it sum to the total.
    """
    totals = np.asarray(total, np.float64)[..., None]
    if (totals < 0).any():
        raise ValueError(f"expected total >= 0, got {total}")
    if scale is None:
        ratio = np.sort(x, axis=-1)[..., ::-1]
        sums, widths = ratio, np.arange(1, x.shape[-1] + 1)
    else:
        ratio = np.divide(x, scale, out=np.full(x.shape, -np.inf), where=scale > 0)
        order = np.argsort(-ratio, axis=-1)
        sums = np.where(scale > 0, x, 0.0)
        ratio, sums, widths = (np.take_along_axis(part, order, axis=-1) for part in (ratio, sums, scale))
        widths = np.cumsum(widths, axis=-1)
    shift = np.divide(np.cumsum(sums, axis=-1) - totals, widths, out=np.full(x.shape, np.inf), where=widths > 0)
    kept = (ratio > shift).sum(axis=-1, keepdims=True)
    last = np.take_along_axis(shift, np.maximum(kept - 1, 0), axis=-1)
    moved = x - last if scale is None else x - np.where(scale > 0, last, 0.0) * scale
    held = False if scale is None else scale == 0
    return np.where((kept == 0) | held, 0.0, np.maximum(moved, 0.0))
