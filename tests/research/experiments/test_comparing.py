"""`ahead compare`: a user's own files and methods, and a recommendation that follows the measurements."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind

import ahead_ldp
from ahead_ldp.cli import main
from ahead_ldp.research.contrasts import NEAR, contrasts
from ahead_ldp.research.experiments.comparing import Recommendation, comparison, fitting, overall, recommend
from ahead_ldp.research.experiments.journal import Outcome
from ahead_ldp.research.experiments.plan import Data
from ahead_ldp.research.experiments.results import Measured
from ahead_ldp.schema.attributes import as_schema


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    pay = np.minimum(rng.lognormal(10.5, 0.5, 3000), 159_999)
    lines = [f"{p:.2f},{a},{'SML'[a % 3]}\n" for p, a in zip(pay, rng.integers(18, 99, 3000), strict=True)]
    (tmp_path / "people.csv").write_text("pay,age,size\n" + "".join(lines))
    return tmp_path


def made_up(errors):
    """A plan of two epsilons, with these errors: method -> (repetitions at the first, at the second)."""
    figure = comparison(Data("zipf", (8,), 100), [100], [0.5, 1.0], list(errors), 3, 10, 0)
    outcomes = {}
    for line in figure.panels[0].lines:
        for point, values in zip(line.points, errors[line.method], strict=True):
            rows = tuple({"repetition": i, "mse": v} for i, v in enumerate(values))
            outcomes[point.cell.id] = Outcome(point.cell.id, "", rows)
    return figure, Measured(outcomes)


def test_the_recommendation_follows_the_measurements():
    clear, near = [1.00, 1.01, 1.02], [1.05, 1.06, 1.04]
    advice = recommend(
        *made_up({"ahead": (clear, [9.0, 9.1, 9.2]), "default": (near, [2.0, 2.1, 2.2]), "hio": ([5.0] * 3, [1.0] * 3)})
    )
    assert [a.method for a in advice] == ["ahead", "hio"]  # the default is near, but clearly above
    advice = recommend(*made_up({"ahead": ([1.0, 1.2, 0.9], [1.0] * 3), "default": ([1.05, 1.0, 1.2], [1.5] * 3)}))
    assert advice[0].method == "default"  # within a tenth, and not told apart
    assert [c.method for c in advice[0].among("open")] == ["default"]
    assert "the least error has ahead" in advice[0].text
    assert advice[1].method == "ahead"
    assert "the default has 1.5 times its error" in advice[1].text
    assert overall(advice).startswith("over all of these ahead is best")


def test_a_verdict_is_read_off_the_interval_beside_it():
    """The review's case: one method varies much and is left open, one with a smaller mean is surely worse."""
    errors = {
        "fused": [1.40e-3, 1.42e-3, 1.41e-3],
        "hdg": [1.6e-3, 1.61e-3, 1.59e-3],
        "ahead": [1.2e-3, 2.1e-3, 3.9e-3],
    }
    best, others = contrasts(errors)
    by = {c.method: c for c in others}
    assert best == "fused"
    assert by["hdg"].verdict == "worse"
    assert 1 < by["hdg"].low < by["hdg"].ratio < by["hdg"].high
    assert by["ahead"].verdict == "open"
    assert by["ahead"].low < 1 < NEAR < by["ahead"].high
    assert "its repetitions vary by 57 % and the best's by 1 %, about" in by["ahead"].text
    assert by["ahead"].needed > 3
    advice = Recommendation.of(100, 1.0, errors)
    assert advice.text.endswith("use fused (MSE 1.4e-03); of the others 1 open, 1 worse")
    assert advice.reasons[0].startswith("open beside fused: ahead (1.70 times its error, ")
    assert advice.reasons[1].startswith("worse beside fused: hdg (1.13 times its error, ")


def test_the_interval_excludes_1_where_welchs_test_tells_the_means_apart():
    """The best varies much, the other lies far off: intervals of a logarithm would call this open."""
    rng = np.random.default_rng(3)
    decided = []
    for _ in range(60):
        low, high = rng.gamma(2, 0.5, 4), 2.5 * rng.gamma(20, 0.05, 4)
        if low.mean() > high.mean():
            continue
        contrast = contrasts({"low": low.tolist(), "high": high.tolist()})[1][0]
        assert contrast.low < contrast.ratio < contrast.high
        p = ttest_ind(high, low, equal_var=False, alternative="greater").pvalue
        assert (contrast.low > 1) == (p < 0.025)
        decided.append(contrast.low > 1)
    assert 10 < sum(decided) < len(decided) - 5


def test_the_best_method_is_rarely_called_worse():
    """Five equal methods and one that is twice as bad, 400 times: false alarms within 5 errors of 5 %, and power."""
    rng, names = np.random.default_rng(2), ["a", "b", "c", "d", "e"]
    wrong = caught = 0
    for _ in range(400):
        errors = {name: rng.gamma(20, 0.05, 10) for name in names} | {"twice": 2 * rng.gamma(20, 0.05, 10)}
        worse = {c.method for c in contrasts(errors)[1] if c.verdict == "worse"}
        wrong += bool(worse - {"twice"})
        caught += "twice" in worse
    assert wrong / 400 < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 400)
    assert caught > 380


def test_methods_without_noise_are_told_apart_to_the_last_bit():
    best, others = contrasts({"uni": [2.0, 2.0], "flat": [1.0, 1.0], "same": [1.0, 1.0]})
    assert best == "flat"
    assert [(c.method, c.verdict, c.low, c.high) for c in others] == [("same", "as good", 1, 1), ("uni", "worse", 2, 2)]


def test_methods_that_cannot_run_are_left_out_with_a_reason():
    schema = as_schema(["a=integer,0,3", "b=integer,0,3"])
    found, refused = fitting(schema, 1.0, 1000)
    assert "default" in found
    assert "sw" in refused
    assert "at most 1 attribute" in refused["sw"]
    with pytest.raises(ValueError, match="at most 1 attribute for the method sw"):
        fitting(schema, 1.0, 1000, ["ahead", "sw"])
    with pytest.raises(ValueError, match="method to be one of"):
        fitting(schema, 1.0, 1000, ["best"])


@pytest.mark.usefixtures("people")
def test_own_files_are_compared_and_the_run_is_kept(capsys):
    words = ["compare", "--data", "people.csv", "--attribute", "pay=real,0,160000,64", "--epsilon", "1,2"]
    words += ["--method", "default,hio:strong,uni", "--repeats", "3", "--random", "20", "--out", "out", "--json"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert len(first["results"]) == 6
    by = {(r["method"], r["epsilon"]): r["mse"]["mean"] for r in first["results"]}
    assert by["uni", 1.0] > 3 * by["default", 1.0] > 0
    assert {a["use"] for a in first["recommendations"]} <= {"default", "hio:strong"}
    page = Path("out/comparison.html").read_text("utf-8")
    assert "for N = 3,000 and ε = 1 use" in page
    mean, (low, high) = first["results"][0]["mse"]["mean"], first["results"][0]["mse"]["ci95"]
    assert f'{mean:.2e} <span class="e">[{low:.2e}, {high:.2e}]</span>' in page
    assert page.count("<td>worse") == sum(len(a["worse"]) for a in first["recommendations"]) > 0
    journal = Path("out/journal.jsonl").read_text("utf-8")
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert Path("out/journal.jsonl").read_text("utf-8") == journal  # nothing is run twice


@pytest.mark.usefixtures("people")
def test_several_attributes_users_and_a_table(capsys):
    words = ["compare", "--data", "people.csv", "--attribute", "age=integer,18,98", "--attribute", "size=ordered,S|M|L"]
    words += ["--epsilon", "2", "--users", "500,5000", "--method", "ahead,uni", "--repeats", "2", "--random", "10"]
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "people.csv, N = 500: MSE" in out
    assert "for N = 5,000 and ε = 2 use" in out


def test_shapes_are_compared(capsys):
    words = [
        "compare",
        "--dataset",
        "zipf",
        "--buckets",
        "32",
        "--users",
        "4000",
        "--epsilon",
        "1",
        "--method",
        "ahead,uni",
    ]
    assert main([*words, "--repeats", "2", "--random", "10"]) == 0
    assert "use ahead" in capsys.readouterr().out


BAD = {
    "nothing": ([], "--data or --dataset, got neither"),
    "both": (["--data", "people.csv", "--dataset", "zipf"], "got both"),
    "no such data set": (["--dataset", "taxes", "--buckets", "8"], "--dataset among salaries"),
    "shape without users": (["--dataset", "zipf", "--buckets", "8"], "--users with a shape"),
    "no buckets": (["--dataset", "zipf"], "--buckets with --dataset"),
    "users": (
        ["--data", "people.csv", "--attribute", "age=integer,18,98", "--users", "many"],
        "whole numbers for --users",
    ),
    "one repetition": (["--dataset", "zipf", "--buckets", "8", "--users", "9", "--repeats", "1"], "--repeats >= 2"),
    "method": (["--dataset", "zipf", "--buckets", "8", "--users", "9", "--method", "best"], "method to be one of"),
}


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD)
def test_mistakes_are_one_line(words, message, capsys):
    assert main(["compare", "--epsilon", "1", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_library_takes_the_default_and_the_papers_method_by_these_words():
    ages = np.random.default_rng(1).integers(0, 16, 300)
    found = ahead_ldp.compare(
        ages, "age=codes,16", epsilon=1, methods=["default", "paper", "adaptive"], repeats=2, queries=5
    )
    assert list(found.errors) == ["default", "paper", "adaptive"]
    assert found.errors["default"] == found.errors["adaptive"] != found.errors["paper"]
