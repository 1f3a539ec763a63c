"""Answers as arrays, text and frames."""

import numpy as np
import pytest

from ahead_ldp.estimates.answers import BIAS_NOTE, INCONSISTENT_NOTE, Answers, frame, records
from ahead_ldp.estimates.quantiles import Mean, Quantiles
from ahead_ldp.schema.attributes import date, integer, ordered, real, time


def answers(**changes) -> Answers:
    given = {
        "values": np.array([0.25, 0.99, -0.01]),
        "standard_error": np.array([0.02, 0.01, np.inf]),
        "bias_not_included": np.array([False, True, False]),
        "labels": {"query": np.array(["a in 1..2", "a >= 3", "a = 9"], object)},
    }
    return Answers(**{**given, **changes})


def test_intervals_are_normal_and_clipped():
    low, high = answers().interval(0.95)
    assert low.tolist() == pytest.approx([0.25 - 1.959964 * 0.02, 0.99 - 1.959964 * 0.01, 0.0])
    assert high.tolist() == pytest.approx([0.25 + 1.959964 * 0.02, 1.0, 1.0])
    narrow = answers().interval(0.5)
    assert narrow[1][0] - narrow[0][0] == pytest.approx(2 * 0.674490 * 0.02, rel=1e-5)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, np.nan])
def test_bad_level_is_refused(level):
    with pytest.raises(ValueError, match="0 < level < 1"):
        answers().interval(level)


def test_table_shows_truth_marks_and_notes():
    lines = answers(consistent=False).table(truth=[0.26, 0.98, 0.0]).splitlines()
    assert lines[0].split() == ["query", "share", "std.", "error", "95", "%", "interval", "simultaneous", "truth"]
    assert "25.00 %" in lines[2]
    assert lines[2].endswith("26.00 %")
    assert "99.00 %*" in lines[3]
    assert "?" in lines[4]
    together = "simultaneous: with 95 % probability all 3 intervals hold at once (Bonferroni)"
    assert lines[-3:] == [together, BIAS_NOTE, INCONSISTENT_NOTE]


def test_table_without_marks_has_no_notes():
    text = answers(bias_not_included=np.zeros(3, bool)).table()
    assert "*" not in text
    assert len(text.splitlines()) == 6
    one = Answers(np.array([0.5]), np.array([0.1]), np.zeros(1, bool)).table()
    assert "simultaneous" not in one
    assert len(one.splitlines()) == 3


@pytest.mark.parametrize("backend", ["pandas", "polars", "dict", None])
def test_frames_have_the_same_columns(backend):
    found = answers().to_frame(backend)
    ends = ["low", "high", "simultaneous_low", "simultaneous_high"]
    expected = ["query", "share", "standard_error", "bias_error", *ends, "bias_not_included"]
    assert list(found if isinstance(found, dict) else found.columns) == expected
    assert list(found["share"]) == [0.25, 0.99, -0.01]


def test_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="pandas, polars, dict"):
        answers().to_frame("excel")


def test_without_pandas_polars_is_taken_and_else_a_dict(monkeypatch):
    there = {"pandas": None, "polars": object()}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: there[name])
    assert type(frame({"a": np.arange(3)})).__module__.startswith("polars")
    there["polars"] = None
    assert isinstance(frame({"a": np.arange(3)}), dict)


def straight(attribute, error=0.05) -> Quantiles:
    """Quantiles of the uniform distribution."""
    places = np.arange(attribute.ordered_size + 1.0)
    levels = np.array([0.25, 0.5])
    return Quantiles(attribute, levels, np.full(2, error), places, places / places[-1], np.zeros(2, bool))


def test_quantiles_of_the_uniform_distribution():
    found = straight(real("a", 0, 200, 50))
    assert found.values.tolist() == pytest.approx([50, 100])
    assert found.standard_error.tolist() == pytest.approx([10, 10])  # 0.05 over a density of 1/200
    low, high = found.interval(0.95)
    assert (high - low).tolist() == pytest.approx([2 * 1.959964 * 10] * 2, rel=1e-6)


def test_quantile_interval_stays_in_the_declared_range():
    low, high = straight(real("a", 0, 200, 50), error=np.inf).interval()
    assert (low.tolist(), high.tolist()) == ([0, 0], [200, 200])


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        (integer("a", 0, 99), [25, 50]),
        (ordered("a", ["A", "B", "C", "D"]), ["B", "C"]),
        (date("a", "2021-01-01", "2021-12-31"), np.array(["2021-04-02", "2021-07-02"], "datetime64[D]").tolist()),
        (time("a", "00:00", "23:59:59", 24), np.array([21600, 43200], "timedelta64[s]").tolist()),
    ],
)
@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_quantiles_are_in_the_users_units(attribute, expected, backend):
    found = straight(attribute)
    assert found.values.tolist() == expected
    assert len(found.to_frame(backend)) == 2
    assert len(found.texts()) == 2


def test_mean_is_in_the_users_units():
    attribute = date("a", "2021-01-01", "2021-12-31")
    mean = Mean(attribute, 18628.5, 2.0, False)
    assert mean.value == np.datetime64("2021-01-01T12:00:00")
    assert mean.interval()[0] == np.datetime64("2021-01-01T00:00:00")
    assert str(Mean(real("a", 0, 1e6, 4), 43072.1, 853.0, False)) == "43,070 (standard error 850)"


def test_records_hold_what_json_has():
    first, _, last = answers().records()
    assert first["query"] == "a in 1..2"
    assert (first["share"], first["standard_error"], first["bias_not_included"]) == (0.25, 0.02, False)
    assert last["standard_error"] is None  # infinite
    assert list(first) == list(answers().columns())
    days = np.array(["2026-01-31"], "datetime64[D]")
    assert records({"day": days, "n": np.array([3]), "x": np.array([np.nan])}) == [
        {"day": "2026-01-31", "n": 3, "x": None}
    ]
