"""Heaps on a smooth density: places that hold far more people than their neighbours, such as round numbers.

A place is what lies between neighbouring borders of the cells that were asked about, at best a single code. A heap is
one more coefficient of the density's logarithm, there alone. Heaps are added where the residuals of the smooth fit ask
for one (a score test), a few at a time, and each pays for having been chosen among all places.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData
from ahead_ldp.mechanisms.adaptive.log_linear import LogLinear, Model, fit
from ahead_ldp.schema.arrays import Floats, Ints

_STANDS_OUT = 4.0  # standard deviations; some 250 places are looked at
_TIMES = 2.0  # what the smooth density has there, at least
_MOST = 24
_ROUNDS = 6
_AT_ONCE = 0.5  # of the highest score: lower ones may be due to the highest, which the smooth density tries to follow
_NEAR = 2  # places on either side in which only the highest counts


def with_heaps(model: Model, smooth: LogLinear) -> tuple[Ints, LogLinear]:
    """The heaps' places, and the law with a coefficient for each besides the smooth ones."""
    law, heaps = smooth, np.zeros(0, np.int64)
    for _ in range(_ROUNDS):
        share = law.frequencies
        score, more = _scores(model.data, law)
        new = _highest(np.where((score > _STANDS_OUT) & (more > (_TIMES - 1) * share), score, 0.0), heaps)
        if not new.size:
            break
        heaps, raised = np.concatenate([heaps, new]), share.copy()
        raised[new] += more[new]
        basis = np.hstack([model.basis, columns(share.size, heaps)])
        law = fit(replace(model, basis=basis, own=heaps.size).start(raised / raised.sum()))
    return heaps, replace(law, log_evidence=law.log_evidence - heaps.size * float(np.log(model.data.borders.size)))


def _scores(data: CellData, law: LogLinear) -> tuple[Floats, Floats]:  # (places,) each
    """How far each place's excess is from 0 in standard deviations, and the excess: to first order.

    The smooth coefficients answer to an excess, so only what they cannot take up counts.
    """
    mass, residual = data.cells(law.frequencies), data.residual(law.frequencies)
    effect = data.jacobian(law.basis, law.frequencies) @ law.spread
    # A place moves each cell that holds it by 1, and every cell by its share less, since the others give way.
    taken = data.around(effect) - mass @ effect
    information = data.around(data.root - 2 * mass) + mass @ mass - (taken**2).sum(axis=1)
    pull = data.around(residual) - mass @ residual
    information = np.maximum(information, 1e-12)
    return pull / np.sqrt(information), pull / information


def _highest(score: Floats, taken: Ints) -> Ints:
    """Places with a high score, above that of their neighbours, highest first, as many as may still be added."""
    score[taken] = 0.0
    around = np.lib.stride_tricks.sliding_window_view(np.pad(score, _NEAR), 2 * _NEAR + 1).max(axis=1)
    found = np.flatnonzero((score > _AT_ONCE * score.max()) & (score >= around))
    return found[np.argsort(-score[found], kind="stable")][: _MOST - taken.size]


def columns(places: int, heaps: Ints) -> Floats:  # -> (places, heaps)
    """A column for each heap, 1 there."""
    found = np.zeros((places, heaps.size))
    found[heaps, np.arange(heaps.size)] = 1.0
    return found
