"""Interval trees, lines and fan-outs the slow way: enumeration of ranges, dense least squares, all candidates."""

from itertools import pairwise
from math import ceil

import numpy as np


def uses(lo: int, hi: int, parent: tuple[int, int] | None, d: int) -> int:
    """How many closed ranges contain [lo, hi) but not its parent."""

    def contains(a: int, b: int, interval: tuple[int, int]) -> bool:
        return a <= interval[0] and interval[1] - 1 <= b

    ranges = [(a, b) for a in range(d) for b in range(a, d)]
    return sum(contains(a, b, (lo, hi)) and (parent is None or not contains(a, b, parent)) for a, b in ranges)


def consistent(inside: np.ndarray, own: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Leaf masses of sum 1 nearest to the nodes' estimates, by the normal equations with a multiplier."""
    leaves = len(inside)
    information = (inside * precision) @ inside.T
    bordered = np.block([[information, np.ones((leaves, 1))], [np.ones((1, leaves)), np.zeros((1, 1))]])
    return np.linalg.solve(bordered, np.append(inside @ (precision * own), 1.0))[:-1]


def line_residual(histogram: np.ndarray, cuts: list[int]) -> float:
    """Squares left by the best continuous function that is linear between cuts: values at the knots, interpolated."""
    d = histogram.size
    knots = np.array([0.0, *(c - 0.5 for c in sorted(cuts)), d - 1.0])
    design = np.stack([np.interp(np.arange(d), knots, row) for row in np.eye(knots.size)], axis=1)
    fitted = design @ np.linalg.lstsq(design, histogram, rcond=None)[0]
    return float(((histogram - fitted) ** 2).sum())


def fanout_cost(lo: int, hi: int, parent: tuple[int, int] | None, d: int, fanout: int) -> float:
    """The cost of a uniform subtree, node by node; ``parent`` is None at the root."""
    height, reach = 0, 1
    while reach < hi - lo:
        reach, height = reach * fanout, height + 1
    height += parent is not None
    count = lambda a, b: (a + 1) * (d - b + 1)  # noqa: E731
    cost = 0.0 if parent is None else (count(lo, hi) - count(*parent)) * height

    def below(a: int, b: int, depth: int) -> float:
        if b - a == 1:
            return 0.0
        total, length = 0.0, ceil((b - a) / fanout)
        for start in range(a, b, length):
            stop = min(start + length, b)
            people = max(height - depth + 1, 1) if stop - start == 1 else 1
            total += (count(start, stop) - count(a, b)) * height / people + below(start, stop, depth + 1)
        return total

    return cost + below(lo, hi, 1 if parent is None else 2)


def expected_error(lo, hi, parent) -> float:
    """WYHM24 Eq. 7: ranges that use a node over the people asked about it, paths shared out from the root."""
    children = {i: [j for j, p in enumerate(parent) if p == i] for i in range(len(lo))}

    def height(i: int) -> int:
        return 1 + max((height(c) for c in children[i]), default=0)

    def below(i: int, left: float) -> float:
        total = 0.0
        for c in children[i]:
            own = left / height(c)
            used = uses(lo[c], hi[c], (lo[i], hi[i]), hi[0]) / (hi[0] * (hi[0] + 1) / 2)
            total += used / own + below(c, left - own)
        return total

    return below(0, 1.0)


def error_of(nodes: list[tuple[int, int]]) -> float:
    """The same from a list of nested intervals."""
    order = sorted(nodes, key=lambda n: n[0] - n[1])
    parent = [-1]
    for i, (lo, hi) in enumerate(order[1:], start=1):
        parent.append(max(j for j in range(i) if order[j][0] <= lo and hi <= order[j][1]))
    return expected_error([n[0] for n in order], [n[1] for n in order], parent)


def binary(borders: list[int]) -> list[tuple[int, int]]:
    """Pairs of neighbours joined level by level, the last three together where their number is odd."""
    level = list(pairwise(borders))
    nodes = list(level)
    while len(level) > 1:
        groups = [level[i : i + 2] for i in range(0, len(level), 2)]
        if len(groups) > 1 and len(groups[-1]) == 1:
            groups[-2:] = [groups[-2] + groups[-1]]
        level = [(g[0][0], g[-1][1]) for g in groups]
        nodes += level
    return nodes


def postorder(nodes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Inner nodes but the root, children before parents, from left to right."""

    def visit(node: tuple[int, int]) -> list[tuple[int, int]]:
        inside = [n for n in nodes if n != node and node[0] <= n[0] and n[1] <= node[1]]
        direct = [n for n in inside if not any(o not in (n, node) and o[0] <= n[0] and n[1] <= o[1] for o in inside)]
        return [x for child in sorted(direct) for x in visit(child)] + ([node] if inside else [])

    return visit(max(nodes, key=lambda n: n[1] - n[0]))[:-1]
