"""A binary tree over the codes of one attribute that is cut where the data are: first between cells, then inside."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ahead_ldp.schema.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Bisection:
    """Nodes that are cut in two, level by level from the root down: codes lo..hi, cut at mid.

    A node is ``known`` if a border of the data lies inside it: then it is cut there, and its halves can be told apart.
    """

    lo: Ints  # (nodes,)
    mid: Ints  # (nodes,)
    hi: Ints  # (nodes,)
    known: Bools  # (nodes,)
    levels: tuple[slice, ...]
    ends: Ints  # (leaves + 1,) borders of the parts that are not cut

    @classmethod
    def of(cls, borders: Ints, below: Floats, first: int | None = None, grain: int = 1) -> Bisection:
        """The tree over 0 .. borders[-1]: every node cut at the border that is nearest to the middle.

        ``below`` is the share below each code by which the middle is meant. ``first`` is the root's cut if it is not
        free. Inside cells, codes are the borders; parts of at most ``grain`` codes are not cut.
        """
        lo, hi, at = np.zeros(1, np.int64), borders[-1:], below[borders]
        parts = list[tuple[Ints, Ints, Ints, Bools]]()
        while lo.size:
            least, most = np.searchsorted(borders, lo, side="right"), np.searchsorted(borders, hi) - 1
            inside = least <= most
            cut = inside | (hi - lo > grain)
            lo, hi, inside, least, most = lo[cut], hi[cut], inside[cut], least[cut], most[cut]
            middle = (below[lo] + below[hi]) / 2
            mid = borders[_nearest(at, middle, least, most)]
            if not inside.all():
                mid = np.where(inside, mid, _nearest(below, middle, lo + 1, hi - 1))
            if first is not None and not parts:
                mid = np.full(lo.size, first)
            parts.append((lo, mid, hi, inside))
            lo, hi = _in_turns(lo, mid), _in_turns(mid, hi)
        bounds = np.cumsum([0, *(level[0].size for level in parts)])
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
        levels = tuple(slice(a, b) for a, b in pairwise(bounds.tolist()) if b > a)
        ends = np.unique(np.concatenate([joined[1], [0, borders[-1]]]))
        return cls(joined[0], joined[1], joined[2], joined[3], levels, ends)

    def shares(self, below: Floats) -> Floats:  # (d + 1, ...) -> (nodes, ...)
        """The left half's share of every node by a measure; one half where it has nothing."""
        whole = below[self.hi] - below[self.lo]
        half = below[self.mid] - below[self.lo]
        return np.divide(half, whole, out=np.full(whole.shape, 0.5), where=whole > 0)

    def filled(self, curve: Floats, below: Floats) -> Floats:  # (d + 1, ...), (d + 1, ...)
        """A curve that is known where the parts end, between them in the proportions of a measure."""
        ends = self.ends
        if ends.size == len(curve):
            return curve
        which = np.clip(np.searchsorted(ends, np.arange(len(curve)), side="right") - 1, 0, ends.size - 2)
        lo, hi = ends[which], ends[which + 1]
        whole = below[hi] - below[lo]
        part = np.divide(below - below[lo], whole, out=np.zeros_like(whole), where=whole > 0)
        return curve[lo] + part * (curve[hi] - curve[lo])


def _in_turns(one: Ints, other: Ints) -> Ints:
    both = np.empty(one.size + other.size, np.int64)
    both[::2], both[1::2] = one, other
    return both


def _nearest(at: Floats, middle: Floats, least: Ints, most: Ints) -> Ints:
    """The one of least..most whose place is nearest to each middle; anything where there is none."""
    right = np.minimum(np.maximum(np.searchsorted(at, middle), least), most)
    left = np.maximum(right - 1, least)
    return np.where(np.abs(at[left] - middle) <= np.abs(at[right] - middle), left, right)
