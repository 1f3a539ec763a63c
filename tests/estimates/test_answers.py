"""Answers as arrays, text and frames."""

import datetime as dt

import numpy as np
import pytest

from ahead_ldp.estimates.answers import (
    BIAS_NOTE,
    INCONSISTENT_NOTE,
    STRICT_NOTE,
    Answers,
    percent,
    plain,
    records,
)
from ahead_ldp.estimates.frames import frame
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


class Ends:
    """Strict intervals that somebody worked out; simultaneous ones reach a tenth further."""

    def __init__(self, low, high):
        self.low, self.high = np.array(low), np.array(high)

    def interval(self, level, simultaneous=False):
        return self.low - 0.1 * simultaneous, self.high + 0.1 * simultaneous


ENDS = Ends([0.2, 0.97, 0.0], [0.3, 1.0, 0.04])
EVEN = "people lie evenly in cells"


def test_strict_intervals_are_shown_unless_the_models_are_asked_for():
    known = answers(strict=ENDS)
    low, high = known.interval()
    assert (low.tolist(), high.tolist()) == ([0.2, 0.97, 0.0], [0.3, 1.0, 0.04])
    np.testing.assert_array_equal(known.interval(kind="model"), answers().interval())
    assert known.columns()["simultaneous_high"].tolist() == pytest.approx([0.4, 1.1, 0.14])
    assert known.columns(kind="model")["low"].tolist() == answers().columns()["low"].tolist()
    with pytest.raises(ValueError, match="strict or model, got 'wide'"):
        known.interval(kind="wide")
    with pytest.raises(ValueError, match="know their reports"):
        answers().interval(kind="strict")


def test_a_table_of_strict_intervals_has_no_errors_and_marks_of_the_model():
    known = answers(strict=ENDS, assumption=EVEN)
    lines = known.table().splitlines()
    assert lines[0].split() == ["query", "share", "95", "%", "interval", "simultaneous"]
    assert "20.00 .. 30.00 %" in lines[2]
    assert "*" not in known.table()
    assert lines[-2:] == ["simultaneous: with 95 % probability all 3 intervals hold at once", STRICT_NOTE]
    model = known.table(kind="model").splitlines()
    assert "99.00 %*" in model[3]
    assert model[-2:] == [f"Intervals of the model: they hold if {EVEN}.", BIAS_NOTE]


def test_it_says_unasked_where_the_two_differ_much_and_where_an_estimate_is_outside():
    wide = answers(strict=Ends([0.0, 0.5, 0.0], [0.8, 1.0, 1.0]), assumption=EVEN).notes()
    assert f"The model's intervals are much narrower here, up to 16.9 times: they hold only if {EVEN}." in wide
    outside = answers(strict=Ends([0.26, 0.5, 0.0], [0.3, 0.9, 1.0]))
    assert outside.outside().tolist() == [True, True, False]
    low, high = outside.interval()
    assert (low[0], high[1]) == (0.25, 0.99)
    assert any(note.startswith("Each of 2 estimates lies outside") for note in outside.notes())
    one = Answers(np.array([0.5]), np.array([0.05]), np.zeros(1, bool), strict=Ends([0.6], [0.7]))
    assert any(note.startswith("The estimate lies outside") for note in one.notes())
    assert answers(strict=ENDS).remarks() == [STRICT_NOTE]


def test_a_model_without_any_width_differs_much():
    sure = Answers(np.array([0.5]), np.zeros(1), np.zeros(1, bool), strict=Ends([0.2], [0.7]))
    assert any("up to more than 100 times" in note for note in sure.notes())


def test_no_share_is_minus_zero():
    assert percent(-0.00001) == "0.00 %"
    assert percent(-0.01) == "-1.00 %"
    one = Answers(np.array([-1e-9]), np.array([1e-9]), np.zeros(1, bool), strict=Ends([-0.0], [1e-9]))
    assert "-0" not in one.table()
    assert "-0" not in one.table(kind="model")


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
    with pytest.raises(ValueError, match="pandas, polars, arrow, dict"):
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


class Codes:
    """Codes between which the quantiles lie."""

    def codes(self, level, simultaneous=False):
        return np.array([10.0, 40.0]) - simultaneous, np.array([31.0, 61.0]) + simultaneous


@pytest.mark.parametrize(
    ("attribute", "said", "low", "high"),
    [
        (integer("a", 0, 99), ["25 [10, 30]", "50 [40, 60]"], [10, 40], [30, 60]),
        (
            date("a", "2021-01-01", "2021-04-10"),
            ["2021-01-26 [2021-01-11, 2021-01-31]", "2021-02-20 [2021-02-10, 2021-03-02]"],
            [dt.date(2021, 1, 11), dt.date(2021, 2, 10)],
            [dt.date(2021, 1, 31), dt.date(2021, 3, 2)],
        ),
        (
            time("a", "00:00", "23:59:59", 100),
            ["06:00:00 [02:24:00, 07:26:23]", "12:00:00 [09:36:00, 14:38:23]"],
            [dt.timedelta(seconds=8640), dt.timedelta(seconds=34560)],
            [dt.timedelta(seconds=26783), dt.timedelta(seconds=52703)],
        ),
    ],
)
def test_strict_quantiles_are_in_the_users_units_everywhere(attribute, said, low, high):
    places = np.arange(attribute.ordered_size + 1.0)
    found = Quantiles(
        attribute, np.array([0.25, 0.5]), np.full(2, 0.05), places, places / 100, np.zeros(2, bool), strict=Codes()
    )
    assert found.texts() == said
    assert [end.tolist() for end in found.interval()] == [low, high]
    shown = records(found.columns())
    for text, row in zip(said, shown, strict=True):
        assert text == f"{row['a']} [{row['low']}, {row['high']}]"
    assert found.notes() == [STRICT_NOTE]
    assert (found.interval(simultaneous=True)[0] < found.interval()[0]).all()
    assert found.texts(kind="model") != said


class Number:
    def __init__(self, *ends):
        self.ends = ends

    def interval(self, level):
        return self.ends


def test_a_mean_says_its_strict_interval_rounded():
    mean = Mean(real("a", 0, 1e6, 4), 43072.1, 853.0, False, strict=Number(41234.4, 45678.9), assumption=EVEN)
    assert str(mean) == "43,100 (95 % interval 41,200 to 45,700)"
    assert mean.interval() == (41234.4, 45678.9)
    assert mean.interval(kind="model")[0] == pytest.approx(43072.1 - 1.959964 * 853)
    assert mean.text(kind="model") == "43,070 (standard error 850)"
    assert mean.notes() == [STRICT_NOTE]
    assert mean.notes(kind="model") == [f"Intervals of the model: they hold if {EVEN}."]
    outside = Mean(real("a", 0, 1e6, 4), 50.0, 100.0, False, strict=Number(1000.0, 90_000.0), assumption=EVEN)
    assert outside.interval() == (50.0, 90_000.0)
    assert len(outside.notes()) == 3
    assert str(Mean(real("a", -10, 10, 4), -0.001, 1.0, False, strict=Number(-2.0, 2.0))).startswith("0.0 (")


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
    assert plain(np.datetime64("2026-01-31T08:05:00", "s")) == "2026-01-31T08:05:00"
    assert plain(np.timedelta64(8 * 3600 + 300, "s")) == "08:05:00"
