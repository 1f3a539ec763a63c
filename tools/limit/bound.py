"""A lower bound of the error of ranges that every epsilon-LDP protocol obeys: van Trees' inequality.

docs/derivations/limit.md derives each step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tools.limit.classes import Class

Floats = NDArray[np.float64]

WIDTHS = (3.0, 10.0, 30.0, 1e9)  # variances of a piece of the class, over those that are left at the end
PIECES = 12  # of the class that the bound is averaged over
DRAWS = 16  # members of each
_STEPS = 60  # of the search for the least favourable information, at most
_STILL = 1e-4  # of its largest entry: a smaller change ends the search
_LEAST = 1e-9  # tolerance: of the largest eigenvalue of an information, so that it can be inverted


def all_information(epsilon: float) -> float:
    """The most that one report can tell about all directions together, where a person's value tells 1 about each."""
    return float(np.sinh(epsilon / 2) ** 2)  # L2


def one_information(epsilon: float) -> float:
    """The most that one report can tell about a single direction."""
    return float(np.tanh(epsilon / 2) ** 2)  # L3


def most_told(told: Floats, n: float, epsilon: float) -> float:
    """The most of tr(W M) over informations M of n reports, from the eigenvalues of W."""
    total, one = n * all_information(epsilon), n * one_information(epsilon)
    shares = np.clip(total - one * np.arange(told.size), 0.0, one)
    return float(np.sort(told)[::-1] @ shares)  # L4


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of a class as the inequality sees it, averaged over its members."""

    moved: Floats  # (queries, k) how the answers move with the coefficients, in the mean
    told: Floats  # (members, k, k) what a person's value tells about them
    prior: Floats  # (k, k) what the prior tells

    @classmethod
    def of(cls, members: Class, ends: Floats, rng: Generator, draws: int = DRAWS) -> Part:  # (queries, 2)
        """From some members, drawn in pairs that lie opposite each other."""
        half = members.draw(rng, draws // 2) - members.centre
        density = members.density(members.centre + np.concatenate([half, -half]))  # (members, d)
        score = members.basis - (density @ members.basis)[:, None]  # L1
        moves = density[..., None] * score
        told = score.transpose(0, 2, 1) @ moves
        return cls(answers(moves.mean(axis=0), ends), told, np.diag(members.spread**-2.0))

    def posterior(self, n: float, epsilon: float) -> Floats:  # -> (k, k)
        """The covariance that is left of the coefficients, were the worst information the best possible."""
        scale, s, j = self._scaled()
        total, one = n * all_information(epsilon), n * one_information(epsilon)
        return scale @ np.linalg.inv(least_favourable(s, j, total, one) + j) @ scale

    def _scaled(self) -> tuple[Floats, Floats, Floats]:
        """Coordinates in which a person's value tells 1 about each; queries and prior in them."""
        queries, scale = self.moved.T @ self.moved / len(self.moved), _power(self.told.mean(axis=0), -0.5)
        return scale, scale @ queries @ scale, scale @ self.prior @ scale

    def bound(self, n: float, epsilon: float) -> float:
        """The least mean squared error of the answers, from n reports."""
        queries, inverse = self.moved.T @ self.moved / len(self.moved), self.posterior(n, epsilon)
        weights = inverse @ queries @ inverse  # L6
        told = np.mean([most_told(values, n, epsilon) for values in _eigenvalues(self.told, weights)])
        return float(np.trace(inverse @ queries) ** 2 / (told + np.trace(weights @ self.prior)))  # L5


def least_favourable(s: Floats, j: Floats, total: float, one: float) -> Floats:  # (k, k), (k, k) -> (k, k)
    """The information M for which tr(s (M + j)^-1) is least, nearly: of trace ``total``, at most ``one`` anywhere."""
    m = np.eye(len(s)) * min(total / len(s), one)
    for _ in range(_STEPS):
        inverse, root = np.linalg.inv(m + j), _power(m, 0.5)
        gradient = root @ inverse @ s @ inverse @ root
        values, vectors = np.linalg.eigh(root @ gradient @ root)  # L7
        before, m = m, (vectors * _filled(np.sqrt(np.maximum(values, 0.0)), total, one)) @ vectors.T
        if np.abs(m - before).max() <= _STILL * np.abs(m).max():
            break
    return m


def _filled(parts: Floats, total: float, one: float) -> Floats:
    """In proportion to the parts, of sum ``total`` if possible, and none above ``one``."""
    filled = np.full(parts.size, one)
    free = np.ones(parts.size, bool)
    while free.any():
        filled[free] = parts[free] * (total - one * (~free).sum()) / max(parts[free].sum(), 1e-300)
        over = free & (filled > one)
        if not over.any():
            break
        filled[over], free = one, free & ~over
    return np.maximum(filled, 1e-12 * total)


def van_trees(members: Class, ends: Floats, n: float, epsilon: float, pieces: int = PIECES) -> float:
    """The bound: the best over how wide the pieces are that somebody is told about, in the mean over pieces."""
    left = np.diag(at_centre(members, ends).posterior(n, epsilon))
    widths = (np.minimum(members.spread, np.sqrt(width * left)) for width in WIDTHS)
    return max(_pieces(members, spread, ends, n, epsilon, pieces) for spread in widths)  # L8


def _pieces(members: Class, spread: Floats, ends: Floats, n: float, epsilon: float, pieces: int) -> float:
    """The mean over pieces of the class with this spread."""
    rng = np.random.default_rng(0)
    half = rng.standard_normal((pieces // 2, spread.size))
    parts = (Part.of(members.part(spread, away), ends, rng) for away in np.concatenate([half, -half]))
    return float(np.mean([part.bound(n, epsilon) for part in parts]))


def at_centre(members: Class, ends: Floats) -> Part:
    """The class as it is at its centre, to first order."""
    still = replace(members, spread=np.full_like(members.spread, 1e-9))
    here = Part.of(still, ends, np.random.default_rng(0), 2)
    return replace(here, prior=np.diag(members.spread**-2.0))


def answers(shares: Floats, ends: Floats) -> Floats:  # (d, ...), (queries, 2) -> (queries, ...)
    """Sums over ranges of codes."""
    below = np.concatenate([np.zeros((1, *shares.shape[1:])), np.cumsum(shares, axis=0)])
    at = ends.astype(np.int64)
    return below[at[:, 1]] - below[at[:, 0]]


def _eigenvalues(told: Floats, weights: Floats) -> Floats:  # (members, k, k), (k, k) -> (members, k)
    values, vectors = np.linalg.eigh(told)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
    return np.linalg.eigvalsh(root.transpose(0, 2, 1) @ weights @ root)


def _power(matrix: Floats, power: float) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, _LEAST * max(values[-1], 1e-300)) ** power) @ vectors.T
