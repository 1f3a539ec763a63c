"""Steps of a Haar transform: from the shares of intervals to those of their halves, and back for errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ahead_ldp.schema.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class HaarContrasts:
    """What one group said about intervals: for each the share of its first half less that of its second.

    That is the coefficient of the interval's Haar wavelet, but for a factor.
    """

    contrasts: Floats  # (intervals,)
    halves: Ints  # (intervals, 2) codes in each half; 0 for one beyond the domain
    n: int

    @property
    def whole(self) -> Bools:
        """Intervals with two halves: the others pass on what they have."""
        return np.asarray(self.halves[:, 1] > 0)

    def split(self, f: Floats, clipped: bool) -> Floats:  # (intervals,) -> (halves,)
        """The shares of the halves from those of the intervals; without reports by their numbers of codes.

        ``clipped``: no contrast is larger than its interval's share, so no half is negative.
        """
        if self.n == 0:
            first = f * self.halves[:, 0] / self.halves.sum(axis=1)
        else:
            c = np.clip(self.contrasts, -f, f) if clipped else self.contrasts
            first = np.where(self.whole, (f + c) / 2, f)
        return np.stack([first, f - first], axis=1).reshape(-1)[self.halves.reshape(-1) > 0]

    def join(self, weights: Floats) -> tuple[Floats, Floats]:  # (k, halves) -> (k, intervals), (k, intervals)
        """``split`` transposed: how much intervals and contrasts count in a weighted sum over the halves."""
        pairs = np.zeros((len(weights), self.halves.size))
        pairs[:, : weights.shape[1]] = weights
        first, second = pairs[:, 0::2], pairs[:, 1::2]
        return np.where(self.whole, (first + second) / 2, first), np.where(self.whole, (first - second) / 2, 0.0)


def halves_of(widths: Ints) -> Ints:  # (halves,) -> (intervals, 2)
    """The widths of cells that are halves of intervals, in pairs; where the last one is beyond the domain, 0."""
    return np.append(widths, np.zeros(widths.size % 2, np.int64)).reshape(-1, 2)
