"""Weighted averaging on a tree as one matrix, and variances as a C a^T."""

from collections.abc import Sequence

import numpy as np

from ahead_ldp.estimates.measurements import Measurement
from ahead_ldp.partitions.trees import Tree
from tests.reference.covers import children


def linear_map(tree: Tree, measurements: Sequence[Measurement]) -> tuple[np.ndarray, np.ndarray, list[bool]]:
    """Matrix A, constants c and the nodes that nothing was said about: values = A @ (all estimates) + c."""
    inputs = sum(m.nodes.size for m in measurements)
    a, c = np.zeros((tree.size, inputs)), np.zeros(tree.size)
    known = [False] * tree.size
    below = children(tree)

    def own(node: int) -> tuple[np.ndarray, float]:
        row, precision, start = np.zeros(inputs), 0.0, 0
        for m in measurements:
            for place, measured in enumerate(m.nodes):
                if measured == node and m.n:
                    weight = 1 / float(m.oracle.variance(m.n))
                    row[start + place] += weight
                    precision += weight
            start += m.nodes.size
        return (row / precision, 1 / precision) if precision else (row, np.inf)

    def up(node: int) -> float:
        """Fill the rows of the subtree; the variance of the node's value in the averaging's own terms."""
        row, var = own(node)
        if below[node]:
            child_var = sum([up(child) for child in below[node]])
            child_row = sum(a[child] for child in below[node])
            if np.isfinite(var) and np.isfinite(child_var):
                weight = child_var / (child_var + var)  # lambda_1
                row, var = weight * row + (1 - weight) * child_row, 1 / (1 / var + 1 / child_var)
            elif np.isfinite(child_var):
                row, var = child_row, child_var
        a[node], known[node] = row, bool(np.isfinite(var))
        return var

    up(0)
    a[0], c[0], known[0] = 0.0, 1.0, True
    volume = (tree.hi - tree.lo).prod(axis=1)
    for node in range(1, tree.size):
        if not known[node]:
            share = volume[node] / volume[tree.parent[node]]
            a[node], c[node] = share * a[tree.parent[node]], share * c[tree.parent[node]]
    return a, c, [not k for k in known]


def covariance(tree: Tree, measurements: Sequence[Measurement], leaf_f: np.ndarray) -> np.ndarray:
    """Of all estimates: the oracles' noise, and the people shared out to groups of n_g of N.

    Sharing out gives one group (1/n_g - 1/N) S and two groups -1/N S, S the covariance of one person's cells
    (with N for N - 1, as everywhere where f is estimated).
    """
    people = sum(m.n for m in measurements)
    inside, sizes = [], []
    for m in measurements:
        boxes = [
            [
                bool((tree.lo[node] <= tree.lo[leaf]).all() and (tree.hi[leaf] <= tree.hi[node]).all())
                for leaf in tree.leaves
            ]
            for node in m.nodes
        ]
        inside.append(np.array(boxes, float))
        sizes.append(m.nodes.size)
    person = np.vstack(inside)  # (inputs, leaves)
    one = (person * leaf_f) @ person.T - np.outer(person @ leaf_f, person @ leaf_f)
    total = -one / people
    start = 0
    for m, cells in zip(measurements, inside, strict=True):
        block = slice(start, start + m.nodes.size)
        if m.n:
            total[block, block] += one[block, block] / m.n + m.oracle.covariance(m.n, cells @ leaf_f)
        start += m.nodes.size
    silent = np.repeat([m.n == 0 for m in measurements], sizes)
    total[silent] = total[:, silent] = 0.0
    return total
