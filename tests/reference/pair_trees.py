"""Pair trees cell by cell: completed to grids, made to agree on attributes, answered by walking down the levels."""

from itertools import pairwise, product

import numpy as np

from ahead_ldp.partitions.trees import Tree
from tests.reference.brute_ahead import divide

Side = tuple[int, int]
Cell = tuple[Side, Side]
Level = dict[Cell, float]


def cells_by_level(tree: Tree) -> list[list[Cell]]:
    """All cells of every level if everything were divided, down to single codes."""
    first, second = tree.axes
    levels: list[list[Cell]] = [[((0, first.size), (0, second.size))]]
    while any(hi - lo > 1 for cell in levels[-1] for lo, hi in cell):
        levels.append([part for cell in levels[-1] for part in divide(tree.axes, cell, tree.fanout)])
    return levels


def deepest(tree: Tree, cell: Cell, level: int) -> int:
    """The last node, no deeper than the level, that holds a cell."""
    found = 0
    for node in range(tree.size):
        sides = zip(tree.lo[node], tree.hi[node], cell, strict=True)
        if tree.level[node] <= level and all(lo <= a and b <= hi for lo, hi, (a, b) in sides):
            found = node
    return found


def completed(tree: Tree, values: np.ndarray) -> list[Level]:
    """Below a leaf its mass is spread evenly; then every level is brought to mass 1."""
    made = []
    for level, cells in enumerate(cells_by_level(tree)):
        grid = {}
        for cell in cells:
            node = deepest(tree, cell, level)
            grid[cell] = float(values[node]) * area(cell) / float(tree.volume[node])
        total = sum(grid.values())
        made.append({cell: f / total if total > 0 else 1 / len(grid) for cell, f in grid.items()})
    made[0] = dict.fromkeys(made[0], 1.0)
    return made


def area(cell: Cell) -> int:
    return (cell[0][1] - cell[0][0]) * (cell[1][1] - cell[1][0])


def slab_sums(grid: Level, side: int) -> dict[Side, float]:
    sums: dict[Side, float] = {}
    for cell, f in grid.items():
        sums[cell[side]] = sums.get(cell[side], 0.0) + f
    return sums


def slab_variance(tree: Tree, variance: np.ndarray, level: int, cells: list[Cell], side: int) -> float:
    """The mean over slabs: every node on the level, or leaf above it, shares its variance among the slabs it spans."""
    slabs = sorted({cell[side] for cell in cells})
    total = 0.0
    for node in range(tree.size):
        if tree.level[node] == level or (tree.level[node] < level and not tree.is_split[node]):
            spanned = [s for s in slabs if tree.lo[node, side] <= s[0] and s[1] <= tree.hi[node, side]]
            total += sum(variance[node] / len(spanned) ** 2 for _ in spanned)
    return total / len(slabs)


def agree(levels: dict[tuple[int, int], list[Level]], variances: dict, attributes: int) -> None:
    """Attribute by attribute; ``variances[pair][level][side]`` weighs a tree. Changes the levels in place."""
    for level in range(1, max(len(x) for x in levels.values())):
        for attribute in range(attributes):
            members = [p for p in levels if attribute in p and len(levels[p]) > level]
            if not members:
                continue
            noise = [variances[p][level][p.index(attribute)] for p in members]
            weights = [0.0 if np.isinf(v) else 1 / max(v, 1e-18) for v in noise]
            if sum(weights) == 0:
                weights = [1.0] * len(members)
            sums = {p: slab_sums(levels[p][level], p.index(attribute)) for p in members}
            mean = {
                slab: sum(w * sums[p][slab] for p, w in zip(members, weights, strict=True)) / sum(weights)
                for slab in sums[members[0]]
            }
            for p in members:
                grid, side = levels[p][level], p.index(attribute)
                for cell in grid:
                    across = sum(other[side] == cell[side] for other in grid)
                    grid[cell] += (mean[cell[side]] - sums[p][cell[side]]) / across


def walk(levels: list[Level], box: list[list[float]]) -> float:
    """Coarse cells first; a single code's cell that is cut gives its share."""

    def answer(level: int, cell: Cell) -> float:
        inside = [max(0.0, min(hi, b) - max(lo, a)) / (b - a) for (a, b), (lo, hi) in zip(cell, box, strict=True)]
        if inside == [1.0, 1.0]:
            return levels[level][cell]
        if 0.0 in inside:
            return 0.0
        if level == len(levels) - 1:
            return levels[level][cell] * inside[0] * inside[1]
        below = [c for c in levels[level + 1] if all(a <= x and y <= b for (a, b), (x, y) in zip(cell, c, strict=True))]
        return sum(answer(level + 1, c) for c in below)

    return answer(0, next(iter(levels[0])))


def as_grids(levels: list[Level]) -> list[np.ndarray]:
    """Every level as an array: a row for each side of the first attribute."""
    grids = []
    for level in levels:
        rows, columns = (sorted({cell[side] for cell in level}) for side in (0, 1))
        grids.append(np.array([[level[r, c] for c in columns] for r in rows]))
    return grids


def borders_of(level: Level, side: int) -> list[int]:
    slabs = sorted({cell[side] for cell in level})
    assert all(a[1] == b[0] for a, b in pairwise(slabs))
    assert set(level) == set(product(*(sorted({cell[s] for cell in level}) for s in (0, 1))))
    return [slabs[0][0], *(hi for _, hi in slabs)]
