"""Wavelet expansion: orders and groups, the inverse transform, what an order costs, errors, its place among methods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.mechanisms.wavelet.wavelet import Wavelet, told_apart
from ahead_ldp.mechanisms.wavelet.wavelet_estimates import Order, WaveletEstimate, rising
from ahead_ldp.oracles import Haar
from ahead_ldp.research.distances import distances, true_curves
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload
from tests.mechanisms.one_wave import (
    bumpy,
    check_any_numbers,
    check_mean_and_variance,
    check_record,
    mean_and_variance_hold,
    ranges,
    with_empty,
)
from tests.support import PASS, SIZES, examples, schema_of

FORMS = {
    "paper": Wavelet.paper("1"),
    "strong": Wavelet.strong("1"),
    "few": Wavelet.paper("0.5", 3000),
    "raw": Wavelet(epsilon="2", users=2000, curve="raw", oracle="hrr"),
}
every_form = pytest.mark.parametrize("mechanism", FORMS.values(), ids=FORMS)


# What is asked.


@pytest.mark.parametrize(
    ("users", "epsilon", "orders"),
    [(1_000_000, 1.0, 10), (1_000_000, 0.1, 7), (10_000, 1.0, 7), (1000, 0.05, 1), (1, 1.0, 1), (10**9, 6.0, 16)],
)
def test_orders_follow_from_people_and_epsilon(users, epsilon, orders):
    """log2(2 tanh(epsilon / 2) sqrt(n)) to the nearest integer, at least 1."""
    assert told_apart(users, epsilon) == orders
    exact = np.log2(2 * np.tanh(epsilon / 2) * np.sqrt(users))
    assert abs(max(exact, 1.0) - orders) <= 0.5


def test_low_orders_have_more_people_in_the_paper_preset():
    shares = [group.share for group in Wavelet.paper("1").groups(schema_of(256))]
    assert shares == [1000, 707, 500, 354, 250, 177, 125, 88]
    assert {group.share for group in Wavelet.strong("1").groups(schema_of(256))} == {1000}


def test_order_k_has_two_to_the_k_intervals_and_no_more_orders_than_people_can_tell():
    wave = next(Wavelet.strong("1", users=10_000).run(schema_of(1024)))
    assert [q.partition.cells for q in wave.values()] == [2 << k for k in range(7)]
    assert all(np.ptp(q.partition.hi - q.partition.lo) == 0 for q in wave.values())


def test_signs_of_coefficients_where_epsilon_is_small_and_cells_where_it_is_large():
    few, many = (
        {type(q.oracle) for q in next(Wavelet.strong(e, 10**6).run(schema_of(256))).values()} for e in ("0.2", "5")
    )
    assert few == {Haar}
    assert Haar not in many
    paper = next(Wavelet.paper("1").run(schema_of(256)))
    assert [q.oracle.name for q in paper.values()] == ["grr"] * 3 + ["oue"] * 5


@pytest.mark.parametrize(
    ("choice", "value"), [("decay", -0.1), ("curve", "smooth"), ("users", 0), ("oracle", "sw"), ("oracle", "none")]
)
def test_choices_that_are_none_are_refused(choice, value):
    with pytest.raises(ValueError, match="expected"):
        Wavelet(epsilon=1, **{choice: value})


# The transform.


def orders_of(frequencies: np.ndarray, count: int) -> list[Order]:
    """Coefficients without noise."""
    found, finest = [], (frequencies.size - 1).bit_length()
    for k in range(count):
        width = 1 << finest - k - 1
        starts = np.arange(0, frequencies.size, width)
        odd = starts.size % 2
        halves = np.append(np.minimum(frequencies.size - starts, width), np.zeros(odd, np.int64)).reshape(-1, 2)
        sums = np.append(np.add.reduceat(frequencies, starts), [0.0] * odd).reshape(-1, 2)
        found.append(Order(sums[:, 0] - sums[:, 1], halves, 100, Haar.make(1, starts.size)))
    return found


@examples(40)
@given(
    size=st.integers(2, 70),
    seed=st.integers(0, 2**32),
    count=st.integers(1, 7),
    curve=st.sampled_from(["raw", "isotonic", "clipped"]),
)
def test_without_noise_the_orders_give_the_density_back(size, seed, count, curve):
    frequencies = np.random.default_rng(seed).dirichlet(np.ones(size))
    count = min(count, (size - 1).bit_length())
    found = WaveletEstimate.of(schema_of(size), orders_of(frequencies, count), curve)
    width = 1 << (size - 1).bit_length() - count
    assert found.borders.tolist() == [*range(0, size, width), size]
    starts = found.borders[:-1]
    expected = np.repeat(np.add.reduceat(frequencies, starts) / np.diff(found.borders), np.diff(found.borders))
    np.testing.assert_allclose(found.density, expected, atol=1e-12)


@pytest.mark.parametrize("k", range(6))
def test_an_order_adds_a_quarter_of_its_error_to_the_wasserstein_distance(k):
    """Whichever order it is: 2^k intervals, in each a mass of half the error moved by half a width (told_apart)."""
    orders, error = orders_of(np.full(64, 1 / 64), 6), 0.01
    orders[k].contrasts[:] = error
    schema = schema_of(64)
    estimate = WaveletEstimate.of(schema, orders, "raw")
    w1, _ = distances(estimate, true_curves(schema, None, np.ones(64, np.int64)))
    assert w1 == pytest.approx(error / 4, rel=1e-9)


def test_clipping_keeps_a_coefficient_within_its_interval():
    orders = orders_of(np.array([0.3, 0.3, 0.2, 0.2]), 2)
    orders[1].contrasts[:] = [0.9, -0.1]
    clipped = WaveletEstimate.of(schema_of(4), orders, "clipped")
    np.testing.assert_allclose(clipped.density, [0.6, 0.0, 0.15, 0.25])
    raw = WaveletEstimate.of(schema_of(4), orders, "raw")
    np.testing.assert_allclose(raw.density, [0.75, -0.15, 0.15, 0.25])
    isotonic = WaveletEstimate.of(schema_of(4), orders, "isotonic")
    np.testing.assert_allclose(isotonic.density, [0.675, 0.0, 0.075, 0.25])  # 0.75 and 0.6 become their mean


def test_the_nearest_rising_curve_by_trying_all():
    """Every rising curve on a lattice is farther away."""
    shares = np.array([0.7, -0.3, 0.5, 0.1])
    curve, lattice = np.cumsum(shares)[:-1], np.arange(0, 1.0001, 0.05)
    tried = np.array([(a, b, c) for a in lattice for b in lattice if b >= a for c in lattice if c >= b])
    best = tried[np.argmin(((tried - curve) ** 2).sum(axis=1))]
    found = np.cumsum(rising(shares))
    np.testing.assert_allclose(found[:-1], best, atol=0.026)
    assert found[-1] == pytest.approx(1.0)
    assert ((found[:-1] - curve) ** 2).sum() <= ((tried - curve) ** 2).sum(axis=1).min() + 1e-12


# Errors.


@pytest.mark.parametrize("oracle", ["haar", "grr or oue", "ss"])
def test_mean_and_variance_of_the_raw_series(oracle):
    mechanism = Wavelet(epsilon=1, users=50_000, curve="raw", oracle=oracle)
    histogram = bumpy((16,), 8000)
    workload = ranges((0, 7), (3, 9), (5, 5), (0, 12), size=16)
    check_mean_and_variance(mechanism, schema_of(16), histogram, workload)


def test_the_variance_would_be_seen_to_be_wrong(monkeypatch):
    """The same test rejects a variance that leaves out who fell into which group, and one that is 30 % off."""
    real = Order.variance
    monkeypatch.setattr(Order, "variance", lambda self, *given: 1.3 * real(self, *given))
    mechanism = Wavelet(epsilon=1, users=50_000, curve="raw", oracle="haar")
    _, off = mean_and_variance_hold(mechanism, schema_of(16), bumpy((16,), 8000), ranges((0, 7), (3, 9), size=16))
    assert (np.abs(off) > PASS).all()


def test_a_range_that_ends_inside_an_interval_says_so():
    mechanism = Wavelet.strong("1", users=300)
    people = Population.of_histogram(bumpy((64,), 300))
    estimate = run_simulation(mechanism, schema_of(64), people, np.random.default_rng(1))
    assert estimate.borders.size - 1 == 16
    answers = estimate.answer(Workload.from_codes([64], [[0, 3], [0, 4], [8, 15]]))
    assert answers.bias_not_included.tolist() == [False, True, False]


def test_an_order_without_reports_splits_evenly_and_is_not_known():
    estimate = with_empty(Wavelet.strong("2", users=4000), schema_of(16), bumpy((16,), 4000), {"1"})
    halves = estimate.answer(ranges((0, 7), (0, 3), (4, 7), size=16))
    assert halves.values[1] == pytest.approx(halves.values[2])
    assert np.isfinite(halves.standard_error[0])
    assert np.isinf(halves.standard_error[1:]).all()


# Every domain, every number of people.


@every_form
@pytest.mark.parametrize("size", SIZES)
def test_any_numbers_of_people_on_any_domain(mechanism, size):
    check_any_numbers(mechanism, schema_of(size))


@every_form
def test_records_come_back(mechanism):
    check_record(mechanism)


@pytest.mark.parametrize("text", ["color=nominal,red|green", "x=codes,12,missing=cell"])
def test_what_has_no_order_is_refused(text):
    with pytest.raises(ValueError, match="expected an ordered attribute"):
        Wavelet.strong("1").groups(as_schema([text]))


# What its paper says.


def test_below_a_categorical_oracle_in_both_distances():
    """ZZS+25's abstract: methods for categories let mass be misplaced far away. Beta(5, 2), twelve runs each."""
    x = (np.arange(256) + 0.5) / 256
    histogram = np.random.default_rng(1).multinomial(100_000, x**4 * (1 - x) / (x**4 * (1 - x)).sum())
    schema, people = schema_of(256), Population.of_histogram(histogram)
    curves = true_curves(schema, None, histogram)

    def both(mechanism):
        rng = np.random.default_rng(4)
        return np.mean([distances(run_simulation(mechanism, schema, people, rng), curves) for _ in range(12)], axis=0)

    flat = both(Flat(epsilon=1))
    assert (both(Wavelet.paper("1", 100_000)) < 0.7 * flat).all()
    assert (both(Wavelet.strong("1", 100_000)) < 0.7 * flat).all()
