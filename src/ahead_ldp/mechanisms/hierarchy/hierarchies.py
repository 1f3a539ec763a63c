"""Complete hierarchies: one full tree for each attribute, and measurements of all combinations of their levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product
from math import prod

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.solvers.tree_least_squares import TreeLeastSquares, descend
from ahead_ldp.oracles import LinearOracle
from ahead_ldp.partitions.covers import leaf_density
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.schema.arrays import Bools, Floats, Ints

MOST_NODES = 1 << 24  # combinations of nodes held in memory (128 MB)
_ROUNDS = 200  # of filling in groups that said nothing; the gap falls by a factor in each
_SETTLED = 1e-9  # a round that moves no frequency by more is the last
_ROUNDING = 1e-9  # a weight below this is rounding
_TINY = 1e-300  # sums below this are 0


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """A tree down to single codes for each attribute. Nodes of several attributes are combinations of their nodes."""

    trees: tuple[Tree, ...]
    levels: tuple[tuple[Ints, ...], ...]  # for each attribute and level the nodes that tile it, in order of codes

    @classmethod
    def of(cls, axes: Sequence[Axis], fanout: int) -> Hierarchy:
        """The hierarchy with this fan-out; one that does not fit into memory is refused."""
        trees, levels = zip(*(_full_tree(axis, fanout) for axis in axes), strict=True)
        sizes = [tree.size for tree in trees]
        if prod(sizes) > MOST_NODES:
            many = " x ".join(map(str, sizes))
            raise ValueError(
                f"expected at most {MOST_NODES} combinations of nodes, got {many} = {prod(sizes)}: "
                "a full hierarchy over this many attributes cannot be counted"
            )
        return cls(trees, levels)

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes of each attribute."""
        return tuple(tree.size for tree in self.trees)

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """A level for each attribute, in all ways but the one that asks nothing: every attribute at its root."""
        every = product(*(range(len(levels)) for levels in self.levels))
        return (combination for combination in every if any(combination))

    def nodes(self, combination: Sequence[int]) -> tuple[Ints, ...]:
        """For each attribute the nodes of its level."""
        return tuple(levels[i] for levels, i in zip(self.levels, combination, strict=True))

    def cuts(self, attribute: int, level: int) -> list[int]:
        """The codes at which the nodes of a level begin, but for the first."""
        tree = self.trees[attribute]
        return [int(x) for x in tree.lo[self.levels[attribute][level], 0][1:]]


@lru_cache(maxsize=64)
def _full_tree(axis: Axis, fanout: int) -> tuple[Tree, tuple[Ints, ...]]:
    """A tree down to single codes, and the nodes that tile each of its levels."""
    tree = Tree.root((axis,), fanout)
    levels = [np.array([0])]
    while (tree.volume[tree.leaves] > 1).any():
        tree = tree.split(~tree.is_split)[0]  # breadth first: old nodes keep their places
        levels.append(tree.leaves[np.argsort(tree.lo[tree.leaves, 0])])
    return tree, tuple(levels)


@dataclass(frozen=True, slots=True, eq=False)
class LevelMeasurement:
    """What one group said about all combinations of nodes of its levels."""

    combination: tuple[int, ...]
    estimate: Floats  # one axis for each attribute
    n: int
    oracle: LinearOracle

    @property
    def precision(self) -> float:
        """Inverse of the variance that matters, the sum of all cells being known; 0 without reports."""
        return self.oracle.contrast_precision(self.n)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """All groups' estimates of all nodes. A code whose branch ends early is measured on later levels again."""

    hierarchy: Hierarchy
    groups: tuple[LevelMeasurement, ...]
    values: Floats  # one axis for each attribute: pooled by precision; the share of volume where nothing was measured
    precision: Floats  # of the pooled values; infinite for the whole domain, which is known to be 1

    @classmethod
    def of(cls, hierarchy: Hierarchy, groups: Iterable[LevelMeasurement]) -> Measured:
        """Pool what the groups said."""
        groups = tuple(groups)
        weighted, precision = np.zeros(hierarchy.shape), np.zeros(hierarchy.shape)
        for group in groups:
            at = np.ix_(*hierarchy.nodes(group.combination))
            weighted[at] += group.precision * group.estimate
            precision[at] += group.precision
        volume = _outer([tree.volume / tree.volume[0] for tree in hierarchy.trees])
        values = np.divide(weighted, precision, out=volume, where=precision > 0)
        values.flat[0], precision.flat[0] = 1.0, np.inf
        return cls(hierarchy, groups, values, precision)

    @property
    def people(self) -> int:
        """Who took part."""
        return sum(group.n for group in self.groups)


@dataclass(frozen=True, slots=True, eq=False)
class ProductLeastSquares:
    """Least squares over all measurements of a hierarchy, one attribute after the other.

    Groups of one size and precision make the normal matrix a Kronecker product of the attributes' own, so passing
    each attribute's tree alone is exact; that the whole is 1 is one correction at the end. With one attribute the
    groups' own precisions are used instead.
    """

    measured: Measured
    passes: tuple[TreeLeastSquares, ...]
    values: Floats  # the measured nodes; where nothing was measured, what the other groups imply

    @classmethod
    def of(cls, measured: Measured) -> ProductLeastSquares:
        """The solution's parts; groups that said nothing are filled in until they agree with the others."""
        hierarchy = measured.hierarchy
        if len(hierarchy.trees) == 1:
            precision = np.where(np.isinf(measured.precision), 0.0, measured.precision)
            one = TreeLeastSquares.of(hierarchy.trees[0], precision)
            return cls(measured, (one,), measured.values)
        passes = tuple(
            TreeLeastSquares.of(tree, np.bincount(np.concatenate(levels)).astype(float), known_root=False)
            for tree, levels in zip(hierarchy.trees, hierarchy.levels, strict=True)
        )
        values, unknown = measured.values, measured.precision == 0
        for _ in range(_ROUNDS if unknown.any() else 0):
            implied = _every_node(hierarchy, cls(measured, passes, values).leaves())
            moved = np.abs(implied[unknown] - values[unknown]).max()
            values = np.where(unknown, implied, values)
            if moved < _SETTLED:
                break
        return cls(measured, passes, values)

    def leaves(self) -> Floats:  # -> (size, ...)
        """The frequency of every combination of codes."""
        x = self.values
        for a, one in enumerate(self.passes):
            solved = one.solve(np.moveaxis(x, a, 0))
            x = np.moveaxis(solved[self.measured.hierarchy.levels[a][-1]], 0, a)
        if len(self.passes) > 1:
            shift = _outer([self._root_weights(a) for a in range(len(self.passes))])
            x = x + shift * ((1 - x.sum()) / shift.sum())
        return x

    def non_negative_leaves(self) -> Floats:  # -> (size, ...)
        """The same, not negative: nearest families going down, all attributes cut at once."""
        if len(self.passes) == 1:
            return self.passes[0].solve_non_negative(self.values)[self.measured.hierarchy.levels[0][-1]]
        trees = self.measured.hierarchy.trees
        tree = Tree.root(tuple(t.axes[0] for t in trees), trees[0].fanout)
        while (tree.volume[tree.leaves] > 1).any():
            tree = tree.split(~tree.is_split)[0]
        values = SummedArea.of(self.leaves()).boxes(tree.lo, tree.hi)
        even = np.ones(tree.size)
        return leaf_density(tree, descend(tree, values, even, even))

    def coefficients(self, sides: Sequence[Floats]) -> tuple[list[list[Floats]], Bools]:
        """How much each measured node counts in sums over boxes: products over attributes, to be added up.

        ``sides[a]`` (k, size) holds how much of each code of attribute a is inside. Also which sums nothing determines.
        """
        first, undetermined = [], np.zeros(len(sides[0]), bool)
        for a, (one, side) in enumerate(zip(self.passes, sides, strict=True)):
            weights = np.zeros((len(side), one.tree.size))
            weights[:, self.measured.hierarchy.levels[a][-1]] = side
            by_node, lost = one.coefficients(weights)
            first.append(by_node)
            undetermined |= lost
        if len(self.passes) == 1:
            return [first], undetermined
        whole = [self._whole(a) for a in range(len(self.passes))]
        share = -np.prod([c[:, 0] / w[0] for c, w in zip(first, whole, strict=True)], axis=0)
        second = [np.broadcast_to(w, c.shape) for c, w in zip(first, whole, strict=True)]
        return [first, [share[:, None] * second[0], *second[1:]]], undetermined

    def _whole(self, a: int) -> Floats:
        weights = np.zeros((1, self.passes[a].tree.size))
        weights[:, self.measured.hierarchy.levels[a][-1]] = 1.0
        return self.passes[a].coefficients(weights)[0][0]

    def _root_weights(self, a: int) -> Floats:
        """How a measurement of the whole moves the codes: the inverse normal matrix times a vector of ones."""
        only_root = np.zeros(self.passes[a].tree.size)
        only_root[0] = 1.0
        return self.passes[a].solve(only_root)[self.measured.hierarchy.levels[a][-1]]


def group_variance(
    measured: Measured, terms: Sequence[Sequence[Floats]], owner: Ints, queries: int
) -> tuple[Floats, Bools]:  # -> (queries,), (queries,)
    """Variance of sums of measured nodes: the oracles' noise and the chance of who fell into which group.

    ``terms`` are products over attributes of (boxes, nodes) weights, to be added up; ``owner`` gives each box's query.
    Also which sums rest on a node that nobody measured.
    """
    variance, unmeasured = np.zeros(queries), np.zeros(queries, bool)
    for group in measured.groups:
        nodes = measured.hierarchy.nodes(group.combination)
        parts = [_rows([w[:, n] for w, n in zip(term, nodes, strict=True)]) for term in terms]
        boxes = parts[0] if len(parts) == 1 else np.sum(parts, axis=0)
        if not boxes.any():
            continue
        at = np.ix_(*nodes)
        precision = measured.precision[at].reshape(-1)
        weights = np.zeros((queries, precision.size))
        np.add.at(weights, owner, boxes)
        if group.n == 0:
            unmeasured |= (np.abs(weights[:, precision == 0]) > _ROUNDING).any(axis=1)
            continue
        weights *= group.precision / precision
        f = np.maximum(measured.values[at], 0.0).reshape(-1)
        f /= max(f.sum(), _TINY)
        variance += group.oracle.group_variance(group.n, f, weights)
    return variance, unmeasured


def _rows(parts: Sequence[Floats]) -> Floats:  # (k, a), (k, b), ... -> (k, a b ...)
    """The products of all entries, row by row."""
    return reduce(lambda x, part: (x[:, :, None] * part[:, None, :]).reshape(len(part), -1), parts)


def _outer(parts: Sequence[Floats]) -> Floats:
    return np.asarray(reduce(np.multiply.outer, parts), np.float64)


def _every_node(hierarchy: Hierarchy, leaves: Floats) -> Floats:
    """The sums over the codes of every combination of nodes."""
    x = leaves
    for a, tree in enumerate(hierarchy.trees):
        sums = np.concatenate([np.zeros_like(x.take([0], axis=a)), np.cumsum(x, axis=a)], axis=a)
        x = sums.take(tree.hi[:, 0], axis=a) - sums.take(tree.lo[:, 0], axis=a)
    return x
