"""Estimates from noisy Haar coefficients of one attribute: the inverse transform in O(|D|) numbers and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import DensityEstimate, less_everyone
from ahead_ldp.mechanisms.haar_contrasts import HaarContrasts, halves_of
from ahead_ldp.oracles import Haar, Tally
from ahead_ldp.partitions.shares import code_shares
from ahead_ldp.protocol.mechanism import Question
from ahead_ldp.schema.arrays import Floats, Ints

_ROUNDING = 1e-9  # a coefficient below this is rounding


def widths(size: int) -> list[int]:
    """The width of half a node on each level of coefficients, the coarsest first; none for a single code."""
    return [1 << i for i in reversed(range((size - 1).bit_length()))]


@dataclass(frozen=True, slots=True, eq=False)
class HaarLevel(HaarContrasts):
    """What one group said about the nodes of a level, through noisy coefficients."""

    oracle: Haar

    @classmethod
    def of(cls, question: Question, tally: Tally) -> HaarLevel:
        """From the question of a level, whose cells are halves of its nodes, and its tally."""
        oracle, cells = question.oracle, question.partition
        if not isinstance(oracle, Haar):
            raise ValueError(f"expected a question about Haar coefficients, got one by {oracle.name}")
        return cls(oracle.contrasts(tally), halves_of((cells.hi - cells.lo)[:, 0]), tally.n, oracle)


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
