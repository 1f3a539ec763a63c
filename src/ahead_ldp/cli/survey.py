"""The guide of `ahead campaign new`: questions on a terminal that become a survey, in the words of survey.toml."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ahead_ldp.protocol import turnout
from ahead_ldp.service.campaigns import campaign as campaigns
from ahead_ldp.service.campaigns import entries
from ahead_ldp.service.campaigns import survey as surveys

Ask = Callable[[str], str]

_HEAD = [
    ("title", "Title"),
    ("purpose", "Purpose, in one or two sentences that people read first"),
    ("controller", "Who is responsible"),
    ("contact", "Contact"),
]
_PEOPLE = "How many people do you expect"
_CLOSE = "What closes a round: me, enough (answers), time, or both"
_ENOUGH = "Answers of every group that are enough (may be empty: what 80 % of the people bring)"


def ask_survey(ask: Ask) -> dict[str, Any]:
    """A survey from answers. What cannot be is said at once and asked for again, so nothing that was typed is lost."""
    survey: dict[str, Any] = {name: _needed(ask, text) for name, text in _HEAD}
    survey["question"] = [_question(ask)]
    while ask("One more question? [y/N] ").strip().lower() in ("y", "yes"):
        survey["question"].append(_question(ask))
    wrong = ""
    while True:
        planned = survey | _plan(ask, wrong)
        try:
            _check(planned)
            return planned
        except (turnout.TooFewPeople, entries.Unclear) as error:
            wrong = entries.complaint(error)


def _plan(ask: Ask, wrong: str) -> dict[str, Any]:
    """How many people, how exact, and when a round ends; what was wrong before is said first."""
    people = _number(ask, f"{wrong}\n{_PEOPLE}" if wrong else _PEOPLE, whole=True)
    epsilon = _number(ask, "Epsilon: how much one answer may give away; 1 is common", "1")
    minimum = _number(ask, "Fewest answers of a group that is counted; nobody can lower it later", "100", whole=True)
    close = _one_of(ask, _CLOSE, surveys.CLOSINGS, "enough")
    plan: dict[str, Any] = {"people": people, "epsilon": epsilon, "minimum": minimum, "close": close}
    if close in ("enough", "both"):
        plan |= _enough(ask)
    if close in ("time", "both"):
        plan["days"] = _number(ask, "Days that a round is open")
    return plan


def _enough(ask: Ask) -> dict[str, str]:
    """How many answers are enough; left empty, it follows from the people expected."""
    asked = _ENOUGH
    while said := ask(f"{asked}: ").strip():
        try:
            return {"enough": str(entries.number(said, "This", whole=True, least=1))}
        except entries.Unclear as error:
            asked = f"{error}\n{_ENOUGH}"
    return {}


def _check(survey: dict[str, Any]) -> None:
    """Whether a server would take it: enough people for the plan, above all."""
    made = surveys.survey_draft(survey)
    schema = made.pop("attributes")
    campaigns.draft({**made, "schema": schema, "created": time.strftime("%Y-%m-%d", time.gmtime())})


def _question(ask: Ask) -> dict[str, Any]:
    words: dict[str, str] = {}
    wrong = ""
    while True:
        said = f"{wrong}\n" if wrong else ""
        words["name"] = _needed(ask, f"{said}Short name of what you ask about, such as age")
        words["question"] = _needed(ask, "The question, as people read it")
        words["kind"] = _one_of(ask, f"Kind of answer: {', '.join(surveys.KINDS)}", tuple(surveys.KINDS), "whole")
        try:
            entries.check_words(words, "The question", texts=True)
            break
        except entries.Unclear as error:
            wrong = str(error)
    asked: dict[str, Any] = {**words, **_answers(ask, words["kind"])}
    if asked["kind"] not in ("scale", "choice"):
        asked["unit"] = ask("Unit, such as years (may be empty): ").strip()
        asked["example"] = ask("Example of an answer (may be empty): ").strip()
        outside = "Outside the range: ask again, or count as the nearest end (ask, nearest)"
        asked["outside"] = _one_of(ask, outside, ("ask", "nearest"), "ask")
    asked["help"] = ask("Help, if the question needs some: ").strip()
    return {key: value for key, value in asked.items() if value}


def _answers(ask: Ask, kind: str) -> dict[str, Any]:
    """The choices, or the range and its steps; asked for again until they go together."""
    wrong = ""
    while True:
        said = f"{wrong}\n" if wrong else ""
        given = {"kind": kind, "borders": "", "choices": ""}
        if kind in ("scale", "choice"):
            choices = [part.strip() for part in _needed(ask, f"{said}Choices, with commas between them").split(",")]
            given["choices"] = "\n".join(choices)
        else:
            first, last = ("First day", "Last day") if kind == "day" else ("Smallest answer", "Largest answer")
            given |= {"from": _needed(ask, said + first), "to": _needed(ask, last)}
            given["step"] = _needed(ask, "Counted in steps of", "1")
        try:
            plain = entries.plain_question(given, "The question")
        except entries.Unclear as error:
            wrong = str(error)
            continue
        return plain or {"choices": choices}


def _number(ask: Ask, text: str, usual: str = "", *, whole: bool = False) -> str:
    """A number, as people write them; asked for again until it is one."""
    asked = text
    while True:
        try:
            read = entries.number(_needed(ask, asked, usual), "This", whole=whole)
            if read > 0:
                return f"{read:f}" if read != Decimal(int(read)) else str(int(read))
            asked = f"This: please write a number above 0.\n{text}"
        except entries.Unclear as error:
            asked = f"{error}\n{text}"


def _one_of(ask: Ask, text: str, known: tuple[str, ...], usual: str) -> str:
    asked = text
    while (said := _needed(ask, asked, usual)) not in known:
        asked = f"Please write one of these: {', '.join(known)}.\n{text}"
    return said


def _needed(ask: Ask, text: str, usual: str = "") -> str:
    while True:
        said = ask(f"{text} [{usual}]: " if usual else f"{text}: ").strip() or usual
        if said:
            return said


def survey_text(survey: dict[str, Any]) -> str:
    """The survey as TOML, to keep and to change."""
    head = [_line(key, value) for key, value in survey.items() if key != "question"]
    tables = [["", "[[question]]", *(_line(key, value) for key, value in q.items())] for q in survey["question"]]
    return "\n".join([*head, *(line for table in tables for line in table), ""])


def _line(key: str, value: object) -> str:
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"
