"""A smooth density of one ordered attribute from noisy frequencies of the cells of several partitions.

The logarithm of the density is a quadratic trend and forty cosines. A priori the cosines' weights are those of a
random walk and an integrated one; how far the walks go is weighed by the evidence (Laplace's approximation), and so
is the coordinate in which they walk (``coordinates``). Heaps on it have coefficients of their own, or one in
common where people round. The likelihood is the cells' normal one, as in generalised least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellEstimates, from_zero
from ahead_ldp.mechanisms.adaptive.coordinates import coordinates
from ahead_ldp.mechanisms.adaptive.heaps import columns, with_heaps
from ahead_ldp.mechanisms.adaptive.log_linear import LogLinear, Model, fit, softmax
from ahead_ldp.mechanisms.adaptive.rounding import rounded
from ahead_ldp.schema.arrays import Floats, Ints

_MOST_COSINES = 40  # of the basis (choice A14)
_COSINES_AT_ONCE = 8  # unit: those that are computed as such; the others follow from them
_MOST_FITTED = 3  # of the coordinates (decision 012)
_MOST_BEHIND = 8.0  # log-evidence by which a coordinate that is fitted may be behind at first (choice A23)


@dataclass(frozen=True, eq=False)
class SmoothDensity:
    """A smooth density: positive frequencies of sum 1, the laws behind them, and how many coefficients they used."""

    frequencies: Floats  # (d,)
    used: float = 0.0
    laws: tuple[LogLinear, ...] = ()

    @cached_property
    def cumulative_spread(self) -> Floats:  # (d + 1, k)
        """A root R of the posterior covariance R R^T of the share below each code, to first order."""
        centre, parts = from_zero(self.frequencies), [np.zeros((self.frequencies.size + 1, 1))]
        for law in self.laws:
            away = (from_zero(law.frequencies) - centre)[:, None]
            parts.append(np.sqrt(law.weight) * np.hstack([law.cumulative_spread(), away]))  # A25
        return np.hstack(parts)


def smooth_density(
    d: int, estimates: Sequence[CellEstimates], total: float = 1.0, near: Floats | None = None
) -> SmoothDensity:  # (d,)
    """The density of d codes behind some estimates, smooth but for heaps; ``total`` is who has a code at all.

    Without any precision it is even. The fit starts near a density that fits (None: the even one) and takes only steps
    that improve it, so it is always a proper density; models are averaged by their evidence.
    """
    informed, even = [e for e in estimates if e.precision.any()], np.full(d, 1 / d)
    if d == 1 or not informed:
        return SmoothDensity(even)
    laws, used = _laws(CellData.of(informed, max(total, 1e-9)), even if near is None else near)
    return SmoothDensity(np.sum([law.weight * law.frequencies for law in laws], axis=0), used, laws)  # A23


def _laws(data: CellData, near: Floats) -> tuple[tuple[LogLinear, ...], float]:  # (d,)
    """Laws of all codes with their weights, and how many coefficients they used."""
    places, width = replace(data, borders=np.arange(data.borders.size)), np.diff(data.borders)
    fits = _fitted(places, data.borders, near)
    best = max(fits, key=lambda f: f.law.log_evidence)
    heaps, law = with_heaps(best.model, best.law)
    if heaps.size:
        codes = np.hstack([best.codes, np.repeat(columns(width.size, heaps), width, axis=0)])
        fits.append(_Fitted(best.model, law, codes))
    laws, seen = [f.law.on(f.codes) for f in fits], [(places, f.law) for f in fits]
    rounding = rounded(data, best.law.on(best.codes), best.model.log_prior)
    if rounding is not None:
        laws.append(rounding)
        seen.append((data, rounding))
    weights = softmax(np.array([law.log_evidence for law in laws])).tolist()  # A23
    moved = [cells.jacobian(law.basis, law.frequencies) @ law.spread for cells, law in seen]
    freedom = data.freedom - sum(w * float((m**2).sum()) for w, m in zip(weights, moved, strict=True))  # A24
    used = data.freedom - freedom  # rounded as the freedom is, which recorded answers rest on
    return tuple(replace(law, weight=w) for law, w in zip(laws, weights, strict=True)), used


class _Fitted(NamedTuple):
    model: Model
    law: LogLinear  # of places
    codes: Floats  # (d, k) the basis of all codes


def _fitted(places: CellData, borders: Ints, near: Floats) -> list[_Fitted]:  # (places + 1,), (d,)
    """Fits to places in the coordinates that are likeliest at first sight."""
    k, width, share = min(_MOST_COSINES, near.size - 1), np.diff(borders), np.add.reduceat(near, borders[:-1])
    tried = coordinates(borders, near)
    means = [np.add.reduceat(c.at, borders[:-1]) / width for c in tried]
    starts = [
        (Model(places, _basis(mean, k), width, log_prior=c.log_prior).start(share), c)
        for mean, c in zip(means, tried, strict=True)
    ]
    starts = sorted(starts, key=lambda pair: -pair[0].log_evidence)[:_MOST_FITTED]
    fits = []
    for start, coordinate in starts:
        if start.log_evidence >= starts[0][0].log_evidence - _MOST_BEHIND:
            codes = _basis(coordinate.at, k)
            inside = start.settled().filled(codes, borders)
            fits.append(_Fitted(inside.model, fit(inside), codes))
    return fits


def _basis(at: Floats, cosines: int) -> Floats:  # (d,) -> (d, 2 + cosines)
    """A linear and a quadratic column on [-1, 1], then the cosines of the whole domain; none is constant."""
    t = 2 * at - 1
    now = np.cos(np.pi * np.arange(1, _COSINES_AT_ONCE + 1)[:, None] * at)
    before, step, waves = np.vstack([now[-2::-1], np.ones(at.size)]), 2 * now[-1], [t[None], t[None] ** 2, now]
    for _ in range(_COSINES_AT_ONCE, cosines, _COSINES_AT_ONCE):
        before, now = now, step * now - before  # cos(a + b) = 2 cos a cos b - cos(a - b), quicker than the function
        waves.append(now)
    return np.ascontiguousarray(np.vstack(waves)[: 2 + cosines].T)  # A14
