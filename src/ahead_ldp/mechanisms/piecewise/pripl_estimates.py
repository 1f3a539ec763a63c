"""Estimates from distributions of single attributes and grids of pairs (WYHM24 Sec. 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.estimates.grids import Grid
from ahead_ldp.estimates.solvers.proportional_fitting import Constraint, proportional_fit
from ahead_ldp.estimates.solvers.slabs import Slabs
from ahead_ldp.estimates.solvers.weighted_update import cell_derivatives, fit_derivatives, in_out_cells, pair_columns
from ahead_ldp.mechanisms.piecewise.adaptive_grids import agree_grid, agree_margin
from ahead_ldp.mechanisms.piecewise.interval_estimates import Margin
from ahead_ldp.partitions.covers import chunks
from ahead_ldp.partitions.shares import column_shares, cut
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Bools, Floats, Ints
from ahead_ldp.schema.workloads import Workload, by_restriction


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """The joint distribution of two attributes: sums of its response matrix, and what it was fitted to."""

    grid: Grid | None  # None: nobody was asked, and the attributes count as independent
    sums: SummedArea  # of the response matrix, code by code
    borders: tuple[Ints, Ints]  # of the cells that leaves and grid together tell apart
    table: Floats  # (rows, columns) the response matrix on those cells
    constraints: tuple[Constraint, ...]  # leaves of the first, leaves of the second, the grid's cells


@dataclass(frozen=True, slots=True, eq=False)
class PairsEstimate(Estimate):
    """A margin for every attribute, a response matrix for every pair.

    A query on one attribute is answered from its margin, on two from their matrix, on more by weighted update from its
    pairs' answers. Attributes that a box does not restrict are left out. Answers on different numbers of
    attributes need not add up.

    Standard errors are first order, with agreement between margins and grids taken as the identity, and the pairs of a
    query on more than two attributes as independent. ``bias_not_included`` marks boxes that cut a leaf or a grid's
    cell, and all boxes on more than two attributes.
    """

    assumption: ClassVar[str] = "shares are even or run along straight lines inside the pieces that were not divided"
    through_pairs: ClassVar[bool] = True
    schema: Schema
    margins: Mapping[int, Margin]
    pairs: Mapping[tuple[int, int], PairTable]
    consistent: bool

    @classmethod
    def of(cls, schema: Schema, margins: Mapping[int, Margin], grids: Sequence[Grid]) -> PairsEstimate:
        """Margins and grids made to agree (Sec. 4.3), and a matrix of greatest entropy for each pair."""
        reported = [g for g in grids if g.n > 0]
        margins = {a: _agreed(margin, a, reported) for a, margin in margins.items()}
        by_pair = {g.attributes: g for g in reported}
        pairs = {
            pair: pair_table(margins[pair[0]], margins[pair[1]], by_pair.get(pair))
            for pair in combinations(sorted(margins), 2)
        }
        return cls(schema, margins, pairs, consistent=len(margins) <= 1)

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers in the order of the workload; a query's boxes are apart, their errors taken as independent."""
        values, variance = np.zeros(len(workload.boxes)), np.zeros(len(workload.boxes))
        marked = np.zeros(len(workload.boxes), bool)
        for attributes, rows in by_restriction(self.schema.sizes, workload.boxes):
            for part in chunks(rows.size, 4 * self._largest):
                at = rows[part]
                values[at], variance[at], marked[at] = self._boxes(attributes, workload.boxes[at], errors)
        answers = workload.add_up(values)
        if not errors:
            return Answers(answers, np.full(workload.n, np.nan), np.zeros(workload.n, bool))
        return Answers(answers, np.sqrt(workload.add_up(variance)), workload.add_up(marked.astype(float)) > 0)

    @property
    def _largest(self) -> int:
        return max((p.table.size for p in self.pairs.values()), default=1)

    def _boxes(self, attributes: tuple[int, ...], boxes: Floats, errors: bool) -> tuple[Floats, Floats, Bools]:
        """Answers to boxes that restrict some attributes; inside the only code of an attribute people are even."""
        asked = tuple(a for a in attributes if a in self.margins)
        alone = [a for a in attributes if a not in self.margins]
        inside = np.prod(boxes[:, alone, 1] - boxes[:, alone, 0], axis=1)
        values, variance, marked = self._asked(asked, boxes, errors)
        return values * inside, variance * inside**2, marked | (inside < 1)

    def _asked(self, attributes: tuple[int, ...], boxes: Floats, errors: bool) -> tuple[Floats, Floats, Bools]:
        k = len(boxes)
        if not attributes:
            return np.ones(k), np.zeros(k), np.zeros(k, bool)
        if len(attributes) == 1:
            return self._one(attributes[0], boxes, errors)
        q, pairs = len(attributes), list(combinations(attributes, 2))
        parts = [self._two(pair, boxes, errors) for pair in pairs]
        if q == 2:
            return parts[0]
        cells = in_out_cells(np.stack([p[0] for p in parts], axis=1), q, complement=True)
        slopes = cell_derivatives(cells, pair_columns(q))[:, 1:] if errors else np.zeros((k, len(pairs)))
        with np.errstate(invalid="ignore"):
            variance = np.nansum(slopes**2 * np.stack([p[1] for p in parts], axis=1), axis=1)
        return cells[:, 0], variance, np.ones(k, bool)

    def _one(self, attribute: int, boxes: Floats, errors: bool) -> tuple[Floats, Floats, Bools]:
        margin, sides = self.margins[attribute], boxes[:, attribute]
        values = SummedArea.of(margin.density).fractional_boxes(sides[:, None])
        share = margin.coverage(sides)
        variance = margin.variance(share) if errors else np.zeros(len(boxes))
        return values, variance, cut(share)

    def _two(self, pair: tuple[int, int], boxes: Floats, errors: bool) -> tuple[Floats, Floats, Bools]:
        table, sides = self.pairs[pair], boxes[:, pair, :]
        values = table.sums.fractional_boxes(sides)
        shares = [column_shares(sides[:, i], borders) for i, borders in enumerate(table.borders)]
        marked = np.full(len(boxes), table.grid is None)
        for i, borders in enumerate(table.grid.borders if table.grid else ()):
            marked |= cut(column_shares(sides[:, i], borders))
        variance = self._pair_variance(pair, shares) if errors else np.zeros(len(boxes))
        return values, variance, marked

    def _pair_variance(self, pair: tuple[int, int], shares: list[Floats]) -> Floats:
        """The noise of both margins and of the grid, through the fit of the response matrix."""
        table = self.pairs[pair]
        weights = shares[0][:, :, None] * shares[1][:, None, :]
        slopes = fit_derivatives(table.table, table.constraints, weights)
        variance = sum(self.margins[a].variance(slope) for a, slope in zip(pair, slopes[:2], strict=True))
        if table.grid:
            by_cell = slopes[2].reshape(len(weights), -1)
            by_cell = by_cell - by_cell.mean(axis=1, keepdims=True)
            f = np.maximum(table.grid.values.reshape(-1), 0.0)
            variance = variance + np.maximum(table.grid.oracle.quadratic(table.grid.n, f, by_cell), 0.0)
        return np.asarray(variance)


def pair_table(first: Margin, second: Margin, grid: Grid | None, sweeps: int = 100) -> PairTable:
    """The matrix of greatest entropy whose margins are the given ones, code by code, and whose cells are the grid's."""
    margins = (first, second)
    densities = [m.density for m in margins]
    codes = tuple(np.arange(d.size + 1) for d in densities)
    if grid is not None:
        leaves = (first.borders, first.masses), (second.borders, second.masses)
        sides = grid.borders[0], grid.borders[1]
        grid = replace(grid, values=agree_grid(sides, grid.values, leaves))
    constraints = [(Slabs.of(codes, (i,), (codes[i],)), densities[i]) for i in range(2)]
    if grid is not None:
        constraints.append((Slabs.of(codes, (0, 1), grid.borders), grid.values))
    start = np.outer(*densities)
    matrix = proportional_fit(start, constraints, sweeps, 1e-7) if grid is not None else start / start.sum()
    borders = tuple(
        np.union1d(m.borders, grid.borders[i]) if grid is not None else m.borders for i, m in enumerate(margins)
    )
    table = Slabs.of(codes, (0, 1), borders).sums(matrix)
    coarse = [(Slabs.of(borders, (i,), (m.borders,)), m.masses) for i, m in enumerate(margins)]
    if grid is not None:
        coarse.append((Slabs.of(borders, (0, 1), grid.borders), grid.values))
    return PairTable(grid, SummedArea.of(matrix), (borders[0], borders[1]), table, tuple(coarse))


def _agreed(margin: Margin, attribute: int, grids: Sequence[Grid]) -> Margin:
    """The margin after the grids that hold its attribute have been averaged in."""
    mine = [g for g in grids if attribute in g.attributes]
    if not mine:
        return margin
    variances = margin.errors.variance(np.eye(margin.masses.size))
    variances = np.where(np.isfinite(variances), variances, 1.0)
    columns = []
    for grid in mine:
        axis = grid.attributes.index(attribute)
        others = grid.values.shape[1 - axis]
        sums = grid.values.sum(axis=1 - axis)
        columns.append((grid.borders[axis], sums, np.full(sums.size, others / grid.precision)))
    return replace(margin, masses=agree_margin(margin.borders, margin.masses, variances, columns))
