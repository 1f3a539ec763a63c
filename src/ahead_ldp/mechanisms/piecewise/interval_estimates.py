"""Estimates on one attribute: a density over its codes, piece by piece, with the errors of the pieces' masses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.mechanisms.piecewise.piecewise_linear import Pieces
from ahead_ldp.partitions.covers import chunks
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import Workload


class Errors(Protocol):
    """What knows how uncertain the masses of the pieces are."""

    def variance(self, weights: Floats) -> Floats:  # (k, pieces) -> (k,)
        """Variance of weighted sums of the masses."""


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """The distribution of one attribute: pieces with lines inside them, and their masses."""

    pieces: Pieces
    masses: Floats  # (pieces,)
    errors: Errors

    @property
    def borders(self) -> Ints:  # (pieces + 1,)
        """The ends of the pieces."""
        return self.pieces.borders

    @property
    def density(self) -> Floats:  # (d,)
        """The frequency of every code."""
        return self.pieces.density(self.masses)

    def coverage(self, boxes: Floats) -> Floats:  # (k, 2) -> (k, pieces)
        """The share of each piece's codes in each range."""
        lo, hi = self.borders[:-1], self.borders[1:]
        inside = np.minimum(hi, boxes[:, 1:]) - np.maximum(lo, boxes[:, :1])
        return np.clip(inside / (hi - lo), 0.0, 1.0)

    def variance(self, coverage: Floats) -> Floats:  # (k, pieces) -> (k,)
        """Variance of the sums of pieces, cut ones by their share of codes: lines inside a piece keep their slope."""
        return self.errors.variance(coverage)


@dataclass(frozen=True, eq=False)
class IntervalEstimate(Estimate):
    """A margin that answers workloads on one attribute."""

    schema: Schema
    margin: Margin
    consistent: bool

    @cached_property
    def _sums(self) -> SummedArea:
        return SummedArea.of(self.margin.density)

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Sums of the density; standard errors of the pieces' masses, linearly propagated."""
        values = workload.add_up(self._sums.fractional_boxes(workload.boxes))
        if not errors:
            return Answers(values, np.full(workload.n, np.nan), np.zeros(workload.n, bool))
        pieces = self.margin.borders.size - 1
        variance, cut = np.zeros(workload.n), np.zeros(workload.n, bool)
        order = np.argsort(workload.owner, kind="stable")
        starts = np.searchsorted(workload.owner[order], np.arange(workload.n + 1))
        for part in chunks(workload.n, 4 * pieces):
            queries = range(*part.indices(workload.n))
            boxes = order[starts[queries.start] : starts[queries.stop]]
            share = self.margin.coverage(workload.boxes[boxes, 0])
            weights, place = np.zeros((len(queries), pieces)), workload.owner[boxes] - queries.start
            np.add.at(weights, place, share)
            np.logical_or.at(cut[part], place, ((share > 0) & (share < 1)).any(axis=1))
            variance[part] = self.margin.variance(weights)
        return Answers(values, np.sqrt(variance), cut)
