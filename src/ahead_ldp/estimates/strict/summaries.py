"""Strict intervals of quantiles and of means of one attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.bands import bonferroni_quantile, pointwise_quantile
from ahead_ldp.estimates.strict.bounds import Bounds, Evidence
from ahead_ldp.estimates.strict.functionals import Attributes, Functional, Numbers, Shares
from ahead_ldp.schema.arrays import Floats

_HALVINGS = 30  # of the range of a mean among those who have a value (S18)


@dataclass(frozen=True, eq=False)
class StrictQuantiles:
    """Codes between which quantiles lie: those whose share of people below them may be the level.

    For a quantile at the level p among those who have a value, F(x) - p F(end) is bounded for whole codes x.
    """

    evidence: Evidence
    attribute: Attribute
    place: int  # of the attribute
    levels: Floats  # (k,)
    near: Floats  # (k,) where the estimate has them
    known: dict[tuple[int, int, bool], tuple[float, float, float]] = field(default_factory=dict)

    def codes(self, level: float, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """The first code of each interval, and one past the last."""
        z = bonferroni_quantile(self.levels.size, level) if simultaneous else pointwise_quantile(level)
        ends = [(self._first(k, z), self._last(k, z)) for k in range(self.levels.size)]
        return np.array([a for a, _ in ends], float), np.array([b for _, b in ends], float)

    def _first(self, k: int, z: float) -> int:
        """The first code x for which the share up to it, included, may reach the level."""
        return _search(lambda x: self._bound(k, x + 1, True, z) >= 0, int(self.near[k]), self.attribute.ordered_size)

    def _last(self, k: int, z: float) -> int:
        """One past the last code x for which the share below it may stay at or below the level."""
        size = self.attribute.ordered_size
        found = _search(lambda y: self._bound(k, size - 1 - y, False, z) >= 0, size - 1 - int(self.near[k]), size)
        return size - found

    def _bound(self, k: int, x: int, upper: bool, z: float) -> float:
        """The upper bound of F(x) - p F(end), or of its negative."""
        key = (k, x, upper)
        if key not in self.known:
            functional: Functional = self._functional(float(self.levels[k]), x)
            bounds = self.evidence.upper([functional if upper else functional.negative()])
            self.known[key] = float(bounds.centre[0]), float(bounds.error[0]), float(bounds.most[0])
        centre, error, most = self.known[key]
        return min(centre + z * error, most)

    def _functional(self, p: float, x: int) -> Shares:
        attributes, axis = whole_attributes(self.evidence, self.place)
        below, rest = self._box(attributes, axis, 0, x), self._box(attributes, axis, x, self.attribute.ordered_size)
        return Shares(attributes, ((1 - p, below), (-p, rest)))  # S19

    def _box(self, attributes: Attributes, axis: int, lo: int, hi: int) -> Floats:
        box = np.zeros((1, len(attributes), 2))
        box[0, :, 1] = [self.evidence.schema.sizes[a] for a in attributes]
        box[0, axis] = lo, hi
        return box


@dataclass(frozen=True, eq=False)
class StrictMean:
    """An interval of a mean, where of each code only the least and the largest number is known."""

    evidence: Evidence
    attribute: Attribute
    place: int
    low: Floats  # (ordered codes,)
    high: Floats
    marks: Floats

    def interval(self, level: float) -> tuple[float, float]:
        """The means that the reports allow, among those who have a value."""
        z = pointwise_quantile(level)
        if self.attribute.missing != "cell":
            high, low = self._whole.at(z)
            return -float(low), float(high)
        return -self._among(-self.high, -self.low, z), self._among(self.low, self.high, z)

    @cached_property
    def _whole(self) -> Bounds:
        return self.evidence.both([self._numbers(self.low, self.high, 0.0)])

    def _among(self, low: Floats, high: Floats, z: float) -> float:
        """The largest mean m for which the sum of (number - m) over those who have a value may be 0."""
        least, most = float(low.min()), float(high.max())
        for _ in range(_HALVINGS):
            m = (least + most) / 2
            if most - least <= 1e-4 * float(high.max() - low.min()):
                break
            if self.evidence.upper([self._numbers(low, high, m)]).at(z)[0] >= 0:  # S18
                least = m
            else:
                most = m
        return most

    def _numbers(self, low: Floats, high: Floats, shift: float) -> Numbers:
        attributes, axis = whole_attributes(self.evidence, self.place)
        nobody = np.zeros(self.evidence.schema.sizes[self.place] - low.size)
        return Numbers(attributes, axis, np.append(low - shift, nobody), np.append(high - shift, nobody), self.marks)


def whole_attributes(evidence: Evidence, place: int) -> tuple[Attributes, int]:
    """The attributes on which one attribute is bounded, and its place among them."""
    attributes = evidence.attributes_for((place,)) or (place,)
    return attributes, attributes.index(place)


def _search(holds: Callable[[int], bool], start: int, size: int) -> int:
    """The least x in 0..size - 1 for which a rising condition holds, looked for around a start; size - 1 if none."""
    start = min(max(start, 0), size - 1)
    step, low, high = max(1, size // 64), -1, size - 1
    if holds(start):
        high = start
        while high > 0 and holds(max(high - step, 0)):
            high, step = max(high - step, 0), 2 * step
        low = high - step if high else -1
    else:
        low = start
        while low < size - 1 and not holds(min(low + step, size - 1)):
            low, step = min(low + step, size - 1), 2 * step
        high = min(low + step, size - 1)
    return halved(holds, max(low, -1), high)


def halved(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least x above ``low`` for which a rising condition holds, if it is taken to hold at ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
