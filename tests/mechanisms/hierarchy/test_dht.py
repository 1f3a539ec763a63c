"""DHT: the law of its reports, the inverse transform, published variances and orderings, every domain."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.engines.collection import run_collection
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms.hierarchy.dht import DHT
from ahead_ldp.mechanisms.hierarchy.haar_estimates import HaarEstimate, HaarLevel, widths
from ahead_ldp.mechanisms.hierarchy.hh import HH
from ahead_ldp.oracles import HRR, Haar
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, random_workload, true_answers
from tests.mechanisms.one_wave import (
    bell_of_256,
    bumpy,
    check_any_numbers,
    check_mean_and_variance,
    check_record,
    mean_and_variance_hold,
    ranges,
    strong_over_paper,
    with_empty,
)
from tests.reference import hierarchies as slow
from tests.support import PASS, SIZES, examples, schema_of

FORMS = {"paper": DHT.paper("1"), "strong": DHT.strong("1")}
every_form = pytest.mark.parametrize("mechanism", FORMS.values(), ids=FORMS)


# The oracle's contrasts: the contract tests hold its law; here is what it is for.


@pytest.mark.parametrize("d", [2, 3, 5, 8, 13])
def test_contrasts_are_unbiased_with_their_variance(d):
    oracle, histogram = Haar.make(1.0, d), np.arange(1, d + 1) * 40
    n, rng = int(histogram.sum()), np.random.default_rng(d)
    found = np.stack([oracle.contrasts(oracle.simulate(histogram, rng)) for _ in range(4000)])
    pairs = np.append(histogram, [0] * (d % 2)).reshape(-1, 2) / n
    variance = oracle.variance(n, pairs.sum(axis=1))
    assert (np.abs(found.mean(axis=0) - (pairs[:, 0] - pairs[:, 1])) < PASS * np.sqrt(variance / 4000)).all()
    assert (np.abs(found.var(axis=0) / variance - 1) < PASS * np.sqrt(2 / 4000)).all()  # 11 %
    correlation = np.corrcoef(found.T).reshape(oracle.nodes, -1) - np.eye(oracle.nodes)
    assert np.abs(correlation).max() < PASS / np.sqrt(4000)


def test_half_the_variance_of_hadamard_response_on_the_halves():
    haar, hrr = Haar.make(1.0, 16), HRR.make(1.0, 16)
    weights = np.zeros(16)
    weights[4], weights[5] = 1, -1
    assert haar.variance(100) == pytest.approx(hrr.quadratic(100, np.zeros(16), weights) / 2, rel=1e-9)
    assert haar.report_bytes <= hrr.report_bytes


def test_no_reports_no_contrasts():
    oracle = Haar.make(1.0, 6)
    empty = oracle.simulate(np.zeros(6, np.int64), np.random.default_rng(0))
    assert oracle.contrasts(empty).tolist() == [0.0, 0.0, 0.0]
    assert np.isinf(oracle.variance(0))


# The transform.


def levels_of(frequencies: np.ndarray) -> list[HaarLevel]:
    """Coefficients without noise."""
    found, size = [], frequencies.size
    for width in widths(size):
        starts = np.arange(0, size, width)
        halves = np.append(np.minimum(size - starts, width), [0] * (starts.size % 2)).reshape(-1, 2)
        sums = np.append(np.add.reduceat(frequencies, starts), [0.0] * (starts.size % 2)).reshape(-1, 2)
        found.append(HaarLevel(sums[:, 0] - sums[:, 1], halves, 100, Haar.make(1, starts.size)))
    return found


@examples(40)
@given(size=st.integers(1, 70), seed=st.integers(0, 2**32), non_negative=st.booleans())
def test_coefficients_without_noise_give_the_frequencies_back(size, seed, non_negative):
    f = np.random.default_rng(seed).dirichlet(np.ones(size))
    estimate = HaarEstimate.of(schema_of(size), levels_of(f), non_negative)
    np.testing.assert_allclose(estimate.density, f, atol=1e-12)


@pytest.mark.parametrize("size", [2, 8, 32])
def test_inverse_transform_is_that_of_the_matrix(size):
    rng = np.random.default_rng(size)
    levels = [
        HaarLevel(rng.normal(size=x.halves.shape[0]), x.halves, x.n, x.oracle) for x in levels_of(np.ones(size) / size)
    ]
    coefficients = np.concatenate([[1.0], *(level.contrasts for level in levels)])
    right = np.linalg.solve(slow.haar_matrix(size), coefficients)
    np.testing.assert_allclose(HaarEstimate.of(schema_of(size), levels, False).density, right, atol=1e-12)
    bounded = HaarEstimate.of(schema_of(size), levels, True).density
    assert bounded.min() >= 0
    assert bounded.sum() == pytest.approx(1.0)


def test_unbiased_with_the_promised_variance():
    size = 11
    workload = ranges((0, 4), (3, 7), (9, 9), (0, 9), (10, 10), size=size)
    check_mean_and_variance(FORMS["paper"], schema_of(size), bumpy((size,), 4000), workload)


def test_a_variance_thirty_percent_off_is_seen(monkeypatch):
    right = HaarEstimate._variance
    monkeypatch.setattr(HaarEstimate, "_variance", lambda *args: 1.3 * right(*args))
    _, off = mean_and_variance_hold(FORMS["paper"], schema_of(9), bumpy((9,), 4000), ranges((0, 4), (2, 7), size=9))
    assert (off < -PASS).all()


# What CKS19 found.


def predicted(mechanism: DHT | HH, size: int, workload: Workload, people: int = 10**8) -> np.ndarray:
    """Variances on a uniform population so large that only the reports' noise counts, times people."""
    uniform = Population.of_histogram(np.full(size, people // size))
    estimate = run_simulation(mechanism, schema_of(size), uniform, np.random.default_rng(1))
    return estimate.answer(workload).standard_error ** 2 * people


@pytest.mark.parametrize("size", [64, 1024])
def test_ranges_keep_the_published_bound(size):
    """CKS19: at most log2(|D|)^2 V_F / 2, whatever the range; a node's coefficient has V_F = 1/(2p - 1)^2.

    A range holds (left - right) / (2 w) of the coefficient of a node with halves of w codes, of which it holds left and
    right: at most a half, in two nodes of a level. Of the h levels each has 1/h of the people.
    """
    epsilon, h = 0.2, size.bit_length() - 1
    v_f = ((exp(epsilon) + 1) / (exp(epsilon) - 1)) ** 2
    workload = random_workload([size], 500, np.random.default_rng(2))
    found = predicted(DHT.paper(epsilon), size, workload)
    assert found.max() <= 0.5 * h**2 * v_f
    lo, hi = workload.boxes[:, 0, :1], workload.boxes[:, 0, 1:]
    held = np.zeros(len(found))
    for w in size >> np.arange(1, h + 1):
        start = np.arange(0, size, 2 * w)
        left, right = (np.maximum(np.minimum(hi, s + w) - np.maximum(lo, s), 0) for s in (start, start + w))
        held += (((left - right) / (2 * w)) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, h * v_f * held, rtol=0.01, atol=1e-9)  # group sizes vary by 0.03 %


def test_haar_is_better_at_small_epsilon_and_hh_at_larger():
    """CKS19: HaarHRR in high privacy, HH with fan-out 4 and inference for weaker requirements."""
    workload = random_workload([1024], 500, np.random.default_rng(3))
    ratio = {
        e: predicted(DHT.paper(e), 1024, workload).mean() / predicted(HH.paper(e), 1024, workload).mean()
        for e in (0.2, 0.4, 1.1, 1.4)
    }
    assert ratio[0.2] < 0.9
    assert ratio[0.2] < ratio[0.4] < 1 < ratio[1.1] < ratio[1.4]


def test_strong_is_better_than_paper():
    assert strong_over_paper(DHT, 0.5, *bell_of_256(10**5), runs=10) < 0.6


# Every domain.


@every_form
@pytest.mark.parametrize("size", SIZES)
def test_every_domain_size(mechanism, size):
    check_any_numbers(mechanism, schema_of(size), seed=size)
    assert len(mechanism.groups(schema_of(size))) == (size - 1).bit_length()


@every_form
def test_nominal_and_missing_are_taken_in_the_order_of_codes(mechanism):
    check_any_numbers(mechanism, as_schema("x=nominal,a|b|c|d|e"))
    check_any_numbers(mechanism, as_schema("x=integer,0,9,missing=cell"))


def test_an_empty_level_splits_evenly():
    size, histogram = 16, bumpy((16,), 10**5)
    workload = ranges((0, 7), (0, 3), (4, 5), size=size)
    found = with_empty(DHT.paper(2), schema_of(size), histogram, {"3"}).answer(workload)
    assert np.isinf(found.standard_error).tolist() == [False, False, True]
    truth = true_answers(workload, histogram)
    assert (np.abs(found.values - truth)[:2] < PASS * found.standard_error[:2]).all()


def test_reports_that_cross_the_wire():
    people = [{"x": i % 30} for i in range(400)]
    estimate = run_collection(DHT(epsilon=4), as_schema("x=integer,0,29"), people).estimate
    found = estimate.ask("x in 0..14")
    assert abs(found.values[0] - 0.5) < 6 * found.standard_error[0]


def test_choices():
    for mechanism in FORMS.values():
        check_record(mechanism)
    with pytest.raises(ValueError, match="expected one attribute for dht, got 2"):
        DHT.paper(1).groups(schema_of(4, 4))
