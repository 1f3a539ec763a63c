"""Pair trees that agree on the attributes they share (AHEAD App. F, step 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.partitions.covers import BoxTables, LevelTable
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.schema.arrays import Floats, Ints

Pair = tuple[int, int]

_LEAST_VARIANCE = 1e-18  # below this a slab's variance is rounding: its weight stays finite


@dataclass(frozen=True, slots=True, eq=False)
class LevelGrids:
    """A pair tree completed to a full grid on every level: below a leaf the mass is spread evenly.

    ``frequencies[l]`` has a row for each side of the first attribute on level l and a column for each of the second.
    ``slab_variance[l]`` is the mean variance of a row's sum and of a column's sum.
    """

    borders: tuple[tuple[Ints, Ints], ...]
    frequencies: tuple[Floats, ...]
    slab_variance: tuple[tuple[float, float], ...]

    @classmethod
    def complete(cls, tree: Tree, values: Floats, variance: Floats) -> LevelGrids:
        """The grids of a two-attribute tree, each level brought to mass 1."""
        first, second = tree.axes
        borders = [(np.array([0, first.size]), np.array([0, second.size]))]
        grids, noise = [np.ones((1, 1))], [(0.0, 0.0)]
        while grids[-1].size < first.size * second.size:
            coarse = borders[-1]
            fine = _divide(first, coarse[0], tree.fanout), _divide(second, coarse[1], tree.fanout)
            grid = _spread(grids[-1], coarse, fine)
            here = tree.level == len(grids)
            rows, columns = (np.searchsorted(fine[a], tree.lo[here, a]) for a in (0, 1))
            grid[rows, columns] = values[here]
            noise.append(_slab_variance(tree, len(grids), variance, fine))
            borders.append(fine)
            grids.append(grid)
        return cls(tuple(borders), tuple(_to_mass_one(g) for g in grids), tuple(noise))

    @property
    def height(self) -> int:
        """The last level."""
        return len(self.frequencies) - 1


def make_consistent(grids: Mapping[Pair, LevelGrids], attributes: int) -> dict[Pair, LevelGrids]:
    """Grids whose row and column sums agree, for every attribute on every level.

    The agreed sums are a weighted mean, one weight per tree and level: inverse to the mean variance of a slab. (The
    paper has a weight for each slab; then the means no longer sum to 1, and correcting one attribute disturbs the
    other. With one weight the corrections of an attribute sum to 0 and leave the other attribute's sums alone, so one
    pass over the attributes makes all agree.)
    """
    agreed_grids = {pair: list(g.frequencies) for pair, g in grids.items()}
    for level in range(1, max((g.height for g in grids.values()), default=0) + 1):
        for attribute in range(attributes):
            members = [
                (pair, pair.index(attribute)) for pair, g in grids.items() if attribute in pair and g.height >= level
            ]
            if not members:
                continue
            weights = _weights([grids[pair].slab_variance[level][side] for pair, side in members])
            sums = [agreed_grids[pair][level].sum(axis=1 - side) for pair, side in members]
            agreed = sum(w * s for w, s in zip(weights, sums, strict=True))
            for (pair, side), own in zip(members, sums, strict=True):
                grid = agreed_grids[pair][level]
                change = (agreed - own) / grid.shape[1 - side]
                agreed_grids[pair][level] = grid + np.expand_dims(change, 1 - side)
    return {pair: replace(g, frequencies=tuple(agreed_grids[pair])) for pair, g in grids.items()}


def attribute_weights(grids: Mapping[Pair, LevelGrids], attribute: int) -> dict[Pair, float]:
    """How much each pair counts in an attribute's agreed sums on the last level."""
    members = [pair for pair in grids if attribute in pair]
    variance = [grids[p].slab_variance[-1][p.index(attribute)] for p in members]
    return dict(zip(members, _weights(variance), strict=True))


def level_tables(grids: LevelGrids) -> BoxTables:
    """Tables that answer boxes from level grids: the coarsest cells that a box covers, and shares of single codes'."""
    tables = []
    for coarse, fine, upper, lower in zip(
        grids.borders, grids.borders[1:], grids.frequencies, grids.frequencies[1:], strict=False
    ):
        rows, columns = (np.searchsorted(f, c[:-1]) for f, c in zip(fine, coarse, strict=True))
        below = np.add.reduceat(np.add.reduceat(lower, rows, axis=0), columns, axis=1)
        ends = (coarse[0][:-1], coarse[1][:-1]), (coarse[0][1:], coarse[1][1:])
        tables.append(LevelTable(*ends, SummedArea.of(upper - below)))
    return BoxTables(SummedArea.of(grids.frequencies[-1]), tuple(tables))


def _divide(axis: Axis, borders: Ints, fanout: int) -> Ints:
    """The borders one level down."""
    fine = [axis.parts(int(a), int(b), fanout)[:-1] for a, b in pairwise(borders)]
    return np.array([*(x for part in fine for x in part), axis.size])


def _spread(grid: Floats, coarse: Sequence[Ints], fine: Sequence[Ints]) -> Floats:
    """A grid one level down, the mass of each cell spread evenly."""
    for a in (0, 1):
        owner = np.searchsorted(coarse[a], fine[a][:-1], side="right") - 1
        share = np.diff(fine[a]) / np.diff(coarse[a])[owner]
        grid = np.take(grid, owner, axis=a) * (share[:, None] if a == 0 else share[None, :])
    return grid


def _slab_variance(tree: Tree, level: int, variance: Floats, fine: Sequence[Ints]) -> tuple[float, float]:
    """Mean variance of the sum over a slab: a node that spans s slabs puts 1/s of its noise into each."""
    active = (tree.level == level) | ((tree.level < level) & ~tree.is_split)
    means = []
    for a in (0, 1):
        spans = np.searchsorted(fine[a], tree.hi[active, a]) - np.searchsorted(fine[a], tree.lo[active, a])
        means.append(float((variance[active] / spans).sum() / (fine[a].size - 1)))
    return means[0], means[1]


def _to_mass_one(grid: Floats) -> Floats:
    total = grid.sum()
    return grid / total if total > 0 else np.full(grid.shape, 1 / grid.size)


def _weights(variance: Sequence[float]) -> Floats:
    """Inverse variances that sum to 1; equal where nothing was measured."""
    v = np.array(variance, float)
    if not np.isfinite(v).any():
        return np.full(v.size, 1 / v.size)
    inverse = np.where(np.isfinite(v), 1 / np.maximum(v, _LEAST_VARIANCE), 0.0)
    return inverse / inverse.sum()
