"""Uni: no questions at all, every value as likely as any other. What a useful method must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.protocol.mechanism import Group, Mechanism, Run
from ahead_ldp.schema.workloads import Workload


@dataclass(frozen=True, slots=True)
class UniformEstimate(Estimate):
    """The uniform distribution. Its error is all bias, so every answer says that bias is not included."""

    assumption: ClassVar[str] = "every value is equally common: nobody was asked"
    schema: Schema
    consistent: bool = True

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """The volume of each query."""
        sides = (workload.boxes[..., 1] - workload.boxes[..., 0]) / np.array(self.schema.sizes)
        values = workload.add_up(sides.prod(axis=1))
        return Answers(values, np.zeros(workload.n), (values > 0) & (values < 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Mechanism):
    """The paper's Uni (AHEAD Sec. 5.1): nobody is asked anything."""

    name: ClassVar[str] = "uni"
    idea: ClassVar[str] = "every value equally likely, nobody is asked"
    source: ClassVar[str] = "baseline in Du et al., CCS 2021"

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """None."""
        return ()

    def run(self, schema: Schema) -> Run:
        """Return at once."""
        yield from ()
        return UniformEstimate(schema)
