"""Expectation maximisation with the full matrix of the square wave (LWLLS20, Alg. 1)."""

import numpy as np


def square_wave(d: int, b: int, p: float, q: float) -> np.ndarray:  # (d + 2b, d)
    matrix = np.full((d + 2 * b, d), q)
    for v in range(d):
        for o in range(v, v + 2 * b + 1):
            matrix[o, v] = p
    return matrix


def expectation_maximisation(
    matrix: np.ndarray, counts: np.ndarray, limit: float, smooth: bool, most_steps: int = 10_000
) -> tuple[np.ndarray, list[float]]:
    """The frequencies and the log-likelihood after every step."""
    outcomes, d = matrix.shape
    f = [1 / d] * d
    trace: list[float] = []
    for _ in range(most_steps):
        likely = matrix @ np.array(f)
        new = [f[v] * sum(counts[o] * matrix[o, v] / likely[o] for o in range(outcomes)) for v in range(d)]
        f = [x / sum(new) for x in new]
        if smooth:
            new = []
            for v in range(d):
                near = [(2.0, f[v])] + [(1.0, f[u]) for u in (v - 1, v + 1) if 0 <= u < d]
                new.append(sum(w * x for w, x in near) / sum(w for w, _ in near))
            f = [x / sum(new) for x in new]
        trace.append(float(counts @ np.log(matrix @ np.array(f))))
        if len(trace) > 1 and trace[-1] - trace[-2] < limit:
            break
    return np.array(f), trace
