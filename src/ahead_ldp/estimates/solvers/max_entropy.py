"""The answer to a query on many attributes from answers about pairs (AHEAD App. F, step 3).

A query on q attributes has 2^q in/out cells. Each pair of attributes brings four answers, in/in, in/out, out/in and
out/out, each the sum over a quarter of the cells; together they usually contradict each other. Solved here is one
problem that always has exactly one solution, whatever the order of the pairs:

    minimise  sum_g f(g) log f(g)  +  sum_pairs sum_blocks (f(block) - t(block))^2 / (2 v_pair)
    over      f >= 0,  sum_g f(g) = 1

For v -> 0 it is the paper's maximum-entropy problem where that is feasible, and the nearest feasible answers (least
squares) with maximum entropy where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from ahead_ldp.estimates.solvers.proportional_fitting import proportional_fit
from ahead_ldp.estimates.solvers.slabs import Slabs
from ahead_ldp.schema.arrays import Floats, Ints

MOST_ATTRIBUTES = 16  # of a query: it has 2^q in/out cells
BLOCKS = ((True, True), (True, False), (False, True), (False, False))  # in/in, in/out, out/in, out/out
_CHUNK = 1 << 22  # numbers held at a time (32 MB)
_STEPS = 100  # of Newton's method at most: a guard, it converges quadratically
_TOLERANCE = 1e-10  # of the gradient, a difference of frequencies: far below any noise
_ROUGH_TOLERANCE = 1e-2  # the same on the way to the last S, which only serves as a start
_EASY_CURVATURE = 0.1  # an S with no eigenvalue below this is solved from anywhere
_STRIDE = 10.0  # from one S to the next: Newton's method follows in a few steps
_HALVINGS = 40  # of a step: then it is below rounding
_ARMIJO = 1e-4  # of the promised descent that a step must reach (Nocedal and Wright, Sec. 3.1)
_VARIANCES = (1e-9, 1e6)  # those of answers are kept within, so that the system stays solvable
_ULP = 1e-16  # rounding of a float near 1
_SLACK = 1e-13  # of the dual's value: rounding of a sum over the cells
_TINY = 1e-300  # sums below this are 0


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Frequencies of the all-in cell, and how they move with the pairs' answers."""

    answers: Floats  # (n,)
    by_block: Floats  # (n, pairs, 4) derivative with respect to each answer


@lru_cache(maxsize=32)
def feature_masks(q: int) -> Ints:  # -> (q + pairs,)
    """Sets of attributes as bits: each alone, then each pair. Cell g of the 2^q is in on the attributes of its bits."""
    return np.array([1 << i for i in range(q)] + [1 << i | 1 << j for i, j in combinations(range(q), 2)])


@lru_cache(maxsize=32)
def block_map(q: int) -> tuple[Floats, Floats]:  # -> (pairs, 4, features), (pairs, 4)
    """Each block's frequency as a linear function of the features' means: matrix and constant."""
    pairs = list(combinations(range(q), 2))
    matrix = np.zeros((len(pairs), 4, q + len(pairs)))
    constant = np.tile([0.0, 0.0, 0.0, 1.0], (len(pairs), 1))
    for k, (i, j) in enumerate(pairs):
        matrix[k, :, q + k] = 1.0, -1.0, -1.0, 1.0
        matrix[k, [1, 3], i] = 1.0, -1.0
        matrix[k, [2, 3], j] = 1.0, -1.0
    return matrix, constant


def solve(blocks: Floats, variance: Floats) -> Solution:  # (n, pairs, 4), (pairs,)
    """The unique solution for many queries at once, by Newton's method on the dual."""
    q = attributes_of(blocks.shape[1])
    to_target, soft = least_squares_map(q, variance)
    target = (blocks - block_map(q)[1]).reshape(len(blocks), to_target.shape[1]) @ to_target.T
    step = max(1, _CHUNK // ((1 << q) + soft.size))
    parts = [_solve_block(q, target[i : i + step], soft) for i in range(0, len(target), step)]
    by_target = np.concatenate([part[1] for part in parts]) if parts else np.empty_like(target)
    answers = np.concatenate([part[0] for part in parts]) if parts else np.empty(0)
    return Solution(answers, (by_target @ to_target).reshape(blocks.shape))


def least_squares_map(q: int, variance: Floats) -> tuple[Floats, Floats]:
    """The misfit is a quadratic of curvature A around the features' means A^-1 B^T V^-1 t: that matrix, and A^-1."""
    matrix = block_map(q)[0]
    weight = np.repeat(1 / np.clip(variance, *_VARIANCES), 4)
    rows = matrix.reshape(-1, matrix.shape[2])
    curvature = (rows.T * weight) @ rows
    to_target: Floats = np.linalg.solve(curvature, rows.T * weight).astype(float)
    soft: Floats = np.linalg.inv(curvature).astype(float)
    return to_target, soft


def attributes_of(pairs: int) -> int:
    """q from C(q, 2); more than 16 attributes in one query are refused."""
    q = round((1 + (1 + 8 * pairs) ** 0.5) / 2)
    if q * (q - 1) // 2 != pairs:
        raise AssertionError(f"expected the pairs of some attributes, got {pairs}")
    if q > MOST_ATTRIBUTES:
        raise ValueError(f"expected a query to restrict at most {MOST_ATTRIBUTES} attributes, got {q}")
    return q


def _solve_block(q: int, target: Floats, soft: Floats) -> tuple[Floats, Floats]:
    """Minimise log Z(mu) - mu t + mu S mu / 2, whose gradient is E[phi] - t + S mu; f = exp(mu phi) / Z.

    Where the answers contradict each other and S is small, mu is huge: the way there leads over larger S.
    """
    mu, masks = np.zeros_like(target), feature_masks(q)
    for factor in _path(soft):
        mu = _descend(q, mu, target, factor * soft, _TOLERANCE if factor == 1 else _ROUGH_TOLERANCE)
    _, f = _dual(q, mu, target, soft)
    joint, answer = _joint(q, f), f[:, -1]
    towards = answer[:, None] * (1 - joint[:, masks])  # Cov(all in, phi): every feature is 1 in that cell
    return answer, _newton(q, joint, soft, towards)


def _path(soft: Floats) -> Floats:
    """Factors of S from where the problem is easy down to 1."""
    easy = max(1.0, _EASY_CURVATURE / float(np.linalg.eigvalsh(soft)[0]))
    return easy ** np.linspace(1, 0, 1 + int(np.ceil(np.log(easy) / np.log(_STRIDE))))


def _descend(q: int, mu: Floats, target: Floats, soft: Floats, tolerance: float) -> Floats:
    """Newton's method for every query until its gradient, or what a step would gain, is that small."""
    mu, masks = mu.copy(), feature_masks(q)
    left = np.arange(len(target))  # queries that have not converged
    for _ in range(_STEPS):
        here, aim = mu[left], target[left]
        value, f = _dual(q, here, aim, soft)
        joint = _joint(q, f)
        gradient = joint[:, masks] - aim + here @ soft
        move = -_newton(q, joint, soft, gradient)
        slope = (gradient * move).sum(axis=1)
        rounding = _ULP * np.abs(here).max(axis=1)  # exponents are no surer than that
        far = (np.abs(gradient).max(axis=1) > tolerance + rounding) & (-slope > tolerance**2)
        if not far.any():
            break
        left = left[far]
        mu[left] = _line_search(q, here[far], move[far], aim[far], soft, value[far], slope[far])
    return mu


def _line_search(
    q: int, mu: Floats, move: Floats, target: Floats, soft: Floats, value: Floats, slope: Floats
) -> Floats:
    """mu after the longest step 1, 1/2, 1/4, ... along each move that descends enough (Armijo)."""
    length = np.ones(len(mu))
    trying = np.arange(len(mu))
    for _ in range(_HALVINGS):
        at = mu[trying] + length[trying, None] * move[trying]
        reached = _dual(q, at, target[trying], soft)[0]
        enough = value[trying] + _ARMIJO * length[trying] * slope[trying] + _SLACK * (1 + np.abs(value[trying]))
        trying = trying[reached > enough]
        if trying.size == 0:
            break
        length[trying] *= 0.5
    return mu + length[:, None] * move


def _dual(q: int, mu: Floats, target: Floats, soft: Floats) -> tuple[Floats, Floats]:
    exponent = np.zeros((len(mu), 1 << q))
    exponent[:, feature_masks(q)] = mu
    for i in range(q):  # from the features themselves to the sum over all features of a cell
        halves = exponent.reshape(len(mu), -1, 2, 1 << i)
        halves[:, :, 1] += halves[:, :, 0]
    top = exponent.max(axis=1, keepdims=True)
    weight = np.exp(exponent - top)
    z = weight.sum(axis=1, keepdims=True)
    value = (top + np.log(z))[:, 0] - (mu * target).sum(axis=1) + ((mu @ soft) * mu).sum(axis=1) / 2
    return value, weight / z


def _joint(q: int, f: Floats) -> Floats:  # (n, 2^q) -> (n, 2^q)
    """For each set of attributes the frequency of being in on all of them: sums over the sets that contain it."""
    joint = f.copy()
    for i in range(q):
        halves = joint.reshape(len(f), -1, 2, 1 << i)
        halves[:, :, 0] += halves[:, :, 1]
    return joint


def _newton(q: int, joint: Floats, soft: Floats, vector: Floats) -> Floats:
    """(Cov(phi) + S)^-1 vector; the product of two features is that of the union of their attributes."""
    masks = feature_masks(q)
    mean = joint[:, masks]
    hessian = joint[:, masks[:, None] | masks] - mean[:, :, None] * mean[:, None, :] + soft
    return np.asarray(np.linalg.solve(hessian, vector[:, :, None])[:, :, 0], np.float64)


def weighted_update(blocks: Floats, sweeps: int = 1000, tolerance: float = 1e-5) -> Floats:  # (n, pairs, 4) -> (n,)
    """The paper's faster way: scale the cells to each block's answer in turn, from uniform (YLWLS20).

    Unlike ``solve`` its result depends on the order of the pairs when they contradict each other. It stops after
    ``sweeps`` rounds, or when no query's cells move by more than ``tolerance`` in all.
    """
    shape = (2,) * attributes_of(blocks.shape[1])
    mass = np.maximum(blocks, 0.0).reshape(*blocks.shape[:2], 2, 2)  # index 0 is inside
    pairs = combinations(range(len(shape)), 2)
    constraints = [(Slabs.kept(shape, pair), mass[:, k]) for k, pair in enumerate(pairs)]
    start = np.full((len(blocks), *shape), 0.5 ** len(shape))
    cells = proportional_fit(start, constraints, sweeps, tolerance, normalised=False).reshape(len(blocks), -1)
    return np.asarray(cells[:, 0] / np.maximum(cells.sum(axis=1), _TINY))
