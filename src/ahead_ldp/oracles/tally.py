"""What a group's reports add up to: the only thing a mechanism is ever told about people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ahead_ldp.schema.arrays import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """``n`` reports and their int64 support counts. Tallies add, so any number of machines count and merge."""

    n: int
    counts: Ints  # (outcomes,)

    def __post_init__(self) -> None:
        """Refuse counts that no reports could give."""
        if self.counts.dtype != np.int64 or self.counts.ndim != 1:
            raise ValueError(f"expected counts to be a flat int64 array, got {self.counts.dtype} {self.counts.shape}")
        if self.n < 0 or (self.counts.size and not 0 <= self.counts.min() <= self.counts.max() <= self.n):
            raise ValueError(f"expected 0 <= counts <= n, got n = {self.n}")

    @classmethod
    def empty(cls, outcomes: int) -> Self:
        """No reports: no information."""
        return cls(0, np.zeros(outcomes, np.int64))

    def __add__(self, other: Tally) -> Tally:
        """The tally of both lots of reports."""
        if self.counts.shape != other.counts.shape:
            raise ValueError(f"expected tallies of one question, got {self.counts.size} and {other.counts.size} counts")
        return Tally(self.n + other.n, self.counts + other.counts)

    def __sub__(self, other: Tally) -> Tally:
        """The tally without reports that are in it."""
        return Tally(self.n - other.n, self.counts - other.counts)

    def __eq__(self, other: object) -> bool:
        """Equal numbers."""
        return isinstance(other, Tally) and self.n == other.n and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]
