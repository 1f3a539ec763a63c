"""Classes of densities around a shape, with a prior: what somebody knows who knows nearly everything.

A member is the shape times a smooth factor: the logarithm of the factor is a sum of cosines over the rank (the share
of the shape's people below), whose coefficients are normal and fall as 1/j^2. Each heap has a factor of its own too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tools.splits import TUNING_1

Floats = NDArray[np.float64]

COSINES = 32
SPREAD = 0.5  # standard deviation of the first cosine's coefficient, and of a heap's
HEAPS: Mapping[str, int] = {"heaped log-normal": 64}  # shapes of which a heap stands at every so-many codes
SHAPES = ("gaussian", "laplacian", "zipf 1.1", "two bumps", "slope", "heaped log-normal")
_MANY = 10**12  # people, so that a setting's own shares are those of its shape


@dataclass(frozen=True, eq=False)
class Class:
    """Densities shape * exp(basis @ theta), brought to sum 1; the coefficients are independent and normal."""

    shape: Floats  # (d,) of sum 1
    basis: Floats  # (d, k)
    spread: Floats  # (k,) standard deviations of the coefficients
    centre: Floats  # (k,) their means

    @classmethod
    def around(cls, shape: Floats, spread: float = SPREAD, every: int | None = None, cosines: int = COSINES) -> Class:
        """The class of a shape; ``every``: a heap stands at every so-many codes."""
        rank = np.cumsum(shape) - shape / 2
        waves: Floats = np.arange(1, cosines + 1, dtype=float)
        basis = np.sqrt(2.0) * np.cos(np.pi * rank[:, None] * waves)  # L1
        widths = spread / (waves * waves)
        if every:
            heaps = np.eye(shape.size)[:, ::every]
            basis, widths = np.hstack([basis, heaps]), np.append(widths, np.full(heaps.shape[1], spread))
        return cls(shape, basis, widths, np.zeros(widths.size))

    def part(self, spread: Floats, away: Floats) -> Class:  # (k,) at most the class's own, (k,) standard normal
        """A piece of the class, narrower and somewhere else: pieces at normal places make up the class."""
        left = np.sqrt(np.maximum(self.spread**2 - spread**2, 0.0))
        return Class(self.shape, self.basis, spread, self.centre + left * away)

    def draw(self, rng: Generator, count: int) -> Floats:  # -> (count, k)
        """Coefficients by the prior."""
        return self.centre + self.spread * rng.standard_normal((count, self.spread.size))

    def density(self, theta: Floats) -> Floats:  # (..., k) -> (..., d)
        """The members with these coefficients."""
        log = theta @ self.basis.T
        weight = self.shape * np.exp(log - log.max(axis=-1, keepdims=True))
        return weight / weight.sum(axis=-1, keepdims=True)


def shape_of(name: str) -> Floats:
    """The shares of one of the tuning list's shapes."""
    setting = next(s for s in TUNING_1 if s.name == name)
    counts = setting.draw(setting.sizes, _MANY, np.random.default_rng(0))
    return np.maximum(counts, 1) / np.maximum(counts, 1).sum()


def class_of(name: str, spread: float = SPREAD) -> Class:
    """The class around one of the tuning list's shapes."""
    return Class.around(shape_of(name), spread, HEAPS.get(name))
