"""A smooth density of one ordered attribute from noisy frequencies of the cells of several partitions.

The logarithm of the density is a quadratic trend and some fifty cosines. A priori the cosines' weights are those of a
random walk and an integrated one; how far the walks go is weighed by the evidence (Laplace's approximation), and so
is the coordinate in which they walk: the codes, the rank of the finest cells, which are narrow where a
decomposition looked closely, or midway. Heaps on it have coefficients of their own. The likelihood is the cells' normal
one, as in generalised least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.inference.cell_estimates import CellData, CellEstimates, from_zero
from ahead_ldp.inference.heaps import with_heaps
from ahead_ldp.inference.log_linear import LogLinear, fit, softmax

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

__all__ = ["CellEstimates", "SmoothDensity", "smooth_density"]

_MOST_COSINES = 40


@dataclass(frozen=True, eq=False)
class SmoothDensity:
    """A smooth density: positive frequencies of sum 1, and what is known about how far they may be off.

    ``log_evidence`` lacks a constant of the data: it compares models of the same estimates. ``misfit`` is the sum of
    squared residuals over their variances, ``freedom`` what it would be on average if the truth were as smooth: a
    misfit far above says that the density is not.
    """

    frequencies: Floats  # (d,)
    log_evidence: float
    misfit: float
    freedom: float
    laws: tuple[LogLinear, ...] = ()

    @cached_property
    def cumulative_spread(self) -> Floats:  # (d + 1, k)
        """A root R of the posterior covariance R R^T of the share below each code, to first order."""
        centre, parts = from_zero(self.frequencies), [np.zeros((self.frequencies.size + 1, 1))]
        for law in self.laws:
            away = (from_zero(law.frequencies) - centre)[:, None]
            parts.append(np.sqrt(law.weight) * np.hstack([law.cumulative_spread(), away]))
        return np.hstack(parts)

    def draws(self, count: int, rng: Generator) -> Floats:  # -> (count, d)
        """Densities drawn from the posterior; each is positive with sum 1."""
        if not self.laws:
            return np.tile(self.frequencies, (count, 1))
        which = rng.choice(len(self.laws), size=count, p=[law.weight for law in self.laws])
        found = np.empty((count, self.frequencies.size))
        for i, law in enumerate(self.laws):
            z = rng.standard_normal((int((which == i).sum()), law.mean.size))
            found[which == i] = softmax((law.mean + z @ law.spread.T) @ law.basis.T)
        return found


def smooth_density(d: int, given: Sequence[CellEstimates], total: float = 1.0) -> SmoothDensity:
    """The density of d codes behind some estimates, smooth but for heaps; ``total`` is who has a code at all.

    Without any precision it is even. The fit starts there and takes only steps that improve it, so it is always a
    proper density; models are averaged by their evidence.
    """
    told = [g for g in given if g.precision.any()]
    if d == 1 or not told:
        return SmoothDensity(np.full(d, 1 / d), 0.0, 0.0, 0.0)
    data = CellData.of(told, max(total, 1e-9))
    laws = [fit(data, basis) for basis in _bases(d, data.borders)]
    heaped = with_heaps(data, max(laws, key=lambda law: law.log_evidence))
    laws += [heaped] if heaped is not None else []
    evidence = np.array([law.log_evidence for law in laws])
    laws = [replace(law, weight=float(w)) for law, w in zip(laws, softmax(evidence), strict=True)]
    x = np.sum([law.weight * law.frequencies for law in laws], axis=0)
    used = sum(
        law.weight * float(((data.jacobian(law.basis, law.frequencies) @ law.spread) ** 2).sum()) for law in laws
    )
    misfit = float((data.residual(x) ** 2).sum()) + data.within
    average = float(evidence.max() + np.log(np.exp(evidence - evidence.max()).mean()))
    return SmoothDensity(x, average, misfit, data.freedom - used, tuple(laws))


def _bases(d: int, borders: Ints) -> list[Floats]:
    """The trend and cosines in the codes; where cells are of different widths also in their rank, and midway."""
    k, codes = min(_MOST_COSINES, d - 1), np.arange(d) + 0.5
    widths = np.diff(borders)
    if widths.size < 4 or widths.max() <= 2 * widths.min():
        return [_basis(codes / d, k)]
    rank = _rank(codes, borders)
    return [_basis(share * rank + (1 - share) * codes / d, k) for share in (0.0, 0.5, 1.0)]


def _basis(at: Floats, cosines: int) -> Floats:  # (d,) -> (d, 2 + cosines)
    """A linear and a quadratic column on [-1, 1], then the cosines of the whole domain; none is constant."""
    t = 2 * at - 1
    return np.hstack([t[:, None], (t**2)[:, None], np.cos(np.pi * at[:, None] * np.arange(1, cosines + 1))])


def _rank(codes: Any, borders: Ints) -> Floats:
    """How far along the cells a code lies, in [0, 1]; smooth, so that the density's slope has no steps."""
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(borders, np.linspace(0.0, 1.0, borders.size))(codes))
