"""What a notebook shows, and that results can be copied, pickled and compared."""

import copy
import pickle
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ahead_ldp import MECHANISMS, Series, simulate
from ahead_ldp.estimates.cards import card, spark, whiskers
from ahead_ldp.research.experiments.comparing import Recommendation
from ahead_ldp.research.planner import plan
from ahead_ldp.research.targets import Case, Forecast, Solution
from ahead_ldp.schema.attributes import as_schema

AGES = np.random.default_rng(3).integers(0, 32, 4000)
TOWNS = np.array(["A & <B>", "C"], object)[(AGES > 20).astype(int)]
SCHEMA = as_schema(["age=integer,0,31", "town=nominal,A & <B>|C"])
ESTIMATE = simulate({"age": AGES, "town": TOWNS}, SCHEMA, epsilon=2, method="flat", seed=4)
ANSWERS = ESTIMATE.ask("age > 10", ("age", 3, 5), {"town": ["C"]})
SPREAD = {"uniform": 1e-5, "zipf": 2e-5}
LATER = simulate({"age": AGES // 2, "town": TOWNS}, SCHEMA, epsilon=2, method="flat", seed=5)
CHANGE = LATER.since(ESTIMATE)
PAIR = simulate(
    {"age": AGES % 8, "visits": AGES // 8}, ["age=integer,0,7", "visits=integer,0,3"],
    epsilon=2, method="flat", seed=6,
)  # fmt: skip
FORECAST = Forecast(Case(SCHEMA, 1000, 1.0), "flat", SPREAD, {"uniform": 0.02, "zipf": 0.03})
SHOWN = {
    "estimate": ESTIMATE,
    "answers": ANSWERS,
    "many answers": ESTIMATE.marginal("age", "town"),
    "quantiles": ESTIMATE.quantiles("age"),
    "mean": ESTIMATE.mean("age"),
    "finding": ESTIMATE.std("age"),
    "findings": ESTIMATE.by("town").mean("age"),
    "many findings": ESTIMATE.by("age").share("town = C"),
    "schema": SCHEMA,
    "plan": plan(ESTIMATE.provenance.mechanism, SCHEMA, 4000),
    "solution": Solution("users", 0.05, True, FORECAST, (FORECAST,)),
    "comparison": Recommendation.of(1000, 1.0, {"flat": [1.0e-4, 1.1e-4], "ahead": [2e-4, 2.2e-4]}),
}
PRINTED = SHOWN | {
    "groups": ESTIMATE.by("age"),
    "weighted": ESTIMATE.calibrated({"town": {"A & <B>": 0.3, "C": 0.7}}),
    "mode": ESTIMATE.mode("age"),
    "difference": CHANGE,
    "test": CHANGE.test("age"),
    "series": Series({"spring": ESTIMATE, "autumn": LATER}),
    "provenance": ESTIMATE.provenance,
    "methods": MECHANISMS,
}


class Balanced(HTMLParser):
    """Every tag that opens is closed in order, or closes itself."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", SHOWN)
def test_a_card_is_a_table_with_a_drawing(name):
    html = SHOWN[name]._repr_html_()
    tags = Balanced(html).seen
    assert tags.count("table") == 1
    assert "svg" in tags
    assert len(html) < 30_000
    assert "<B>" not in html
    assert "1 findings" not in html
    assert "script" not in tags


@pytest.mark.parametrize("name", PRINTED)
def test_repr_is_short(name):
    text = repr(PRINTED[name])
    assert len(text) < 300
    assert "array(" not in text
    assert " at 0x" not in text


def test_repr_of_findings_has_the_first_numbers():
    mean, gini = ESTIMATE.by("town").mean("age"), ESTIMATE.gini("age").said(ESTIMATE.gini("age").value)
    said = [mean.said(number, 4 * error) for number, error in zip(mean.values, mean.error, strict=True)]
    assert repr(mean) == f"<Findings: A & <B>: {said[0]}; C: {said[1]}>"
    assert repr(ESTIMATE.gini("age")).startswith("<Findings: age Gini coefficient: " + gini[:3])
    assert repr(ESTIMATE.by("age").share("town = C")).endswith("%; ... (32 in all)>")
    assert PRINTED["finding"].said(20_770.2) == "20,770"


@pytest.mark.parametrize("method", [m for m in MECHANISMS if m != "lle"])
def test_estimates_of_every_method_print_pickle_and_compare(method):
    estimate = simulate({"age": AGES}, "age=integer,0,31", epsilon=2, method=method, seed=1)
    people = "0" if method == "uni" else "4,000"  # it asks nobody
    assert repr(estimate) == f"<Estimate of age: {method}, epsilon 2, {people} people>"
    for again in (pickle.loads(pickle.dumps(estimate)), copy.copy(estimate), copy.deepcopy(estimate)):
        assert again == estimate
        assert hash(again) == hash(estimate)
        assert again.provenance is not None
        assert again.ask("age > 10") == estimate.ask("age > 10")
    other = simulate({"age": AGES}, "age=integer,0,31", epsilon=2, method=method, seed=2)
    assert (other == estimate) == (method == "uni")
    assert (hash(other) == hash(estimate)) == (method == "uni")


@pytest.mark.parametrize("name", ["answers", "quantiles", "mean", "schema", "estimate"])
def test_results_pickle_and_compare(name):
    shown = SHOWN[name]
    for again in (pickle.loads(pickle.dumps(shown)), copy.deepcopy(shown)):
        assert again == shown
        assert hash(again) == hash(shown)
    assert shown != "something else"
    if name in ("answers", "quantiles"):
        first, second = (x.interval(simultaneous=True) for x in (shown, pickle.loads(pickle.dumps(shown))))
        np.testing.assert_array_equal(first, second)


FINDINGS = {
    "standard deviation": lambda: ESTIMATE.std("age"),
    "below a line": lambda: ESTIMATE.below("age", 5),
    "above a line": lambda: ESTIMATE.above("age", 5),
    "below a part of the median": lambda: ESTIMATE.below_median("age"),
    "Gini": lambda: ESTIMATE.gini("age"),
    "Lorenz curve": lambda: ESTIMATE.lorenz("age", [0.5]),
    "top share": lambda: ESTIMATE.top_share("age", [0.1]),
    "correlation": lambda: PAIR.correlation("age", "visits"),
    "mutual information": lambda: PAIR.mutual_information("age", "visits"),
    "share in groups": lambda: ESTIMATE.by("town").share("age > 10"),
    "mean in groups": lambda: ESTIMATE.by("town").mean("age"),
    "quantiles in groups": lambda: ESTIMATE.by("town").quantiles("age"),
    "one group less another": lambda: compared(),
    "change of a mean": lambda: CHANGE.mean("age"),
    "change of quantiles": lambda: CHANGE.quantiles("age", [0.5]),
    "weighted": lambda: ESTIMATE.calibrated({"town": {"A & <B>": 0.3, "C": 0.7}}).ask("age > 10"),
    "trend": lambda: Series({"spring": ESTIMATE, "autumn": LATER}).trend("age > 10"),
}


def compared():
    groups = ESTIMATE.by("town")
    return groups.compare(groups.mean("age"), "C", "A & <B>")


@pytest.mark.parametrize("name", FINDINGS)
def test_findings_of_every_kind_pickle_and_compare(name):
    findings = FINDINGS[name]()
    for again in (pickle.loads(pickle.dumps(findings)), copy.deepcopy(findings)):
        assert again == findings
        assert hash(again) == hash(findings)
        np.testing.assert_array_equal(again.interval(), findings.interval())
        assert again.table() == findings.table()
    assert findings != "something else"


def test_a_mean_is_a_table_as_other_numbers_are():
    mean = ESTIMATE.mean("age")
    lines = mean.table().splitlines()
    assert lines[0].split() == ["mean", "of", "age", "low", "high"]
    assert mean.text() == "{} (95 % interval {} to {})".format(*lines[2].split())
    assert lines[3:] == mean.notes()
    assert len(mean.table(0.5, kind="model").splitlines()) == 3 + len(mean.notes(0.5, "model"))


def test_different_findings_are_not_equal():
    every = [make() for make in FINDINGS.values()]
    assert sum(a == b for a in every for b in every) == len(every)
    assert ESTIMATE.std("age") == ESTIMATE.std("age") != LATER.std("age")


def test_different_results_are_not_equal():
    assert ESTIMATE.quantiles("age", [0.5]) != ESTIMATE.quantiles("age", [0.25])
    assert ESTIMATE.ask("age > 11", ("age", 3, 5), {"town": ["C"]}) != ANSWERS
    other = simulate({"age": AGES[::-1]}, "age=integer,0,31", epsilon=2, method="flat", seed=4)
    assert other.mean() != ESTIMATE.mean("age")


def test_one_vocabulary():
    columns = ANSWERS.columns()
    for name in ("share", "standard_error", "low", "high", "simultaneous_low", "simultaneous_high"):
        np.testing.assert_array_equal(getattr(ANSWERS, name), columns[name])
        assert name in ANSWERS.records()[0]
    assert ANSWERS.values is ANSWERS.share
    assert (ESTIMATE.quantiles("age").value == ESTIMATE.quantiles("age").values).all()
    mean = ESTIMATE.mean("age")
    assert float(mean) == mean.value == mean.number
    assert mean.low <= mean.value <= mean.high
    assert mean.records()[0]["low"] == mean.low


def test_answers_are_found_by_what_was_asked():
    answer = ANSWERS["age > 10"]
    assert answer.share == ANSWERS.share[0] == float(answer)
    assert (answer.low, answer.high) == (ANSWERS.low[0], ANSWERS.high[0])
    assert ANSWERS["age>10"] == ANSWERS[("age", ">", 10)] == ANSWERS[0] == answer
    assert ANSWERS[("age", 3, 5)] == ANSWERS["age in 3..5"] == ANSWERS[1]
    assert ANSWERS[{"town": ["C"]}] == ANSWERS[-1]
    assert [a.name for a in ANSWERS] == ANSWERS.names
    assert ESTIMATE.histogram("town")["C"].share == ESTIMATE.histogram("town").share[1]
    assert ESTIMATE.marginal("age", "town")["3", "C"].share == ESTIMATE.marginal("age", "town").share[3, 1]
    assert ESTIMATE.ask(["age > 10", "age > 20"]).names == ["age > 10", "age > 20"]
    with pytest.raises(KeyError, match=r"one of the answers 'age > 10', 'age in 3\.\.5', .*, got 'age > 11'"):
        ANSWERS["age > 11"]
    with pytest.raises(IndexError, match="one of 3 answers, got 3"):
        ANSWERS[3]


MAKE = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.mark.parametrize("backend", MAKE)
def test_frames_are_of_the_library_that_came_in(backend):
    made = MAKE[backend]
    estimate = simulate(made({"age": AGES}), "age=integer,0,31", epsilon=2, method="flat", seed=4)
    answers, expected = estimate.ask("age > 10"), type(made({"age": [1]}))
    before = simulate(made({"age": AGES}), "age=integer,0,31", epsilon=2, method="flat", seed=5)
    change, groups = estimate.since(before), estimate.by("age", 2)
    results = [answers, estimate.quantiles(), estimate.mean(), estimate, estimate.weighted(["age > 3"], [2])]
    results += [estimate.std(), groups.shares, groups.share("age >= 0"), change.ask("age > 3"), change.mean()]
    results += [change.quantiles(), Series({"a": before, "b": estimate}).trend("age > 3")]
    results += [estimate.calibrated({"age": {"0..15": 1, "16..31": 1}}).ask("age > 3")]
    for framed in results:
        assert isinstance(framed.to_frame(), expected)
        assert isinstance(framed.to_frame(backend="dict"), dict)
    assert isinstance(estimate.sample(5, 1), expected)
    assert len(estimate.sample(5, 1)["age"]) == 5
    for other, make in MAKE.items():
        assert isinstance(answers.to_frame(other), type(make({"age": [1]})))


def test_a_table_of_quantiles_has_the_ends():
    quantiles = ESTIMATE.quantiles("age")
    head, _, *rows = quantiles.table().splitlines()
    assert head.split() == ["share", "below", "age", "low", "high"]
    texts = [f"{row.split()[2]} [{row.split()[3]}, {row.split()[4]}]" for row in rows[:3]]
    assert texts == quantiles.texts()


def test_drawings_are_well_formed_and_hold_what_is_not_finite():
    svgs = [spark([0, 1, np.nan, -1], "a < b"), *whiskers([0.1, np.nan], [np.nan, 0], [0.2, np.inf], ["x", 'y"'])]
    for svg in [*svgs, spark([], "none")]:
        assert ElementTree.fromstring(svg).tag == "svg"
        assert "nan" not in svg
    assert "and 1,000 more" in card("t", ["a"], [["<i>"]], more=1000)
    assert "<i>" not in card("t", ["a"], [["<i>"]])


def test_an_assumption_about_three_attributes_is_said_of_three_alone():
    people = {name: np.arange(900) % 4 for name in "xyz"}
    for names, said in (("xy", False), ("xyz", True)):
        schema = [f"{name}=codes,4" for name in names]
        estimate = simulate({n: people[n] for n in names}, schema, epsilon=2, method="fused", seed=1)
        text = estimate.ask("x = 1").assumption
        assert text.startswith("neighbouring values have about equal shares")
        assert ("through their pairs alone" in text) == said
