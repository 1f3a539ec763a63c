"""A pair's table under one coefficient after the other, and margins met line by line: slow and obvious."""

import numpy as np


def brought_back(start: np.ndarray, rows: np.ndarray, columns: np.ndarray, sweeps: int = 4000) -> np.ndarray:
    """The table of the start's cross-product ratios with these margins; lines that are to be empty are."""
    table = start.copy()
    for _ in range(sweeps):
        for i, row in enumerate(rows):
            table[i] *= row / table[i].sum() if table[i].sum() > 0 else 0.0
        for j, column in enumerate(columns):
            table[:, j] *= column / table[:, j].sum() if table[:, j].sum() > 0 else 0.0
    return table


def block_slopes(
    table: np.ndarray, functions: tuple[np.ndarray, np.ndarray], starts: tuple[np.ndarray, np.ndarray], step: float
) -> np.ndarray:
    """How the blocks of a table move with each product of functions when the margins stay, by central differences."""
    rows, columns, slopes = table.sum(axis=1), table.sum(axis=0), []
    for one in functions[0].T:
        for other in functions[1].T:
            there, back = (
                brought_back(table * np.exp(sign * step * np.outer(one, other)), rows, columns, 60) for sign in (1, -1)
            )
            moved = (there - back) / (2 * step)
            slopes.append(np.add.reduceat(np.add.reduceat(moved, starts[0], axis=0), starts[1], axis=1))
    return np.stack(slopes, axis=-1)
