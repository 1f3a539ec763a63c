"""A survey in everyday words becomes the draft of a campaign: the form of the dashboard and survey.toml both use this.

A question has a name, its wording, and a kind. Numbers and days have a range and a step: answers are counted in steps,
so the borders of a picture are round. Or they have borders of their own, at unequal distances. Choices are listed.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ahead_ldp.device.texts import check_name
from ahead_ldp.device.wording import LONGEST

KINDS = {"whole": "integer", "number": "real", "day": "date", "scale": "ordered", "choice": "nominal"}
CLOSINGS = ("me", "enough", "time", "both")  # who or what closes a round
MOST_STEPS = 4096
_QUESTION = {
    "name", "question", "kind", "unit", "help", "example", "from", "to", "step", "borders", "choices", "labels",
    "outside", "optional",
}  # fmt: skip
_PLAIN = ("title", "purpose", "controller", "contact")
_KEPT = ("enrolment", "token", "review", "retention_days", "method", "paper")  # as a campaign has them
_SURVEY = {
    *_PLAIN,
    *_KEPT,
    "people",
    "epsilon",
    "minimum",
    "close",
    "enough",
    "days",
    "consent",
    "texts",
    "created",
    "question",
}


def read_survey(path: Path) -> dict[str, Any]:
    """The survey in a TOML file."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"expected a survey as TOML in {str(path)!r}: {error}") from None


def survey_draft(survey: Mapping[str, Any]) -> dict[str, Any]:
    """The draft that a server makes a campaign of; a ``ValueError`` names the question and the rule it breaks."""
    _check_names(survey, _SURVEY, "the survey")
    questions = survey.get("question")
    if not isinstance(questions, list) or not questions:
        raise ValueError("expected at least one [[question]]")
    missing = [name for name in (*_PLAIN, "epsilon", "people") if not survey.get(name)]
    if missing:
        raise ValueError(f"expected {', '.join(missing)} in the survey")
    texts = {**survey.get("texts", {}), **({"consent": survey["consent"]} if survey.get("consent") else {})}
    return {
        **{name: survey[name] for name in (*_PLAIN, *_KEPT, "created") if name in survey},
        "attributes": [attribute_text(q) for q in questions],
        "wording": [words for q in questions if (words := _words(q))],
        "epsilon": str(survey["epsilon"]),
        "users": _whole(survey["people"], "people"),
        "minimum": _whole(survey.get("minimum", 100), "minimum"),
        "closing": _closing(survey),
        "texts": texts,
    }


def attribute_text(question: Mapping[str, Any]) -> str:
    """The attribute behind a question, as docs/schema.md writes it."""
    if not isinstance(question, Mapping):
        raise ValueError("expected every question to be a table")
    name = check_name(question.get("name"), "the name of a question")
    if set(name) & set("=,|"):
        raise ValueError(f"expected the name of a question without = , and |, got {name!r}")
    _check_names(question, _QUESTION, f"the question {name}")
    kind = question.get("kind", "whole")
    if kind not in KINDS:
        raise ValueError(f"expected the kind of {name} to be one of {', '.join(KINDS)}, got {kind!r}")
    if question.get("borders") and kind not in ("scale", "choice"):
        made = _bordered(name, kind, question)
    else:
        made = {"day": _days, "scale": _choices, "choice": _choices}.get(kind, _numbers)(name, kind, question)
    return made + (",missing=cell" if question.get("optional") else "")


def _numbers(name: str, kind: str, question: Mapping[str, Any]) -> str:
    low, high = (_decimal(question.get(end), f"{end} of {name}") for end in ("from", "to"))
    step = _decimal(question.get("step", 1), f"step of {name}")
    steps = (high - low) / step if step > 0 else Decimal(0)
    if kind == "whole" and any(x != x.to_integral_value() for x in (low, high, step)):
        raise ValueError(f"expected whole numbers as from, to and step of {name}")
    if kind == "whole" and step == 1:
        return f"{name}=integer,{low:f},{high:f}"
    if steps < 1 or steps != steps.to_integral_value():
        raise ValueError(
            f"expected from and to of {name} to be a whole number of steps apart, got {low:f}, {high:f} and {step:f}"
        )
    _check_steps(name, int(steps))
    return f"{name}={KINDS[kind]}," + "|".join(f"{low + i * step:f}" for i in range(int(steps) + 1))


def _days(name: str, kind: str, question: Mapping[str, Any]) -> str:
    first, last = (_day(question.get(end), f"from and to of {name}") for end in ("from", "to"))
    step = _whole(question.get("step", 1), f"step of {name}")
    buckets = ((last - first).days + step) // step
    _check_steps(name, buckets)
    return f"{name}={KINDS[kind]},{first},{last},{buckets}"


def _bordered(name: str, kind: str, question: Mapping[str, Any]) -> str:
    """Parts between borders that are not equally far apart; the first and the last are the ends of the range."""
    borders = question["borders"]
    if any(question.get(key) for key in ("from", "to", "step")):
        raise ValueError(f"expected either the borders of {name}, or from, to and step")
    if not isinstance(borders, Sequence) or isinstance(borders, str) or len(borders) < 2:
        raise ValueError(f"expected at least two borders of {name}")
    _check_steps(name, len(borders) - 1)
    if kind == "day":
        return f"{name}=date," + "|".join(str(_day(border, f"the borders of {name}")) for border in borders)
    numbers = [_decimal(border, f"the borders of {name}") for border in borders]
    if kind == "whole" and any(x != x.to_integral_value() for x in numbers):
        raise ValueError(f"expected whole numbers as the borders of {name}")
    return f"{name}={KINDS[kind]}," + "|".join(f"{x:f}" for x in numbers)


def _choices(name: str, kind: str, question: Mapping[str, Any]) -> str:
    choices = question.get("choices")
    if not isinstance(choices, Sequence) or isinstance(choices, str) or len(choices) < 2:
        raise ValueError(f"expected at least two choices of {name}")
    for choice in choices:
        if "|" in check_name(choice, f"a choice of {name}") or ",missing=" in choice:
            raise ValueError(f"expected choices of {name} without |")
    return f"{name}={KINDS[kind]}," + "|".join(choices)


def _check_steps(name: str, steps: int) -> None:
    if not 1 <= steps <= MOST_STEPS:
        raise ValueError(f"expected 1 to {MOST_STEPS} steps of {name}, got {steps}: choose another step")


def _words(question: Mapping[str, Any]) -> dict[str, Any]:
    """The words of a question as the campaign's record has them; none if it is asked by its name."""
    said = {key: question[key] for key in LONGEST if question.get(key)}
    if question.get("labels"):
        said["choices"] = list(question["labels"])
    if question.get("outside", "ask") != "ask":
        said["outside"] = question["outside"]
    if said and "question" not in said:
        raise ValueError(f"expected a question for {question['name']}, to go with its {', '.join(said)}")
    return {"attribute": question["name"], **said} if said else {}


def _closing(survey: Mapping[str, Any]) -> dict[str, Any]:
    close = survey.get("close", "enough")
    if close not in CLOSINGS:
        raise ValueError(f"expected close to be one of {', '.join(CLOSINGS)}, got {close!r}")
    enough = (
        {"reports": _whole(survey["enough"], "enough")} if survey.get("enough") and close in ("enough", "both") else {}
    )
    days = {"seconds": round(86_400 * float(_decimal(survey.get("days"), "days")))} if close in ("time", "both") else {}
    return {"kind": {"me": "manual", "enough": "reports", "time": "deadline", "both": "both"}[close], **enough, **days}


def _check_names(given: Mapping[str, Any], known: set[str], where: str) -> None:
    if strange := sorted(set(given) - known):
        raise ValueError(f"expected {', '.join(sorted(known))} in {where}, got {', '.join(strange)}")


def _day(value: object, what: str) -> dt.date:
    try:
        return dt.date.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"expected {what} to be days, YYYY-MM-DD") from None


def _whole(value: object, what: str) -> int:
    number = _decimal(value, what)
    if number != number.to_integral_value() or number < 1:
        raise ValueError(f"expected {what} to be a whole number above 0, got {value!r}")
    return int(number)


def _decimal(value: object, what: str) -> Decimal:
    try:
        if value is None or isinstance(value, bool):
            raise InvalidOperation
        number = Decimal(str(value).strip())
        if not number.is_finite() or abs(number) >= 2**53:
            raise InvalidOperation
    except InvalidOperation:
        raise ValueError(f"expected {what} to be a number, got {value!r}") from None
    return number
