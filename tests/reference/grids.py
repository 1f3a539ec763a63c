"""TDG and HDG one cell at a time: agreement of grids, the |D| x |D| response matrix, weighted update on 2^q cells."""

from itertools import combinations, product

import numpy as np


def agree(tables: dict[tuple[int, ...], np.ndarray], attribute: int, slabs: int) -> None:
    """Slab by slab: the mean of the grids' sums, by 1 / (cells in the slab); differences go evenly to the cells."""
    for slab in range(slabs):
        places = {}
        for attributes, table in tables.items():
            if attribute in attributes:
                axis = attributes.index(attribute)
                width = table.shape[axis] // slabs
                places[attributes] = [c for c in np.ndindex(table.shape) if c[axis] // width == slab]
        sums = {a: sum(tables[a][c] for c in cells) for a, cells in places.items()}
        weights = {a: 1 / len(cells) for a, cells in places.items()}
        mean = sum(weights[a] * sums[a] for a in places) / sum(weights.values())
        for a, cells in places.items():
            for c in cells:
                tables[a][c] += (mean - sums[a]) / len(cells)


def response_matrix(rows: np.ndarray, columns: np.ndarray, grid: np.ndarray, d: int, sweeps: int) -> np.ndarray:
    """Every cell of the three grids scales its block, and the whole matrix is renormalised after each."""
    matrix = np.full((d, d), 1 / d**2)

    def scale(block: tuple[slice, slice], target: float) -> None:
        nonlocal matrix
        total = matrix[block].sum()
        if total > 0:
            matrix[block] *= target / total
            matrix = matrix / matrix.sum()

    everything = slice(None)
    for _ in range(sweeps):
        for i, f in enumerate(rows):
            scale((_span(i, rows.size, d), everything), f)
        for j, f in enumerate(columns):
            scale((everything, _span(j, columns.size, d)), f)
        for i, j in np.ndindex(grid.shape):
            scale((_span(i, grid.shape[0], d), _span(j, grid.shape[1], d)), grid[i, j])
    return matrix


def _span(i: int, parts: int, d: int) -> slice:
    return slice(i * d // parts, (i + 1) * d // parts)


def weighted_update(answers: list[float], q: int, sweeps: int, tolerance: float) -> dict[tuple[int, ...], float]:
    """The weights of all combinations of inside (0) and outside (1)."""
    cells = {c: 0.5**q for c in product((0, 1), repeat=q)}
    for _ in range(sweeps):
        before = dict(cells)
        for (i, j), answer in zip(combinations(range(q), 2), answers, strict=True):
            block = [c for c in cells if c[i] == c[j] == 0]
            total = sum(cells[c] for c in block)
            if total > 0:
                for c in block:
                    cells[c] *= answer / total
                total = sum(cells.values())
                cells = {c: x / total for c, x in cells.items()}
        if sum(abs(cells[c] - before[c]) for c in cells) < tolerance:
            break
    return cells
