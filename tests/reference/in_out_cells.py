"""The 2^q cells inside and outside a query's ranges: sums over blocks, the problem itself, proportional fitting."""

from itertools import combinations, product
from math import log

import numpy as np

Cell = tuple[bool, ...]
SIDES = [(True, True), (True, False), (False, True), (False, False)]


def cells(q: int) -> list[Cell]:
    """All of them, the one inside everywhere first."""
    return list(product([True, False], repeat=q))


def block_cells(q: int) -> list[list[list[int]]]:
    """For each pair, for in/in, in/out, out/in and out/out, which cells."""
    return [
        [[k for k, cell in enumerate(cells(q)) if (cell[i], cell[j]) == side] for side in SIDES]
        for i, j in combinations(range(q), 2)
    ]


def block_sums(f: np.ndarray, q: int) -> np.ndarray:
    """(pairs, 4) of a distribution over the cells."""
    return np.array([[sum(f[k] for k in block) for block in pair] for pair in block_cells(q)])


def objective(f: np.ndarray, blocks: np.ndarray, variance: np.ndarray, q: int) -> float:
    """Negative entropy plus misfit."""
    misfit = ((block_sums(f, q) - blocks) ** 2 / (2 * variance[:, None])).sum()
    return sum(x * log(x) for x in f if x > 0) + misfit


def generic_minimum(blocks: np.ndarray, variance: np.ndarray, q: int) -> np.ndarray:
    """The problem as it stands, handed to a general solver: 2^q frequencies >= 0 that sum to 1."""
    from scipy.optimize import Bounds, LinearConstraint, minimize

    sums = np.zeros((len(blocks), 4, 1 << q))
    for p, pair in enumerate(block_cells(q)):
        for b, block in enumerate(pair):
            sums[p, b, block] = 1.0
    rows, weight = sums.reshape(-1, 1 << q), np.repeat(1 / variance, 4)

    def value(f: np.ndarray) -> float:
        return float((f * np.log(f)).sum() + (weight * (rows @ f - blocks.reshape(-1)) ** 2).sum() / 2)

    def gradient(f: np.ndarray) -> np.ndarray:
        return np.log(f) + 1 + rows.T @ (weight * (rows @ f - blocks.reshape(-1)))

    def hessian(f: np.ndarray) -> np.ndarray:
        return np.diag(1 / f) + (rows.T * weight) @ rows

    found = minimize(
        value,
        np.full(1 << q, 1 / (1 << q)),
        jac=gradient,
        hess=hessian,
        method="trust-constr",
        bounds=Bounds(0.0, 1.0, keep_feasible=True),
        constraints=[LinearConstraint(np.ones(1 << q), 1.0, 1.0)],
        options={"gtol": 1e-12, "xtol": 1e-15, "barrier_tol": 1e-15, "maxiter": 800},
    )
    return found.x


def proportional_fit(blocks: np.ndarray, q: int, sweeps: int = 20_000) -> np.ndarray:
    """From uniform, one block after the other, until nothing moves: maximum entropy where the blocks are feasible."""
    f = np.full(1 << q, 1 / (1 << q))
    for _ in range(sweeps):
        before = f.copy()
        for pair, targets in zip(block_cells(q), blocks, strict=True):
            for block, target in zip(pair, targets, strict=True):
                f[block] *= target / f[block].sum()
        if np.abs(f - before).max() < 1e-15:
            break
    return f
