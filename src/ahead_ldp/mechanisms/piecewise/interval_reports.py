"""What groups said about the nodes of an interval tree: pooled estimates, and the variance of what is made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ahead_ldp.estimates.measurements import Measurement, pool
from ahead_ldp.mechanisms.piecewise.interval_trees import IntervalTree
from ahead_ldp.oracles import LinearOracle
from ahead_ldp.schema.arrays import Floats, Ints

_TINY = 1e-300  # sums below this are 0


class NodeReport(Measurement):
    """One group's estimates of nodes that tile the domain."""

    __slots__ = ()

    @property
    def precision(self) -> float:
        """Inverse of a cell's variance; 0 without reports."""
        return cell_precision(self.oracle, self.n)


def cell_precision(oracle: LinearOracle, n: int) -> float:
    """Inverse variance of a rare cell, once the sum of all is known to be 1: what counts where cells are correlated.

    For oracles of independent cells, such as OUE, it is that of ``oracle.variance(n)``. 0 without reports.
    """
    return n / (oracle.moments.other - oracle.moments.cross)


def tile(tree: IntervalTree, start: Ints, stop: Ints, at: int) -> Ints:
    """The nodes that are asked at this moment of [start, stop), from left to right: they tile the domain."""
    nodes = np.flatnonzero((start <= at) & (at < stop))
    return nodes[np.argsort(tree.lo[nodes, 0])]


def pooled_variance(
    tree: IntervalTree, reports: Sequence[NodeReport], g: Floats, masses: Floats, people: int
) -> Floats:  # (k, nodes), (leaves,) -> (k,)
    """Variance of ``g @ pooled estimates`` about the frequencies among the ``people`` who took part.

    Exact given the tree and the masses of its leaves: the oracles' noise with its covariance between cells, and the
    chance of who fell into which group.
    """
    precision = pool(tree, reports)[1]
    f = np.maximum(masses, 0.0)
    f = f / max(float(f.sum()), _TINY)
    variance = np.zeros(len(g))
    for r in reports:
        if r.n == 0:
            continue
        a, cell_f = g[:, r.nodes] * (r.precision / precision[r.nodes]), f @ tree.inside[:, r.nodes]
        variance += r.oracle.group_variance(r.n, cell_f, a)
    total = g @ tree.inside.T
    variance -= ((total**2) @ f - (total @ f) ** 2) / max(people, 1)  # groups share out the participants
    return np.maximum(variance, 0.0)
