"""What a split by groups costs: the interval of one question in every group, and among everybody, before asking.

The question is the share of people in the lower half of another attribute's codes. It is answered on the planner's
reference populations, so a row says what a group of that share of the people can expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.engines.simulation import run_simulation
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.evaluation import trial_rng
from ahead_ldp.research.references import SEED, reference_population, shape_rng
from ahead_ldp.research.widths import LEVEL
from ahead_ldp.schema.workloads import Workload

SHAPES = ("uniform", "zipf")  # groups of one size, and groups of very different sizes
REPEATS = 4  # of a simulation: the interval of a group scatters by a sixth from one run to the next
_MOST_GROUPS = 12  # each takes a bound of two attributes
_BINS = 8  # of a numeric attribute


@dataclass(frozen=True, slots=True)
class GroupCost:
    """Half the interval of a share in one group, and how many times that among everybody it is."""

    shape: str
    group: str
    share: float  # of the people who are in the group
    half: float
    everybody: float  # half the interval of the same question among all people

    @property
    def times(self) -> float:
        """How many times as far the interval reaches in the group."""
        return self.half / max(self.everybody, 1e-12)

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "times": self.times, "level": LEVEL}


def group_costs(
    mechanism: Mechanism, schema: Schema, users: int, by: str, shapes: Sequence[str] = SHAPES
) -> list[GroupCost]:
    """What can be said of every group of an attribute: its categories, or eight bins. Of many, the first twelve.

    Numbers are means over a few runs.
    """
    other, costs = asked_in_groups(schema, by), []
    for shape in shapes:
        people = reference_population(shape, schema.sizes, users, shape_rng(shape))
        runs = [
            _costs(
                run_simulation(mechanism, schema, people, trial_rng(SEED, mechanism.name, mechanism.epsilon, k)),
                shape,
                by,
                other,
            )
            for k in range(REPEATS)
        ]
        costs += [_mean(of_group) for of_group in zip(*runs, strict=True)]
    return costs


def _mean(runs: Sequence[GroupCost]) -> GroupCost:
    """Of one group in several runs."""
    share, half, everybody = np.mean([[run.share, run.half, run.everybody] for run in runs], axis=0).tolist()
    return replace(runs[0], share=share, half=half, everybody=everybody)


def asked_in_groups(schema: Schema, by: str) -> int:
    """The place of the attribute that is asked about: the first other one with several codes."""
    if by not in schema.names:
        raise ValueError(f"expected one of the attributes {', '.join(schema.names)} for groups, got {by!r}")
    others = [i for i, a in enumerate(schema.attributes) if a.name != by and a.ordered_size > 1]
    if not others:
        raise ValueError(f"expected another attribute than {by} to be asked about in its groups, got none")
    return others[0]


def _costs(estimate: Estimate, shape: str, by: str, other: int) -> list[GroupCost]:
    schema = estimate.schema
    grouped, asked = schema.attributes[schema.index(by)], schema.attributes[other]
    groups = estimate.by(by, None if grouped.labels or grouped.size <= _BINS else _BINS)
    half = np.zeros((1, len(schema.sizes), 2))
    half[0, :, 1] = schema.sizes
    half[0, other, 1] = asked.ordered_size // 2
    everybody = Workload(schema.sizes, half, np.zeros(1, np.int64), 1)
    low, high = estimate.answer_jointly(everybody).interval(LEVEL)
    whole, costs = float(high[0] - low[0]) / 2, []
    for g in range(min(len(groups.labels), _MOST_GROUPS)):
        least, most = groups.share_ends(half, g, LEVEL)
        share = float(np.clip(groups.shares.values[g], 0.0, 1.0))
        costs.append(GroupCost(shape, str(groups.labels[g]), share, (most - least) / 2, whole))
    return costs
