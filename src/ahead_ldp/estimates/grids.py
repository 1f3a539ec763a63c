"""What a group said about the cells of a grid: grid methods and those that use grids of pairs start from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ahead_ldp.device.partition import GridForm
from ahead_ldp.oracles import LinearOracle, Oracle, Tally
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """What one group said: a frequency for every cell of a grid of some attributes."""

    attributes: tuple[int, ...]  # rising
    borders: tuple[Ints, ...]  # for each attribute the ends of its columns, 0 and the size included
    values: Floats  # (columns, ...)
    n: int
    oracle: LinearOracle

    @classmethod
    def of(cls, attributes: tuple[int, ...], partition: Partition, oracle: Oracle, tally: Tally) -> Self:
        """The grid that was asked for, with the oracle's estimates."""
        assert isinstance(oracle, LinearOracle)
        assert isinstance(partition.form, GridForm)
        axes = zip(partition.form.cuts, partition.axes, strict=True)
        borders = tuple(np.array([0, *cuts, axis.size]) for cuts, axis in axes)
        values = oracle.estimate(tally).reshape([b.size - 1 for b in borders])
        return cls(attributes, borders, values, tally.n, oracle)

    @property
    def precision(self) -> float:
        """Inverse of a cell's variance at f = 0; 0 without reports."""
        return self.oracle.precision(self.n)
