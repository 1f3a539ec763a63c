"""Curves drawn from the posterior law of an adaptive estimate."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.mechanisms.adaptive.bisections import Bisection
from ahead_ldp.mechanisms.adaptive.density import AdaptiveDensity, Fitted, tree_of
from ahead_ldp.mechanisms.adaptive.tree_shrinkage import HEAPED, Shrunk, parts, widened_posterior
from ahead_ldp.schema.arrays import Floats

_SEED = 2_021  # unit: any number; the same draws for the same tallies
_DOUBT = 0.6  # that what was learned about the nodes of a level holds for each, and for those below (decision 011)
_ALIKE_SHARE = 0.2  # of the draws: for them base measures count alike, whatever their evidence (choice A45)
_MOST_DRAWS, _FEWEST_DRAWS = 400, 64  # of curves (choice A45)
_NUMBERS_HELD = 1 << 22  # unit: numbers in memory for the codes of all draws, 32 MB


@one_thread
def draw_curves(fitted: AdaptiveDensity) -> Floats:  # -> (size + 1, draws)
    """The share below every code in draws of the posterior: base measures by their weight, then departures from them.

    The smooth base measure comes with its own uncertainty, to first order; what the estimates say about departures
    answers to it.
    Where the halves of a node were not looked at, they depart by the prior that the levels above have learned. That
    prior is doubted: reports cannot rule out heaps on scales that they do not resolve.
    """
    rng = np.random.default_rng(_SEED)
    count = int(np.clip(_NUMBERS_HELD // fitted.axis.size, _FEWEST_DRAWS, _MOST_DRAWS))
    shares = np.array([fit.drawn for fit in fitted.fits])
    base = np.array([fit.shrunk is not None for fit in fitted.fits])
    if base.any():
        shares[base] = (1 - _ALIKE_SHARE) * shares[base] + _ALIKE_SHARE * shares[base].mean()  # A45
    counts = np.diff(np.floor(np.cumsum(shares) * count + 0.5).astype(np.int64), prepend=0)
    chosen = zip(fitted.fits, counts.tolist(), strict=True)
    return np.concatenate([_draw(fitted, fit, c, rng) for fit, c in chosen if c], axis=1)


def _draw(fitted: AdaptiveDensity, fit: Fitted, count: int, rng: Generator) -> Floats:  # -> (size + 1, count)
    away = np.zeros((fit.base.size, count))
    if fit.smooth is not None:
        spread = fit.smooth.cumulative_spread
        ordered = spread.shape[0]
        away[:ordered] = fit.base[ordered - 1] * (spread @ rng.standard_normal((spread.shape[1], count)))  # A25
    if fit.shapes is not None:
        ordered = fit.base.size - int(fitted.axis.missing)
        drawn = fit.shapes.drawn(ordered - 1, (np.arange(count) + rng.random()) / count)
        away[:ordered] = fit.base[ordered - 1] * drawn - fit.base[:ordered, None]
    if fit.shrunk is None:
        return fit.base[:, None] + away
    tree = tree_of(fitted.axis, fit.shrunk.departures.data.borders, fit.base, inside=True)
    return _descend(widened_posterior(fit.shrunk, fit.base, _DOUBT, HEAPED), tree, fit.base, away, rng)  # A44


def _descend(
    shrunk: Shrunk, tree: Bisection, base: Floats, away: Floats, rng: Generator
) -> Floats:  # (d + 1,), (d + 1, draws)
    """Departures drawn from the root down; ``away`` is how far off the base measure itself may be."""
    departures, count, root = shrunk.departures, away.shape[1], shrunk.root
    share = tree.shares(base)[:, None]
    moved = away[tree.mid] - away[tree.lo] - share * (away[tree.hi] - away[tree.lo])  # A46
    moved[tree.known] += shrunk.mean[:, None] + root.T @ rng.standard_normal((shrunk.mean.size, count))
    if away.any():
        moved[tree.known] -= root.T @ (root @ departures.pull(away))  # A46
    curve = np.zeros_like(away)
    curve[-1] = 1.0
    for number, level in enumerate(tree.levels):
        lo, mid, hi, looked = tree.lo[level], tree.mid[level], tree.hi[level], tree.known[level]
        mass, half, moves = curve[hi] - curve[lo], share[level], moved[level]
        prior = shrunk.weights[min(number, len(shrunk.weights) - 1)]
        moves[~looked] += _prior(mass[~looked], half[~looked], prior, rng)  # A47
        curve[mid] = curve[lo] + np.clip(half * mass + moves, 0.0, mass)
    return tree.filled(curve, np.broadcast_to(base[:, None], curve.shape))


def _prior(mass: Floats, share: Floats, weights: Floats, rng: Generator) -> Floats:  # (k, draws) -> (k, draws)
    """Departures of the left halves that nobody was asked about."""
    part = np.searchsorted(np.cumsum(weights)[:-1], rng.random(mass.shape))
    centre, width = parts(mass, share, part)
    return centre + np.sqrt(width) * rng.standard_normal(mass.shape)
