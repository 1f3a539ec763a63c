"""What stands in the form of a new campaign: as a survey, and as the terms of a campaign."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.uniform import Uniform
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.campaigns import entries
from ahead_ldp.service.campaigns.campaign import Terms, draft
from ahead_ldp.service.campaigns.survey import attribute_text, survey_draft

FIELDS = {
    "title": "", "purpose": "", "controller": "", "contact": "", "consent": "", "epsilon": "1", "people": "10000",
    "minimum": "100", "close": "enough", "enough": "", "days": "", "enrolment": "walk_in", "retention_days": "30",
    "method": "", "attributes": "", "review": "",
}  # fmt: skip
QUESTION = {
    "name": "", "question": "", "kind": "whole", "from": "", "to": "", "step": "1", "unit": "", "example": "",
    "borders": "", "help": "", "choices": "", "outside": "ask", "optional": "",
}  # fmt: skip
FIRST = {
    **QUESTION,
    "name": "age",
    "question": "How old are you?",
    "from": "18",
    "to": "99",
    "unit": "years",
    "example": "42",
}
METHODS = [name for name in MECHANISMS if name != Uniform.name]  # which asks nobody
_RANGED, _LISTED = ("from", "to", "step", "borders", "outside", "unit", "example"), ("choices",)
_BY_STEPS = ("from", "to", "step")
_QUESTION_FIELD = re.compile(r"q([1-9]\d?)_([a-z]+)")


def given_fields(form: Mapping[str, str]) -> dict[str, str]:
    """The fields of the form beside the questions; what is not given is as usual, a box that is not ticked is empty."""
    return {**FIELDS, **{name: text.strip() for name, text in form.items() if name in FIELDS}}


def given_questions(form: Mapping[str, str]) -> list[dict[str, str]]:
    """The questions of the form, in their order."""
    return [question for _, question in sorted(_numbered_questions(form).items())]


def plain(form: Mapping[str, str], *, texts: bool = True) -> dict[str, str]:
    """The form with plain numbers and days; ``Unclear`` says in its words what has to be looked at again."""
    given, numbered = given_fields(form), _numbered_questions(form)
    places = {place: numbered[n] for place, n in enumerate(sorted(numbered), start=1)}
    others = {f"q{place}_{field}": text for place, question in places.items() for field, text in question.items()}
    return entries.plain_form({**given, **others}, places, texts=texts)


def _numbered_questions(form: Mapping[str, str]) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    for name, text in form.items():
        match = _QUESTION_FIELD.fullmatch(name)
        if match and match[2] in QUESTION:
            found.setdefault(int(match[1]), dict(QUESTION))[match[2]] = text.replace("\r\n", "\n").strip()
    return found


def survey_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The survey behind the form, in the words of survey.toml."""
    given = given_fields(form)
    survey: dict[str, Any] = {name: given[name] for name in ("title", "purpose", "controller", "contact", "epsilon")}
    survey |= {name: given[name] for name in ("people", "minimum", "close", "enough", "days", "consent", "enrolment")}
    return survey | {"question": [question_of(q) for q in given_questions(form)]}


def question_of(given: Mapping[str, str]) -> dict[str, Any]:
    """A question of the form, in the words of survey.toml."""
    listed = given["kind"] in ("scale", "choice")
    left_out = _RANGED if listed else (*_LISTED, "unit") if given["kind"] == "day" else _LISTED
    kept: dict[str, Any] = {name: text for name, text in given.items() if text and name not in left_out}
    if listed:
        kept["choices"] = [line.strip() for line in given["choices"].split("\n") if line.strip()]
    elif borders := re.split(r"[\s,;]+", given["borders"].strip(" \t\n,;")) if given["borders"] else []:
        kept = {name: text for name, text in kept.items() if name not in _BY_STEPS} | {"borders": borders}
    return kept | ({"optional": True} if given["optional"] else {})


def terms_of(form: Mapping[str, str]) -> Terms:
    """The terms of the campaign in the form; a ``ValueError`` says what is wrong with it.

    Attributes that somebody wrote as text, behind "advanced", are asked after those of the form.
    """
    form = plain(form)
    given, survey, more = given_fields(form), survey_of(form), _lines(form)
    made = survey_draft(survey) if survey["question"] or not more else _texts_only(survey)
    schema = [*made.pop("attributes"), *more]
    kept = {"review": bool(given["review"]), "retention_days": int(given["retention_days"])}
    method = {"name": given["method"]} if given["method"] else None
    created = time.strftime("%Y-%m-%d", time.gmtime())
    return draft({**made, **kept, "schema": schema, "method": method, "created": created})


def _texts_only(survey: dict[str, Any]) -> dict[str, Any]:
    stand_in = {"name": "x", "from": "0", "to": "1"}
    return survey_draft({**survey, "question": [stand_in]}) | {"attributes": [], "wording": []}


def _lines(form: Mapping[str, str]) -> list[str]:
    return [line.strip() for line in given_fields(form)["attributes"].split("\n") if line.strip()]


def schema_of(form: Mapping[str, str]) -> Schema:
    """The attributes that stand in the form."""
    return as_schema([*(attribute_text(question_of(q)) for q in given_questions(form)), *_lines(form)])
