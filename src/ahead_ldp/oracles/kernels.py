"""Compiled counting loops, used where the extra ``fast`` (numba) is installed; NumPy forms stand beside their use."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.oracles.tally import Bytes, Ints


def positional_popcount(reports: Bytes) -> Ints:  # (n, width) -> (8 * width,)
    """Ones per bit position of packed rows."""
    n, width = reports.shape
    words = np.zeros((n, -(-width // 8)), np.uint64)
    if width % 8 == 0 and reports.flags.c_contiguous and reports.ctypes.data % 8 == 0:
        words = reports.view(np.uint64)
    else:
        words.view(np.uint8).reshape(n, -1)[:, :width] = reports
    return _compiled()["popcount"](words)[: 8 * width]


def olh_support(words: NDArray[np.uint32], d: int) -> Ints:  # (5, n) -> (d,)
    """For each code below d the number of reports (a, b, c, lo, width) whose polynomial falls into [lo, lo + width)."""
    return _compiled()["olh"](*words, d)


@lru_cache(maxsize=1)
def _compiled() -> dict[str, Any]:
    import numba

    @numba.njit(cache=True)
    def popcount(words):  # type: ignore[no-untyped-def]
        n, width = words.shape
        counts = np.zeros(width * 64, np.int64)
        low = np.uint64(0x0101010101010101)
        lanes = np.zeros((width, 8), np.uint64)
        planes = np.zeros((4, width), np.uint64)
        row = 0
        while row < n:
            lanes[:] = 0
            for _ in range(17):  # 17 * 15 = 255 rows at most fill a byte lane
                if row >= n:
                    break
                planes[:] = 0
                stop = min(n, row + 15)
                for r in range(row, stop):  # a carry-save counter of four bits, 64 positions at a time
                    for j in range(width):
                        x = words[r, j]
                        t = planes[0, j]
                        planes[0, j] = t ^ x
                        x &= t
                        t = planes[1, j]
                        planes[1, j] = t ^ x
                        x &= t
                        t = planes[2, j]
                        planes[2, j] = t ^ x
                        x &= t
                        planes[3, j] ^= x
                row = stop
                for k in range(4):
                    for j in range(width):
                        x = planes[k, j]
                        for s in range(8):
                            lanes[j, s] += ((x >> np.uint64(s)) & low) << np.uint64(k)
            for j in range(width):
                for s in range(8):
                    x = lanes[j, s]
                    for byte in range(8):
                        counts[j * 64 + byte * 8 + s] += np.int64((x >> np.uint64(8 * byte)) & np.uint64(255))
        return counts

    @numba.njit(cache=True)
    def olh(a, b, c, lo, width, d):  # type: ignore[no-untyped-def]
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
