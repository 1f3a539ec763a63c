"""An hour in a notebook: 150 calls on pandas, Polars and Arrow, half of them with a mistake in them.

A right call is within five standard errors of the truth. A wrong one is a single message that names the rule and the
way out, and no value of anybody.
"""

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ahead_ldp
from ahead_ldp import Either, Query, infer, simulate

N = 20_000
ZONE = ZoneInfo("Europe/Paris")
RNG = np.random.default_rng(7)
SECRET = 987_654_321.0  # somebody's value, far outside


def people():
    """Plain lists, one for each column."""
    start = dt.datetime(2024, 3, 1, tzinfo=ZONE)
    return {
        "age": RNG.integers(18, 100, N).tolist(),
        "pay": RNG.uniform(0, 200_000, N).tolist(),
        "wild": [SECRET, *RNG.uniform(0, 90_000, N - 1).tolist()],
        "town": RNG.choice(["A", "B", "C"], N, p=[0.5, 0.3, 0.2]).tolist(),
        "member": (RNG.random(N) < 0.3).tolist(),
        "flag": [None if u < 0.1 else u < 0.5 for u in RNG.random(N).tolist()],
        "kids": [None if u < 0.1 else int(4 * u) for u in RNG.random(N).tolist()],
        "grade": RNG.integers(1, 4, N).tolist(),
        "born": [dt.date(1960, 1, 1) + dt.timedelta(int(d)) for d in RNG.integers(0, 15_000, N)],
        "seen": [start + dt.timedelta(minutes=int(m)) for m in RNG.integers(0, 20_000, N)],
        "at": [dt.time(int(h), int(m)) for h, m in zip(RNG.integers(0, 24, N), RNG.integers(0, 60, N), strict=True)],
        "took": [dt.timedelta(seconds=int(s)) for s in RNG.integers(0, 64, N)],
        "price": [Decimal(int(c)) / 100 for c in RNG.integers(0, 1000, N)],
    }


PEOPLE = people()
ROWS = [dict(zip(PEOPLE, row, strict=True)) for row in zip(*PEOPLE.values(), strict=True)]


def in_pandas():
    frame = pd.DataFrame(PEOPLE).astype({"flag": "boolean", "kids": "Int64", "town": "category", "grade": "category"})
    frame["seen"] = pd.to_datetime(frame["seen"], utc=True).dt.tz_convert("Europe/Paris")
    return frame.assign(born=pd.to_datetime(frame["born"]), took=pd.to_timedelta(frame["took"]))


def in_arrow():
    kinds = {"town": pa.dictionary(pa.int32(), pa.string()), "seen": pa.timestamp("s", "Europe/Paris")}
    return pa.table({name: pa.array(column, kinds.get(name)) for name, column in PEOPLE.items()})


FRAMES = {
    "pandas": in_pandas(),
    "polars": pl.DataFrame(PEOPLE).with_columns(pl.col("town").cast(pl.Categorical)),
    "arrow": in_arrow(),
}
AGE, PAY, TOWN = "age=integer,18,99", "pay=real,0,200k,40", "town=nominal,A|B|C"


def run(data, schema, **options):
    return simulate(data, schema, **{"epsilon": 4, "method": "flat", "seed": 11, **options})


# name -> declaration, what is asked, who counts.
RIGHT = {
    "a text": (AGE, "age in 30..39", lambda p: 30 <= p["age"] <= 39),
    "above": (AGE, "age > 60", lambda p: p["age"] > 60),
    "below": (AGE, "age < 25", lambda p: p["age"] < 25),
    "between": (AGE, "age between 40 and 49", lambda p: 40 <= p["age"] <= 49),
    "or": (AGE, "age < 30 or age >= 70", lambda p: p["age"] < 30 or p["age"] >= 70),
    "a tuple": (AGE, ("age", 30, 39), lambda p: 30 <= p["age"] <= 39),
    "a sign": (AGE, ("age", ">=", np.int64(65)), lambda p: p["age"] >= 65),
    "conditions": (
        [AGE, TOWN],
        {"age": (30, 59), "town": ["A", "B"]},
        lambda p: 30 <= p["age"] <= 59 and p["town"] < "C",
    ),
    "parentheses": (
        [AGE, TOWN],
        "(age < 30 or age >= 70) and town = A",
        lambda p: (p["age"] < 30 or p["age"] >= 70) and p["town"] == "A",
    ),
    "thousands": (PAY, "pay > 50k", lambda p: p["pay"] > 50_000),
    "a million": (PAY, "pay in 0.05M..0.1M", lambda p: 50_000 <= p["pay"] < 100_000),
    "a query": (PAY, Query({"pay": Either(((None, 20_000), (180_000, None)))}), lambda p: abs(p["pay"] - 1e5) >= 8e4),
    "a boolean": ("member=boolean", {"member": True}, lambda p: p["member"]),
    "a boolean, 0 and 1": ("member=integer,0,1", "member = 1", lambda p: p["member"]),
    "a boolean, yes and no": ("member=nominal,no|yes", ("member", "yes"), lambda p: p["member"]),
    "a nullable boolean": ("flag=boolean,missing=cell", "flag = true", lambda p: p["flag"] is True),
    "a missing boolean": ("flag=boolean,missing=cell", "flag missing", lambda p: p["flag"] is None),
    "nullable integers": ("kids=integer,0,4,missing=cell", "kids >= 2", lambda p: (p["kids"] or 0) >= 2),
    "categories": (TOWN, "town in {A, C}", lambda p: p["town"] != "B"),
    "categories of numbers": ("grade=nominal,1|2|3", ("grade", 2), lambda p: p["grade"] == 2),
    "moments for dates": ("born=date,1960-01-01,2009-12-31,50", "born < 1980-01-01", lambda p: p["born"].year < 1980),
    "aware moments": (
        "seen=datetime,2024-02-29T00:00,2024-03-31T23:59:59,32",
        "seen >= 2024-03-05T00:00Z",
        lambda p: p["seen"] >= dt.datetime(2024, 3, 5, tzinfo=dt.UTC),
    ),
    "aware moments, their day": (
        "seen=date,2024-03-01,2024-03-31",
        "seen <= 2024-03-05",
        lambda p: p["seen"].date() <= dt.date(2024, 3, 5),
    ),
    "aware moments, their clock": ("seen=time,00:00,23:59:59,24", "seen < 08:00", lambda p: p["seen"].hour < 8),
    "times, durations, decimals": (
        ["at=time,00:00,23:59:59,4", "took=integer,0,63,4", "price=real,0,10,4"],
        "at < 12:00 and took < 32 and price < 5",
        lambda p: p["at"].hour < 12 and p["took"].seconds < 32 and p["price"] < 5,
    ),
}


@pytest.mark.parametrize("backend", FRAMES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_call_is_near_the_truth(name, backend):
    schema, asked, counts = RIGHT[name]
    answers = run(FRAMES[backend], schema).ask(asked)
    truth = sum(map(counts, ROWS)) / N
    assert 0.01 < truth < 0.99
    assert abs(answers[0].share - truth) <= 5 * answers[0].spread
    assert answers[0].spread < 0.03
    assert type(answers.to_frame()) is type(FRAMES[backend])


AGES = run(FRAMES["pandas"], [AGE, TOWN])

# name -> a call with a mistake, and what its message says: the rule, and the way out.
WRONG = {
    "a Series for two": (lambda f: run(f["age"], [AGE, TOWN]), "a name for each of the 1 columns.*give a frame"),
    "no such column": (lambda f: run(f, "salary=integer,0,9"), "columns among age, pay, .*, got salary"),
    "outside": (lambda f: run(f, "wild=real,0,100k,8"), "wild: 1 value outside.*declare a wider.*clip=True"),
    "missing": (lambda f: run(f, "kids=integer,0,4"), "kids: .* values missing.*declare missing=cell"),
    "another kind": (lambda f: run(f, "town=integer,0,9"), "town: .* not of kind integer; convert the column"),
    "truth for dates": (lambda f: run(f, "member=date,2000-01-01,2001-01-01"), "not of kind date; convert the column"),
    "another category": (lambda f: run(f, "town=nominal,A|B"), r"town: .* declare every category \(now A, B\)"),
    "a kind misspelt": (lambda f: run(f, "age=intger,18,99"), "a kind among integer, date, .*, got 'age=intger,18,99'"),
    "bounds reversed": (lambda f: run(f, "age=integer,99,18"), "expected lo < hi for age, got '99' and '18'"),
    "no schema": (
        lambda f: run(f, None),
        "a schema as an attribute, a text such as 'age=integer,18,99'.*got a NoneType",
    ),
    "epsilon 0": (lambda f: run(f, AGE, epsilon=0), "0.01 <= epsilon <= 16, got 0"),
    "epsilon in words": (lambda f: run(f, AGE, epsilon="one"), "epsilon to be a finite number > 0, got 'one'"),
    "users below 0": (
        lambda f: run(f, AGE, users=-5),
        "users, the number of people, to be a whole number >= 1, got -5",
    ),
    "half a user": (
        lambda f: run(f, AGE, users=2.5),
        "users, the number of people, to be a whole number >= 1, got 2.5",
    ),
    "a method misspelt": (lambda f: run(f, AGE, method="ahaed"), "method to be one of .*ahead.*, got 'ahaed'"),
    "a choice misspelt": (lambda f: run(f, AGE, fanuot=4), "choices of the method flat among .*, got fanuot"),
    "a draft as it is": (lambda f: infer(f, ["age"]).schema(), r"a reviewed draft: age read from data; .*review\(NAME"),
    "an unknown attribute": (lambda f: run(f, AGE).ask("wage > 3"), "an attribute among age, got 'wage'"),
    "a bad sign": (lambda f: run(f, AGE).ask("age != 30"), "in, =, >, >=, <, <=, between, missing or not in the query"),
    "or over two": (lambda f: AGES.ask("age < 30 or town = A"), r"or between conditions on one attribute.*weighted\("),
    "and with or": (
        lambda f: AGES.ask("town = A and age < 30 or age > 60"),
        "parentheses around the conditions joined",
    ),
    "a range of names": (lambda f: AGES.ask("town in A..B"), "expected a set for the nominal attribute town"),
    "beyond the range": (lambda f: run(f, AGE).ask(("age", ">", 120)), "a range that meets 18..99, declared for age"),
    "a library as a name": (
        lambda f: run(f, AGE).to_frame("polars"),
        "names of attributes, got 'polars': use backend=",
    ),
    "percent for a level": (lambda f: run(f, AGE).quantiles().interval(95), "expected 0 < level < 1, got 95"),
}


@pytest.mark.parametrize("backend", FRAMES)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_one_message_with_the_rule_and_the_way_out(name, backend):
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message) as caught:
        call(FRAMES[backend])
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    assert "987" not in text
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


def test_there_are_150_calls():
    assert (len(RIGHT) + len(WRONG)) * len(FRAMES) == 150
    assert len(RIGHT) == len(WRONG)


# What the calls above do not reach.


class Offered:
    """A table that offers its columns by one protocol only, as a DuckDB relation and other libraries' frames do."""

    def __init__(self, table, protocol):
        self.table = table
        setattr(type(self), protocol, lambda self, *a, **k: getattr(self.table, protocol)(*a, **k))


@pytest.mark.parametrize("protocol", ["__arrow_c_stream__", "__dataframe__"])
def test_any_object_that_offers_its_columns_is_a_table(protocol):
    offered = type("Offered", (Offered,), {})(FRAMES["arrow"].select(["age"]), protocol)
    assert run(offered, AGE) == run(FRAMES["arrow"], AGE)


def sql_result(age):
    import sqlite3

    base = sqlite3.connect(":memory:")
    base.execute("create table people (age integer, town text)")
    base.executemany("insert into people values (?, 'A')", [(a,) for a in age])
    return base.execute("select town, age from people")


FORMS = {
    "a pandas Series": lambda: FRAMES["pandas"]["age"].rename("other"),
    "a Polars Series": lambda: FRAMES["polars"]["age"],
    "an Arrow column": lambda: FRAMES["arrow"]["age"],
    "a lazy frame": lambda: FRAMES["polars"].lazy(),
    "a batch": lambda: FRAMES["arrow"].select(["age"]).combine_chunks().to_batches()[0],
    "a mapping of Series": lambda: {"age": FRAMES["polars"]["age"]},
    "rows by name": lambda: [{"age": a, "x": "y"} for a in PEOPLE["age"]],
    "rows": lambda: [(a,) for a in PEOPLE["age"]],
    "a result of SQL": lambda: sql_result(PEOPLE["age"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_people(form):
    assert run(FORMS[form](), AGE) == run({"age": PEOPLE["age"]}, AGE)


def test_clip_counts_at_the_ends_and_says_how_many():
    with pytest.raises(ValueError, match="clip=True"):
        run(FRAMES["pandas"], "pay=real,0,100k,8")
    for backend, frame in FRAMES.items():
        estimate = run(frame, ["pay=real,50k,100k,5", "seen=date,2024-03-02,2024-03-05", TOWN], clip=True)
        low, high = (sum(map(rule, PEOPLE["pay"])) for rule in (lambda x: x < 50_000, lambda x: x > 100_000))
        days = sum(not dt.date(2024, 3, 2) <= x.date() <= dt.date(2024, 3, 5) for x in PEOPLE["seen"])
        assert estimate.clipped == {"pay": low + high, "seen": days}, backend
        assert f"{low + high:,} of pay" in estimate.summary()
        answer = estimate.ask("pay >= 90k")[0]
        assert abs(answer.share - np.mean(np.array(PEOPLE["pay"]) >= 90_000)) <= 5 * answer.spread
    assert run(FRAMES["pandas"], AGE, clip=True).clipped == {}


def test_a_midnight_is_the_day_that_it_begins():
    estimate = run(FRAMES["pandas"], "born=date,1960-01-01,2009-12-31,50")
    day = dt.date(1980, 1, 1)
    asked = estimate.ask(("born", ">=", day))
    midnights = [dt.datetime(1980, 1, 1), pd.Timestamp(day), np.datetime64("1980-01-01T00:00"), np.datetime64(day)]
    for midnight in midnights:
        again = estimate.ask({"born": (midnight, None)})
        assert (again.share, again.names) == (asked.share, ["born >= 1980-01-01"])
        assert estimate.ask(again.names[0]).share == asked.share
        assert estimate.cdf("born", [midnight]).share == estimate.cdf("born", [day]).share
        bars = estimate.histogram("born", [dt.date(1960, 1, 1), midnight, dt.date(2009, 12, 31)])
        assert bars.names == ["1960-01-01..1979-12-31", "1980-01-01..2009-12-31"]
    for other in (dt.datetime(1980, 1, 1, 5), pd.Timestamp(day, tz="UTC"), pd.NaT):
        with pytest.raises(ValueError, match="expected a value of kind date for born, got"):
            estimate.ask({"born": (other, None)})


def test_a_numpy_number_as_epsilon_is_the_decimal_that_it_prints():
    for number in (np.float32(0.1), np.float64(0.1), np.float16(0.1), Decimal("0.1"), "0.1"):
        assert run(FRAMES["arrow"], AGE, epsilon=number).provenance.epsilon == "0.1"
    assert run(FRAMES["arrow"], AGE, epsilon=np.int8(2)).provenance.epsilon == "2"


@pytest.mark.parametrize("clip", [False, True])
def test_collect_takes_what_simulate_takes(clip):
    few = FRAMES["pandas"].head(300)
    schema = ["member=boolean", "seen=date,2024-03-01,2024-03-31", "grade=nominal,1|2|3", "took=integer,0,63"]
    schema += ["wild=real,0,90k,4"] if clip else []
    estimate = ahead_ldp.collect(few, schema, epsilon=4, clip=clip, progress=False)
    assert estimate.provenance.people == 300
    assert estimate.backend == "pandas"
    assert estimate.clipped == ({"wild": 1} if clip else {})
