"""Estimates from complete hierarchies: the fewest nodes that cover a box, or least squares over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import DensityEstimate, NoisyBoxEstimate, less_everyone
from ahead_ldp.mechanisms.hierarchy.hierarchies import Measured, ProductLeastSquares, group_variance
from ahead_ldp.partitions.covers import chunks, cover_weights
from ahead_ldp.partitions.shares import code_shares
from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class CoverEstimate(NoisyBoxEstimate):
    """Raw estimates of all nodes; a box is the sum over the fewest nodes that cover it (WDZ+19).

    Unbiased, with the exact standard errors of sums of oracles' estimates; answers need not add up.
    """

    assumption: ClassVar[str] = "there are enough reports for normal errors"
    schema: Schema
    consistent: bool
    measured: Measured

    @property
    def _width(self) -> int:
        return prod(self.measured.hierarchy.shape)

    def _weights(self, boxes: Floats) -> list[Floats]:  # -> one (k, nodes) for each attribute
        trees = self.measured.hierarchy.trees
        return [cover_weights(tree, boxes[:, a : a + 1]) for a, tree in enumerate(trees)]

    def _values(self, boxes: Floats) -> Floats:
        answers = np.empty(len(boxes))
        for part in chunks(len(boxes), self._width):
            first, *others = self._weights(boxes[part])
            sums = np.tensordot(first, self.measured.values, axes=1)
            for weights in others:
                sums = np.einsum("ka,ka...->k...", weights, sums)
            answers[part] = sums
        return answers

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        variance, unmeasured = group_variance(self.measured, [self._weights(boxes)], owner, answers.size)
        return np.where(unmeasured, np.inf, less_everyone(variance, answers, self.measured.people))


@dataclass(frozen=True, eq=False)
class LeastSquaresEstimate(DensityEstimate):
    """Least squares over all nodes (CKS19), if wanted without negative frequencies.

    Standard errors are those of the linear map, exact for the groups' oracles; the bound at 0 is left out of them.
    Where several attributes' groups were empty, every answer's error is infinite.
    """

    assumption: ClassVar[str] = (
        "there are enough reports for normal errors, and raising negative shares to zero moved the answers little"
    )
    solution: ProductLeastSquares

    @classmethod
    def of(cls, schema: Schema, measured: Measured, non_negative: bool) -> LeastSquaresEstimate:
        """The estimate from what the groups said."""
        solution = ProductLeastSquares.of(measured)
        density = solution.non_negative_leaves() if non_negative else solution.leaves()
        return cls(schema, non_negative, density, solution)

    @property
    def _width(self) -> int:
        return prod(self.solution.measured.hierarchy.shape)

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        measured = self.solution.measured
        sides = [code_shares(boxes[:, a], size) for a, size in enumerate(self.density.shape)]
        terms, lost = self.solution.coefficients(sides)
        variance, unmeasured = group_variance(measured, terms, owner, answers.size)
        np.logical_or.at(unmeasured, owner, lost)
        return np.where(unmeasured, np.inf, less_everyone(variance, answers, measured.people))
