"""Simulation, bulk perturbation and the device's path have one law. Seeds are fixed; every check shows its power.

A check passes within PASS standard errors. Sizes are chosen so that a wrong law lies POWER further out.
"""

import dataclasses
from collections import Counter
from functools import reduce
from math import ceil

import numpy as np
import pytest

from ahead_ldp.oracles import GRR, ORACLES, OUE, LinearOracle, Oracle, Tally, make_oracle
from ahead_ldp.testing.oracles import by_devices, in_bulk, simulated
from tests.reference.reports import all_reports, exact_probability
from tests.support import LINEAR, PASS, POWER, chi_square, moment_errors, repeat_codes

every_oracle = pytest.mark.parametrize("name", ORACLES)
every_linear = pytest.mark.parametrize("name", LINEAR)
JOINT = [name for name, kind in ORACLES.items() if kind.joint]


every_path = pytest.mark.parametrize("path", [simulated, in_bulk, by_devices])


# The joint law of all counts, against the exact one.


def exact_law(oracle: Oracle, histogram: list[int]) -> Counter[tuple[int, ...]]:
    """The probability of every tally, by adding up over everybody's reports."""
    reports = all_reports(oracle)
    counts = [tuple(oracle.tally(r[None]).counts.tolist()) for r in reports]
    laws = []
    for code in range(oracle.d):
        law: Counter[tuple[int, ...]] = Counter()
        for count, report in zip(counts, reports, strict=True):
            law[count] += float(exact_probability(oracle, code, report))
        laws.append(law)
    return reduce(both, (laws[code] for code in repeat_codes(histogram)))


def both(one: Counter[tuple[int, ...]], other: Counter[tuple[int, ...]]) -> Counter[tuple[int, ...]]:
    law: Counter[tuple[int, ...]] = Counter()
    for a, p in one.items():
        for b, q in other.items():
            law[tuple(x + y for x, y in zip(a, b, strict=True))] += p * q
    return law


def distance(tallies: list[Tally], law: Counter[tuple[int, ...]]) -> float:
    found = Counter(tuple(t.counts.tolist()) for t in tallies)
    assert set(found) <= set(law), "an impossible tally"
    keys = list(law)
    return chi_square(np.array([found[k] for k in keys]), np.array([law[k] for k in keys]))


@pytest.mark.parametrize("name", JOINT)
@every_path
def test_counts_have_their_exact_joint_law(name, path):
    for cells, histogram in ((3, [1, 0, 1]), (4, [0, 1, 0, 1])):
        oracle = make_oracle(name, 1, cells)
        assert distance(path(oracle, histogram, 4000), exact_law(oracle, histogram)) < PASS


@pytest.mark.parametrize("name", JOINT)
def test_simulation_of_many_people_has_it_too(name):
    """More people than rows or outcomes: where simulation turns from single people to whole cells."""
    oracle = make_oracle(name, 1, 2)
    histogram = [3, 9]
    assert distance(simulated(oracle, histogram, 4000), exact_law(oracle, histogram)) < PASS


def test_a_wrong_joint_law_is_seen():
    """Marginals that agree are not enough: SS with independent bits, GRR that may move to itself."""
    right = make_oracle("ss", 1, 4)
    law = exact_law(right, [1, 0, 0, 1])
    rng = np.random.default_rng(1)
    own = np.array([1, 0, 0, 1])
    independent = [Tally(2, rng.binomial(own, right.p) + rng.binomial(2 - own, right.q)) for _ in range(6000)]
    with pytest.raises(AssertionError, match="impossible"):
        distance(independent, law)
    grr = GRR.make(1, 4)
    p = 0.75 * grr.p + 0.25 * grr.q  # a quarter of the moves end where they began
    moved = dataclasses.replace(grr, law=dataclasses.replace(grr.law, keep=round(p * 2**grr.law.bits)))
    assert distance(simulated(moved, [1, 0, 0, 1], 6000), exact_law(grr, [1, 0, 0, 1])) > PASS + POWER


# Mean and covariance of the estimates.

TIMES = ceil(2 * ((PASS + POWER) / 0.3) ** 2)  # a variance has the relative error sqrt(2 / TIMES)


def estimates(oracle: LinearOracle, tallies: list[Tally]) -> np.ndarray:
    return np.stack([oracle.estimate(t) for t in tallies])


@every_linear
@pytest.mark.parametrize("path", [simulated, in_bulk])
def test_estimates_have_the_promised_mean_and_covariance(name, path):
    oracle = make_oracle(name, 1, 6)
    assert isinstance(oracle, LinearOracle)
    histogram = [20, 0, 7, 1, 30, 2]
    f = np.array(histogram) / 60
    samples = estimates(oracle, path(oracle, histogram, TIMES))
    promised = oracle.covariance(60, f)
    mean_off, covariance_off = moment_errors(samples, f, promised)
    assert mean_off < PASS
    assert covariance_off < PASS
    for wrong in (0.7, 1.3):
        assert moment_errors(samples, f, wrong * promised)[1] > PASS, "no power: 30 % off passes"


@every_linear
def test_devices_reports_have_the_promised_mean_and_covariance(name):
    """One person at a time: what they say alone fixes mean and covariance of any group."""
    oracle = make_oracle(name, 1, 4)
    assert isinstance(oracle, LinearOracle)
    for code in (0, 2):
        person = np.eye(4)[code]
        samples = estimates(oracle, by_devices(oracle, person.astype(int).tolist(), 4000))
        assert max(moment_errors(samples, person, oracle.covariance(1, person))) < PASS


class OneBitTold(OUE):
    """A mutant: the first cell's bit is reported without noise."""

    def _perturb(self, codes, rng):
        reports = super()._perturb(codes, rng)
        reports[:, 0] = reports[:, 0] & ~np.uint8(1) | (codes == 0)
        return reports


def test_a_bit_without_noise_is_seen():
    right = OUE.make(1, 6)
    histogram = [20, 0, 7, 1, 30, 2]
    samples = estimates(right, in_bulk(OneBitTold(right.law), histogram, TIMES))
    f = np.array(histogram) / 60
    assert min(moment_errors(samples, f, right.covariance(60, f))) > PASS + POWER


# The rate itself, to two percent.


def rate_of_moves(oracle: Oracle) -> float:
    """How often a report's coin falls against the value."""
    return oracle.law.q_num / 2**oracle.law.bits if oracle.name == "oue" else 1 - kept(oracle) / 2**oracle.law.bits


def kept(oracle: Oracle) -> int:
    return oracle.law.p_num if oracle.name == "sue" else oracle.law.keep


def with_rate(oracle: Oracle, factor: float) -> Oracle:
    """The oracle with another rate of moves: other integers in the same law."""
    if oracle.name == "oue":
        fewer = round(oracle.law.q_num * factor)
        return dataclasses.replace(oracle, law=dataclasses.replace(oracle.law, q_num=fewer))  # type: ignore[call-arg]
    field = "p_num" if oracle.name == "sue" else "keep"
    one = 2**oracle.law.bits
    return dataclasses.replace(
        oracle, law=dataclasses.replace(oracle.law, **{field: round(one - (one - kept(oracle)) * factor)})
    )


def mean_distance(oracle: Oracle, reports: np.ndarray, code: int) -> float:
    """Standard errors between the mean log-likelihood ratio of the reports and what the law makes it.

    Of the right law against the one that is two percent off: the sharpest question about a rate.
    """
    ratio = with_rate(oracle, 1.02).log_prob(reports, code) - oracle.log_prob(reports, code)
    whole = sample_of_all(oracle, code)
    values = with_rate(oracle, 1.02).log_prob(whole[0], code) - oracle.log_prob(whole[0], code)
    mean = whole[1] @ values
    deviation = np.sqrt(whole[1] @ (values - mean) ** 2)
    return float((ratio.mean() - mean) / deviation * np.sqrt(len(reports)))


def sample_of_all(oracle: Oracle, code: int) -> tuple[np.ndarray, np.ndarray]:
    """All reports with their probabilities; for OLH those of one hash, for the ratio is the same under all."""
    opening = bytes(11) + b"\1" if oracle.name == "olh" else b""
    reports = all_reports(oracle, opening)
    weights = np.exp(oracle.log_prob(reports, code))
    return reports, weights / weights.sum()


@every_oracle
@pytest.mark.parametrize("factor", [1.0, 0.98, 1.02])
def test_bulk_rate_is_right_to_two_percent(name, factor):
    oracle = make_oracle(name, "0.5", 4)
    q = rate_of_moves(oracle)
    n = ceil(((PASS + POWER) / 0.02) ** 2 * (1 - q) / q)
    reports = with_rate(oracle, factor).perturb(np.full(n, 2), np.random.default_rng(21))
    off = abs(mean_distance(oracle, reports, 2))
    assert off < PASS if factor == 1.0 else off > PASS


@every_linear
@pytest.mark.parametrize("factor", [1.0, 1.02])
def test_simulated_rate_is_right_to_two_percent(name, factor):
    """As many people as it takes; they cost nothing."""
    oracle = make_oracle(name, "0.5", 4)
    assert isinstance(oracle, LinearOracle)
    n = 10**8
    tally = with_rate(oracle, factor).simulate(np.array([0, n, 0, 0]), np.random.default_rng(22))
    f = np.array([0.0, 1.0, 0.0, 0.0])
    off = np.abs(oracle.estimate(tally) - f) / np.sqrt(oracle.variance(n, f))
    assert off.max() < PASS if factor == 1.0 else off.max() > PASS + POWER


def test_square_wave_outcomes_have_their_law():
    oracle = make_oracle("sw", 1, 12)
    histogram = [0, 5, 900, 40, 0, 3, 7, 0, 600, 45, 0, 400]
    law = oracle.outcome_probabilities(np.array(histogram) / 2000)
    for path in (simulated, in_bulk, by_devices):
        times = 4 if path is by_devices else 40
        counts = sum(t.counts for t in path(oracle, histogram, times))
        assert chi_square(counts, law) < PASS
    wrong = with_rate(oracle, 1.15)
    assert chi_square(sum(t.counts for t in simulated(wrong, histogram, 40)), law) > PASS + POWER


@every_oracle
def test_cost_of_simulation_does_not_grow_with_people(name):
    """As many random numbers for 1.6 * 10^8 people as for 1.6 * 10^5."""
    oracle = make_oracle(name, 1, 16)
    calls = []
    for people in (10**4, 10**7):
        rng = CountingGenerator(np.random.PCG64(1))
        tally = oracle.simulate(np.full(16, people), rng)
        assert tally.n == 16 * people
        calls.append(rng.numbers)
    assert calls[0] == calls[1] < 20_000


@every_oracle
def test_more_people_than_live_can_be_simulated(name):
    oracle = make_oracle(name, 1, 4)
    histogram = np.array([10**10, 0, 1, 3 * 10**9])
    tally = oracle.simulate(histogram, np.random.default_rng(3))
    assert tally.n == histogram.sum()
    if isinstance(oracle, LinearOracle):
        f = histogram / tally.n
        assert (np.abs(oracle.estimate(tally) - f) < PASS * np.sqrt(oracle.variance(tally.n, f))).all()


class CountingGenerator(np.random.Generator):
    """Counts the random numbers asked for."""

    numbers = 0

    def binomial(self, n, p, size=None):
        self.numbers += np.size(n)
        return super().binomial(n, p, size)

    def multinomial(self, n, pvals, size=None):
        self.numbers += np.size(n) * np.size(pvals)
        return super().multinomial(n, pvals, size)

    def integers(self, *args, size=None, **kwargs):
        self.numbers += int(np.prod(size or 1))
        return super().integers(*args, size=size, **kwargs)
