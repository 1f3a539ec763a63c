"""The guide of `ahead campaign new`: questions on a terminal that become a survey, in the words of survey.toml."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ahead_ldp.service.campaigns import survey as surveys

Ask = Callable[[str], str]

_HEAD = [
    ("title", "Title"),
    ("purpose", "Purpose, in one or two sentences that people read first"),
    ("controller", "Who is responsible"),
    ("contact", "Contact"),
]
_CLOSE = "Who closes a round: me, enough (people), time, or both"


def ask_survey(ask: Ask) -> dict[str, Any]:
    """A survey from answers, checked; a ``ValueError`` says what cannot be."""
    survey: dict[str, Any] = {name: _needed(ask, text) for name, text in _HEAD}
    survey["question"] = [_question(ask)]
    while ask("One more question? [y/N] ").strip().lower() in ("y", "yes"):
        survey["question"].append(_question(ask))
    survey["people"] = _needed(ask, "How many people do you expect")
    survey["epsilon"] = _needed(ask, "Epsilon: how much one answer may give away; 1 is common", "1")
    survey["minimum"] = _needed(ask, "Fewest answers of a group that is counted; nobody can lower it later", "100")
    survey["close"] = _needed(ask, _CLOSE, surveys.CLOSINGS[0])
    if survey["close"] in ("enough", "both"):
        survey["enough"] = _needed(ask, "Answers of every group that are enough")
    if survey["close"] in ("time", "both"):
        survey["days"] = _needed(ask, "Days that a round is open")
    surveys.survey_draft(survey)
    return survey


def _question(ask: Ask) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "name": _needed(ask, "Short name of what you ask about, such as age"),
        "question": _needed(ask, "The question, as people read it"),
        "kind": _needed(ask, f"Kind of answer: {', '.join(surveys.KINDS)}", "whole"),
    }
    if asked["kind"] in ("scale", "choice"):
        asked["choices"] = [part.strip() for part in _needed(ask, "Choices, with commas between them").split(",")]
    else:
        asked |= {"from": _needed(ask, "Smallest answer"), "to": _needed(ask, "Largest answer")}
        asked["step"] = _needed(ask, "Counted in steps of", "1")
        asked["unit"] = ask("Unit, such as years (may be empty): ").strip()
        asked["example"] = ask("Example of an answer (may be empty): ").strip()
        asked["outside"] = _needed(
            ask, "Outside the range: ask again, or count as the nearest end (ask, nearest)", "ask"
        )
    asked["help"] = ask("Help, if the question needs some: ").strip()
    return {key: value for key, value in asked.items() if value}


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
