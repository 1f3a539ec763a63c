"""Trees of intervals of any fan-out over the codes of one attribute."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from ahead_ldp.partitions.trees import NestedBoxes
from ahead_ldp.schema.arrays import Floats, Ints


class IntervalTree(NestedBoxes):
    """Nested intervals [lo, hi) of codes; on each level they stand from left to right."""

    @classmethod
    def of(cls, intervals: Iterable[tuple[int, int]]) -> IntervalTree:
        """The tree of these intervals, each inside or apart from each other; every family must tile its parent."""
        nodes = sorted(set(intervals), key=lambda x: (x[0], -x[1]))
        above: list[int] = []
        parent, level = [], []
        for i, (lo, _) in enumerate(nodes):
            while above and nodes[above[-1]][1] <= lo:
                above.pop()
            parent.append(above[-1] if above else -1)
            level.append(len(above))
            above.append(i)
        order = np.argsort(level, kind="stable")
        place = np.empty(len(nodes) + 1, np.int64)
        place[order], place[-1] = np.arange(len(nodes)), -1
        lo, hi = np.array(nodes, np.int64)[order].T
        tree = cls(lo[:, None], hi[:, None], place[np.array(parent)[order]], np.array(level, np.int64)[order])
        whole = np.where(tree.is_split, tree.children_sum(tree.volume), tree.volume)
        if (tree.parent[1:] < 0).any() or (whole != tree.volume).any():
            raise ValueError("expected intervals that tile their parents, all inside one")
        return tree

    @cached_property
    def segments(self) -> Ints:
        """The leaves, from left to right."""
        return self.leaves[np.argsort(self.lo[self.leaves, 0])]

    @cached_property
    def heights(self) -> Ints:
        """Nodes on the longest path from each node down to a leaf, both counted."""
        heights = np.ones(self.size, np.int64)
        for i in range(self.size - 1, 0, -1):
            heights[self.parent[i]] = max(heights[self.parent[i]], heights[i] + 1)
        return heights

    @cached_property
    def inside(self) -> Floats:  # (segments, nodes)
        """1 where a leaf lies in a node: the masses of the leaves times this are the masses of all nodes."""
        lo, hi = self.lo[self.segments], self.hi[self.segments]
        return ((self.lo[:, 0] <= lo) & (hi <= self.hi[:, 0])).astype(float)
