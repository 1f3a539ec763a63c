"""Every value has a code: those that fit their own, those beyond the ends the nearer end, the rest a stand-in."""

import datetime as dt
import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import LAWS, Attribute, Schema
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.device.fitting import fitted_code, fitted_payload
from ahead_ldp.device.partition import GridForm
from ahead_ldp.device.question import Question

AGE = Attribute("age", "integer", 18, 99)
PAY = Attribute("pay", "real", 0.0, 100.0, (25.0, 50.0, 75.0), missing="cell")
BORN = Attribute("born", "date", 0, 364, missing="value", missing_value="1970-01-02")
SIZE = Attribute("size", "ordered", labels=("S", "M", "L"))
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.dates(), st.datetimes(),
    st.times(), st.lists(st.integers()), st.complex_numbers(), st.decimals(allow_nan=True), st.fractions(),
)  # fmt: skip


class Seeded:
    """Words from a seed, counted."""

    def __init__(self, seed=0):
        self.rng, self.taken = Random(seed), 0

    def take(self, bits):
        self.taken += bits
        return self.rng.getrandbits(bits)


@pytest.mark.parametrize(
    ("attribute", "value", "code"),
    [
        (AGE, 17, 0),
        (AGE, -(10**40), 0),
        (AGE, 100, 81),
        (AGE, 10**40, 81),
        (AGE, 1e300, 81),
        (AGE, -math.inf, 0),
        (PAY, -0.5, 0),
        (PAY, 100.5, 3),
        (PAY, 10**400, 3),
        (PAY, math.inf, 3),
        (PAY, math.nan, 4),
        (PAY, "50", 4),
        (BORN, dt.date(1969, 12, 31), 0),
        (BORN, "2026-01-01", 364),
        (BORN, "yesterday", 1),
    ],
)
def test_what_does_not_fit_counts_as(attribute, value, code):
    assert fitted_code(attribute, value, Seeded()) == (code, False)


@pytest.mark.parametrize("attribute", [AGE, PAY, BORN, SIZE], ids=lambda a: a.name)
def test_what_fits_keeps_its_code(attribute):
    values = {
        "age": range(18, 100), "pay": [0, 24.9, 25, 100, None], "born": ["1970-01-01", "1970-12-31", None],
        "size": ["S", "M", "L"],
    }[attribute.name]  # fmt: skip
    for value in values:
        assert fitted_code(attribute, value, Seeded()) == (attribute.code(value), True)


@pytest.mark.parametrize(("attribute", "value"), [(SIZE, "XL"), (SIZE, None), (AGE, "34"), (AGE, 34.5), (AGE, None)])
def test_what_has_no_place_is_drawn_evenly(attribute, value):
    """A chi-square statistic within five standard deviations of its mean, and far beyond for half of the codes."""
    n, words = 8200, Seeded(7)
    drawn = Counter(fitted_code(attribute, value, words)[0] for _ in range(n))

    def deviation(counts):
        d = attribute.size
        statistic = sum((counts[code] - n / d) ** 2 / (n / d) for code in range(d))
        return (statistic - (d - 1)) / math.sqrt(2 * (d - 1))

    assert abs(deviation(drawn)) < 5
    assert deviation(Counter({code: 2 * count for code, count in drawn.items() if code % 2})) > 20


@given(ANYTHING, ANYTHING)
def test_every_record_gives_a_payload_of_one_length_with_the_same_chance(age, size):
    """No value stops a report, makes it longer, or takes more words for it."""
    schema = Schema((AGE, SIZE))
    law = LAWS["oue"].make("1", 4)
    question = Question(
        schema, "0" * 64, "1" * 64, 1, "1", exact_epsilon("1"), (0, 1), GridForm(((40,), (1,))), law
    )  # fmt: skip
    expected, words = Seeded(), Seeded()
    whole, replaced = fitted_payload(question, {"age": 30, "size": "M"}, expected)
    assert replaced == ()
    found, _ = fitted_payload(question, {"age": age, "size": size}, words)
    assert (len(found), words.taken) == (len(whole), expected.taken)
