"""What people type into the form of a new campaign: numbers as they write them, and complaints in the form's words."""

import re
from decimal import Decimal

import pytest

from ahead_ldp.cli.survey import ask_survey
from ahead_ldp.protocol.turnout import TooFewPeople
from ahead_ldp.service.campaigns.entries import Unclear, complaint, number
from ahead_ldp.service.dashboard import drafts, plans

FORM = {
    **drafts.FIELDS,
    **{"title": "Pay", "purpose": "To know.", "controller": "Town", "contact": "t@x.example"},
    **{f"q1_{name}": text for name, text in drafts.FIRST.items()},
}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("52000", 52_000), ("52,000", 52_000), ("52 000", 52_000), ("52\u202f000", 52_000), ("52'000", 52_000),
        ("1,000,000", 1_000_000), ("1.000.000", 1_000_000), ("52k", 52_000), ("1.5m", 1_500_000), ("1e5", 100_000),
        ("-5", -5), ("\u22125", -5), ("1,5", Decimal("1.5")), ("0.125", Decimal("0.125")), ("٣", 3), (" 7 ", 7),
    ],
)  # fmt: skip
def test_a_number_is_read_as_people_write_it(text, meant):
    assert number(text, "People") == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("52.000", "“52.000” can be read in two ways. Please write 52000 or 52."),
        ("1.250", "Please write 1250 or 1.25."),
        ("", "please write a number."), ("many", "please write a number."), ("\U0001f600", "please write a number."),
        ("nan", "please write a number."), ("inf", "please write a number."), ("1e400", "please write a number."),
        ("9" * 400, "this number is too large."), ("1e40", "this number is too large."),
        ("½", "please write a number."),
        ("5,00,0", "please write a number."), ("--5", "please write a number."), ("k", "please write a number."),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_asked_back_and_never_repeated_at_length(text, said):
    with pytest.raises(Unclear, match=re.escape(said)) as refused:
        number(text, "People")
    assert str(refused.value).startswith("People: ")
    assert len(str(refused.value)) < 100


EXPERT = {"attributes", "method", "close", "enrolment", "q1_kind", "q1_outside"}  # written by experts, or chosen
ODD = ["", "52.000", "1e5", "\U0001f600", "9" * 400, "-5", "0", "nan", "<b>x</b>", "a\u202eb", "x" * 2000, "1,2,3"]


@pytest.mark.parametrize("field", [*drafts.FIELDS, *(f"q1_{name}" for name in drafts.QUESTION)])
def test_nothing_that_is_typed_brings_more_than_a_sentence(field):
    for odd in ODD:
        form = {**FORM, "close": "both", "days": "3", field: odd}
        for tried in (drafts.terms_of, plans.plan):
            try:
                tried(form)
            except (ValueError, TypeError) as error:
                said = complaint(error)
                assert len(said) < 400, (field, odd[:20])
                if field not in (
                    "attributes",
                    "method",
                    "close",
                    "enrolment",
                    "q1_kind",
                    "q1_outside",
                ):  # chosen, or for experts
                    assert "expected" not in said or "printable" in said or "control" in said, (field, odd[:20], said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"title": "", "contact": " "}, "Please fill in: Title, Contact."),
        ({"people": "50"}, "50 people are too few for this: 139 would do. Every group of people has to reach 100"),
        ({"epsilon": "99"}, "Privacy (epsilon): please write a number from 0.01 to 16."),
        ({"enough": "50"}, "Answers in every group: please write 100 or more."),
        ({"enough": "9000"}, "Answers in every group: please write 337 or less."),
        ({"close": "time", "days": ""}, "Days: please write a number."),
        ({"q1_from": ""}, "Question 1, Smallest answer: please fill it in."),
        ({"q1_to": "10"}, "Question 1: the largest answer has to be above the smallest."),
        ({"q1_to": "1e15"}, "Question 1: these are too many answers to count one by one. Please take larger steps."),
        ({"q1_step": "5"}, "steps of 5 do not end at 99. Make 103 the largest answer, or take other steps."),
        ({"q1_to": "1000018", "q1_step": "100"}, "these are 10,000 steps, and 4,096 is the most."),
        ({"q1_name": "a,b"}, "Short name: please take letters and digits, without = , and |."),
        ({"q1_question": ""}, "Question 1: please write the question as people read it."),
        ({"q1_borders": "1,000, 5,000"}, "each has to be larger than the one before. Write 1000, not 1,000"),
        ({"q1_kind": "day"}, "Question 1, First day: please write a day as 2026-12-31."),
        ({"q1_kind": "scale", "q1_choices": "one"}, "Choices: please write at least two, one a line."),
        ({"q1_kind": "choice", "q1_choices": "a\na"}, "Choices: two of them are the same."),
        ({f"q4_{k}": v for k, v in drafts.FIRST.items()}, "Question 2, Short name: question 1 has this name already."),
    ],
)  # fmt: skip
def test_a_complaint_names_the_field_and_what_to_do(change, said):
    with pytest.raises((Unclear, TooFewPeople)) as refused:
        drafts.terms_of({**FORM, **change})
    assert said in complaint(refused.value)


def test_numbers_of_the_form_are_taken_as_they_are_meant():
    typed = {"people": "20k", "q1_to": "160 000", "q1_from": "0", "q1_step": "5,000"}
    with pytest.raises(Unclear, match="Fewest answers of a group: please write a whole number"):
        drafts.terms_of({**FORM, **typed, "minimum": "100.5"})
    campaign = drafts.terms_of({**FORM, **typed, "minimum": "200", "q1_borders": "0; 1,000; 5,000; 160,000"}).campaign
    (attribute,) = campaign.schema.attributes
    assert (attribute.lo, attribute.hi, attribute.edges) == (0, 160_000, (1000, 5000))
    assert campaign.record["method"]["choices"]["users"] == 20_000
    assert campaign.record["minimum"] == 200


def test_the_guide_of_the_command_line_asks_again_at_once():
    said = iter(
        ["Ages", "To plan.", "Town", "t@x.example", "a,b", "How old are you?", "", "age", "How old are you?", "hole",
         "whole", "18", "x", "", "18", "99", "5", "18", "98", "5", "years", "42", "", "", "n",
         "many", "52.000", "50", "", "", "me", "5,000", "", "", "yes", "", "9k", "5,000", "", "", "", ""]
    )  # fmt: skip
    asked = []

    def ask(text):
        asked.append(text)
        return next(said)

    survey = ask_survey(ask)
    assert next(said, None) is None
    assert (survey["people"], survey["question"][0]["to"], survey["minimum"]) == ("5000", "98", "100")
    assert (survey["close"], survey.get("enough")) == ("enough", None)
    again = [text.split("\n")[0] for text in asked if "\n" in text]
    assert again == [
        "The question, Short name: please take letters and digits, without = , and |.",
        "Please write one of these: whole, number, day, scale, choice.",
        "The question, Largest answer: please write a number.",
        "The question: steps of 5 do not end at 99. Make 103 the largest answer, or take other steps.",
        "This: please write a number.",
        "This: “52.000” can be read in two ways. Please write 52000 or 52.",
        "50 people are too few for this: 139 would do. Every group of people has to reach 100 answers, even if only "
        "80 % of them come.",
        "Please write one of these: me, enough, time, both.",
        "Answers in every group: please write 279 or less. If only 80 % of the people come, the smallest group has no "
        "more than that, and its round would never close.",
    ]
