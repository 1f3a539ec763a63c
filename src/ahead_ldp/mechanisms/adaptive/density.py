"""The density of one attribute from estimates of cells of several partitions: shrinkage towards what the data support.

Two base measures compete: an even one, and a smooth density fitted to the same estimates. Each is given the masses that
shrinkage makes of it, and they are averaged by their evidence; the smooth one pays for the coefficients it used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.mechanisms.adaptive.bisections import Bisection
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellEstimates, CellReports, from_zero
from ahead_ldp.mechanisms.adaptive.smooth_density import SmoothDensity, smooth_density
from ahead_ldp.mechanisms.adaptive.tree_shrinkage import EVEN, PASSES, SMOOTH, Shrunk, roughness, shrink
from ahead_ldp.schema.arrays import Floats, Ints

ESTIMATORS = ("shrinkage", "even", "smooth", "least_squares")
_ENOUGH = 8  # nodes that tell how rough a level is
_PRICE = 1.0  # of a coefficient of the smooth density, in units of log-evidence
_CAUTION = 8.0  # log-evidence that counts for one: neither measure is how people lie
_LEAST = 1e-9  # share of an even measure in every other: no code is left out
_MOST_PARTS = 1 << 14  # that the domain is cut into


@dataclass(frozen=True, eq=False)
class Fitted:
    """What follows one base measure, and its weight among the others."""

    weight: float
    shrunk: Shrunk | None  # None: the base measure as it is
    base: Floats  # (d + 1,) the share below every code by the base measure
    smooth: SmoothDensity | None  # behind it; None: the even measure

    @property
    def below(self) -> Floats:
        """The share below every code."""
        return self.base if self.shrunk is None else self.shrunk.below(self.base)


@dataclass(frozen=True, eq=False)
class AdaptiveDensity:
    """The frequency of every code: an average over base measures."""

    axis: Axis
    frequencies: Floats  # (size of the domain,)
    fits: tuple[Fitted, ...]
    people: int

    @classmethod
    @one_thread
    def of(cls, axis: Axis, reports: Sequence[CellReports], estimator: str = "shrinkage") -> AdaptiveDensity:
        """From what groups said about cells.

        ``estimator`` is one of ``ESTIMATORS``. "even" and "smooth" are parts of "shrinkage": the even base measure
        alone, the smooth density itself. "least_squares" is without any shrinkage. They are there to be compared.
        """
        told = [r for r in reports if r.n]
        fits = _fits(axis, told, estimator) if told else [Fitted(1.0, None, even_below(axis, ()), None)]
        below = np.sum([fit.weight * fit.below for fit in fits], axis=0)
        return cls(axis, np.diff(below), tuple(fits), sum(r.n for r in told))


def _fits(axis: Axis, told: Sequence[CellReports], estimator: str) -> list[Fitted]:
    base, given = even_below(axis, told), _estimates(told)
    if estimator == "least_squares":
        return [Fitted(1.0, _shrunk(axis, given, base, EVEN, 0), base, None)]
    even = Fitted(1.0, _shrunk(axis, given, base, EVEN), base, None)
    if estimator == "even" or axis.nominal or _ordered(axis) <= 2:
        return [even]
    smooth, price = _smooth(axis, given, even.below)
    other = base_below(axis, smooth.frequencies, _without_value(axis, even.below))
    if estimator == "smooth":
        return [Fitted(1.0, None, other, smooth)]
    shrunk = _shrunk(axis, given, other, SMOOTH)
    assert even.shrunk is not None
    gain = shrunk.log_evidence - _PRICE * price - even.shrunk.log_evidence
    weight = float(1 / (1 + np.exp(-np.clip(gain / _CAUTION, -50, 50))))
    return [Fitted(1 - weight, even.shrunk, base, None), Fitted(weight, shrunk, other, smooth)]


@one_thread
def glance(axis: Axis, reports: Sequence[CellReports]) -> tuple[Floats, float]:  # -> (size,)
    """What is known halfway: frequencies of all codes, and how unevenly people lie on the finest scale that is seen.

    That is the standard deviation of the share of a node's half, by the prior that was learned on the last level with
    enough nodes to tell; without one, nothing is said (0).
    """
    told, base = [r for r in reports if r.n], even_below(axis, reports)
    if not told:
        return np.diff(base), 0.0
    shrunk = _shrunk(axis, _estimates(told), base, EVEN)
    tree = shrunk.departures.tree
    seen = [w for level, w in zip(tree.levels, shrunk.weights, strict=True) if tree.known[level].sum() >= _ENOUGH]
    return np.diff(shrunk.below(base)), roughness(seen[-1]) if seen else 0.0


def _estimates(told: Sequence[CellReports]) -> list[CellEstimates]:
    people = sum(r.n for r in told)
    return [r.estimates(people) for r in told]


def _shrunk(
    axis: Axis, given: Sequence[CellEstimates], base: Floats, start: Floats, passes: int = PASSES
) -> Shrunk:  # (d + 1,), (parts,)
    data = CellData.of(given, 1.0)
    return shrink(data, tree_of(axis, data.borders, base), base, start, _apart(axis), passes)


def tree_of(axis: Axis, borders: Ints, base: Floats, inside: bool = False) -> Bisection:  # (d + 1,)
    """The tree that is cut at these borders; ``inside``: and then inside the cells, where nothing was measured.

    The nodes cut at borders are the same in both, in the same order.
    """
    grain = -(-axis.size // _MOST_PARTS) if inside else axis.size
    middle = 0.5 * (base + np.linspace(0.0, 1.0, axis.size + 1))
    return Bisection.of(borders, middle, axis.size - 1 if _apart(axis) else None, grain)


def _apart(axis: Axis) -> bool:
    """Whether those without a value have nothing to do with the others' order."""
    return axis.missing and axis.size > 2


def even_below(axis: Axis, told: Sequence[CellReports]) -> Floats:
    """The even measure: those without a value are half of all as soon as anybody answered.

    Their share is left as measured, and at one half the prior is widest.
    """
    missing = (0.5 if any(r.n for r in told) else 1 / axis.size) if axis.missing else 0.0
    return base_below(axis, np.full(_ordered(axis), 1 / max(_ordered(axis), 1)), missing)


def base_below(axis: Axis, density: Floats, missing: float) -> Floats:  # (ordered, ...) -> (d + 1, ...)
    """The share below every code by densities of the ordered codes, and a share of people without a value."""
    size = _ordered(axis)
    density = (1 - _LEAST) * density + _LEAST / max(size, 1)
    rest = np.full((int(axis.missing), *density.shape[1:]), missing)
    below = from_zero(np.concatenate([(1 - missing) * density, rest]) if axis.missing else density)
    found: Floats = below / below[-1]
    return found


def _smooth(axis: Axis, given: Sequence[CellEstimates], below: Floats) -> tuple[SmoothDensity, float]:
    """The smooth density of the ordered codes, and how many coefficients it used."""
    size, total = _ordered(axis), 1 - _without_value(axis, below)
    if axis.missing:
        given = [CellEstimates(g.borders[:-1], g.estimate[:-1], g.precision[:-1]) for g in given]
    near = np.maximum(np.diff(below)[:size] / total, _LEAST / size)
    found = smooth_density(size, given, total, near / near.sum())
    free = sum(g.estimate.size - (abs(g.estimate.sum() - total) < 1e-9) for g in given)
    return found, max(free - found.freedom, 0.0)


def _without_value(axis: Axis, below: Floats) -> float:
    """The share of people without a value."""
    return float(np.clip(1 - below[-2], _LEAST, 1.0 - _LEAST)) if axis.missing else 0.0


def _ordered(axis: Axis) -> int:
    """How many codes are in the order."""
    return axis.size - axis.missing
