"""Estimates on one attribute: a density over its codes, piece by piece, with the errors of the pieces' masses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import NoisyBoxEstimate
from ahead_ldp.mechanisms.piecewise.piecewise_linear import Pieces
from ahead_ldp.partitions.shares import column_shares, cut
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Bools, Floats, Ints


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
        return column_shares(boxes, self.borders)

    def variance(self, coverage: Floats) -> Floats:  # (k, pieces) -> (k,)
        """Variance of the sums of pieces, cut ones by their share of codes: lines inside a piece keep their slope."""
        return self.errors.variance(coverage)


@dataclass(frozen=True, eq=False)
class IntervalEstimate(NoisyBoxEstimate):
    """A margin that answers workloads on one attribute: sums of its density, errors of its pieces' masses."""

    assumption: ClassVar[str] = "shares are even or run along straight lines inside the pieces that were not divided"
    schema: Schema
    margin: Margin
    consistent: bool

    @cached_property
    def _sums(self) -> SummedArea:
        return SummedArea.of(self.margin.density)

    def _values(self, boxes: Floats) -> Floats:
        return self._sums.fractional_boxes(boxes)

    def _assumes(self, boxes: Floats) -> Bools:
        return cut(self.margin.coverage(boxes[:, 0]))

    @property
    def _width(self) -> int:
        return self.margin.masses.size

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        weights = np.zeros((answers.size, self.margin.masses.size))
        np.add.at(weights, owner, self.margin.coverage(boxes[:, 0]))
        return self.margin.variance(weights)
