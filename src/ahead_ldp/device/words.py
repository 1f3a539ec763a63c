"""Random words: where a device's noise comes from, and how a uniform number is made from them."""

from __future__ import annotations

import os
import struct
from typing import Protocol


class Words(Protocol):
    """A source of independent uniform words."""

    def take(self, bits: int) -> int:
        """A uniform integer in ``0 .. 2**bits - 1``."""
        ...


class SystemWords:
    """Words from the operating system's generator, big-endian. There is no seed and nothing to configure."""

    def take(self, bits: int) -> int:
        """A uniform integer in ``0 .. 2**bits - 1``; ``bits`` is 32 or 64."""
        return int.from_bytes(os.urandom(_word_length(bits)), "big")

    def take_many(self, bits: int, count: int) -> list[int]:
        """What ``count`` calls of ``take`` would give, in one call to the operating system."""
        data = os.urandom(_word_length(bits) * count)
        return list(struct.unpack(f">{count}{'I' if bits == 32 else 'Q'}", data))


def _word_length(bits: int) -> int:
    if bits not in (32, 64):
        raise ValueError(f"expected bits to be 32 or 64, got {bits}")
    return bits // 8


def take_many(words: Words, bits: int, count: int) -> list[int]:
    """``count`` words in order, in one call where the source offers that."""
    if isinstance(words, SystemWords):
        return words.take_many(bits, count)
    return [words.take(bits) for _ in range(count)]


def below(n: int, words: Words, bits: int) -> int:
    """A uniform integer in ``0 .. n-1``: words at or above the largest multiple of n are drawn again.

    For n = 1 no word is consumed.
    """
    if n == 1:
        return 0
    limit = (1 << bits) // n * n
    if limit == 0:
        raise ValueError(f"expected n <= 2**{bits}, got {n}")
    while (word := words.take(bits)) >= limit:
        pass
    return word % n
