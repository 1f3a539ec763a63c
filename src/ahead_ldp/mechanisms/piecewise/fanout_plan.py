"""PrivNUD's plan for a domain: the fan-out of every node, and which part of the people it asks (WWWN23)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ahead_ldp.mechanisms.grain import FANOUT_COST
from ahead_ldp.schema.arrays import Floats, Ints

WIDEST = 20  # the largest fan-out that is tried, as published (WWWN23; docs/methods/piecewise/privnud.md)


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """An interval [lo, hi) and the people asked about it: the part [start, stop) of all, in a fixed random order."""

    lo: int
    hi: int
    parent: int  # -1 at the root
    children: tuple[int, ...]
    start: Fraction
    stop: Fraction


@lru_cache(maxsize=64)
def plan(d: int) -> tuple[PlannedNode, ...]:
    """The whole tree on d codes, breadth first; it depends on nothing but d.

    Each node takes the fan-out that makes the noise of all ranges least, were the tree below it uniform; and 1/height
    of the people that its path has left, heights counted in that uniform tree. A single code takes all that is left.
    """
    lo, hi, parent = [0], [d], [-1]
    start, stop = [Fraction(0)], [Fraction(0)]
    children: list[tuple[int, ...]] = []
    level = np.array([0])
    while level.size:
        fanouts = best_fanouts(np.array(lo)[level], np.array(hi)[level], _parents(lo, hi, parent, level), d)
        below = []
        for node, fanout in zip(level.tolist(), fanouts.tolist(), strict=True):
            first = len(lo)
            borders = cut(lo[node], hi[node], fanout) if hi[node] - lo[node] > 1 else []
            for a, b in pairwise(borders):
                below.append(len(lo))
                lo.append(a)
                hi.append(b)
                parent.append(node)
            children.append(tuple(range(first, len(lo))))
            if node:
                height = 1 + levels_below(hi[node] - lo[node], fanout)
                start.append(stop[parent[node]])
                stop.append(start[node] + (1 - start[node]) / height)
        level = np.array(below, np.int64)
    return tuple(map(PlannedNode, lo, hi, parent, children, start, stop))


def cut(lo: int, hi: int, fanout: int) -> list[int]:
    """Borders of the parts of an interval: all as long as the first, but for the last."""
    length = -(-(hi - lo) // fanout)
    return [*range(lo, hi, length), hi]


def levels_below(length: int, fanout: int) -> int:
    """Levels of a uniform tree under a node of this many codes; in integers, where logarithms round."""
    levels, reach = 0, 1
    while reach < length:
        reach *= fanout
        levels += 1
    return levels


def containing(lo: Ints, hi: Ints, d: int) -> Floats:
    """How many of all ranges contain each interval."""
    return (lo + 1.0) * (d - hi + 1.0)


def best_fanouts(lo: Ints, hi: Ints, parent: tuple[Ints, Ints], d: int) -> Ints:  # (k,) -> (k,)
    """The fan-out of least cost for each node, the smallest of equals; 2 for a single code, which is not cut."""
    costs = np.stack([fanout_cost(lo, hi, parent, d, b) for b in range(2, WIDEST + 1)])
    return np.argmin(np.round(costs / np.maximum(costs[0], 1.0) * FANOUT_COST), axis=0) + 2  # A12


def fanout_cost(lo: Ints, hi: Ints, parent: tuple[Ints, Ints], d: int, fanout: int) -> Floats:  # (k,) -> (k,)
    """The noise of all ranges from the nodes of uniform subtrees, one below each node, up to a factor.

    A node counts once for every range that contains it but not its parent, times the inverse of its share of the
    people; a code that is reached early keeps those of the levels that it does without.
    """
    is_root = parent[0] < 0
    height = np.array([levels_below(int(n), fanout) for n in hi - lo]) + ~is_root
    uses = containing(lo, hi, d) - containing(*parent, d)
    cost = np.where(is_root, 0.0, uses * height)
    owner = np.flatnonzero(hi - lo > 1)
    lo, hi, depth = lo[owner], hi[owner], 1
    while owner.size:
        depth += 1
        length = -(-(hi - lo) // fanout)
        parts = -(-(hi - lo) // length)
        i = np.repeat(np.arange(owner.size), parts)
        j = np.arange(i.size) - np.repeat(np.cumsum(parts) - parts, parts)
        child_lo = lo[i] + j * length[i]
        child_hi = np.minimum(child_lo + length[i], hi[i])
        uses = containing(child_lo, child_hi, d) - containing(lo[i], hi[i], d)
        owner, h = owner[i], height[owner[i]]
        single = child_hi - child_lo == 1
        at = depth - is_root[owner]
        np.add.at(cost, owner, uses * np.where(single, h / np.maximum(h - at + 1, 1), h))
        owner, lo, hi = owner[~single], child_lo[~single], child_hi[~single]
    return cost


def _parents(lo: list[int], hi: list[int], parent: list[int], level: Ints) -> tuple[Ints, Ints]:
    above = np.array(parent)[level]
    return np.where(above < 0, -1, np.array(lo)[above]), np.where(above < 0, 1, np.array(hi)[above])
