"""Estimates from trees over pairs of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.estimates.solvers.max_entropy import (
    BLOCKS,
    MOST_ATTRIBUTES,
    solve,
    weighted_update,
)
from ahead_ldp.mechanisms.ahead.attribute_consistency import (
    LevelGrids,
    Pair,
    attribute_weights,
    level_tables,
    make_consistent,
)
from ahead_ldp.mechanisms.ahead.averaging import Averaged
from ahead_ldp.mechanisms.ahead.errors import cell_masses, linear_variance, uneven_functional, uneven_variance
from ahead_ldp.partitions.covers import BoxTables, chunks, cover_weights
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import Workload, by_restriction

ENTROPY_WEIGHT = 0.05  # what entropy may cost in misfit, in units of the noise: it breaks ties (decision 002)
_EVEN_BLOCK = 0.25  # a block that nobody told about counts as one of four equal ones


@dataclass(frozen=True, eq=False)
class PairEstimate(Estimate):
    """One tree for each pair of attributes, made to agree on the attributes they share (AHEAD App. F).

    A query uses only what it restricts: one attribute, the agreed marginal; two, their pair; more, the pairs among
    them, joined by maximum entropy (``combine="entropy"``) or by the paper's weighted update.
    """

    assumption: ClassVar[str] = "people lie about evenly inside the cells that were not divided further"
    through_pairs: ClassVar[bool] = True
    schema: Schema
    trees: Mapping[Pair, Averaged]
    combine: str = "entropy"
    consistent: bool = False

    @cached_property
    def grids(self) -> dict[Pair, LevelGrids]:
        """Every pair's levels as grids, consistent on attributes."""
        return make_consistent(self._raw_grids, len(self.schema.attributes))

    @cached_property
    def _raw_grids(self) -> dict[Pair, LevelGrids]:
        with np.errstate(divide="ignore"):
            return {pair: LevelGrids.complete(t.tree, t.values, 1 / t.precision) for pair, t in self.trees.items()}

    @cached_property
    def _answerers(self) -> dict[Pair, BoxTables]:
        return {pair: level_tables(grids) for pair, grids in self.grids.items()}

    @cached_property
    def _most_nodes(self) -> int:
        return max(averaged.tree.size for averaged in self.trees.values())

    @cached_property
    def _cells(self) -> dict[Pair, tuple[Ints, Floats]]:
        """The finest cells that reports tell about, and how much there may be in each."""
        supported = {pair: averaged.supported for pair, averaged in self.trees.items()}
        return {pair: (nodes, cell_masses(self.trees[pair], nodes)) for pair, nodes in supported.items()}

    @cached_property
    def _typical_variance(self) -> dict[Pair, float]:
        """The variance of a pair's answer, over a few boxes of middling size: weighs the misfit of the pairs.

        The boxes are the same whichever attribute comes first.
        """
        low, middle, high = [0, 0.5], [0.25, 0.75], [0.5, 1]
        corners = np.array([[low, low], [middle, middle], [low, high], [high, low]])
        typical = {}
        for pair, averaged in self.trees.items():
            boxes = np.round(corners * np.array([a.size for a in averaged.tree.axes], float)[None, :, None])
            typical[pair] = float(np.mean(_variance(averaged, cover_weights(averaged.tree, boxes))))
        return typical

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers; more than 16 restricted attributes in one query are refused."""
        values, variance, uneven = (np.zeros(len(workload.boxes)) for _ in range(3))
        flagged = np.zeros(workload.n, bool)
        for attributes, boxes in by_restriction(self.schema.sizes, workload.boxes):
            for part in chunks(boxes.size, 4 * self._most_nodes if errors else 1):
                some = boxes[part]
                answers = self._answer(attributes, workload.boxes[some][:, attributes], errors)
                values[some], variance[some], uneven[some] = answers
            if errors and len(attributes) > 2:  # what the most even joint distribution is off by is not known
                flagged[workload.owner[boxes]] = True
        error = _sum_errors(workload, variance) if errors else np.full(workload.n, np.nan)
        return Answers(workload.add_up(values), error, flagged, bias_error=_sum_errors(workload, uneven))

    def _answer(self, attributes: tuple[int, ...], boxes: Floats, errors: bool) -> tuple[Floats, Floats, Floats]:
        """Values, variances and squared biases of boxes (k, q, 2) on these attributes alone."""
        k, q = len(boxes), len(attributes)
        if q > MOST_ATTRIBUTES:
            raise ValueError(f"expected a query to restrict at most {MOST_ATTRIBUTES} attributes, got {q}")
        if q == 0:
            return np.ones(k), np.zeros(k), np.zeros(k)
        if q == 1:
            return self._answer_one(attributes[0], boxes[:, 0], errors)
        blocks = self._blocks(attributes, boxes)
        if q == 2:
            values, by_block = blocks[:, 0, 0], np.tile([1.0, 0.0, 0.0, 0.0], (k, 1, 1))
        else:
            noise = self._noise(attributes)
            solution = solve(blocks, ENTROPY_WEIGHT * noise)
            values = weighted_update(blocks) if self.combine == "weighted_update" else solution.answers
            # Slopes are taken where every block has at least its noise: at an answer of 0 none would be left.
            lifted = np.maximum(blocks, np.minimum(np.sqrt(noise), _EVEN_BLOCK)[:, None])
            by_block = solve(lifted, noise).by_block if errors else solution.by_block
        if not errors:
            return values, np.zeros(k), np.zeros(k)
        return values, *self._errors(attributes, boxes, by_block)

    def _noise(self, attributes: tuple[int, ...]) -> Floats:  # -> (pairs,)
        return np.array([self._typical_variance[pair] for pair in combinations(attributes, 2)])

    def _answer_one(self, attribute: int, ranges: Floats, errors: bool) -> tuple[Floats, Floats, Floats]:
        """One attribute: every pair with it gives the same answer, in and out of the range; their sum is 1.

        (Inside a code the shallowest pairs do: those whose last level all pairs have agreed on.) What lies outside
        tells of the range too, unless the tree is consistent: there it says nothing more.
        """
        pair = min((p for p in self.grids if attribute in p), key=lambda p: self.grids[p].height)
        three = _three(ranges, self.schema.sizes[attribute])
        inside, left, right = (self._answerers[pair].answer(self._slab(pair, attribute, part)) for part in three)
        values = (1 + inside - left - right) / 2
        if not errors:
            return values, np.zeros(len(ranges)), np.zeros(len(ranges))
        variance, uneven = np.zeros(len(ranges)), np.zeros(len(ranges))
        for member, weight in attribute_weights(self._raw_grids, attribute).items():
            averaged = self.trees[member]
            total = np.zeros((len(ranges), averaged.tree.size))
            signed = zip(three, (0.5, -0.5, -0.5), strict=True)
            for part, sign in [(ranges, 1.0)] if averaged.is_consistent else signed:
                total += sign * weight * cover_weights(averaged.tree, self._slab(member, attribute, part))
            variance += _variance(averaged, total)
            slab = self._slab(member, attribute, ranges)
            uneven += weight**2 * uneven_variance(averaged.tree, *self._cells[member], slab)
        return values, variance, uneven

    def _blocks(self, attributes: tuple[int, ...], boxes: Floats) -> Floats:  # (k, q, 2) -> (k, pairs, 4)
        """In/in, in/out, out/in and out/out of each pair, read from its tree."""
        blocks = []
        for i, j in combinations(range(len(attributes)), 2):
            answer = self._answerers[attributes[i], attributes[j]].answer
            parts = self._pair_parts((attributes[i], attributes[j]), boxes[:, i], boxes[:, j])
            blocks.append(np.stack([sum(map(answer, block)) for block in parts], axis=1))
        return np.stack(blocks, axis=1)

    def _pair_parts(self, pair: Pair, first: Floats, second: Floats) -> list[list[Floats]]:
        """The boxes of the four blocks of a pair: one in/in, two in/out, two out/in, four out/out."""
        one, other = _three(first, self.schema.sizes[pair[0]]), _three(second, self.schema.sizes[pair[1]])
        sides = {True: slice(0, 1), False: slice(1, 3)}
        return [[np.stack([x, y], axis=1) for x in one[sides[a]] for y in other[sides[b]]] for a, b in BLOCKS]

    def _slab(self, pair: Pair, attribute: int, ranges: Floats) -> Floats:  # (k, 2) -> (k, 2, 2)
        boxes = np.zeros((len(ranges), 2, 2))
        boxes[:, :, 1] = [self.schema.sizes[a] for a in pair]
        boxes[:, pair.index(attribute)] = ranges
        return boxes

    def _errors(self, attributes: tuple[int, ...], boxes: Floats, by_block: Floats) -> tuple[Floats, Floats]:
        """Variances and squared biases to first order, as far as the answer moves with each tree's answers.

        The corrections that make the trees agree on attributes are neglected. A pair without reports has no say,
        and is not missed if other pairs tell of both its attributes.
        """
        variance, uneven = np.zeros(len(boxes)), np.zeros(len(boxes))
        reported = {a for pair in combinations(attributes, 2) if self.trees[pair].has_reports for a in pair}
        for k, (i, j) in enumerate(combinations(range(len(attributes)), 2)):
            pair = attributes[i], attributes[j]
            averaged = self.trees[pair]
            if not averaged.has_reports and reported.issuperset(pair):
                continue
            total = np.zeros((len(boxes), averaged.tree.size))
            parts = self._pair_parts(pair, boxes[:, i], boxes[:, j])
            for b, block in enumerate(parts):
                if by_block[:, k, b].any():
                    total += by_block[:, k, b, None] * sum(cover_weights(averaged.tree, box) for box in block)
            variance += _variance(averaged, total)
            uneven += uneven_functional(averaged.tree, *self._cells[pair], parts, by_block[:, k])
        return variance, uneven


def _variance(averaged: Averaged, weights: Floats) -> Floats:  # (k, nodes) -> (k,)
    """The pipeline's; without reports infinite for all but the root."""
    if averaged.has_reports:
        return linear_variance(averaged, weights)
    return np.where((weights[:, 1:] == 0).all(axis=1), 0.0, np.inf)


def _three(ranges: Floats, size: int) -> list[Floats]:  # (k, 2) -> three of (k, 2)
    """A range, what lies below it and what lies above it."""
    below = np.stack([np.zeros(len(ranges)), ranges[:, 0]], axis=1)
    above = np.stack([ranges[:, 1], np.full(len(ranges), float(size))], axis=1)
    return [ranges, below, above]


def _sum_errors(workload: Workload, variance: Floats) -> Floats:
    """Standard errors of sums over boxes; boxes of one query are taken as perfectly dependent, an upper bound."""
    return workload.add_up(np.sqrt(variance))
