"""Iterative proportional fitting: tables with given sums, as near to a start as those sums allow.

The result is the table of least relative entropy to the start; to first order it moves with its sums as a weighted
regression says. Grids and marginals use it for a table with the sums of several grids, LLE and the fused method for
the 2^q in/out cells of a query with the answers of its pairs, the fused method also for a pair's table with its two
margins and for a table of several attributes with all its pairs'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from ahead_ldp.estimates.solvers.slabs import Slabs
from ahead_ldp.schema.arrays import Floats

Pair = tuple[int, int]
Constraint = tuple[Slabs, Floats]

_TINY = 1e-300  # sums below this are 0 but for rounding
_CERTAIN = 1e-100  # a sum of products of numbers above this is none of those
_CELL_RIDGE = 1e-9  # the same for in/out cells, relative to the mean variance of an indicator
_RIDGE = 1e-10  # of the systems for derivatives, whose entries sum to about 1: they stay solvable


def proportional_fit(
    start: Floats,
    constraints: Sequence[Constraint],
    sweeps: int = 100,
    tolerance: float = 1e-6,
    *,
    normalised: bool = True,
    misfit: Callable[[Floats], Any] | None = None,
) -> Floats:  # (..., cells...) -> (..., cells...)
    """The table from ``start`` whose slab sums are the given ones, all slabs of a constraint scaled at once.

    The published program (YLWLS20) scales block after block and renormalises after each (``normalised``); the slabs
    of one grid are disjoint, so at the fixed point both are the same table. A slab that sums to 0 stays 0. Ends when
    a sweep changes less than the tolerance in all; or, with ``misfit`` (of the absolute differences of the sums), when
    that was less for every constraint.
    """
    table = start / start.sum() if normalised else start
    for _ in range(sweeps if constraints else 0):
        before, off = table, 0.0
        for slabs, target in constraints:
            sums = slabs.sums(table)
            off = off if misfit is None else max(off, float(misfit(np.abs(sums - target))))
            table = table * slabs.spread(_ratio(target, sums))
            if normalised and (total := table.sum()) <= 0:  # the targets exclude each other
                return before
            table = table / total if normalised else table
        if misfit is None:
            cells = tuple(range(-len(constraints[0][0].shape), 0))
            off = float(np.abs(table - before).sum(axis=cells).max(initial=0.0))
        if off < tolerance:
            break
    return table


def fit_margins(start: Floats, rows: Floats, columns: Floats, sweeps: int = 300, tolerance: float = 1e-11) -> Floats:
    """The table of start's cross-product ratios whose row and column sums are the given ones.

    Stops when the row sums are off by less than the tolerance in all; a line that sums to 0 stays 0.
    """
    return scaled(start, *margin_scales(start, rows, columns, np.ones(columns.size), sweeps, tolerance))


def margin_scales(
    start: Floats, rows: Floats, columns: Floats, guess: Floats, sweeps: int, tolerance: float
) -> tuple[Floats, Floats]:
    """Factors of the rows and columns that bring a table to its margins, from a guess of the columns'."""
    if start.min() > _CERTAIN and min(rows.min(), columns.min()) > _CERTAIN:  # then no sum is 0 but for rounding
        return _positive_scales(start, rows, columns, guess, sweeps, tolerance)
    by_column, sums = guess, start @ guess
    for _ in range(sweeps):
        by_row = _ratio(rows, sums)
        by_column = _ratio(columns, by_row @ start)
        sums = start @ by_column
        if np.abs(by_row * sums - rows).sum() < tolerance:
            break
    return by_row, by_column


def _positive_scales(
    start: Floats, rows: Floats, columns: Floats, guess: Floats, sweeps: int, tolerance: float
) -> tuple[Floats, Floats]:
    """The same where everything is positive, with as few steps in Python as it takes: tables are small."""
    turned, sums = np.ascontiguousarray(start.T), start @ guess
    for _ in range(sweeps):
        by_row = rows / sums
        by_column = columns / (turned @ by_row)
        sums = start @ by_column
        if np.add.reduce(np.abs(by_row * sums - rows)) < tolerance:
            break
    return by_row, by_column


def scaled(start: Floats, by_row: Floats, by_column: Floats) -> Floats:
    """A table with its rows and columns multiplied."""
    return np.asarray(by_row[:, None] * start * by_column)


def margin_system(table: Floats) -> Floats:  # (r, c) -> (r + c, r + c)
    """The matrix that takes relative changes of rows and columns, alpha_i + beta_j, to changes of the sums."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    r = rows.size
    loose = np.concatenate([rows, -columns])  # alpha + t, beta - t is the same change
    system = np.multiply.outer(loose, loose)
    system[:r, r:] += table
    system[r:, :r] += table.T
    system.reshape(-1)[:: len(system) + 1] += np.concatenate([rows, columns]) + _RIDGE
    return system


def fit_pairs(
    masses: Sequence[Floats], tables: Mapping[Pair, Floats], sweeps: int = 30, tolerance: float = 1e-7
) -> Floats:
    """The table over all attributes with these pairs' tables: the pairwise model of greatest entropy.

    It starts from independence. Where the pairs contradict each other, what the last sweep leaves.
    """
    start = reduce(np.multiply.outer, masses)
    constraints = [(Slabs.kept(start.shape, pair), wanted) for pair, wanted in tables.items()]
    sweeps = sweeps if len(masses) > 2 else 1
    table = proportional_fit(start, constraints, sweeps, tolerance, normalised=False, misfit=np.sum)
    return np.asarray(table / max(float(table.sum()), _TINY))


def fit_blocks(
    start: Floats, blocks: Mapping[Pair, Floats], sweeps: int = 20, tolerance: float = 1e-7
) -> Floats:  # (n, 2, ..., 2), pair -> (n, 2, 2); index 0 is inside
    """In/out cells of many queries with the pairs' in/out answers, from the given start, whose scale is free."""
    constraints = [(Slabs.kept(start.shape[1:], pair), wanted) for pair, wanted in blocks.items()]
    return proportional_fit(start, constraints, sweeps, tolerance, normalised=False, misfit=_largest)


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
    covariance += (_CELL_RIDGE * scale)[:, None, None] * np.eye(len(masks))
    slopes = np.asarray(np.linalg.solve(covariance, towards[:, :, None])[:, :, 0], np.float64)
    return slopes[:, :q], slopes[:, q:]


def _ratio(wanted: Floats, have: Floats) -> Floats:
    return np.divide(wanted, have, out=np.zeros_like(have), where=have > _TINY)


def _largest(gaps: Floats) -> float:
    return float(gaps.max(initial=0.0))
