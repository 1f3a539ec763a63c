"""Heaps on a smooth density: places that hold far more people than their neighbours, such as round numbers.

A place is what lies between neighbouring borders of the cells that were asked about, at best a single code. A heap is
one more coefficient of the density's logarithm, there alone. Heaps are added where the residuals of the smooth fit ask
for one (a score test), a few at a time, and each pays for having been chosen among all places.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.inference.cell_estimates import CellData
from ahead_ldp.inference.log_linear import LogLinear, fit

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_STANDS_OUT = 4.0  # standard deviations; some 250 places are looked at
_TIMES = 2.0  # what the smooth density has there, at least
_MOST = 24
_LEAST = 1e-12  # share that a place is taken to have
_ROUNDS = 6
_AT_ONCE = 0.5  # of the highest score: lower ones may be due to the highest, which the smooth density tries to follow
_NEAR = 2  # places on either side in which only the highest counts


def with_heaps(data: CellData, smooth: LogLinear) -> LogLinear | None:
    """The law with a coefficient for every heap besides the smooth one's; None where nothing stands out."""
    law, heaps = smooth, np.zeros(0, np.int64)
    for _ in range(_ROUNDS):
        share = np.add.reduceat(law.frequencies, data.borders[:-1])
        score, more = _scores(data, law, share)
        new = _highest(np.where((score > _STANDS_OUT) & (more > (_TIMES - 1) * share), score, 0.0), heaps)
        if not new.size:
            break
        heaps = np.concatenate([heaps, new])
        start = np.concatenate([law.mean, np.log1p(more[new] / np.maximum(share[new], _LEAST))])
        law = fit(data, np.hstack([smooth.basis, _columns(data.borders, heaps)]), start, heaps.size)
    if not heaps.size:
        return None
    return replace(law, log_evidence=law.log_evidence - heaps.size * float(np.log(data.borders.size)))


def _scores(data: CellData, law: LogLinear, share: Floats) -> tuple[Floats, Floats]:  # (places,) each
    """How far each place's excess is from 0 in standard deviations, and the excess: to first order.

    The smooth coefficients answer to an excess, so only what they cannot take up counts.
    """
    place = np.arange(share.size)
    inside = ((data.first[:, None] <= place) & (place < data.last[:, None])).astype(float)
    effect = (inside - (inside @ share)[:, None]) * data.root[:, None]  # the others give way in proportion
    taken = law.spread.T @ (data.jacobian(law.basis, law.frequencies).T @ effect)
    information = np.maximum((effect**2).sum(axis=0) - (taken**2).sum(axis=0), 1e-12)
    pull = effect.T @ data.residual(law.frequencies)
    return pull / np.sqrt(information), pull / information


def _highest(score: Floats, taken: Ints) -> Ints:
    """Places with a high score, above that of their neighbours, highest first, as many as may still be added."""
    score[taken] = 0.0
    around = np.lib.stride_tricks.sliding_window_view(np.pad(score, _NEAR), 2 * _NEAR + 1).max(axis=1)
    found = np.flatnonzero((score > _AT_ONCE * score.max()) & (score >= around))
    return found[np.argsort(-score[found], kind="stable")][: _MOST - taken.size]


def _columns(borders: Ints, heaps: Ints) -> Floats:  # -> (d, heaps)
    code = np.arange(int(borders[-1]))[:, None]
    return ((borders[heaps] <= code) & (code < borders[heaps + 1])).astype(float)
