"""People who round: heaps at equal distances, such as full hours, years of age or thousands.

All codes that people round to share one coefficient of the density's logarithm, so what each heap alone could not show
is seen in their sum. Distance and phase of the heaps need not be whole codes: a code is a bucket of values. They are
sought where the residuals of a smooth fit have a period, by the score test, and pay for having been sought.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData
from ahead_ldp.mechanisms.adaptive.log_linear import LogLinear, Model, fit
from ahead_ldp.mechanisms.adaptive.score_tests import Residuals
from ahead_ldp.schema.arrays import Floats, Ints

_LEAST_SCORE = 5.0  # standard deviations (decision 013)
_SHORTEST_PERIOD = 3.0  # codes from heap to heap (choice A32)
_FEWEST_HEAPS = 4  # in the domain (choice A32)
_PEAKS = 12  # of the spectrum that are looked at (decision 013)
_PADDING = 4  # times the domain, over which the spectrum is computed (decision 013)
_MOST_MULTIPLES = 8  # of a period: spikes have all their harmonics, so it may be a part of the true one (decision 013)
_SCORE_KEPT = 0.95  # for a longer period or a rounder one (decision 013)
_FEWEST_CODES = 16  # of a domain (choice A32)
_MOST_CODES = 1 << 14  # of a domain (choice A32)
_LEAST_RISE = 0.1  # that heaps start with, relative to the smooth density (choice A32)


class Comb(NamedTuple):
    """Heaps on the codes that hold phase, phase + period, and so on."""

    period: float
    phase: float

    def codes(self, d: int) -> Ints:
        """All of them below d."""
        count = max(int(np.ceil((d - self.phase) / self.period)), 0)
        return np.minimum(np.floor(self.phase + self.period * np.arange(count)).astype(np.int64), d - 1)  # A31


def rounded(data: CellData, smooth: LogLinear, log_prior: float = 0.0) -> LogLinear | None:
    """The law of all codes with a coefficient for those that people round to; None where nothing says that they do.

    ``log_prior`` is that of the smooth law's model, which the new one shares.
    """
    d = smooth.frequencies.size
    if not _FEWEST_CODES <= d <= _MOST_CODES:
        return None
    residuals = Residuals.of(data, smooth)
    comb = _best(residuals, d) if residuals.misfit > 0 else None
    if comb is None:
        return None
    column = np.zeros(d)
    column[comb.codes(d)] = 1.0
    height = float(comb_scores(residuals, [comb])[1][0])
    raised = smooth.frequencies * (1 + max(height, _LEAST_RISE) * column)
    model = Model(data, np.column_stack([smooth.basis, column]), np.ones(d), own=1, log_prior=log_prior)
    law = fit(model.start(raised / raised.sum()).settled())
    return replace(law, log_evidence=law.log_evidence - float(np.log(_PADDING * d)))  # A29


def comb_scores(residuals: Residuals, combs: list[Comb]) -> tuple[Floats, Floats]:  # (combs,) each
    """How far each comb's coefficient is from 0 in standard deviations, and the coefficient: to first order."""
    x, borders = residuals.law.frequencies, residuals.data.borders
    codes = [comb.codes(x.size) for comb in combs]
    which, at = np.repeat(np.arange(len(combs)), [c.size for c in codes]), np.concatenate(codes)
    place, shape = np.searchsorted(borders, at, side="right") - 1, (borders.size - 1, len(combs))
    sums = np.bincount(place * len(combs) + which, x[at], shape[0] * shape[1]).astype(float)
    return residuals.of_columns(sums.reshape(shape))


def _highest(residuals: Residuals, combs: list[Comb], least: float = 0.0) -> Comb | None:
    """The comb with the highest score, if any is above 0 and none below ``least``."""
    if not combs:
        return None
    score = comb_scores(residuals, combs)[0]
    best = int(score.argmax())
    return combs[best] if score[best] > 0 and score[best] >= least else None


def _best(residuals: Residuals, d: int) -> Comb | None:
    """The comb with the highest score; of those that are nearly as good the longest, and a round one."""
    comb = _highest(residuals, _peaks(residuals))
    if comb is None:
        return None
    comb = _refined(residuals, comb, d)
    good = _SCORE_KEPT * float(comb_scores(residuals, [comb])[0][0])
    for times in range(_MOST_MULTIPLES, 1, -1):
        period = times * comb.period
        if period > d / _FEWEST_HEAPS:
            continue
        multiples = [Comb(period, comb.phase + k * comb.period) for k in range(times)]
        longer = _highest(residuals, [near for each in multiples for near in _near(each, d, 0.5, 1)], good)
        if longer is not None:
            comb = _refined(residuals, longer, d)
            break
    whole = max(float(round(comb.period)), 1.0)
    comb = _highest(residuals, [Comb(whole, 0.0), Comb(whole, float(round(comb.phase) % whole))], good) or comb
    return _highest(residuals, [comb], _LEAST_SCORE)


def _refined(residuals: Residuals, comb: Comb, d: int) -> Comb:
    """The best comb around one, looked for twice, the second time nearer."""
    for scale in (1.0, 0.3):
        comb = _highest(residuals, [comb, *_near(comb, d, scale)]) or comb
    return comb


def _near(comb: Comb, d: int, scale: float, steps: int = 2) -> list[Comb]:
    """Combs beside one: at the far end of the codes they differ by a quarter of a period, times ``scale``."""
    slip, shift = 0.25 * scale * comb.period**2 / d, scale * max(0.5, comb.period / 48)
    offsets = range(-steps, steps + 1)
    beside = [(comb.period + a * slip, comb.phase + b * shift) for a, b in product(offsets, offsets)]
    return [Comb(period, phase % period) for period, phase in beside if period >= _SHORTEST_PERIOD]


def _peaks(residuals: Residuals) -> list[Comb]:
    """Combs by the highest peaks of the spectrum, in several phases.

    The spectrum is of the fall in misfit with more people on each code, in proportion to those who are there.
    """
    signal = residuals.law.frequencies * np.repeat(residuals.pull, np.diff(residuals.data.borders))
    d, spectrum = signal.size, np.fft.rfft(signal, _PADDING * signal.size)
    size = np.abs(spectrum)
    highest = np.lib.stride_tricks.sliding_window_view(np.pad(size, 3), 7).max(axis=1)
    waves = np.arange(_PADDING * _FEWEST_HEAPS, int(_PADDING * d / _SHORTEST_PERIOD))  # per padded domain
    waves = waves[size[waves] >= highest[waves]]
    combs = []
    for wave in waves[np.argsort(-size[waves], kind="stable")][:_PEAKS].tolist():
        period = _PADDING * d / wave
        phase, step = -float(np.angle(spectrum[wave])) / (2 * np.pi) * period, max(0.5, period / 24)
        combs += [Comb(period, (phase + k * step) % period) for k in range(-4, 5)]
        combs.append(Comb(max(float(round(period)), _SHORTEST_PERIOD), 0.0))
    return combs
