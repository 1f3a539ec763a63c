"""Surveys in everyday words: what they become, what is refused, and that words cannot inject or get lost."""

import tomllib

import pytest

from ahead_ldp.cli.survey import ask_survey, survey_text
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.schema.attributes import parse_attribute
from ahead_ldp.service.campaigns.campaign import draft
from ahead_ldp.service.campaigns.survey import attribute_text, read_survey, survey_draft
from ahead_ldp.service.dashboard import drafts

SURVEY = """
title = "Pay and age"
purpose = "To know what our members earn."
controller = "Example Association"
contact = "privacy@example.org"
people = 5000
epsilon = 1
minimum = 50
close = "both"
enough = 60
days = 2.5
consent = "Nobody sees your salary."

[[question]]
name = "salary"
question = "What do you earn in a year, before tax?"
kind = "whole"
from = 0
to = 200000
step = 2500
unit = "euro a year"
example = "52000"
help = "Count bonuses.\\nLeave out gifts."
outside = "nearest"

[[question]]
name = "size"
question = "How large is your firm?"
kind = "scale"
choices = ["s", "m", "l"]
labels = ["Small", "Medium", "Large"]
optional = true
"""


def terms(survey):
    made = survey_draft(survey)
    return draft({"created": "2026-01-31", "schema": made.pop("attributes"), **made}).campaign


def test_a_survey_becomes_a_campaign_with_its_words(tmp_path):
    (tmp_path / "survey.toml").write_text(SURVEY, "utf-8")
    campaign = terms(read_survey(tmp_path / "survey.toml"))
    salary, size = campaign.schema.attributes
    assert (salary.lo, salary.hi, salary.edges[:2], salary.ordered_size) == (0, 200000, (2500, 5000), 80)
    assert (size.labels, size.missing) == (("s", "m", "l"), "cell")
    words = campaign.wording["salary"]
    assert (words.question, words.unit, words.outside) == (
        "What do you earn in a year, before tax?", "euro a year", "nearest",
    )  # fmt: skip
    assert words.help == "Count bonuses.\nLeave out gifts."
    assert campaign.wording["size"].choices == ("Small", "Medium", "Large")
    assert campaign.record["closing"] == {"kind": "both", "reports": 60, "seconds": 216_000}
    assert campaign.record["texts"] == {"consent": "Nobody sees your salary."}
    assert Campaign.from_bytes(campaign.encode(), campaign.digest).wording == campaign.wording


def test_words_are_bound_by_the_digest():
    survey = tomllib.loads(SURVEY)
    before = terms(survey).digest
    survey["question"][0]["unit"] = "dollar a year"
    assert terms(survey).digest != before


def test_without_words_the_record_is_as_it_was():
    survey = tomllib.loads(SURVEY)
    survey["question"] = [{"name": "age", "from": 18, "to": 99}]
    assert "wording" not in terms(survey).record


@pytest.mark.parametrize(
    "question, text",
    [
        ({"from": 18, "to": 99}, "age=integer,18,99"),
        ({"from": 0, "to": 40, "step": 20}, "age=integer,0|20|40"),
        ({"kind": "number", "from": "0", "to": "0.3", "step": "0.1"}, "age=real,0.0|0.1|0.2|0.3"),
        ({"kind": "day", "from": "2026-01-01", "to": "2026-01-31", "step": 7}, "age=date,2026-01-01,2026-01-31,5"),
        ({"borders": [0, 18, "65", 120]}, "age=integer,0|18|65|120"),
        ({"kind": "number", "borders": [0, 0.5, 9]}, "age=real,0|0.5|9"),
        (
            {"kind": "day", "borders": ["2026-01-01", "2026-03-01", "2026-12-31"]},
            "age=date,2026-01-01|2026-03-01|2026-12-31",
        ),
        ({"kind": "choice", "choices": ["a, b", "c"]}, "age=nominal,a, b|c"),
        ({"kind": "scale", "choices": ["x", "y"], "optional": True}, "age=ordered,x|y,missing=cell"),
    ],
)
def test_attributes(question, text):
    assert attribute_text({"name": "age", **question}) == text
    assert parse_attribute(text).name == "age"


@pytest.mark.parametrize(
    "change, said",
    [
        ({"name": "a=b"}, "without ="),
        ({"name": "age\u202e"}, "printable"),
        ({"kind": "colour"}, "kind of age"),
        ({"from": "x"}, "from of age"),
        ({"to": 100.5}, "whole numbers"),
        ({"step": 7}, "whole number of steps"),
        ({"step": 0}, "whole number of steps"),
        ({"to": 10**6, "from": 0, "step": 2}, "another step"),
        ({"borders": [0, 5]}, "either the borders of age, or from"),
        ({"from": "", "to": "", "borders": [5]}, "two borders"),
        ({"from": "", "to": "", "borders": "0, 5"}, "two borders"),
        ({"from": "", "to": "", "borders": [0, "x"]}, "borders of age"),
        ({"from": "", "to": "", "borders": [0, 2.5, 5]}, "whole numbers as the borders"),
        ({"from": "", "to": "", "kind": "day", "borders": [0, 5]}, "borders of age to be days"),
        ({"from": "", "to": "", "borders": list(range(5000))}, "another step"),
        ({"kind": "choice"}, "two choices"),
        ({"kind": "choice", "choices": ["a", "b|c"]}, "without"),
        ({"kind": "day"}, "YYYY-MM-DD"),
        ({"colour": 1}, "got colour"),
    ],
)
def test_what_cannot_be_asked_is_said(change, said):
    with pytest.raises(ValueError, match=said):
        attribute_text({"name": "age", "from": 0, "to": 100, **change})


@pytest.mark.parametrize(
    "change, said",
    [
        ({"question": []}, "at least one"),
        ({"title": ""}, "title"),
        ({"close": "soon"}, "close"),
        ({"close": "time", "days": None}, "days"),
        ({"people": 0}, "people"),
        ({"colour": 1}, "got colour"),
        ({"question": [{"name": "age", "from": 0, "to": 9, "unit": "years"}]}, "a question for age"),
    ],
)
def test_what_is_no_survey_is_said(change, said):
    with pytest.raises(ValueError, match=said):
        survey_draft({**tomllib.loads(SURVEY), **change})


def test_the_guide_of_the_command_line_makes_the_same():
    said = iter(
        ["Ages", "To plan.", "Town", "t@x.example", "age", "How old are you?", "", "18", "99", "", "years", "42", "",
         "", "y", "colour", "Which colour?", "choice", "red, blue", "", "", "5000", "", "", "time", "3"]
    )  # fmt: skip
    survey = ask_survey(lambda _: next(said))
    assert next(said, None) is None
    campaign = terms(survey)
    assert campaign.schema.names == ("age", "colour")
    assert campaign.wording["age"].unit == "years"
    assert campaign.record["closing"] == {"kind": "deadline", "seconds": 259_200}
    assert terms(tomllib.loads(survey_text(survey))).record["schema"] == campaign.record["schema"]


def test_the_form_of_the_dashboard_makes_the_same():
    form = {"title": "Ages", "purpose": "To plan.", "controller": "Town", "contact": "t@x.example", "people": "5000",
            "q1_name": "age", "q1_question": "How <b>old</b>?", "q1_kind": "whole", "q1_from": "18", "q1_to": "98",
            "q1_step": "5", "q1_unit": "years", "q1_outside": "nearest", "q1_choices": "left over",
            "q3_name": "size", "q3_question": "How large?", "q3_kind": "scale", "q3_choices": "S\r\nM\r\n\r\nL",
            "q3_unit": "left over", "method": "hdg", "attributes": "pay=real,0,100,10", "csrf": "x"}  # fmt: skip
    campaign = drafts.terms_of(form).campaign
    assert campaign.schema.names == ("age", "size", "pay")
    assert campaign.schema.attributes[0].edges[0] == 23
    assert campaign.schema.attributes[1].labels == ("S", "M", "L")
    assert (campaign.wording["age"].question, campaign.wording["age"].outside) == ("How <b>old</b>?", "nearest")
    assert campaign.wording["size"].unit == ""
    assert "pay" not in campaign.wording
    alone = {name: text for name, text in form.items() if not name.startswith("q")}
    assert drafts.terms_of(alone).campaign.schema.names == ("pay",)
    with pytest.raises(ValueError, match="at least one"):
        drafts.terms_of({**alone, "attributes": ""})
