"""AHEAD without its post-processing: what the paper shows in the validation of its threshold (App. G)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.measurements import pool
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.averaging import Averaged
from ahead_ldp.mechanisms.ahead.decomposition import Decomposition
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.protocol.mechanism import Run, axes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class UnprocessedAHEAD(AHEAD):
    """Steps 1 to 3 alone: a node keeps the mean of its own raw estimates, negative or not, and the root is 1."""

    name: ClassVar[str] = "ahead without post-processing"

    def run(self, schema: Schema) -> Run:
        """Algorithm 1, without Algorithm 2."""
        attributes = tuple(range(len(schema.attributes)))
        grown = Decomposition.start(self, axes_of(schema))
        for group in self.groups(schema):
            grown = grown.divided()
            tally = (yield {group.id: grown.question(attributes)})[group.id]
            raw = grown.oracle.estimate(tally)
            grown = grown.measured(tally)
            last = replace(grown.measurements[-1], estimate=raw)
            grown = replace(grown, measurements=(*grown.measurements[:-1], last))
        return TreeEstimate(schema, _own(grown), consistent=False)


def _own(grown: Decomposition) -> Averaged:
    values, precision = pool(grown.tree, grown.measurements)
    values[0] = 1.0
    ones, nobody = np.ones(grown.tree.size), np.zeros(grown.tree.size, bool)
    return Averaged(grown.tree, grown.measurements, precision, ones, precision, nobody, values)
