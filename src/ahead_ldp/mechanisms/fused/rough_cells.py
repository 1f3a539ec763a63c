"""Single cells of a pair's table that depart from what smooth functions say: least squares with an entropy for a prior.

A priori a cell departs from the smooth table's mass t by a variance t / strength: cells of much mass may depart more.
The relative entropy to t, times the strength, says the same near t and keeps masses from being negative. Sums of grids
that cut each other's cells, and the margins, are held together at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ahead_ldp.estimates.solvers.proportional_fitting import fit_margins, margin_scales, scaled
from ahead_ldp.mechanisms.fused.grid_reports import Blocks, GridReport
from ahead_ldp.schema.arrays import Floats

FEW_STEPS = 80  # of the descent, at most: until version 3 (F13)
MANY_STEPS = 300  # the same from version 3 on: where noise is small it takes many (decision 027)
_LENGTHENING, _SHORTENING = 1.5, 0.4  # tolerance: of steps that gain, and that do not
_SWEEPS = 8  # tolerance: of proportional fitting in a step
_LEAST_MASS = 1e-13  # tolerance: that a cell has, so that it has a logarithm
_LEAST_MOVE = 1e-5  # tolerance: of all mass; a step that moves less is the last


def fit_cells(
    table: Floats,
    rows: Floats,
    columns: Floats,
    reports: Sequence[GridReport],
    strength: float,
    steps: int = MANY_STEPS,
) -> Floats:
    """The table with these margins after departures of the finest grid's cells.

    The last report is the finest: its columns are cut out of the others'. Inside its cells the table keeps its shape.
    """
    finest = reports[-1]
    cells = np.maximum(finest.sums(table), _LEAST_MASS)
    moved = _descend(cells, [r.within(finest) for r in reports], strength, steps)
    wanted = table * finest.spread(moved / cells, (table.shape[0], table.shape[1]))  # F12
    return fit_margins(wanted, rows, columns)


def _descend(start: Floats, reports: Sequence[GridReport], strength: float, steps: int) -> Floats:
    """Mirror descent: each step multiplies cells, and proportional fitting brings them back to their margins.

    In that geometry the misfit of a grid curves by at most its largest cell over its variance: that is the first
    step's length. Steps that gain are followed by longer ones.
    """
    rows, columns, cells = start.sum(axis=1), start.sum(axis=0), start
    blocks = [Blocks.of(report, start.shape) for report in reports]
    length = 1 / (strength + sum(float(r.sums(start).max()) / r.variance for r in reports))  # F13
    loss, lacks, log = _loss(cells, start, reports, blocks, strength)
    for _ in range(steps):
        slope = strength * log
        for report, block, lack in zip(reports, blocks, lacks, strict=True):
            slope -= block.spread(lack / report.variance)
        there = cells * np.exp(np.minimum(np.maximum(-length * slope, -2.0), 2.0))  # F13
        by_row, by_column = margin_scales(there, rows, columns, np.ones(columns.size), _SWEEPS, 1e-9)
        there = np.maximum(scaled(there, by_row, by_column), _LEAST_MASS)
        reached = _loss(there, start, reports, blocks, strength)
        if reached[0] > loss:
            length *= _SHORTENING
            continue
        moved = float(np.abs(there - cells).sum())
        (loss, lacks, log), cells, length = reached, there, length * _LENGTHENING
        if moved < _LEAST_MOVE:
            break
    return cells


def _loss(
    cells: Floats, start: Floats, reports: Sequence[GridReport], blocks: Sequence[Blocks], strength: float
) -> tuple[float, list[Floats], Floats]:
    """Half the squared misfit, in units of the noise, and the relative entropy times its strength.

    Also what the reports say more than the cells, and the logarithm of what the cells are of those at the start.
    """
    lacks = [report.values - block.sums(cells) for report, block in zip(reports, blocks, strict=True)]
    off = sum(float((lack**2).sum()) / report.variance for report, lack in zip(reports, lacks, strict=True))
    log = np.log(cells / start)
    return off / 2 + strength * float((cells * log).sum()), lacks, log  # F12
