"""What was found, in sentences."""

import re

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.wording import Wording
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.dashboard.found import numbers
from ahead_ldp.service.dashboard.summaries import sentences
from ahead_ldp.service.rehearsal.people import Truth, synthetic_people

SCHEMA = as_schema(["pay=integer,0,199999,40", "cold=real,-40,10,100", "born=date,1950-01-01,1999-12-31,90"])


@pytest.fixture(scope="module")
def found():
    """Of every attribute the truth, and what is said."""
    codes, made = synthetic_people(SCHEMA, 20_000, np.random.default_rng(1)), {}
    for i, a in enumerate(SCHEMA.attributes):
        truth, counts = Truth(Schema((a,)), codes[:, [i]]), np.bincount(codes[:, i], minlength=a.size)
        estimate = ahead_ldp.simulate(histogram=counts, schema=Schema((a,)), epsilon=1, random_state=2)
        made[a.name] = truth, sentences(estimate, a, None, truth)
    return made


@pytest.mark.parametrize("name", ["pay", "cold"])
def test_the_average_of_numbers_is_said_with_its_interval_and_the_truth(found, name):
    truth, (*_, average, true) = found[name]
    number = r"(-?[\d,.]*\d)"
    pattern = rf"The average is {number} \({number} to {number}\)\."
    shown, low, high = (float(x.replace(",", "")) for x in re.fullmatch(pattern, average).groups())
    assert low <= shown <= high
    assert low <= truth.mean(name) <= high
    told = float(re.fullmatch(rf"In truth it is {number}\.", true)[1].replace(",", ""))
    assert told == pytest.approx(truth.mean(name), abs=(high - low) / 4)  # as exact as the average beside it


def test_days_have_no_average_and_spread_over_days(found):
    counts = np.bincount(found["born"][0].codes[:, 0], minlength=SCHEMA.attributes[2].size)
    estimate = ahead_ldp.simulate(histogram=counts, schema=Schema((SCHEMA.attributes[2],)), epsilon=1, random_state=2)
    assert numbers(estimate, "born", {})["tables"][0]["caption"] == "How born is spread, in days"
    assert not any("average" in text for text in found["born"][1])


def test_an_average_has_its_unit():
    a = SCHEMA.attributes[0]
    estimate = ahead_ldp.simulate(histogram=np.full(40, 500), schema=Schema((a,)), epsilon=2, random_state=1)
    words = Wording("What do you earn?", unit="euro a year")
    assert re.search(r"^The average is [\d,]+ euro a year \([\d,]+ to [\d,]+\)\.$", sentences(estimate, a, words)[-1])
