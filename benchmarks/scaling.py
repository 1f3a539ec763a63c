"""How long counting takes on a cluster: measured costs of a report and of a task, and a schedule of all tasks.

It is a model, for sizing. Its costs are arguments: measure them where the cluster is.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.frames import ID_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What things cost, in seconds of one core unless the name says otherwise."""

    per_byte_s: float  # reading and counting one byte of a report file
    per_task_s: float = 0.2  # starting a task in a warm worker
    schedule_s: float = 0.002  # of the driver, for each task, one after the other
    per_stage_s: float = 1.0  # planning and starting a stage
    storage_bytes_s: float = 100e6  # what one core gets from storage
    tally_bytes_s: float = 50e6  # at which partial counts are written, sent and read again


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes, their cores, and how often a task is slow."""

    nodes: int
    cores: int = 8
    slow_share: float = 0.01  # of the tasks
    slow_factor: float = 8.0
    speculation: bool = True


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says."""

    tasks: int
    wall_s: float
    core_hours: float
    bytes_read: int


def predict(
    reports: int,
    payload_bytes: int,
    outcomes: int,
    cluster: Cluster,
    costs: Costs,
    rng: Generator,
    task_bytes: int = 128_000_000,
) -> Prediction:
    """Counting so many reports: tasks of ``task_bytes`` on all cores, then the tree of their partial counts."""
    size = reports * (ID_LENGTH + payload_bytes)
    tasks, slots = ceil(size / task_bytes), cluster.nodes * cluster.cores
    work_s = size / tasks * max(costs.per_byte_s, 1 / costs.storage_bytes_s) + costs.per_task_s
    slow = rng.random(tasks) < cluster.slow_share
    times = np.where(slow, cluster.slow_factor * work_s, work_s)
    if cluster.speculation:  # a copy starts when a task has taken half as long again as the others
        times = np.minimum(times, 2.5 * work_s)
    counted = _schedule(times, slots, costs.schedule_s)
    partial = 8 * outcomes / costs.tally_bytes_s
    files = ceil(tasks / slots) * partial + costs.per_stage_s  # parts of a file come together
    branches = ceil(tasks / min(32, slots)) * partial + costs.per_stage_s
    root = 32 * partial
    wall_s = costs.per_stage_s + counted + files + branches + root
    return Prediction(tasks, float(wall_s), float(times.sum() / 3600), size)


def _schedule(times: np.ndarray, slots: int, schedule_s: float) -> float:
    """When the last task ends: each goes to the slot that is free first, and the driver starts one at a time."""
    free = [0.0] * min(slots, len(times))
    end = 0.0
    for i, taken in enumerate(times.tolist()):
        start = max(heapq.heappop(free), i * schedule_s)
        heapq.heappush(free, start + taken)
        end = max(end, start + taken)
    return end
