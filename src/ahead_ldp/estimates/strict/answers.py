"""Strict intervals of answers to a workload: box queries of any number of attributes, and sums of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ahead_ldp.estimates.bands import bonferroni_quantile, pointwise_quantile, shared_level
from ahead_ldp.estimates.strict.bounds import Bounds, Evidence, Interval
from ahead_ldp.estimates.strict.functionals import Attributes, Functional, Shares
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.workloads import Workload


@dataclass(frozen=True, slots=True)
class _Known:
    """An answer that no report is needed for: everybody, or nobody."""

    value: float


@dataclass(frozen=True, slots=True)
class _Own:
    """An answer with a bound of its own, the i-th."""

    i: int


@dataclass(frozen=True, slots=True)
class _Joined:
    """A box on three or more attributes: bounds of its sides and of pairs of them, by their places."""

    singles: tuple[int, ...]
    pairs: tuple[tuple[int, int, int], ...]  # (side, side, place)

    def bounds(self, low: Floats, high: Floats) -> tuple[float, float]:
        """Frechet's: at most the least pair; at least all sides less the times that somebody may be counted twice."""
        most = min(float(high[place]) for _, _, place in self.pairs)
        sides = np.array([low[i] for i in self.singles])
        least = sides.sum() - (sides.size - 1)
        for a, b, place in self.pairs:
            others = np.delete(sides, [a, b])
            least = max(least, low[place] + others.sum() - others.size)  # S21
        return max(0.0, float(least)), most


_Plan = _Known | _Own | tuple[_Joined, ...]


@dataclass(frozen=True, eq=False)
class StrictAnswers:
    """Strict intervals of the answers to a workload, for any level; worked out when they are first asked for."""

    evidence: Evidence
    workload: Workload
    cache: dict[tuple[float, bool], Interval] = field(default_factory=dict)

    @cached_property
    def _planned(self) -> tuple[list[_Plan], Bounds]:
        functionals = list[Functional]()
        order = np.argsort(self.workload.owner, kind="stable")
        starts = np.searchsorted(self.workload.owner[order], np.arange(self.workload.n + 1))
        plans = [self._plan(self.workload.reach[order[a:b]], functionals) for a, b in pairwise(starts.tolist())]
        return plans, self.evidence.both(functionals)

    def _plan(self, boxes: Floats, functionals: list[Functional]) -> _Plan:
        boxes = boxes[(boxes[..., 0] < boxes[..., 1]).all(axis=1)]
        restricted = (boxes[..., 0] > 0) | (boxes[..., 1] < np.array(self.workload.sizes))
        if not len(boxes) or not restricted.any(axis=1).all():
            return _Known(float(bool(len(boxes))))
        attributes = self.evidence.attributes_for(_places(restricted.any(axis=0)))
        if attributes is not None:
            functionals.append(Shares(attributes, ((1.0, boxes[:, list(attributes)]),)))
            return _Own(len(functionals) - 1)
        return tuple(self._joined(box, _places(own), functionals) for box, own in zip(boxes, restricted, strict=True))

    def _joined(self, box: Floats, own: Attributes, functionals: list[Functional]) -> _Joined:
        def place(some: Attributes) -> int:
            """The place of a bound of its own on some attributes."""
            functionals.append(Shares(some, ((1.0, box[None, list(some)]),)))
            return len(functionals) - 1

        singles = tuple(place((a,)) for a in own)
        pairs = combinations(range(len(own)), 2)
        return _Joined(singles, tuple((i, j, place((own[i], own[j]))) for i, j in pairs))

    def interval(self, level: float, simultaneous: bool = False) -> Interval:
        """The intervals: each for itself, or all at once."""
        key = (level, simultaneous and self.workload.n > 1)
        if key not in self.cache:
            self.cache[key] = self._interval(*key)
        return self.cache[key]

    def _interval(self, level: float, simultaneous: bool) -> Interval:
        plans, bounds = self._planned
        count = bounds.centre.size // 2
        z = bounds.critical(level) if simultaneous else pointwise_quantile(level)
        own = bounds.at(z)
        low, high = np.zeros(len(plans)), np.zeros(len(plans))
        for i, plan in enumerate(plans):
            if isinstance(plan, _Known):
                low[i] = high[i] = plan.value
            elif isinstance(plan, _Own):
                low[i], high[i] = -own[count + plan.i], own[plan.i]
            else:
                parts = sum(len(part.singles) + len(part.pairs) for part in plan)
                joined = bounds.at(max(z, bonferroni_quantile(count if simultaneous else parts, level)))
                ends = [part.bounds(-joined[count:], joined[:count]) for part in plan]
                low[i], high[i] = np.sum(ends, axis=0)
        unsure = np.array([not isinstance(plan, _Known) for plan in plans], bool)
        return _at_least_one(low, high, unsure, self.evidence.origin.people)


@dataclass(frozen=True, eq=False)
class StrictSums:
    """Strict intervals of weighted sums of the answers to a workload: each is one functional where that is possible.

    Where no attributes hold all of a sum's queries, its interval is the sum of theirs, all at once.
    """

    evidence: Evidence
    workload: Workload
    weights: Floats  # (k, n)

    @cached_property
    def _bounds(self) -> tuple[list[Functional | None], Bounds]:
        functionals = [self._functional(row) for row in self.weights]
        return functionals, self.evidence.both([f for f in functionals if f is not None])

    def _functional(self, row: Floats) -> Functional | None:
        mine = (row != 0)[self.workload.owner]
        boxes, owner = self.workload.reach[mine], self.workload.owner[mine]
        restricted = (boxes[..., 0] > 0) | (boxes[..., 1] < np.array(self.workload.sizes))
        attributes = self.evidence.attributes_for(_places(restricted.any(axis=0)))
        if not attributes:
            return None
        boxes = boxes[:, list(attributes)]
        return Shares(attributes, tuple((float(row[i]), boxes[owner == i]) for i in np.unique(owner).tolist()))

    def interval(self, level: float, simultaneous: bool = False) -> Interval:
        """The intervals: each for itself, or all at once."""
        functionals, bounds = self._bounds
        count = bounds.centre.size // 2
        together = simultaneous and len(self.weights) > 1
        each = shared_level(level, len(self.weights)) if together else level
        own = bounds.at(bounds.critical(level) if together else pointwise_quantile(level))
        low, high, place = np.zeros(len(self.weights)), np.zeros(len(self.weights)), 0
        for k, (functional, row) in enumerate(zip(functionals, self.weights, strict=True)):
            if functional is None:
                low[k], high[k] = self._added(row, each)
            else:
                low[k], high[k], place = -own[count + place], own[place], place + 1
        return low, high

    def _added(self, row: Floats, level: float) -> tuple[float, float]:
        low, high = StrictAnswers(self.evidence, self.workload).interval(level, simultaneous=True)
        return float(np.where(row > 0, row * low, row * high).sum()), float(
            np.where(row > 0, row * high, row * low).sum()
        )


def _at_least_one(low: Floats, high: Floats, unsure: Bools, people: int) -> Interval:
    """Intervals within [0, 1]; where bounds meet or cross by a rare chance, they are parted by a person's share."""
    low, high = np.minimum(low, high), np.maximum(low, high)
    low, high = np.clip(low, 0.0, 1.0) + 0.0, np.clip(high, 0.0, 1.0)  # never -0
    person = 1 / max(people, 1)  # S23
    short = unsure & (high - low < person)
    return np.where(short, np.maximum(low - person, 0.0), low), np.where(short, np.minimum(high + person, 1.0), high)


def _places(mask: Any) -> Attributes:
    return tuple(np.flatnonzero(mask).tolist())
