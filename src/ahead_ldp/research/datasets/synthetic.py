"""The paper's synthetic people (Sec. 5.1, App. J): Zipf, Cauchy, Gaussian and Laplacian, alone or tied together.

Mean 0 and standard deviation 1 (Cauchy: location 0, scale 1), on [-5, 5] in equal buckets. The paper gives no interval
and no rule for what lies outside: values beyond the ends go to the end buckets, except Cauchy's, whose tails are heavy
and are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.engines.simulation import Population, is_counted
from ahead_ldp.research.datasets.crowds import Crowd, empty_rows
from ahead_ldp.schema.arrays import Floats

REACH = 5.0  # values lie on [-REACH, REACH]
ZIPF = 1.1  # P(k) ~ (k + 1) ** -ZIPF
SHAPES = {
    "zipf": "Zipf, exponent 1.1",
    "cauchy": "Cauchy(0, 1) on [-5, 5]",
    "gaussian": "Gaussian(0, 1) on [-5, 5]",
    "laplacian": "Laplacian, mean 0 and variance 1, on [-5, 5]",
}
MOST_SKEW = {"gaussian": 0.995, "laplacian": 2.0}  # of the skew normal, and of the exponential
_CHUNK = 1 << 20


def people(
    shape: str, sizes: Sequence[int], n: int, rng: Generator, r: float | None = None, skew: float = 0.0
) -> Population:
    """People of one shape: one attribute with a skewness, or several with every correlation r."""
    if shape not in SHAPES:
        raise ValueError(f"expected a shape among {', '.join(SHAPES)}, got {shape!r}")
    if n < 1:
        raise ValueError(f"expected n >= 1, got {n}")
    if len(sizes) == 1:
        return Population.of_histogram(rng.multinomial(n, probabilities(shape, sizes[0], skew)))
    if shape not in MOST_SKEW or skew:
        raise ValueError(f"expected gaussian or laplacian without skewness for {len(sizes)} attributes, got {shape!r}")
    if r is None or not 0 <= r < 1:
        raise ValueError(f"expected a correlation 0 <= r < 1, got {r}")
    return _tied(shape, tuple(sizes), n, r, rng)


def probabilities(shape: str, d: int, skew: float = 0.0) -> Floats:  # -> (d,)
    """The share of each of d buckets."""
    if shape == "zipf":
        weights = np.arange(1, d + 1) ** -ZIPF
        return weights / weights.sum()
    below = _distribution(shape, skew)(np.linspace(-REACH, REACH, d + 1))
    if shape == "cauchy":
        below = (below - below[0]) / (below[-1] - below[0])
    below[0], below[-1] = 0.0, 1.0
    return np.maximum(np.diff(below), 0.0) / np.maximum(np.diff(below), 0.0).sum()


def _distribution(shape: str, skew: float) -> Callable[[Floats], Floats]:
    if shape == "cauchy":
        return lambda x: np.arctan(x) / np.pi + 0.5
    if not 0 <= skew <= MOST_SKEW[shape]:
        raise ValueError(f"expected a skewness in 0..{MOST_SKEW[shape]} for {shape}, got {skew}")
    return _skew_normal(skew) if shape == "gaussian" else _skew_laplacian(skew)


def _skew_normal(skew: float) -> Callable[[Floats], Floats]:
    """Azzalini's skew normal of mean 0, variance 1 and the given skewness."""
    from scipy.special import ndtr, owens_t

    # skewness = (4 - pi) / 2 * (delta sqrt(2 / pi))**3 / (1 - 2 delta**2 / pi)**1.5, solved for delta
    root = (2 * skew / (4 - np.pi)) ** (1 / 3)
    delta = root / sqrt(2 / np.pi) / sqrt(1 + root**2)
    alpha = delta / sqrt(max(1 - delta**2, 1e-12))
    mean, deviation = delta * sqrt(2 / np.pi), sqrt(1 - 2 * delta**2 / np.pi)

    def below(x: Floats) -> Floats:
        """The share of people below each value."""
        z = mean + deviation * x
        share: Floats = ndtr(z) - 2 * owens_t(z, alpha)
        return share

    return below


def _skew_laplacian(skew: float) -> Callable[[Floats], Floats]:
    """The asymmetric Laplacian of mean 0, variance 1 and the given skewness: the exponential at 2."""
    right, left = _scales(skew)
    mean = right - left

    def below(x: Floats) -> Floats:
        """The share of people below each value."""
        z, total = x + mean, right + left
        up = 1 - right / total * np.exp(-np.maximum(z, 0) / right)
        down = left / total * np.exp(np.minimum(z, 0) / left) if left > 0 else np.zeros_like(z)
        return np.where(z >= 0, up, down)

    return below


def _scales(skew: float) -> tuple[float, float]:
    """Scales a, b of a E1 - b E2 with a^2 + b^2 = 1 and skewness 2 (a^3 - b^3)."""
    low, high = 0.0, sqrt(0.5)
    for _ in range(80):
        b = (low + high) / 2
        if 2 * ((1 - b * b) ** 1.5 - b**3) > skew:
            low = b
        else:
            high = b
    b = 0.0 if skew >= 2 else (low + high) / 2
    return sqrt(1 - b * b), b


def _tied(shape: str, sizes: tuple[int, ...], n: int, r: float, rng: Generator) -> Population:
    """Equal correlations r; the Laplacian is the Gaussian times the root of one exponential per person."""
    if not is_counted(sizes, n):
        rows = empty_rows(n, sizes)
        for start in range(0, n, _CHUNK):
            _draw(shape, sizes, r, rng, rows[start : start + _CHUNK])
        return Crowd(sizes, rows=rows)
    histogram = np.zeros(prod(sizes), np.int64)
    for start in range(0, n, _CHUNK):
        codes = np.empty((min(_CHUNK, n - start), len(sizes)), np.int64)
        _draw(shape, sizes, r, rng, codes)
        histogram += np.bincount(np.ravel_multi_index(tuple(codes.T), sizes), minlength=histogram.size)
    return Population.of_histogram(histogram.reshape(sizes))


def _draw(shape: str, sizes: tuple[int, ...], r: float, rng: Generator, rows: NDArray[Any]) -> None:
    """Fill the rows (n, m). Single precision: a code is one of a few hundred."""
    n, single = len(rows), np.float32
    common = single(sqrt(r)) * rng.standard_normal(n, single)
    width = np.sqrt(rng.standard_exponential(n, single)) if shape == "laplacian" else None
    for j, size in enumerate(sizes):
        x = common + single(sqrt(1 - r)) * rng.standard_normal(n, single)
        if width is not None:
            x *= width
        x += single(REACH)
        x *= single(size / (2 * REACH))
        rows[:, j] = np.clip(x, 0, size - 1, out=x)
