"""Pairs of cells that reports support together: fakes that name the same cells stand out, honest noise does not.

For a report of a value v let g = x_i x_j - k (x_i + x_j), with x the support of cells i and j. With
k = (P(own and other) - P(two others)) / (p - q) its mean does not depend on v at all, so the mean over a wave is known
whatever people's values are.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.laws.hashing import PRIME
from ahead_ldp.oracles import OLH, SupportOracle, Tally
from ahead_ldp.oracles.unary import UnaryOracle
from ahead_ldp.schema.arrays import Bytes, Floats, Ints
from ahead_ldp.service.screening.deviates import largest_of, unskewed, wilson_hilferty

MOST_CELLS = 1024
FEWEST = 200
_ROWS = 2048
_FEWEST_PAIRS = 5.0  # expected reports that support both


def pair_screens(oracle: SupportOracle, tally: Tally, sample: Iterable[Bytes]) -> dict[str, float | None]:
    """The furthest pair, and for unary encodings all pairs together, of the 1,024 cells with most support."""
    cells = np.sort(np.argsort(-tally.counts, kind="stable")[:MOST_CELLS])
    both, n = np.zeros((cells.size, cells.size)), 0
    for rows in sample:
        for start in range(0, len(rows), _ROWS):
            bits = support(oracle, rows[start : start + _ROWS], cells)
            both += bits.T @ bits
            n += len(bits)
    if n < FEWEST:
        return {}
    z = pair_deviates(oracle, both / n, n)
    upper = z[np.triu_indices(cells.size, 1)]
    upper = upper[np.isfinite(upper)]
    if not upper.size:
        return {}
    screens: dict[str, float | None] = {"pairs_largest": largest_of(float(np.abs(upper).max()), 2 * upper.size)}
    if isinstance(oracle, UnaryOracle):  # different pairs are uncorrelated
        screens["pairs_together"] = wilson_hilferty(float((upper**2).sum()), upper.size)
    return screens


def support(oracle: SupportOracle, rows: Bytes, cells: Ints) -> NDArray[np.float32]:  # -> (n, cells)
    """Which of the cells each report supports."""
    if isinstance(oracle, OLH):
        a, b, c, y = (column[:, None] for column in oracle.fields(rows))
        h = oracle.law.g * ((((a * cells + b) % PRIME) * cells + c) % PRIME) // PRIME
        return (h == y).astype(np.float32)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    return bits[:, cells].astype(np.float32)


def pair_deviates(oracle: SupportOracle, both: Floats, n: int) -> Floats:  # (cells, cells) -> the same
    """How far each pair's mean of g lies from its known value; NaN where g does not vary or hardly ever happens."""
    q, (own, other) = oracle.q, oracle.pairs
    k = (own - other) / (oracle.p - q)
    single = np.add.outer(np.diag(both), np.diag(both))
    mean, known = both - k * single, other - 2 * k * q
    honest = known + k * single  # how often both would be supported
    weights = np.stack([honest, single - 2 * honest, 1 - single + honest])
    centred = np.array([1 - 2 * k, -k, 0.0])[:, None, None] - known  # g with both, one, none
    variance = (weights * centred**2).sum(axis=0)
    skewness = (weights * centred**3).sum(axis=0) / np.maximum(variance, 1e-12) ** 1.5 / sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (mean - known) * sqrt(n) / np.sqrt(variance)
    usable = (n * honest >= _FEWEST_PAIRS) & (variance > 1e-9)
    return np.where(usable, unskewed(z, skewness), np.nan)
