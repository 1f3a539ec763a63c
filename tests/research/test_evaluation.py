"""Measuring: errors against theory, seeds that stand alone, memory that is seen."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from ahead_ldp import mechanisms
from ahead_ldp.engines.simulation import Population
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.mechanisms.ahead.uniform import Uniform, UniformEstimate
from ahead_ldp.oracles import make_oracle
from ahead_ldp.research import evaluation
from ahead_ldp.research.evaluation import (
    Spread,
    Task,
    Trial,
    check_runs,
    choose,
    measure,
    peak_memory,
    people_of,
    run_trial,
    trial_rng,
)
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import point_workload, random_workload, true_answers

SCHEMA = as_schema("x=codes,16")
COUNTS = np.arange(16) * 40
PEOPLE = Population.of_histogram(COUNTS)
TASK = Task.of(SCHEMA, PEOPLE, random_workload(SCHEMA, 30, np.random.default_rng(1)))


def test_spread_is_students():
    found = Spread.of([11.0, 12.0, 13.0])
    assert (found.mean, found.std) == (12.0, 1.0)
    half = 4.302653 / np.sqrt(3)  # t of two degrees of freedom at 0.975
    np.testing.assert_allclose(found.ci95, [12 - half, 12 + half], rtol=1e-6)


def test_spread_is_never_negative_and_of_one_value_unknown():
    assert Spread.of([0.0, 1.0]).ci95[0] == 0.0
    assert Spread.of([3.0]).record() == {"mean": 3.0, "std": None, "ci95": None}


def error_over_variance(scale: float = 1.0) -> tuple[float, float]:
    """The measured error of single cells under a flat oracle, in units of its variance, and the standard error."""
    oracle = make_oracle("oue", 1.0, 16)
    mechanism = Flat(epsilon=1.0, oracle="oue", non_negative=False)
    task = Task.of(SCHEMA, PEOPLE, point_workload(SCHEMA))
    found = measure(task, mechanism, 200, seed=3).mse
    expected = scale * np.mean(oracle.variance(PEOPLE.n, COUNTS / COUNTS.sum()))
    return float(found.mean / expected), float(found.std / np.sqrt(200) / expected)


def test_error_is_the_variance_of_a_flat_oracle():
    ratio, error = error_over_variance()
    assert abs(ratio - 1) < 5 * error


def test_a_variance_30_percent_off_is_seen():
    ratio, error = error_over_variance(scale=1.3)
    assert abs(ratio - 1) > 5 * error


def test_error_of_uniform_answers_is_their_distance_from_the_truth():
    volume = np.diff(TASK.workload.boxes[:, 0], axis=1)[:, 0] / 16
    expected = np.mean((volume - true_answers(TASK.workload, COUNTS)) ** 2)
    score = measure(TASK, Uniform(epsilon=1.0), 2, seed=0)
    np.testing.assert_allclose([t.mse for t in score.trials], expected, rtol=1e-12)


def test_a_repetition_runs_again_alone():
    mechanism = AHEAD(epsilon="0.5")
    score = measure(TASK, mechanism, 4, seed=9)
    again = run_trial(TASK, mechanism, trial_rng(9, "ahead", 0.5, 2))
    assert again.mse == score.trials[2].mse
    fewer = measure(TASK, mechanism, 2, seed=9)
    assert [t.mse for t in fewer.trials] == [t.mse for t in score.trials[:2]]


def test_seeds_differ_in_every_part_and_not_in_how_epsilon_is_written():
    def first(*cell):
        return trial_rng(*cell).integers(2**63)

    cells = [(1, "ahead", 1.0, 0), (2, "ahead", 1.0, 0), (1, "lle", 1.0, 0), (1, "ahead", 1.1, 0), (1, "ahead", 1.0, 1)]
    assert len({first(*cell) for cell in cells}) == len(cells)
    assert first(1, "ahead", "1.0", 0) == first(1, "ahead", 1, 0) == first(*cells[0])


def test_seconds_are_medians():
    trials = (Trial(1.0, 100.0, 9.0), Trial(1.0, 1.0, 2.0), Trial(1.0, 2.0, 1.0))
    score = evaluation.Score("ahead", "default", "1", trials, 0, 0)
    assert (score.build_seconds, score.query_seconds) == (2.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy(Uniform):
    """Uni that holds eight million bytes for a moment."""

    name: ClassVar[str] = "greedy"

    def run(self, schema):
        held = np.ones(1_000_000)
        assert held.sum()
        return (yield from Uniform.run(self, schema))


def test_peak_memory_sees_what_is_held_for_a_moment():
    base = peak_memory(TASK, Uniform(epsilon=1.0), np.random.default_rng(0))
    greedy = peak_memory(TASK, Greedy(epsilon=1.0), np.random.default_rng(0))
    assert base < 500_000
    assert 8_000_000 <= greedy < 8_500_000 + base


def test_repeats_below_one_are_refused():
    with pytest.raises(ValueError, match="repeats >= 1, got 0"):
        measure(TASK, Uniform(epsilon=1.0), 0, seed=0)


def test_people_are_counted_where_that_is_smaller():
    codes = np.random.default_rng(2).integers(0, 4, (100, 2))
    counted = people_of(codes, (4, 4))
    assert counted.histogram is not None
    np.testing.assert_array_equal(counted.histogram, np.histogram2d(*codes.T, bins=4, range=[(0, 4)] * 2)[0])
    kept = people_of(codes, (1000, 1000))
    np.testing.assert_array_equal(kept.records, codes)


def test_records_and_counts_have_the_same_truth():
    codes = np.repeat(np.arange(16), COUNTS)[:, None]
    records = Population.of_records(codes, (16,))
    np.testing.assert_allclose(Task.of(SCHEMA, records, TASK.workload).truth, TASK.truth, rtol=1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned(Flat):
    """A method with strong settings, which it plans with the number of people."""

    name: ClassVar[str] = "tuned"
    most_attributes: ClassVar[int | None] = 1
    users: int = 1

    @classmethod
    def strong(cls, *, epsilon, users):
        return cls(epsilon=epsilon, users=users, oracle="grr")


@pytest.fixture
def tuned(monkeypatch):
    monkeypatch.setitem(MECHANISMS, "tuned", Tuned)


@pytest.mark.usefixtures("tuned")
def test_settings_are_those_asked_for_and_named_truly():
    assert choose("tuned", SCHEMA, "1", 50, "strong") == (Tuned(epsilon="1", users=50, oracle="grr"), "strong")
    assert choose("tuned", SCHEMA, "1", 50) == (Tuned(epsilon="1", users=50), "default")
    assert choose("tuned", SCHEMA, "1", 50, "paper") == (Tuned(epsilon="1", users=50), "default")
    found, label = choose("ahead", SCHEMA, "1", 50, "paper")
    assert (found, label) == (replace(AHEAD.paper("1"), **_users(found)), "paper")
    assert choose(None, SCHEMA, "1", 50)[0].name == "adaptive"


def _users(mechanism):
    return {"users": 50} if hasattr(mechanism, "users") else {}


@pytest.mark.usefixtures("tuned")
@pytest.mark.parametrize("settings", ["default", "strong"])
def test_more_attributes_than_the_method_takes_are_refused(settings):
    with pytest.raises(ValueError, match="at most 1 attribute for the method tuned, got 2"):
        choose("tuned", as_schema(["x=codes,4", "y=codes,4"]), "1", 50, settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ahead", SCHEMA, "1", 0), "users >= 1, got 0"),
        (("ahead", SCHEMA, "1", 5, "best"), "default, paper or strong, got 'best'"),
        (("nope", SCHEMA, "1", 5), "method to be one of"),
        (("ahead", SCHEMA, "-1", 5), "epsilon"),
    ],
)
def test_bad_choices_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        choose(*arguments)


class Mute(Uniform):
    """Uni that refuses to answer."""

    def run(self, schema):
        estimate = yield from Uniform.run(self, schema)
        return Silent(estimate.schema)


class Silent(UniformEstimate):
    def answer(self, workload, *, errors=True):
        raise ValueError("too many cells")


def test_a_method_that_cannot_answer_says_so_before_it_is_run():
    check_runs(Mute(epsilon=1.0), SCHEMA)
    with pytest.raises(ValueError, match="too many cells"):
        check_runs(Mute(epsilon=1.0), SCHEMA, TASK.workload)


def test_every_method_has_a_source():
    silent = [name for name, cls in mechanisms.MECHANISMS.items() if not (cls.idea and cls.source)]
    assert not silent, f"say in the class what {silent} are and where they come from"
