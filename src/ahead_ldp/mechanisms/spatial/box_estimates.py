"""Estimates from boxes that tile a domain: shares of the boxes, evenly spread inside each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import NoisyBoxEstimate, less_everyone
from ahead_ldp.partitions.shares import shares
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Bools, Floats, Ints


class Errors(Protocol):
    """What knows how uncertain the shares of the boxes are."""

    @property
    def people(self) -> int:
        """Everybody who answered."""

    @property
    def width(self) -> int:
        """Numbers held at a time for one weighted sum."""

    def variance(self, weights: Floats) -> Floats:  # (k, boxes) -> (k,)
        """Variance of weighted sums of the boxes' shares, the chance of who fell into which group included."""


@dataclass(frozen=True, eq=False)
class BoxesEstimate(NoisyBoxEstimate):
    """Boxes of codes that tile the domain, in any order; a query takes a box's share by the part that it covers."""

    assumption: ClassVar[str] = "people lie about evenly inside the cells that were not divided further"
    schema: Schema
    consistent: bool
    lo: Ints  # (boxes, m)
    hi: Ints  # (boxes, m)
    shares: Floats  # (boxes,)
    errors: Errors

    @cached_property
    def _sums(self) -> SummedArea:
        return SummedArea.of(density(self.schema.sizes, self.lo, self.hi, self.shares))

    def _values(self, boxes: Floats) -> Floats:
        return self._sums.fractional_boxes(boxes)

    def _covered(self, boxes: Floats) -> Floats:  # (k, m, 2) -> (k, boxes)
        part = np.ones((len(boxes), self.shares.size))
        for a in range(self.lo.shape[1]):
            part *= shares(boxes[:, a], self.lo[:, a], self.hi[:, a])
        return part

    def _assumes(self, boxes: Floats) -> Bools:
        covered = self._covered(boxes)
        return np.asarray(((covered > 0) & (covered < 1)).any(axis=1))

    @property
    def _width(self) -> int:
        return max(self.shares.size, self.errors.width)

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        weights = np.zeros((answers.size, self.shares.size))
        np.add.at(weights, owner, self._covered(boxes))
        return less_everyone(self.errors.variance(weights), answers, self.errors.people)


def density(sizes: tuple[int, ...], lo: Ints, hi: Ints, masses: Floats) -> Floats:  # -> (size, ...)
    """The share of every combination of codes, by an m-dimensional difference array."""
    marks = np.zeros([size + 1 for size in sizes])
    height = masses / (hi - lo).prod(axis=1)
    for corner in np.ndindex(*(2,) * len(sizes)):
        at = tuple((hi if side else lo)[:, a] for a, side in enumerate(corner))
        np.add.at(marks, at, height if sum(corner) % 2 == 0 else -height)
    for axis in range(len(sizes)):
        np.cumsum(marks, axis=axis, out=marks)
    return marks[tuple(slice(size) for size in sizes)]
