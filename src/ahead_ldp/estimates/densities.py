"""Estimates that are a frequency for every combination of codes, answered from one summed-area table."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.partitions.covers import chunks
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Bools, Floats, Ints
from ahead_ldp.schema.workloads import Workload


@dataclass(frozen=True, eq=False)
class BoxEstimate(Estimate):
    """Answers that are added up over the boxes of a query; kinds say what a box holds, and how sure that is."""

    schema: Schema
    consistent: bool

    @abstractmethod
    def _values(self, boxes: Floats) -> Floats:  # (k, m, 2) -> (k,)
        """The answer to each box."""

    @abstractmethod
    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:  # (k, m, 2), (k,), (q,) -> (q,)
        """The variance of the answers to queries, each the sum over the boxes it owns."""

    def _assumes(self, boxes: Floats) -> Bools:  # (k, m, 2) -> (k,)
        """Which boxes' answers also rest on an assumption: those that end inside a code, where it is evenness."""
        found: Bools = (boxes != np.floor(boxes)).any(axis=(1, 2))
        return found

    @property
    @abstractmethod
    def _width(self) -> int:
        """Numbers held at a time for one box while its variance is worked out."""

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers with standard errors; a query that ends inside a code takes that share of it."""
        values = workload.add_up(self._values(workload.boxes))
        if not errors:
            return Answers(values, np.full(workload.n, np.nan), np.zeros(workload.n, bool))
        cut = np.zeros(workload.n, bool)
        np.logical_or.at(cut, workload.owner, self._assumes(workload.boxes))
        variance = np.zeros(workload.n)
        order = np.argsort(workload.owner, kind="stable")
        starts = np.searchsorted(workload.owner[order], np.arange(workload.n + 1))
        for part in chunks(workload.n, 4 * self._width):
            first, stop, _ = part.indices(workload.n)
            boxes = order[starts[first] : starts[stop]]
            owner = workload.owner[boxes] - first
            variance[part] = self._variance(workload.boxes[boxes], owner, values[part])
        return Answers(values, np.sqrt(variance), cut)


@dataclass(frozen=True, eq=False)
class DensityEstimate(BoxEstimate):
    """A frequency for every combination of codes."""

    density: Floats  # (size, ...)

    @cached_property
    def _sums(self) -> SummedArea:
        return SummedArea.of(self.density)

    def _values(self, boxes: Floats) -> Floats:
        found: Floats = self._sums.fractional_boxes(boxes)
        return found


def inside(sides: Floats, size: int) -> Floats:  # (k, 2) -> (k, size)
    """How much of each code lies inside each side."""
    codes = np.arange(size)
    return np.clip(np.minimum(sides[:, 1:], codes + 1) - np.maximum(sides[:, :1], codes), 0.0, 1.0)


def less_everyone(variance: Floats, answers: Floats, people: int) -> Floats:
    """The variance without what groups drawn from infinitely many people would add: they share out the participants."""
    f = np.clip(answers, 0.0, 1.0)
    return np.maximum(variance - f * (1 - f) / max(people, 1), 0.0)
