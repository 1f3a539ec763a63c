"""Spread, inequality and pairs: known answers, coverage with power, and the inequalities behind the bounds."""

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.estimates.analysis import inequality, pairs
from ahead_ldp.estimates.analysis.ground import first_near, first_place, last_place
from ahead_ldp.estimates.analysis.spread import squares
from tools.questions import lumpy, truths

LINE = "x=integer,0,63"
PEOPLE = lumpy(np.random.default_rng(1), 20_000)


def found(estimate):
    return {
        "std": estimate.std(),
        "below 15": estimate.below("x", 15),
        "above 40": estimate.above("x", 40),
        "below 0.6 of the median": estimate.below_median("x"),
        "bottom half": estimate.lorenz("x", [0.5]),
        "top tenth": estimate.top_share("x", [0.1]),
        "Gini": estimate.gini("x"),
    }


@pytest.fixture(scope="module")
def sharp():
    """A hundred times as many people, at a large epsilon: next to no noise."""
    return ahead_ldp.simulate(histogram=100 * np.bincount(PEOPLE, minlength=64), schema=LINE, epsilon=6, seed=2)


def test_functionals_tend_to_the_truth(sharp):
    rough = ahead_ldp.simulate(PEOPLE, LINE, epsilon=1, seed=2)
    near, far, truth = found(sharp), found(rough), truths(PEOPLE)
    for name, value in truth.items():
        (low,), (high,) = near[name].interval()
        (least,), (most,) = far[name].interval()
        assert low - 1e-9 <= value <= high + 1e-9, name
        assert least - 1e-9 <= value <= most + 1e-9, name
        assert high - low < 0.6 * (most - least), name
        assert near[name].value == pytest.approx(value, rel=0.05, abs=0.01), name


def test_functionals_close_in_on_the_truth_with_the_root_of_the_people():
    """Where every code is asked about, nothing but noise is left: sixteen times the people, a quarter of the width."""
    counts = np.bincount(PEOPLE // 8, minlength=8)
    truth, widths, misses = truths(np.repeat(np.arange(8), counts)), [], []
    for times in (1, 16):
        few = ahead_ldp.simulate(histogram=times * counts, schema="x=integer,0,7", epsilon=4, method="flat", seed=3)
        made = {"std": few.std(), "Gini": few.gini("x"), "bottom half": few.lorenz("x", [0.5])}
        ends = {name: findings.interval() for name, findings in made.items()}
        widths.append({name: float(high[0] - low[0]) for name, (low, high) in ends.items()})
        misses.append({name: abs(findings.value - truth[name]) for name, findings in made.items()})
    for name in widths[0]:
        assert 3.2 < widths[0][name] / widths[1][name] < 5, name  # 4, and a little for what is approximate
        assert misses[0][name] < widths[0][name]
        assert misses[1][name] < widths[1][name]


def test_intervals_exclude_other_people(sharp):
    """The power of the intervals: the functionals of people who do not round are told apart."""
    other = truths(np.minimum(PEOPLE + 8, 63))
    excluded = []
    for name, findings in found(sharp).items():
        (low,), (high,) = findings.interval()
        excluded.append(not low <= other[name] <= high)
    assert sum(excluded) >= 6


def test_numbers_as_frames_records_and_text(sharp):
    curve = sharp.lorenz("x", [0.2, 0.5])
    assert [row["bottom"] for row in curve.records()] == [0.2, 0.5]
    assert set(curve.to_frame("dict")) >= {"bottom", "value", "low", "high", "simultaneous_low"}
    text = curve.table()
    assert "simultaneous" in text
    assert "reports alone" in text
    assert "they hold if" in curve.table(kind="model")
    wide, narrow = curve.interval(), curve.interval(kind="model")
    assert (narrow[1] - narrow[0] <= wide[1] - wide[0] + 0.01).all()
    with pytest.raises(ValueError, match="one number"):
        _ = curve.value


def test_the_mode_is_in_its_region(sharp):
    mode = sharp.mode("x")
    counts = np.histogram(PEOPLE, np.append(np.arange(16) * 4, 64))[0]
    assert mode.region()[counts.argmax()]
    assert mode.region().sum() <= 3
    assert sum(row["may_be_mode"] for row in mode.records()) == mode.region().sum()
    assert str(mode.value) in mode.table()


def test_missing_values_are_left_out():
    people = np.where(np.arange(PEOPLE.size) % 4 == 0, np.nan, PEOPLE)
    schema = [ahead_ldp.Attribute("x", "integer", 0, 63, missing="cell")]
    estimate = ahead_ldp.simulate(people, schema, epsilon=4, seed=3)
    truth = truths(PEOPLE[np.arange(PEOPLE.size) % 4 != 0])
    for name in ("std", "below 15", "above 40", "bottom half", "Gini"):
        (low,), (high,) = found(estimate)[name].interval()
        assert low <= truth[name] <= high, name
        assert high - low < {"std": 5}.get(name, 0.25)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.gini("y"), "not negative"),
        (lambda e: e.std("g"), "order"),
        (lambda e: e.lorenz("x", [0.0]), "levels"),
        (lambda e: e.below_median("x", 2.0), "times"),
        (lambda e: e.correlation("x", "x"), "different"),
        (lambda e: e.mutual_information("x", "g", 99), "cells"),
        (lambda e: e.correlation("x", "g"), "order"),
    ],
)
def test_what_has_no_meaning_is_refused(call, message):
    columns = {"x": [1, 2] * 50, "y": [-1, 1] * 50, "g": ["a", "b"] * 50}
    estimate = ahead_ldp.simulate(columns, ["x=integer,0,3", "y=integer,-2,2", "g=nominal,a|b"], epsilon=1)
    with pytest.raises(ValueError, match=message):
        call(estimate)


def test_pairs_hold_the_truth_and_see_dependence():
    rng = np.random.default_rng(4)
    x = rng.integers(0, 8, 200_000)
    y = np.where(rng.random(x.size) < 0.7, x, rng.integers(0, 8, x.size))
    estimate = ahead_ldp.simulate({"x": x, "y": y}, ["x=integer,0,7", "y=integer,0,7"], epsilon=5, seed=5)
    correlation = estimate.correlation("x", "y")
    (low,), (high,) = correlation.interval()
    assert 0 < low <= np.corrcoef(x, y)[0, 1] <= high
    cells = np.histogram2d(x // 2, y // 2, bins=4)[0] / x.size
    truth = pairs._information(cells) / np.log(2)
    (low,), (high,) = estimate.mutual_information("x", "y").interval()
    assert 0 < low <= truth <= high < 2
    assert "blocks" in estimate.mutual_information("x", "y").table()
    for found in (correlation, estimate.mutual_information("x", "y")):
        assert "leans towards no dependence" in found.table()
        with pytest.raises(ValueError, match="strict intervals, which alone are given for x y, got the model's"):
            found.interval(kind="model")


def test_somebody_who_is_like_everybody_has_no_correlation():
    """Where the estimate has everybody at one code there is no spread to divide by: nothing is said, and no warning."""
    columns = {"x": np.zeros(300, int), "y": np.ones(300, int)}
    estimate = ahead_ldp.simulate(columns, ["x=integer,0,1", "y=integer,0,1"], epsilon=6, seed=1)
    found = estimate.correlation("x", "y")
    (low,), (high,) = found.interval()
    assert -1 <= low <= found.value <= high <= 1


def test_findings_are_short_in_a_session_and_a_table_in_a_notebook(sharp):
    found = sharp.gini("x")
    assert repr(found) == f"<Findings: x Gini coefficient: {found.said(found.value, 4 * found.error[0])}>"
    assert (found.low, found.high) == found.interval()
    curve = sharp.lorenz("x")
    assert repr(curve).endswith("(9 in all)>")
    page = curve._repr_html_()
    assert page.count("<svg") == 9
    assert "9 findings" in page
    assert len(curve.plot().axes) == 1
    assert set(curve.to_frame("dict")) == set(curve.columns())


def test_frames_are_those_of_the_data():
    polars = pytest.importorskip("polars")
    data = polars.DataFrame({"x": [1, 2, 3, 2] * 50, "g": ["a", "b", "b", "a"] * 50})
    one, other = (ahead_ldp.simulate(data, ["x=integer,0,3", "g=nominal,a|b"], epsilon=4, seed=i) for i in (1, 2))
    change = ahead_ldp.difference(one, other)
    series = ahead_ldp.Series({"one": one, "other": other})
    for found in (
        one.std("x"), one.by("g").mean("x"), one.calibrated({"g": {"a": 1, "b": 1}}).ask("x >= 2"),
        change.ask("x >= 2"), change.mean("x"), change.quantiles("x"), series.trend("x >= 2"),
    ):  # fmt: skip
        assert isinstance(found.to_frame(), polars.DataFrame)


# The inequalities.


def test_the_range_of_gini_in_a_band_is_exact():
    rng, widths = np.random.default_rng(6), np.ones(12)
    curve = np.sort(rng.random(12))[::-1]
    least, most = np.maximum(curve - 0.1, 0), np.minimum(curve + 0.1, 1)
    low, high = (inequality._gini(inequality._extreme(least, most, widths, end), widths) for end in (False, True))
    drawn = least + (most - least) * rng.random((20_000, 12))
    drawn = np.concatenate([drawn, np.where(rng.random((20_000, 12)) < 0.5, least, most)])
    ginis = np.array([inequality._gini(curve, widths) for curve in drawn])
    assert low <= ginis.min() + 1e-12
    assert ginis.max() <= high + 1e-12
    assert high - ginis.max() < 0.1 * (high - low)  # both are reached, nearly
    assert ginis.min() - low < 0.1 * (high - low)


def test_mutual_information_of_every_table_in_the_bounds():
    rng = np.random.default_rng(7)
    f = rng.dirichlet(np.full(9, 0.4)).reshape(3, 3)
    low, high = np.maximum(f - 0.01, 0).reshape(-1), (f + 0.01).reshape(-1)
    row = np.maximum(f.sum(axis=1) - 0.02, 0), f.sum(axis=1) + 0.02
    column = np.maximum(f.sum(axis=0) - 0.02, 0), f.sum(axis=0) + 0.02
    least, most = pairs._least_information(low, high, row, column, f), pairs._most_information(low, high, f)
    assert 0 < least < pairs._information(f) < most < np.log(3)
    for _ in range(500):
        g = np.clip(f + rng.uniform(-0.005, 0.005, f.shape), 0, None)
        assert least <= pairs._information(g / g.sum()) <= most


def test_ends_are_found_from_both_sides():
    assert last_place(lambda x: 2 - x**3, 0, 10) == pytest.approx(2 ** (1 / 3), abs=2e-3)
    assert last_place(lambda x: 2 - x**3, 0, 10) >= 2 ** (1 / 3)
    assert first_place(lambda x: x - 3, 0, 10) == pytest.approx(3, abs=2e-3)
    assert last_place(lambda x: 1.0, 0, 10) == 10
    assert last_place(lambda x: -1.0, 0, 10) == 0


@pytest.mark.parametrize("size", [1, 2, 40, 128, 1000])
def test_a_place_is_found_by_few_looks(size):
    """Where the bound is the estimate's own curve and a margin, also one that changes; and where it is nothing like."""
    rng = np.random.default_rng(size)
    own = np.sort(rng.normal(0, 1, size)) - 0.2
    for margin in (np.zeros(size), np.full(size, 0.7), np.linspace(0.5, 0.1, size), np.full(size, -9.0), 3 * own):
        bounds, looked = np.maximum.accumulate(own + margin), []

        def bound(place, bounds=bounds, looked=looked):
            looked.append(place)
            return bounds[place]

        true = int(min(np.searchsorted(bounds, 0.0), size - 1))
        found = first_near(bound, own)
        assert true - max(size // 128, 1) < found <= true
        assert len(looked) <= 4 * np.log2(size + 1)
    assert len(looked) <= 2 + 2 * np.log2(size + 1)


def test_squares_are_bounded_over_a_bucket():
    near, far = squares(np.array([0.0, 4.0, 9.0]), np.array([2.0, 6.0, 9.0]), 5.0)
    assert near.tolist() == [9, 0, 16]
    assert far.tolist() == [25, 1, 16]
