"""People who round: heaps at equal distances, such as full hours, years of age or thousands.

All codes that people round to share one coefficient of the density's logarithm, so what each heap alone could not show
is seen in their sum. Distance and place of the heaps need not be whole codes: a code is a bucket of values. They are
sought where the residuals of a smooth fit have a period, by the score test, and pay for having been sought.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData
from ahead_ldp.mechanisms.adaptive.log_linear import LogLinear, Model, fit
from ahead_ldp.schema.arrays import Floats, Ints

_STANDS_OUT = 5.0  # standard deviations
_SHORTEST, _FEWEST = 3.0, 4  # codes from heap to heap at least; heaps at least
_PEAKS, _PADDED = 12, 4  # of the spectrum that are looked at; how finely it is computed
_MULTIPLES = 8  # the spectrum of spikes has all their harmonics: a period may be a part of the true one
_AS_GOOD = 0.95  # of the score, for a longer period or a rounder one
_TOLD_APART = 0.02  # of what a comb does to the cells must be more than a smooth density can do
_LEAST, _MOST = 16, 1 << 14  # codes of the domain
_HIGHER = 0.1  # that heaps start with, at least, relative to the smooth density


class Comb(NamedTuple):
    """Heaps on the codes that hold phase, phase + period, and so on."""

    period: float
    phase: float

    def codes(self, d: int) -> Ints:
        """All of them below d."""
        count = max(int(np.ceil((d - self.phase) / self.period)), 0)
        return np.minimum(np.floor(self.phase + self.period * np.arange(count)).astype(np.int64), d - 1)


def rounded(data: CellData, smooth: LogLinear, log_prior: float = 0.0) -> LogLinear | None:
    """The law of all codes with a coefficient for those that people round to; None where nothing says that they do.

    ``log_prior`` is that of the smooth law's model, which the new one shares.
    """
    d = smooth.frequencies.size
    if not _LEAST <= d <= _MOST:
        return None
    residuals = _Residuals.of(data, smooth)
    comb = _best(residuals, d) if residuals.misfit > 0 else None
    if comb is None:
        return None
    column = np.zeros(d)
    column[comb.codes(d)] = 1.0
    height = float(residuals.scores([comb])[1][0])
    raised = smooth.frequencies * (1 + max(height, _HIGHER) * column)
    model = Model(data, np.column_stack([smooth.basis, column]), np.ones(d), own=1, log_prior=log_prior)
    law = fit(model.start(raised / raised.sum()).settled())
    return replace(law, log_evidence=law.log_evidence - float(np.log(_PADDED * d)))


def _best(residuals: _Residuals, d: int) -> Comb | None:
    """The comb with the highest score; of those that are nearly as good the longest, and a round one."""
    found = residuals.highest(_peaks(residuals.signal))
    if found is None:
        return None
    found = _refined(residuals, found, d)
    good = _AS_GOOD * float(residuals.scores([found])[0][0])
    for times in range(_MULTIPLES, 1, -1):
        period = times * found.period
        if period > d / _FEWEST:
            continue
        longer = [Comb(period, found.phase + k * found.period) for k in range(times)]
        best = residuals.highest([near for comb in longer for near in _near(comb, d, 0.5, 1)])
        if best is not None and residuals.scores([best])[0][0] >= good:
            found = _refined(residuals, best, d)
            break
    whole = max(float(round(found.period)), 1.0)
    round_ = residuals.highest([Comb(whole, 0.0), Comb(whole, float(round(found.phase) % whole))])
    if round_ is not None and residuals.scores([round_])[0][0] >= good:
        found = round_
    return found if residuals.scores([found])[0][0] >= _STANDS_OUT else None


def _refined(residuals: _Residuals, comb: Comb, d: int) -> Comb:
    """The best comb around one, looked for twice, the second time nearer."""
    for scale in (1.0, 0.3):
        comb = residuals.highest([comb, *_near(comb, d, scale)]) or comb
    return comb


def _near(comb: Comb, d: int, scale: float, steps: int = 2) -> list[Comb]:
    """Combs beside one: at the far end of the codes they differ by a quarter of a period, times ``scale``."""
    slip, shift = 0.25 * scale * comb.period**2 / d, scale * max(0.5, comb.period / 48)
    offsets = range(-steps, steps + 1)
    found = [(comb.period + a * slip, comb.phase + b * shift) for a, b in product(offsets, offsets)]
    return [Comb(period, phase % period) for period, phase in found if period >= _SHORTEST]


def _peaks(signal: Floats) -> list[Comb]:
    """Combs by the highest peaks of the spectrum, in several phases."""
    d, spectrum = signal.size, np.fft.rfft(signal, _PADDED * signal.size)
    size = np.abs(spectrum)
    highest = np.lib.stride_tricks.sliding_window_view(np.pad(size, 3), 7).max(axis=1)
    places = np.arange(_PADDED * _FEWEST, int(_PADDED * d / _SHORTEST))
    places = places[size[places] >= highest[places]]
    found = []
    for place in places[np.argsort(-size[places], kind="stable")][:_PEAKS].tolist():
        period = _PADDED * d / place
        phase, step = -float(np.angle(spectrum[place])) / (2 * np.pi) * period, max(0.5, period / 24)
        found += [Comb(period, (phase + k * step) % period) for k in range(-4, 5)]
        found.append(Comb(max(float(round(period)), _SHORTEST), 0.0))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Residuals:
    """What a smooth law leaves of the estimates, and how combs would answer to it."""

    data: CellData
    law: LogLinear
    place: Ints  # (d,) of every code
    mass: Floats  # (cells,) in the estimates' standard deviations
    residual: Floats  # (cells,)
    effect: Floats  # (cells, k) of the smooth coefficients, in their posterior standard deviations

    @classmethod
    def of(cls, data: CellData, law: LogLinear) -> _Residuals:
        x, borders = law.frequencies, data.borders
        mass = data.cells(np.add.reduceat(x, borders[:-1]))
        place = np.repeat(np.arange(borders.size - 1), np.diff(borders))
        return cls(data, law, place, mass, data.residual(x), data.jacobian(law.basis, x) @ law.spread)

    @property
    def misfit(self) -> float:
        """How much more is left than chance would leave, on average, if the law were right."""
        left = float(self.residual @ self.residual) + self.data.within
        return left - (self.data.freedom - float((self.effect**2).sum()))

    @property
    def signal(self) -> Floats:  # (d,)
        """By how much the misfit falls with more people on each code, in proportion to those who are there."""
        pull = self.data.around(self.residual) - self.mass @ self.residual
        found: Floats = self.law.frequencies * pull[self.place]
        return found

    def scores(self, combs: list[Comb]) -> tuple[Floats, Floats]:  # (combs,) each
        """How far each comb's coefficient is from 0 in standard deviations, and the coefficient: to first order.

        Those that the smooth coefficients could take up say nothing: 0.
        """
        x, places = self.law.frequencies, self.data.borders.size - 1
        codes = [comb.codes(x.size) for comb in combs]
        which = np.repeat(np.arange(len(combs)), [c.size for c in codes])
        at = np.concatenate(codes)
        counted: Floats = np.bincount(self.place[at] * len(combs) + which, x[at], places * len(combs)).astype(float)
        sums = counted.reshape(places, len(combs))
        moved = self.data.cells(sums) - self.mass[:, None] * sums.sum(axis=0)
        whole = (moved**2).sum(axis=0)
        information = whole - ((self.effect.T @ moved) ** 2).sum(axis=0)
        told = information > np.maximum(_TOLD_APART * whole, 1e-12)
        pull, information = np.where(told, moved.T @ self.residual, 0.0), np.where(told, information, 1.0)
        return pull / np.sqrt(information), pull / information

    def highest(self, combs: list[Comb]) -> Comb | None:
        """The comb with the highest score, if any is above 0."""
        if not combs:
            return None
        score = self.scores(combs)[0]
        best = int(score.argmax())
        return combs[best] if score[best] > 0 else None
