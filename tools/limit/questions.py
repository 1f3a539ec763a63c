"""The best questions that we know for somebody who knows the class: cells of many sizes, in shares that fit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.adaptive.adaptive import equal_mass_cuts, reports_of
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData
from ahead_ldp.oracles import Tally, named_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Question
from tools.limit.bound import answers
from tools.limit.classes import Class
from tools.limit.oracle import EVERYBODY

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CELLS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # of equal mass by the shape; a shift makes one more
SHIFTS = 8  # partitions of each size
_ROUNDS = 200  # of the search for the shares
_LEAST_SHARE = 0.01  # of the people, for a size that is asked about at all


@dataclass(frozen=True, eq=False)
class Design:
    """Questions of one wave, and which share of the people answers each."""

    questions: Sequence[Question]
    shares: Floats
    expected: float  # mean squared error to first order, at the shape

    @classmethod
    def of(cls, members: Class, ends: Floats, n: int, epsilon: float) -> Design:
        """The mix of sizes of least expected error."""
        axis = Axis(members.shape.size)
        sizes = [m for m in CELLS if 2 * m <= members.shape.size]
        asked = [[_question(axis, members.shape, m, (k + 0.5) / SHIFTS, epsilon) for k in range(SHIFTS)] for m in sizes]
        told = np.array([np.mean([_told(members, q) for q in same], axis=0) for same in asked])
        moved = answers(members.shape[:, None] * (members.basis - members.shape @ members.basis), ends)
        queries, prior = moved.T @ moved / len(ends), np.diag(members.spread**-2.0)
        shares = _best_shares(told, queries, prior, n)
        kept = np.where(shares >= _LEAST_SHARE, shares, 0.0)
        kept /= kept.sum()
        expected = float(np.trace(queries @ np.linalg.inv(n * np.tensordot(kept, told, 1) + prior)))
        some = np.flatnonzero(kept)
        return cls([q for i in some for q in asked[i]], np.repeat(kept[some] / SHIFTS, SHIFTS), expected)

    def asked(self, people: Ints, rng: Generator) -> list[tuple[Question, Tally]]:  # (d,)
        """Every question with its tally, when these people answer."""
        parts = rng.multinomial(people, self.shares).T
        return [
            (question, question.oracle.simulate(question.partition.aggregate(part), rng))
            for question, part in zip(self.questions, parts, strict=True)
        ]


def _question(axis: Axis, shape: Floats, cells: int, shift: float, epsilon: float) -> Question:
    cuts = equal_mass_cuts(shape, cells, shift).tolist()
    return Question((0,), Partition.grid([axis], [cuts]), named_oracle("best", epsilon, len(cuts) + 1))


def _told(members: Class, question: Question) -> Floats:  # -> (k, k)
    """What one report says about the coefficients, at the shape."""
    one = Tally(1, np.zeros(question.partition.cells, np.int64))
    data = CellData.of([reports_of(question, one, members.shape).estimates(EVERYBODY)], 1.0)
    jacobian = data.jacobian(members.basis, members.shape)
    return jacobian.T @ jacobian


def _best_shares(told: Floats, queries: Floats, prior: Floats, n: int) -> Floats:  # (sizes, k, k) -> (sizes,)
    shares = np.full(len(told), 1 / len(told))
    for _ in range(_ROUNDS):
        inverse = np.linalg.inv(n * np.tensordot(shares, told, 1) + prior)
        gain = np.tensordot(told, inverse @ queries @ inverse, 2)
        shares = shares * np.sqrt(gain)  # L11
        shares /= shares.sum()
    return shares
