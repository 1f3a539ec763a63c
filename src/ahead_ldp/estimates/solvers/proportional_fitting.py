"""Iterative proportional fitting: tables with given sums, as near to a start as those sums allow.

Used three times by the fused method: a pair's table with its two margins, a table of several attributes with all its
pairs', and the 2^q in/out cells of a query with the answers of its pairs. Each is the table of least relative
entropy to the start; to first order it moves with its sums as a weighted regression says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from ahead_ldp.schema.arrays import Floats

Pair = tuple[int, int]

_TINY = 1e-300
_RIDGE = 1e-10  # of the systems for derivatives, whose entries sum to about 1


def fit_margins(start: Floats, rows: Floats, columns: Floats, sweeps: int = 300, tolerance: float = 1e-11) -> Floats:
    """The table of start's cross-product ratios whose row and column sums are the given ones.

    Stops when the row sums are off by less than the tolerance in all; a line that sums to 0 stays 0.
    """
    return scaled(start, *margin_scales(start, rows, columns, np.ones(columns.size), sweeps, tolerance))


def margin_scales(
    start: Floats, rows: Floats, columns: Floats, guess: Floats, sweeps: int, tolerance: float
) -> tuple[Floats, Floats]:
    """Factors of the rows and columns that bring a table to its margins, from a guess of the columns'."""
    by_column, sums = guess, start @ guess
    for _ in range(sweeps):
        by_row = _ratio(rows, sums)
        by_column = _ratio(columns, by_row @ start)
        sums = start @ by_column
        if np.abs(by_row * sums - rows).sum() < tolerance:
            break
    return by_row, by_column


def scaled(start: Floats, by_row: Floats, by_column: Floats) -> Floats:
    """A table with its rows and columns multiplied."""
    found: Floats = by_row[:, None] * start * by_column
    return found


def margin_system(table: Floats) -> Floats:  # (r, c) -> (r + c, r + c)
    """The matrix that takes relative changes of rows and columns, alpha_i + beta_j, to changes of the sums."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    r = rows.size
    system = np.zeros((r + columns.size,) * 2)
    system[:r, :r], system[r:, r:] = np.diag(rows), np.diag(columns)
    system[:r, r:], system[r:, :r] = table, table.T
    loose = np.concatenate([rows, -columns])  # alpha + t, beta - t is the same change
    return system + np.outer(loose, loose) + _RIDGE * np.eye(len(system))


def fit_pairs(
    masses: Sequence[Floats], tables: Mapping[Pair, Floats], sweeps: int = 30, tolerance: float = 1e-7
) -> Floats:
    """The table over all attributes with these pairs' tables: the pairwise model of greatest entropy.

    It starts from independence. Where the pairs contradict each other, what the last sweep leaves.
    """
    q = len(masses)
    table = np.ones((1,) * q)
    for a, mass in enumerate(masses):
        table = table * mass.reshape([-1 if b == a else 1 for b in range(q)])
    for _ in range(sweeps if q > 2 else 1):
        off = 0.0
        for pair, wanted in tables.items():
            have = table.sum(axis=tuple(b for b in range(q) if b not in pair))
            off = max(off, float(np.abs(have - wanted).sum()))
            table = table * _ratio(wanted, have).reshape([n if b in pair else 1 for b, n in enumerate(table.shape)])
        if off < tolerance:
            break
    total: Floats = table / max(float(table.sum()), _TINY)
    return total


def fit_blocks(
    start: Floats, blocks: Mapping[Pair, Floats], sweeps: int = 20, tolerance: float = 1e-7
) -> Floats:  # (n, 2, ..., 2), pair -> (n, 2, 2); index 0 is inside
    """In/out cells of many queries with the pairs' in/out answers, from the given start."""
    q = start.ndim - 1
    cells = start / start.sum(axis=tuple(range(1, q + 1)), keepdims=True)
    for _ in range(sweeps):
        off = 0.0
        for (i, j), wanted in blocks.items():
            have = cells.sum(axis=tuple(b + 1 for b in range(q) if b not in (i, j)))
            off = max(off, float(np.abs(have - wanted).max(initial=0.0)))
            shape = [len(cells)] + [2 if b in (i, j) else 1 for b in range(q)]
            cells = cells * _ratio(wanted, have).reshape(shape)
        if off < tolerance:
            break
    return cells


def all_in_slopes(cells: Floats) -> tuple[Floats, Floats]:  # (n, 2, ..., 2) -> (n, q), (n, pairs)
    """How the all-in cell moves with each attribute's in mass and each pair's in/in mass, to first order.

    The regression of the all-in indicator on those of the attributes and pairs, with the cells as the measure.
    """
    n, q = len(cells), cells.ndim - 1
    masks = [1 << i for i in range(q)] + [1 << i | 1 << j for i, j in combinations(range(q), 2)]
    joint = cells.copy()
    for axis in range(1, q + 1):  # for each set of attributes the mass that is in on all of them
        inside = np.take(joint, [0], axis=axis)
        joint = np.concatenate([np.take(joint, [0, 1], axis=axis).sum(axis=axis, keepdims=True), inside], axis=axis)
    joint = joint.transpose(0, *range(q, 0, -1)).reshape(n, -1)  # bit i of the place: attribute i is in the set
    mean = joint[:, masks]
    both = np.bitwise_or.outer(masks, masks)
    covariance = joint[:, both] - mean[:, :, None] * mean[:, None, :]
    towards = joint[:, -1:] * (1 - mean)
    scale = np.maximum(np.trace(covariance, axis1=1, axis2=2), _TINY) / len(masks)
    covariance += (1e-9 * scale)[:, None, None] * np.eye(len(masks))
    found: Floats = np.linalg.solve(covariance, towards[:, :, None])[:, :, 0].astype(float, copy=False)
    return found[:, :q], found[:, q:]


def _ratio(wanted: Floats, have: Floats) -> Floats:
    return np.divide(wanted, have, out=np.zeros_like(have), where=have > _TINY)
