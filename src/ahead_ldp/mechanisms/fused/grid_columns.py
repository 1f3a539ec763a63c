"""Columns of one attribute in halves of equal mass: every depth cuts those of the one before."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.fused.margins import equal_mass_borders, mass_steps
from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Bins, and at every depth from 0 the bins at which columns begin: one column, two, about four and so on.

    The missing code and the codes of a nominal attribute with few of them are columns of their own from depth 1.
    """

    bins: Ints  # borders, 0 and the size included
    starts: tuple[Ints, ...]  # for each depth

    @classmethod
    def of(cls, density: Floats, axis: Axis, bins: int) -> Columns:
        """Columns of equal mass, as far as the bins allow; there are at most so many bins."""
        borders = equal_mass_borders(density, axis, bins)
        count = borders.size - 1
        if axis.nominal and axis.size <= bins:
            return cls(borders, (np.zeros(1, np.int64), np.arange(count))[: 1 + (count > 1)])
        steps = mass_steps(density)[borders]
        apart = [count - 1] if axis.missing and count > 1 else []
        columns, depths = [0], [np.zeros(1, np.int64)]
        while len(columns) + len(apart) < count or (apart and len(depths) == 1):
            ends = [*columns, count - len(apart)]
            columns = sorted({*columns, *(_middle(steps, lo, hi) for lo, hi in pairwise(ends))})
            depths.append(np.array([*columns, *apart]))
        return cls(borders, tuple(depths))

    @property
    def depth(self) -> int:
        """At which every bin is a column."""
        return len(self.starts) - 1

    def cuts(self, depth: int) -> list[int]:
        """The codes at which the columns of a depth begin, but for the first; the deepest ones beyond the last."""
        return [int(b) for b in self.bins[self.starts[min(depth, self.depth)][1:]]]


def _middle(steps: Ints, lo: int, hi: int) -> int:
    """The bin inside lo..hi at which the upper half of the mass begins; lo if there is only one."""
    if hi - lo < 2:
        return lo
    return lo + 1 + int(np.abs(2 * steps[lo + 1 : hi] - steps[lo] - steps[hi]).argmin())  # F4
