"""Who is asked about which node, when people are divided along the paths of a tree rather than by its levels."""

from __future__ import annotations

import numpy as np

from ahead_ldp.mechanisms.piecewise.interval_trees import IntervalTree
from ahead_ldp.schema.arrays import Floats, Ints

_IMPROVEMENT = 1 - 2**-30  # a gain that one ulp cannot make, so that machines agree (docs/architecture.md)


def allocate(tree: IntervalTree, slots: int) -> tuple[Ints, Ints]:
    """First slot of each node and one past its last: a node takes 1/height of what its path has left.

    WYHM24 Alg. 2, lines 5 to 12, with people in equal slots: rounded, at least one slot to each node but the root.
    At every slot the nodes asked tile the domain.
    """
    if slots < tree.heights[0] - 1:
        raise ValueError(f"expected at least {tree.heights[0] - 1} slots for the paths of this tree, got {slots}")
    start, stop = np.zeros(tree.size, np.int64), np.zeros(tree.size, np.int64)
    for i in range(1, tree.size):
        start[i] = stop[tree.parent[i]]
        left, height = slots - int(start[i]), int(tree.heights[i])
        stop[i] = start[i] + max(1, (2 * left + height) // (2 * height))
    return start, stop


def query_weights(tree: IntervalTree) -> Floats:  # -> (nodes,)
    """The share of all ranges that use a node: those that contain it but not its parent (WYHM24 Eq. 8)."""
    lo, hi, d = tree.lo[:, 0], tree.hi[:, 0], float(tree.hi[0, 0])
    weights = (lo + 1) * (d - hi + 1) / (d * (d + 1) / 2)  # of those that contain the node
    weights[1:] -= weights[tree.parent[1:]]
    weights[0] = 0.0
    return weights


def expected_error(tree: IntervalTree) -> float:
    """The mean noise of a range's answer, up to a factor (WYHM24 Eq. 7): the sum of weight / share of the people."""
    left, error = np.ones(tree.size), 0.0
    weights = query_weights(tree)
    for i in range(1, tree.size):
        own = left[tree.parent[i]] / tree.heights[i]
        left[i] = left[tree.parent[i]] - own
        error += weights[i] / own
    return error


def grow_tree(borders: Ints) -> IntervalTree:
    """The tree on these segments: binary, then without inner nodes that cost more than they help (Alg. 2)."""
    nodes = _binary(borders)
    best = expected_error(IntervalTree.of(nodes))
    for node in _postorder(nodes, leaves=set(zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True))):
        fewer = [other for other in nodes if other != node]
        error = expected_error(IntervalTree.of(fewer))
        if error < best * _IMPROVEMENT:
            nodes, best = fewer, error
    return IntervalTree.of(nodes)


def _binary(borders: Ints) -> list[tuple[int, int]]:
    """Pairs of neighbours, again and again; of an odd number the last three go together."""
    level = list(zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True))
    nodes = [(int(borders[0]), int(borders[-1]))]
    while len(level) > 1:
        nodes += level
        firsts = range(0, max(len(level) - len(level) % 2, 1), 2)
        last = firsts[-1]
        level = [(level[i][0], level[i + 1 if i != last else -1][1]) for i in firsts]
    return nodes


def _postorder(nodes: list[tuple[int, int]], leaves: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Inner nodes but the root, children before parents, from left to right."""
    root = max(nodes, key=lambda x: x[1] - x[0])
    return sorted((x for x in set(nodes) - leaves if x != root), key=lambda x: (x[1], -x[0]))
