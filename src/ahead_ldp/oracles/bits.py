"""Packed bit vectors: drawing them and counting them, one bit per cell, least significant bit first."""

from __future__ import annotations

import importlib.util

import numpy as np
from numpy.random import Generator

from ahead_ldp.oracles import kernels
from ahead_ldp.schema.arrays import Bytes, Ints

_WORDS = 1 << 15  # 64-bit words drawn at a time: fits the second-level cache
_ROWS = 255  # ones of 255 rows fit a byte
HAS_NUMBA = importlib.util.find_spec("numba") is not None


def bernoulli_bits(threshold: int, bits: int, n: int, width: int, rng: Generator) -> Bytes:  # -> (n, width)
    """Bytes whose bits are all independently 1 with probability ``threshold / 2**bits``, exactly.

    64 coins at a time: uniform words are compared with the threshold bit plane by bit plane, highest first, and
    a word is dropped as soon as all its coins are decided, after about eight planes instead of all of them.
    """
    out = np.empty(-(-n * width // 8), np.uint64)
    planes = [threshold >> i & 1 for i in range(bits - 1, -1, -1)]
    for start in range(0, out.size, _WORDS):
        out[start : start + _WORDS] = _coin_words(planes, min(_WORDS, out.size - start), rng)
    return out.view(np.uint8)[: n * width].reshape(n, width)


def _coin_words(planes: list[int], count: int, rng: Generator) -> np.ndarray:
    ones = np.zeros(count, np.uint64)
    where = np.arange(count)
    open_ = np.full(count, np.iinfo(np.uint64).max, np.uint64)  # coins that equal the threshold so far
    for i, plane in enumerate(planes):
        word = rng.integers(0, np.iinfo(np.uint64).max, size=open_.size, dtype=np.uint64, endpoint=True)
        if plane:
            below = open_ & ~word
            if open_.size == count:
                ones |= below
            else:
                ones[where] |= below
            open_ &= word
        else:
            open_ &= ~word
        if i >= 5:
            left = np.flatnonzero(open_)
            if left.size == 0:
                break
            if left.size < 0.7 * open_.size:
                where, open_ = where[left], open_[left]
    return ones


def set_bits(reports: Bytes, cells: Ints, on: np.ndarray) -> None:
    """Set bit ``cells[i]`` of row i to ``on[i]``, in place."""
    rows = np.arange(len(reports))
    mask = (np.uint8(1) << (cells % 8).astype(np.uint8)).astype(np.uint8)
    byte = reports[rows, cells // 8]
    reports[rows, cells // 8] = np.where(on, byte | mask, byte & ~mask)


def clear_padding(reports: Bytes, d: int) -> None:
    """Zero the bits beyond the last cell, in place."""
    if d % 8:
        reports[:, -1] &= (1 << d % 8) - 1


def padding_is_zero(reports: Bytes, d: int) -> np.ndarray:  # (n, width) -> (n,)
    """Which rows have no bit beyond the last cell."""
    return reports[:, -1] >> (d % 8) == 0 if d % 8 else np.ones(len(reports), bool)


def positional_popcount(reports: Bytes, d: int) -> Ints:  # (n, width) -> (d,)
    """For each cell the number of rows with its bit set; compiled where the extra ``fast`` is installed."""
    if HAS_NUMBA and reports.size > 1 << 20:
        return kernels.positional_popcount(reports)[:d]
    counts = np.zeros(reports.shape[1] * 8, np.int64)
    for start in range(0, len(reports), _ROWS):
        block = np.unpackbits(reports[start : start + _ROWS], axis=1, bitorder="little")
        counts += np.add.reduce(block, axis=0, dtype=np.uint8)
    return counts[:d]


def popcount_rows(reports: Bytes) -> Ints:  # (n, width) -> (n,)
    """The number of ones of each row."""
    return np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
