"""Interactive charts: valid Vega-Lite that holds the estimate's own numbers and reads nothing from elsewhere."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from ahead_ldp import simulate
from ahead_ldp.plots import chart_cdf

COUNTS = np.random.default_rng(1).multinomial(40_000, np.random.default_rng(2).dirichlet(np.full(32, 2.0)))
KINDS = {
    "pay=integer,0,63999,32": ("quantitative", 0.0, "0 to 1,999"),
    "pay=real,0,100,32": ("quantitative", 0.0, "0 to 3.125"),
    "pay=date,2020-01-01,2020-02-01": ("temporal", 18262 * 86_400_000.0, "2020-01-01 to 2020-01-01"),
    "pay=time,00:00:00,15:59:59,32": ("temporal", 0.0, "00:00:00 to 00:29:59"),
}


def estimate(spec, counts=COUNTS):
    return simulate(histogram=counts, schema=spec, epsilon=2, method="flat", seed=1)


def rows(chart):
    """The data of a chart, after it was checked against the schema of Vega-Lite."""
    spec = chart.to_dict(validate=True)
    text = json.dumps(spec)
    assert '"url"' not in text
    assert text.count("http") == text.count("https://vega.github.io/schema/")  # the name of the format, not read
    return next(iter(spec["datasets"].values()))


@pytest.mark.parametrize("spec", KINDS)
def test_bins_are_those_of_the_estimate_in_the_users_units(spec):
    e = estimate(spec)
    chart = e.chart()
    found, answers = rows(chart), e.histogram()
    kind, left, name = KINDS[spec]
    np.testing.assert_allclose([row["share"] for row in found], 100 * answers.values, atol=1e-4)
    np.testing.assert_allclose([row["at_share"] for row in found], 100 * answers.values, atol=1e-4)
    low, high = answers.interval()
    np.testing.assert_allclose([row["low"] for row in found], 100 * low, atol=1e-4)
    np.testing.assert_allclose([row["high"] for row in found], 100 * high, atol=1e-4)
    wide = answers.interval(simultaneous=True)
    np.testing.assert_allclose([row["all_low"] for row in found], 100 * wide[0], atol=1e-4)
    assert (found[0]["left"], found[0]["name"]) == (left, name)
    assert all(row["right"] == after["left"] for row, after in pairwise(found))
    assert chart.to_dict()["layer"][0]["encoding"]["x"]["type"] == kind


def test_a_short_last_bin_is_as_high_as_its_density():
    e = estimate("pay=integer,0,99", np.full(100, 400))
    found = rows(e.chart())
    assert len(found) == 34  # 33 of three codes, and one of one
    assert found[-1]["at_share"] == pytest.approx(3 * found[-1]["share"])
    assert found[0]["at_share"] == found[0]["share"]


def test_the_curve_ends_at_everybody():
    e = estimate("pay=integer,0,63999,32")
    found = rows(chart_cdf(e))
    np.testing.assert_allclose([row["share"] for row in found], 100 * e.cdf(points=32).values, atol=1e-4)
    assert found[-1]["share"] == pytest.approx(100)


def test_categories_keep_their_order_and_names():
    e = estimate("town=nominal,Ulm|Bonn|Kiel", np.array([500, 300, 200]))
    assert [row["name"] for row in rows(e.chart())] == ["Ulm", "Bonn", "Kiel"]
    assert e.chart().to_dict()["layer"][0]["encoding"]["x"]["sort"] is None


def test_two_attributes_are_a_heat_map_of_at_most_64_cells_a_side():
    schema = ["x=integer,0,99", "town=nominal,Ulm|Bonn|Kiel"]
    columns = {"x": np.arange(5000) % 100, "town": np.array(["Ulm", "Bonn", "Kiel"] * 1667)[:5000]}
    e = simulate(columns, schema=schema, epsilon=4, seed=1)
    found = rows(e.chart("x", "town"))
    assert len(found) == 64 * 3
    assert sum(row["share"] for row in found) == pytest.approx(100, abs=0.5)
    assert {row["y"] for row in found} == {"Ulm", "Bonn", "Kiel"}


def test_answers_are_rows_with_their_intervals_in_both_kinds_of_pictures():
    e = estimate("pay=integer,0,63999,32")
    answers = e.ask("pay < 10000", "pay >= 40000")
    found = rows(answers.chart())
    assert [row["name"] for row in found] == answers.names
    np.testing.assert_allclose([row["low"] for row in found], 100 * answers.low, atol=1e-4)
    assert answers.plot(truth=[0.2, 0.3]).axes[0].get_xlabel() == "people, %"
    with pytest.raises(ValueError, match="expected one or two attributes among pay, got 3"):
        e.chart("pay", "pay", "pay")


def test_without_altair_the_error_names_the_line_that_installs_it():
    code = (
        "import sys; sys.modules['altair'] = None\n"
        "import numpy as np, ahead_ldp\n"
        "e = ahead_ldp.simulate(histogram=np.ones(8, int), schema='x=integer,0,7', epsilon=1, method='flat')\n"
        "try: e.chart()\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "interactive charts need Altair: pip install 'ahead-ldp[interactive]'"
