"""A draft of a schema: kinds from the columns, bounds flagged, and no schema without a review."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ahead_ldp.schema import attributes as s
from ahead_ldp.schema.inferring import WARNING, infer

TABLE = {
    "age": [23, 45, 87],
    "pay": [123.5, None, 1834.25],
    "town": ["B", "A", "B"],
    "member": [True, False, None],
    "born": [dt.date(1950, 3, 4), dt.date(1999, 1, 1), dt.date(1970, 6, 6)],
    "seen": [dt.datetime(2024, 1, 1, 8), dt.datetime(2024, 1, 2, 9, 30), None],
    "at": [dt.time(8), dt.time(9, 30), dt.time(22)],
}
EXPECTED = """age=integer,20,90  # from data
pay=real,0.0,2000.0,64,missing=cell  # from data
town=nominal,A|B  # from data
member=nominal,false|true,missing=cell
born=date,1950-01-01,1999-12-31,64  # from data
seen=datetime,2024-01-01T00:00:00,2024-01-02T23:59:59,64,missing=cell  # from data
at=time,00:00:00,23:59:59,24"""


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_draft_says_what_was_read_from_the_data(make):
    draft = infer(make(TABLE))
    assert str(draft) == f"# {WARNING}\n{EXPECTED}"
    assert draft.from_data == ("age", "pay", "town", "born", "seen")
    assert "To review: age, pay, town, born, seen" in draft._repr_html_()
    assert "to review: age" in repr(draft)


def test_a_draft_becomes_a_schema_by_review():
    draft = infer(TABLE, ["age", "pay", "town", "member"])
    with pytest.raises(ValueError, match=r"age, pay, town read from data; .*accept=True"):
        draft.schema()
    reviewed = draft.review(age=(18, 99), pay="pay=real,0,500k,50", town=["A", "B", "C"])
    assert reviewed.from_data == ()
    assert reviewed.schema() == s.as_schema(
        ["age=integer,18,99", "pay=real,0,500000,50", "town=nominal,A|B|C", "member=boolean,missing=cell"]
    )
    assert draft.review(pay=(0, 500)).schema(accept=True).attributes[1] == s.real("pay", 0, 500, 64, "cell")
    for given, message in [
        ({"wage": (1, 2)}, "attributes among age, pay, town, member, got wage"),
        ({"age": "pay=integer,1,2"}, "a declaration of age, got one of pay"),
        ({"age": 3}, r"two bounds \(lo, hi\), an attribute or its text for age, got 3"),
        ({"town": (1, 2)}, "a list of categories, an attribute or its text for town"),
    ]:
        with pytest.raises(ValueError, match=message):
            draft.review(**given)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (["secret ", "b"], "not all of its texts are 1 to 200 printable characters without spaces around"),
        (["", "b"], "not all of its texts"),
        (["secret\nsecret", "b"], "not all of its texts"),
        (["secret" * 40, "b"], "not all of its texts"),
        ([2**60 + 17, 5], "it holds numbers of 2**52 and more"),
        ([1e300, -5.5], "it holds numbers of 2**52 and more"),
    ],
)
def test_one_column_that_cannot_be_declared_does_not_spoil_the_draft(values, why):
    """Identifiers of 64 bits, texts that no category may be: left out, and no value of anybody in the reason."""
    draft = infer(pd.DataFrame({"age": [23, 45], "odd": values}))
    assert [a.name for a in draft.attributes] == ["age"]
    assert draft.left_out["odd"].startswith(why)
    assert not any(str(value) in str(draft) for value in values if len(str(value)) > 3)


def test_a_column_whose_name_no_attribute_may_have_is_left_out():
    draft = infer(pd.DataFrame({"age": [23, 45], " pay ": [1, 2], "": [1, 2]}))
    assert [a.name for a in draft.attributes] == ["age"]
    assert set(draft.left_out) == {" pay ", ""}


def test_columns_that_suggest_nothing_are_left_out_and_said():
    many = {"id": [f"x{i}" for i in range(100)], "none": [None] * 100, "x": np.arange(100.0), "z": [1j] * 100}
    draft = infer(many)
    assert [a.name for a in draft.attributes] == ["x"]
    assert set(draft.left_out) == {"id", "none", "z"}
    assert "# id: left out, it has more than 64 different texts" in str(draft)
    with pytest.raises(ValueError, match="at least one column that suggests an attribute, got id: it has more than"):
        infer({"id": many["id"]})
    with pytest.raises(ValueError, match="buckets to be a whole number >= 2, got 1"):
        infer(TABLE, buckets=1)


@pytest.mark.parametrize("low, high", [(0, 0), (-3, 3), (5, 5), (99, 101), (0.001, 0.002), (1e9, 2e9), (-7.5, -7.25)])
def test_drafts_hold_every_value(low, high):
    (attribute,) = infer({"x": np.array([low, high])}).attributes
    assert attribute.lo <= low <= high <= attribute.hi


@pytest.mark.parametrize("text", ["a=integer,0,9", "a=real,0,1,4,missing=cell", "a=date,2020-01-01,2020-12-31,12"])
def test_an_attribute_is_written_as_it_is_read(text):
    attribute = s.parse_attribute(text)
    assert s.parse_attribute(s.attribute_text(attribute)) == attribute


def test_what_the_text_form_cannot_hold_is_said():
    with pytest.raises(ValueError, match="no marks of the text form, got a=b"):
        s.attribute_text(s.integer("a=b", 0, 9))
    assert "# <a=b: integer" in str(infer({"a=b": [1, 2]}))
