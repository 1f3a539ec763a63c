"""What the checks share: a failed promise in words, and distances in standard errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.oracles.base import Oracle
from ahead_ldp.schema.arrays import Bytes, Floats

# A right law stays within PASS standard errors; checks are sized so that a wrong one lies POWER further out.
PASS, POWER = 5.0, 4.0


def hold(kept: object, promise: str) -> None:
    """Raise AssertionError, which says what was promised, unless it was kept."""
    if not kept:
        raise AssertionError(promise)


def refuses(call: Callable[[], object], promise: str, *words: str, error: type[Exception] = ValueError) -> None:
    """Hold that a call raises this kind of error, with a message in which all of the words stand."""
    try:
        call()
    except error as refusal:
        message = str(refusal)
        hold(all(word in message for word in words), f"{promise}: expected {words} in the message, got {message!r}")
        return
    raise AssertionError(f"{promise}: nothing was refused")


class SeededWords:
    """Uniform words from a NumPy generator: the device's path, repeatable. A device itself has no seed."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._words = {32: self._stream(rng, np.uint32), 64: self._stream(rng, np.uint64)}

    def _stream(self, rng: np.random.Generator, kind: type[Any]) -> Iterator[int]:
        while True:
            yield from rng.integers(0, np.iinfo(kind).max, 4096, kind, endpoint=True).tolist()

    def take(self, bits: int) -> int:
        """The next word of so many bits."""
        return next(self._words[bits])


def device_reports(oracle: Oracle, codes: Sequence[int] | NDArray[Any], seed: int) -> Bytes:
    """What devices with these codes send, as the rows that ``tally`` takes."""
    words = SeededWords(seed)
    payloads = b"".join(oracle.law.draw(int(code), words) for code in codes)
    return np.frombuffer(payloads, np.uint8).reshape(-1, oracle.report_bytes)


def repeat_codes(histogram: Sequence[int]) -> NDArray[np.int64]:
    """One code per person."""
    return np.repeat(np.arange(len(histogram)), histogram)


def moment_errors(samples: Floats, mean: Floats, covariance: Floats) -> tuple[float, float]:
    """How many standard errors the mean and the covariance of (r, d) samples lie off, at worst.

    Products of the deviations are averages of r independent terms, so their own spread says how sure they are.
    Entries that do not vary must be right to rounding.
    """
    deviation = samples - mean
    products = (deviation[:, :, None] * deviation[:, None, :]).reshape(len(samples), -1)
    return _worst(deviation, np.zeros_like(mean)), _worst(products, covariance.reshape(-1))


def _worst(samples: Floats, expected: Floats) -> float:
    error = samples.std(axis=0) / sqrt(len(samples))
    off = np.abs(samples.mean(axis=0) - expected)
    fixed = error < 1e-13
    if (off[fixed] > 1e-9).any():
        return float("inf")
    return float((off[~fixed] / error[~fixed]).max(initial=0.0))
