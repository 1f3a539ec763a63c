import datetime as dt
import math
import traceback
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Attribute, Schema, ValueRefused, canonical_bytes, parse_canonical
from ahead_ldp.device.codes import equal_edges, equal_integer_edges

AGE = Attribute("age", "integer", 18, 99)
PAY = Attribute("pay", "real", 0, 500_000, equal_edges(0, 500_000, 512))
DELAY = Attribute("delay", "real", -5.0, 100.0, (0.0, 1.5, 60.0))
BORN = Attribute("born", "date", -3653, 10957)  # 1960-01-01 .. 2000-01-01
WAKES = Attribute("wakes", "time", 0, 86399, equal_integer_edges(0, 86399, 24))
SEEN = Attribute("seen", "datetime", 0, 86400 * 366, equal_integer_edges(0, 86400 * 366, 12))
SIZE = Attribute("size", "ordered", labels=("S", "M", "L"))
TOWN = Attribute("town", "nominal", labels=("Ulm", "Bonn", "Köln"))
ALL = Schema((AGE, PAY, DELAY, BORN, WAKES, SEEN, SIZE, TOWN))


@pytest.mark.parametrize(
    "attribute, value, code",
    [
        (AGE, 18, 0),
        (AGE, 99, 81),
        (PAY, 0, 0),
        (PAY, 500_000, 511),
        (PAY, Fraction(1, 3), 0),
        (DELAY, -5, 0),
        (DELAY, -0.0, 1),
        (DELAY, 59.99, 2),
        (DELAY, 100, 3),
        (BORN, "1970-01-01", 3653),
        (BORN, dt.date(1960, 1, 1), 0),
        (BORN, "2000-01-01", 14610),
        (WAKES, "06:59:59", 6),
        (WAKES, "06:59:59.999999", 6),
        (WAKES, dt.time(7), 7),
        (WAKES, "23:59:59", 23),
        (SEEN, "1970-01-01T00:00:00", 0),
        (SEEN, dt.datetime(1970, 1, 1, tzinfo=dt.UTC), 0),
        (SEEN, "1970-02-01T00:30:00+02:00", 1),
        (SEEN, "1971-01-02T00:00:00Z", 11),
        (SIZE, "M", 1),
        (TOWN, "Köln", 2),
    ],
)
def test_code_of_a_value(attribute, value, code):
    assert attribute.code(value) == code


def test_sizes():
    assert ALL.sizes == (82, 512, 4, 14611, 24, 12, 3, 3)
    assert ALL.names == ("age", "pay", "delay", "born", "wakes", "seen", "size", "town")
    assert ALL.index("born") == 3


@pytest.mark.parametrize("attribute", [PAY, DELAY], ids=lambda a: a.name)
def test_a_code_is_the_number_of_edges_at_or_below_the_value(attribute):
    for i, edge in enumerate(attribute.edges):
        assert attribute.code(math.nextafter(edge, -math.inf)) == i
        assert attribute.code(edge) == i + 1
        assert attribute.code(math.nextafter(edge, math.inf)) == i + 1


def test_the_bounds_are_inside_and_one_step_beyond_is_not():
    for attribute in (PAY, DELAY):
        assert attribute.code(attribute.lo) == 0
        assert attribute.code(attribute.hi) == attribute.size - 1
        for beyond in (math.nextafter(attribute.lo, -math.inf), math.nextafter(attribute.hi, math.inf)):
            with pytest.raises(ValueRefused, match="outside the declared range"):
                attribute.code(beyond)
    for beyond in (17, 100):
        with pytest.raises(ValueRefused, match="age is outside the declared range"):
            AGE.code(beyond)


@given(st.integers(1, 300), st.integers(-1000, 1000), st.integers(1, 1000), st.data())
def test_equal_buckets_hold_equal_shares(buckets, lo, width, data):
    attribute = Attribute("x", "real", lo, lo + width, equal_edges(lo, lo + width, buckets))
    assert attribute.size == buckets
    # Away from the edges the code is the exact quotient.
    i = data.draw(st.integers(0, buckets - 1))
    middle = lo + width * (Fraction(i) + Fraction(1, 2)) / buckets
    assert attribute.code(middle) == i


@given(st.integers(-50, 50), st.integers(1, 60), st.data())
def test_equal_integer_buckets_differ_by_at_most_one(lo, count, data):
    buckets = data.draw(st.integers(1, count))
    attribute = Attribute("x", "integer", lo, lo + count - 1, equal_integer_edges(lo, lo + count - 1, buckets))
    codes = [attribute.code(v) for v in range(lo, lo + count)]
    held = [codes.count(i) for i in range(buckets)]
    assert codes == sorted(codes)
    assert max(held) - min(held) <= 1


@pytest.mark.parametrize("d", [2, 8, 64, 512])
def test_the_papers_bucketing_is_expressible(d):
    """bucket = floor((x - min) / (max - min) * (D - 1)): the last bucket is the maximum alone."""
    lo, hi = 0, 500_000
    attribute = Attribute("pay", "real", lo, hi, (*equal_edges(lo, hi, d - 1), float(hi)))
    assert attribute.size == d
    grid = [Fraction(lo) + Fraction(hi - lo) * i / 4001 for i in range(4002)]
    for x in [*map(float, grid), hi, math.nextafter(hi, 0), *map(float, range(0, hi + 1, 997))]:
        assert attribute.code(x) == math.floor((Fraction(x) - lo) / (hi - lo) * (d - 1))
    assert attribute.code(hi) == d - 1
    assert attribute.code(math.nextafter(hi, 0)) == d - 2


def test_one_value_is_legal():
    only = Attribute("year", "integer", 2024, 2024)
    assert only.size == 1
    assert only.code(2024) == 0
    assert Attribute("kind", "nominal", labels=("all",)).size == 1
    assert Attribute("x", "real", 0, 1, ()).size == 1


# Missing values.


def test_missing_is_refused_unless_declared():
    with pytest.raises(ValueRefused, match="age is missing"):
        AGE.code(None)


@pytest.mark.parametrize(
    "attribute, code",
    [
        (Attribute("age", "integer", 18, 99, missing="value", missing_value=20), 2),
        (Attribute("pay", "real", 0, 1, (0.5,), missing="value", missing_value=0.5), 1),
        (Attribute("born", "date", 0, 10, missing="value", missing_value="1970-01-03"), 2),
        (Attribute("size", "ordered", labels=("S", "M"), missing="value", missing_value="M"), 1),
    ],
)
def test_missing_as_a_declared_value(attribute, code):
    assert attribute.code(None) == attribute.missing_code == code
    assert attribute.size == attribute.ordered_size
    again = Attribute.from_record(attribute.record())
    assert again == attribute
    assert again.code(None) == code


@pytest.mark.parametrize(
    "attribute",
    [
        Attribute("age", "integer", 18, 99, missing="cell"),
        Attribute("pay", "real", 0, 1, (0.5,), missing="cell"),
        Attribute("town", "nominal", labels=("Ulm", "Bonn"), missing="cell"),
    ],
)
def test_missing_as_a_last_cell_of_its_own(attribute):
    assert attribute.code(None) == attribute.ordered_size == attribute.size - 1
    assert Attribute.from_record(attribute.record()) == attribute


# Errors never show a private value.

CANARY = "canary-8675309"
WRONG = [
    *[(AGE, v) for v in (CANARY, 8675309, -8675309, 8675309.5, 86.75309, True, [8675309], b"8675309", float("nan"))],
    *[(PAY, v) for v in (CANARY, 8675309, "8675309", -0.8675309, float("inf"), float("nan"), 10**400, True, 1j)],
    *[(BORN, v) for v in (CANARY, 8675309, "8675-30-9", "8675-03-09", dt.date(8675, 3, 9), dt.datetime(1970, 1, 1))],
    *[(WAKES, v) for v in (CANARY, 8675309, "86:75:30", dt.datetime(1970, 1, 1))],
    *[(SEEN, v) for v in (CANARY, 8675309, "8675-03-09T00:00", dt.date(1970, 1, 1), "0001-01-01T00:00:00+23:59")],
    *[(a, v) for a in (SIZE, TOWN) for v in (CANARY, 8675309, "s", "", ["S"], float("nan"))],
]


@pytest.mark.parametrize("attribute, value", WRONG)
def test_wrong_value_is_refused_without_being_shown(attribute, value):
    with pytest.raises(ValueRefused) as caught:
        attribute.code(value)
    shown = "".join(traceback.format_exception(caught.value, chain=True)[-1:]) + str(caught.value.args)
    assert attribute.name in shown
    for canary in ("canary", "8675", "0.86", "86.7", "nan", "inf", "1970", "0001-01"):
        assert canary not in shown
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


# Declarations.

BAD = {
    "no name": (lambda: Attribute("", "integer", 0, 1), "name", "''"),
    "spaces": (lambda: Attribute(" a", "integer", 0, 1), "name", "' a'"),
    "name of another type": (lambda: Attribute(7, "integer", 0, 1), "name", "7"),
    "kind": (lambda: Attribute("x", "complex", 0, 1), "kind", "'complex'"),
    "missing": (lambda: Attribute("x", "integer", 0, 1, missing="maybe"), "missing", "'maybe'"),
    "reversed": (lambda: Attribute("x", "integer", 5, 3), "lo < hi", "5 and 3"),
    "empty interval": (lambda: Attribute("x", "real", 3, 3, ()), "lo < hi", "3 and 3"),
    "float bound": (lambda: Attribute("x", "integer", 0, 1.5), "integers", "1.5"),
    "boolean bound": (lambda: Attribute("x", "integer", False, 5), "integers", "False"),
    "long bound": (lambda: Attribute("x", "integer", 2**53, 2**53 + 1), "integers", str(2**53)),
    "NaN": (lambda: Attribute("x", "real", 0.0, float("nan"), ()), "finite", "nan"),
    "infinite": (lambda: Attribute("x", "real", 0.0, float("inf"), ()), "finite", "inf"),
    "beyond doubles": (lambda: Attribute("x", "real", 0, 10**400, ()), "finite", "1" + 400 * "0"),
    "no double": (lambda: Attribute("x", "real", 0, 2**53 + 1, ()), "doubles", str(2**53 + 1)),
    "text as a bound": (lambda: Attribute("x", "real", 0, "1", ()), "finite", "'1'"),
    "no edges": (lambda: Attribute("x", "real", 0, 1), "edges", "x"),
    "edge at lo": (lambda: Attribute("x", "real", 0, 1, (0,)), "edges", "got 0 after 0"),
    "edge twice": (lambda: Attribute("x", "real", 0, 1, (0.5, 0.5)), "edges", "got 0.5 after 0.5"),
    "edge beyond": (lambda: Attribute("x", "real", 0, 1, (1.5,)), "edges", "got 1.5 after 0"),
    "edges fall": (lambda: Attribute("x", "integer", 0, 9, (5, 3)), "edges", "got 3 after 5"),
    "list of edges": (lambda: Attribute("x", "real", 0, 1, [0.5]), "edges", "[0.5]"),
    "too many codes": (lambda: Attribute("x", "integer", 0, 2**31), "codes", str(2**31 + 1)),
    "no buckets": (lambda: equal_edges(0, 1, 0), "buckets", "1.."),
    "half a bucket": (lambda: equal_integer_edges(0, 9, 2.5), "buckets", "1.."),
    "more buckets than integers": (
        lambda: Attribute("x", "integer", 0, 2, equal_integer_edges(0, 2, 9)),
        "edges",
        "got 0 after 0",
    ),
    "no categories": (lambda: Attribute("x", "ordered"), "categories", "[]"),
    "category twice": (lambda: Attribute("x", "nominal", labels=("a", "a")), "categories", "['a', 'a']"),
    "empty category": (lambda: Attribute("x", "nominal", labels=("a", "")), "category", "''"),
    "number as category": (lambda: Attribute("x", "nominal", labels=(1, 2)), "category", "1"),
    "text as categories": (lambda: Attribute("x", "ordered", labels="SML"), "categories", "'SML'"),
    "categories with bounds": (lambda: Attribute("x", "ordered", 0, 5, labels=("a",)), "bounds", "x"),
    "bounds with categories": (lambda: Attribute("x", "integer", 0, 5, labels=("a",)), "categories", "integer"),
    "missing value outside": (
        lambda: Attribute("x", "integer", 0, 5, missing="value", missing_value=6),
        "missing_value",
        "6",
    ),
    "missing value not given": (lambda: Attribute("x", "integer", 0, 5, missing="value"), "missing_value", "None"),
    "missing value not used": (lambda: Attribute("x", "integer", 0, 5, missing_value=3), "missing_value", "x"),
    "no attributes": (lambda: Schema(()), "attributes", "0"),
    "same name": (lambda: Schema((AGE, AGE)), "names", "'age', 'age'"),
    "unknown attribute": (lambda: ALL.index("wage"), "attribute", "'wage'"),
}


@pytest.mark.parametrize("make, rule, value", BAD.values(), ids=BAD)
def test_bad_declaration_is_one_error_with_rule_and_value(make, rule, value):
    with pytest.raises(ValueError, match=r"^expected ") as caught:
        make()
    assert rule in str(caught.value)
    assert value in str(caught.value)


# Records.

NAMES = st.text("abcdefgh éK", min_size=1, max_size=8).map(str.strip).filter(bool)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def attributes(draw, name=NAMES):
    kind = draw(st.sampled_from(["integer", "real", "date", "time", "datetime", "ordered", "nominal"]))
    missing = draw(st.sampled_from(["refused", "cell", "value"]))
    if kind in ("ordered", "nominal"):
        labels = tuple(draw(st.lists(NAMES, min_size=1, max_size=6, unique=True)))
        value = draw(st.sampled_from(labels)) if missing == "value" else None
        return Attribute(draw(name), kind, labels=labels, missing=missing, missing_value=value)
    if kind == "real":
        lo, *inner, hi = sorted(draw(st.sets(DOUBLES, min_size=3, max_size=8)))
        edges = tuple(inner)
    else:
        lo, *inner, hi = sorted(draw(st.sets(st.integers(-(10**6), 10**6), min_size=3, max_size=8)))
        edges = draw(st.sampled_from([None, tuple(inner)]))
    value = None
    if missing == "value":
        if kind in ("integer", "real"):
            value = draw(st.sampled_from([lo, hi]))
        else:
            missing = "cell"
    return Attribute(draw(name), kind, lo, hi, edges, missing=missing, missing_value=value)


@given(st.lists(attributes(), min_size=1, max_size=4, unique_by=lambda a: a.name).map(lambda a: Schema(tuple(a))))
def test_record_round_trip(schema):
    data = canonical_bytes(schema.record())
    again = Schema.from_record(parse_canonical(data))
    assert again == schema
    assert again.digest() == schema.digest()
    assert canonical_bytes(again.record()) == data


def test_digest_is_pinned():
    """A change here breaks every stored campaign."""
    assert ALL.digest() == "3316a3f470cc573962bf8d638e02fa657c3a9eca3e660aae8085a2f923d57e42"


def test_equal_declarations_have_one_digest():
    assert (
        Schema((Attribute("x", "real", -0.0, 1, ()),)).digest()
        == Schema((Attribute("x", "real", 0, 1.0, ()),)).digest()
    )


CHANGES = {
    "unknown field": (DELAY, {"unit": "s"}),
    "field gone": (DELAY, {"edges": ...}),
    "kind": (DELAY, {"kind": "decimal"}),
    "other kind": (DELAY, {"kind": "ordered"}),
    "number for a decimal string": (DELAY, {"lo": -5}),
    "float": (DELAY, {"lo": -5.0}),
    "another spelling": (DELAY, {"lo": "-5"}),
    "longer spelling": (DELAY, {"edges": ["0.0", "1.50", "60.0"]}),
    "minus zero": (DELAY, {"edges": ["-0.0", "1.5", "60.0"]}),
    "infinite": (DELAY, {"hi": "inf"}),
    "NaN": (DELAY, {"hi": "nan"}),
    "edges as text": (DELAY, {"edges": "0.0"}),
    "string for an integer": (AGE, {"lo": "18"}),
    "boolean for an integer": (AGE, {"lo": True}),
    "long integer": (AGE, {"hi": 2**53}),
    "labels as text": (SIZE, {"labels": "SML"}),
    "labels of numbers": (SIZE, {"labels": [1, 2]}),
    "label twice": (SIZE, {"labels": ["S", "S"]}),
    "name": (SIZE, {"name": 3}),
    "missing": (SIZE, {"missing": "perhaps"}),
    "code where none is": (SIZE, {"missing_code": 0}),
    "no code for the cell": (SIZE, {"missing": "cell"}),
    "wrong cell": (SIZE, {"missing": "cell", "missing_code": 2}),
    "float cell": (SIZE, {"missing": "cell", "missing_code": 3.0}),
    "value outside": (SIZE, {"missing": "value", "missing_code": 3}),
    "boolean value": (SIZE, {"missing": "value", "missing_code": True}),
}


@pytest.mark.parametrize("attribute, change", CHANGES.values(), ids=CHANGES)
def test_changed_attribute_record_is_refused(attribute, change):
    changed = {k: v for k, v in {**attribute.record(), **change}.items() if v is not ...}
    with pytest.raises(ValueError, match="expected"):
        Attribute.from_record(changed)


@pytest.mark.parametrize(
    "change",
    [
        {"type": "question"},
        {"version": 2},
        {"version": True},
        {"version": "1"},
        {"attributes": {}},
        {"attributes": []},
        {"x": 1},
    ],
    ids=repr,
)
def test_changed_schema_record_is_refused(change):
    with pytest.raises(ValueError, match="expected"):
        Schema.from_record({**ALL.record(), **change})


def test_edges_of_equal_buckets_begin_at_the_lower_bound():
    assert equal_edges(10, 18, 4) == (12.0, 14.0, 16.0)
    assert equal_edges(-1.5, 1.5, 3) == (-0.5, 0.5)
    assert equal_edges(3, 4, 1) == ()


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_longest_whole_bound_is_read_back(sign):
    bound = sign * (2**53 - 1)
    attribute = Attribute("x", "integer", min(bound, bound - sign * 5), max(bound, bound - sign * 5))
    assert Attribute.from_record(attribute.record()) == attribute
