"""Typed questions that cannot be answered: what is said to whoever typed them."""

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.dashboard import found
from ahead_ldp.service.dashboard.analyses import margins_of
from ahead_ldp.service.dashboard.unread import pointed, signed, unread, unread_part

EXAMPLES = ["age > 58", "age in 18..58", "", "town in {North}"]


@pytest.fixture(scope="module")
def estimate():
    rng = np.random.default_rng(1)
    people = {"age": rng.integers(18, 99, 500), "town": rng.choice(["North", "West"], 500)}
    return ahead_ldp.simulate(people, ["age=integer,18,99", "town=nominal,North|West"], epsilon=2, seed=1)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("salary > 5", "Nobody was asked about “salary”. You can ask about age, town."),
        ("Age > 30", "Nobody was asked about “Age”. You can ask about age, town."),
        ("age > 500", "The answers about age go from 18 to 99."),
        ("age between 40 and 30", "The first end of a range comes first, as in age > 58."),
        ("town = East", "town has these choices: North, West."),
        ("age > 52.000", "“52.000” is no answer about age. Try age > 58."),
        ("age > 1e400", "“1e400” is no answer about age. Try age > 58."),
        ("age > " + "9" * 400, "This number is too large for age."),
        ("town > North", "The choices of town have no order: ask as in town in {North}."),
        ("age = 18 and age = 19", "Name age once, as in age > 58."),
        ("age > 30 or town = West", "“or” joins answers to one question. Ask about each alone."),
        ("x" * 3000 + " > 3", "Nobody was asked about “" + "x" * 39 + "…”."),
    ],
)
def test_what_is_wrong_is_said_in_words(estimate, typed, said):
    assert unread(refused(estimate, typed), estimate.schema.attributes, EXAMPLES).startswith(said)


@pytest.mark.parametrize(
    "typed", ["", "nonsense", "age", "older than 40", "age >> 3", "age in 1..2..3", "\U0001f600", "y" * 9999]
)
def test_anything_else_brings_examples(estimate, typed):
    shown = unread(refused(estimate, typed), estimate.schema.attributes, EXAMPLES)
    assert shown == (
        "This could not be read as a question. Write it as one of these: age > 58; age in 18..58; town in {North}."
    )


@pytest.mark.parametrize(
    ("typed", "between"),
    [
        ("cold = -15", "cold between -15 and -14.5"),
        ("cold = 10", "cold between 9.5 and 10"),  # the last part has its end in it
        ("cold between -15 and -15.0", "cold between -15 and -14.5"),
        ("cold = 3 or cold > 5", "cold between 3 and 3.5"),
        ("age = 40 and pay = 52k", "pay between 50000 and 55000"),
        ("cold > -15", ""),
        ("cold between -15 and -14.9", ""),
        ("age = 40", ""),
        ("town = North", ""),
    ],
)
def test_one_number_of_a_range_of_reals_has_no_share(typed, between):
    schema = as_schema(["cold=real,-40,10,100", "age=integer,18,99", "town=nominal,North|West", "pay=real,0,200000,40"])
    said = pointed(typed, schema)
    assert bool(said) == bool(between)
    assert said.endswith(f"Ask about a range, as in {between}." if between else "")


def test_the_minus_sign_of_our_own_tables_is_read():
    schema = as_schema(["cold=real,-40,10,100", "change=nominal,below −5|above"])
    assert signed("cold > −15 vs cold < − .5", schema.attributes[:1]) == "cold > -15 vs cold < - .5"
    assert signed("change = below −5", schema.attributes) == "change = below −5"  # a choice of this name


BY = {"by": "town", "bins": "", "what": "mean", "of": "age", "query": "", "first": "", "second": ""}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda e: found.groups(e, {**BY, "bins": "x"}, {}), "Ranges: please write a whole number of 1 or more."),
        (
            lambda e: found.groups(e, {**BY, "by": "age", "bins": "0", "what": "share", "query": "town = West"}, {}),
            "Ranges: please write a whole number of 1 or more.",
        ),
        (lambda e: found.groups(e, {**BY, "bins": "2"}, {}), "The choices of town have no order: count shares."),
        (lambda e: found.groups(e, {**BY, "by": "age"}, {}), "age makes the groups. Ask about something else."),
        (
            lambda e: found.groups(e, {**BY, "what": "share"}, {}),
            "Please write of which people you want the share, as in age > 58.",
        ),
        (
            lambda e: found.groups(e, {**BY, "first": "East", "second": "West"}, {}),
            "There is no group “East”. These are the choices: North, West.",
        ),
        (
            lambda e: found.groups(e, {**BY, "first": "West", "second": "West"}, {}),
            "Please choose two different groups.",
        ),
        (lambda e: found.pair(e, "age", "age", {}), "Please choose two different questions."),
        (lambda e: weighed(e, "town,North"), "“town,North” is no line of question, category, share."),
        (lambda e: weighed(e, "town,North,1\ntown,North,2"), "The known shares of town have “North” twice."),
        (lambda e: weighed(e, ""), "Please write the known shares, a line for each category."),
        (lambda e: weighed(e, "town,North,1"), "The share of “West” of town is missing."),
        (lambda e: weighed(e, "town,North,-1\ntown,West,1"), "Shares of town are 0 or more, not all 0."),
        (lambda e: weighed(e, "town,North,0.2\ntown,West,0.2"), "The shares of town sum to 0.4."),
        (lambda e: weighed(e, "size,S,1"), "Nobody was asked about “size”. You can ask about age, town."),
    ],
)
def test_what_is_wrong_in_a_form_of_analyses_is_said_in_words(estimate, asked, said):
    with pytest.raises(ValueError, match="expected") as error:
        asked(estimate)
    assert unread_part(error.value, estimate.schema.attributes, "age > 58") == said


def weighed(estimate, lines):
    return found.weighted(estimate, {"margins": margins_of(lines), "queries": ["age > 58"], "level": 0.95})


def refused(estimate, typed):
    with pytest.raises(ValueError, match="expected") as error:
        estimate.ask(typed)
    return error.value
