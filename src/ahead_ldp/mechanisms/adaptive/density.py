"""The density of one attribute from estimates of cells of several partitions: shrinkage towards what the data support.

Two base measures compete: an even one, and a smooth density fitted to the same estimates. Each is given the masses that
shrinkage makes of it, and they are averaged by their evidence; the smooth one pays for the coefficients it used. Where
reports tell little, a mean over shapes that people often have and even people themselves count, too (``Weighing``).

What the tree buys (``tree_shrinkage``, ``bisections``, ``draws``): in the mean the smooth density alone gains as much
over the paper's method, 3.9 times (docs/accuracy.md). With the tree curves of many coefficients are halved by the even
one (decision 028), the draws behind intervals allow for heaps that a smooth curve has not, and what is known between
waves is made with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.mechanisms.adaptive.bisections import Bisection
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellEstimates, CellReports, from_zero
from ahead_ldp.mechanisms.adaptive.shapes import Shapes, weigh
from ahead_ldp.mechanisms.adaptive.smooth_density import SmoothDensity, smooth_density
from ahead_ldp.mechanisms.adaptive.tree_shrinkage import EVEN, PASSES, SMOOTH, Shrunk, roughness, shrink
from ahead_ldp.schema.arrays import Floats, Ints

ESTIMATORS = ("shrinkage", "even", "smooth", "least_squares")
_FEWEST_NODES = 8  # that tell how rough a level is (choice A42)
_COEFFICIENT_PRICE = 1.0  # of the smooth density, in units of log-evidence (decision 012)
_CAUTION = 8.0  # log-evidence that counts for one: neither measure is how people lie (decision 012)
_EVEN_SHARE = 1e-9  # tolerance: of an even measure in every other, so that no code is left out
_MOST_CELLS = 512  # that shapes are weighed by; beyond them too few would be left (choice A53)
_FEWEST_LEFT = 10.0  # shapes: below it their mean counts nothing (decision 024)
_HALF_LEFT = 100.0  # shapes, and those below which it counts nothing: then it counts for a half (decision 024)
_MOST_PARTS = 1 << 14  # that the domain is cut into (choice A47)


@dataclass(frozen=True, slots=True)
class Weighing:
    """How even people, and smooth densities of many coefficients, are weighed against all else."""

    odds: float  # that people lie evenly, against all else, where reports tell more than ``told``
    told: float  # sd of a half's share from all reports: from there on even people are likelier a priori
    power: int  # of the standard deviation by which the odds rise
    sharpness: float  # how often the evidence counts: 1 is its posterior, more comes near to a decision
    apart: float  # of the share below a code, root mean square: shapes that are nearer to even ones do not count,
    noises: float  # unless they are so many sd away, which reports can tell
    many: tuple[float, float] | None = None  # coefficients from which on a smooth density counts less, and for a half

    def chance(self, gain: float, sd: float) -> float:
        """That people lie evenly, where all else is likelier by exp(gain)."""
        odds = self.odds * max(1.0, sd / self.told) ** self.power  # A53
        return float(1 / (1 + np.exp(np.clip(self.sharpness * gain - np.log(odds), -50, 50))))  # A53

    def counts_from(self, sd: float) -> float:
        """How far from even people a shape has to be to count against them."""
        return min(self.apart, self.noises * sd)  # A53

    def believed(self, used: float) -> float:
        """The most that a smooth density of so many coefficients counts."""
        return 1.0 if self.many is None else float(np.interp(used, self.many, (1.0, 0.5)))  # A55


POSTERIOR = Weighing(0.5, 0.125, 4, 1.0, 0.0, 0.0)  # decision 024
DECIDED = Weighing(4.0, 0.15, 16, 4.0, 0.05, 4.0, (20.0, 30.0))  # decisions 024 and 028


@dataclass(frozen=True, eq=False)
class Fitted:
    """What follows one base measure, and its weight among the others."""

    weight: float
    shrunk: Shrunk | None  # None: the base measure as it is
    base: Floats  # (d + 1,) the share below every code by the base measure
    smooth: SmoothDensity | None  # behind it; None: the even measure, or shapes
    shapes: Shapes | None = None  # behind it
    chance: float | None = None  # of it, where its weight was decided upon; None: its weight

    @property
    def drawn(self) -> float:
        """The share of the draws that are its."""
        return self.weight if self.chance is None else self.chance

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
    def of(
        cls, axis: Axis, reports: Sequence[CellReports], estimator: str = "shrinkage", weighing: Weighing | None = None
    ) -> AdaptiveDensity:
        """From what groups said about cells; ``weighing``: also with shapes and even people, where reports tell little.

        ``estimator`` is one of ``ESTIMATORS``. "even" and "smooth" are parts of "shrinkage": the even base measure
        alone, the smooth density itself. "least_squares" is without any shrinkage. They are there to be compared.
        """
        answered = [r for r in reports if r.n]
        fits = (
            _fits(axis, answered, estimator, weighing) if answered else [Fitted(1.0, None, even_below(axis, ()), None)]
        )
        if weighing is not None and len(fits) > 1:
            fits = _with_shapes(axis, answered, fits, weighing)
        below = np.sum([fit.weight * fit.below for fit in fits], axis=0)  # A43
        return cls(axis, np.diff(below), tuple(fits), sum(r.n for r in answered))


def _fits(axis: Axis, reports: Sequence[CellReports], estimator: str, weighing: Weighing | None = None) -> list[Fitted]:
    base, estimates = even_below(axis, reports), _estimates(reports)
    data = CellData.of(estimates, 1.0)
    if estimator == "least_squares":
        return [Fitted(1.0, _shrunk(axis, data, base, EVEN, 0), base, None)]
    even = _shrunk(axis, data, base, EVEN)
    if estimator == "even" or axis.nominal or _ordered(axis) <= 2:
        return [Fitted(1.0, even, base, None)]
    below = even.below(base)
    smooth = _smooth(axis, estimates, below)
    other = base_below(axis, smooth.frequencies, _without_value(axis, below))
    if estimator == "smooth":
        return [Fitted(1.0, None, other, smooth)]
    shrunk = _shrunk(axis, data, other, SMOOTH)
    gain = shrunk.log_evidence - _COEFFICIENT_PRICE * smooth.used - even.log_evidence  # A43
    weight = float(1 / (1 + np.exp(-np.clip(gain / _CAUTION, -50, 50))))  # A43
    weight *= 1.0 if weighing is None else weighing.believed(smooth.used)
    return [Fitted(1 - weight, even, base, None), Fitted(weight, shrunk, other, smooth)]


def _with_shapes(axis: Axis, reports: Sequence[CellReports], fits: list[Fitted], weighing: Weighing) -> list[Fitted]:
    """The same fits beside the mean over shapes and the even measure, each by what the reports say for it."""
    shrunk = fits[0].shrunk
    if shrunk is None or shrunk.departures.data.estimate.size > _MOST_CELLS:
        return fits
    data = shrunk.departures.data
    size, missing = _ordered(axis), _without_value(axis, shrunk.below(fits[0].base))
    shapes, even = weigh(data, size, 1 - missing), base_below(axis, np.full(size, 1 / size), missing)
    away, people = data.estimate - data.seen(even), sum(r.n for r in reports)
    sd = float(np.sqrt(max(float(r.oracle.variance(1)) for r in reports) / people))
    left = max(shapes.left - _FEWEST_LEFT, 0.0)

    def shared(rule: Weighing) -> tuple[float, float]:
        """The shares of even people and of the shapes' mean."""
        evidence = np.logaddexp(shapes.log_evidence(rule.counts_from(sd)), shrunk.log_evidence)
        evenly = rule.chance(float(evidence) + 0.5 * float(away @ away), sd)
        return evenly, (1 - evenly) * left / (left + _HALF_LEFT)  # A54

    curve = base_below(axis, np.diff(shapes.below(size)), missing)
    (evenly, mean), (likely, drawn) = shared(weighing), shared(POSTERIOR)
    return [
        *(
            replace(fit, weight=(1 - evenly - mean) * fit.weight, chance=(1 - likely - drawn) * fit.weight)
            for fit in fits
        ),
        Fitted(mean, None, curve, None, shapes, drawn),
        Fitted(evenly, None, even, None, None, likely),
    ]


@one_thread
def interim_density(axis: Axis, reports: Sequence[CellReports]) -> tuple[Floats, float]:  # -> (size,)
    """What is known halfway: frequencies of all codes, and how unevenly people lie on the finest scale that is seen.

    That is the standard deviation of the share of a node's half, by the prior that was learned on the last level with
    enough nodes to tell; without one, nothing is said (0).
    """
    answered, base = [r for r in reports if r.n], even_below(axis, reports)
    if not answered:
        return np.diff(base), 0.0
    shrunk = _shrunk(axis, CellData.of(_estimates(answered), 1.0), base, EVEN)
    tree = shrunk.departures.tree
    seen = [w for level, w in zip(tree.levels, shrunk.weights, strict=True) if tree.known[level].sum() >= _FEWEST_NODES]
    return np.diff(shrunk.below(base)), roughness(seen[-1]) if seen else 0.0


def _estimates(reports: Sequence[CellReports]) -> list[CellEstimates]:
    people = sum(r.n for r in reports)
    return [r.estimates(people) for r in reports]


def _shrunk(
    axis: Axis, data: CellData, base: Floats, start: Floats, passes: int = PASSES
) -> Shrunk:  # (d + 1,), (parts,)
    return shrink(data, tree_of(axis, data.borders, base), base, start, _apart(axis), passes)


def tree_of(axis: Axis, borders: Ints, base: Floats, inside: bool = False) -> Bisection:  # (d + 1,)
    """The tree that is cut at these borders; ``inside``: and then inside the cells, where nothing was measured.

    The nodes cut at borders are the same in both, in the same order.
    """
    grain = -(-axis.size // _MOST_PARTS) if inside else axis.size
    middle = 0.5 * (base + np.linspace(0.0, 1.0, axis.size + 1))  # A33
    return Bisection.of(borders, middle, axis.size - 1 if _apart(axis) else None, grain)


def _apart(axis: Axis) -> bool:
    """Whether those without a value have nothing to do with the others' order."""
    return axis.missing and axis.size > 2


def even_below(axis: Axis, reports: Sequence[CellReports]) -> Floats:
    """The even measure: those without a value are half of all as soon as anybody answered.

    Their share is left as measured, and at one half the prior is widest.
    """
    missing = (0.5 if any(r.n for r in reports) else 1 / axis.size) if axis.missing else 0.0
    return base_below(axis, np.full(_ordered(axis), 1 / max(_ordered(axis), 1)), missing)


def base_below(axis: Axis, density: Floats, missing: float) -> Floats:  # (ordered,) -> (d + 1,)
    """The share below every code by a density of the ordered codes, and a share of people without a value."""
    density = (1 - _EVEN_SHARE) * density + _EVEN_SHARE / max(_ordered(axis), 1)
    below = from_zero(np.append((1 - missing) * density, missing) if axis.missing else density)
    return below / below[-1]


def _smooth(axis: Axis, estimates: Sequence[CellEstimates], below: Floats) -> SmoothDensity:
    """The smooth density of the ordered codes."""
    size, total = _ordered(axis), 1 - _without_value(axis, below)
    if axis.missing:
        estimates = [CellEstimates(e.borders[:-1], e.estimate[:-1], e.precision[:-1]) for e in estimates]
    near = np.maximum(np.diff(below)[:size] / total, _EVEN_SHARE / size)
    return smooth_density(size, estimates, total, near / near.sum())


def _without_value(axis: Axis, below: Floats) -> float:
    """The share of people without a value."""
    return float(np.clip(1 - below[-2], _EVEN_SHARE, 1.0 - _EVEN_SHARE)) if axis.missing else 0.0


def _ordered(axis: Axis) -> int:
    """How many codes are in the order."""
    return axis.size - axis.missing
