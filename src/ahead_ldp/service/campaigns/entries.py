"""What somebody typed into the form of a new campaign: numbers as people write them, and mistakes in the form's words.

The pages are in English: "52,000" is fifty-two thousand. "52.000" can be read in two ways, and is asked back.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise

from ahead_ldp.device.texts import LONGEST_NAME, LONGEST_TEXT, is_printable
from ahead_ldp.device.wording import LONGEST
from ahead_ldp.protocol.turnout import TooFewPeople
from ahead_ldp.service.campaigns.survey import MOST_STEPS

TEXTS = {"title": "Title", "purpose": "Purpose", "controller": "Who is responsible", "contact": "Contact"}
_WORDS = {"question": "The question", "unit": "Unit", "help": "Help", "example": "Example of an answer"}
_LONGEST_COMPLAINT = 300  # characters
_MOST_VALUES = 2**31 - 2  # that can be asked about one by one
_LARGEST = 2**53  # numbers below are exact everywhere
_EPSILONS = (Decimal("0.01"), Decimal(16))
_LONGEST_KEPT, _LONGEST_ROUND = 36_500, 10_000  # days
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:[ ,'’]\d{3})+(?:\.\d+)?")
_POINTED = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")  # thousands where people write them with a point
_PLAIN = re.compile(r"\d{1,30}(?:[.,]\d{1,30})?(?:[eE]\+?\d{1,2})?")
_SIZES = {"k": 1_000, "m": 1_000_000}


class Unclear(ValueError):
    """Something in the form has to be looked at again; the text names it as the page does."""


def number(text: str, where: str, *, whole: bool = False, least: int | None = None) -> Decimal:
    """The number behind a text: with or without commas or spaces between thousands, or as 20k."""
    typed = unicodedata.normalize("NFKC", text).strip().replace("−", "-")
    sign, size = 1, 1
    if typed[:1] in "+-" and typed:
        sign, typed = (-1 if typed[0] == "-" else 1), typed[1:].strip()
    if typed[-1:].lower() in _SIZES and typed:
        size, typed = _SIZES[typed[-1].lower()], typed[:-1].strip()
    if _POINTED.fullmatch(typed):
        joined = typed.replace(".", "")
        if typed.count(".") == 1 and size == 1:
            either = f"{joined} or {Decimal(typed).normalize():f}"
            raise Unclear(f"{where}: “{text.strip()}” can be read in two ways. Please write {either}.")
        typed = joined if size == 1 else typed
    elif _GROUPED.fullmatch(typed):
        typed = re.sub(r"[ ,'’]", "", typed)
    if not _PLAIN.fullmatch(typed):
        too_long = re.fullmatch(r"\d+", typed)
        raise Unclear(f"{where}: this number is too large." if too_long else f"{where}: please write a number.")
    read = sign * size * Decimal(typed.replace(",", "."))
    if abs(read) >= _LARGEST:
        raise Unclear(f"{where}: this number is too large.")
    if whole and read != read.to_integral_value():
        raise Unclear(f"{where}: please write a whole number.")
    if least is not None and read < least:
        raise Unclear(f"{where}: please write {least:,} or more.")
    return read


def hours_of(text: str) -> Decimal:
    """The hours that a round is given."""
    hours = number(text, "Hours from now")
    if not Decimal("0.1") <= hours <= 24 * _LONGEST_ROUND:
        raise Unclear(f"Hours from now: please write a number from 0.1 to {24 * _LONGEST_ROUND:,}.")
    return hours


def plain_form(form: Mapping[str, str], questions: Mapping[int, Mapping[str, str]], *, texts: bool) -> dict[str, str]:
    """The form with plain numbers and days; ``Unclear`` says what has to be looked at.

    Without ``texts`` only what a plan needs is read.
    """
    made = {**form}
    if texts and (missing := [label for name, label in TEXTS.items() if not form.get(name, "").strip()]):
        raise Unclear(f"Please fill in: {', '.join(missing)}.")
    for name, label in {**TEXTS, "consent": "What else people should know"}.items() if texts else ():
        _check_text(form.get(name, ""), label, LONGEST_TEXT)
    names: dict[str, int] = {}
    for n, question in questions.items():
        where = f"Question {n}"
        check_words(question, where, texts=texts)
        if question["name"] in names:
            raise Unclear(f"{where}, Short name: question {names[question['name']]} has this name already.")
        names[question["name"]] = n
        made |= {f"q{n}_{field}": said for field, said in plain_question(question, where).items()}
    return made | _plan_numbers(form) | (_other_numbers(form) if texts else {})


def _plan_numbers(form: Mapping[str, str]) -> dict[str, str]:
    people = number(form["people"], "People you expect to answer", whole=True, least=1)
    minimum = number(form["minimum"], "Fewest answers of a group", whole=True, least=1)
    epsilon = number(form["epsilon"], "Privacy (epsilon)")
    if not _EPSILONS[0] <= epsilon <= _EPSILONS[1]:
        raise Unclear(f"Privacy (epsilon): please write a number from {_EPSILONS[0]} to {_EPSILONS[1]}.")
    return {"people": _text(people), "minimum": _text(minimum), "epsilon": _text(epsilon)}


def _other_numbers(form: Mapping[str, str]) -> dict[str, str]:
    kept = number(form["retention_days"], "Days that noisy answers are kept", whole=True, least=0)
    if kept > _LONGEST_KEPT:
        raise Unclear(f"Days that noisy answers are kept: please write {_LONGEST_KEPT:,} or less.")
    made = {"retention_days": kept}
    if form["close"] in ("enough", "both") and form["enough"]:
        least = int(number(form["minimum"], "Fewest answers of a group", whole=True))
        made["enough"] = number(form["enough"], "Answers in every group", whole=True, least=least)
    if form["close"] in ("time", "both"):
        made["days"] = number(form["days"] or "-", "Days")
        if not Decimal("0.01") <= made["days"] <= _LONGEST_ROUND:
            raise Unclear(f"Days: please write a number from 0.01 to {_LONGEST_ROUND:,}.")
    return {name: _text(value) for name, value in made.items()}


def check_words(question: Mapping[str, str], where: str, *, texts: bool) -> None:
    """Whether a question has a name and words."""
    name = question["name"]
    if not name:
        raise Unclear(f"{where}, Short name: please fill it in.")
    if set(name) & set("=,|") or len(name) > LONGEST_NAME or not is_printable(name):
        raise Unclear(f"{where}, Short name: please take letters and digits, without = , and |.")
    if texts and not question["question"]:
        raise Unclear(f"{where}: please write the question as people read it.")
    for field, label in _WORDS.items() if texts else ():
        _check_text(question.get(field, ""), f"{where}, {label}", LONGEST[field], lines=field == "help")


def _check_text(text: str, where: str, most: int, *, lines: bool = True) -> None:
    if len(text) > most:
        raise Unclear(f"{where}: please write at most {most:,} characters.")
    if not is_printable(text.replace("\n", "").replace("\r", "") if lines else text):
        raise Unclear(f"{where}: there are characters in it that cannot be printed. Please write it anew.")


def plain_question(question: Mapping[str, str], where: str) -> dict[str, str]:
    """The fields of a question that have numbers or days in them."""
    kind = question["kind"]
    if kind in ("scale", "choice"):
        _check_choices([line.strip() for line in question["choices"].split("\n") if line.strip()], where)
        return {}
    if question["borders"]:
        return {"borders": "; ".join(_borders(question["borders"], kind, f"{where}, Borders"))}
    labels = ("First day", "Last day") if kind == "day" else ("Smallest answer", "Largest answer")
    for end, label in zip(("from", "to"), labels, strict=True):
        if not question[end]:
            raise Unclear(f"{where}, {label}: please fill it in.")
    step = number(question["step"] or "1", f"{where}, Counted in steps of", whole=kind != "number")
    if step <= 0:
        raise Unclear(f"{where}, Counted in steps of: please write a number above 0.")
    if kind == "day":
        first, last = (
            _day(question[end], f"{where}, {label}") for end, label in zip(("from", "to"), labels, strict=True)
        )
        if last <= first:
            raise Unclear(f"{where}: the last day has to be after the first.")
        _check_count((last - first).days // int(step), where)
        return {"from": str(first), "to": str(last), "step": _text(step)}
    low, high = (
        number(question[end], f"{where}, {label}", whole=kind == "whole")
        for end, label in zip(("from", "to"), labels, strict=True)
    )
    _check_steps(low, high, step, kind, where)
    return {"from": _text(low), "to": _text(high), "step": _text(step)}


def _check_steps(low: Decimal, high: Decimal, step: Decimal, kind: str, where: str) -> None:
    if high <= low:
        raise Unclear(f"{where}: the largest answer has to be above the smallest.")
    if kind == "whole" and step == 1:
        if high - low >= _MOST_VALUES:
            raise Unclear(f"{where}: these are too many answers to count one by one. Please take larger steps.")
        return
    over = (high - low) % step
    if over:
        further = high + step - over
        raise Unclear(
            f"{where}: steps of {_text(step)} do not end at {_text(high)}. "
            f"Make {_text(further)} the largest answer, or take other steps."
        )
    _check_count(int((high - low) / step), where)


def _check_count(steps: int, where: str) -> None:
    if steps > MOST_STEPS:
        raise Unclear(f"{where}: these are {steps:,} steps, and {MOST_STEPS:,} is the most. Please take larger steps.")


def _borders(text: str, kind: str, where: str) -> list[str]:
    """The borders, one after the other. Commas and spaces stand between them, unless semicolons do."""
    parts = text.split(";") if ";" in text.strip(" ;\n") else re.split(r"[\s,;]+", text)
    kept = [part.strip() for part in parts if part.strip()]
    if len(kept) < 2:
        raise Unclear(f"{where}: please write at least two, with commas between them.")
    if kind == "day":
        days = [_day(part, where) for part in kept]
        ordered, said = all(a < b for a, b in pairwise(days)), [str(day) for day in days]
    else:
        numbers = [number(part, where, whole=kind == "whole") for part in kept]
        ordered, said = _grow(numbers), [_text(x) for x in numbers]
    if not ordered:
        raise Unclear(
            f"{where}: each has to be larger than the one before. Write 1000, not 1,000, or put ; between them."
        )
    _check_count(len(said) - 1, where)
    return said


def _grow(numbers: list[Decimal]) -> bool:
    """Whether each is above the one before; the last may repeat it, as a part for the largest answer alone."""
    return all(a < b for a, b in pairwise(numbers[:-1])) and numbers[-2] <= numbers[-1] and numbers[0] < numbers[-1]


def _check_choices(choices: list[str], where: str) -> None:
    if len(choices) < 2:
        raise Unclear(f"{where}, Choices: please write at least two, one a line.")
    if len(set(choices)) < len(choices):
        raise Unclear(f"{where}, Choices: two of them are the same.")
    for choice in choices:
        _check_text(choice, f"{where}, Choices", LONGEST_NAME, lines=False)
        if "|" in choice or ",missing=" in choice:
            raise Unclear(f"{where}, Choices: please leave out |.")


def _day(text: str, where: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        raise Unclear(f"{where}: please write a day as 2026-12-31.") from None


def _text(value: Decimal) -> str:
    said = f"{value:f}"
    return said.rstrip("0").rstrip(".") if "." in said else said


def complaint(error: Exception) -> str:
    """What is wrong, in sentences for whoever filled in the form."""
    if isinstance(error, Unclear):
        return str(error)
    if isinstance(error, TooFewPeople):
        return _too_few(error)
    said = str(error)
    cut = said if len(said) <= _LONGEST_COMPLAINT else f"{said[:_LONGEST_COMPLAINT]}…"
    return f"This cannot be asked as it stands: {cut}"


def _too_few(error: TooFewPeople) -> str:
    if error.most_reports is not None:
        return (
            f"Answers in every group: please write {error.most_reports:,} or less. If only 80 % of the people come, "
            "the smallest group has no more than that, and its round would never close."
        )
    fewer = f", or you can ask {error.attributes} of the {error.of} questions" if error.attributes else ""
    return (
        f"{error.users:,} people are too few for this: {error.enough:,} would do{fewer}. Every group of people has to "
        f"reach {error.minimum:,} answers, even if only 80 % of them come."
    )
