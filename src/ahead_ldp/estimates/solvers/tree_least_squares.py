"""Least squares on a tree: every measurement of every node counts, and children add up to their parent.

The two passes of Hay et al. 2010 (CKS19), for any tree and any precisions: up, a node's own estimate is
averaged with the sum of its children's; down, what a family lacks to its parent is shared out by variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.estimates.solvers.norm_sub import nearest_in_simplex
from ahead_ldp.partitions.trees import NestedBoxes
from ahead_ldp.schema.arrays import Bools, Floats, Ints

_HOLD = 1e9  # how much surer a value that is held at 0 is than any measured one: it moves by less than rounding shows
_ROUNDS = 50  # of active sets; a handful settle it, the rest is a guard against going in circles
_ROUNDING = 1e-9  # a coefficient below this is rounding


@dataclass(frozen=True, slots=True, eq=False)
class TreeLeastSquares:
    """The least-squares map from the nodes' own estimates to consistent values, for independent estimates.

    With ``known_root`` the root is given; without, it is measured like any node. A node that no estimate
    determines is ``open``: open siblings share out what is left by volume. Arrays stand nodes first; further axes
    are carried along.
    """

    tree: NestedBoxes
    known_root: bool
    variance: Floats  # (nodes,) of a node from its own estimate and all below it; infinite where open
    distance: Floats  # (nodes,) what squared distances are divided by where a family is brought to its parent
    own_weight: Floats  # (nodes,) of the node's own estimate against the sum of its children
    share: Floats  # (nodes,) of what the family lacks

    @classmethod
    def of(
        cls, tree: NestedBoxes, precision: Floats, known_root: bool = True, *, equal: bool = False
    ) -> TreeLeastSquares:
        """The map for estimates of these precisions (inverse variances; 0 for a node that was not measured).

        ``equal`` shares out what a family lacks in equal parts, the nearest point in the unweighted sense, as some
        papers do; else by variance, which makes it generalised least squares.
        """
        total, own_weight, share = precision.astype(float), np.ones(tree.size), np.ones(tree.size)
        with np.errstate(divide="ignore"):
            for inner, children, starts in reversed(tree.families):
                below = 1 / np.add.reduceat(1 / total[children], starts)
                both = precision[inner] + below
                own_weight[inner] = np.divide(precision[inner], both, out=np.ones(inner.size), where=both > 0)
                share[children] = _shares(total[children], tree.volume[children], starts, equal)
                total[inner] = both
            distance = np.ones(tree.size) if equal else 1 / total
            return cls(tree, known_root, 1 / total, distance, own_weight, share)

    @property
    def open(self) -> Bools:
        """Nodes that nothing determines."""
        return np.isinf(self.variance)

    def up(self, own: Floats) -> Floats:  # (nodes, ...) -> (nodes, ...)
        """Each node's best value from itself and what is below it; 0 where open."""
        values = np.where(_stretch(self.open, own), 0.0, own)
        for inner, children, starts in reversed(self.tree.families):
            weight = _stretch(self.own_weight[inner], own)
            below = np.add.reduceat(values[children], starts, axis=0)
            values[inner] = weight * values[inner] + (1 - weight) * below
        return values

    def solve(self, own: Floats, root: float = 1.0) -> Floats:  # (nodes, ...) -> (nodes, ...)
        """The consistent values."""
        values = self.up(own)
        if self.known_root:
            values[0] = root
        for inner, children, starts in self.tree.families:
            lack = values[inner] - np.add.reduceat(values[children], starts, axis=0)
            counts = self.tree.child_counts[inner]
            values[children] += _stretch(self.share[children], own) * np.repeat(lack, counts, axis=0)
        return values

    def solve_non_negative(self, own: Floats, root: float = 1.0) -> Floats:  # (nodes,) -> (nodes,)
        """Consistent values that are not negative: going down, each family is the nearest one in that range.

        The same as ``solve`` where that is not negative; the exact least squares under both conditions would let
        a bound met far below move what is above (``non_negative_least_squares``).
        """
        values = self.up(own)
        values[0] = root if self.known_root else max(values[0], 0.0)
        return descend(self.tree, values, np.where(self.open, np.inf, self.distance), self.share)

    def coefficients(self, weights: Floats) -> tuple[Floats, Bools]:  # (k, nodes) -> (k, nodes), (k,)
        """How much each own estimate counts in ``weights @ solve(own)``: the map, transposed; and which sums
        rest on open nodes."""
        g, undetermined = weights.T.copy(), np.zeros(len(weights), bool)
        open_ = self.open
        for inner, children, starts in reversed(self.tree.families):
            share = self.share[children][:, None]
            common = np.add.reduceat(share * g[children], starts, axis=0)
            g[inner] += common
            g[children] -= np.repeat(common, self.tree.child_counts[inner], axis=0)
            astray = open_[children]
            undetermined |= (np.abs(g[children][astray]) > _ROUNDING).any(axis=0)
        g[open_] = 0.0
        if self.known_root:
            g[0] = 0.0
        for inner, children, _ in self.tree.families:
            passed = (1 - self.own_weight[inner])[:, None] * g[inner]
            g[children] += np.repeat(passed, self.tree.child_counts[inner], axis=0)
            g[inner] *= self.own_weight[inner][:, None]
        return np.ascontiguousarray(g.T), undetermined


def non_negative_least_squares(tree: NestedBoxes, precision: Floats, own: Floats) -> Floats:  # (nodes,) -> (nodes,)
    """The least squares among consistent values that are not negative, the root being 1: exact, by active sets.

    The finest determined nodes below 0 are held there by a measurement that outweighs all others, and let go where the
    solution then pulls them up. A few rounds settle it; what is left below 0, by rounding or after 50 rounds, going
    down mends (``TreeLeastSquares.solve_non_negative``).
    """
    solution, pulled = TreeLeastSquares.of(tree, precision), own
    ends = ~solution.open & (~tree.is_split | (tree.children_sum(solution.open.astype(float)) > 0))
    held = ends & (solution.solve(own) < 0)
    for _ in range(_ROUNDS):
        total = precision + held * _HOLD * precision.max()
        pulled = np.divide(precision * own, total, out=np.zeros(tree.size), where=total > 0)
        solution = TreeLeastSquares.of(tree, total)
        before, held = held, ends & (solution.solve(pulled) < 0)
        if (held == before).all():
            break
    return solution.solve_non_negative(pulled)


def descend(tree: NestedBoxes, values: Floats, variance: Floats, share: Floats) -> Floats:  # (nodes,) -> (nodes,)
    """From the root's value down, the nearest non-negative families that add up; squares are divided by variance.

    Nodes of infinite variance get what the others leave, by their ``share`` of it.
    """
    values, open_ = values.copy(), np.isinf(variance)
    for inner, children, starts in tree.families:
        rows = np.repeat(np.arange(inner.size), tree.child_counts[inner])
        place = np.arange(rows.size) - starts[rows]
        shape = (inner.size, int(tree.child_counts[inner].max()))
        z, v = np.zeros(shape), np.zeros(shape)
        known = ~open_[children]
        z[rows, place] = np.where(known, values[children], 0.0)
        v[rows, place] = np.where(known, variance[children], 0.0)
        total = values[inner]
        some_open = np.bincount(rows, ~known, inner.size) > 0
        at_most = np.where(some_open, np.minimum(total, np.maximum(z, 0).sum(axis=1)), total)
        nearest = nearest_in_simplex(z, np.maximum(at_most, 0.0), v)
        rest = (total - nearest.sum(axis=1))[rows] * share[children]
        values[children] = np.where(known, nearest[rows, place], rest)
    return values


def _shares(total: Floats, volume: Floats, starts: Ints, equal: bool) -> Floats:
    """Of each child in what its family lacks: by variance, or by volume among those without any precision."""
    open_ = total == 0
    some = np.logical_or.reduceat(open_, starts)
    counts = np.diff([*starts, total.size])
    among_known = np.ones(total.size) if equal else np.divide(1.0, total, where=~open_, out=np.zeros(total.size))
    weight = np.where(np.repeat(some, counts), open_ * volume, among_known)
    return weight / np.repeat(np.add.reduceat(weight, starts), counts)


def _stretch(x: NDArray[Any], like: Floats) -> NDArray[Any]:
    return x.reshape(-1, *(1,) * (like.ndim - 1))
