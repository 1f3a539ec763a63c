"""Standard errors of answers that are linear in the groups' raw estimates, and of the density assumed inside cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ahead_ldp.estimates.measurements import Measurement
from ahead_ldp.mechanisms.ahead.averaging import Averaged
from ahead_ldp.partitions.covers import overlap
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.schema.arrays import Floats, Ints

_EVENNESS = 3.0  # the weight k of an even density in a cell, against what its people do (decision 005)
_LIKENESS = 0.1  # correlation between cells that one side of a box on several attributes cuts (decision 005)
# Of the variance of an estimate that Norm-Sub set to 0: its error is on one side (decision 003).
_CLIPPED_VARIANCE = 0.5
_TINY = 1e-300  # sums below this are 0


def linear_variance(averaged: Averaged, weights: Floats) -> Floats:  # (k, nodes) -> (k,)
    """Variance of ``weights @ values`` about the frequencies among the people who took part.

    Exact for the linear part of the pipeline, given the tree: the oracles' noise with its covariance between
    cells, and the chance of who fell into which group. Norm-Sub takes the same off all cells that it does not set to 0,
    so a common shift of a question's estimates does not count; the tree is taken as given. Nodes that were filled
    carry their parent's noise alone; where nobody was asked, nothing varies and it is 0.
    """
    people, f = _people(averaged), np.maximum(averaged.values, 0.0)
    variance, everyone = np.zeros(len(weights)), np.zeros_like(weights)
    for m, a, cell_f in _parts(averaged, weights):
        variance += m.oracle.group_variance(m.n, cell_f, a)
        everyone[:, m.nodes] += a
    phi, leaf_f = _on_leaves(averaged.tree, everyone, f)
    variance -= ((phi**2) @ leaf_f - (phi @ leaf_f) ** 2) / people  # groups share out the participants
    return np.maximum(variance, 0.0)


def linear_covariance(averaged: Averaged, weights: Floats) -> Floats:  # (k, nodes) -> (k, k)
    """Covariances of ``weights @ values``; the diagonal is ``linear_variance``."""
    people, f = _people(averaged), np.maximum(averaged.values, 0.0)
    covariance, everyone = np.zeros((len(weights), len(weights))), np.zeros_like(weights)
    for m, a, cell_f in _parts(averaged, weights):
        o, total, mean = m.oracle.moments, a.sum(axis=1), a @ cell_f
        lift = o.cross_own - o.cross
        own = cell_f * o.own + (1 - cell_f) * o.other - o.cross - 2 * lift * cell_f
        crossed = np.outer(total, mean)
        covariance += ((a * own) @ a.T + o.cross * np.outer(total, total) + lift * (crossed + crossed.T)) / m.n
        covariance += ((a * cell_f) @ a.T - np.outer(mean, mean)) / m.n
        everyone[:, m.nodes] += a
    phi, leaf_f = _on_leaves(averaged.tree, everyone, f)
    mean = phi @ leaf_f
    return covariance - ((phi * leaf_f) @ phi.T - np.outer(mean, mean)) / people


def _people(averaged: Averaged) -> int:
    return max(sum(m.n for m in averaged.measurements), 1)


def _parts(averaged: Averaged, weights: Floats) -> Iterator[tuple[Measurement, Floats, Floats]]:
    """Each measurement with the weights of its estimates (k, cells) and the frequencies of its cells."""
    g, f = averaged.coefficients(weights), np.maximum(averaged.values, 0.0)
    for m in averaged.measurements:
        if m.n == 0:
            continue
        a = g[:, m.nodes] * np.divide(m.precision, averaged.own_precision[m.nodes])
        if m.projected:
            kept = m.estimate > 0
            a = (a - a[:, kept].mean(axis=1, keepdims=True)) * np.where(kept, 1.0, np.sqrt(_CLIPPED_VARIANCE))
        yield m, a, f[m.nodes] / max(f[m.nodes].sum(), _TINY)


def _on_leaves(tree: Tree, g: Floats, f: Floats) -> tuple[Floats, Floats]:
    """What a person in each leaf adds through all measurements together, and the leaves' frequencies."""
    total = g.copy()
    for level in list(tree.levels())[1:]:
        total[:, level] += total[:, tree.parent[level]]
    return total[:, tree.leaves], f[tree.leaves] / max(f[tree.leaves].sum(), _TINY)


# Inside cells.


def cell_masses(averaged: Averaged, nodes: Ints) -> Floats:  # (nodes,) -> (nodes,)
    """How much there may be in some nodes: their frequency, or their standard deviation where that is more."""
    with np.errstate(divide="ignore"):
        deviation = np.minimum(1 / np.sqrt(averaged.precision[nodes]), 1.0)
    return np.maximum(averaged.values[nodes], deviation)


def uneven_variance(tree: Tree, nodes: Ints, masses: Floats, boxes: Floats) -> Floats:  # (k, m, 2) -> (k,)
    """How far the even density inside cells may be off, as a variance: a (1 - a) mass^2 / (k + 1) for each cut cell.

    The share of a cell's people inside a box that takes the part a of it is given a Beta law with mean a and weight
    k = 3. Cells of one attribute are independent; a side of a box on several cuts a row of cells, whose people may lie
    alike.
    """
    a = overlap(tree, boxes)[:, nodes]
    return _together(a * (1 - a), masses, boxes.shape[1])


def _together(parts: Floats, masses: Floats, attributes: int) -> Floats:  # (k, nodes), (nodes,) -> (k,)
    """The variance of sums over cells with these variances in units of their squared masses."""
    variance = parts @ masses**2
    if attributes > 1:
        variance = (1 - _LIKENESS) * variance + _LIKENESS * (np.sqrt(parts) @ masses) ** 2
    return np.asarray(variance / (_EVENNESS + 1))


def uneven_functional(
    tree: Tree, nodes: Ints, masses: Floats, parts: Sequence[Sequence[Floats]], weights: Floats
) -> Floats:  # parts of boxes (k, m, 2), (k, parts) -> (k,)
    """The same for weighted sums over parts of the domain that are apart from one another."""
    mean, square = np.zeros((len(weights), nodes.size)), np.zeros((len(weights), nodes.size))
    for boxes, weight in zip(parts, weights.T, strict=True):
        for box in boxes if weight.any() else ():
            share = overlap(tree, box)[:, nodes]
            mean += weight[:, None] * share
            square += (weight**2)[:, None] * share
    return _together(np.maximum(square - mean**2, 0.0), masses, len(tree.axes))


def uneven_covariances(
    tree: Tree, nodes: Ints, masses: Floats, boxes: Floats
) -> Iterator[tuple[Ints, Floats]]:  # (k, m, 2) -> (rows,), (rows, rows)
    """For each cell that some boxes cut: these boxes, and what evenness adds to the covariance of their answers.

    Two boxes that take the parts a and b of a cell, and c of it together, have (c - a b) mass^2 / (k + 1). Cells are
    taken as independent.
    """
    share = overlap(tree, boxes)[:, nodes]
    cut = (share > 0) & (share < 1)  # (boxes, cells)
    for i in np.flatnonzero(cut.any(axis=0)):
        rows, node = np.flatnonzero(cut[:, i]), nodes[i]
        both = np.ones((rows.size, rows.size))
        for axis in range(boxes.shape[1]):
            lo = np.maximum(boxes[rows, axis, 0], tree.lo[node, axis])
            hi = np.minimum(boxes[rows, axis, 1], tree.hi[node, axis])
            inside = np.minimum(hi[:, None], hi) - np.maximum(lo[:, None], lo)
            both *= np.maximum(inside, 0.0) / (tree.hi[node, axis] - tree.lo[node, axis])
        yield rows, (both - np.outer(share[rows, i], share[rows, i])) * masses[i] ** 2 / (_EVENNESS + 1)
