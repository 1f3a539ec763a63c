"""Any tree as a binary one: families of more than two children get nodes in between, halves of the family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.partition import Axis
from ahead_ldp.trees import Tree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Level = tuple[Ints, Ints, Ints]  # nodes that are cut, their left and their right children


@dataclass(frozen=True, slots=True, eq=False)
class BinaryTree:
    """A tree whose nodes are leaves or have two children.

    The nodes of the tree it was made from stand first, in their order; those in between come after them. A pass
    over the tree is a loop over ``levels``, which stand from the root down.
    """

    tree: Tree
    size: int
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, tree: Tree) -> BinaryTree:
        """The binary form."""
        builder = _Builder(tree.size)
        depth = np.zeros(tree.size, np.int64)
        for level in tree.levels():
            inner = np.flatnonzero(tree.is_split[level]) + level.start
            for count in np.unique(tree.child_counts[inner]):
                parents = inner[tree.child_counts[inner] == count]
                children = tree.first_child[parents][:, None] + np.arange(count)
                builder.halve(parents, children, depth[parents], depth)
        return cls(tree, builder.size, builder.levels())

    def sums(self, leaves: Floats) -> Floats:  # (leaves, ...) -> (size, ...)
        """What the leaves below each node add up to; leaves are given in the order of the tree's own."""
        total = np.zeros((self.size, *leaves.shape[1:]))
        total[self.tree.leaves] = leaves
        for nodes, left, right in reversed(self.levels):
            total[nodes] = total[left] + total[right]
        return total


class _Builder:
    """Collects families of two."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._found: list[tuple[Ints, Ints, Ints, Ints]] = []

    def halve(self, parents: Ints, children: Ints, depths: Ints, depth: Ints) -> None:
        """Cut families of equal size, (k,) parents and (k, c) children; note the depth of every child."""
        count = children.shape[1]
        if count == 1:
            depth[children[:, 0]] = depths  # a family of one is its parent; no tree has one
            return
        halves = children[:, : (count + 1) // 2], children[:, (count + 1) // 2 :]
        ids = []
        for half in halves:
            if half.shape[1] == 1:
                ids.append(half[:, 0])
                depth[half[:, 0]] = depths + 1
            else:
                ids.append(np.arange(self.size, self.size + parents.size))
                self.size += parents.size
        self._found.append((depths, parents, ids[0], ids[1]))
        for half, node in zip(halves, ids, strict=True):
            if half.shape[1] > 1:
                self.halve(node, half, depths + 1, depth)

    def levels(self) -> tuple[Level, ...]:
        """All families of two by their parents' depth."""
        if not self._found:
            return ()
        depths, parents, left, right = (np.concatenate(column) for column in zip(*self._found, strict=True))
        order = np.argsort(depths, kind="stable")
        borders = np.searchsorted(depths[order], np.arange(1, int(depths.max()) + 1))
        return tuple((parents[part], left[part], right[part]) for part in np.split(order, borders))


@lru_cache(maxsize=32)
def complete_tree(axis: Axis, most_levels: int) -> BinaryTree:
    """The tree of one attribute down to single codes, or to this many levels below the root."""
    tree = Tree.root((axis,), 2)
    for _ in range(most_levels):
        cut = ~tree.is_split & (tree.prospective_children > 1)
        if not cut.any():
            break
        tree = tree.split(cut)[0]
    return BinaryTree.of(tree)
