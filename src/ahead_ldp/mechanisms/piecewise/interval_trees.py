"""Trees of intervals of any fan-out, and two passes over them that make their frequencies consistent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ahead_ldp.estimates.solvers.norm_sub import nearest_in_simplex
from ahead_ldp.schema.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class IntervalTree:
    """Nested intervals [lo, hi) of codes: entry i of every array describes node i; node 0 is the root.

    Invariants: nodes stand breadth first and from left to right, so parents come before children and the children
    of a node stand together, in order, and tile it.
    """

    lo: Ints  # (nodes,)
    hi: Ints  # (nodes,)
    parent: Ints  # (nodes,) -1 at the root
    level: Ints  # (nodes,) 0 at the root

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
        tree = cls(lo, hi, place[np.array(parent)[order]], np.array(level, np.int64)[order])
        inner = ~tree.is_leaf
        if (tree.parent[1:] < 0).any() or (tree.children_sum(tree.length)[inner] != tree.length[inner]).any():
            raise ValueError("expected intervals that tile their parents, all inside one")
        return tree

    @property
    def size(self) -> int:
        """How many nodes."""
        return self.lo.size

    @cached_property
    def length(self) -> Floats:
        """Codes in each node."""
        return (self.hi - self.lo).astype(float)

    @cached_property
    def is_leaf(self) -> Bools:
        """Which nodes have no children."""
        leaf = np.ones(self.size, bool)
        leaf[self.parent[1:]] = False
        return leaf

    @cached_property
    def leaves(self) -> Ints:
        """The leaves, from left to right."""
        leaves = np.flatnonzero(self.is_leaf)
        return leaves[np.argsort(self.lo[leaves])]

    @cached_property
    def height(self) -> Ints:
        """Nodes on the longest path from a node down to a leaf, both counted."""
        height = np.ones(self.size, np.int64)
        for i in range(self.size - 1, 0, -1):
            height[self.parent[i]] = max(height[self.parent[i]], height[i] + 1)
        return height

    @cached_property
    def families(self) -> list[slice]:
        """The children of each inner node, in the order of their parents."""
        borders = np.flatnonzero(np.diff(self.parent[1:], prepend=-2)) + 1
        return [slice(int(a), int(b)) for a, b in pairwise([*borders, self.size])]

    @cached_property
    def inside(self) -> Floats:  # (leaves, nodes)
        """1 where a leaf lies in a node: the masses of the leaves times this are the masses of all nodes."""
        lo, hi = self.lo[self.leaves, None], self.hi[self.leaves, None]
        return ((self.lo <= lo) & (hi <= self.hi)).astype(float)

    def children_sum(self, x: Floats) -> Floats:  # (nodes,) -> (nodes,)
        """The sum of x over the children of each node; 0 at a leaf."""
        return np.bincount(self.parent[1:], weights=x[1:], minlength=self.size).astype(np.float64)

    def levels(self) -> list[slice]:
        """The nodes of each level, from the root down."""
        borders = np.searchsorted(self.level, np.arange(int(self.level[-1]) + 2))
        return [slice(int(a), int(b)) for a, b in pairwise(borders)]


@dataclass(frozen=True, eq=False)
class TwoPass:
    """Consistent frequencies from each node's own estimate: up to the root, and down again (Hay et al. 2010).

    Up, a node's value is ``own_weight`` times its own estimate plus the rest times the sum of its children's. Down,
    the root is 1, and what a parent has beyond the sum of its children goes to them by ``share``.
    """

    tree: IntervalTree
    own_weight: Floats  # (nodes,)
    share: Floats  # (nodes,)
    known: Bools  # (nodes,) whether a node or all nodes below it have an estimate

    @classmethod
    def of(cls, tree: IntervalTree, precision: Floats, *, equal: bool = False) -> TwoPass:
        """Weights that are best for these inverse variances (0: no estimate).

        ``equal`` parts a surplus equally among siblings, the nearest point in the unweighted sense; else by
        variance, which makes the result generalised least squares. Siblings without any estimate take it all.
        """
        total, own_weight = precision.copy(), np.ones(tree.size)
        share, known = np.ones(tree.size), np.ones(tree.size, bool)
        for family in reversed(tree.families):
            parent = int(tree.parent[family.start])
            blind = total[family] == 0
            known[family] = ~blind
            if blind.any():
                share[family] = np.where(blind, tree.length[family], 0.0)
            else:
                variance = 1 / total[family]
                own_weight[parent] = precision[parent] / (precision[parent] + 1 / variance.sum())
                total[parent] = precision[parent] + 1 / variance.sum()
                share[family] = 1.0 if equal else variance
            share[family] /= share[family].sum()
        return cls(tree, own_weight, share, known)

    def upward(self, own: Floats) -> Floats:  # (nodes,) -> (nodes,)
        """The averages of the first pass; 0 where nothing is known."""
        z = np.where(self.known, own, 0.0)
        for level in reversed(self.tree.levels()[:-1]):
            below = self.tree.children_sum(z)[level]
            w = self.own_weight[level]
            z[level] = np.where(w < 1, w * z[level] + (1 - w) * below, z[level])
        z[0] = 1.0
        return z

    def fit(self, own: Floats, *, non_negative: bool = True) -> Floats:  # (nodes,) -> (nodes,)
        """Consistent frequencies; ``non_negative`` solves each family's problem with that constraint (KKT)."""
        x = self.upward(own)
        for family in self.tree.families:
            parent = x[self.tree.parent[family.start]]
            if non_negative:
                x[family] = family_projection(x[family], self.share[family], parent)
            else:
                x[family] += self.share[family] * (parent - x[family].sum())
        return x

    def transpose(self, weights: Floats) -> Floats:  # (k, nodes) -> (k, nodes)
        """How much each node's own estimate counts in ``weights @ fit(own, non_negative=False)``."""
        tree, g = self.tree, weights.astype(float)
        for family in reversed(tree.families):  # down, backwards
            to_share = g[:, family] @ self.share[family]
            g[:, tree.parent[family.start]] += to_share
            g[:, family] -= to_share[:, None]
        g[:, 0] = 0.0  # the root is 1, whatever was estimated
        for level in tree.levels()[1:]:  # up, backwards
            above = tree.parent[level]
            passed = np.where(above > 0, g[:, above] * (1 - self.own_weight[above]), 0.0)
            g[:, level] += passed
        return g * self.own_weight


def family_projection(z: Floats, share: Floats, total: float) -> Floats:
    """The nearest non-negative values of this sum, where a step of a child costs the inverse of its share.

    Minimises the sum of (x - z)^2 / share; equal shares give Norm-Sub. Children of share 0 stay where they are, unless
    they leave nothing to the others.
    """
    fixed = share == 0
    if fixed.any():
        x = np.maximum(z, 0.0)
        if x[fixed].sum() >= total:
            x[fixed], x[~fixed] = nearest_in_simplex(x[fixed], total), 0.0
            return x
        x[~fixed] = family_projection(z[~fixed], share[~fixed], total - float(x[fixed].sum()))
        return x
    order = np.argsort(-z / share)
    shift = (total - np.cumsum(z[order])) / np.cumsum(share[order])
    kept = np.flatnonzero(z[order] + share[order] * shift > 0)
    step = shift[kept[-1]] if kept.size else shift[0]
    return np.maximum(z + share * step, 0.0)
