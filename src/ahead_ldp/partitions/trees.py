"""Trees as flat arrays, in any number of attributes of any sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.schema.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class NestedBoxes:
    """Boxes of codes, each inside its parent: entry i of every array describes node i; node 0 is the root.

    Invariants: nodes stand breadth first, so parents come before children; the children of a node stand together, in
    order, and tile its box. Estimates are separate (nodes,) arrays, so one tree carries many of them. Every method
    with a tree has it in this form, but for ``mechanisms.adaptive``: a bisection there has cuts for entries, and
    no leaves.
    """

    lo: Ints  # (nodes, m) first code of the box
    hi: Ints  # (nodes, m) one past the last
    parent: Ints  # (nodes,) -1 at the root
    level: Ints  # (nodes,) 0 at the root

    @property
    def size(self) -> int:
        """How many nodes."""
        return len(self.lo)

    @property
    def height(self) -> int:
        """Levels below the root."""
        return int(self.level[-1])

    @cached_property
    def first_child(self) -> Ints:
        """The first child of each node; -1 at a leaf."""
        first = np.full(self.size, -1)
        first[self.parent[:0:-1]] = np.arange(self.size - 1, 0, -1)  # of several, the last that is written stays
        return first

    @cached_property
    def is_split(self) -> Bools:
        """Which nodes have children: the breadth-first split flags."""
        return self.first_child >= 0

    @cached_property
    def leaves(self) -> Ints:
        """The nodes without children, breadth first: the cells of the tree's partition."""
        return np.flatnonzero(~self.is_split)

    @cached_property
    def leaf_index(self) -> Ints:
        """The place of each node among the leaves; -1 for an inner node."""
        index = np.full(self.size, -1)
        index[self.leaves] = np.arange(self.leaves.size)
        return index

    @cached_property
    def child_counts(self) -> Ints:
        """How many children each node has."""
        return np.bincount(self.parent[1:], minlength=self.size)

    @cached_property
    def volume(self) -> Floats:
        """Codes (or combinations of codes) in each node's box."""
        return (self.hi - self.lo).prod(axis=1, dtype=float)

    def levels(self) -> Iterator[slice]:
        """The nodes of each level, from the root down."""
        borders = np.searchsorted(self.level, np.arange(self.height + 2))
        for start, stop in pairwise(borders.tolist()):
            yield slice(start, stop)

    @cached_property
    def families(self) -> list[tuple[Ints, slice, Ints]]:
        """Level by level from the top: the nodes that are split, their children, and where each family starts there."""
        families = []
        for level in self.levels():
            inner = np.flatnonzero(self.is_split[level]) + level.start
            if inner.size:
                first = self.first_child[inner]
                children = slice(int(first[0]), int(first[-1] + self.child_counts[inner[-1]]))
                families.append((inner, children, first - first[0]))
        return families

    def children_sum(self, x: Floats) -> Floats:  # (nodes,) -> (nodes,)
        """s[i] = sum of x over the children of i; 0 at a leaf."""
        return np.bincount(self.parent[1:], weights=x[1:], minlength=self.size).astype(float, copy=False)


@dataclass(frozen=True, eq=False)
class Tree(NestedBoxes):
    """A decomposition of a domain that a rule cuts, so that split flags alone fix it (``TreeForm``).

    A node is cut on all attributes at once into at most ``fanout`` parts each, as equal as possible (``Axis.parts``).
    """

    axes: tuple[Axis, ...]
    fanout: int

    @classmethod
    def root(cls, axes: Sequence[Axis], fanout: int = 2) -> Tree:
        """The tree that is one leaf: the whole domain."""
        if fanout < 2:
            raise ValueError(f"expected fanout >= 2, got {fanout}")
        lo = np.zeros((1, len(axes)), np.int64)
        hi = np.array([[axis.size for axis in axes]], np.int64)
        return cls(lo, hi, np.array([-1]), np.array([0]), tuple(axes), fanout)

    @classmethod
    def from_flags(cls, axes: Sequence[Axis], fanout: int, flags: Bools) -> Tree:
        """The tree behind breadth-first split flags; flags that do not end where the tree ends are refused."""
        tree = cls.root(axes, fanout)
        while tree.size <= flags.size:
            level = tree.level == tree.level[-1]
            split = level & flags[: tree.size]
            if not split.any():
                break
            children = tree.prospective_children[split]
            if (children == 1).any():
                raise ValueError("expected no flag to cut a single code, got one")
            if tree.size + children.sum() > flags.size:  # before they take memory
                raise ValueError(f"expected one flag per node, got {flags.size} for a larger tree")
            tree = tree.split(split)[0]
        if tree.size != flags.size:
            raise ValueError(f"expected one flag per node, got {flags.size} for {tree.size} nodes")
        return tree

    def parts(self, nodes: Ints | Bools) -> Ints:  # -> (k, m)
        """Into how many parts each attribute of these nodes would be cut."""
        lo, hi = self.lo[nodes], self.hi[nodes]
        counts = np.empty_like(lo)
        for a, axis in enumerate(self.axes):
            length = hi[:, a] - lo[:, a]
            if axis.nominal:
                counts[:, a] = length
                continue
            mixed = _is_mixed(axis, lo[:, a], hi[:, a])
            counts[:, a] = np.minimum(self.fanout, length - mixed) + mixed
        return counts

    @cached_property
    def prospective_children(self) -> Ints:
        """How many children each node has or would get; 1 for a single code, which cannot be cut."""
        return self.parts(np.ones(self.size, bool)).prod(axis=1)

    def split(self, nodes: Bools) -> tuple[Tree, Ints]:
        """The tree with these leaves cut, and where each old node stands in it. Single codes stay leaves."""
        new = np.flatnonzero(nodes & ~self.is_split & (self.prospective_children > 1))
        if new.size == 0 or self.level[new[0]] == self.height:
            return self._grown(new), np.arange(self.size)
        return self._rebuilt(new)

    def _grown(self, new: Ints) -> Tree:
        """The tree with these leaves of the last level cut: their children come after all other nodes."""
        counts = self.prospective_children[new]
        lo, hi = _children(self, new)
        return Tree(
            np.concatenate([self.lo, lo]),
            np.concatenate([self.hi, hi]),
            np.concatenate([self.parent, np.repeat(new, counts)]),
            np.concatenate([self.level, np.full(len(lo), self.height + 1)]),
            self.axes,
            self.fanout,
        )

    def _rebuilt(self, new: Ints) -> tuple[Tree, Ints]:
        """The tree with these leaves of any level cut, and where each old node stands in it."""
        cut = self.is_split.copy()
        cut[new] = True
        lo, hi, parent, level = [self.lo[:1]], [self.hi[:1]], [np.array([-1])], [np.array([0])]
        place = np.zeros(self.size, np.int64)  # old node -> new node
        old = np.array([0])  # old node behind each new node of the current level; -1 where it is new
        start = 0
        while True:
            here = np.arange(start, start + old.size)
            place[old[old >= 0]] = here[old >= 0]
            cuts = np.where(old >= 0, cut[old], False)
            counts = np.zeros(old.size, np.int64)
            counts[cuts] = self.parts(old[cuts]).prod(axis=1)
            if not cuts.any():
                break
            child_lo, child_hi = _children(self, old[cuts])
            lo.append(child_lo)
            hi.append(child_hi)
            parent.append(np.repeat(here, counts))
            level.append(np.full(len(child_lo), len(level)))
            known = self.first_child[old]
            offset = np.arange(len(child_lo)) - np.repeat(np.cumsum(counts) - counts, counts)
            known = np.repeat(np.where(old >= 0, known, -1), counts)
            old = np.where(known >= 0, known + offset, -1)
            start += here.size
        boxes = np.concatenate(lo), np.concatenate(hi)
        return Tree(*boxes, np.concatenate(parent), np.concatenate(level), self.axes, self.fanout), place

    def locate(self, codes: Ints) -> Ints:  # (n, m) -> (n,)
        """The leaf that holds each record."""
        node = np.zeros(len(codes), np.int64)
        for _ in range(self.height):
            inner = np.flatnonzero(self.is_split[node])
            at = node[inner]
            parts = self.parts(at)
            offset = np.zeros(inner.size, np.int64)
            for a, axis in enumerate(self.axes):
                side = _part_of(axis, self.lo[at, a], self.hi[at, a], parts[:, a], codes[inner, a])
                offset = offset * parts[:, a] + side
            node[inner] = self.first_child[at] + offset
        return node


def _is_mixed(axis: Axis, lo: Ints, hi: Ints) -> Ints:
    """1 where a side holds ordered codes and the missing one, which part company when it is cut."""
    if not axis.missing or axis.nominal:
        return np.zeros_like(lo)
    return ((hi == axis.size) & (lo < axis.size - 1)).astype(np.int64)


def _part_of(axis: Axis, lo: Ints, hi: Ints, parts: Ints, codes: Ints) -> Ints:
    """Which part of the side [lo, hi), cut into ``parts``, holds each code."""
    mixed = _is_mixed(axis, lo, hi)
    if axis.nominal:
        return codes - lo
    part = ((codes - lo + 1) * (parts - mixed) - 1) // (hi - lo - mixed)
    return np.where((mixed == 1) & (codes == axis.size - 1), parts - 1, part)


def _children(tree: Tree, nodes: Ints) -> tuple[Ints, Ints]:
    """Boxes of all children of these nodes, in order, the last attribute fastest."""
    parts = tree.parts(nodes)
    counts = parts.prod(axis=1)
    owner = np.repeat(np.arange(nodes.size), counts)
    rest = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
    lo = np.empty((owner.size, len(tree.axes)), np.int64)
    hi = np.empty_like(lo)
    for a in range(len(tree.axes) - 1, -1, -1):
        k = parts[owner, a]
        j = rest % k
        rest //= k
        start, stop = tree.lo[nodes[owner], a], tree.hi[nodes[owner], a]
        mixed = _is_mixed(tree.axes[a], start, stop)
        length, ordered = stop - start - mixed, k - mixed
        last = (mixed == 1) & (j == k - 1)
        lo[:, a] = np.where(last, stop - 1, start + j * length // ordered)
        hi[:, a] = np.where(last, stop, start + (j + 1) * length // ordered)
    return lo, hi
