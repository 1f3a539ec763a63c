import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import canonical_bytes, digest, parse_canonical
from ahead_ldp.device.canonical import DEEPEST, check_digest, fields, integer

SMALL = 2**53 - 1
KEYS = st.builds(str.__add__, st.sampled_from("abz"), st.text("az09_", max_size=4))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers(-SMALL, SMALL) | TEXTS
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=4) | st.dictionaries(KEYS, v, max_size=4), max_leaves=12)
RECORDS = st.dictionaries(KEYS, VALUES, max_size=5)


@given(RECORDS)
def test_round_trip(record):
    data = canonical_bytes(record)
    assert parse_canonical(data) == record
    assert json.loads(data) == record
    assert digest(record) == hashlib.sha256(data).hexdigest()


@given(RECORDS.filter(lambda r: len(r) > 1))
def test_order_of_keys_does_not_matter_when_writing(record):
    assert canonical_bytes(dict(reversed(record.items()))) == canonical_bytes(record)


@given(RECORDS, st.data())
def test_a_changed_byte_is_refused_or_another_record(record, data):
    good = canonical_bytes(record)
    i = data.draw(st.integers(0, len(good) - 1))
    bad = good[:i] + bytes([data.draw(st.integers(0, 255).filter(lambda b: b != good[i]))]) + good[i + 1 :]
    try:
        other = parse_canonical(bad)
    except ValueError:
        return
    assert canonical_bytes(other) == bad


def test_pinned_bytes_and_digest():
    record = {"b": [1, -2, True, None], "a": {"text": 'é "\\ \n\x1f \u2028'}, "z": SMALL}
    assert canonical_bytes(record) == (
        '{"a":{"text":"é \\"\\\\ \\n\\u001f \u2028"},"b":[1,-2,true,null],"z":9007199254740991}'.encode()
    )
    assert digest({"a": 1}) == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"


OTHER_SPELLINGS = {
    "a space": b'{"a": 1}',
    "a line": b'{"a":1}\n',
    "key order": b'{"b":1,"a":1}',
    "a key twice": b'{"a":1,"a":1}',
    "a key twice, inside": b'{"a":{"b":1,"b":2}}',
    "a float": b'{"a":1.0}',
    "an exponent": b'{"a":1e3}',
    "minus zero": b'{"a":-0}',
    "a long integer": b'{"a":9007199254740992}',
    "a very long integer": b'{"a":' + b"9" * 5000 + b"}",
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":-Infinity}',
    "an escape": b'{"a":"\\u0041"}',
    "a slash": b'{"a":"\\/"}',
    "upper-case escape": b'{"a":"\\u001F"}',
    "a surrogate": b'{"a":"\\ud800"}',
    "an escaped letter": b'{"a":"\\u00e9"}',
    "Latin-1": b'{"a":"\xe9"}',
    "a mark": b'\xef\xbb\xbf{"a":1}',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "an upper-case key": b'{"A":1}',
    "an empty key": b'{"":1}',
    "a list": b"[1]",
    "a number": b"1",
    "nothing": b"",
    "cut off": b'{"a":1',
    "too much": b'{"a":1}{}',
    "depth": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("data", OTHER_SPELLINGS.values(), ids=OTHER_SPELLINGS)
def test_another_spelling_is_refused(data):
    with pytest.raises(ValueError, match="expected a canonical record"):
        parse_canonical(data)


@pytest.mark.parametrize(
    "value", [1.0, float("nan"), 2**53, -(2**53), b"x", {1}, "\ud800", {"A": 1}, {1: 1}, 1j, Ellipsis], ids=repr
)
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(ValueError, match=r"record\.a\[1\]"):
        canonical_bytes({"a": [0, value]})


def test_fields_names_what_is_unknown_or_missing():
    assert fields({"a": 1, "b": 2}, "a b", "x") == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="x without unknown fields, got c"):
        fields({"a": 1, "b": 2, "c": 3}, "a b", "x")
    with pytest.raises(ValueError, match="x to have the field b"):
        fields({"a": 1}, "a b", "x")
    with pytest.raises(ValueError, match="x to be a record, got list"):
        fields([], "a", "x")


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 0, 4])
def test_integer_is_strict(value):
    with pytest.raises(ValueError, match=r"wave to be an integer in 1\.\.3"):
        integer(value, "wave", 1, 3)


@pytest.mark.parametrize("text", ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 63 + "\n", None, 0])
def test_digest_is_64_lower_case_digits(text):
    assert check_digest("0a" * 32, "campaign") == "0a" * 32
    with pytest.raises(ValueError, match="expected campaign"):
        check_digest(text, "campaign")


def test_finding_18_the_bound_on_levels_is_ours_and_not_the_interpreters():
    deep: dict[str, object] = {}
    for _ in range(DEEPEST - 1):
        deep = {"a": deep}
    assert parse_canonical(canonical_bytes(deep)) == deep
    with pytest.raises(ValueError, match="at most 32 levels"):
        canonical_bytes({"a": deep})
    with pytest.raises(ValueError, match="at most 32 levels"):
        parse_canonical(b'{"a":' * (DEEPEST + 1) + b"1" + b"}" * (DEEPEST + 1))
