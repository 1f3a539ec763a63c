"""What every analysis starts from: one attribute's numbers and curve, and bounds of one functional after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import numpy as np

from ahead_ldp.device.canonical import Record
from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.origin import Asked, Origin
from ahead_ldp.estimates.slices import blocks, crossed_curve, monotone, slices
from ahead_ldp.estimates.strict.bounds import Evidence
from ahead_ldp.estimates.strict.functionals import Attributes, Functional, Numbers
from ahead_ldp.estimates.strict.reports import StrictReports
from ahead_ldp.estimates.strict.summaries import StrictQuantiles, whole_attributes
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.units import buckets, centres

NUISANCE = 0.1  # of the risk goes to a number that is only needed on the way (Q1); a choice, not measured
MEMBERS = 5  # values of such a number that are looked at (Q1); a choice, not measured
_POINTS = 4096  # blocks of codes of an estimate's own curve
_MARKS = np.arange(1, 16) / 16  # shares of the people at which bounds look closely, as those of a mean do
_CLOSE = 1e-4  # tolerance: of the range in which an end is looked for, and it is moved outward by as much
_PLACES = 128  # codes among which an end is looked for exactly; of more, to a hundredth or so, and outward
_STEPS = 40  # of such a search, at most

Bound = Callable[[float], float]


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """An origin whose people are a sample of many more: nothing is taken off for having asked all of them (S6)."""

    origin: Origin

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.origin.method

    @property
    def epsilon(self) -> str:
        """Epsilon as it was declared."""
        return self.origin.epsilon

    @property
    def people(self) -> int:
        """How many people's reports were counted."""
        return self.origin.people

    @property
    def answered(self) -> Sequence[tuple[Asked, Tally]]:
        """Every question that was asked, with its tally."""
        return self.origin.answered

    @property
    def links(self) -> Sequence[str]:
        """The chain after each wave."""
        return self.origin.links

    @property
    def everybody(self) -> int | None:
        """Not known: those who took part are some of many."""
        return None

    def record(self, answers: Floats) -> Record:
        """That of the origin."""
        return self.origin.record(answers)


def reports_of(estimate: Estimate) -> StrictReports:
    """What was asked and told; an estimate that does not know it is refused."""
    reports = estimate._reports
    if reports is None:
        raise ValueError("expected an estimate that knows its reports, from a simulation, a collection or a file")
    return cast(StrictReports, reports)


def assumed(estimates: Iterable[Estimate]) -> str:
    """What the model's intervals rest on that come from several estimates."""
    return ", and ".join(dict.fromkeys(estimate.assumes for estimate in estimates))


def levels_apart(level: float) -> tuple[float, float]:
    """The level of a number that is needed on the way, and that of the interval itself: their risks add up."""
    return 1 - NUISANCE * (1 - level), 1 - (1 - NUISANCE) * (1 - level)  # Q1


def last_place(bound: Bound, least: float, most: float) -> float:
    """The largest place in a range at which a falling bound is not below 0; its first end if there is none.

    By the secant through the ends of a range that is kept (Illinois), then moved outward by the tolerance.
    """
    low, high, tolerance = least, most, _CLOSE * (most - least)
    at_low, at_high = bound(least), bound(most)
    if at_high >= 0:
        return most
    if at_low < 0:
        return least
    side = 0
    for _ in range(_STEPS):
        if high - low <= tolerance:
            break
        at = (low * at_high - high * at_low) / (at_high - at_low)
        at = min(max(at, low + tolerance / 2), high - tolerance / 2)
        here = bound(at)
        if here >= 0:
            low, at_low, at_high = at, here, at_high / 2 if side > 0 else at_high
            side = 1
        else:
            high, at_high, at_low = at, here, at_low / 2 if side < 0 else at_low
            side = -1
    return min(high + tolerance, most)


def first_place(bound: Bound, least: float, most: float) -> float:
    """The least place in a range at which a rising bound is not below 0; its last end if there is none."""
    return -last_place(partial(_mirrored, bound), -most, -least)


def last_of_all(bounds: Sequence[Bound], least: float, most: float) -> float:
    """The largest of the last places of some bounds: one that is below 0 at the largest so far needs no search."""
    place = last_place(bounds[0], least, most)
    for bound in bounds[1:]:
        if place < most and bound(place) >= 0:
            place = last_place(bound, place, most)
    return place


def first_near(bound: Callable[[int], float], own: Floats) -> int:
    """The least place at which a rising bound is not below 0, or a hundredth of all places before it; else the last.

    ``own`` (places,) is what the estimate itself has in place of the bound. The two differ by a margin that changes
    little from place to place, so the next place to look at is where ``own`` is minus the margin found last; or the
    middle, where that was of little help three times.
    """
    low, high, close, rising = -1, own.size - 1, max(1, own.size // _PLACES), np.maximum.accumulate(own)
    at, slow = int(np.searchsorted(rising, 0.0)), 0
    while high - low > close:
        place, before = min(max(at, low + 1), high - 1), high - low
        here = bound(place)
        low, high = (low, place) if here >= 0 else (place, high)
        slow = slow + 1 if 2 * (high - low) > before else 0
        at = int(np.searchsorted(rising, rising[place] - here)) if slow < 3 else (low + high) // 2
    return min(low + 1, own.size - 1)


def first_of_all(bounds: Sequence[Bound], least: float, most: float) -> float:
    """The least of the first places of some rising bounds."""
    mirrored = [partial(_mirrored, bound) for bound in bounds]
    return -last_of_all(mirrored, -most, -least)


def _mirrored(bound: Bound, x: float) -> float:
    return bound(-x)


def upper_at(evidence: Evidence, functional: Functional, z: float) -> float:
    """The upper bound of one functional."""
    return float(evidence.upper([functional]).at(z)[0])


@dataclass(frozen=True, eq=False)
class Line:
    """One numeric attribute of an estimate: the numbers of its codes, and where bounds look closely."""

    estimate: Estimate
    attribute: Attribute
    evidence: StrictReports  # what was asked and told

    @classmethod
    def of(
        cls, estimate: Estimate, name: str | None, positive: bool = False, evidence: StrictReports | None = None
    ) -> Line:
        """An attribute by its name, which may be left out if there is only one. Evidence left out is the estimate's."""
        a = estimate._attribute(name, ordered=True)
        if a.labels:
            raise ValueError(f"expected a numeric attribute, got the categories of {a.name}")
        if positive and (a.kind not in ("integer", "real") or a.lo < 0 or a.hi <= 0):
            raise ValueError(f"expected numbers that are not negative for shares of a total, got those of {a.name}")
        return cls(estimate, a, evidence or reports_of(estimate))

    @cached_property
    def place(self) -> int:
        """Of the attribute in the schema."""
        return self.estimate.schema.index(self.attribute.name)

    @cached_property
    def codes(self) -> tuple[Floats, Floats]:
        """The least and the largest number of every code with a value."""
        low, high = buckets(self.attribute, np.arange(self.attribute.ordered_size))
        return low, high - (self.attribute.kind != "real")

    @cached_property
    def marks(self) -> Floats:
        """Codes at which bounds look closely, both ends included."""
        a = self.attribute
        places, curve = crossed_curve(self.estimate._shares, self.estimate.schema, a, _MARKS, _MARKS.size)
        return np.unique(np.round([0.0, *np.interp(_MARKS, curve, places), float(a.ordered_size)]))

    @cached_property
    def density(self) -> tuple[Floats, Floats]:
        """Numbers, and the share of people that the estimate has at each, among those who have a value."""
        ends = self._blocks
        below = self.estimate._shares(
            slices(self.estimate.schema, self.attribute.name, np.zeros(ends.size), ends.astype(float))
        )
        return centres(self.attribute, ends[:-1], ends[1:] - 1), np.diff(monotone(below))

    @cached_property
    def _blocks(self) -> Ints:
        return blocks(self.attribute.ordered_size, _POINTS)

    @cached_property
    def present(self) -> float:
        """The share of people who have a value."""
        ends = np.array([0.0]), np.array([float(self.attribute.ordered_size)])
        return max(float(self.estimate._shares(slices(self.estimate.schema, self.attribute.name, *ends))[0]), 1e-9)

    def error(self, weights: Floats) -> float:
        """The model's standard error of a number whose linear part has these weights on the density's blocks."""
        ends = self._blocks.astype(float)
        workload = slices(self.estimate.schema, self.attribute.name, ends[:-1], ends[1:])
        return float(self.estimate.linear(workload, weights[None] / self.present).spread[0])  # Q12

    def numbers(self, low: Floats, high: Floats, near: Floats | None = None) -> Numbers:
        """The mean of a number that is between two values for each code, and 0 for those who have no value."""
        attributes, axis = whole_attributes(self.evidence, self.place)
        nobody = np.zeros(self.attribute.size - low.size)
        marks = self.marks if near is None else np.unique(np.append(self.marks, near))
        return Numbers(attributes, axis, np.append(low, nobody), np.append(high, nobody), marks)

    def mean_ends(self, low: Floats, high: Floats, z: float) -> tuple[float, float]:
        """The means of a number that the reports allow, among those who have a value (S18)."""
        if self.attribute.missing != "cell":
            most, least = self.evidence.both([self.numbers(low, high)]).at(z)
            return -float(least), float(most)
        first, last = float(low.min()), float(high.max())
        most = last_place(lambda m: upper_at(self.evidence, self.numbers(low - m, high - m), z), first, last)
        least = first_place(lambda m: upper_at(self.evidence, self.numbers(m - high, m - low), z), first, last)
        return least, most

    def quantile_ends(self, p: float, level: float) -> tuple[float, float]:
        """The numbers that the quantile of a level may be."""
        _, shares = self.density
        near = np.searchsorted(np.cumsum(shares), p) * self.attribute.ordered_size / shares.size
        first, last = StrictQuantiles(
            self.evidence, self.attribute, self.place, np.array([p]), np.array([float(int(near))])
        ).codes(level)
        low, high = self.codes
        return float(low[int(first[0])]), float(high[int(last[0]) - 1])


def restricted_to(sizes: tuple[int, ...], attributes: Attributes, sides: dict[int, tuple[float, float]]) -> Floats:
    """A box (m, 2) of some attributes: those that are named have the side given, the others all codes."""
    box = np.zeros((len(attributes), 2))
    for i, attribute in enumerate(attributes):
        box[i] = sides.get(attribute, (0.0, float(sizes[attribute])))
    return box
