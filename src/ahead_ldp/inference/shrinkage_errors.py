"""How far shrinkage may have led an estimate astray: part of what it moved an answer away from least squares.

A posterior that learned its own prior from the same reports is a little too sure of itself, most where it moved the
answer far. No method uses it yet. The constants were set on the tuning settings of `tools.splits`, for an earlier
version of the draws, and are too wide for the present one (docs/decisions/005-intervals.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.inference.tree_shrinkage import Upward

Floats = NDArray[np.float64]

LEARNED = 1.1  # what draws that take the learned prior as known must be widened by
_SHARE, _MOST = 0.8, 1.5  # of the squared distance, which counts up to so many spreads


def moved_curve(upward: Upward, leaves: Floats) -> Floats:  # (leaves,) -> (d + 1,)
    """Share below each code by least squares, less that by shrunken masses of the tree's leaves.

    Where the halves of a node were not both measured, least squares follows the shrunken masses.
    """
    tree = upward.tree
    shrunk, value = tree.sums(leaves), np.zeros(tree.size)
    value[0] = 1.0
    for nodes, left, right in tree.levels:
        one, two = upward.precision[left], upward.precision[right]
        known = (one > 0) & (two > 0)
        below = shrunk[left] + shrunk[right]
        share = np.divide(shrunk[left], below, out=np.full(left.size, 0.5), where=below > 0)
        lack = value[nodes] - upward.value[left] - upward.value[right]
        part = np.divide(two, one + two, out=np.zeros(left.size), where=known)  # by variance
        value[left] = np.where(known, upward.value[left] + part * lack, share * value[nodes])
        value[right] = value[nodes] - value[left]
    lo, hi = tree.tree.lo[tree.tree.leaves, 0], tree.tree.hi[tree.tree.leaves, 0]
    order = np.argsort(lo)
    borders = np.append(lo[order], hi[order[-1]])
    heights = np.append(0.0, np.cumsum((value[tree.tree.leaves] - leaves)[order]))
    return np.interp(np.arange(borders[-1] + 1), borders, heights)


def shrinkage_error(moved: Floats, spread: Floats) -> Floats:  # (n,), (n,) -> (n,)
    """What answers moved by so much may be off by because of it, as a standard deviation."""
    return np.asarray(np.sqrt(_SHARE) * np.minimum(np.abs(moved), _MOST * spread))
