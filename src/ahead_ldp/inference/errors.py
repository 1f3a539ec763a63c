"""Standard errors of answers that are linear in the groups' raw estimates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.inference.averaging import Averaged, own_coefficients

Floats = NDArray[np.float64]


def linear_variance(averaged: Averaged, weights: Floats) -> Floats:  # (k, nodes) -> (k,)
    """Variance of ``weights @ values`` about the frequencies among the people who took part.

    Exact for the linear part of the pipeline, given the tree: the oracles' noise with its covariance between
    cells, and the chance of who fell into which group. Norm-Sub is treated as the identity and the tree as given.
    Nodes that were filled carry their parent's noise alone; where nobody was asked, nothing varies and it is 0.
    """
    people = sum(m.n for m in averaged.measurements)
    g = own_coefficients(averaged, weights)
    f = np.maximum(averaged.values, 0.0)
    variance = np.zeros(len(weights))
    for m in averaged.measurements:
        if m.n == 0:
            continue
        share = np.divide(m.precision, averaged.own_precision[m.nodes])
        a, cell_f = g[:, m.nodes] * share, f[m.nodes] / max(f[m.nodes].sum(), 1e-300)
        variance += m.oracle.quadratic(m.n, cell_f, a)
        variance += ((a**2) @ cell_f - (a @ cell_f) ** 2) / m.n
    variance -= _everyone_counts(averaged, g, f, people)
    return np.maximum(variance, 0.0)


def _everyone_counts(averaged: Averaged, g: Floats, f: Floats, people: int) -> Floats:
    """What group sampling would add if groups were drawn from infinitely many: they share out the participants."""
    tree = averaged.tree
    total = g.copy()
    for level in list(tree.levels())[1:]:
        total[:, level] += total[:, tree.parent[level]]
    leaf_f = f[tree.leaves] / max(f[tree.leaves].sum(), 1e-300)
    phi = total[:, tree.leaves]
    return ((phi**2) @ leaf_f - (phi @ leaf_f) ** 2) / max(people, 1)
