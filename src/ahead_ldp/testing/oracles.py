"""The contract of a frequency oracle: privacy by all its reports, legal reports, tallies, and moments as promised."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import product
from math import ceil
from typing import Any, ClassVar

import numpy as np

from ahead_ldp.device.refusals import ReportRejected
from ahead_ldp.oracles.base import LinearOracle, Oracle
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Bytes
from ahead_ldp.testing.statistics import PASS, POWER, device_reports, hold, moment_errors, refuses, repeat_codes

EPSILONS = ("0.01", "0.1", "0.5", "1", "2", "4", "8")
NO_EPSILONS = (0, -1.0, float("nan"), float("inf"), "x", None, True)
NO_CODES: tuple[list[Any], ...] = ([-1], [5], [0, 1, 7], [[0, 1]], [0.5], [float("nan")], [True], ["1"])
NO_HISTOGRAMS: tuple[list[Any], ...] = ([1, 2, 3], [1, 2, 3, 4, -1], [[1, 2, 3, 4, 5]], [0.5, 1, 1, 1, 1], [])
TIMES = ceil(2 * ((PASS + POWER) / 0.3) ** 2)  # a variance has the relative error sqrt(2 / TIMES): 30 % off is found
PEOPLE = (20, 0, 7, 1, 30, 2)  # by code: those whose estimates are looked at

Path = Callable[[Oracle, tuple[int, ...], int], list[Tally]]


class OracleContract:
    """Tests of one oracle. Inherit from it in a class whose name begins with ``Test``, and set ``kind``."""

    kind: ClassVar[type[Oracle]]

    @classmethod
    def of(cls, kind: type[Oracle]) -> OracleContract:
        """The contract of a class, without a class of tests."""
        return type(f"Contract of {kind.__name__}", (cls,), {"kind": kind})()

    # What pytest runs.

    def test_records_come_back(self) -> None:
        """An oracle is its law, and the law is its record."""
        self.check_record()

    def test_reports_are_private(self) -> None:
        """By all reports, where they are few enough."""
        for epsilon in EPSILONS:
            for cells in (2, 3, 5, 8):
                self.check_privacy(epsilon, cells)

    def test_reports_are_those_of_a_device(self) -> None:
        """Bulk reports have the device's form, and are valid."""
        for cells in (2, 3, 7, 8, 9, 64, 65, 300):
            self.check_reports(cells)

    def test_valid_is_what_a_device_could_have_sent(self) -> None:
        """The bulk check and the device's are one."""
        for cells in (2, 3, 7, 8, 9, 13, 16, 100, 257):
            self.check_valid(cells)

    def test_tallies_add(self) -> None:
        """Parts and the whole."""
        for cells in (2, 5, 64, 300):
            self.check_tallies(cells)

    def test_estimates_have_the_promised_moments(self) -> None:
        """Simulated, in bulk, and by devices."""
        for path in (simulated, in_bulk, by_devices):
            self.check_moments(path)

    def test_no_reports_are_no_information(self) -> None:
        """Uniform estimates, and infinite variances."""
        self.check_no_reports()

    def test_mistakes_are_refused(self) -> None:
        """Arguments of another form."""
        for epsilon in NO_EPSILONS:
            self.check_bad_epsilon(epsilon)
        for codes in NO_CODES:
            self.check_bad_codes(codes)
        for histogram in NO_HISTOGRAMS:
            self.check_bad_histogram(histogram)
        self.check_bad_reports()
        self.check_frozen()

    # The checks.

    def make(self, epsilon: Any, cells: int) -> Any:
        """The oracle with its best parameters."""
        return self.kind.make(epsilon, cells)

    def check_record(self) -> None:
        """The law comes back from its record, and the oracle from its law."""
        oracle = self.make("1.1", 9)
        law = type(oracle.law).from_record(oracle.law.record())
        hold(law == oracle.law, "expected the law to come back from its record")
        hold(self.kind(law) == oracle, "expected the oracle to be a function of its law")
        hold(oracle.law.name == self.kind.name, f"expected oracle and law to have one name, got {oracle.law.name!r}")

    def check_privacy(self, epsilon: str, cells: int) -> None:
        """Probabilities sum to 1, and no report tells more than epsilon; nor less by more than a millionth of it.

        Reports of more than two bytes are not enumerated: of them a sample is looked at, and no sum is taken.
        """
        oracle, limit = self.make(epsilon, cells), float(epsilon)
        few = oracle.report_bytes <= 2
        reports = all_reports(oracle) if few else device_reports(oracle, np.arange(cells).repeat(40), seed=cells)
        log_p = np.stack([oracle.log_prob(reports, code) for code in range(cells)])
        sums = np.exp(log_p).sum(axis=1)
        hold(not few or np.allclose(sums, 1.0, rtol=1e-11), f"expected probabilities that sum to 1, got {sums}")
        with np.errstate(invalid="ignore"):
            worst = float(np.ptp(log_p, axis=0).max())
        hold(worst <= limit + 1e-11, f"not private: a report tells {worst:.6g} at epsilon {epsilon}")
        sharp = worst >= limit * (1 - 1e-6) - 1e-11
        hold(sharp, f"accuracy given away: no report tells more than {worst:.6g} at epsilon {epsilon}")

    def check_reports(self, cells: int) -> None:
        """Reports in bulk, and those of devices, are legal."""
        rng = np.random.default_rng(cells)
        for epsilon in ("0.1", "1", "8"):
            oracle, codes = self.make(epsilon, cells), np.arange(cells).repeat(3)
            reports = oracle.perturb(codes, rng)
            shape = (codes.size, oracle.report_bytes)
            hold(reports.shape == shape and reports.dtype == np.uint8, f"expected bytes of shape {shape}")
            hold(oracle.valid(reports).all(), "expected bulk reports to be valid")
            hold(all(device_accepts(oracle, r) for r in reports), "expected bulk reports that devices could have made")
            hold(oracle.valid(device_reports(oracle, codes, seed=cells)).all(), "expected devices' reports to be valid")
            hold(np.isfinite(oracle.log_prob(reports, cells - 1)).all(), "expected every report to be possible")
            hold(oracle.perturb(codes[:0], rng).shape == (0, oracle.report_bytes), "expected no reports of nobody")

    def check_valid(self, cells: int) -> None:
        """``valid`` and the law's own check agree on drawn, changed and random bytes."""
        rng = np.random.default_rng(cells)
        for epsilon in EPSILONS:
            oracle = self.make(epsilon, cells)
            drawn = oracle.perturb(rng.integers(0, cells, 10), rng)
            noise = rng.integers(0, 256, (10, oracle.report_bytes), np.uint8)
            changed = drawn.copy()
            flipped = (1 << rng.integers(0, 8, 10)).astype(np.uint8)
            changed[np.arange(10), rng.integers(0, oracle.report_bytes, 10)] ^= flipped
            reports = np.vstack([drawn, noise, changed])
            same = oracle.valid(reports).tolist() == [device_accepts(oracle, r) for r in reports]
            hold(same, f"expected valid to be the device's own check on {cells} cells at epsilon {epsilon}")

    def check_tallies(self, cells: int) -> None:
        """Tallies of parts add up to the tally of all."""
        rng, oracle = np.random.default_rng(1), self.make(1, cells)
        reports = oracle.perturb(rng.integers(0, cells, 700), rng)
        whole = oracle.tally(reports)
        parts = [oracle.tally(part) for part in np.split(reports, [0, 254, 255, 511])]
        hold(sum(parts, Tally.empty(oracle.outcomes)) == whole, "expected the tallies of parts to add up")
        hold(whole.n == 700 and whole.counts.shape == (oracle.outcomes,), "expected a count for every outcome")
        hold(oracle.tally(reports[:0]) == Tally.empty(oracle.outcomes), "expected an empty tally of no reports")

    def check_moments(self, path: Path) -> None:
        """Mean and covariance of the estimates, by one of the three ways to a tally."""
        oracle, people = self.make(1, len(PEOPLE)), sum(PEOPLE)
        if not isinstance(oracle, LinearOracle):
            return
        f = np.array(PEOPLE) / people
        times = 300 if path is by_devices else TIMES
        samples = np.stack([oracle.estimate(tally) for tally in path(oracle, PEOPLE, times)])
        promised = oracle.covariance(people, f)
        mean_off, covariance_off = moment_errors(samples, f, promised)
        hold(mean_off < PASS, f"{path.__name__}: expected unbiased estimates, got them {mean_off:.1f} errors off")
        said = f"{path.__name__}: expected the promised variance, got one {covariance_off:.1f} errors off"
        hold(covariance_off < PASS, said)
        hold(np.allclose(np.diag(promised), oracle.variance(people, f)), "expected one variance in both forms")

    def check_no_reports(self) -> None:
        """An empty tally says nothing, and says so."""
        oracle = self.make(1, 6)
        empty = oracle.simulate(np.zeros(6, np.int64), np.random.default_rng(0))
        hold(empty == Tally.empty(oracle.outcomes), "expected an empty tally of nobody")
        if isinstance(oracle, LinearOracle):
            hold(np.allclose(oracle.estimate(empty), 1 / 6), "expected uniform estimates without reports")
            hold(oracle.variance(0) == np.inf, "expected an infinite variance without reports")
            hold(not np.isnan(oracle.covariance(0, np.full(6, 1 / 6))).any(), "expected no NaN without reports")

    def check_bad_epsilon(self, epsilon: Any) -> None:
        """It is refused, and named."""
        refuses(lambda: self.make(epsilon, 4), f"epsilon {epsilon!r}", "expected", "epsilon", repr(epsilon))

    def check_bad_codes(self, codes: list[Any]) -> None:
        """Codes outside, and what is no code."""
        said = "expected codes to be a flat array of integers in 0..4"
        refuses(lambda: self.make(1, 5).perturb(np.array(codes), np.random.default_rng(0)), f"codes {codes}", said)

    def check_bad_histogram(self, histogram: list[Any]) -> None:
        """Histograms of another form."""
        said = "expected a histogram of 5 counts >= 0, got"
        rng = np.random.default_rng(0)
        refuses(lambda: self.make(1, 5).simulate(np.array(histogram), rng), f"histogram {histogram}", said)

    def check_bad_reports(self) -> None:
        """Reports of another form, and probabilities of no code."""
        oracle = self.make(1, 20)
        width = oracle.report_bytes
        for wrong in (np.zeros((3, width + 1), np.uint8), np.zeros(width, np.uint8), np.zeros((3, width), np.int64)):
            said = f"expected reports of shape (n, {width}) and bytes, got"
            refuses(lambda wrong=wrong: oracle.tally(wrong), f"reports of shape {wrong.shape}", said)  # type: ignore[misc]
        report = oracle.perturb(np.array([0]), np.random.default_rng(0))
        for code in (-1, 20, 0.5, True):
            refuses(lambda code=code: oracle.log_prob(report, code), f"code {code!r}", "expected code", "0..19")  # type: ignore[misc]

    def check_frozen(self) -> None:
        """No field can be set."""
        oracle: Any = self.make(1, 5)
        law = self.make(2, 5).law
        refuses(lambda: setattr(oracle, "law", law), "a change of the law", error=dataclasses.FrozenInstanceError)


def all_reports(oracle: Oracle, opening: bytes = b"") -> Bytes:
    """Every report that the device's check accepts, with these first bytes; for few cells."""
    rest = oracle.report_bytes - len(opening)
    if rest > 2:
        raise ValueError(f"expected reports of at most two bytes beyond the opening, got {rest}")
    payloads = (opening + bytes(tail) for tail in product(range(256), repeat=rest))
    legal = b"".join(payload for payload in payloads if _accepts(oracle, payload))
    return np.frombuffer(legal, np.uint8).reshape(-1, oracle.report_bytes)


def device_accepts(oracle: Oracle, report: Bytes) -> bool:
    """Whether the law could have made this report."""
    return _accepts(oracle, report.tobytes())


def _accepts(oracle: Oracle, payload: bytes) -> bool:
    try:
        oracle.law.check_payload(payload)
    except ReportRejected:
        return False
    return True


# One tally after another, from each path.


def simulated(oracle: Oracle, histogram: tuple[int, ...], times: int) -> list[Tally]:
    """By ``simulate``."""
    rng = np.random.default_rng(11)
    return [oracle.simulate(np.array(histogram), rng) for _ in range(times)]


def in_bulk(oracle: Oracle, histogram: tuple[int, ...], times: int) -> list[Tally]:
    """By ``perturb`` and ``tally``."""
    codes = np.tile(repeat_codes(histogram), times)
    reports = oracle.perturb(codes, np.random.default_rng(12))
    return [oracle.tally(part) for part in np.split(reports, times)]


def by_devices(oracle: Oracle, histogram: tuple[int, ...], times: int) -> list[Tally]:
    """By the law's own draw, one person at a time."""
    reports = device_reports(oracle, np.tile(repeat_codes(histogram), times), seed=13)
    return [oracle.tally(part) for part in np.split(reports, times)]
