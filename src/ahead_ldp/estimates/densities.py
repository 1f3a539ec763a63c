"""Estimates that are a frequency for every combination of codes, answered from one summed-area table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.partitions.covers import chunks
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Bools, Floats, Ints
from ahead_ldp.schema.workloads import Workload


class BoxEstimate(Estimate):
    """Answers that are added up over the boxes of a query; kinds say what a box holds, and how sure that is."""

    __slots__ = ()
    has_bias: ClassVar[bool] = False  # whether ``_with_errors`` tells how far an assumed density may be off

    @abstractmethod
    def _values(self, boxes: Floats) -> Floats:  # (k, m, 2) -> (k,)
        """The answer to each box."""

    def _assumes(self, boxes: Floats) -> Bools:  # (k, m, 2) -> (k,)
        """Which boxes' answers also rest on an assumption: those that end inside a code, where it is evenness."""
        return np.asarray((boxes != np.floor(boxes)).any(axis=(1, 2)))

    @property
    @abstractmethod
    def _width(self) -> int:
        """Numbers held at a time for one box while its variance is worked out."""

    @abstractmethod
    def _with_errors(self, boxes: Floats, owner: Ints, queries: int) -> tuple[NDArray[Any], ...]:
        """Values, variances and marks of queries (q,); where ``has_bias`` also the bias as a variance."""

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers with standard errors; a query that ends inside a cell takes that share of it."""
        n = workload.n
        values, variance, marked, bias = np.zeros(n), np.full(n, np.nan), np.zeros(n, bool), np.zeros(n)
        if not errors:
            values = workload.add_up(self._values(workload.boxes))
        for part, boxes, owner in stretches(workload, 4 * self._width) if errors else ():
            columns = self._with_errors(boxes, owner, values[part].size)
            for whole, some in zip((values, variance, marked, bias), columns, strict=False):
                whole[part] = some
        bias_error = np.sqrt(bias) if self.has_bias and errors else None
        return Answers(values, np.sqrt(variance), marked, consistent=self.consistent, bias_error=bias_error)


class NoisyBoxEstimate(BoxEstimate):
    """Answers that are added up over boxes, and whose variance is found from the boxes alone."""

    __slots__ = ()

    @abstractmethod
    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:  # (k, m, 2), (k,), (q,) -> (q,)
        """The variance of the answers to queries, each the sum over the boxes it owns."""

    def _with_errors(self, boxes: Floats, owner: Ints, queries: int) -> tuple[NDArray[Any], ...]:
        values, marked = np.bincount(owner, self._values(boxes), queries).astype(float), np.zeros(queries, bool)
        np.logical_or.at(marked, owner, self._assumes(boxes))
        return values, self._variance(boxes, owner, values), marked


def stretches(workload: Workload, width: int) -> Iterator[tuple[slice, Floats, Ints]]:
    """Runs of queries that keep a (queries, width) matrix small: the run, its boxes, and their queries from 0 on."""
    order = np.argsort(workload.owner, kind="stable")
    starts = np.searchsorted(workload.owner[order], np.arange(workload.n + 1))
    for part in chunks(workload.n, width):
        first, stop, _ = part.indices(workload.n)
        rows = order[starts[first] : starts[stop]]
        yield part, workload.boxes[rows], workload.owner[rows] - first


@dataclass(frozen=True, eq=False)
class DensityEstimate(NoisyBoxEstimate):
    """A frequency for every combination of codes."""

    schema: Schema
    consistent: bool
    density: Floats  # (size, ...)

    @cached_property
    def _sums(self) -> SummedArea:
        return SummedArea.of(self.density)

    def _values(self, boxes: Floats) -> Floats:
        return self._sums.fractional_boxes(boxes)


def less_everyone(variance: Floats, answers: Floats, people: int) -> Floats:
    """The variance without what groups drawn from infinitely many people would add: they share out the participants."""
    f = np.clip(answers, 0.0, 1.0)
    return np.maximum(variance - f * (1 - f) / max(people, 1), 0.0)
