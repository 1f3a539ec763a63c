"""Estimates that are a tree with values: one tree over all attributes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.bands import normal_draws, with_spread
from ahead_ldp.estimates.densities import BoxEstimate
from ahead_ldp.estimates.slices import proper
from ahead_ldp.mechanisms.ahead.averaging import Averaged
from ahead_ldp.mechanisms.ahead.errors import (
    cell_masses,
    linear_covariance,
    linear_variance,
    uneven_covariances,
    uneven_variance,
)
from ahead_ldp.partitions.covers import Answerer, chunks, cover_weights
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import Workload

_QUERIES_TOGETHER = 1024  # whose errors are drawn together: a covariance of 8 MB


@dataclass(frozen=True, eq=False)
class TreeEstimate(BoxEstimate):
    """Frequencies of a tree's nodes; queries take the coarsest nodes they cover and shares of the leaves they cut."""

    assumption: ClassVar[str] = "people lie about evenly inside the cells that were not divided further"
    has_bias: ClassVar[bool] = True
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

    @cached_property
    def _masses(self) -> Floats:
        return cell_masses(self.averaged, self._supported)

    @property
    def _width(self) -> int:
        return self.tree.size

    def _values(self, boxes: Floats) -> Floats:
        return self._answerer.answer(boxes)

    def _with_errors(self, boxes: Floats, owner: Ints, queries: int) -> tuple[NDArray[Any], ...]:
        """Errors of the linear pipeline, and of evenness in cells (``ahead.errors``)."""
        weights = np.zeros((queries, self.tree.size))
        np.add.at(weights, owner, cover_weights(self.tree, boxes))
        uneven = uneven_variance(self.tree, self._supported, self._masses, boxes)
        values, unmarked = np.bincount(owner, self._values(boxes), queries), np.zeros(queries, bool)
        return values, self._variance_of(weights), unmarked, np.bincount(owner, uneven, queries)

    def joint_errors(self, workload: Workload, draws: int = 1000) -> Floats | None:  # -> (draws, n)
        """Normal draws with the covariance of the answers' errors; None beyond 1024 queries, or without reports."""
        if workload.n > _QUERIES_TOGETHER or not self.averaged.has_reports:
            return None
        weights = np.zeros((workload.n, self.tree.size))
        np.add.at(weights, workload.owner, cover_weights(self.tree, workload.boxes))
        covariance = linear_covariance(self.averaged, weights)
        for rows, extra in uneven_covariances(self.tree, self._supported, self._masses, workload.boxes):
            owner = workload.owner[rows]
            np.add.at(covariance, (owner[:, None], owner), extra)
        return with_spread(normal_draws(covariance, draws), self.answer(workload).spread)

    def _variance_of(self, weights: Floats) -> Floats:  # (k, nodes) -> (k,)
        """The pipeline's; without reports infinite, except for the whole domain, whose frequency is 1."""
        if self.averaged.has_reports:
            return linear_variance(self.averaged, weights)
        whole = self.tree.is_split[0] | np.isin(weights[:, 0], (0.0, 1.0))
        return np.where((weights[:, 1:] == 0).all(axis=1) & whole, 0.0, np.inf)

    def linear(self, workload: Workload, weights: Floats) -> Answers:  # (k, n) -> k
        """Weighted sums of answers; the errors are those of one linear functional of the nodes, as above."""
        total, uneven = np.zeros((len(weights), self.tree.size)), np.zeros(len(weights))
        for part in chunks(len(workload.boxes), 4 * self.tree.size):
            total += weights[:, workload.owner[part]] @ cover_weights(self.tree, workload.boxes[part])
        by_box = weights[:, workload.owner]
        for rows, extra in uneven_covariances(self.tree, self._supported, self._masses, workload.boxes):
            uneven += np.einsum("ki,ij,kj->k", by_box[:, rows], extra, by_box[:, rows])
        error, bias = np.sqrt(self._variance_of(total)), np.sqrt(np.maximum(uneven, 0.0))
        unmarked = np.zeros(len(weights), bool)
        return Answers(total @ self.values, error, unmarked, {}, self.consistent, bias_error=bias)

    def sample_codes(self, n: int, rng: Generator) -> Ints:  # -> (n, m)
        """Codes drawn from the leaves, evenly inside each: any size of domain."""
        leaves = self.tree.leaves
        drawn = leaves[rng.choice(leaves.size, size=n, p=proper(self.values[leaves]))]
        return rng.integers(self.tree.lo[drawn], self.tree.hi[drawn])
