"""People heaped on the number at which a range of reals ends: whether they belong to it is not in the reports."""

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.mechanisms import MECHANISMS

PAY = "pay=real,0,160000,32"  # 50,000 is a border
N = 20_000
LEVEL = 1 - 1e-7  # of each interval: chance breaks none of a hundred or so
RANGES = {
    "pay <= 50000": lambda pay: pay <= 50_000,
    "pay < 50000": lambda pay: pay < 50_000,
    "pay > 50000": lambda pay: pay > 50_000,
    "pay >= 50000": lambda pay: pay >= 50_000,
    "pay in 30000..50000": lambda pay: (pay >= 30_000) & (pay <= 50_000),
    "pay in 50000..80000": lambda pay: (pay >= 50_000) & (pay <= 80_000),
    "pay = 50000": lambda pay: pay == 50_000,
    "pay = 51234": lambda pay: pay == 51_234,
    "pay <= 0": lambda pay: pay <= 0,
    "pay > 0": lambda pay: pay > 0,
    "pay < 160000": lambda pay: pay < 160_000,
    "pay >= 160000": lambda pay: pay >= 160_000,
}


def heaped(rng):
    """Three in ten have 50,000, one in ten each 0, 51,234 and the maximum."""
    smooth = rng.lognormal(10.5, 0.5, N).clip(1, 159_999)
    return rng.choice([50_000.0, 0.0, 51_234.0, 160_000.0, -1.0], N, p=[0.3, 0.1, 0.1, 0.1, 0.4]), smooth


def drawn(seed):
    heaps, smooth = heaped(np.random.default_rng(seed))
    return np.where(heaps < 0, smooth, heaps)


@pytest.mark.parametrize("method", [None, *MECHANISMS])
def test_strict_intervals_hold_who_is_exactly_at_an_end(method):
    pay = drawn(1)
    estimate = ahead_ldp.simulate(pay, PAY, epsilon=2, method=method, seed=1)
    answers = estimate.ask(*RANGES)
    low, high = answers.interval(LEVEL)
    truth = np.array([inside(pay).mean() for inside in RANGES.values()])
    held = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
    assert held.all(), [query for query, holds in zip(RANGES, held, strict=True) if not holds]


def test_two_attributes_and_the_other_questions_hold_them_too():
    pay, age = drawn(2), np.random.default_rng(3).integers(0, 60, N)
    age[pay == 50_000] //= 2  # the heap is of the young
    data = {"pay": pay, "age": age}
    estimate = ahead_ldp.simulate(data, [PAY, "age=integer,0,59,12"], epsilon=2, seed=1)
    for query, inside in RANGES.items():
        low, high = estimate.ask(f"{query} and age < 30").interval(LEVEL)
        assert low[0] - 1e-9 <= np.mean(inside(pay) & (age < 30)) <= high[0] + 1e-9, query
    low, high = estimate.cdf("pay", [0, 50_000, 51_234, 159_999]).interval(LEVEL)
    truth = [np.mean(pay <= point) for point in (0, 50_000, 51_234, 159_999)]
    assert ((low - 1e-9 <= truth) & (truth <= high + 1e-9)).all()
    low, high = estimate.above("pay", 50_000).interval(LEVEL)
    assert low[0] <= np.mean(pay > 50_000) <= high[0]
    low, high = estimate.below("pay", 50_000).interval(LEVEL)
    assert low[0] <= np.mean(pay < 50_000) <= high[0]


def test_the_interval_is_wider_by_the_bucket_above_and_only_where_its_border_belongs_to_the_range():
    estimate = ahead_ldp.simulate(drawn(1), PAY, epsilon=2, seed=1)
    closed, half_open, number = np.diff(estimate.ask("pay <= 50000", "pay < 50000", "pay = 50000").interval(), axis=0)[
        0
    ]
    assert half_open < 0.05
    assert closed == pytest.approx(half_open + number, abs=0.03)
    assert estimate.ask("pay <= 50000").share == estimate.ask("pay < 50000").share
    assert estimate.ask("pay = 50000").share[0] == 0


def test_sums_groups_weights_and_changes_hold_them_too():
    pay = drawn(4)
    team = np.where(np.random.default_rng(5).random(N) < np.where(pay == 50_000, 0.8, 0.3), "north", "south")
    schema = [PAY, "team=nominal,north|south"]
    estimate = ahead_ldp.simulate({"pay": pay, "team": team}, schema, epsilon=3, seed=1)

    def holds(found, truth):
        low, high = found.interval(LEVEL)
        return ((low - 1e-9 <= truth) & (truth <= high + 1e-9)).all()

    exactly = np.mean(pay == 50_000)
    assert holds(estimate.weighted(["pay <= 50000", "pay < 50000"], [1, -1]), exactly)
    north, south = (pay[team == name] <= 50_000 for name in ("north", "south"))
    assert holds(estimate.by("team").share("pay <= 50000"), np.array([north.mean(), south.mean()]))
    weighted = estimate.calibrated({"team": {"north": 0.5, "south": 0.5}}).ask("pay <= 50000")
    assert weighted.ends is not None  # strict
    assert holds(weighted, (north.mean() + south.mean()) / 2)
    without = pay != 50_000
    other = ahead_ldp.simulate({"pay": pay[without], "team": team[without]}, schema, epsilon=3, seed=2)
    change = ahead_ldp.difference(estimate, other).ask("pay <= 50000", "pay < 50000")
    truth = [np.mean(inside(pay[without])) - np.mean(inside(pay)) for inside in list(RANGES.values())[:2]]
    assert holds(change, np.array(truth))
