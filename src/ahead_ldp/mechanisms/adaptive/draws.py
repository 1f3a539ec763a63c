"""Curves drawn from the posterior law of an adaptive estimate."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.mechanisms.adaptive.bisections import Bisection
from ahead_ldp.mechanisms.adaptive.density import AdaptiveDensity, Fitted, tree_of
from ahead_ldp.mechanisms.adaptive.tree_shrinkage import HEAPED, Shrunk, doubted, parts
from ahead_ldp.schema.arrays import Floats

_SEED = 2_021  # the same draws for the same tallies
_DOUBT = 0.6  # that what was learned about the nodes of a level holds for each, and for those below
_EITHER = 0.2  # share of the draws for which base measures count alike, whatever their evidence
_MOST, _LEAST, _NUMBERS = 400, 64, 1 << 22  # draws, and numbers held for the codes of all of them


@one_thread
def draw_curves(fitted: AdaptiveDensity) -> Floats:  # -> (size + 1, draws)
    """The share below every code in draws of the posterior: base measures by their weight, then departures from them.

    The smooth base measure comes with its own uncertainty, to first order; what the estimates say about departures
    answers to it.
    Where the halves of a node were not looked at, they depart by the prior that the levels above have learned. That
    prior is doubted: reports cannot rule out heaps on scales that they do not resolve.
    """
    rng = np.random.default_rng(_SEED)
    count = int(np.clip(_NUMBERS // fitted.axis.size, _LEAST, _MOST))
    shares = np.array([fit.weight for fit in fitted.fits])
    shares = (1 - _EITHER) * shares + _EITHER / shares.size
    counts = np.diff(np.floor(np.cumsum(shares) * count + 0.5).astype(np.int64), prepend=0)
    chosen = zip(fitted.fits, counts.tolist(), strict=True)
    return np.concatenate([_draw(fitted, fit, c, rng) for fit, c in chosen if c], axis=1)


def _draw(fitted: AdaptiveDensity, fit: Fitted, count: int, rng: Generator) -> Floats:  # -> (size + 1, count)
    away = np.zeros((fit.base.size, count))
    if fit.smooth is not None:
        spread = fit.smooth.cumulative_spread
        ordered = spread.shape[0]
        away[:ordered] = fit.base[ordered - 1] * (spread @ rng.standard_normal((spread.shape[1], count)))
    if fit.shrunk is None:
        return fit.base[:, None] + away
    tree = tree_of(fitted.axis, fit.shrunk.departures.data.borders, fit.base, inside=True)
    return _descend(doubted(fit.shrunk, fit.base, _DOUBT, HEAPED), tree, fit.base, away, rng)


def _descend(
    shrunk: Shrunk, tree: Bisection, base: Floats, away: Floats, rng: Generator
) -> Floats:  # (d + 1,), (d + 1, draws)
    """Departures drawn from the root down; ``away`` is how far off the base measure itself may be."""
    departures, count, root = shrunk.departures, away.shape[1], shrunk.root
    moved = _between(tree, base, away)
    moved[tree.known] += shrunk.mean[:, None] + root.T @ rng.standard_normal((shrunk.mean.size, count))
    if away.any():
        moved[tree.known] -= root.T @ (root @ departures.pull(away))
    curve, share = np.zeros_like(away), tree.shares(base)[:, None]
    curve[-1] = 1.0
    for number, level in enumerate(tree.levels):
        lo, mid, hi, looked = tree.lo[level], tree.mid[level], tree.hi[level], tree.known[level]
        mass, half, moves = curve[hi] - curve[lo], share[level], moved[level]
        prior = shrunk.weights[min(number, len(shrunk.weights) - 1)]
        moves[~looked] += _prior(mass[~looked], half[~looked], prior, rng)
        curve[mid] = curve[lo] + np.clip(half * mass + moves, 0.0, mass)
    return tree.filled(curve, np.broadcast_to(base[:, None], curve.shape))


def _between(tree: Bisection, base: Floats, curves: Floats) -> Floats:  # (d + 1,), (d + 1, draws) -> (nodes, draws)
    """How far the left halves depart from the base measure's shares on some curves."""
    lo, mid, hi = curves[tree.lo], curves[tree.mid], curves[tree.hi]
    found: Floats = mid - lo - tree.shares(base)[:, None] * (hi - lo)
    return found


def _prior(mass: Floats, share: Floats, weights: Floats, rng: Generator) -> Floats:  # (k, draws) -> (k, draws)
    """Departures of the left halves that nobody was asked about."""
    part = np.searchsorted(np.cumsum(weights)[:-1], rng.random(mass.shape))
    centre, width = parts(mass, share, part)
    found: Floats = centre + np.sqrt(width) * rng.standard_normal(mass.shape)
    return found
