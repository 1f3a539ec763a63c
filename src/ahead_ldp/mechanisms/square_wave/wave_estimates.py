"""Estimates from square-wave reports: the distribution that EM finds, and its errors by repeating that."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import DensityEstimate
from ahead_ldp.oracles import SW, Tally
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.schema.arrays import Bools, Floats, Ints

REPEATS = 12  # of the bootstrap: errors are then known to a fifth, 1 / sqrt(2 * 12); more cost time in proportion
_ROUNDING = 1e-24  # a variance below this is rounding: the whole domain's answer is 1 in every repeat


@dataclass(frozen=True, eq=False)
class WaveEstimate(DensityEstimate):
    """Frequencies by expectation maximisation (LWLLS20), with or without smoothing.

    The estimate is not linear in the reports, so standard errors come from a parametric bootstrap: people with the
    estimated frequencies report again, ``REPEATS`` times, and the root mean square distance of their answers from
    those that they were drawn from is the error. It so holds the noise and what EM smooths away from a distribution
    like the estimated one. With smoothing that is too little, since the estimate is smooth already: answers then say
    that bias is not included. The seed is a digest of the tally: the same reports give the same errors.
    """

    assumption: ClassVar[str] = "the true distribution is as smooth as the estimated one"
    oracle: SW | None
    tally: Tally
    smooth: bool
    tolerance: float

    @classmethod
    def of(cls, schema: Schema, oracle: SW | None, tally: Tally, smooth: bool, tolerance: float) -> WaveEstimate:
        """The estimate from everybody's reports; no oracle for an attribute of one code."""
        density = np.ones(1) if oracle is None else oracle.em(tally, smooth=smooth, tolerance=tolerance)
        return cls(schema, True, density, oracle, tally, smooth, tolerance)

    def _assumes(self, boxes: Floats) -> Bools:
        return DensityEstimate._assumes(self, boxes) | self.smooth

    @property
    def _width(self) -> int:
        return REPEATS

    @cached_property
    def _repeated(self) -> list[SummedArea]:
        assert self.oracle is not None
        digest = hashlib.sha256(self.tally.counts.astype("<i8").tobytes()).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "big"))
        people = apportion(self.density, self.tally.n)
        counts = np.stack([self.oracle.simulate(people, rng).counts for _ in range(REPEATS)])
        rows = self.oracle.em_rows(counts, smooth=self.smooth, tolerance=self.tolerance)
        return [SummedArea.of(row) for row in rows]

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        if self.oracle is None:
            return np.zeros(answers.size)
        if self.tally.n == 0:
            width = np.bincount(owner, boxes[:, 0, 1] - boxes[:, 0, 0], answers.size)
            return np.where((width > 0) & (width < self.density.size), np.inf, 0.0)
        again = (np.bincount(owner, s.fractional_boxes(boxes), answers.size) for s in self._repeated)
        variance: Floats = np.mean([(x - answers) ** 2 for x in again], axis=0)
        return np.where(variance > _ROUNDING, variance, 0.0)


def apportion(f: Floats, n: int) -> Ints:  # (d,) -> (d,)
    """n people with these frequencies: rounded down, and one more for the largest remainders."""
    people = np.floor(n * f / f.sum()).astype(np.int64)
    short = n - int(people.sum())
    people[np.argsort(people - n * f / f.sum(), kind="stable")[:short]] += 1
    return people
