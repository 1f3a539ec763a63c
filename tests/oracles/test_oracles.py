"""The contract of every registered oracle that can be checked without chance. A new one is tested by registering it."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device.laws import OLHLaw, OUELaw
from ahead_ldp.oracles import (
    GRR,
    OLH,
    ORACLES,
    OUE,
    SS,
    SW,
    Oracle,
    Tally,
    bits,
    choose_oracle,
    kernels,
    make_oracle,
    olh,
    oracle_of_law,
)
from ahead_ldp.testing import OracleContract
from ahead_ldp.testing.oracles import NO_CODES, NO_HISTOGRAMS, device_accepts
from tests.reference.counting import olh_support, ones_per_bit
from tests.reference.expectation_maximisation import expectation_maximisation, square_wave
from tests.reference.reports import all_reports, exact_probability, openings, public_log_prob, report_moments
from tests.reference.sampling import subset_tally
from tests.support import LINEAR, examples

EPSILONS = ["0.01", "0.1", "0.5", "1", "2", "4", "8"]

every_oracle = pytest.mark.parametrize("name", ORACLES)
every_linear = pytest.mark.parametrize("name", LINEAR)


def test_registry_and_records():
    for name, kind in ORACLES.items():
        oracle = make_oracle(name, "1.1", 9)
        assert kind.name == name
        assert isinstance(oracle, kind)
        assert oracle_of_law(oracle.law) == oracle == oracle_of_law(oracle.law.record())


# Privacy, by all reports.


def check_privacy(oracle: Oracle, epsilon: float) -> None:
    """Probabilities sum to 1, and the worst log-ratio is epsilon up to a millionth of it."""
    for opening in openings(oracle):
        reports = all_reports(oracle, opening)
        log_p = np.stack([oracle.log_prob(reports, code) for code in range(oracle.d)])
        given_opening = log_p - (public_log_prob(oracle) if opening else 0.0)
        np.testing.assert_allclose(np.exp(given_opening).sum(axis=1), 1.0, rtol=1e-11)
        worst = np.ptp(log_p, axis=0).max()
        assert worst <= epsilon + 1e-11, "not private"
        assert worst >= epsilon * (1 - 1e-6) - 1e-11 or same_hash(oracle, opening), "accuracy given away"


def same_hash(oracle: Oracle, opening: bytes) -> bool:
    """A hash that sends all codes to one value tells nothing about them."""
    if not isinstance(oracle.law, OLHLaw):
        return False
    a, b, c = (int.from_bytes(opening[i : i + 4], "big") for i in (0, 4, 8))
    return len({oracle.law.hash(a, b, c, code) for code in range(oracle.d)}) == 1


@every_oracle
@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_privacy_is_exactly_epsilon(name, d):
    for epsilon in EPSILONS:
        check_privacy(make_oracle(name, epsilon, d), float(epsilon))


@every_oracle
def test_log_prob_is_the_devices_law(name):
    for epsilon in ("0.1", "1", "4"):
        for d in (2, 5):
            oracle = make_oracle(name, epsilon, d)
            for opening in openings(oracle):
                reports = all_reports(oracle, opening)[:300]
                for code in range(d):
                    exact = [log(exact_probability(oracle, code, r)) for r in reports]
                    shift = public_log_prob(oracle) if opening else 0.0
                    np.testing.assert_allclose(oracle.log_prob(reports, code) - shift, exact, rtol=1e-11, atol=1e-12)


class OneBitTold(OUE):
    """A mutant: the first cell's bit is reported without noise."""

    def _log_prob(self, reports, code):
        told = (reports[:, 0] & 1) == (code == 0)
        return np.where(told, super()._log_prob(reports, code), -np.inf)


def test_enumeration_catches_wrong_laws():
    right = make_oracle("oue", 1, 4)
    assert isinstance(right, OUE)
    check_privacy(right, 1.0)
    with pytest.raises(AssertionError), np.errstate(invalid="ignore"):
        check_privacy(OneBitTold(right.law), 1.0)
    for factor, message in ((0.98, "not private"), (1.02, "accuracy")):
        law = OUELaw(4, 32, round(right.law.q_num * factor))
        with pytest.raises(AssertionError, match=message):
            check_privacy(OUE(law), 1.0)


# Reports: which are legal, and what perturb makes.


@every_oracle
@examples(60)
@given(data=st.data(), d=st.sampled_from([2, 3, 7, 8, 9, 13, 16, 100, 256, 257]), epsilon=st.sampled_from(EPSILONS))
def test_valid_is_what_the_device_could_have_sent(name, data, d, epsilon):
    oracle = make_oracle(name, epsilon, d)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    drawn = oracle.perturb(rng.integers(0, d, 10), rng)
    noise = rng.integers(0, 256, (10, oracle.report_bytes), np.uint8)
    changed = drawn.copy()
    changed[np.arange(10), rng.integers(0, oracle.report_bytes, 10)] ^= (1 << rng.integers(0, 8, 10)).astype(np.uint8)
    given_bytes = np.frombuffer(
        data.draw(st.binary(min_size=oracle.report_bytes, max_size=oracle.report_bytes)), np.uint8
    )
    reports = np.vstack([drawn, noise, changed, given_bytes])
    assert oracle.valid(reports).tolist() == [device_accepts(oracle, r) for r in reports]
    assert oracle.valid(drawn).all()


@every_oracle
@pytest.mark.parametrize("d", [2, 3, 7, 8, 9, 64, 65, 300])
def test_perturb_makes_legal_reports_of_the_devices_form(name, d):
    OracleContract.of(ORACLES[name]).check_reports(d)


# Tallies.


@every_oracle
@pytest.mark.parametrize("d", [2, 5, 64, 300])
def test_tallies_of_parts_add_up_to_the_tally_of_all(name, d):
    OracleContract.of(ORACLES[name]).check_tallies(d)
    oracle, rng = make_oracle(name, 1, d), np.random.default_rng(1)
    if oracle.outcomes != oracle.d or name == "grr":  # a report is one outcome
        assert oracle.tally(oracle.perturb(rng.integers(0, d, 700), rng)).counts.sum() == 700


@pytest.mark.parametrize(("d", "epsilon"), [(2, 1.0), (3, 4.0), (20, 0.1), (40, 1.0), (64, 3.0)])
def test_subsets_are_sampled_as_by_one_draw_after_the_other(d, epsilon):
    """The same tally from the same random numbers, which recorded runs rest on."""
    oracle, shares = make_oracle("ss", epsilon, d), np.random.default_rng(d).dirichlet(np.full(d, 0.3))
    for people in (0, 1, 50, 30_000):
        histogram = np.random.default_rng(1).multinomial(people, shares)
        slow = subset_tally(oracle, histogram, np.random.default_rng(2))
        np.testing.assert_array_equal(oracle.simulate(histogram, np.random.default_rng(2)).counts, slow)


@pytest.mark.parametrize("rows", [1, 14, 15, 16, 254, 255, 256, 509, 510, 511, 1021])
@pytest.mark.parametrize("d", [1, 8, 13, 64, 65, 200])
def test_ones_are_counted_alike_by_all(rows, d):
    """All ones fill every counter to the brim: a byte holds 255, four bit planes hold 15."""
    rng = np.random.default_rng(rows * d)
    width = -(-d // 8)
    for reports in (np.full((rows, width), 255, np.uint8), rng.integers(0, 256, (rows, width), np.uint8)):
        naive = ones_per_bit(reports, d)
        assert bits.positional_popcount(reports, d).tolist() == naive
        assert kernels.positional_popcount(reports)[:d].tolist() == naive
        assert kernels.positional_popcount(np.asfortranarray(reports))[:d].tolist() == naive


@pytest.mark.parametrize("fast", [True, False])
def test_many_ones_are_counted_on_either_path(fast, monkeypatch):
    monkeypatch.setattr(bits, "HAS_NUMBA", fast)
    reports = np.random.default_rng(5).integers(0, 256, (1 << 13, 130), np.uint8)
    plain = np.unpackbits(reports, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    counts = bits.positional_popcount(reports, 1037)
    assert counts.dtype == np.int64
    assert counts.tolist() == plain[:1037].tolist()


def olh_reports(oracle: OLH, n: int, seed: int) -> np.ndarray:
    """Random ones, and the ends of every range."""
    rng = np.random.default_rng(seed)
    reports = oracle.perturb(rng.integers(0, oracle.d, n), rng)
    last = (2**31 - 2).to_bytes(4, "big")
    for row, (a, b, c) in enumerate(
        (x, y, z) for x in (bytes(4), last) for y in (bytes(4), last) for z in (bytes(4), last)
    ):
        y = (oracle.law.g - 1) * (row % 2)
        payload = a + b + c + y.to_bytes(oracle.report_bytes - 12, "big")
        reports[row] = np.frombuffer(payload, np.uint8)
    return reports


@pytest.mark.parametrize("epsilon", ["0.01", "1", "5", "12"])
@pytest.mark.parametrize("fast", [True, False])
def test_olh_counts_alike_on_either_path(epsilon, fast, monkeypatch):
    small = OLH.make(epsilon, 40)
    reports = olh_reports(small, 60, seed=3)
    assert small.tally(reports).counts.tolist() == olh_support(reports, small.law.g, 40)
    monkeypatch.setattr(olh, "HAS_NUMBA", fast)
    large = OLH.make(epsilon, 1100)  # enough for the compiled loop, more than one block of it
    reports = olh_reports(large, 2500, seed=4)
    a, b, c, y = large.fields(reports)
    x = np.arange(1100)[:, None]
    hashed = large.law.g * ((a * x * x + b * x + c) % (2**31 - 1)) // (2**31 - 1)
    assert large.tally(reports).counts.tolist() == (hashed == y).sum(axis=1).tolist()


# Estimates: unbiased, and their second moments, exactly.


@every_linear
@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "2"])
def test_one_report_has_exactly_the_promised_moments(name, d, epsilon):
    """Over all reports; OLH over all hash values of three cells, which determine the covariance of any two."""
    oracle = make_oracle(name, epsilon, min(d, 3) if name == "olh" else d)
    for code in range(oracle.d):
        person = np.eye(oracle.d)[code]
        mean, covariance = report_moments(oracle, code)
        promised = oracle.covariance(1, person)
        scale = np.abs(promised).max()
        np.testing.assert_allclose(mean, person, atol=1e-8 * sqrt(scale))
        np.testing.assert_allclose(promised, covariance, atol=1e-8 * scale)
        np.testing.assert_allclose(np.diag(promised), oracle.variance(1, person))


@every_linear
@examples(40)
@given(
    d=st.integers(2, 40), n=st.integers(1, 10**6), seed=st.integers(0, 2**32), epsilon=st.sampled_from(EPSILONS[1:-1])
)
def test_a_group_is_the_average_of_its_people(name, d, n, seed, epsilon):
    rng = np.random.default_rng(seed)
    oracle, f = make_oracle(name, epsilon, d), rng.dirichlet(np.ones(d))
    covariance = oracle.covariance(n, f)
    alone = sum(f[x] * oracle.covariance(1, np.eye(d)[x]) for x in range(d)) / n
    np.testing.assert_allclose(covariance, alone, atol=1e-9 * covariance.max())
    np.testing.assert_allclose(np.diag(covariance), oracle.variance(n, f))
    weights = rng.normal(size=(4, d))
    expected = np.einsum("kd,de,ke->k", weights, covariance, weights)
    np.testing.assert_allclose(oracle.quadratic(n, f, weights), expected, rtol=1e-7)
    assert oracle.quadratic(n, f, weights[0]) == pytest.approx(expected[0], rel=1e-7)
    assert np.linalg.eigvalsh(covariance)[0] >= -1e-9 * covariance.max()


@pytest.mark.parametrize("name", ["grr", "ss"])
@pytest.mark.parametrize("d", [2, 3, 17, 256])
def test_estimates_of_grr_and_ss_sum_to_one(name, d):
    rng = np.random.default_rng(d)
    oracle = make_oracle(name, 1, d)
    f = rng.dirichlet(np.ones(d))
    assert oracle.estimate(oracle.tally(oracle.perturb(rng.integers(0, d, 50), rng))).sum() == pytest.approx(1)
    assert oracle.estimate(oracle.simulate(rng.integers(0, 9, d), rng)).sum() == pytest.approx(1)
    np.testing.assert_allclose(oracle.covariance(10, f).sum(axis=0), 0, atol=1e-7 * oracle.variance(10))


@every_linear
def test_no_reports_mean_no_information(name):
    oracle = make_oracle(name, 1, 6)
    f = np.full(6, 1 / 6)
    np.testing.assert_allclose(oracle.estimate(Tally.empty(oracle.outcomes)), f)
    assert oracle.variance(0) == np.inf
    assert (oracle.variance(0, f) == np.inf).all()
    assert (np.diag(oracle.covariance(0, f)) == np.inf).all()
    assert not np.isnan(oracle.covariance(0, f)).any()
    assert oracle.quadratic(0, f, np.array([[1.0, 0, 0, 0, 0, 0], np.zeros(6)])).tolist() == [np.inf, 0.0]
    assert oracle.contrast_variance(0) == np.inf
    assert oracle.precision(0) == oracle.contrast_precision(0) == 0.0
    assert oracle.precision(5) == pytest.approx(1 / oracle.variance(5))
    assert oracle.contrast_precision(5) == pytest.approx(1 / oracle.contrast_variance(5))
    assert oracle.simulate(np.zeros(6, np.int64), np.random.default_rng(0)) == Tally.empty(oracle.outcomes)


def test_published_variances():
    """WBLJ17: OUE (and OLH) 4 e^eps / (e^eps - 1)^2, GRR (d - 2 + e^eps) / (e^eps - 1)^2, over n."""
    for epsilon in (0.5, 1.0, 2.0):
        x = exp(epsilon)
        assert OUE.make(epsilon, 50).variance(10) == pytest.approx(4 * x / (x - 1) ** 2 / 10, rel=1e-4)
        assert GRR.make(epsilon, 50).variance(10) == pytest.approx((48 + x) / (x - 1) ** 2 / 10, rel=1e-4)


# The chooser.


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2.5"])
@pytest.mark.parametrize("cells", [2, 3, 8, 40, 300])
def test_chosen_is_the_least_contrast_variance_and_within_a_thousandth_the_shortest(epsilon, cells):
    choice = choose_oracle(epsilon, cells)
    contrast = {}
    for name in LINEAR:
        oracle = make_oracle(name, epsilon, cells)
        c = oracle.covariance(7, np.full(cells, 1 / cells))
        contrast[name] = 7 * (np.trace(c) - c.sum() / cells) / (cells - 1)  # what is left beside the sum's direction
        assert contrast[name] == pytest.approx(oracle.contrast_variance(1), rel=1e-6)
    least = min(contrast.values())
    close = [name for name in LINEAR if contrast[name] <= 1.001 * least]
    assert choice.oracle.name in close
    assert choice.oracle.report_bytes == min(make_oracle(n, epsilon, cells).report_bytes for n in close)
    assert choice.oracle == make_oracle(choice.oracle.name, epsilon, cells)
    assert choice.reason.startswith(f"{choice.oracle.name}: least variance on {cells} cells at epsilon {epsilon}")
    assert all(name in choice.reason for name in LINEAR)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_grr_and_oue_change_places(epsilon):
    """By the plain variance at d - 2 = 3 e^eps (WBLJ17); the chooser knows that frequencies sum to 1.

    GRR's estimates know it too, so it gains nothing: (d + 2 e^eps - 2) against 4 e^eps + (e^eps - 1)^2 / d.
    """
    x = exp(epsilon)
    plain, contrast = 3 * x + 2, x + 1 + sqrt(2 * x * x + 2)
    for d in range(2, 100):
        grr, oue = GRR.make(epsilon, d), OUE.make(epsilon, d)
        if abs(d - plain) > 0.01:
            assert (grr.variance(1) < oue.variance(1)) == (d < plain)
        assert grr.contrast_variance(1) == pytest.approx((d + 2 * x - 2) / (x - 1) ** 2, rel=1e-4)
        if abs(d - contrast) > 0.2:
            chosen = choose_oracle(epsilon, d, ("grr", "oue")).oracle.name
            assert chosen == ("grr" if d < contrast else "oue")


# Square wave.


@examples(40)
@given(d=st.integers(2, 30), epsilon=st.sampled_from(EPSILONS), seed=st.integers(0, 2**32))
def test_square_wave_is_its_matrix(d, epsilon, seed):
    rng = np.random.default_rng(seed)
    oracle, f = SW.make(epsilon, d), rng.dirichlet(np.ones(d))
    matrix = square_wave(d, oracle.law.b, oracle.p, oracle.q)
    assert matrix.shape == (oracle.outcomes, d)
    np.testing.assert_allclose(matrix.sum(axis=0), 1.0)
    np.testing.assert_allclose(oracle.outcome_probabilities(f), matrix @ f, atol=1e-13)
    x = rng.normal(size=oracle.outcomes)
    np.testing.assert_allclose(oracle.back(x), matrix.T @ x, atol=1e-12)
    tally = oracle.simulate(rng.integers(0, 50, d), rng)
    assert oracle.log_likelihood(tally, f) == pytest.approx(tally.counts @ np.log(matrix @ f))


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize(("d", "epsilon"), [(2, "1"), (8, "0.5"), (16, "1"), (20, "3")])
def test_em_is_the_slow_one_and_climbs(d, epsilon, smooth):
    rng = np.random.default_rng(d)
    oracle = SW.make(epsilon, d)
    tally = oracle.simulate(rng.multinomial(3000, rng.dirichlet(np.ones(d))), rng)
    matrix = square_wave(d, oracle.law.b, oracle.p, oracle.q)
    limit = 1e-3 if smooth else 1e-3 * oracle.p / oracle.q
    slow, trace = expectation_maximisation(matrix, tally.counts, limit, smooth)
    found = oracle.em(tally, smooth=smooth)
    np.testing.assert_allclose(found, slow, atol=1e-8)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    if not smooth:
        steps = [oracle.log_likelihood(tally, oracle.em(tally, most_steps=k, tolerance=-1)) for k in range(1, 8)]
        assert (np.diff(steps) >= -1e-9).all()
        assert (np.diff(trace) >= -1e-9).all()


def test_em_without_reports_is_uniform():
    oracle = SW.make(1, 5)
    np.testing.assert_allclose(oracle.em(Tally.empty(oracle.outcomes)), np.full(5, 0.2))


# What is refused.


@every_oracle
@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), 65, "x", None, True])
def test_epsilon_that_is_none_is_refused(name, epsilon):
    with pytest.raises(ValueError, match=rf"expected .*epsilon.*{epsilon!r}"):
        make_oracle(name, epsilon, 4)


@every_oracle
@pytest.mark.parametrize("codes", NO_CODES, ids=repr)
def test_codes_outside_are_refused(name, codes):
    OracleContract.of(ORACLES[name]).check_bad_codes(codes)


@every_oracle
@pytest.mark.parametrize("histogram", NO_HISTOGRAMS, ids=repr)
def test_histograms_of_another_form_are_refused(name, histogram):
    OracleContract.of(ORACLES[name]).check_bad_histogram(histogram)


@every_oracle
def test_reports_and_tallies_of_another_form_are_refused(name):
    OracleContract.of(ORACLES[name]).check_bad_reports()
    oracle = make_oracle(name, 1, 20)
    read = {"sw": "em", "haar": "contrasts"}.get(name, "estimate")
    with pytest.raises(ValueError, match=f"expected a tally of {oracle.outcomes} counts for {name} on 20 cells"):
        getattr(oracle, read)(Tally.empty(oracle.outcomes + 1))


def test_names_that_are_no_oracle_are_refused():
    with pytest.raises(ValueError, match=r"expected oracle to be one of grr.*got 'laplace'"):
        make_oracle("laplace", 1, 4)
    with pytest.raises(ValueError, match="'laplace'"):
        choose_oracle(1, 4, ("grr", "laplace"))
    with pytest.raises(ValueError, match="expected an oracle with an unbiased estimate, got 'sw'"):
        choose_oracle(1, 4, ("sw",))
    with pytest.raises(ValueError, match="expected at least one oracle"):
        choose_oracle(1, 4, ())


@pytest.mark.parametrize(
    ("n", "counts"),
    [
        (3, np.array([1.0, 2.0])),
        (3, np.array([1, 2], np.int32)),
        (3, np.array([[1, 2]])),
        (3, np.array([1, 4])),
        (3, np.array([-1, 2])),
        (-1, np.array([], np.int64)),
    ],
)
def test_counts_that_no_reports_could_give_are_refused(n, counts):
    with pytest.raises(ValueError, match=r"expected .*counts"):
        Tally(n, counts)


def test_tallies_of_two_questions_do_not_add():
    with pytest.raises(ValueError, match="expected tallies of one question, got 2 and 3 counts"):
        Tally.empty(2) + Tally.empty(3)
    assert Tally(3, np.array([1, 2])) != Tally(4, np.array([1, 2]))
    assert Tally(3, np.array([1, 2])) != 3


@every_oracle
def test_nothing_of_an_oracle_can_be_changed(name):
    OracleContract.of(ORACLES[name]).check_frozen()


def test_the_subset_is_never_everything():
    for d in range(2, 40):
        assert 1 <= SS.make("0.01", d).law.w < d
