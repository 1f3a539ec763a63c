"""Counting reports one by one."""

import numpy as np

PRIME = 2**31 - 1


def ones_per_bit(reports: np.ndarray, d: int) -> list[int]:
    return [sum(int(row[i // 8]) >> (i % 8) & 1 for row in reports) for i in range(d)]


def olh_support(reports: np.ndarray, g: int, d: int) -> list[int]:
    counts = [0] * d
    for row in reports:
        data = row.tobytes()
        a, b, c = (int.from_bytes(data[i : i + 4], "big") for i in (0, 4, 8))
        y = int.from_bytes(data[12:], "big")
        for x in range(d):
            counts[x] += g * ((a * x * x + b * x + c) % PRIME) // PRIME == y
    return counts
