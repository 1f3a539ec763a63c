"""Compiled loops over people, where the extra ``fast`` (numba) is installed; NumPy forms stand beside their use."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=1)
def compiled() -> dict[str, Any] | None:
    """The loops by name, or ``None`` without numba."""
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(cache=True)
    def choose(words, borders, first, chosen):  # type: ignore[no-untyped-def]
        """How many borders are not above each word; ``first`` knows it for the upper 16 bits."""
        for i in range(words.size):
            word = words[i]
            group = first[word >> np.uint32(16)]
            while group < borders.size and borders[group] <= word:
                group += 1
            chosen[i] = group

    @numba.njit(cache=True)
    def scatter(rows, chosen, place, ordered):  # type: ignore[no-untyped-def]
        """Rows by group, in their old order inside each."""
        for i in range(rows.shape[0]):
            group = chosen[i]
            to = place[group]
            place[group] = to + 1
            for j in range(rows.shape[1]):
                ordered[to, j] = rows[i, j]

    @numba.njit(cache=True)
    def count(rows, attributes, sizes, cells):  # type: ignore[no-untyped-def]
        """People by the codes of some attributes."""
        found = np.zeros(cells, np.int64)
        for i in range(rows.shape[0]):
            cell = 0
            for j in range(attributes.size):
                cell = cell * sizes[j] + rows[i, attributes[j]]
            found[cell] += 1
        return found

    @numba.njit(cache=True)
    def answer(rows, masks, boxes):  # type: ignore[no-untyped-def]
        """People in every box, from the boxes that hold each code."""
        found = np.zeros(boxes, np.int64)
        one = np.uint64(1)
        for i in range(rows.shape[0]):
            for w in range(masks.shape[2]):
                inside = masks[0, rows[i, 0], w]
                for j in range(1, rows.shape[1]):
                    inside &= masks[j, rows[i, j], w]
                while inside:
                    low = inside & (~inside + one)
                    bit = 0
                    if low & np.uint64(0xFFFFFFFF00000000):
                        bit += 32
                    if low & np.uint64(0xFFFF0000FFFF0000):
                        bit += 16
                    if low & np.uint64(0xFF00FF00FF00FF00):
                        bit += 8
                    if low & np.uint64(0xF0F0F0F0F0F0F0F0):
                        bit += 4
                    if low & np.uint64(0xCCCCCCCCCCCCCCCC):
                        bit += 2
                    if low & np.uint64(0xAAAAAAAAAAAAAAAA):
                        bit += 1
                    found[w * 64 + bit] += 1
                    inside ^= low
        return found

    return {"choose": choose, "scatter": scatter, "count": count, "answer": answer}
