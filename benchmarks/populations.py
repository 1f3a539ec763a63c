"""The people that are measured on: synthetic, seeded, of the shapes that the published figures were measured on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ahead_ldp import Schema, as_schema

Ints = NDArray[np.int64]


def schema(*sizes: int) -> Schema:
    """Attributes of codes 0 .. size-1."""
    return as_schema([f"a{i}=integer,0,{size - 1}" for i, size in enumerate(sizes)])


def zipf_codes(n: int, d: int) -> Ints:
    """n codes with P(k) ~ (k+1)^-1.1."""
    weight = (np.arange(d) + 1.0) ** -1.1
    return np.random.default_rng(1).choice(d, size=n, p=weight / weight.sum())


def gaussian(n: int, d: int) -> Ints:  # -> (d,)
    """A histogram of n people, N(0, 1) on [-5, 5] in d equal buckets."""
    middle = np.linspace(-5, 5, 2 * d + 1)[1::2]
    weight = np.exp(-(middle**2) / 2)
    return np.random.default_rng(1).multinomial(n, weight / weight.sum())


def gaussian_grid(n: int, d: int, m: int = 2) -> Ints:  # -> (d,) * m
    """A histogram of n people over m attributes of d buckets on [-5, 5], unit variances, every correlation 0.8."""
    middle = np.linspace(-5, 5, 2 * d + 1)[1::2]
    inverse = np.linalg.inv(np.full((m, m), 0.8) + 0.2 * np.eye(m))
    points = np.meshgrid(*[middle] * m, indexing="ij", sparse=True)
    form = sum(inverse[i, j] * points[i] * points[j] for i in range(m) for j in range(m))
    weight = np.exp(-np.asarray(form) / 2)
    drawn = np.random.default_rng(1).multinomial(n, (weight / weight.sum()).reshape(-1))
    return drawn.reshape((d,) * m)


def gaussian_records(n: int, d: int, m: int) -> Ints:  # -> (n, m)
    """The same people as rows of codes."""
    rng = np.random.default_rng(1)
    values = np.sqrt(0.8) * rng.standard_normal((n, 1)) + np.sqrt(0.2) * rng.standard_normal((n, m))
    return np.clip(((values + 5) / 10 * d).astype(np.int64), 0, d - 1)


def ranges(sizes: tuple[int, ...], count: int) -> Ints:  # -> (count, m, 2)
    """Closed ranges between two uniform codes of each attribute."""
    ends = np.random.default_rng(11).integers(0, np.array(sizes)[:, None], size=(count, len(sizes), 2))
    return np.sort(ends, axis=-1)
