"""Sampling of tallies and groups with one call after the other, as the fast forms draw: slow and obvious."""

import numpy as np
from numpy.random import Generator

from ahead_ldp.oracles.ss import SS


def subset_tally(oracle: SS, histogram: np.ndarray, rng: Generator) -> np.ndarray:
    """How often each cell is chosen: cell after cell, the people by how many cells they still want."""
    d, w = oracle.d, oracle.law.w
    owners = rng.binomial(histogram, (oracle.p * d - w) / (d - w) if d > w else 0.0)
    ahead, free = ([0] * (w + 1) for _ in range(2))  # people who want r more cells; their own cell is ahead, or not
    ahead[w - 1], free[w] = int(owners.sum()), int(histogram.sum() - owners.sum())
    counts = owners.copy()
    for cell in range(d):
        arrived = [0] * (w + 1)
        if owners[cell]:
            arrived = rng.multivariate_hypergeometric(ahead, owners[cell], method="marginals").tolist()
        ahead = [a - b for a, b in zip(ahead, arrived, strict=True)]
        for people, left in ((ahead, d - cell - 1), (free, d - cell)):
            taken = [rng.binomial(n, min(r / left, 1.0)) if n else 0 for r, n in enumerate(people)]
            counts[cell] += sum(taken)
            people[:] = [n - taken[r] + (taken[r + 1] if r < w else 0) for r, n in enumerate(people)]
        free = [a + b for a, b in zip(free, arrived, strict=True)]
    return counts


def groups_drawn(ends: np.ndarray, count: int, rng: Generator) -> np.ndarray:
    """The group of each uniform number, by the shares up to the end of every group."""
    return np.array([sum(u >= end for end in ends[:-1]) for u in rng.random(count)], dtype=int)
