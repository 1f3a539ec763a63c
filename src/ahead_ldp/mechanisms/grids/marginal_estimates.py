"""Estimates from whole marginals of some sets of attributes (ZWLHC18): CALM's answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import NoisyBoxEstimate
from ahead_ldp.estimates.grids import Grid
from ahead_ldp.estimates.solvers.proportional_fitting import proportional_fit
from ahead_ldp.estimates.solvers.slabs import Slabs
from ahead_ldp.estimates.solvers.weighted_update import cell_derivatives, subset_columns
from ahead_ldp.mechanisms.grids.grid_consistency import (
    Agreement,
    agreements,
    answer_variance,
    make_consistent,
    shared_attributes,
)
from ahead_ldp.partitions.shares import code_shares
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Bools, Floats, Ints
from ahead_ldp.schema.workloads import by_restriction

_CELLS = 1 << 22  # of a marginal that is put together for a query, at most (32 MB)


@dataclass(frozen=True, slots=True, eq=False)
class MarginalEstimate(NoisyBoxEstimate):
    """Consistent marginals; others are put together from them by maximum entropy, and summed over a box.

    Attributes that a box does not restrict are left out. Standard errors are first order and take Norm-Sub as a
    shift. For a marginal that was put together they follow the entropy's maximum on the 2**q cells inside and outside
    the box's sides only, and the answer is marked ``bias_not_included``.
    """

    assumption: ClassVar[str] = (
        "raising negative shares to zero moved the answers little, and attributes that were not asked about together "
        "depend on one another as little as the others allow"
    )
    schema: Schema
    grids: tuple[Grid, ...]
    agreements: tuple[Agreement, ...]
    sweeps: int
    tolerance: float
    consistent: bool
    tables: dict[tuple[int, ...], SummedArea] = field(default_factory=dict)  # filled as queries need them

    @classmethod
    def of(
        cls, schema: Schema, grids: Sequence[Grid], *, rounds: int = 100, sweeps: int = 100, tolerance: float = 1e-6
    ) -> MarginalEstimate:
        """The estimate from what the groups said; a group that said nothing counts as not asked."""
        reported = [g for g in grids if g.n > 0]
        agreed = agreements(reported, shared_attributes(reported))
        consistent = tuple(make_consistent(reported, agreed, rounds))
        return cls(schema, consistent, agreed, sweeps, tolerance, consistent=len(grids) <= 1)

    def table(self, attributes: tuple[int, ...]) -> Floats:  # -> (size, ...)
        """The marginal of some attributes: a sum of one that was asked for, else the most even one that fits all."""
        sizes = [self.schema.sizes[a] for a in attributes]
        if prod(sizes) > _CELLS:
            what = f"{' x '.join(map(str, sizes))} = {prod(sizes)} for {', '.join(self._names(attributes))}"
            raise ValueError(f"expected a marginal of at most {_CELLS} cells to sum over, got {what}")
        borders = [np.arange(size + 1) for size in sizes]
        constraints = []
        for known in self._known(attributes):
            axes = [attributes.index(a) for a in known]
            slabs = Slabs.of(borders, axes, [borders[axis] for axis in axes])
            constraints.append((slabs, self._marginal(known)))
            if known == attributes:
                return constraints[-1][1]
        return proportional_fit(np.ones(sizes), constraints, self.sweeps, self.tolerance)

    def _names(self, attributes: Sequence[int]) -> list[str]:
        return [self.schema.names[a] for a in attributes]

    def _known(self, attributes: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The largest sets among these attributes that some marginal holds."""
        held = {tuple(a for a in attributes if a in g.attributes) for g in self.grids}
        return sorted(s for s in held if s and not any(set(s) < set(t) for t in held))

    def _marginal(self, attributes: tuple[int, ...]) -> Floats:
        """The mean of the marginals that hold these attributes, by their groups' sizes; they nearly agree."""
        holders = [g for g in self.grids if set(attributes) <= set(g.attributes)]
        people, total = sum(g.n for g in holders), np.zeros([self.schema.sizes[a] for a in attributes])
        for g in holders:
            others = tuple(i for i, a in enumerate(g.attributes) if a not in attributes)
            total += g.values.sum(axis=others) * (g.n / people)
        return total

    def _sums(self, attributes: tuple[int, ...], boxes: Floats) -> Floats:  # (k, m, 2) -> (k,)
        if not attributes:
            return np.ones(len(boxes))
        if attributes not in self.tables:
            self.tables[attributes] = SummedArea.of(self.table(attributes))
        return np.asarray(self.tables[attributes].fractional_boxes(boxes[:, attributes]), np.float64)

    @property
    def _width(self) -> int:
        return sum(g.values.size for g in self.grids)

    def _values(self, boxes: Floats) -> Floats:
        values = np.zeros(len(boxes))
        for attributes, rows in by_restriction(self.schema.sizes, boxes):
            values[rows] = self._sums(attributes, boxes[rows])
        return values

    def _assumes(self, boxes: Floats) -> Bools:
        marked = NoisyBoxEstimate._assumes(self, boxes)
        for attributes, rows in by_restriction(self.schema.sizes, boxes):
            marked[rows] |= self._known(attributes) != [attributes] and attributes != ()
        return marked

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        gradients = [np.zeros((answers.size, *g.values.shape)) for g in self.grids]
        unknown = np.zeros(answers.size, bool)
        for attributes, rows in by_restriction(self.schema.sizes, boxes):
            known = self._known(attributes)
            unknown[owner[rows]] |= set().union(*known) != set(attributes)
            for subset, slope in self._slopes(attributes, known, boxes[rows]):
                self._add(gradients, owner[rows], subset, slope, boxes[rows])
        variance = answer_variance(self.grids, self.agreements, gradients, answers)
        return np.where(unknown, np.inf, variance)

    def _slopes(
        self, attributes: tuple[int, ...], known: list[tuple[int, ...]], boxes: Floats
    ) -> Iterator[tuple[tuple[int, ...], Floats]]:
        """Sets of attributes, and how the answers move with the answers on these sets alone."""
        if not known:
            return
        if known == [attributes]:
            yield attributes, np.ones(len(boxes))
            return
        q = len(attributes)
        every = [c for r in range(q + 1) for c in combinations(range(q), r)]
        answers = np.stack([self._sums(tuple(attributes[i] for i in c), boxes) for c in every], axis=1)
        cells = np.maximum(np.linalg.solve(subset_columns(q, every), answers.T).T, 0.0)
        held = [c for c in every if any({attributes[i] for i in c} <= set(s) for s in known)]
        slopes = cell_derivatives(cells, subset_columns(q, held))
        for c, slope in zip(held, slopes.T, strict=True):
            if c:
                yield tuple(attributes[i] for i in c), slope

    def _add(self, gradients: list[Floats], owner: Ints, subset: tuple[int, ...], slope: Floats, boxes: Floats) -> None:
        """The derivatives by the cells of one marginal that holds the set; agreement passes them on to the others."""
        if not subset:
            return
        i = next(i for i, g in enumerate(self.grids) if set(subset) <= set(g.attributes))
        grid = self.grids[i]
        share = slope.reshape(-1, *[1] * grid.values.ndim)
        for axis, (a, size) in enumerate(zip(grid.attributes, grid.values.shape, strict=True)):
            if a in subset:
                wide = [-1 if other == axis else 1 for other in range(grid.values.ndim)]
                share = share * code_shares(boxes[:, a], size).reshape(len(boxes), *wide)
        np.add.at(gradients[i], owner, np.broadcast_to(share, (len(boxes), *grid.values.shape)))
