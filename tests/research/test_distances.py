"""Distances of distributions: known answers, SciPy's, the law of an unbiased oracle, the commands that show them."""

import json

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import ahead_ldp
from ahead_ldp.cli import main
from ahead_ldp.engines.simulation import Population
from ahead_ldp.research.distances import distances, true_curves
from ahead_ldp.research.evaluation import Task, measure, workload_rng
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import random_workload

D = 16


def estimate(counts, spec=f"x=codes,{D}", epsilon=2, seed=1):
    return ahead_ldp.simulate(histogram=np.asarray(counts), schema=spec, epsilon=epsilon, method="flat", seed=seed)


def test_they_are_scipys_and_the_largest_gap():
    rng = np.random.default_rng(3)
    true, found = rng.multinomial(5000, rng.dirichlet(np.ones(D))), estimate(rng.multinomial(5000, np.ones(D) / D))
    curves = true_curves(as_schema(f"x=codes,{D}"), None, true)
    w1, ks = distances(found, curves)
    shares = found.marginal("x", errors=False).values
    places = np.arange(D) / D
    positive = np.maximum(shares, 0)  # SciPy takes no negative weight; the estimate is a distribution all the same
    if (shares >= 0).all():
        assert w1 == pytest.approx(wasserstein_distance(places, places, true, positive))
    gaps = np.abs(np.cumsum(shares) - np.cumsum(true) / true.sum())
    assert w1 == pytest.approx(gaps.sum() / D)
    assert ks == pytest.approx(gaps.max())


def test_everybody_moved_by_one_code_is_one_code_away():
    """At a large epsilon the estimate is the truth: W1 is the distance between two codes, KS everybody."""
    counts = np.zeros(D, int)
    counts[5] = 1000
    found = estimate(counts, epsilon=16)
    w1, ks = distances(found, {"x": np.repeat([0.0, 1.0], [6, D - 7])})
    assert w1 == pytest.approx(1 / D, abs=1e-3)
    assert ks == pytest.approx(1.0, abs=1e-3)
    assert distances(found, true_curves(found.schema, None, counts)) == pytest.approx((0, 0), abs=1e-3)


def test_their_size_is_that_of_the_noise():
    """Prefix sums of an unbiased oracle are normal about the truth, so E |F - F'| = sqrt(2 / pi) sd, code by code."""
    counts, n, repeats = np.full(D, 500), 500 * D, 300
    schema = as_schema(f"x=codes,{D}")
    curves = true_curves(schema, None, counts)
    mechanism = ahead_ldp.make_mechanism("flat", schema, epsilon=1, non_negative=False)
    runs = []
    for seed in range(repeats):
        found = ahead_ldp.simulate(histogram=counts, schema=schema, method=mechanism, seed=seed)
        runs.append(distances(found, curves)[0])
    oracle = next(iter(next(mechanism.run(schema)).values())).oracle
    covariance = oracle.covariance(n, np.full(D, 1 / D))
    below = np.tril(np.ones((D, D)))[:-1]
    expected = np.sqrt(2 / np.pi * np.diag(below @ covariance @ below.T)).sum() / D
    spread = np.std(runs) / np.sqrt(repeats)
    assert abs(np.mean(runs) - expected) < 4 * spread
    assert abs(np.mean(runs) - np.sqrt(1.3) * expected) > 4 * spread  # a variance 30 % wrong would be seen


def test_nominal_attributes_have_none_and_missing_values_stand_nowhere():
    town = "town=nominal,A|B|C"
    assert true_curves(as_schema(town), None, np.ones(3, int)) == {}
    with pytest.raises(ValueError, match="expected an attribute with an order for the metric ks"):
        ahead_ldp.compare(histogram=np.full(3, 50), schema=town, epsilon=1, methods=["flat"], metric="ks", repeats=2)
    missing = as_schema("x=integer,0,3,missing=cell")
    curves = true_curves(missing, None, np.array([1, 1, 1, 1, 6]))
    np.testing.assert_allclose(curves["x"], [0.1, 0.2, 0.3])


def test_several_attributes_have_the_mean_and_records_count_as_histograms_do():
    schema = as_schema(["x=codes,4", "y=codes,8"])
    records = np.random.default_rng(2).integers(0, [4, 8], (600, 2))
    people = Population.of_records(records, schema.sizes)
    task = Task.of(schema, people, random_workload(schema, 10, workload_rng(1)))
    assert set(task.curves) == {"x", "y"}
    for name, curve in true_curves(schema, None, people.counted().histogram).items():
        np.testing.assert_allclose(curve, task.curves[name])
    score = measure(task, ahead_ldp.make_mechanism("fused", schema, epsilon=2), 2, seed=1)
    one = ahead_ldp.simulate(records, schema=schema, epsilon=2, method="fused", seed=1)
    parts = [distances(one, {name: curve}) for name, curve in task.curves.items()]
    assert distances(one, task.curves) == pytest.approx(tuple(np.mean(parts, axis=0)))
    assert score.record()["ks"]["mean"] >= score.record()["wasserstein"]["mean"] > 0


def test_the_commands_say_them(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ages = np.random.default_rng(1).integers(0, 16, 400)
    (tmp_path / "ages.csv").write_text("age\n" + "\n".join(map(str, ages)) + "\n")
    people = ["--data", "ages.csv", "--attribute", "age=integer,0,15", "--epsilon", "1", "--repeats", "2"]
    assert main(["evaluate", *people, "--method", "flat", "--random", "5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["results"][0]
    assert set(said["ks"]) == {"mean", "std", "ci95"}
    assert main(["compare", *people, "--method", "flat,uni", "--random", "5", "--metric", "ks", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["method"] for row in found["results"]} == {"flat", "uni"}
    assert all("ks" in row and "mse" not in row for row in found["results"])
    assert "KS" in found["recommendations"][0]["text"]
    assert main(["compare", *people, "--method", "flat", "--metric", "l2"]) == 2
    assert "expected metric to be one of mse, wasserstein, ks, got 'l2'" in capsys.readouterr().err
