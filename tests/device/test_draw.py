"""The one draw. A value that fits counts as its code, one beyond the ends as the nearer end, the rest as a stand-in."""

import datetime as dt
import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import LAWS, Attribute, Schema, ValueRefused
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.device.laws import GRRLaw, HaarLaw, HRRLaw, OLHLaw, OUELaw, SSLaw, SUELaw, SWLaw
from ahead_ldp.device.partition import GridForm
from ahead_ldp.device.question import Question
from tests.device.enumeration import enumerated, enumerated_draw

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


class Bare:
    """No noise at all: the payload is the cell."""

    def draw(self, code, words):
        return code.to_bytes(4, "big")


def question_of(law, attributes, cuts):
    places = tuple(range(len(attributes)))
    return Question(Schema(attributes), "0" * 64, "1" * 64, 1, "1", exact_epsilon("1"), places, GridForm(cuts), law)


def fitted_code(attribute, value, words):
    """The code that is drawn for a value, and whether it is the value's own."""
    question = question_of(Bare(), (attribute,), (tuple(range(1, attribute.size)),))
    payload, replaced = question.draw({attribute.name: value}, words)
    assert replaced in ((), (attribute.name,))
    return int.from_bytes(payload, "big"), not replaced


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
    question = question_of(LAWS["oue"].make("1", 4), (AGE, SIZE), ((40,), (1,)))
    expected, words = Seeded(), Seeded()
    whole, replaced = question.draw({"age": 30, "size": "M"}, expected)
    assert replaced == ()
    payload, _ = question.draw({"age": age, "size": size}, words)
    assert (len(payload), words.taken) == (len(whole), expected.taken)


def test_the_record_is_read_once_and_its_misfits_are_named():
    question = question_of(LAWS["grr"].make("1", 4), (AGE, SIZE), ((40,), (1,)))
    assert question.draw({}, Seeded())[1] == ("age", "size")
    assert question.draw({"age": 30}, Seeded())[1] == ("size",)
    assert question.draw({"age": True, "size": "M"}, Seeded())[1] == ("age",)
    for missing in ("age", "size"):  # a program that can mend its record is told, and nothing is drawn
        with pytest.raises(ValueRefused, match=f"^{missing} is missing"):
            question.report({"age": 30, "size": "M", missing: None})


# The exact law, by enumeration of all small words.

RANK = Attribute("rank", "integer", 5, 8)  # four codes in three cells, no code for a missing one
LEVEL = Attribute("level", "integer", 5, 8, missing="cell")  # five codes in three cells, the last for a missing one
FIT = (5, 6, 7, 8)
MISFIT = (4, 9, -math.inf, 10**40, None, "6", 6.5, True, math.nan, b"", object())
SMALL = {  # a law on small words, and the wide words that it takes before its coin
    "grr": (GRRLaw(3, 4, 9), [()]),
    "oue": (OUELaw(3, 3, 2), [()]),
    "sue": (SUELaw(3, 3, 5), [()]),
    "ss": (SSLaw(3, 4, 9, 1), [()]),
    "hrr": (HRRLaw(3, 4, 11), [(row,) for row in range(4)]),
    "haar": (HaarLaw(3, 4, 11), [(row,) for row in range(2)]),
    "olh": (OLHLaw(3, 4, 9, 3), [(1, 2, 3), (2**30, 2**29, 7), (0, 2**30, 0)]),
    "sw": (SWLaw(3, 4, 9, 0), [()]),
}


def exact_law(question, value, tail):
    """P(payload) for one value: every code is the spare one equally often."""
    (attribute,) = question.asked
    law = Counter()
    for spare in range(attribute.size):
        drawn, rest = enumerated_draw(
            lambda words: question.draw({attribute.name: value}, words)[0], question.law.bits, (spare, *tail)
        )
        assert rest == 0
        for payload, probability in drawn.items():
            law[payload] += probability / attribute.size
    return law


def test_every_law_is_enumerated():
    assert set(SMALL) == set(LAWS)


def check_privacy(question, tails):
    """Values that fit have the law of their cell; with the others among them no ratio is beyond the law's own."""
    (attribute,), law = question.asked, question.law
    worst = []
    for tail in tails:
        laws = {repr(value): exact_law(question, value, tail) for value in (*FIT, *MISFIT)}
        for value in FIT:
            assert laws[repr(value)] == enumerated(law, question.cell({attribute.name: value}), tail)[0]
        for payload in set().union(*laws.values()):
            chances = [law_of_value[payload] for law_of_value in laws.values()]
            assert min(chances) > 0
            worst.append(max(chances) / min(chances))
    assert max(worst) == law.ratio()


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("attribute", [RANK, LEVEL], ids=lambda a: a.name)
def test_the_law_of_a_report_is_exactly_private_for_every_value(attribute, name):
    law, tails = SMALL[name]
    check_privacy(question_of(law, (attribute,), ((1, 3),)), tails)


class Telling(Question):
    """A mutant: for a value that does not fit the report has no noise."""

    def draw(self, values, words):
        payload, replaced = super().draw(values, words)
        return (bytes(len(payload)) if replaced else payload), replaced


class Marked(Question):
    """A mutant: for a value that does not fit the lowest bit of the report is always set."""

    def draw(self, values, words):
        payload, replaced = super().draw(values, words)
        return (payload[:-1] + bytes([payload[-1] | 1]) if replaced else payload), replaced


@pytest.mark.parametrize("mutant", [Telling, Marked])
@pytest.mark.parametrize("name", SMALL)
def test_a_draw_that_shows_what_does_not_fit_is_caught(name, mutant):
    law, tails = SMALL[name]
    right = question_of(law, (RANK,), ((1, 3),))
    fields = (right.schema, right.campaign, right.digest, 1, "1", right.epsilon, (0,), right.partition, law)
    with pytest.raises(AssertionError):
        check_privacy(mutant(*fields), tails)
