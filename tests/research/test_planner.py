"""Plans: the paper's thresholds, groups and waves, and predictions that are measurements on a stated reference."""

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.mechanisms.ahead.lle import LLE
from ahead_ldp.mechanisms.ahead.uniform import Uniform
from ahead_ldp.protocol.turnout import fewest_people
from ahead_ldp.research import planner, references
from ahead_ldp.research.evaluation import Task, choose, measure, workload_rng
from ahead_ldp.research.planner import lay_out, plan
from ahead_ldp.research.references import reference_population, reference_shares
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import random_workload

# AHEAD, Sec. 5: theta as printed, at epsilon 1.1 unless another stands there.
PRINTED = [
    ("x=codes,256", 2_260_668, "1.1", "0.006"),  # Loan
    ("x=codes,512", 6_022_336, "1.1", "0.004"),  # Financial
    ("x=codes,1024", 537_577, "1.1", "0.013"),  # BlackFriday
    ("x=codes,2048", 148_654, "1.1", "0.026"),  # Salaries
    ("x=codes,1024", 10**6, "0.1", "0.11"),
    ("x=codes,1024", 10**7, "1", "0.003"),
    ("x=codes,256 y=codes,256", 10**7, "1.1", "0.003"),
]


@pytest.mark.parametrize(("attributes", "users", "epsilon", "theta"), PRINTED)
def test_theta_is_the_papers(attributes, users, epsilon, theta):
    schema = as_schema(attributes.split())
    found = lay_out(choose("ahead", schema, epsilon, users, "paper")[0], schema, users)
    low, high = found.theta
    assert low == pytest.approx(high)
    assert f"{low:.{len(theta) - 2}f}" == theta


def test_groups_and_waves_of_ahead():
    found = lay_out(AHEAD.paper(epsilon=1.0), as_schema("x=codes,256"), 80_000)
    assert (found.waves, len(found.groups), found.fanout) == (8, 8, 2)
    assert [group.people for group in found.groups] == [10_000] * 8
    assert found.groups[0].cells == 2
    assert found.groups[0].report_bytes == 16 + 1
    assert found.warnings == []


def test_groups_of_pairs_share_a_wave():
    found = lay_out(LLE.paper(epsilon=1.0), as_schema(["x=codes,8", "y=codes,8", "z=codes,8"]), 9_000)
    assert (found.waves, len(found.groups)) == (3, 9)
    assert [group.wave for group in found.groups] == [1] * 3 + [2] * 3 + [3] * 3
    assert sum(group.people for group in found.groups) == pytest.approx(9_000)


def test_methods_without_groups_fanout_or_theta_have_none():
    schema = as_schema("x=codes,16")
    nobody = lay_out(Uniform(epsilon=1.0), schema, 100)
    assert (nobody.waves, nobody.theta, nobody.fanout, nobody.report_bytes) == (0, None, None, None)
    flat = lay_out(Flat(epsilon=1.0, oracle="oue"), schema, 100)
    assert (flat.waves, flat.theta, flat.report_bytes) == (1, None, (16 + 2, 16 + 2))


def test_groups_that_may_miss_their_minimum_are_warned_of():
    schema = as_schema("x=codes,256")
    enough = fewest_people(AHEAD.paper(epsilon=1.0), schema, 100)
    assert lay_out(AHEAD.paper(epsilon=1.0), schema, enough).warnings == []
    (warning,) = lay_out(AHEAD.paper(epsilon=1.0), schema, enough - 1).warnings
    assert f"for 8 groups of the method ahead, got {enough - 1:,}" in warning
    assert f"{enough:,} people" in warning


def test_a_prediction_is_a_measurement_on_the_reference():
    schema, mechanism = as_schema(["x=codes,16", "y=codes,8"]), AHEAD.paper(epsilon=1.0)
    found = plan(mechanism, schema, 5_000)
    assert [p.shape for p in found.predictions] == list(references.SHAPES)
    for i, prediction in enumerate(found.predictions):
        people = reference_population(
            prediction.shape, schema.sizes, 5_000, np.random.default_rng([references.SEED, i])
        )
        task = Task.of(schema, people, random_workload(schema, references.QUERIES, workload_rng(references.SEED)))
        assert prediction.mse == measure(task, mechanism, planner.REPEATS, references.SEED).mse
    assert found == plan(mechanism, schema, 5_000)


def test_a_plan_runs_nothing_twice(monkeypatch):
    """Errors, intervals and questions are read off the same runs, and are those of runs made for each alone."""
    schema, mechanism, runs = as_schema(["x=codes,16", "y=codes,8"]), AHEAD.paper(epsilon=1.0), []
    alone = lay_out(mechanism, schema, 5_000)
    people = reference_population("bumps", schema.sizes, 5_000, references.shape_rng("bumps"))
    widths = planner.predict_widths(mechanism, schema, "bumps", people)
    simulated = planner.run_simulation
    monkeypatch.setattr(planner, "run_simulation", lambda *given: runs.append(given) or simulated(*given))
    found = plan(mechanism, schema, 5_000)
    assert len(runs) == len(references.SHAPES) * planner.REPEATS
    assert found.groups == alone.groups
    assert found.widths[references.SHAPES.index("bumps")] == widths


TOLERANCE = 1.25  # of a mean over 16 to 40 intervals of other people, queries and noise; they scatter by 5 to 10 %


@pytest.mark.parametrize(("method", "epsilon"), [("adaptive", "1"), ("flat", "0.5"), ("hio", "4")])
def test_predicted_widths_are_those_of_a_real_run(method, epsilon):
    """Another population of the shape, other queries, other noise: the printed intervals are as wide as was said."""
    schema, n = as_schema("x=integer,0,31"), 40_000
    mechanism = choose(method, schema, epsilon, n)[0]
    people = reference_population("heaped", schema.sizes, n, np.random.default_rng(1))
    predicted = planner.predict_widths(mechanism, schema, "heaped", people).half
    shares = reference_shares("heaped", schema.sizes)[0]
    values = np.random.default_rng(77).choice(32, size=n, p=shares)
    estimate = ahead_ldp.simulate(values, schema, epsilon=epsilon, method=method, seed=78)

    ends = np.sort(np.random.default_rng(79).integers(0, 32, size=(20, 2)), axis=1)
    low, high = estimate.ask(*(f"x in {a}..{b}" for a, b in ends)).interval()
    assert 1 / TOLERANCE < predicted["range"] / np.mean((high - low) / 2) < TOLERANCE
    codes = sorted({*np.argsort(-shares)[:4].tolist(), 3, 9, 19, 29})
    low, high = estimate.ask(*(f"x in {c}..{c}" for c in codes)).interval()
    assert 1 / 1.5 < predicted["code"] / np.mean((high - low) / 2) < 1.5  # heavy codes differ by more
    low, high = estimate.quantiles("x", [0.25, 0.5, 0.75]).interval()
    assert abs(predicted["quantile"] - np.mean(high + 1 - low) / 2 / 32) < 1 / 32  # whole codes: one to and fro


def test_widths_are_of_the_plan_and_shrink_with_people():
    schema = as_schema("x=codes,16")
    few, many = (plan(Flat(epsilon=1.0, oracle="oue"), schema, n) for n in (2_000, 200_000))
    assert [w.shape for w in many.widths] == list(references.SHAPES)
    for a, b in zip(few.widths, many.widths, strict=True):
        for kind in ("range", "code"):
            assert 0 < b.half[kind] < a.half[kind] <= 0.5
    assert few.record()["widths"][0].keys() == {"shape", "people", "level", "repeats", "range", "code", "quantile"}


def test_a_nominal_attribute_has_no_quartiles():
    schema = as_schema("x=nominal,a|b|c")
    people = reference_population("zipf", schema.sizes, 1000, np.random.default_rng(1))
    half = planner.predict_widths(Flat(epsilon=1.0), schema, "zipf", people).half
    assert half["quantile"] is None
    assert half["code"] > 0


def test_people_of_the_reference_are_independent_with_the_stated_margins():
    n = 200_000
    uniform = reference_population("uniform", (4, 5), n, np.random.default_rng(1)).histogram
    zipf = reference_population("zipf", (4, 5), n, np.random.default_rng(1)).histogram
    weights = [np.arange(1, size + 1) ** -1.1 for size in (4, 5)]
    expected = np.multiply.outer(*(w / w.sum() for w in weights))
    for counts, shares in ((uniform, np.full((4, 5), 1 / 20)), (zipf, expected)):
        assert counts.sum() == n
        assert (np.abs(counts / n - shares) < 5 * np.sqrt(shares * (1 - shares) / n)).all()
    assert np.abs(uniform / n - expected).max() > 100 * np.sqrt(0.25 / n)


def test_a_wide_reference_is_of_fewer_people(monkeypatch):
    monkeypatch.setattr(references, "MOST_RECORDS", 1000)
    wide = reference_population("zipf", (2048, 2048), 10**9, np.random.default_rng(1))
    assert wide.n == 1000
    assert wide.records.min() == 0


def test_no_people_and_no_such_shape_are_refused():
    schema = as_schema("x=codes,4")
    with pytest.raises(ValueError, match="users >= 1, got 0"):
        plan(AHEAD.paper(epsilon=1.0), schema, 0)
    with pytest.raises(ValueError, match="uniform, zipf, bumps, heaped, got 'normal'"):
        reference_population("normal", (4,), 10, np.random.default_rng(1))


def test_a_plan_from_attributes_epsilon_and_people_is_that_of_the_method():
    found = ahead_ldp.plan("age=codes,16", epsilon="0.5", users=2000, method="flat")
    same = planner.plan(ahead_ldp.make_mechanism("flat", "age=codes,16", epsilon="0.5", users=2000), found.schema, 2000)
    assert found.record() == same.record()
    assert ahead_ldp.plan("age=codes,16", epsilon=1, users=2000).mechanism.name == "adaptive"
    with pytest.raises(ValueError, match="expected users, the number of people, to be a whole number >= 1, got -5"):
        ahead_ldp.plan("age=codes,16", epsilon=1, users=-5)
