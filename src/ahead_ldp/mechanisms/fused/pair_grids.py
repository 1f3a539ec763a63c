"""Questions about grids of two attributes, fine or coarse, whose columns are cut out of each other."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import log2

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.fused.grid_columns import Columns
from ahead_ldp.mechanisms.fused.grid_reports import GridReport
from ahead_ldp.oracles import LinearOracle, Tally, choose_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Question, axes_of

Pair = tuple[int, int]

_COARSEST_GRID = 4  # power of 2: a grid of 4 x 4 cells (choice F2)
_STEP = 2  # powers of 2 from grid to grid: four times the cells (choice F2)


@lru_cache(maxsize=4096, typed=True)
def _oracle(epsilon: float | str | Fraction, cells: int) -> LinearOracle:
    return choose_oracle(epsilon, cells).oracle


def grid_question(
    schema: Schema, pair: Pair, columns: Mapping[int, Columns], cells: float, epsilon: float | str | Fraction
) -> Question:
    """About 2^``cells`` cells of a pair, as many columns of one attribute as of the other where there are as many."""
    chosen = depths(columns[pair[0]], columns[pair[1]], cells)
    cuts = [columns[a].cuts(depth) for a, depth in zip(pair, chosen, strict=True)]
    partition = Partition.grid(axes_of(schema, pair), cuts)
    return Question(pair, partition, _oracle(epsilon, partition.cells))


def depths(first: Columns, second: Columns, cells: float) -> tuple[int, int]:
    """How deep the columns of both are cut for about 2^``cells`` cells; more cells cut the same columns further."""
    both, at = (first, second), [min(1, first.depth), min(1, second.depth)]
    while True:
        here = [both[k].starts[at[k]].size for k in (0, 1)]
        open_ends = [k for k in (0, 1) if at[k] < both[k].depth]
        if not open_ends:
            return at[0], at[1]
        k = min(open_ends, key=lambda k: here[k])
        if log2(both[k].starts[at[k] + 1].size * here[1 - k]) > cells + 0.5:
            return at[0], at[1]
        at[k] += 1


def scales(cells: float, rough: bool) -> list[float]:
    """The sizes of grids, as powers of 2, for groups that are asked late: the finest has about 2^``cells`` cells.

    Smooth dependence needs a coarse one, which tells best how strong it is, and the finest; rough one all between.
    """
    if not rough:
        return [min(float(_COARSEST_GRID), cells), cells]
    return [float(c) for c in range(_COARSEST_GRID, int(cells) + 2, _STEP)] or [cells]


def grid_report(question: Question, tally: Tally, columns: Mapping[int, Columns], drawn: bool = False) -> GridReport:
    """What a pair's group said, on the bins of its attributes.

    ``drawn``: the variance holds the chance of who fell into the group, too.
    """
    oracle, partition = question.oracle, question.partition
    assert isinstance(oracle, LinearOracle)
    starts = [np.unique(partition.lo[:, k]) for k in (0, 1)]
    values = oracle.estimate(tally).reshape(starts[0].size, starts[1].size)
    rows, others = (np.searchsorted(columns[a].bins, s) for a, s in zip(question.attributes, starts, strict=True))
    if not tally.n:
        return GridReport(rows, others, values, float("inf"))
    chance = 1 / (partition.cells * tally.n) if drawn else 0.0  # F26
    return GridReport(rows, others, values, oracle.contrast_variance(tally.n) + chance)
