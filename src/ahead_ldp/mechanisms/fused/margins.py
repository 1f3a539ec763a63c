"""One attribute among several: its density, how sure it is, bins of equal mass, and what pairs add to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.grain import FUSED_SHARE
from ahead_ldp.schema.arrays import Floats, Ints

_KEPT_SHARE = 0.05  # of a part's mass, however much pairs disagree with it (choice F5)


def equal_mass_borders(density: Floats, axis: Axis, bins: int) -> Ints:
    """Borders of at most so many bins whose masses are as equal as the codes allow, 0 and the size included.

    The missing code is a bin of its own; so is every code of a nominal attribute that has no more than ``bins``.
    """
    if axis.nominal and axis.size <= bins:
        return np.arange(axis.size + 1)
    ends = [axis.size - 1] if axis.missing and axis.size > 1 else []
    ordered = axis.size - axis.missing
    cuts = _nearest(mass_steps(density[:ordered]), np.arange(ordered + 1), bins)
    return np.unique([0, *cuts, *ends, axis.size])


def mass_steps(density: Floats) -> Ints:
    """The distribution function at every border of the codes, of sum 2^30; even where there is no mass."""
    density = np.maximum(density, 0.0)
    total = density.sum()
    f = density / total if total > 0 else np.full(density.size, 1 / max(density.size, 1))
    return np.rint(np.concatenate([[0.0], np.cumsum(f)]) * FUSED_SHARE).astype(np.int64)  # A12


def _nearest(steps: Ints, allowed: Ints, parts: int) -> Ints:
    """The allowed borders nearest to equal steps, the lower one of equals."""
    wanted = np.arange(1, parts, dtype=np.int64) * FUSED_SHARE // parts
    nearest = allowed[np.abs(steps[allowed][None] - wanted[:, None]).argmin(axis=1)]
    return np.unique(nearest[(nearest > 0) & (nearest < steps.size)])


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """A distribution over the codes of an attribute, and the covariance of its errors on some parts of them.

    Parts are finer than bins. ``known`` says whether anybody told about the attribute.
    """

    density: Floats  # (size,)
    bins: Ints  # borders
    parts: Ints  # borders, those of the bins among them
    covariance: Floats  # (parts, parts)
    known: bool = True

    @property
    def masses(self) -> Floats:
        """Of the bins."""
        return np.add.reduceat(self.density, self.bins[:-1])

    def below(self, x: Floats) -> Floats:
        """The distribution function, even inside a code."""
        return np.interp(x, np.arange(self.density.size + 1), np.concatenate([[0.0], np.cumsum(self.density)]))

    def shares(self, sides: Floats, borders: Ints) -> Floats:  # (n, 2), (k + 1,) -> (n, k)
        """The share of the mass between neighbouring borders that is inside; of the width where there is no mass."""
        low = np.clip(sides[:, :1], borders[:-1], borders[1:])
        high = np.clip(sides[:, 1:], borders[:-1], borders[1:])
        mass = np.diff(self.below(borders.astype(float)))
        inside = self.below(high) - self.below(low)
        return np.divide(inside, mass, out=(high - low) / np.diff(borders), where=mass > 1e-12)

    def agreed(self, sums: Sequence[tuple[Ints, Floats, float]]) -> Margin:
        """After taking in independent estimates of column masses: first codes of the columns, values, variance.

        The least-squares combination with what is known; inside a part the density keeps its shape.
        """
        informed = [s for s in sums if np.isfinite(s[2]) and s[0].size > 1]
        if not informed or not self.known:
            return self
        mass = np.add.reduceat(self.density, self.parts[:-1])
        column = [np.searchsorted(starts, self.parts[:-1], side="right") - 1 for starts, _, _ in informed]
        rows = [(c == np.arange(s[0].size)[:, None]).astype(float) for c, s in zip(column, informed, strict=True)]
        lack = [values - row @ mass for row, (_, values, _) in zip(rows, informed, strict=True)]
        noise, a = [np.full(starts.size, variance) for starts, _, variance in informed], np.concatenate(rows)
        gain = np.linalg.solve(a @ self.covariance @ a.T + np.diag(np.concatenate(noise)), a @ self.covariance).T  # F5
        moved = np.maximum(mass + gain @ np.concatenate(lack), _KEPT_SHARE * mass)  # F5
        ratio = np.divide(moved, mass, out=np.ones_like(mass), where=mass > 0)
        density = self.density * np.repeat(ratio, np.diff(self.parts))
        covariance = self.covariance - gain @ a @ self.covariance  # F5
        return replace(self, density=density / density.sum(), covariance=(covariance + covariance.T) / 2)
