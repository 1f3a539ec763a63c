"""Heaps on a smooth density: places that hold far more people than their neighbours, such as round numbers.

A place is what lies between neighbouring borders of the cells that were asked about, at best a single code. A heap is
one more coefficient of the density's logarithm, there alone. Heaps are added where the residuals of the smooth fit ask
for one (a score test), a few at a time, and each pays for having been chosen among all places.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ahead_ldp.mechanisms.adaptive.log_linear import LogLinear, Model, fit
from ahead_ldp.mechanisms.adaptive.score_tests import Residuals
from ahead_ldp.schema.arrays import Floats, Ints

_LEAST_SCORE = 4.0  # standard deviations; some 250 places are looked at (decision 011)
_LEAST_RATIO = 2.0  # of the people there to those of the smooth density (decision 011)
_MOST_HEAPS = 24  # that are fitted (decision 011)
_ROUNDS = 6  # of adding some (choice A28)
_SHARE_OF_HIGHEST = 0.5  # scores below may be due to the highest, which the smooth density follows (decision 011)
_NEIGHBOURS = 2  # places on either side in which only the highest counts (choice A28)


def with_heaps(model: Model, smooth: LogLinear) -> tuple[Ints, LogLinear]:
    """The heaps' places, and the law with a coefficient for each besides the smooth ones."""
    law, heaps = smooth, np.zeros(0, np.int64)
    for _ in range(_ROUNDS):
        share = law.frequencies
        score, more = Residuals.of(model.data, law).of_places()
        stands_out = (score > _LEAST_SCORE) & (more > (_LEAST_RATIO - 1) * share)
        new = _highest(np.where(stands_out, score, 0.0), heaps)
        if not new.size:
            break
        heaps, raised = np.concatenate([heaps, new]), share.copy()
        raised[new] += more[new]
        basis = np.hstack([model.basis, columns(share.size, heaps)])
        law = fit(replace(model, basis=basis, own=heaps.size).start(raised / raised.sum()))
    price = heaps.size * float(np.log(model.data.borders.size))  # A29
    return heaps, replace(law, log_evidence=law.log_evidence - price)


def _highest(score: Floats, taken: Ints) -> Ints:
    """Places with a high score, above that of their neighbours, highest first, as many as may still be added."""
    score[taken] = 0.0
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(score, _NEIGHBOURS), 2 * _NEIGHBOURS + 1)
    high = np.flatnonzero((score > _SHARE_OF_HIGHEST * score.max()) & (score >= windows.max(axis=1)))
    return high[np.argsort(-score[high], kind="stable")][: _MOST_HEAPS - taken.size]


def columns(places: int, heaps: Ints) -> Floats:  # -> (places, heaps)
    """A column for each heap, 1 there."""
    return (np.arange(places)[:, None] == heaps).astype(float)
