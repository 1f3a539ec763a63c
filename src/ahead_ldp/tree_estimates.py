"""Estimates that are a tree with values: one tree over all attributes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.covers import Answerer, chunks, cover_weights, ends_inside
from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates import Answers, Estimate
from ahead_ldp.inference.averaging import Averaged
from ahead_ldp.inference.errors import linear_variance
from ahead_ldp.slices import proper
from ahead_ldp.trees import Tree
from ahead_ldp.workloads import Workload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TreeEstimate(Estimate):
    """Frequencies of a tree's nodes; queries take the coarsest nodes they cover and shares of the leaves they cut."""

    schema: Schema
    averaged: Averaged
    consistent: bool

    @property
    def tree(self) -> Tree:
        """The decomposition."""
        return self.averaged.tree

    @property
    def values(self) -> Floats:
        """The frequency of each node."""
        return self.averaged.values

    @cached_property
    def _answerer(self) -> Answerer:
        return Answerer.of(self.tree, self.values)

    @cached_property
    def _supported(self) -> Ints:
        return self.averaged.supported

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers with the standard errors of the linear pipeline (``inference.errors``)."""
        values = workload.add_up(self._answerer.answer(workload.boxes))
        if not errors:
            return Answers(values, np.full(workload.n, np.nan), np.zeros(workload.n, bool))
        variance, cut = np.empty(workload.n), np.zeros(workload.n, bool)
        order = np.argsort(workload.owner, kind="stable")
        starts = np.searchsorted(workload.owner[order], np.arange(workload.n + 1))
        for part in chunks(workload.n, 4 * self.tree.size):
            queries = range(*part.indices(workload.n))
            boxes = order[starts[queries.start] : starts[queries.stop]]
            variance[part], cut[part] = self._errors(workload, boxes, queries)
        return Answers(values, np.sqrt(variance), cut)

    def _errors(self, workload: Workload, boxes: Ints, queries: range) -> tuple[Floats, Bools]:
        weights = np.zeros((len(queries), self.tree.size))
        cut = np.zeros(len(queries), bool)
        place = workload.owner[boxes] - queries.start
        np.add.at(weights, place, cover_weights(self.tree, workload.boxes[boxes]))
        np.logical_or.at(cut, place, ends_inside(self.tree, workload.boxes[boxes], self._supported))
        return self._variance(weights), cut

    def _variance(self, weights: Floats) -> Floats:  # (k, nodes) -> (k,)
        """The pipeline's; without reports infinite, except for the whole domain, whose frequency is 1."""
        if any(m.n for m in self.averaged.measurements):
            return linear_variance(self.averaged, weights)
        whole = self.tree.is_split[0] | np.isin(weights[:, 0], (0.0, 1.0))
        return np.where((weights[:, 1:] == 0).all(axis=1) & whole, 0.0, np.inf)

    def linear(self, workload: Workload, weights: Floats) -> Answers:  # (k, n) -> k
        """Weighted sums of answers; the standard errors are those of one linear functional of the nodes, as above."""
        total = np.zeros((len(weights), self.tree.size))
        flagged = np.zeros(len(weights), bool)
        for part in chunks(len(workload.boxes), 4 * self.tree.size):
            boxes, owner = workload.boxes[part], workload.owner[part]
            total += weights[:, owner] @ cover_weights(self.tree, boxes)
            cut = ends_inside(self.tree, boxes, self._supported)
            flagged |= (weights[:, owner] != 0) @ cut
        return Answers(total @ self.values, np.sqrt(self._variance(total)), flagged, {}, self.consistent)

    def sample_codes(self, n: int, rng: Generator) -> Ints:  # -> (n, m)
        """Codes drawn from the leaves, evenly inside each: any size of domain."""
        leaves = self.tree.leaves
        drawn = leaves[rng.choice(leaves.size, size=n, p=proper(self.values[leaves]))]
        return rng.integers(self.tree.lo[drawn], self.tree.hi[drawn])
