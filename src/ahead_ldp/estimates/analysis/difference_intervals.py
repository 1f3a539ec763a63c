"""Strict intervals of what changed between two estimates: their reports are independent, so are their errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ahead_ldp.estimates.bands import pointwise_quantile, shared_level
from ahead_ldp.estimates.strict.answers import StrictAnswers
from ahead_ldp.estimates.strict.bounds import Bounds, Evidence
from ahead_ldp.estimates.strict.functionals import Functional, Shares
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.workloads import Workload


@dataclass(frozen=True, eq=False)
class DifferenceIntervals:
    """Strict intervals of differences of shares of two estimates: one bound for both, as their noise is independent."""

    evidence: tuple[Evidence, Evidence]
    workloads: tuple[Workload, Workload]
    same: bool
    cache: dict[tuple[float, bool], tuple[Floats, Floats]] = field(default_factory=dict)

    def interval(self, level: float, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Each for itself, or all at once."""
        shared_level(level, 1)
        key = (level, simultaneous and self.workloads[0].n > 1)
        if key not in self.cache:
            self.cache[key] = self._interval(*key)
        return self.cache[key]

    @cached_property
    def _functionals(self) -> list[tuple[Functional, Functional] | None]:
        made = [[_functional(e, w, i) for i in range(w.n)] for e, w in zip(self.evidence, self.workloads, strict=True)]
        return [None if a is None or b is None else (a, b) for a, b in zip(*made, strict=True)]

    @cached_property
    def _bounds(self) -> Bounds:
        known = [pair for pair in self._functionals if pair is not None]
        before, after = self.evidence
        return added(after.both([b for _, b in known]), before.both([a.negative() for a, _ in known]))

    def _interval(self, level: float, simultaneous: bool) -> tuple[Floats, Floats]:
        n = self.workloads[0].n
        low, high = np.zeros(n), np.zeros(n)
        if self.same:
            return low, high
        known = np.array([pair is not None for pair in self._functionals], bool)
        if known.any():
            count = int(known.sum())
            others = n - count
            own = shared_level(level, 2) if simultaneous and others else level
            z = self._bounds.critical(own) if simultaneous and count > 1 else pointwise_quantile(own)
            ends = self._bounds.at(z)
            low[known], high[known] = -ends[count:], ends[:count]
        if not known.all():
            each = float(np.sqrt(shared_level(level, 2 * int((~known).sum())) if simultaneous else level))  # Q14
            for i in np.flatnonzero(~known).tolist():
                (a, b), (c, d) = (_alone(e, w, i, each) for e, w in zip(self.evidence, self.workloads, strict=True))
                low[i], high[i] = c - b, d - a
        return np.minimum(low, high), np.maximum(low, high)


def _functional(evidence: Evidence, workload: Workload, i: int) -> Functional | None:
    """The share of one query, if some attributes hold it that were asked about together; None also for all and none."""
    boxes = workload.reach[workload.owner == i]
    boxes = boxes[(boxes[..., 0] < boxes[..., 1]).all(axis=1)]
    restricted = (boxes[..., 0] > 0) | (boxes[..., 1] < np.array(workload.sizes))
    if not len(boxes) or not restricted.any(axis=1).all():
        return None
    attributes = evidence.attributes_for(tuple(np.flatnonzero(restricted.any(axis=0)).tolist()))
    return None if not attributes else Shares(attributes, ((1.0, boxes[:, list(attributes)]),))


def _alone(evidence: Evidence, workload: Workload, i: int, level: float) -> tuple[float, float]:
    mine = workload.owner == i
    one = Workload(workload.sizes, workload.reach[mine], np.zeros(int(mine.sum()), np.int64), 1)
    low, high = StrictAnswers(evidence, one).interval(level)
    return float(low[0]), float(high[0])


def added(one: Bounds, other: Bounds) -> Bounds:
    """Upper bounds of sums of two functionals, each from reports of its own: errors add up in squares."""
    directions = []
    for (a, x), (b, y), s, t in zip(one.directions, other.directions, one.error, other.error, strict=True):
        both = np.concatenate([s * _one_long(x), t * _one_long(y)])
        directions.append(((*a, -1, *b), both))
    error = np.hypot(one.error, other.error)  # Q13
    return Bounds(one.centre + other.centre, error, one.most + other.most, tuple(directions))  # Q13


def _one_long(x: Floats) -> Floats:
    return x / max(float(np.linalg.norm(x)), 1e-300)
