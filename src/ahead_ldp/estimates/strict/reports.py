"""All strict intervals of one run, as an estimate asks for them."""

from __future__ import annotations

from dataclasses import dataclass

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.strict.answers import StrictAnswers, StrictSums
from ahead_ldp.estimates.strict.bounds import Evidence
from ahead_ldp.estimates.strict.summaries import StrictMean, StrictQuantiles
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.workloads import Workload


@dataclass(frozen=True, eq=False)
class StrictReports(Evidence):
    """Strict intervals of everything that people ask of one run; they share what was worked out before."""

    def answers(self, workload: Workload) -> StrictAnswers:
        """Those of the answers to a workload."""
        return StrictAnswers(self, workload)

    def sums(self, workload: Workload, weights: Floats) -> StrictSums:
        """Those of weighted sums of the answers to a workload, one for each row of weights."""
        return StrictSums(self, workload, weights)

    def quantiles(self, attribute: Attribute, levels: Floats, near: Floats) -> StrictQuantiles:
        """Those of quantiles; ``near`` are the positions where the estimate has them."""
        return StrictQuantiles(self, attribute, self.schema.index(attribute.name), levels, near)

    def mean(self, attribute: Attribute, low: Floats, high: Floats, marks: Floats) -> StrictMean:
        """That of a mean, where of each code the least and the largest number is known."""
        return StrictMean(self, attribute, self.schema.index(attribute.name), low, high, marks)
