"""Compiled counting loops, used where the extra ``fast`` (numba) is installed; NumPy forms stand beside their use."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.schema.arrays import Bytes, Ints

_ROW_WORDS = 512  # words of a row that keep the inner loop busy; 128 take half as long again


def positional_popcount(reports: Bytes) -> Ints:  # (n, width) -> (8 * width,)
    """Ones per bit position of packed rows."""
    n, width = reports.shape
    if width % 8 == 0 and reports.flags.c_contiguous and reports.ctypes.data % 8 == 0:
        words = reports.view(np.uint64)
    else:
        words = np.zeros((n, -(-width // 8)), np.uint64)
        words.view(np.uint8).reshape(n, -1)[:, :width] = reports
    count = _compiled()["popcount"]
    fold = max(1, _ROW_WORDS // words.shape[1])  # narrow rows stand side by side: a longer inner loop
    side_by_side = n - n % fold
    folded = count(words[:side_by_side].reshape(-1, fold * words.shape[1]))
    counts = folded.reshape(fold, -1).sum(axis=0) + count(words[side_by_side:])
    return counts[: 8 * width]


def olh_support(words: NDArray[np.uint32], d: int) -> Ints:  # (5, n) -> (d,)
    """For each code below d the number of reports (a, b, c, lo, width) whose polynomial falls into [lo, lo + width)."""
    return _compiled()["olh"](*words, d)


@lru_cache(maxsize=1)
def _compiled() -> dict[str, Any]:
    import numba

    @numba.njit(cache=True, nogil=True)
    def popcount(words):  # type: ignore[no-untyped-def]
        """Ones per bit position of 64-bit words, row by row."""
        n, width = words.shape
        counts = np.zeros(width * 64, np.int64)
        planes = np.zeros((8, width), np.uint64)  # bit k of the count of every position
        low = np.uint64(0x0101010101010101)
        for start in range(0, n, 248):  # with the last seven rows at most 255, which eight planes hold
            stop = min(n, start + 248)
            if n - stop < 8:
                stop = n
            planes[:] = 0
            p0, p1, p2, p3 = planes[0], planes[1], planes[2], planes[3]
            p4, p5, p6, p7 = planes[4], planes[5], planes[6], planes[7]
            row = start
            while row + 8 <= stop:
                r0, r1, r2, r3 = words[row], words[row + 1], words[row + 2], words[row + 3]
                r4, r5, r6, r7 = words[row + 4], words[row + 5], words[row + 6], words[row + 7]
                for j in range(width):  # full adders bring eight rows down to one carry of weight 8 (Harley and Seal)
                    u = p0[j] ^ r0[j]
                    c1 = (p0[j] & r0[j]) | (u & r1[j])
                    s = u ^ r1[j]
                    u = s ^ r2[j]
                    c2 = (s & r2[j]) | (u & r3[j])
                    s = u ^ r3[j]
                    u = s ^ r4[j]
                    c3 = (s & r4[j]) | (u & r5[j])
                    s = u ^ r5[j]
                    u = s ^ r6[j]
                    c4 = (s & r6[j]) | (u & r7[j])
                    p0[j] = u ^ r7[j]
                    u = p1[j] ^ c1
                    d1 = (p1[j] & c1) | (u & c2)
                    s = u ^ c2
                    u = s ^ c3
                    d2 = (s & c3) | (u & c4)
                    p1[j] = u ^ c4
                    u = p2[j] ^ d1
                    x = (p2[j] & d1) | (u & d2)
                    p2[j] = u ^ d2
                    t = p3[j]
                    p3[j] = t ^ x
                    x &= t
                    t = p4[j]
                    p4[j] = t ^ x
                    x &= t
                    t = p5[j]
                    p5[j] = t ^ x
                    x &= t
                    t = p6[j]
                    p6[j] = t ^ x
                    p7[j] ^= x & t
                row += 8
            for r in range(row, stop):
                for j in range(width):
                    x = words[r, j]
                    for k in range(8):
                        t = planes[k, j]
                        planes[k, j] = t ^ x
                        x &= t
            for j in range(width):
                for s in range(8):
                    lane = np.uint64(0)
                    for k in range(8):
                        lane |= ((planes[k, j] >> np.uint64(s)) & low) << np.uint64(k)
                    for byte in range(8):
                        counts[j * 64 + byte * 8 + s] += np.int64((lane >> np.uint64(8 * byte)) & np.uint64(255))
            if stop == n:
                break
        return counts

    @numba.njit(cache=True, nogil=True)
    def olh(a, b, c, lo, width, d):  # type: ignore[no-untyped-def]
        """Reports whose polynomial falls into [lo, lo + width), for each code."""
        prime = np.uint32(2**31 - 1)
        counts = np.zeros(d, np.int64)
        block = 1024
        for start in range(0, a.size, block):
            stop = min(start + block, a.size)
            h = c[start:stop].copy()
            twice = a[start:stop] + a[start:stop]
            step = a[start:stop] + b[start:stop]
            low, wide = lo[start:stop], width[start:stop]
            for i in range(h.size):
                step[i] = min(step[i], np.uint32(step[i] - prime))
                twice[i] = min(twice[i], np.uint32(twice[i] - prime))
            for x in range(d):
                total = np.uint32(0)
                for i in range(h.size):  # in wrapping uint32, so that eight lanes go at once
                    total = np.uint32(total + np.uint32(np.uint32(h[i] - low[i]) < wide[i]))
                    s = np.uint32(h[i] + step[i])
                    h[i] = min(s, np.uint32(s - prime))
                    s = np.uint32(step[i] + twice[i])
                    step[i] = min(s, np.uint32(s - prime))
                counts[x] += total
        return counts

    return {"popcount": popcount, "olh": olh}
