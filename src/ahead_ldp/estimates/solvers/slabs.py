"""Slabs of a table: runs of columns on some axes, everything on the others; their sums, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Slabs:
    """A coarser view of tables of one shape: neighbouring columns go together, axes that are not named go whole.

    Tables may have any number of leading axes. ``spread`` is the transpose of ``sums``.
    """

    shape: tuple[int, ...]  # of the tables
    axes: tuple[int, ...]  # that are kept, in rising order
    starts: tuple[Ints, ...]  # for each kept axis, the columns at which a slab begins

    @classmethod
    def of(cls, borders: Sequence[Ints], axes: Sequence[int], coarse: Sequence[Ints]) -> Self:
        """The slabs between ``coarse`` borders, one array per kept axis, of a table with the given borders."""
        shape = tuple(len(b) - 1 for b in borders)
        starts = [np.searchsorted(borders[a], c[:-1]) for a, c in zip(axes, coarse, strict=True)]
        return cls(shape, tuple(axes), tuple(starts))

    @classmethod
    def kept(cls, shape: Sequence[int], axes: Sequence[int]) -> Self:
        """The sums over all other axes, column by column of those that are kept."""
        return cls(tuple(shape), tuple(axes), tuple(np.arange(shape[a]) for a in axes))

    @property
    def counts(self) -> Floats:  # (slabs...)
        """How many cells of the table make up each slab."""
        return self.sums(np.ones(self.shape))

    @property
    def labels(self) -> Ints:  # (cells...)
        """The number of the slab that each cell is in."""
        numbers = np.arange(np.prod([s.size for s in self.starts], dtype=np.int64), dtype=np.float64)
        return self.spread(numbers.reshape([s.size for s in self.starts])).astype(np.int64)

    def sums(self, table: Floats) -> Floats:  # (..., cells...) -> (..., slabs...)
        """The sum over each slab."""
        ndim = len(self.shape)
        others = tuple(axis - ndim for axis in range(ndim) if axis not in self.axes)
        total = table.sum(axis=others) if others else table
        for place, (axis, starts) in enumerate(zip(self.axes, self.starts, strict=True)):
            if starts.size < self.shape[axis]:
                total = np.add.reduceat(total, starts, axis=place - len(self.axes))
        return total

    def spread(self, numbers: Floats) -> Floats:  # (..., slabs...) -> (..., cells...)
        """Each cell gets the number of its slab."""
        ndim = len(self.shape)
        for place, (axis, starts) in enumerate(zip(self.axes, self.starts, strict=True)):
            if starts.size < self.shape[axis]:
                lengths = np.diff(starts, append=self.shape[axis])
                numbers = np.repeat(numbers, lengths, axis=place - len(self.axes))
        lead = numbers.shape[: numbers.ndim - len(self.axes)]
        wide = tuple(self.shape[axis] if axis in self.axes else 1 for axis in range(ndim))
        return np.broadcast_to(numbers.reshape(lead + wide), lead + self.shape)
