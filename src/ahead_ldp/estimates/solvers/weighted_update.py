"""Weighted update of many queries at once, and how answers move with what tables were fitted to.

YLWLS20 uses weighted update twice: to put a pair's three grids together (``proportional_fit``), and to answer queries
on more than two attributes from the answers of their pairs (here). Both tend to the table of greatest entropy with the
given sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ahead_ldp.estimates.solvers.proportional_fitting import Constraint
from ahead_ldp.schema.arrays import Floats

_ATTRIBUTES = 16  # at most: a query on q attributes has 2**q cells
_CHUNK = 1 << 20  # cells of all queries held at a time (8 MB)
_LARGEST_ANSWER = 1 - 1e-9  # answers are at most this: the complement of one that is 1 could not be scaled
_RIDGE = 1e-10  # relative to the largest entry: constraints repeat one another
_FLOOR = 1e-4  # share of even mass in derivatives: cells that Norm-Sub set to 0 are uncertain, not known to be empty


def fit_derivatives(
    table: Floats, constraints: Sequence[Constraint], weights: Floats
) -> list[Floats]:  # (k, cells...) -> (constraints) of (k, slabs...)
    """How ``weights . table`` moves with each target, to first order.

    At greatest entropy the answer's derivative by the targets is the regression of the weights on the slabs'
    indicators, with the table itself as the measure.
    """
    from scipy import sparse

    k, cells = len(weights), table.size
    firsts = np.cumsum([0, *(target.size for _, target in constraints)])
    rows = np.concatenate([slabs.labels.reshape(-1) + f for (slabs, _), f in zip(constraints, firsts, strict=False)])
    columns = np.tile(np.arange(cells), len(constraints))
    indicators = sparse.csr_matrix((np.ones(rows.size), (rows, columns)), shape=(firsts[-1], cells))
    mass = (1 - _FLOOR) * table.reshape(-1) + _FLOOR / cells
    gram = (indicators @ sparse.diags(mass) @ indicators.T).toarray()
    right = indicators @ (weights.reshape(k, cells) * mass).T  # (targets, k)
    split = np.split(_least_squares(gram, right).T, firsts[1:-1], axis=1)
    return [part.reshape(k, *target.shape) for part, (_, target) in zip(split, constraints, strict=True)]


def in_out_cells(
    pair_answers: Floats, q: int, sweeps: int = 100, tolerance: float = 1e-6, *, complement: bool = False
) -> Floats:  # (queries, pairs) -> (queries, 2**q)
    """The weight of all 2**q combinations of inside and outside; cell 0 is inside on every attribute.

    As published (YLWLS20): one constraint for each pair, the block inside on both, renormalised
    after each; so the distance to an answer a falls by a factor a in each sweep. With ``complement`` the rest is
    scaled to 1 - a in the same step, which has the same fixed point and needs fewer sweeps. Each query ends on its
    own, when a sweep changes less than the tolerance in all.
    """
    queries, pairs = len(pair_answers), list(combinations(range(q), 2))
    if not 2 <= q <= _ATTRIBUTES:
        raise ValueError(f"expected queries on 2 to {_ATTRIBUTES} restricted attributes, got {q}")
    if pair_answers.shape != (queries, len(pairs)):
        raise ValueError(f"expected answers of {len(pairs)} pairs for each query, got shape {pair_answers.shape}")
    cells = np.empty((queries, 2**q))
    step = max(1, _CHUNK >> q)
    for start in range(0, queries, step):
        part = np.clip(pair_answers[start : start + step].T, 0.0, _LARGEST_ANSWER)
        cells[start : start + step] = _in_out(part, q, pairs, sweeps, tolerance, complement).T
    return cells


def _in_out(
    answers: Floats, q: int, pairs: list[tuple[int, int]], sweeps: int, tolerance: float, complement: bool
) -> Floats:  # (pairs, queries) -> (2**q, queries)
    blocks = [tuple(0 if axis in pair else slice(None) for axis in range(q)) for pair in pairs]
    inner = tuple(range(q - 2))
    done = np.full((2**q, answers.shape[1]), 0.5**q)
    active = np.arange(answers.shape[1])
    cells = done.reshape((2,) * q + (-1,)).copy()
    for _ in range(sweeps):
        before = cells.copy()
        total = np.ones(active.size)  # of the cells, which are normalised once in a sweep
        for block, a in zip(blocks, answers, strict=True):
            inside = cells[block]
            s = np.add.reduce(inside, axis=inner)
            rest = total - s
            if complement:  # the same ratio as scaling the rest to 1 - a
                target = np.where(rest > 0, a * rest / (1 - a), s)
            else:
                target = a * total
            some = s > 0
            inside *= np.divide(target, s, out=np.ones_like(s), where=some)
            total = np.where(some, rest + target, total)
        cells /= np.where(total > 0, total, 1.0)
        moved = np.abs(cells - before).reshape(2**q, -1).sum(axis=0) >= tolerance
        done[:, active] = cells.reshape(2**q, -1)
        if not moved.any():
            break
        if not moved.all():
            active, answers, cells = active[moved], answers[:, moved], np.ascontiguousarray(cells[..., moved])
    return done


def cell_derivatives(cells: Floats, columns: Floats) -> Floats:  # (k, cells), (columns, cells) -> (k, columns)
    """How cell 0 moves with the mass of each column, to first order: the regression of its indicator on theirs.

    ``columns`` are indicators of cells whose masses were given; the sum of all cells is given too and must be
    among them.
    """
    mass = (1 - _FLOOR) * cells + _FLOOR / cells.shape[1]
    gram = (mass[:, None, :] * columns) @ columns.T
    right = mass[:, :1] * columns[:, 0]
    return _least_squares(gram, right[..., None])[..., 0]


def _least_squares(gram: Floats, right: Floats) -> Floats:
    """Solutions of normal equations that may be singular: constraints repeat one another, so a trace of ridge."""
    ridge = _RIDGE * np.einsum("...ii->...i", gram).max(axis=-1)[..., None, None]
    return np.linalg.solve(gram + ridge * np.eye(gram.shape[-1]), right)


def pair_columns(q: int) -> Floats:  # -> (1 + pairs, 2**q)
    """Indicators for ``cell_derivatives``: everything, then inside on both attributes of each pair."""
    return subset_columns(q, [(), *combinations(range(q), 2)])


def subset_columns(q: int, subsets: Sequence[Sequence[int]]) -> Floats:  # -> (subsets, 2**q)
    """For each subset of the attributes, the indicator of the cells that are inside on all of them."""
    inside = np.indices((2,) * q).reshape(q, -1) == 0
    return np.array([inside[list(s)].all(axis=0) for s in subsets], dtype=np.float64)
