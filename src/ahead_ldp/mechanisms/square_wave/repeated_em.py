"""Expectation maximisation on many square-wave tallies side by side: ``SW.em`` for each row, in one pass of arrays."""

from __future__ import annotations

import numpy as np

from ahead_ldp.oracles import SW
from ahead_ldp.schema.arrays import Floats, Ints


def em_rows(oracle: SW, counts: Ints, *, smooth: bool, tolerance: float, most_steps: int = 10_000) -> Floats:
    """What ``oracle.em`` finds for each row of counts (r, outcomes), as rows of frequencies (r, d)."""
    found = np.full((len(counts), oracle.d), 1 / oracle.d)
    rows = np.flatnonzero(counts.sum(axis=1) > 0)
    f, told = found[rows], counts[rows].astype(float)
    limit = tolerance if smooth else tolerance * oracle.p / oracle.q
    before = np.full(rows.size, -np.inf)
    likely = _outcome_probabilities(oracle, f)
    for _ in range(most_steps):
        if rows.size == 0:
            break
        f = f * _back(oracle, told / likely)
        f /= f.sum(axis=1, keepdims=True)
        if smooth:
            f = _smooth(f)
        likely = _outcome_probabilities(oracle, f)
        now = np.einsum("ro,ro->r", told, np.log(likely))
        going = now - before >= limit
        before = now
        if not going.all():
            found[rows[~going]] = f[~going]
            rows, f, told, likely, before = rows[going], f[going], told[going], likely[going], before[going]
    found[rows] = f
    return found


def _outcome_probabilities(oracle: SW, f: Floats) -> Floats:  # (r, d) -> (r, outcomes)
    near = 2 * oracle.law.b + 1
    sums = np.zeros((len(f), oracle.outcomes + near))
    np.cumsum(f, axis=1, out=sums[:, near : near + oracle.d])
    total = sums[:, near + oracle.d - 1, None]
    sums[:, near + oracle.d :] = total
    return oracle.q * total + (oracle.p - oracle.q) * (sums[:, near:] - sums[:, : oracle.outcomes])


def _back(oracle: SW, x: Floats) -> Floats:  # (r, outcomes) -> (r, d)
    near = 2 * oracle.law.b + 1
    sums = np.zeros((len(x), oracle.outcomes + 1))
    np.cumsum(x, axis=1, out=sums[:, 1:])
    return oracle.q * sums[:, -1:] + (oracle.p - oracle.q) * (sums[:, near:] - sums[:, : oracle.d])


def _smooth(f: Floats) -> Floats:  # (r, d) -> (r, d)
    """Neighbours averaged 1-2-1; at the ends 2-1."""
    smoothed = 2 * f
    smoothed[:, 1:] += f[:, :-1]
    smoothed[:, :-1] += f[:, 1:]
    smoothed[:, 1:-1] /= 4
    smoothed[:, [0, -1]] /= 3
    smoothed /= smoothed.sum(axis=1, keepdims=True)
    return smoothed
