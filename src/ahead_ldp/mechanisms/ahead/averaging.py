"""Weighted averaging on a tree, bottom up (AHEAD Eq. 5), and the linear map it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ahead_ldp.estimates.measurements import Measurement, pool
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.schema.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Averaged:
    """Node frequencies after averaging, and the weights that made them.

    A node's value is ``own_weight`` times its own estimate plus the rest times the sum of its children's values.
    ``filled`` nodes were never measured: they get their parent's value by volume.
    """

    tree: Tree
    measurements: tuple[Measurement, ...]
    own_precision: Floats  # (nodes,) of the pooled estimates of a node itself
    own_weight: Floats  # (nodes,) lambda_1
    precision: Floats  # (nodes,) of a node with what its children say; infinite at the root
    filled: Bools  # (nodes,)
    values: Floats  # (nodes,)

    @property
    def supported(self) -> Ints:
        """The finest nodes that reports tell about: below them frequencies follow an assumed density."""
        ends = ~self.tree.is_split | (self.tree.children_sum(self.filled.astype(float)) > 0)
        return np.flatnonzero(ends & ~self.filled)

    @property
    def has_reports(self) -> bool:
        """Whether anybody said anything."""
        return any(m.n for m in self.measurements)

    @property
    def is_consistent(self) -> bool:
        """Whether children add up to their parent on all levels, so that a range and the rest of the domain do to 1."""
        return False

    def coefficients(self, weights: Floats) -> Floats:  # (k, nodes) -> (k, nodes)
        """How much each node's own estimate counts in ``weights @ values``: the averaging, transposed."""
        tree, g = self.tree, weights.copy()
        levels = list(tree.levels())[1:]
        for level in reversed(levels):
            part = np.flatnonzero(self.filled[level]) + level.start
            above = tree.parent[part]
            share = g[:, part] * tree.volume[part] / tree.volume[above]
            np.add.at(g.T, above, share.T)
            g[:, part] = 0.0
        for level in levels[1:]:
            above = tree.parent[level]
            inner = above > 0
            g[:, level][:, inner] += (g[:, above] * (1 - self.own_weight[above]))[:, inner]
            # each parent's coefficient is final here: its own parent was done one level above
        g *= self.own_weight
        g[:, 0] = 0.0
        return g


def average(tree: Tree, measurements: Sequence[Measurement]) -> Averaged:
    """Pool each node's estimates, then average from the bottom up with inverse variances; the root is 1.

    lambda_1 = Var_child / (Var_child + Var_n), with Var_child the sum of the children's variances after their own
    update (Hay et al. 2010), so that Theorem 4.1 of the paper holds on every level.
    """
    own, precision = pool(tree, measurements)
    values, total = own.copy(), precision.copy()
    own_weight = np.ones(tree.size)
    for level in reversed(list(tree.levels())[1:-1]):
        inner = np.flatnonzero(tree.is_split[level]) + level.start
        if inner.size == 0:
            continue
        with np.errstate(divide="ignore"):
            child_precision = 1 / tree.children_sum(1 / total)[inner]
        both = precision[inner] + child_precision
        weight = np.divide(precision[inner], both, out=np.ones(inner.size), where=both > 0)
        own_weight[inner] = weight
        values[inner] = weight * own[inner] + (1 - weight) * tree.children_sum(values)[inner]
        total[inner] = both
    values[0], own_weight[0] = 1.0, 1.0
    filled = total == 0
    filled[0] = False
    for level in list(tree.levels())[1:]:
        part = np.flatnonzero(filled[level]) + level.start
        above = tree.parent[part]
        values[part] = values[above] * tree.volume[part] / tree.volume[above]
    total[0] = np.inf
    return Averaged(tree, tuple(measurements), precision, own_weight, total, filled, values)
