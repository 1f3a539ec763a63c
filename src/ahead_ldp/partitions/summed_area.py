"""Summed-area tables: the sum over any box of an m-dimensional array from a few look-ups."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class SummedArea:
    """Cumulative sums of an array, one longer on every axis: entry i is the sum over all cells below i.

    Integer arrays stay integers, so counts are exact.
    """

    table: NDArray[Any]

    @classmethod
    def of(cls, values: NDArray[Any]) -> SummedArea:
        """The table of an array of any number of axes."""
        dtype = np.int64 if np.issubdtype(values.dtype, np.integer) else np.float64
        table = np.zeros([size + 1 for size in values.shape], dtype)
        table[(slice(1, None),) * values.ndim] = values
        for axis in range(values.ndim):
            np.cumsum(table, axis=axis, out=table)
        return cls(table)

    def boxes(self, lo: Ints, hi: Ints) -> NDArray[Any]:  # (k, m), (k, m) -> (k,)
        """Sums over the half-open boxes [lo, hi) with integer corners; an empty box (hi <= lo) sums to 0."""
        hi = np.maximum(lo, hi)
        strides = np.array([s // self.table.itemsize for s in self.table.strides])
        flat = self.table.reshape(-1)
        at = (lo * strides, hi * strides)
        total = np.zeros(len(lo), self.table.dtype)
        for corner in product((0, 1), repeat=lo.shape[1]):
            place = sum(at[side][:, axis] for axis, side in enumerate(corner))
            term = flat[place]
            total += term if (lo.shape[1] - sum(corner)) % 2 == 0 else -term
        return total

    def fractional_boxes(self, boxes: Floats) -> NDArray[Any]:  # (k, m, 2) -> (k,)
        """Sums over half-open boxes whose ends may lie inside a cell, which is then shared out evenly."""
        whole = np.floor(boxes)
        if (whole == boxes).all():
            corners = boxes.astype(np.int64)
            return self.boxes(corners[..., 0], corners[..., 1])
        m = boxes.shape[1]
        total = np.zeros(len(boxes))
        strides = np.array([s // self.table.itemsize for s in self.table.strides])
        sizes = np.array(self.table.shape) - 1
        floor = np.minimum(whole.astype(np.int64), sizes[None, :, None] - 1).clip(0)
        share = boxes - floor
        flat = self.table.reshape(-1)
        for corner in product((0, 1), repeat=m):  # lower or upper end on each axis
            sign = 1 if (m - sum(corner)) % 2 == 0 else -1
            for step in product((0, 1), repeat=m):  # the grid line below the end, or the one above it
                weight = np.full(len(boxes), float(sign))
                place = np.zeros(len(boxes), np.int64)
                for axis in range(m):
                    s = share[:, axis, corner[axis]]
                    weight *= s if step[axis] else 1 - s
                    place += (floor[:, axis, corner[axis]] + step[axis]) * strides[axis]
                total += weight * flat[place]
        return total
