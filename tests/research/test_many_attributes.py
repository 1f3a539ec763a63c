"""The tuning settings of many attributes: queries that restrict three of them, and attributes without an order."""

import numpy as np

from ahead_ldp.schema.workloads import random_workload
from tools.accuracy import restricted
from tools.splits import TUNING_M, Setting


def test_queries_keep_three_of_their_ranges():
    sizes = (8, 16, 32, 5, 9)
    whole = np.array([[0.0, size] for size in sizes])
    drawn = random_workload(sizes, 300, np.random.default_rng(1))
    found = restricted(drawn, 3, np.random.default_rng(2))
    kept = (found.boxes == drawn.boxes).all(axis=2)
    assert ((found.boxes == whole).all(axis=2) | kept).all()
    assert (kept.sum(axis=1) >= 3).all()  # a range may be the whole attribute by chance
    assert np.mean(kept.sum(axis=1) == 3) > 0.9
    share = kept.mean(axis=0)
    assert np.abs(share - 0.6).max() < 5 * np.sqrt(0.6 * 0.4 / 300) + 0.05


def test_attributes_without_an_order_are_declared_so():
    setting = Setting("three", (4, 3), 10, lambda sizes, n, rng: rng.integers(0, sizes, (n, 2)), (1,))
    assert [a.kind for a in setting.schema.attributes] == ["integer", "nominal"]
    assert setting.schema.sizes == (4, 3)
    assert {len(s.sizes) for s in TUNING_M} >= {15, 30}
