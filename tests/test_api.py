"""The front door: every form of data gives the same estimate, and mistakes are named before anybody is asked."""

import datetime as dt
import inspect
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ahead_ldp
from ahead_ldp import Query, collect, compare, make_mechanism, simulate
from ahead_ldp.engines.api import People
from ahead_ldp.mechanisms import MECHANISMS, default_method
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.coding import encode
from ahead_ldp.schema.columns import read_columns

SPEC = "pay=real,0,100,16"
PAY = np.random.default_rng(1).uniform(0, 100, 3000)


def csv_file(folder):
    path = folder / "pay.csv"
    path.write_text("pay,other\n" + "".join(f"{x!r},a\n" for x in PAY.tolist()))
    return path


def parquet_file(folder):
    pl.DataFrame({"pay": PAY}).write_parquet(folder / "pay.parquet")
    return str(folder / "pay.parquet")


def npy_file(folder):
    np.save(folder / "pay.npy", PAY)
    return folder / "pay.npy"


FORMS = {
    "array": lambda _: PAY,
    "column": lambda _: PAY[:, None],
    "list": lambda _: PAY.tolist(),
    "mapping": lambda _: {"pay": PAY.tolist(), "other": ["x"] * PAY.size},
    "pandas": lambda _: pd.DataFrame({"pay": PAY, "other": "x"}),
    "polars": lambda _: pl.DataFrame({"pay": PAY}),
    "arrow": lambda _: pa.table({"pay": PAY}),
    "csv": csv_file,
    "parquet": parquet_file,
    "npy": npy_file,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_data_gives_the_same_estimate(form, tmp_path):
    expected = simulate(PAY, as_schema(SPEC), epsilon=1, seed=7)
    found = simulate(FORMS[form](tmp_path), SPEC, epsilon=1, seed=7)
    assert (found.fingerprint() == expected.fingerprint()).all()
    assert found.provenance.people == PAY.size


def test_a_histogram_stands_for_any_number_of_people():
    counts = np.full(16, 10_000_000)
    estimate = simulate(histogram=counts, schema=SPEC, epsilon=1, seed=1)
    assert estimate.provenance.people == 160_000_000
    assert estimate.ask("pay <= 50").values[0] == pytest.approx(0.5, abs=0.01)


def test_chance_has_one_name():
    """`seed` is the word of every function, as of `--seed`; two words for one thing were a coin to toss each time."""
    taking = [simulate, ahead_ldp.compare, ahead_ldp.Estimate.sample]
    for function in taking:
        assert "seed" in inspect.signature(function).parameters
    public = [getattr(ahead_ldp, name) for name in ahead_ldp.__all__]
    named = {name for x in public if inspect.isroutine(x) for name in inspect.signature(x).parameters}
    assert not named & {"random_state", "rng", "generator"}


def test_the_word_of_other_libraries_for_a_seed_is_taken_too():
    named = simulate(PAY, SPEC, epsilon=1, random_state=7)
    assert (named.fingerprint() == simulate(PAY, SPEC, epsilon=1, seed=7).fingerprint()).all()
    columns = [named.sample(5, **{word: 1}, backend="dict")["pay"] for word in ("seed", "random_state")]
    assert (columns[0] == columns[1]).all()
    with pytest.raises(ValueError, match="expected seed or random_state, which are the same, got both"):
        simulate(PAY, SPEC, epsilon=1, seed=7, random_state=7)


def test_a_range_too_long_for_the_default_is_refused_before_memory_is_full():
    """Without buckets a billion whole numbers are a billion codes: the process was killed, without a word."""
    for make in (simulate, ahead_ldp.collect):
        with pytest.raises(ValueError, match=r"1,048,576 codes .* got 1,000,000,001 of pay: declare .* buckets"):
            make([1, 2, 3], "pay=integer,0,1000000000", epsilon=1)
    whole = simulate([1, 2, 3] * 1000, "pay=integer,0,2000000", epsilon=1, method="ahead", seed=1)
    assert whole.schema.sizes == (2_000_001,)
    assert simulate([1, 2, 3], "pay=integer,0,1000000000,512", epsilon=1).schema.sizes == (512,)


def test_a_seed_is_a_number_or_a_generator():
    first = simulate(PAY, SPEC, epsilon=1, seed=3).fingerprint()
    assert (first == simulate(PAY, SPEC, epsilon=1, seed=3).fingerprint()).all()
    given = [simulate(PAY, SPEC, epsilon=1, seed=np.random.default_rng(3)).fingerprint() for _ in range(2)]
    assert (given[0] == given[1]).all()
    assert (first != given[0]).any()  # of the same number: see test_people_and_the_simulation_may_have_the_same_seed
    assert (first != simulate(PAY, SPEC, epsilon=1).fingerprint()).any()


PEOPLE = {
    "age": [30, 41, None, 55],
    "born": [dt.date(1990, 1, 2), None, dt.date(1970, 5, 6), dt.date(1960, 7, 8)],
    "size": ["S", None, "L", "M"],
    "seen": [dt.datetime(2020, 1, 1, 8), dt.datetime(2020, 1, 2, 9, 30), None, dt.datetime(2020, 1, 3)],
}
DECLARED = [
    "age=integer,18,99,missing=cell",
    "born=date,1950-01-01,1999-12-31,missing=cell",
    "size=ordered,S|M|L,missing=cell",
    "seen=datetime,2020-01-01T00:00,2020-01-03T23:59:59,72,missing=cell",
]


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=["dict", "pandas", "polars", "arrow"]
)
def test_a_device_codes_a_row_as_the_bulk_path_does(make):
    schema = as_schema(DECLARED)
    columns = read_columns(make(PEOPLE), schema.names, text=["size"])
    people = People.of(columns, schema)
    codes = [[a.code(person[a.name]) for a in schema.attributes] for person in people]
    assert codes == encode(schema, columns).tolist()
    assert len(people[1:3]) == 2


def test_collect_asks_everybody_and_is_near_the_truth():
    seen = []
    sizes = np.random.default_rng(2).choice(["S", "M", "L"], 3000, p=[0.2, 0.5, 0.3])
    estimate = collect(
        {"size": sizes}, "size=ordered,S|M|L", epsilon=3, method="flat", progress=lambda done, n: seen.append((done, n))
    )
    assert seen[-1] == (3000, 3000)
    assert estimate.provenance.people == 3000
    found = estimate.histogram()
    truth = [(sizes == label).mean() for label in "SML"]
    assert (np.abs(found.values - truth) < 5 * found.standard_error).all()
    assert found.standard_error.max() < 0.05


def test_collect_draws_from_the_operating_system():
    draws = [collect(PAY[:500], SPEC, epsilon=1, progress=False).fingerprint() for _ in range(2)]
    assert (draws[0] != draws[1]).any()


def test_left_out_the_method_follows_the_attributes():
    assert default_method(as_schema(SPEC)) == "adaptive"
    assert default_method(as_schema(SPEC), paper=True) == "ahead"
    three = as_schema(["a=integer,0,3", "b=integer,0,3", "c=integer,0,3"])
    assert default_method(three) == default_method(as_schema(["a=integer,0,3", "b=integer,0,3"])) == "fused"
    assert default_method(three, paper=True) == "lle"
    assert make_mechanism(None, SPEC, 1.0).name == "adaptive"


def test_a_method_is_given_by_name_or_itself():
    assert make_mechanism("flat", SPEC, 1.0, oracle="grr") == Flat(epsilon=1.0, oracle="grr")
    given = Flat(epsilon="0.5")
    assert make_mechanism(given, SPEC) is given
    assert make_mechanism(given, SPEC, 0.5) is given
    assert make_mechanism("ahead", SPEC, 1.0, paper=True) == MECHANISMS["ahead"].paper(epsilon=1.0)
    assert make_mechanism("flat", SPEC, 1.0, paper=True) == Flat(epsilon=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Flat):
    """A method that plans with the number of people, for one attribute."""

    name: ClassVar[str] = "planned"
    most_attributes: ClassVar[int | None] = 1
    users: int = 0


def test_users_go_to_methods_that_plan_with_them(monkeypatch):
    monkeypatch.setitem(MECHANISMS, "planned", Planned)
    assert make_mechanism("planned", SPEC, 1.0, 500).users == 500
    estimate = simulate(PAY, SPEC, epsilon=1, method="planned")
    assert estimate.provenance.mechanism.users == PAY.size
    told = simulate(PAY, SPEC, epsilon=1, method="planned", users=77)
    assert told.provenance.mechanism.users == 77
    with pytest.raises(ValueError, match="at most 1 attribute for the method planned, got 2"):
        make_mechanism("planned", [SPEC, "age=integer,0,9"], 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(PAY, SPEC), "expected epsilon > 0, got none"),
        (lambda: simulate(PAY, SPEC, epsilon=-1.0), "epsilon.*-1"),
        (lambda: simulate(PAY, SPEC, epsilon=float("nan")), "epsilon.*nan"),
        (lambda: simulate(PAY, SPEC, epsilon=1, method="best"), "method to be one of .*ahead.*, got 'best'"),
        (lambda: simulate(PAY, SPEC, epsilon=1, method="flat", fan=3), "choices of the method flat among .*, got fan"),
        (lambda: simulate(PAY, SPEC, epsilon=1, method=Flat(epsilon=2.0)), "epsilon to be the method's, 2.0, got 1"),
        (lambda: simulate(PAY, SPEC, method=Flat(epsilon=2.0), oracle="grr"), "no choices beside a method.*oracle"),
        (lambda: simulate(PAY, SPEC, method=Flat(epsilon=2.0), paper=True), "no choices beside a method.*paper"),
        (lambda: simulate(schema=SPEC, epsilon=1), "either data or a histogram, got none"),
        (lambda: simulate(PAY, SPEC, histogram=[1], epsilon=1), "either data or a histogram, got both"),
        (
            lambda: simulate(PAY, epsilon=1),
            r"a schema as an attribute, .*got none; `ahead_ldp.infer\(data\)` drafts one",
        ),
        (lambda: simulate({"salary": PAY}, SPEC, epsilon=1), "columns among salary, got pay"),
        (lambda: simulate(PAY + 50, SPEC, epsilon=1), "pay: .* outside the declared range"),
        (lambda: simulate(PAY[:0], SPEC, epsilon=1), "at least one person"),
        (lambda: simulate(histogram=np.zeros(16, int), schema=SPEC, epsilon=1), "at least one person"),
        (lambda: simulate(histogram=np.ones(8, int), schema=SPEC, epsilon=1), r"population over \(16,\), got \(8,\)"),
        (lambda: simulate("none.csv", SPEC, epsilon=1), "readable file, got 'none.csv'"),
        (lambda: simulate(PAY, SPEC, epsilon=1, seed=-3), "seed to be a whole number >= 0.*, got -3"),
        (lambda: simulate(PAY, SPEC, epsilon=1, seed="a"), "seed to be a whole number >= 0.*, got 'a'"),
        (lambda: simulate(PAY, SPEC, epsilon=1).sample(3, seed=1.5), "seed to be .*, got 1.5"),
        (lambda: Query("pay > 3"), "conditions by attribute name, .*got 'pay > 3'; a text is asked without a Query"),
        (lambda: collect(PAY[:0], SPEC, epsilon=1), "at least one person"),
        (lambda: collect(PAY + 50, SPEC, epsilon=1), "pay: .* outside the declared range.*clip=True$"),
        (lambda: compare(PAY + 50, SPEC, epsilon=1, methods=["flat"]), r"declare a wider range than [0-9.]+$"),
        (
            lambda: simulate([[1, 2], [3, 4]], SPEC, epsilon=1),
            "a name for each of the 2 columns without names, got pay",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# The public surface.


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_every_public_name_is_there():
    for name in ahead_ldp.__all__:
        assert getattr(ahead_ldp, name).__doc__
    assert set(ahead_ldp.__all__) <= set(dir(ahead_ldp))
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = ahead_ldp.simulat


def test_the_package_itself_loads_no_numpy():
    assert run("import ahead_ldp, sys; sys.exit('numpy' in sys.modules)").returncode == 0


def test_a_device_runs_where_numpy_is_not_installed():
    block = "import sys; sys.modules['numpy'] = None\n"
    assert run(block + "import ahead_ldp.device").returncode == 0
    assert run(block + "import ahead_ldp.schema.attributes").returncode != 0


@pytest.mark.parametrize("seed", [0, 1, np.int64(2)])
def test_people_and_the_simulation_may_have_the_same_seed(seed):
    """Values and groups were made of the same random numbers: a true share of 0.6 was estimated as 1."""
    rng = np.random.default_rng(seed)
    people = {"a": (rng.random(20_000) < 0.6).astype(int), "b": rng.integers(0, 10, 20_000)}
    estimate = ahead_ldp.simulate(people, ["a=integer,0,1", "b=integer,0,9"], epsilon=2, seed=seed)
    (low,), (high,) = estimate.ask("a = 1").interval(0.999)
    assert low <= np.mean(people["a"]) <= high
