"""Positions and units: the bulk path agrees with the queries' own, and synthetic records have the codes drawn."""

import datetime as dt

import numpy as np
import pytest

from ahead_ldp.schema import attributes as declare
from ahead_ldp.schema import units
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.boxes import query_boxes
from ahead_ldp.schema.coding import encode
from ahead_ldp.schema.queries import Query

KINDS = [
    declare.integer("a", 18, 99),
    declare.integer("a", -7, 99, 13),
    declare.real("a", -1.5, 20.0, 7),
    declare.real_edges("a", [0.0, 0.5, 3.0, 10.0]),
    declare.paper_buckets("a", 0.0, 10.0, 5),
    declare.date("a", "2020-01-30", "2020-03-02"),
    declare.date("a", "2020-01-01", "2020-12-31", 12),
    declare.time("a", "08:00", "17:59:59", 20),
    declare.datetime("a", "2020-01-01T00:00", "2020-01-03T23:59:59", 48),
    declare.ordered("a", ["S", "M", "L"]),
]
WITH_MISSING = [declare.as_schema("a=integer,0,9,missing=cell"), declare.as_schema("a=real,0,1,4,missing=cell")]
ids = [f"{a.kind}-{a.size}" for a in KINDS]


def values_of(attribute, rng):
    """Values people could hold, in their own units."""
    if attribute.labels:
        return list(attribute.labels)
    if attribute.kind == "real":
        return [float(attribute.lo), float(attribute.hi), *rng.uniform(attribute.lo, attribute.hi, 20).tolist()]
    numbers = rng.integers(attribute.lo, attribute.hi, 20, endpoint=True)
    spoken = units.spoken(attribute, np.append(numbers, [attribute.lo, attribute.hi]).astype(float))
    return spoken.tolist() if attribute.kind != "time" else list(spoken)


@pytest.mark.parametrize("attribute", KINDS, ids=ids)
def test_positions_are_those_of_queries(attribute):
    for value in values_of(attribute, np.random.default_rng(1)):
        plain = units._plain(value)
        box = query_boxes(as_schema(attribute), Query({"a": (plain, None)}))[0, 0]
        numbers = units.numbers_of(attribute, [value])
        assert units.positions(attribute, numbers)[0] == pytest.approx(box[0], abs=1e-12) or plain == attribute.hi
        upto = query_boxes(as_schema(attribute), Query({"a": (None, plain)}))[0, 0]
        assert units.positions_after(attribute, numbers)[0] == pytest.approx(upto[1], abs=1e-12)


@pytest.mark.parametrize("attribute", KINDS, ids=ids)
def test_numbers_at_inverts_positions(attribute):
    places = np.linspace(0, attribute.ordered_size - 1, 40, endpoint=False)
    np.testing.assert_allclose(units.positions(attribute, units.numbers_at(attribute, places)), places, atol=1e-9)


def test_positions_beyond_the_range_are_its_ends():
    attribute = declare.integer("a", 10, 19)
    assert units.positions_after(attribute, np.array([-5.0, 9.0, 19.0, 100.0])).tolist() == [0, 0, 10, 10]


@pytest.mark.parametrize("schema", [*map(as_schema, KINDS), *WITH_MISSING], ids=lambda s: s.attributes[0].kind)
def test_decoded_records_have_their_codes(schema):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, schema.sizes[0], (500, 1))
    assert (encode(schema, units.decode(schema, codes, rng)) == codes).all()


def test_decoded_values_fill_their_bucket_evenly():
    schema = as_schema(declare.integer("a", 0, 9, 2))
    drawn = units.decode(schema, np.ones((20_000, 1), np.int64), np.random.default_rng(4))["a"]
    counts = np.bincount(drawn, minlength=10)
    assert counts[:5].sum() == 0
    assert np.abs(counts[5:] - 4000).max() < 5 * np.sqrt(20_000 * 0.2 * 0.8)


def test_centres_are_of_the_values_inside():
    assert units.centres(declare.integer("a", 0, 9, 2), np.array([0, 1]), np.array([0, 1])).tolist() == [2, 7]
    assert units.centres(declare.real("a", 0, 10, 2), np.array([0, 0]), np.array([0, 1])).tolist() == [2.5, 5]


@pytest.mark.parametrize(
    ("attribute", "number", "expected"),
    [
        (declare.real("a", 0, 1e6, 4), 123456.7, "123,457"),
        (declare.integer("a", 0, 99), 31.0, "31"),
        (declare.date("a", "2020-01-01", "2020-12-31"), 18322.0, "2020-03-01"),
        (declare.time("a", "00:00", "23:59:59"), 3600.0 * 8.5, "08:30:00"),
        (declare.ordered("a", ["S", "M"]), 1.4, "M"),
    ],
)
def test_text(attribute, number, expected):
    assert units.text(attribute, number) == expected


def test_text_shows_two_digits_of_the_error():
    real = declare.real("a", 0, 1e6, 4)
    assert units.text(real, 12345.678, 310.0) == "12,350"
    assert units.text(real, 0.123456, 0.0021) == "0.1235"


def test_unknown_category_is_named():
    with pytest.raises(ValueError, match="among S, M, got 'X'"):
        units.numbers_of(declare.ordered("a", ["S", "M"]), ["X"])


def test_numpy_dates_are_read():
    attribute = declare.date("a", "1970-01-01", "1970-12-31")
    numbers = units.numbers_of(attribute, np.array(["1970-01-11", "1970-02-01"], "datetime64[D]"))
    assert numbers.tolist() == [10, 31]
    assert units.numbers_of(declare.time("a", "00:00", "23:00"), [dt.time(1), np.timedelta64(60, "s")]).tolist() == [
        3600,
        60,
    ]
