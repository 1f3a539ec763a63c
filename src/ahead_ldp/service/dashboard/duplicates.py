"""A campaign as the form of a new one: what its record says, in the fields that a survey has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ahead_ldp.device.canonical import Record
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.campaigns.survey import attribute_text
from ahead_ldp.service.dashboard.drafts import FIELDS, QUESTION, question_of

_CLOSE = {"reports": "enough", "deadline": "time", "both": "both", "manual": "me"}
_KINDS = {"integer": "whole", "real": "number", "date": "day", "ordered": "scale", "nominal": "choice"}
_CHOSEN_BY_ITSELF = ("adaptive", "fused")
_FIRST_DAY, _DAY_S = dt.date(1970, 1, 1), 86_400


def form_of(record: Record) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The fields and the questions of the form; a ``ValueError`` if an attribute does not fit into it.

    How many answers are enough is left out: it follows from the people expected.
    """
    texts = {name: str(record[name]) for name in ("purpose", "controller", "contact", "epsilon", "enrolment")}
    numbers = {name: str(record[name]) for name in ("minimum", "retention_days")}
    closing, method = record["closing"], record["method"]["name"]
    people = record["method"].get("choices", {}).get("users")
    days = Decimal(closing["seconds"]) / _DAY_S if "seconds" in closing else ""
    given = {
        **FIELDS,
        **texts,
        **numbers,
        "title": f"Copy of {record['title']}",
        "consent": record["texts"].get("consent", ""),
        "people": str(people) if people else FIELDS["people"],
        "close": _CLOSE[closing["kind"]],
        "days": f"{days:.4f}".rstrip("0").rstrip(".") if days else "",
        "method": "" if method in _CHOSEN_BY_ITSELF else method,
        "review": "1" if record["review"] else "",
    }
    words = {w["attribute"]: w for w in record.get("wording", [])}
    return given, [_question(a, words.get(a["name"], {})) for a in record["schema"]["attributes"]]


def _question(attribute: Record, words: Mapping[str, Any]) -> dict[str, str]:
    """The question behind an attribute, checked: it would be asked as the same attribute again."""
    kind = _KINDS.get(attribute["kind"])
    asked = {**QUESTION, "name": attribute["name"], "kind": kind or "", "question": attribute["name"]}
    asked |= {key: str(words[key]) for key in ("question", "unit", "example", "help", "outside") if key in words}
    asked["optional"] = "1" if attribute["missing"] == "cell" else ""
    ways: list[dict[str, str]] = []
    if kind in ("scale", "choice"):
        ways = [{"choices": "\n".join(attribute["labels"])}]
    elif kind is not None:
        ways = [_range(attribute), _borders(attribute)]
    for way in ways:
        if _means(asked | way, attribute):
            return asked | way
    raise ValueError(f"the question about {attribute['name']} does not fit into the form: use the record as a file")


def _means(asked: Mapping[str, str], attribute: Record) -> bool:
    """Whether a question of the form asks about this attribute."""
    try:
        return bool(as_schema(attribute_text(question_of(asked))).record()["attributes"][0] == attribute)
    except ValueError:
        return False


def _range(attribute: Record) -> dict[str, str]:
    if attribute["kind"] == "date":
        first, last = (_FIRST_DAY + dt.timedelta(days=int(attribute[end])) for end in ("lo", "hi"))
        days = (last - first).days // len(attribute["edges"]) if attribute["edges"] else 1
        return {"from": str(first), "to": str(last), "step": str(days)}
    low, high = (_plain(attribute[end]) for end in ("lo", "hi"))
    if attribute["edges"]:
        step = Decimal(str(attribute["edges"][0])) - Decimal(str(attribute["lo"]))
    else:
        step = Decimal(1) if attribute["kind"] == "integer" else Decimal(high) - Decimal(low)
    return {"from": low, "to": high, "step": _plain(step)}


def _borders(attribute: Record) -> dict[str, str]:
    """Borders of its own, where steps are not all alike."""
    ends = [attribute["lo"], *(attribute["edges"] or ()), attribute["hi"]]
    days = attribute["kind"] == "date"
    said = [str(_FIRST_DAY + dt.timedelta(days=int(x))) if days else _plain(x) for x in ends]
    return {"borders": ", ".join(said), "from": "", "to": "", "step": ""}


def _plain(number: object) -> str:
    said = f"{Decimal(str(number)):f}"
    return said.rstrip("0").rstrip(".") if "." in said else said
