"""Queries in people's words, as boxes of codes; workloads; true answers against counting by hand."""

import datetime as dt
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ahead_ldp.device.codes import Schema
from ahead_ldp.schema import attributes as s
from ahead_ldp.schema import queries as q
from ahead_ldp.schema import workloads
from ahead_ldp.schema.boxes import query_boxes
from ahead_ldp.schema.units import POINT

SCHEMA = s.as_schema(
    [
        s.real("pay", 0, 1000, 10, missing="cell"),
        s.integer("age", 20, 59, 8),
        s.integer("kids", 0, 9),
        s.ordered("size", ["S", "M", "L", "XL"]),
        s.nominal("colour", ["red", "green", "blue", "light blue"]),
        s.date("born", "2020-01-01", "2020-12-31"),
        s.time("at", "00:00", "23:59:59", 24),
    ]
)


def sides(text, name, snap=None):
    """The spans of one attribute in the boxes of a query."""
    boxes = query_boxes(SCHEMA, q.parse_query(text), snap)
    return sorted({tuple(side) for side in boxes[:, SCHEMA.index(name)].tolist()})


def span(attribute, lo, hi, snap=None):
    return query_boxes(Schema((attribute,)), q.Query({attribute.name: (lo, hi)}), snap)[0, 0].tolist()


# From text to conditions.

TEXTS = {
    "salary in 100000..120000 and age in 30..39": {"salary": ("100000", "120000"), "age": ("30", "39")},
    "colour in {red, blue}": {"colour": {"red", "blue"}},
    "colour in{red}": {"colour": {"red"}},
    "size in S..L": {"size": ("S", "L")},
    "age = 30": {"age": ("30", "30")},
    "age=30": {"age": ("30", "30")},
    "age >= 30": {"age": ("30", None)},
    "age<=30": {"age": (None, "30")},
    "age >= 30 and age <= 40": {"age": ("30", "40")},
    "age <= 40 and age >= 30": {"age": ("30", "40")},
    "pay missing": {"pay": None},
    "pay not missing": {"pay": (None, None)},
    "x in -1.5..-.5": {"x": ("-1.5", "-.5")},
    "x in 1e-3...5": {"x": ("1e-3", ".5")},
    "born in 2020-01-01..2020-01-31": {"born": ("2020-01-01", "2020-01-31")},
    "at in 08:00..09:59:59": {"at": ("08:00", "09:59:59")},
    '"net pay" in 1..2 and \'and\' = "a \\" b"': {"net pay": ("1", "2"), "and": ('a " b', 'a " b')},
    "  capital-gain   in   1 .. 2  ": {"capital-gain": ("1", "2")},
    "age > 30": {"age": (q.Beyond("30"), None)},
    "age<30": {"age": (None, q.Beyond("30"))},
    "age > 30 and age <= 40": {"age": (q.Beyond("30"), "40")},
    "age == 30": {"age": ("30", "30")},
    "pay between 30k and 1.5M": {"pay": ("30k", "1.5M")},
    "pay BETWEEN 1 AND 2 AND size IN {S}": {"pay": ("1", "2"), "size": {"S"}},
    "age < 3 or age missing": {"age": q.Either(((None, q.Beyond("3")), None))},
    "(age < 3 or age > 4 and age < 9) and size = M": {
        "age": q.Either(((None, q.Beyond("3")), (q.Beyond("4"), q.Beyond("9")))),
        "size": ("M", "M"),
    },
    "way = by car and net pay > 3": {"way": ("by car", "by car"), "net pay": (q.Beyond("3"), None)},
    "way in {by bus or train, on foot, 1,000}": {"way": {"by bus or train", "on foot", "1", "000"}},
    "(way = by bus or train or way = on foot) and size = M": {
        "way": q.Either((("by bus or train", "by bus or train"), ("on foot", "on foot"))),
        "size": ("M", "M"),
    },
    "way = by car or way = on foot": {"way": q.Either((("by car", "by car"), ("on foot", "on foot")))},
    "net pay between 30,000 and 1 250 000.5": {"net pay": ("30000", "1250000.5")},
    "pay in -5,000..12,345,678": {"pay": ("-5000", "12345678")},
    "size = 'one, two' and pay > '1,000'": {"size": ("one, two", "one, two"), "pay": (q.Beyond("1000"), None)},
    # Words that are keywords only where a sign may stand, and parentheses that have their partner in the word.
    "or = between and between in or..or": {"or": ("between", "between"), "between": ("or", "or")},
    "pay(net) in {a(b), (c)}": {"pay(net)": {"a(b)", "(c)"}},
}


@pytest.mark.parametrize("text, conditions", TEXTS.items(), ids=TEXTS)
def test_text(text, conditions):
    assert q.parse_query(text) == q.Query(conditions)


BAD_TEXTS = {
    "": "the name of an attribute",
    "   ": "the name of an attribute",
    "in 3..4": "the name of an attribute",
    "age": "in, =, >, >=, <, <=, between, missing or not",
    "age in": "a value after in",
    "age in 3": "expected ..",
    "age in 3..": "a value after ..",
    "age in {}": "a value in the set",
    "age in {3": "expected , or }",
    "age in {3,}": "a value in the set",
    "age != 3": "in, =, >, >=, <, <=, between, missing or not",
    "age between 3": "expected and",
    "age between 3 and": "a value after between",
    "age = 3 or size = M": "or between conditions on one attribute here, got age and size",
    "age = 3 or": "the name of an attribute",
    "age < 3 or age > 4 and size = M": "parentheses around the conditions joined by or",
    "size = M and age < 3 or age > 4": "parentheses around the conditions joined by or",
    "(age < 3 or age > 4": "expected or or )",
    "(age < 3 and size = M)": "and between conditions on one attribute here",
    "age = 3)": "expected and",
    "age = 3 and": "the name of an attribute",
    "age = 3 and age = 4": "age to stand once",
    "age >= 3 and age >= 4": "age to stand once",
    "age missing and age >= 4": "age to stand once",
    "age not 3": "expected missing",
    "age = 3,00": "expected and",
    "age = 3000,000": "expected and",
    "age = 3,000,": "expected and",
    "net pay != 3": "expected in, =, >, >=, <, <=, between, missing or not",
    "'age = 3": 'no "\'" outside quotes',
}


@pytest.mark.parametrize("text, message", BAD_TEXTS.items(), ids=repr)
def test_bad_text_is_one_value_error(text, message):
    with pytest.raises(ValueError) as caught:
        q.parse_query(text)
    assert message in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text", ["town = St. John's", "income in {<10k, 10-15k}", "town = a, b", 'town = Old "am" Town', "way = a=b"]
)
def test_names_with_marks_are_told_of_quotes(text):
    with pytest.raises(ValueError, match="a name or value with such marks in it stands in quotes; conditions are"):
        q.parse_query(text)


@pytest.mark.parametrize("text", ["age != 3", "age", "age between 3", "age = 3 and"])
def test_other_mistakes_are_not_told_of_quotes(text):
    with pytest.raises(ValueError, match="conditions are") as caught:
        q.parse_query(text)
    assert "quotes" not in str(caught.value)


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1) | st.sampled_from(
    [
        "and",
        "in",
        "missing",
        "not",
        "a b",
        "1.",
        ".5",
        "..",
        "{",
        ",",
        "=",
        '"',
        "'",
        "\\",
        "1_0",
        "or",
        "between",
        "(",
        ")",
        "(a",
        "a)",
        "(a)",
        "5k",
    ]
)
ends = st.none() | words | st.builds(q.Beyond, words)
plain = st.none() | st.frozensets(words, min_size=1) | st.tuples(ends, ends)


@given(
    st.dictionaries(
        words,
        plain | st.builds(q.Either, st.lists(plain, min_size=2, max_size=3).map(tuple)),
        min_size=1,
    )
)
def test_a_query_reads_back_from_its_text(conditions):
    query = q.Query(conditions)
    assert q.parse_query(str(query)) == query


def test_queries_from_values():
    day = dt.date(2020, 2, 1)
    query = q.Query({"born": (day, dt.date(2020, 2, 29)), "kids": 3, "size": "S", "pay": (1.5, None)})
    boxes = query_boxes(SCHEMA, query)
    assert boxes[0, SCHEMA.index("born")].tolist() == [31, 60]
    assert boxes[0, SCHEMA.index("kids")].tolist() == [3, 4]
    assert boxes[0, SCHEMA.index("size")].tolist() == [0, 1]
    np.testing.assert_array_equal(query_boxes(SCHEMA, q.parse_query(str(query))), boxes)


FORMS = [
    ("age in 30..39", ("age", 30, 39)),
    ("age in 30..39", {"age": (30, 39)}),
    ("age = 30", ("age", 30)),
    ("age > 30", ("age", ">", 30)),
    ("age <= 30", ("age", "<=", np.int64(30))),
    ("size in S..L", ("size", "S", "L")),
    ("size in {S, L} and kids = 2", {"size": ["S", "L"], "kids": 2}),
    ("size in {S, L}", ("size", "in", {"S", "L"})),
    ("pay >= 0.4k and kids = 1", q.Query({"pay": (400, None), "kids": 1})),
    ("kids = 1 or kids >= 7", {"kids": q.Either((1, (7, None)))}),
    ("pay missing", {"pay": None}),
]


@pytest.mark.parametrize("text, form", FORMS, ids=[f"{i} {text}" for i, (text, _) in enumerate(FORMS)])
def test_every_form_of_a_query_means_the_same(text, form):
    expected = query_boxes(SCHEMA, q.parse_query(text))
    np.testing.assert_array_equal(query_boxes(SCHEMA, q.as_query(form)), expected)
    np.testing.assert_array_equal(query_boxes(SCHEMA, q.parse_query(str(q.as_query(form)))), expected)


@pytest.mark.parametrize("form", [3, None, ["age"], ("age",), ("age", 1, 2, 3), (1, 2, 3)], ids=repr)
def test_what_is_no_query_is_one_value_error(form):
    with pytest.raises(ValueError, match=r'expected a query as a text such as "age in 30\.\.39", a Query'):
        q.as_query(form)


def test_a_list_is_a_choice_and_a_tuple_a_range():
    assert q.Query({"size": ["S", "L"]}) == q.Query({"size": {"S", "L"}}) != q.Query({"size": ("S", "L")})
    with pytest.raises(ValueError, match=r"got None; a range is a tuple \(lo, hi\)"):
        q.Query({"age": [1, None]})
    with pytest.raises(ValueError, match="several values are a list"):
        q.Query({"age": (1, 2, 3)})


# From conditions to boxes.


def test_ends_that_are_left_out():
    assert sides("kids > 2 and kids < 5", "kids") == [(3, 5)]
    assert sides("size > S", "size") == [(1, 4)]
    assert sides("born < 2020-01-03", "born") == [(0, 2)]
    assert sides("pay > 150 and pay < 275", "pay") == [(1.5, 2.75)]
    assert sides("pay < 1000", "pay") == [(0, 10 - POINT)]  # who has the maximum is in the last bucket
    assert sides("kids < 2 or kids > 7 or kids = 8", "kids") == [(0, 2), (8, 10)]
    assert sides("pay >= 0.5k or pay missing", "pay") == [(5, 11)]
    last_alone = s.paper_buckets("x", 0, 10, 11)
    assert span(last_alone, 5, q.Beyond(10)) == [5, 10]
    assert span(last_alone, 5, 10) == [5, 11]
    for text, message in [
        ("colour > red", "a set for the nominal attribute colour, got the range colour > red"),
        ("kids > 9", "a range that meets 0..9, declared for kids, got kids > 9"),
        ("kids > 4 and kids < 5", "lo <= hi in the range for kids, got kids > 4 and kids < 5"),
        ("kids > 1.5k", "a range that meets 0..9"),
        ("kids > 1.5", "a value of kind integer for kids, got '1.5'"),
        ("kids > 0.0005M", "a range that meets 0..9"),
        ("kids > 0.0005k", "a value of kind integer for kids, got '0.0005k'"),
    ]:
        with pytest.raises(ValueError, match=message):
            query_boxes(SCHEMA, q.parse_query(text))


def test_what_is_not_named_is_everything_and_a_range_leaves_out_the_missing():
    assert query_boxes(SCHEMA, q.Query({})).tolist() == [[[0, size] for size in SCHEMA.sizes]]
    assert sides("kids = 1", "pay") == [(0, 11)]
    assert sides("pay in 0..1000", "pay") == [(0, 10)]
    assert sides("pay >= 0", "pay") == [(0, 10)]
    assert sides("pay not missing", "pay") == [(0, 10)]
    assert sides("pay missing", "pay") == [(10, 11)]
    assert sides("colour not missing", "colour") == [(0, 4)]


def test_ends_inside_a_bucket_are_fractions():
    assert sides("pay in 150..275", "pay") == [(1.5, 2.75)]
    assert sides("pay in 950..1000", "pay") == [(9.5, 10)]
    assert sides("age in 20..24", "age") == [(0, 1)]
    assert sides("age in 22..25", "age") == [(0.4, 1.2)]
    assert sides("age = 59", "age") == [(7.8, 8)]
    assert sides("kids in 2..5", "kids") == [(2, 6)]
    assert sides("at in 08:00..09:59:59", "at") == [(8, 10)]
    assert sides("at in 08:30..08:59:59", "at") == [(8.5, 9)]
    assert sides("born in 2020-02-01..2020-02-29", "born") == [(31, 60)]
    assert sides("size in M..L", "size") == [(1, 3)]
    assert sides("size >= L", "size") == [(2, 4)]


def test_a_real_at_a_border_is_in_the_bucket_above():
    """Whether those who are exactly there belong to a range is a part of that bucket, of no width and any share."""
    assert sides("pay in 100..300", "pay") == [(1, 3 + POINT)]
    assert sides("pay >= 100 and pay < 300", "pay") == [(1, 3)]
    assert sides("pay > 100 and pay <= 300", "pay") == [(1 + POINT, 3 + POINT)]
    assert sides("pay = 300", "pay") == [(3, 3 + POINT)]
    assert sides("pay = 0", "pay") == sides("pay <= 0", "pay") == [(0, POINT)]
    assert sides("pay >= 1000", "pay") == sides("pay = 1000", "pay") == [(10 - POINT, 10)]
    assert sides("pay > 1000", "pay") == [(10, 10)]
    assert sides("pay < 300 or pay >= 300", "pay") == sides("pay <= 300 or pay > 300", "pay") == [(0, 10)]
    last_alone = s.paper_buckets("x", 0, 10, 3)  # [0, 5) [5, 10) {10}
    assert span(last_alone, 10, 10) == [2, 3]
    assert span(last_alone, q.Beyond(5), q.Beyond(10)) == [1 + POINT, 2]
    assert span(last_alone, q.Beyond(10), None) == [3, 3]


def test_a_range_partly_outside_is_clipped():
    assert sides("pay in -5..99", "pay") == [(0, 0.99)]
    assert sides("age in 50..1000", "age") == [(6, 8)]
    assert sides("kids >= -3", "kids") == [(0, 10)]


def test_the_maximum_alone_is_a_bucket():
    attribute = s.paper_buckets("x", 0, 10, 3)  # [0, 5) [5, 10) {10}
    assert span(attribute, 0, 10) == [0, 3]
    assert span(attribute, 10, 10) == [2, 3]
    assert span(attribute, 7.5, 10) == [1.5, 3]
    assert span(attribute, 0, math.nextafter(10, 0)) == pytest.approx([0, 2])
    assert span(attribute, 0, 7.5) == [0, 1.5]
    whole = s._edged("x", "integer", [0, 5, 10, 10], "refused")  # 0..4, 5..9, 10
    assert span(whole, 10, 10) == [2, 3]
    assert span(whole, 0, 9) == [0, 2]


def test_sets_become_runs():
    assert sides("colour in {red, green}", "colour") == [(0, 2)]
    assert sides('colour in {red, "light blue", blue}', "colour") == [(0, 1), (2, 4)]
    assert sides("kids in {1, 2, 3, 7}", "kids") == [(1, 4), (7, 8)]
    assert sides("age in {20, 21, 23}", "age") == [(0, 0.4), (0.6, 0.8)]
    boxes = query_boxes(SCHEMA, q.parse_query("colour in {red, blue} and kids in {1, 5, 9}"))
    assert boxes.shape == (6, 7, 2)


def test_snap():
    assert sides("pay in 150..275", "pay", "outward") == [(1, 3)]
    assert sides("pay in 150..275", "pay", "inward") == [(2, 2)]
    assert sides("pay in 50..275", "pay", "inward") == [(1, 2)]
    assert sides("pay in 149..275", "pay", "nearest") == [(1, 3)]
    assert sides("pay in 150..200", "pay", "nearest") == [(2, 2)]
    assert sides("pay = 150", "pay") == [(1.5, 1.5 + POINT)]
    assert sides("pay in 50..200", "pay", "nearest") == [(1, 2)]  # buckets, without whoever is exactly at a border
    assert sides("pay = 150", "pay", "outward") == [(1, 2)]
    assert sides("pay = 200", "pay", "outward") == [(2, 3)]
    assert sides("pay = 1000", "pay", "outward") == [(9, 10)]
    assert sides("pay missing", "pay", "outward") == [(10, 11)]
    assert sides("age in {20, 23}", "age", "outward") == [(0, 1)]


@given(st.data(), st.sampled_from([None, "outward", "inward", "nearest"]))
def test_spans_stay_in_the_domain_and_grow_with_the_range(data, snap):
    attribute = data.draw(
        st.sampled_from([s.real("x", 0, 1, 7), s.paper_buckets("x", 0, 1, 5), s.real_edges("x", [0, 0.1, 0.9, 1])])
    )
    a, b, c, d = sorted(data.draw(st.lists(st.floats(0, 1), min_size=4, max_size=4)))
    assume(b < c)  # one value alone means its bucket, which lies above a range that ends there
    inner, outer = span(attribute, b, c, snap), span(attribute, a, d, snap)
    assert 0 <= outer[0] <= inner[0] <= inner[1] <= outer[1] <= attribute.ordered_size or snap == "inward"
    exact = span(attribute, b, c)
    if snap == "outward":
        assert inner[0] <= exact[0] <= exact[1] <= inner[1]
    if snap == "inward" and inner[0] < inner[1]:
        assert exact[0] <= inner[0] <= inner[1] <= exact[1]


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_whole_numbers_take_their_share_of_a_bucket(count, buckets, data):
    assume(buckets <= count)
    attribute = s.integer("x", 0, count - 1, buckets)
    lo = data.draw(st.integers(0, count - 1))
    hi = data.draw(st.integers(lo, count - 1))
    people = np.bincount([attribute.code(x) for x in range(count)])  # one of each value: uniform in every bucket
    workload = workloads.Workload.from_queries(Schema((attribute,)), [q.Query({"x": (lo, hi)})])
    assert workloads.true_answers(workload, people)[0] == pytest.approx((hi - lo + 1) / count)


BAD_QUERIES = {
    "unknown attribute": ({"rank": (1, 2)}, "expected an attribute among pay, age"),
    "reversed": ({"age": (40, 30)}, "expected lo <= hi in the range for age, got 40..30"),
    "reversed labels": ({"size": ("L", "S")}, "expected lo <= hi in the range for size, got 'L'..'S'"),
    "below": ({"age": (1, 19)}, "a range that meets 20..59, declared for age, got 1..19"),
    "above": ({"pay": (1001, None)}, "a range that meets 0.0..1000.0, declared for pay, got 1001..None"),
    "below, open": ({"kids": (None, -1)}, "a range that meets 0..9, declared for kids"),
    "dates outside": ({"born": ("2021-01-01", "2021-02-01")}, "meets 2020-01-01..2020-12-31, declared for born"),
    "fraction of a year": ({"age": (30.5, 31)}, "a value of kind integer for age, got 30.5"),
    "not a number": ({"pay": ("much", "more")}, "a value of kind real for pay, got 'much'"),
    "NaN": ({"pay": (math.nan, 5)}, "a value of kind real for pay, got nan"),
    "unknown label": ({"size": ("S", "XXL")}, "a category of size among S, M, L, XL, got 'XXL'"),
    "unknown member": ({"colour": {"red", "pink"}}, "a category of colour among red, green"),
    "range of a nominal": ({"colour": ("red", "blue")}, "a set for the nominal attribute colour"),
    "open nominal": ({"colour": ("red", None)}, "a set for the nominal attribute colour"),
    "set of reals": ({"pay": {1.0, 2.0}}, "a range for the real attribute pay, got the set [1.0, 2.0]"),
    "value outside in a set": ({"kids": {1, 10}}, "a range that meets 0..9, declared for kids, got 10..10"),
    "no cell for missing": ({"age": None}, "expected missing='cell' for age to ask for it, got 'refused'"),
}


@pytest.mark.parametrize("conditions, message", BAD_QUERIES.values(), ids=BAD_QUERIES)
def test_bad_query_is_one_value_error(conditions, message):
    with pytest.raises(ValueError) as caught:
        query_boxes(SCHEMA, q.Query(conditions))
    assert message in str(caught.value)


def test_bad_conditions_and_snaps_are_refused():
    with pytest.raises(ValueError, match="at least one value in the set for colour"):
        q.Query({"colour": set()})
    with pytest.raises(ValueError, match=r"expected \(lo, hi\) for age"):
        q.Query({"age": (1, 2, 3)})
    with pytest.raises(ValueError, match="expected snap to be outward, inward, nearest or None, got 'up'"):
        query_boxes(SCHEMA, q.Query({}), "up")


def test_a_query_of_too_many_boxes_is_refused():
    schema = Schema(tuple(s.codes(f"x{i}", 40) for i in range(4)))
    with pytest.raises(ValueError, match="at most 65536 boxes, got 160000"):
        query_boxes(schema, q.Query({name: set(range(0, 40, 2)) for name in schema.names}))


# Workloads.


def test_from_queries_keeps_which_box_belongs_to_which_query():
    workload = workloads.Workload.from_queries(SCHEMA, ["kids = 3", "colour in {red, blue}", q.Query({})])
    assert workload.owner.tolist() == [0, 1, 1, 2]
    assert len(workload) == workload.n == 3
    assert workload.add_up(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [1, 5, 4]
    assert len(workloads.Workload.from_queries(SCHEMA, [])) == 0


def test_from_codes_takes_closed_ranges_in_both_shapes():
    ranges = [[[0, 3], [2, 2]], [[1, 1], [0, 7]]]
    expected = [[[0, 4], [2, 3]], [[1, 2], [0, 8]]]
    for given_ranges in (ranges, np.reshape(ranges, (2, 4)), np.array(ranges, dtype=float)):
        workload = workloads.Workload.from_codes((4, 8), given_ranges)
        assert workload.boxes.tolist() == expected
        assert workload.owner.tolist() == [0, 1]
    assert workloads.Workload.from_codes(s.as_schema("x=codes,4"), [[0, 3]]).sizes == (4,)


BAD_CODES = {
    "reversed": ([[3, 2]], "0 <= lo <= hi <= 7 for attribute 0 of query 0, got 3..2"),
    "negative": ([[0, 1], [-1, 2]], "for attribute 0 of query 1, got -1..2"),
    "beyond": ([[0, 8]], "got 0..8"),
    "fraction": ([[0, 1.5]], "expected whole codes"),
    "NaN": ([[math.nan, 1]], "expected whole codes"),
    "flat": ([0, 1], "of shape (queries, 1, 2) or (queries, 2), got int64 of shape (2,)"),
    "text": ([["0", "1"]], "expected numbers of shape"),
    "too wide": ([[0, 1, 2, 3]], "got int64 of shape (1, 4)"),
    "nothing": (5, "expected numbers of shape"),
}


@pytest.mark.parametrize("ranges, message", BAD_CODES.values(), ids=BAD_CODES)
def test_bad_codes_are_one_value_error(ranges, message):
    with pytest.raises(ValueError) as caught:
        workloads.Workload.from_codes((8,), ranges)
    assert message in str(caught.value)


def test_random_workload_is_two_sorted_uniform_codes():
    workload = workloads.random_workload((4, 9), 20_000, np.random.default_rng(1))
    assert workload.boxes.shape == (20_000, 2, 2)
    lo, hi = workload.boxes[:, 0, 0], workload.boxes[:, 0, 1] - 1
    pairs = np.bincount((lo * 4 + hi).astype(int), minlength=16).reshape(4, 4) / 20_000
    expected = np.triu(np.full((4, 4), 2 / 16), 1) + np.eye(4) / 16
    assert np.abs(pairs - expected).max() < 5 * math.sqrt(0.125 / 20_000)
    again = workloads.random_workload((4, 9), 20_000, np.random.default_rng(1))
    np.testing.assert_array_equal(workload.boxes, again.boxes)


def test_fixed_volume_workload_has_ranges_of_one_length_everywhere():
    workload = workloads.fixed_volume_workload((8, 3), 0.5, 500, np.random.default_rng(2))
    lengths = workload.boxes[..., 1] - workload.boxes[..., 0]
    assert (lengths == [4, 2]).all()
    assert set(workload.boxes[:, 0, 0]) == {0, 1, 2, 3, 4}
    tiny = workloads.fixed_volume_workload((8,), 0.001, 5, np.random.default_rng(2))
    assert (tiny.boxes[..., 1] - tiny.boxes[..., 0] == 1).all()


def test_points_and_prefixes():
    histogram = np.arange(6).reshape(2, 3)
    points = workloads.true_answers(workloads.point_workload((2, 3)), histogram)
    prefixes = workloads.true_answers(workloads.prefix_workload((2, 3)), histogram)
    np.testing.assert_allclose(points, histogram.ravel() / 15)
    np.testing.assert_allclose(prefixes, histogram.cumsum(0).cumsum(1).ravel() / 15)


BAD_WORKLOADS = {
    "no size": (lambda rng: workloads.random_workload((), 5, rng), "at least one attribute"),
    "size 0": (lambda rng: workloads.random_workload((4, 0), 5, rng), "every size to be a positive integer, got 0"),
    "no queries": (lambda rng: workloads.random_workload((4,), 0, rng), "count to be a positive integer, got 0"),
    "count true": (lambda rng: workloads.random_workload((4,), True, rng), "count to be a positive integer, got True"),
    "volume 0": (lambda rng: workloads.fixed_volume_workload((4,), 0.0, 5, rng), "0 < volume <= 1, got 0.0"),
    "volume NaN": (lambda rng: workloads.fixed_volume_workload((4,), math.nan, 5, rng), "0 < volume <= 1, got nan"),
    "too many cells": (lambda rng: workloads.point_workload((5000, 5000)), "at most 16777216 cells, got 25000000"),
    "shape": (
        lambda rng: workloads.Workload((4,), np.zeros((1, 2, 2)), np.zeros(1, int), 1),
        "expected boxes (k, 1, 2)",
    ),
    "outside": (lambda rng: workloads.Workload((4,), np.array([[[0, 5.0]]]), np.zeros(1, int), 1), "hi <= size"),
    "owner": (lambda rng: workloads.Workload((4,), np.array([[[0, 4.0]]]), np.ones(1, int), 1), "owners in 0..0"),
}


@pytest.mark.parametrize("make, message", BAD_WORKLOADS.values(), ids=BAD_WORKLOADS)
def test_bad_workload_is_one_value_error(make, message):
    with pytest.raises(ValueError) as caught:
        make(np.random.default_rng(0))
    assert message in str(caught.value)


# True answers.


def by_hand(workload, histogram):
    """Every cell, times the share of it in every box."""
    answers = np.zeros(workload.n)
    for box, owner in zip(workload.boxes, workload.owner, strict=True):
        for cell in product(*map(range, histogram.shape)):
            overlap = [max(0.0, min(hi, c + 1) - max(lo, c)) for (lo, hi), c in zip(box, cell, strict=True)]
            answers[owner] += math.prod(overlap) * histogram[cell]
    return answers / histogram.sum()


@st.composite
def histograms_and_workloads(draw, whole):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=5))
    histogram = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 9)).filter(np.any))
    k = draw(st.integers(1, 4))
    end = [st.integers(0, size) if whole else st.floats(0, size) for size in shape]
    boxes = [[sorted((draw(e), draw(e))) for e in end] for _ in range(k)]
    owner = np.array(draw(st.lists(st.integers(0, 2), min_size=k, max_size=k)))
    return histogram, workloads.Workload(shape, np.array(boxes, dtype=float), owner, 3)


@given(st.booleans().flatmap(lambda whole: histograms_and_workloads(whole)))
def test_answers_equal_counting_by_hand(case):
    histogram, workload = case
    expected = by_hand(workload, histogram)
    records = np.repeat(np.argwhere(histogram >= 0), histogram.ravel(), axis=0)
    np.testing.assert_allclose(workloads.true_answers(workload, histogram), expected, atol=1e-12)
    np.testing.assert_allclose(workloads.true_answers(workload, histogram / histogram.sum()), expected, atol=1e-12)
    np.testing.assert_allclose(workloads.true_answers_from_records(workload, records), expected, atol=1e-12)
    direct = workloads._overlap(workload.boxes, records).sum(axis=1)
    np.testing.assert_allclose(workload.add_up(direct) / len(records), expected, atol=1e-12)


def test_records_of_a_domain_too_large_for_a_table():
    rng = np.random.default_rng(3)
    sizes = (1000, 1000, 1000)
    records = rng.integers(0, 1000, (5000, 3))
    workload = workloads.random_workload(sizes, 2000, rng)
    inside = (records >= workload.boxes[:40, None, :, 0]) & (records < workload.boxes[:40, None, :, 1])
    answers = workloads.true_answers_from_records(workload, records)
    np.testing.assert_array_equal(answers[:40], inside.all(axis=2).mean(axis=1))


def test_whole_ends_are_exact_for_many_people():
    histogram = np.array([10**15 + 1, 1, 10**15])
    workload = workloads.point_workload((3,))
    assert (workloads.true_answers(workload, histogram) * histogram.sum()).tolist() == histogram.tolist()


BAD_POPULATIONS = {
    "shape": (lambda w: workloads.true_answers(w, np.ones(3)), "a histogram of numbers of shape (4,)"),
    "text": (lambda w: workloads.true_answers(w, ["1"] * 4), "a histogram of numbers of shape (4,)"),
    "negative": (lambda w: workloads.true_answers(w, [1, 1, 1, -1]), "counts >= 0 that are not all 0"),
    "NaN": (lambda w: workloads.true_answers(w, [1, 1, 1, math.nan]), "counts >= 0 that are not all 0"),
    "empty": (lambda w: workloads.true_answers(w, np.zeros(4)), "counts >= 0 that are not all 0"),
    "no records": (lambda w: workloads.true_answers_from_records(w, np.zeros((0, 1), int)), "at least one person"),
    "float records": (lambda w: workloads.true_answers_from_records(w, np.zeros((2, 1))), "expected integer codes"),
    "flat records": (
        lambda w: workloads.true_answers_from_records(w, [0, 1]),
        "expected integer codes of shape (people, 1)",
    ),
    "outside": (lambda w: workloads.true_answers_from_records(w, [[0], [4]]), "got others in column 0"),
}


@pytest.mark.parametrize("call, message", BAD_POPULATIONS.values(), ids=BAD_POPULATIONS)
def test_bad_population_is_one_value_error(call, message):
    with pytest.raises(ValueError) as caught:
        call(workloads.point_workload((4,)))
    assert message in str(caught.value)


def test_room_for_single_numbers_is_kept_apart():
    """Point answers take the boxes without it, bounds from the reports alone take those with it."""
    schema = s.as_schema("pay=real,0,100,10")
    asked = ["pay <= 50", "pay = 50", "pay = 52", "pay >= 100", "pay < 50", "pay > 52"]
    made = workloads.Workload.from_queries(schema, asked)
    assert made.boxes[:, 0].tolist() == [[0, 5], [5, 5], [5.2, 5.2], [10, 10], [0, 5], [5.2, 10]]
    room = (made.reach - made.boxes)[:, 0]
    assert room == pytest.approx(np.array([[0, POINT], [0, POINT], [0, POINT], [-POINT, 0], [0, 0], [0, 0]]), abs=1e-14)
    again = workloads.Workload(made.sizes, made.reach, made.owner, made.n)
    assert (again.boxes == made.boxes).all()
