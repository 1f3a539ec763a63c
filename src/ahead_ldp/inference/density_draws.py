"""Densities drawn from the posterior law of an adaptive estimate, from the root of its tree down."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.inference.adaptive_density import AdaptiveDensity, Fitted, base_masses, spread
from ahead_ldp.inference.tree_shrinkage import EVEN, Shrunk, parts

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_SEED = 2_021  # the same draws for the same tallies
_DOUBT = 0.25  # that what was learned on the levels above holds below what was looked at
_MOST, _LEAST, _NUMBERS = 400, 64, 1 << 22  # draws, and numbers held for the nodes of all of them


def draw_densities(fitted: AdaptiveDensity) -> Floats:  # -> (draws, size)
    """Densities of the posterior: base measures by their weight, the smooth one with its own uncertainty, then masses.

    A node's mass falls to its halves by the posterior law given the mass drawn for it; where the halves were not
    looked at, by the prior that the levels above have learned.
    """
    rng = np.random.default_rng(_SEED)
    count = int(np.clip(_NUMBERS // fitted.tree.size, _LEAST, _MOST))
    shares = np.array([fit.weight for fit in fitted.fits])
    counts = np.floor(np.cumsum(shares) * count + 0.5).astype(np.int64)
    counts = np.diff(counts, prepend=0)
    return np.concatenate([_draw(fitted, fit, int(c), rng) for fit, c in zip(fitted.fits, counts, strict=True) if c])


def _draw(fitted: AdaptiveDensity, fit: Fitted, count: int, rng: Generator) -> Floats:  # -> (count, size)
    tree = fitted.tree
    if fit.smooth is None:
        inside: list[Floats | None] = [None] * count
        base = np.tile(fit.shrunk.base[:, None], count)
    else:
        drawn = fit.smooth.draws(count, rng)
        inside = list(drawn)
        base = base_masses(tree, fit.shrunk.upward, drawn.T)
    masses = _descend(fit.shrunk, base, rng)[tree.tree.leaves]
    return np.stack([spread(tree.tree, masses[:, i], inside[i]) for i in range(count)])


def _descend(shrunk: Shrunk, base: Floats, rng: Generator) -> Floats:  # (size, draws) -> (size, draws)
    """Masses of all nodes, drawn from the root down."""
    upward = shrunk.upward
    values = np.zeros_like(base)
    values[0] = 1.0
    for (nodes, left, right), weights in zip(upward.tree.levels, shrunk.weights, strict=True):
        mass, both = values[nodes], base[left] + base[right]
        share = np.divide(base[left], both, out=np.full(both.shape, 0.5), where=both > 0)
        known = upward.known(left, right)
        moved = np.empty(mass.shape)
        moved[~known] = _prior(mass[~known], share[~known], (1 - _DOUBT) * weights + _DOUBT * EVEN, rng)
        if known.any():
            one, two = upward.precision[left[known], None], upward.precision[right[known], None]
            m, b = mass[known], share[known]
            x = one * (upward.value[left[known], None] - b * m) - two * (upward.value[right[known], None] - (1 - b) * m)
            moved[known] = _posterior(m, b, x / (one + two), 1 / (one + two), weights, rng)
        values[left] = np.clip(mass * share + moved, 0.0, mass)
        values[right] = mass - values[left]
    return values


def _prior(mass: Floats, share: Floats, weights: Floats, rng: Generator) -> Floats:  # (k, draws) -> (k, draws)
    """Departures of the left halves that nobody was asked about."""
    part = np.searchsorted(np.cumsum(weights)[:-1], rng.random(mass.shape))
    centre, width = parts(mass, share, part)
    found: Floats = centre + np.sqrt(width) * rng.standard_normal(mass.shape)
    return found


def _posterior(mass: Floats, share: Floats, x: Floats, variance: Floats, weights: Floats, rng: Generator) -> Floats:
    """Departures of the left halves given what was measured of them."""
    every = np.arange(weights.size)
    centre, width = parts(mass[..., None], share[..., None], every)
    x, variance = x[..., None], variance[..., None]
    total = width + variance
    log = -0.5 * (np.log(total) + (x - centre) ** 2 / total)
    told = weights * np.exp(log - log.max(axis=-1, keepdims=True))
    rising = np.cumsum(told, axis=-1)
    part = (rising < rng.random(mass.shape)[..., None] * rising[..., -1:]).sum(axis=-1)
    centre, width = parts(mass, share, part)
    gain = width / (width + variance[..., 0])
    mean = centre + gain * (x[..., 0] - centre)
    found: Floats = mean + np.sqrt(gain * variance[..., 0]) * rng.standard_normal(mass.shape)
    return found
