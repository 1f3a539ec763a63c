"""Estimates from noisy Haar coefficients of one attribute: the inverse transform in O(|D|) numbers and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import DensityEstimate, less_everyone
from ahead_ldp.oracles import Haar, Tally
from ahead_ldp.partitions.shares import code_shares
from ahead_ldp.protocol.mechanism import Question
from ahead_ldp.schema.arrays import Bools, Floats, Ints

_ROUNDING = 1e-9  # a coefficient below this is rounding


def widths(size: int) -> list[int]:
    """The width of half a node on each level of coefficients, the coarsest first; none for a single code."""
    return [1 << i for i in reversed(range((size - 1).bit_length()))]


@dataclass(frozen=True, slots=True, eq=False)
class HaarLevel:
    """What one group said: for each node the frequency of its first half less that of its second."""

    contrasts: Floats  # (nodes,)
    halves: Ints  # (nodes, 2) codes in each half; 0 for one beyond the domain
    n: int
    oracle: Haar

    @classmethod
    def of(cls, question: Question, tally: Tally) -> HaarLevel:
        """From the question of a level, whose cells are halves of its nodes, and its tally."""
        oracle, cells = question.oracle, question.partition
        if not isinstance(oracle, Haar):
            raise ValueError(f"expected a question about Haar coefficients, got one by {oracle.name}")
        halves = np.append(cells.hi - cells.lo, [0] * (oracle.d % 2)).reshape(-1, 2)
        return cls(oracle.contrasts(tally), halves, tally.n, oracle)

    @property
    def whole(self) -> Bools:
        """Nodes with two halves: the others pass on what they have."""
        return np.asarray(self.halves[:, 1] > 0)

    def split(self, f: Floats, non_negative: bool) -> Floats:  # (nodes,) -> (halves,)
        """The frequencies of the halves from those of the nodes; without reports by their numbers of codes."""
        if self.n == 0:
            first = f * self.halves[:, 0] / self.halves.sum(axis=1)
        else:
            c = np.clip(self.contrasts, -f, f) if non_negative else self.contrasts
            first = np.where(self.whole, (f + c) / 2, f)
        return np.stack([first, f - first], axis=1).reshape(-1)[self.halves.reshape(-1) > 0]

    def join(self, weights: Floats) -> tuple[Floats, Floats]:  # (k, halves) -> (k, nodes), (k, nodes)
        """``split`` transposed: how much nodes and coefficients count in a weighted sum over the halves."""
        pairs = np.zeros((len(weights), self.halves.size))
        pairs[:, : weights.shape[1]] = weights
        first, second = pairs[:, 0::2], pairs[:, 1::2]
        return np.where(self.whole, (first + second) / 2, first), np.where(self.whole, (first - second) / 2, 0.0)


@dataclass(frozen=True, eq=False)
class HaarEstimate(DensityEstimate):
    """Frequencies by the inverse Haar transform, if wanted with no coefficient beyond its node's frequency.

    Standard errors are those of the linear transform, exact for the groups' reports; the bound is left out of them.
    """

    assumption: ClassVar[str] = (
        "there are enough reports for normal errors, and raising negative shares to zero moved the answers little"
    )
    levels: tuple[HaarLevel, ...]
    nodes: tuple[Floats, ...]  # the frequencies of each level's nodes

    @classmethod
    def of(cls, schema: Schema, levels: Sequence[HaarLevel], non_negative: bool) -> HaarEstimate:
        """The estimate from all levels, the coarsest first."""
        f, nodes = np.ones(1), []
        for level in levels:
            nodes.append(f)
            f = level.split(f, non_negative)
        return cls(schema, non_negative, f, tuple(levels), tuple(nodes))

    @property
    def _width(self) -> int:
        return 4 * self.density.size

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        weights = np.zeros((answers.size, self.density.size))
        np.add.at(weights, owner, code_shares(boxes[:, 0], self.density.size))
        variance, unmeasured = np.zeros(answers.size), np.zeros(answers.size, bool)
        for level, f in zip(reversed(self.levels), reversed(self.nodes), strict=True):
            weights, a = level.join(weights)
            if level.n == 0:
                unmeasured |= (np.abs(a) > _ROUNDING).any(axis=1)
                continue
            f = np.maximum(f, 0.0)
            variance += a**2 @ level.oracle.variance(level.n, f)
            variance += (a**2 @ f - (a @ level.contrasts) ** 2) / level.n  # who fell into the group
        people = sum(level.n for level in self.levels)
        return np.where(unmeasured, np.inf, less_everyone(variance, answers, people))
