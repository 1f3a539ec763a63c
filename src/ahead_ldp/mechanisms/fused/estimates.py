"""Estimates from one-attribute distributions and the dependence of every two attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import stretches
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.mechanisms.fused.pairwise_models import PairwiseModel
from ahead_ldp.mechanisms.fused.pairwise_slopes import Slopes, normal_draws
from ahead_ldp.partitions.covers import chunks
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.workloads import Workload, by_restriction

_SEED = 20_211  # unit: any number; draws are the same every time


@dataclass(frozen=True, eq=False)
class FusedEstimate(Estimate):
    """Answers of a pairwise model. On one or two attributes they add up; those on more need not.

    Standard errors hold the margins' own, the posterior covariance of the pairs' dependence, and that of single cells.
    ``bias_error`` holds what is assumed: little dependence inside bins that are cut, none of three attributes
    beyond that of their pairs, anything between Frechet's bounds where nobody told about a pair; and nothing is
    claimed to be surer than five people.
    """

    assumption: ClassVar[str] = "neighbouring values have about equal shares wherever the reports do not show otherwise"
    through_pairs: ClassVar[bool] = True
    schema: Schema
    model: PairwiseModel
    consistent: bool

    @one_thread
    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers; more than 16 restricted attributes in one query are refused."""
        flags = np.zeros(workload.n, bool)
        if not errors:
            values = np.zeros(len(workload.boxes))
            for attributes, rows in by_restriction(self.schema.sizes, workload.boxes):
                for part in chunks(rows.size, self._width(len(attributes))):
                    values[rows[part]] = self.model.boxed(attributes, workload.boxes[rows[part]]).values
            missing = np.full(workload.n, np.nan)
            return Answers(workload.add_up(values), missing, flags, consistent=self.consistent)
        answers, noise, assumed = np.zeros(workload.n), np.zeros(workload.n), np.zeros(workload.n)
        for queries, slopes in self._slopes(workload):
            answers[queries], assumed[queries] = slopes.values, slopes.assumed
            noise[queries] = slopes.variance(self.model)
        return Answers(answers, np.sqrt(noise), flags, consistent=self.consistent, bias_error=np.sqrt(assumed))

    @one_thread
    def joint_errors(self, workload: Workload, draws: int = 1000) -> Floats | None:  # -> (draws, n)
        """Normal draws of everything that was estimated, through the answers' slopes."""
        if not all(margin.known for margin in self.model.margins):
            return None
        rng = np.random.default_rng(_SEED)
        drawn, errors = normal_draws(self.model, draws, rng), np.zeros((draws, workload.n))
        for queries, slopes in self._slopes(workload):
            errors[:, queries] = slopes.errors(drawn, rng)
        return errors

    def _slopes(self, workload: Workload) -> Iterator[tuple[slice, Slopes]]:
        """Stretches of the queries, with their slopes."""
        for part, boxes, owner in stretches(workload, self._width(len(self.schema.sizes))):
            yield part, Slopes.of(self.model, boxes, owner, len(range(*part.indices(workload.n))))

    def _width(self, restricted: int) -> int:
        """Numbers held at a time for one box."""
        bins = max(margin.parts.size for margin in self.model.margins)
        return 4 * (1 << min(restricted, 16)) + bins * bins + 64 * len(self.model.pairs)
