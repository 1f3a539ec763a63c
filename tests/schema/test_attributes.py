"""Declaring attributes, the grammar, schema files; bulk coding equals the device's, value by value."""

import datetime as dt
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.refusals import ValueRefused
from ahead_ldp.schema import attributes as s
from ahead_ldp.schema import coding

EVERY_KIND = [
    s.integer("age", 18, 99),
    s.integer("age", -7, 99, 10),
    s.integer("one", 5, 5),
    s.real("pay", 0, 500_000, 512),
    s.real("thin", -0.1, 0.7, 7),
    s.real_edges("loan", [0, 10, 11.5, 1000]),
    s.real_edges("top", [0.0, 1.0, 2.0, 2.0]),
    s.paper_buckets("base", -7058.59, 567595.43, 64),
    s.date("born", "1950-01-01", "2009-12-31", 60),
    s.date("day", dt.date(1969, 12, 1), dt.date(1970, 1, 31)),
    s.time("at", "00:00", "23:59:59", 24),
    s.datetime("seen", "1969-12-31T00:00", "1970-01-02T00:00", 48),
    s.ordered("size", ["S", "M", "L"]),
    s.nominal("colour", ["red", "green", "light blue"]),
    s.codes("code", 8),
]


def ids(attribute):
    return f"{attribute.name}-{attribute.size}"


def with_missing(attribute, missing):
    if missing == "value":
        value = attribute.labels[0] if attribute.labels else s.spoken(attribute.kind, attribute.lo)
        return Attribute(*fields(attribute), missing="value", missing_value=value)
    return Attribute(*fields(attribute), missing=missing)


def fields(a):
    return a.name, a.kind, a.lo, a.hi, a.edges, a.labels


# Constructors.


def test_integer_has_a_code_for_each_value_or_buckets_as_equal_as_possible():
    assert s.integer("age", 18, 99).size == 82
    assert s.integer("age", 18, 99, 82) == s.integer("age", 18, 99)
    bucketed = s.integer("age", 0, 9, 4)
    assert bucketed.size == 4
    assert np.bincount([bucketed.code(x) for x in range(10)]).tolist() == [2, 3, 2, 3]


def test_paper_buckets_follow_the_formula_and_the_last_holds_the_maximum_alone():
    lo, hi, d = 185, 23961, 64
    attribute = s.paper_buckets("Purchase", lo, hi, d)
    for x in range(lo, hi + 1):
        assert attribute.code(x) == (x - lo) * (d - 1) // (hi - lo)
    assert attribute.size == d
    assert attribute.code(math.nextafter(hi, 0)) == d - 2
    assert attribute.code(hi) == d - 1


def test_dates_and_times_count_in_days_and_seconds():
    assert s.date("d", "2020-02-28", "2020-03-01").size == 3
    assert s.date("d", np.datetime64("2020-02-28"), dt.date(2020, 3, 1)).size == 3
    assert s.time("t", "08:00", "08:01").size == 61
    assert s.datetime("m", "2020-01-01T00:00+01:00", "2019-12-31T23:00:59").size == 60


def test_missing_is_refused_a_cell_or_a_value():
    assert s.integer("x", 0, 9).missing_code is None
    assert s.integer("x", 0, 9, missing="cell").missing_code == 10
    assert s.integer("x", 0, 9, missing=4).missing_code == 4
    assert s.real("x", 0, 1, 4, missing="0.3").missing_code == 1
    assert s.ordered("x", ["a", "b"], missing="b").missing_code == 1
    assert s.date("x", "2020-01-01", "2020-01-09", missing="2020-01-03").missing_code == 2


BAD_DECLARATIONS = {
    "reversed": (lambda: s.integer("age", 9, 1), "expected lo < hi for age, got 9 and 1"),
    "reversed real": (lambda: s.real("pay", 1, 1, 2), "expected lo < hi for pay, got 1 and 1"),
    "fraction": (lambda: s.integer("age", 0.5, 9), "value of kind integer for the bounds of age, got 0.5"),
    "boolean": (lambda: s.integer("age", False, 9), "the bounds of age, got False"),
    "huge": (lambda: s.integer("age", 0, 2**53), "below 2**53"),
    "NaN": (lambda: s.real("pay", math.nan, 9, 2), "the bounds of pay, got nan"),
    "infinite": (lambda: s.real("pay", 0, math.inf, 2), "the bounds of pay, got inf"),
    "no buckets": (lambda: s.real("pay", 0, 1, 0), "buckets of pay to be in 1..65536, got 0"),
    "half a bucket": (lambda: s.real("pay", 0, 1, 1.5), "buckets of pay to be in 1..65536, got 1.5"),
    "too many buckets": (lambda: s.integer("age", 1, 4, 5), "buckets of age to be in 1..4, got 5"),
    "buckets finer than doubles": (lambda: s.real("pay", 1, 1 + 2**-51, 9), "edges of pay to rise strictly"),
    "one edge": (lambda: s.real_edges("pay", [1]), "at least two edges for pay, got [1]"),
    "falling edges": (lambda: s.real_edges("pay", [0, 2, 1, 3]), "edges of pay to rise strictly"),
    "paper with one bucket": (lambda: s.paper_buckets("pay", 0, 1, 1), "buckets of pay to be in 2..65536, got 1"),
    "no codes": (lambda: s.codes("x", 0), "codes of x to be in 1..2147483646, got 0"),
    "bad date": (lambda: s.date("born", "1950-13-01", "1960-01-01"), "the bounds of born, got '1950-13-01'"),
    "labels as text": (lambda: s.ordered("size", "SML"), "list of categories for size, got 'SML'"),
    "label twice": (lambda: s.ordered("size", ["S", "S"]), "categories of size to be distinct"),
    "no labels": (lambda: s.nominal("size", []), "categories of size to be distinct and not none"),
    "label of another type": (lambda: s.nominal("size", [1]), "a category of size"),
    "missing outside": (lambda: s.integer("age", 0, 9, missing=10), "a value in its declared range, got 10"),
    "missing is no value": (lambda: s.integer("age", 0, 9, missing="Cell"), "range, got 'Cell'"),
    "missing is None": (lambda: s.integer("age", 0, 9, missing=None), "range, got None"),
    "no name": (lambda: s.codes("", 4), "the name of an attribute"),
}


@pytest.mark.parametrize("make, message", BAD_DECLARATIONS.values(), ids=BAD_DECLARATIONS)
def test_bad_declaration_is_one_value_error(make, message):
    with pytest.raises(ValueError) as caught:
        make()
    assert message in str(caught.value)


# The grammar.

SPECS = {
    "pay=real,0,500000,512": s.real("pay", 0, 500000, 512),
    "pay=real,-1e3,0.5,4,missing=cell": s.real("pay", -1000, 0.5, 4, missing="cell"),
    "pay=real,0|10|100": s.real_edges("pay", [0, 10, 100]),
    "age=integer,18,99": s.integer("age", 18, 99),
    " age = integer , 18 , 99 , 5 ": s.integer("age", 18, 99, 5),
    "age=integer,18,99,missing=20": s.integer("age", 18, 99, missing=20),
    "age=integer,18,99,missing=refused": s.integer("age", 18, 99),
    "size=category,S|M|L": s.ordered("size", ["S", "M", "L"]),
    "size=ordered,S|M|L,missing=M": s.ordered("size", ["S", "M", "L"], missing="M"),
    "colour=nominal,red|green, dark|blue": s.nominal("colour", ["red", "green, dark", "blue"]),
    "born=date,1950-01-01,2009-12-31,60": s.date("born", "1950-01-01", "2009-12-31", 60),
    "at=time,00:00,23:59:59,24": s.time("at", "00:00", "23:59:59", 24),
    "seen=datetime,2020-01-01T00:00,2020-12-31T23:59:59,366": s.datetime(
        "seen", "2020-01-01", "2020-12-31T23:59:59", 366
    ),
    "base=paper,0,10,64": s.paper_buckets("base", 0, 10, 64),
    "x=codes,64": s.codes("x", 64),
}


@pytest.mark.parametrize("spec, attribute", SPECS.items(), ids=SPECS)
def test_grammar(spec, attribute):
    assert s.parse_attribute(spec) == attribute


BAD_SPECS = {
    "": "expected NAME=KIND,...",
    "age": "expected NAME=KIND,...",
    "=integer,0,9": "expected NAME=KIND,...",
    "age=number,0,9": "a kind among integer",
    "age=integer": "expected lo and hi for kind integer",
    "age=integer,18": "expected lo and hi for kind integer",
    "age=integer,18,x": "got 'x'",
    "age=integer,18,99,2,3": "expected NAME=INTEGER,LO,HI,BUCKETS",
    "pay=real,0,9": "expected lo and hi and buckets for kind real",
    "pay=real,0,nan,9": "got 'nan'",
    "pay=real,0,9,many": "buckets of pay to be in 1..65536, got 'many'",
    "size=category,": "a category of size",
    "size=category,S||L": "a category of size",
    "x=codes,8,9": "expected NAME=CODES,BUCKETS",
    "x=codes,8,missing=9": "missing of x to be refused, cell or a value in its declared range, got '9'",
    "x=paper,0|1|2": "expected lo and hi and buckets for kind paper",
}


@pytest.mark.parametrize("spec, message", BAD_SPECS.items(), ids=repr)
def test_bad_spec_is_one_value_error(spec, message):
    with pytest.raises(ValueError) as caught:
        s.parse_attribute(spec)
    assert message in str(caught.value)


def test_as_schema_takes_attributes_and_texts():
    schema = s.as_schema(["age=integer,18,99", s.codes("x", 4)])
    assert schema.names == ("age", "x")
    assert s.as_schema(schema) is schema
    assert s.as_schema("x=codes,4") == s.as_schema(s.codes("x", 4))


# Schema files.


@pytest.mark.parametrize("missing", ["refused", "cell", "value"])
@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_schema_files_read_back_as_the_same_schema(tmp_path, suffix, missing):
    for attribute in EVERY_KIND:
        schema = Schema((with_missing(attribute, missing),))
        s.dump_schema(schema, tmp_path / f"schema.{suffix}")
        back = s.load_schema(tmp_path / f"schema.{suffix}")
        assert back == schema
        assert back.digest() == schema.digest()
        if suffix == "json":  # the value behind a missing code is not in the record
            s.dump_schema(back, tmp_path / "again.toml")
            assert s.load_schema(tmp_path / "again.toml") == schema


def test_toml_is_short_for_equal_and_for_paper_buckets(tmp_path):
    schema = s.as_schema([s.real("pay", 0, 500_000, 512), s.paper_buckets("base", 0, 10, 64)])
    s.dump_schema(schema, tmp_path / "schema.toml")
    text = (tmp_path / "schema.toml").read_text()
    assert "buckets = 512" in text
    assert 'kind = "paper"' in text
    assert "edges" not in text


def test_toml_with_native_dates(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text('[[attribute]]\nname = "d"\nkind = "date"\nlo = 2020-01-01\nhi = 2020-01-31\nbuckets = 4\n')
    assert s.load_schema(path) == s.as_schema(s.date("d", "2020-01-01", "2020-01-31", 4))


def test_a_schema_toml_cannot_hold_is_refused(tmp_path):
    odd = Attribute("x", "nominal", labels=("cell", "b"), missing="value", missing_value="cell")
    with pytest.raises(ValueError, match=r"use a \.json file"):
        s.dump_schema(Schema((odd,)), tmp_path / "schema.toml")


BAD_FILES = {
    "not toml": ("a.toml", "[[", "readable schema file"),
    "not json": ("a.json", "{", "readable schema file"),
    "not text": ("a.json", b"\xff\xfe", "readable schema file"),
    "no table": ("a.toml", "", "[[attribute]] tables and nothing else"),
    "another table": ("a.toml", "[other]", "[[attribute]] tables and nothing else"),
    "not a list": ("a.toml", "attribute = 3", "[[attribute]] tables and nothing else"),
    "no kind": ("a.toml", '[[attribute]]\nname = "x"', "a name and a kind among"),
    "unknown field": ("a.toml", '[[attribute]]\nname="x"\nkind="codes"\nbuckets=4\nlow=1', "table 1 of"),
    "not a record": ("a.json", "[]", "expected the schema to be a record"),
    "record without attributes": ("a.json", '{"type": "schema"}', "expected the schema to have the field"),
}


@pytest.mark.parametrize("name, text, message", BAD_FILES.values(), ids=BAD_FILES)
def test_bad_schema_file_is_one_value_error(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError) as caught:
        s.load_schema(path)
    assert message in str(caught.value)


def test_absent_schema_file_is_one_value_error(tmp_path):
    with pytest.raises(ValueError, match="readable schema file"):
        s.load_schema(tmp_path / "none.json")


def test_pretty_printed_record_is_read(tmp_path):
    schema = s.as_schema("x=codes,4")
    (tmp_path / "a.json").write_text(json.dumps(schema.record(), indent=2))
    assert s.load_schema(tmp_path / "a.json") == schema


# Bulk coding.


def device_codes(attribute, values):
    return [attribute.code(v) for v in values]


def bulk_codes(attribute, column):
    return coding.encode(Schema((attribute,)), [column])[:, 0].tolist()


REALS = [a for a in EVERY_KIND if a.kind == "real"]


@given(st.data(), st.sampled_from(REALS))
def test_reals_equal_the_device_at_edges_and_one_ulp_around(data, attribute):
    edge = st.sampled_from([attribute.lo, *attribute.edges, attribute.hi])
    near = st.builds(lambda x, to: math.nextafter(x, to), edge, st.sampled_from([-math.inf, math.inf]))
    inside = st.floats(attribute.lo, attribute.hi)
    values = data.draw(st.lists(st.one_of(edge, near, inside).filter(lambda x: attribute.lo <= x <= attribute.hi)))
    assert bulk_codes(attribute, np.array(values, dtype=float)) == device_codes(attribute, values)
    assert bulk_codes(attribute, values) == device_codes(attribute, values)


@given(st.data(), st.sampled_from([a for a in EVERY_KIND if a.kind == "integer"]))
def test_integers_equal_the_device(data, attribute):
    values = data.draw(st.lists(st.integers(attribute.lo, attribute.hi)))
    expected = device_codes(attribute, values)
    for dtype in (np.int64, np.int8, np.float64, object):
        assert bulk_codes(attribute, np.array(values, dtype=dtype)) == expected


@given(st.lists(st.integers(0, 2**63 - 1) | st.floats(allow_nan=False, width=32)))
def test_reals_take_integers_and_short_floats_as_the_device_does(values):
    attribute = s.real("x", -1e40, 1e40, 77)
    for dtype, kind in ((np.int64, int), (np.float32, float)):
        some = [v for v in values if type(v) is kind and math.isfinite(v)]
        assert bulk_codes(attribute, np.array(some, dtype=dtype)) == device_codes(attribute, some)


@given(st.lists(st.dates(dt.date(1950, 1, 1), dt.date(2009, 12, 31)), min_size=1), st.sampled_from(["D", "s", "ns"]))
def test_dates_equal_the_device(days, unit):
    attribute = s.date("born", "1950-01-01", "2009-12-31", 60)
    expected = device_codes(attribute, days)
    assert bulk_codes(attribute, np.array(days, dtype="datetime64[D]").astype(f"datetime64[{unit}]")) == expected
    assert bulk_codes(attribute, days) == expected
    assert bulk_codes(attribute, np.array([d.isoformat() for d in days])) == expected


@given(st.lists(st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(1979, 1, 1)), min_size=1))
def test_moments_equal_the_device_and_drop_fractions_downwards(moments):
    attribute = s.datetime("seen", "1960-01-01", "1979-01-01", 1000)
    expected = device_codes(attribute, moments)
    assert bulk_codes(attribute, np.array(moments, dtype="datetime64[us]")) == expected
    assert bulk_codes(attribute, moments) == expected


@given(st.lists(st.times()))
def test_times_equal_the_device(times):
    attribute = s.time("at", "00:00", "23:59:59", 24)
    assert bulk_codes(attribute, times) == [t.hour for t in times]


@given(st.lists(st.sampled_from(["S", "M", "L"])))
def test_categories_equal_the_device(values):
    attribute = s.ordered("size", ["S", "M", "L"])
    expected = device_codes(attribute, values)
    for dtype in (str, object, np.dtypes.StringDType()):
        assert bulk_codes(attribute, np.array(values, dtype=dtype)) == expected


@pytest.mark.parametrize("missing, code", [("cell", 10), (3, 3)])
def test_everything_that_means_missing(missing, code):
    number = s.integer("x", 0, 9, missing=missing)
    masked = np.ma.masked_array([1, 2], mask=[True, False])
    assert bulk_codes(number, np.array([1.0, np.nan])) == [1, code]
    assert bulk_codes(number, [1, None]) == [1, code]
    assert bulk_codes(number, [1, math.nan]) == [1, code]
    assert bulk_codes(number, masked) == [code, 2]
    assert bulk_codes(number, [None]) == [code]
    day = s.date("d", "2020-01-01", "2020-01-09", missing="cell")
    assert bulk_codes(day, np.array(["2020-01-02", "NaT"], dtype="datetime64[D]")) == [1, 9]
    label = s.nominal("c", ["a", "b"], missing="cell")
    assert bulk_codes(label, np.array(["b", None], dtype=object)) == [1, 2]


def test_pandas_na_is_missing():
    pandas = pytest.importorskip("pandas")
    attribute = s.integer("x", 0, 9, missing="cell")
    assert bulk_codes(attribute, np.array([1, pandas.NA, pandas.NaT], dtype=object)) == [1, 10, 10]


def test_columns_by_name_by_order_and_as_an_array():
    schema = s.as_schema(["a=codes,4", "b=codes,8"])
    expected = [[0, 7], [3, 1]]
    a, b = np.array([0, 3]), np.array([7, 1])
    for columns in ({"b": b, "a": a, "c": b}, [a, b], (a.tolist(), b), np.array(expected)):
        coded = coding.encode(schema, columns)
        assert coded.tolist() == expected
        assert coded.dtype == np.int64
    assert coding.encode(s.as_schema("a=codes,4"), a).tolist() == [[0], [3]]
    assert coding.encode(schema, {"a": [], "b": []}).shape == (0, 2)


PAY, AGE = s.real("pay", 0, 100, 4), s.integer("age", 0, 9)
SIZE, DAY = s.ordered("size", ["S", "M"]), s.date("day", "2020-01-01", "2020-01-31")
BAD_COLUMNS = {
    "outside": (PAY, np.array([5.0, -1, 101, 777]), "pay: 3 values outside the declared range"),
    "one outside": (PAY, np.array([5.0, 777]), "pay: 1 value outside the declared range"),
    "infinite": (PAY, np.array([np.inf, 1]), "pay: 1 value outside the declared range"),
    "outside, unsigned": (AGE, np.array([2**64 - 1], dtype=np.uint64), "age: 1 value outside"),
    "outside, huge": (AGE, [2**80], "age: 1 value outside the declared range"),
    "missing": (PAY, np.array([5.0, np.nan]), "pay: 1 value missing, which its declaration refuses"),
    "missing objects": (PAY, [5.0, None, None], "pay: 2 values missing, which its declaration refuses"),
    "fractions": (AGE, np.array([0.5, 777.5, 1.0]), "age: 2 values not of kind integer"),
    "booleans": (AGE, np.array([True, False]), "age: 2 values not of kind integer"),
    "boolean objects": (AGE, [True, 1], "age: 1 value not of kind integer"),
    "complex": (PAY, np.array([1j, 777]), "pay: 2 values not of kind real"),
    "text for numbers": (PAY, np.array(["777", "1"]), "pay: 2 values not of kind real"),
    "numbers for text": (SIZE, np.array([777, 1]), "size: 2 values none of the declared categories"),
    "unknown label": (SIZE, np.array(["S", "777"]), "size: 1 value none of the declared categories"),
    "numbers for dates": (DAY, np.array([777]), "day: 1 value not of kind date"),
    "moments for dates": (DAY, np.array(["2020-01-02T07:07"], "M8[m]"), "day: 1 value not of kind date"),
}


@pytest.mark.parametrize("attribute, column, message", BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_bad_values_are_counted_and_never_shown(attribute, column, message):
    with pytest.raises(ValueRefused) as caught:
        coding.encode(Schema((attribute,)), [column])
    assert message in str(caught.value)
    assert "777" not in str(caught.value)


BAD_SHAPES = {
    "unknown name": ({"x": [1]}, "expected columns age, got none for age"),
    "too many": ([[1], [2]], "expected 1 columns (age), got 2"),
    "two dimensions": ({"age": np.zeros((2, 2))}, "the column age to have one dimension, got 2"),
    "wide array": (np.zeros((2, 3)), "expected 1 columns (age), got 3"),
}


@pytest.mark.parametrize("columns, message", BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_bad_shape_is_one_value_error(columns, message):
    with pytest.raises(ValueError) as caught:
        coding.encode(Schema((AGE,)), columns)
    assert message in str(caught.value)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="same length, got age 1, size 2"):
        coding.encode(Schema((AGE, SIZE)), {"age": [1], "size": ["S", "M"]})


# And back.


@pytest.mark.parametrize("attribute", EVERY_KIND, ids=ids)
def test_borders_enclose_exactly_their_code(attribute):
    borders = coding.decode_edges(attribute)
    assert len(borders) == attribute.ordered_size + 1
    assert (borders[1:] >= borders[:-1]).all()
    if attribute.kind in ("integer", "real"):
        assert bulk_codes(attribute, borders[:-1]) == list(range(attribute.ordered_size))


def test_borders_are_in_the_users_units():
    assert coding.decode_edges(s.integer("x", 3, 5)).tolist() == [3, 4, 5, 6]
    assert coding.decode_edges(s.integer("x", 0, 9, 2)).tolist() == [0, 5, 10]
    assert coding.decode_edges(s.paper_buckets("x", 0, 10, 3)).tolist() == [0, 5, 10, 10]
    assert coding.decode_edges(s.date("x", "2020-01-30", "2020-01-31")).astype(str).tolist()[-1] == "2020-02-01"
    assert coding.decode_edges(s.time("x", "00:00", "23:59:59", 2))[-1] == np.timedelta64(24, "h")
    assert coding.decode_edges(s.ordered("x", ["a", "b"], missing="cell")).tolist() == [0, 1, 2]


def test_labels_are_what_people_read():
    label = coding.bucket_label
    assert label(s.integer("x", 30, 49), 3) == "33"
    assert [label(s.integer("x", 30, 49, 2), c) for c in (0, 1)] == ["30..39", "40..49"]
    assert [label(s.real("x", 0, 1, 4), c) for c in (0, 3)] == ["[0, 0.25)", "[0.75, 1]"]
    assert [label(s.paper_buckets("x", 0, 10, 3), c) for c in (1, 2)] == ["[5, 10)", "10"]
    assert label(s.date("x", "2020-01-01", "2020-12-31", 12), 0) == "2020-01-01..2020-01-30"
    assert label(s.time("x", "00:00", "23:59:59", 24), 23) == "23:00:00..23:59:59"
    assert label(s.ordered("x", ["a", "b"], missing="cell"), 1) == "b"
    assert label(s.ordered("x", ["a", "b"], missing="cell"), 2) == "missing"
    with pytest.raises(ValueError, match=r"a code of x in 0\.\.3, got 4"):
        label(s.codes("x", 4), 4)


def test_declared_range_is_what_people_wrote():
    assert coding.declared_range(s.date("x", "2020-01-01", "2020-12-31")) == "2020-01-01..2020-12-31"
    assert coding.declared_range(s.nominal("x", ["a", "b"])) == "a, b"
