"""Estimates of one attribute whose errors are draws from a posterior law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.densities import DensityEstimate
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellReports, from_zero
from ahead_ldp.mechanisms.adaptive.density import AdaptiveDensity, Weighing
from ahead_ldp.mechanisms.adaptive.draws import draw_curves
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import Workload

_WIDENING = 1.15  # the posterior takes its own weights and smoothness for known (decisions 011 and 013)


@dataclass(frozen=True, eq=False)
class AdaptiveEstimate(DensityEstimate):
    """Frequencies of the codes of one attribute, with draws from their posterior law.

    Standard errors are total ones: the root mean square distance of the draws' answers from the estimate's. They hold
    the noise and what nobody was asked about: how people lie inside the cells that were not divided further.
    """

    assumption: ClassVar[str] = "neighbouring values have about equal shares wherever the reports do not show otherwise"
    fitted: AdaptiveDensity

    @classmethod
    def of(
        cls,
        schema: Schema,
        axis: Axis,
        reports: Sequence[CellReports],
        estimator: str = "shrinkage",
        weighing: Weighing | None = None,
    ) -> AdaptiveEstimate:
        """From the groups' raw estimates of cells; ``estimator`` and ``weighing`` as in ``AdaptiveDensity.of``."""
        fitted = AdaptiveDensity.of(axis, reports, estimator, weighing)
        return cls(schema, True, fitted.frequencies, fitted)

    @property
    def _width(self) -> int:
        return len(self._curves)

    @cached_property
    def _curves(self) -> Floats:  # (draws, size + 1)
        """Shares below every code in densities drawn from the posterior, less the estimate's own."""
        return _WIDENING * (draw_curves(self.fitted).T - from_zero(self.density))  # A48

    def _errors(self, boxes: Floats) -> Floats:  # (k, 1, 2) -> (draws, k)
        """Answers of the draws less those of the estimate."""
        return _at(self._curves, boxes[:, 0, 1]) - _at(self._curves, boxes[:, 0, 0])

    def _variance(self, boxes: Floats, owner: Ints, answers: Floats) -> Floats:
        if self.fitted.people == 0:
            width = np.bincount(owner, boxes[:, 0, 1] - boxes[:, 0, 0], answers.size)
            return np.where((width > 0) & (width < self.density.size), np.inf, 0.0)
        return np.mean(_added(self._errors(boxes), owner, answers.size) ** 2, axis=0)  # A48

    def joint_errors(self, workload: Workload, draws: int = 1000) -> Floats | None:  # -> (draws, n)
        """The draws' errors, as many as there are; None without reports."""
        if self.fitted.people == 0:
            return None
        return _added(self._errors(workload.boxes), workload.owner, workload.n)

    def linear(self, workload: Workload, weights: Floats) -> Answers:  # (k, n) -> k
        """Weighted sums of answers, with errors from the same draws."""
        values, drawn = weights @ self.answer(workload, errors=False).values, self.joint_errors(workload)
        known = np.inf if drawn is None else np.sqrt(np.mean((drawn @ weights.T) ** 2, axis=0))
        error = np.broadcast_to(known, values.shape)
        return Answers(values, error, np.zeros(values.size, bool), {}, self.consistent)


def _at(curves: Floats, points: Floats) -> Floats:  # (draws, size + 1), (k,) -> (draws, k)
    """Curves read between the codes."""
    low = np.clip(np.floor(points).astype(np.int64), 0, curves.shape[1] - 2)
    part = points - low
    return curves[:, low] * (1 - part) + curves[:, low + 1] * part


def _added(errors: Floats, owner: Ints, count: int) -> Floats:  # (draws, boxes) -> (draws, queries)
    """Sums over the boxes of each query."""
    if errors.shape[1] == count and (owner == np.arange(count)).all():
        return errors
    sums = np.zeros((count, len(errors)))
    np.add.at(sums, owner, errors.T)
    return sums.T
