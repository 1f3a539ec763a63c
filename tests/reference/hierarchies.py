"""Slow versions for complete hierarchies: covers by recursion, least squares and the Haar transform as matrices."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from ahead_ldp.partitions.trees import Tree


def fewest_nodes(tree: Tree, lo: int, hi: int, node: int = 0) -> list[int]:
    """The nodes of one attribute that cover [lo, hi), from the top: a covered node hides what is below it."""
    start, stop = int(tree.lo[node, 0]), int(tree.hi[node, 0])
    if hi <= start or stop <= lo or hi <= lo:
        return []
    if lo <= start and stop <= hi:
        return [node]
    children = np.flatnonzero(tree.parent == node)
    return [n for child in children for n in fewest_nodes(tree, lo, hi, int(child))]


def cover_answer(trees: Sequence[Tree], values: np.ndarray, box: Sequence[tuple[int, int]]) -> float:
    """The sum over all combinations of the attributes' covers."""
    covers = [fewest_nodes(tree, lo, hi) for tree, (lo, hi) in zip(trees, box, strict=True)]
    return float(sum(values[nodes] for nodes in product(*covers)))


def incidence(tree: Tree) -> np.ndarray:  # (nodes, size)
    """Which codes of one attribute each node holds."""
    codes = np.arange(tree.axes[0].size)
    return ((tree.lo <= codes) & (codes < tree.hi)).astype(float)


def least_squares(matrix: np.ndarray, precision: np.ndarray, y: np.ndarray, total: float | None) -> np.ndarray:
    """The x that minimises sum(precision (y - matrix x)^2), if wanted among those with the given sum."""
    normal, right = matrix.T @ (precision[:, None] * matrix), matrix.T @ (precision * y)
    if total is None:
        return np.linalg.solve(normal, right)
    one = np.ones((len(right), 1))
    bordered = np.block([[normal, one], [one.T, np.zeros((1, 1))]])
    return np.linalg.solve(bordered, np.append(right, total))[:-1]


def haar_matrix(size: int) -> np.ndarray:  # (size, size), size a power of two
    """Row 0 sums everything; then level by level, for each node, its first half less its second."""
    rows = [np.ones(size)]
    width = size // 2
    while width:
        for start in range(0, size, 2 * width):
            row = np.zeros(size)
            row[start : start + width], row[start + width : start + 2 * width] = 1, -1
            rows.append(row)
        width //= 2
    return np.stack(rows)
