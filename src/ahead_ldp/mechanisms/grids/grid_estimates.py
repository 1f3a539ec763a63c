"""Estimates from grids of one and of two attributes (YLWLS20): HDG's and TDG's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import BoxEstimate
from ahead_ldp.estimates.grids import Grid
from ahead_ldp.estimates.solvers.proportional_fitting import Constraint, proportional_fit
from ahead_ldp.estimates.solvers.slabs import Slabs
from ahead_ldp.estimates.solvers.weighted_update import cell_derivatives, fit_derivatives, in_out_cells, pair_columns
from ahead_ldp.mechanisms.grids.grid_consistency import Agreement, agreements, answer_variance, make_consistent
from ahead_ldp.partitions.shares import column_shares, cut
from ahead_ldp.protocol.mechanism import several_codes
from ahead_ldp.schema.arrays import Bools, Floats, Ints
from ahead_ldp.schema.workloads import by_restriction

Gradients = dict[int, Floats]  # grid -> (k, columns, ...), the answers' derivatives by its cells


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """A pair's response matrix, on the cells that its grids together can tell apart.

    Codes in one such cell are never told apart by a grid, so their entries of YLWLS20's |D| x |D| matrix are equal.
    """

    borders: tuple[Ints, Ints]
    table: Floats  # (rows, columns)
    sources: tuple[tuple[int, tuple[int, ...]], ...]  # behind each constraint: a grid, and its axes that were kept
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Answers to some boxes that restrict the same attributes."""

    values: Floats  # (k,)
    gradients: Gradients
    cut: Bools  # (k,)
    unknown: bool = False  # rests on no report at all


@dataclass(frozen=True, slots=True, eq=False)
class GridEstimate(BoxEstimate):
    """Consistent grids, and a response matrix for each pair of attributes.

    A query on one attribute is answered from that attribute's grid, or from the pairs' where there is none; on two
    from the response matrix; on more by weighted update from its pairs' answers. Attributes that a box does not
    restrict are left out. Answers on different numbers of attributes need not add up.

    Standard errors are first order: the grids' noise through the weighted updates, Norm-Sub taken as a shift.
    ``bias_not_included`` marks boxes that cut a cell of their grid, and all boxes on more than two attributes.
    """

    assumption: ClassVar[str] = "people lie evenly inside the cells of the grids"
    through_pairs: ClassVar[bool] = True
    schema: Schema
    grids: tuple[Grid, ...]
    agreements: tuple[Agreement, ...]
    responses: dict[tuple[int, int], Response]
    sweeps: int
    tolerance: float
    complement: bool
    consistent: bool

    @classmethod
    def of(
        cls,
        schema: Schema,
        grids: Sequence[Grid],
        *,
        rounds: int = 100,
        sweeps: int = 100,
        tolerance: float = 1e-6,
        complement: bool = False,
    ) -> GridEstimate:
        """The estimate from what the groups said; a group that said nothing counts as not asked."""
        reported = [g for g in grids if g.n > 0]
        attributes = several_codes(schema)
        agreed = agreements(reported, [(a,) for a in attributes])
        consistent = make_consistent(reported, agreed, rounds)
        pairs = combinations(attributes, 2)
        responses = {pair: _response(schema.sizes, consistent, pair, sweeps, tolerance) for pair in pairs}
        alone = len(attributes) <= 1
        return cls(schema, tuple(consistent), agreed, responses, sweeps, tolerance, complement, alone)

    @property
    def _width(self) -> int:
        largest = max((r.table.size for r in self.responses.values()), default=0)
        return largest + sum(g.values.size for g in self.grids)

    def _values(self, boxes: Floats) -> Floats:
        values = np.zeros(len(boxes))
        for attributes, rows in by_restriction(self.schema.sizes, boxes):
            values[rows] = self._part(attributes, boxes[rows], errors=False).values
        return values

    def _with_errors(self, boxes: Floats, owner: Ints, queries: int) -> tuple[NDArray[Any], ...]:
        values, marked, unknown = np.zeros(queries), np.zeros(queries, bool), np.zeros(queries, bool)
        gradients = [np.zeros((queries, *g.values.shape)) for g in self.grids]
        for attributes, rows in by_restriction(self.schema.sizes, boxes):
            part = self._part(attributes, boxes[rows], errors=True)
            np.add.at(values, owner[rows], part.values)
            np.logical_or.at(marked, owner[rows], part.cut)
            unknown[owner[rows]] |= part.unknown
            for i, gradient in part.gradients.items():
                np.add.at(gradients[i], owner[rows], gradient)
        variance = answer_variance(self.grids, self.agreements, gradients, values)
        return values, np.where(unknown, np.inf, variance), marked

    def _part(self, attributes: tuple[int, ...], boxes: Floats, *, errors: bool) -> Part:
        k, sides = len(boxes), [boxes[:, a] for a in attributes]
        if not attributes:
            return Part(np.ones(k), {}, np.zeros(k, bool))
        if len(attributes) == 1:
            return self._one(attributes[0], sides[0])
        pairs = list(combinations(range(len(attributes)), 2))
        parts = [self._two((attributes[i], attributes[j]), sides[i], sides[j], errors=errors) for i, j in pairs]
        if len(parts) == 1:
            return parts[0]
        cells = in_out_cells(
            np.stack([p.values for p in parts], axis=1),
            len(attributes),
            self.sweeps,
            self.tolerance,
            complement=self.complement,
        )
        gradients: Gradients = {}
        if errors:
            slopes = cell_derivatives(cells, pair_columns(len(attributes)))[:, 1:]
            for part, slope in zip(parts, slopes.T, strict=True):
                for i, gradient in part.gradients.items():
                    gradients[i] = gradients.get(i, 0.0) + slope.reshape(-1, *[1] * (gradient.ndim - 1)) * gradient
        return Part(cells[:, 0], gradients, np.ones(k, bool), any(p.unknown for p in parts))

    def _one(self, attribute: int, sides: Floats) -> Part:
        holders = [i for i, g in enumerate(self.grids) if attribute in g.attributes]
        alone = [i for i in holders if len(self.grids[i].attributes) == 1] or holders
        if not alone:
            width = (sides[:, 1] - sides[:, 0]) / self.schema.sizes[attribute]
            return Part(width, {}, np.ones(len(sides), bool), unknown=True)
        people = sum(self.grids[i].n for i in alone)
        values, marked, gradients = np.zeros(len(sides)), np.zeros(len(sides), bool), {}
        for i in alone:
            grid = self.grids[i]
            axis = grid.attributes.index(attribute)
            share = column_shares(sides, grid.borders[axis])
            others = tuple(a for a in range(grid.values.ndim) if a != axis)
            values += share @ grid.values.sum(axis=others) * (grid.n / people)
            wide = share.reshape(len(sides), *[-1 if a == axis else 1 for a in range(grid.values.ndim)])
            gradients[i] = np.broadcast_to(wide * (grid.n / people), (len(sides), *grid.values.shape))
            marked |= cut(share)
        return Part(values, gradients, marked)

    def _two(self, pair: tuple[int, int], first: Floats, second: Floats, *, errors: bool) -> Part:
        response = self.responses[pair]
        rows, columns = column_shares(first, response.borders[0]), column_shares(second, response.borders[1])
        values = ((rows @ response.table) * columns).sum(axis=1)
        gradients: Gradients = {}
        if errors and response.sources:
            weights = rows[:, :, None] * columns[:, None, :]
            slopes = fit_derivatives(response.table, response.constraints, weights)
            for (i, axes), slope in zip(response.sources, slopes, strict=True):
                gradients[i] = gradients.get(i, 0.0) + _widened(slope, axes, self.grids[i].values.shape)
        marked, asked = np.ones(len(first), bool), set[int]()
        for i, axes in response.sources:
            asked.update(self.grids[i].attributes[axis] for axis in axes)
            if len(axes) == 2:
                borders = self.grids[i].borders
                marked = cut(column_shares(first, borders[0])) | cut(column_shares(second, borders[1]))
        return Part(values, gradients, marked, unknown=asked != set(pair))


def _response(
    sizes: tuple[int, ...], grids: Sequence[Grid], pair: tuple[int, int], sweeps: int, tolerance: float
) -> Response:
    """The pair's table from its two one-attribute grids, then its own grid (YLWLS20), uniform at the start.

    An attribute that none of the three tells about is taken from the largest other group that was asked about it.
    """
    used = [i for i, g in enumerate(grids) if set(g.attributes) <= set(pair)]
    used.sort(key=lambda i: (len(grids[i].attributes), grids[i].attributes))
    for a in set(pair).difference(*(grids[i].attributes for i in used)):
        used[:0] = sorted((i for i, g in enumerate(grids) if a in g.attributes), key=lambda i: -grids[i].n)[:1]
    sources = [(i, tuple(axis for axis, a in enumerate(grids[i].attributes) if a in pair)) for i in used]
    ends = [np.array([0, sizes[a]]) for a in pair]
    for i, axes in sources:
        for axis in axes:
            place = pair.index(grids[i].attributes[axis])
            ends[place] = np.union1d(ends[place], grids[i].borders[axis])
    constraints = []
    for i, axes in sources:
        places = [pair.index(grids[i].attributes[axis]) for axis in axes]
        others = tuple(axis for axis in range(grids[i].values.ndim) if axis not in axes)
        slabs = Slabs.of(ends, places, [grids[i].borders[axis] for axis in axes])
        constraints.append((slabs, grids[i].values.sum(axis=others)))
    start = np.outer(np.diff(ends[0]), np.diff(ends[1])).astype(np.float64)
    table = proportional_fit(start, constraints, sweeps, tolerance)
    return Response((ends[0], ends[1]), table, tuple(sources), tuple(constraints))


def _widened(slope: Floats, axes: tuple[int, ...], shape: tuple[int, ...]) -> Floats:  # (k, kept) -> (k, columns, ...)
    """Derivatives by a grid's sums as derivatives by its cells."""
    wide = [shape[axis] if axis in axes else 1 for axis in range(len(shape))]
    return np.broadcast_to(slope.reshape(len(slope), *wide), (len(slope), *shape))
