"""The model of a cluster: it agrees with arithmetic where that is easy, and moves the right way elsewhere."""

import numpy as np
import pytest

from benchmarks.scaling import Cluster, Costs, predict

FREE = {"per_task_s": 0.0, "schedule_s": 0.0, "per_stage_s": 0.0, "storage_bytes_s": 1e12, "tally_bytes_s": 1e15}


def one(reports=10**8, nodes=10, costs=None, **cluster):
    made = costs or Costs(per_byte_s=1e-9, **FREE)
    return predict(reports, 112, 1024, Cluster(nodes=nodes, **cluster), made, np.random.default_rng(1))


def test_without_overheads_it_is_work_over_cores():
    found = one(nodes=1, cores=1, slow_share=0.0)
    assert found.bytes_read == 128 * 10**8
    assert found.tasks == 100
    assert found.wall_s == pytest.approx(12.8, rel=1e-6)
    assert one(nodes=5, cores=2, slow_share=0.0).wall_s == pytest.approx(1.28, rel=1e-6)
    assert found.core_hours == pytest.approx(12.8 / 3600, rel=1e-6)


def test_more_cores_than_tasks_do_not_help():
    assert one(nodes=1000, slow_share=0.0).wall_s == pytest.approx(0.128, rel=1e-6)


def test_the_driver_starts_one_task_at_a_time():
    costs = Costs(per_byte_s=1e-9, **{**FREE, "schedule_s": 1.0})
    assert one(nodes=1000, slow_share=0.0, costs=costs).wall_s == pytest.approx(99 + 0.128, rel=1e-6)


def test_slow_tasks_cost_time_and_speculation_takes_some_of_it_back():
    even, slow = one(slow_share=0.0).wall_s, one(slow_share=0.05, speculation=False).wall_s
    assert even < one(slow_share=0.05).wall_s < slow


def test_storage_bounds_a_core():
    costs = Costs(per_byte_s=1e-12, **{**FREE, "storage_bytes_s": 1e8})
    assert one(nodes=1, cores=1, slow_share=0.0, costs=costs).wall_s == pytest.approx(128, rel=1e-6)
