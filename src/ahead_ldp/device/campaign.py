"""A campaign as a device meets it: one immutable record, pinned by its digest, read before anything is answered."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ahead_ldp.device.canonical import Record, canonical_bytes, check_digest, digest, fields, integer, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import parse_epsilon
from ahead_ldp.device.question import Policy, Question, check_question
from ahead_ldp.device.refusals import QuestionRefused

ENROLMENTS = ("panel", "walk_in")
TIERS = ("none", "signed", "blind")
PUBLIC_EXPONENT = 65537
_FIELDS = (
    "type version title purpose controller contact texts created schema method epsilon groups minimum closing"
    " enrolment token review retention_days"
)
_LONGEST_TEXT = 10_000
_MOST_GROUPS = 10_000
_HEX = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Campaign:
    """Who asks what of whom, and on what terms. ``digest`` binds every field."""

    digest: str
    record: Record
    schema: Schema
    epsilon: Fraction
    groups: tuple[tuple[str, int], ...]  # id and share, in order
    minimum: int
    enrolment: str
    tier: str
    key: tuple[int, int] | None  # n and e of the issuer, unless the tier is "none"

    @classmethod
    def of(cls, record: Record) -> Campaign:
        """The campaign behind a record that keeps every rule; else a ``ValueError`` that names the rule."""
        found = fields(record, _FIELDS, "the campaign")
        if found["type"] != "campaign":
            raise ValueError("expected a campaign")
        integer(found["version"], "version", 2, 2)
        for name in ("title", "purpose", "controller", "contact"):
            check_text(found[name], name)
        _check_texts(found["texts"])
        _check_day(found["created"])
        _check_closing(found["closing"])
        if not isinstance(found["method"], dict) or type(found["review"]) is not bool:
            raise ValueError("expected method to be a record and review to be true or false")
        if found["enrolment"] not in ENROLMENTS:
            raise ValueError(f"expected enrolment to be one of {', '.join(ENROLMENTS)}")
        integer(found["retention_days"], "retention_days", 0, 36_500)
        tier, key = _token(found["token"])
        return cls(
            digest(record),
            record,
            Schema.from_record(found["schema"]),
            parse_epsilon(found["epsilon"]),
            _groups(found["groups"]),
            integer(found["minimum"], "minimum", 1, 10**9),
            found["enrolment"],
            tier,
            key,
        )

    @classmethod
    def from_bytes(cls, data: bytes, pinned: str | None = None) -> Campaign:
        """The campaign behind canonical bytes; with ``pinned`` it must be the one of that digest."""
        campaign = cls.of(parse_canonical(data))
        if pinned is not None and campaign.digest != check_digest(pinned, "pinned"):
            raise ValueError("expected the pinned campaign")
        return campaign

    def encode(self) -> bytes:
        """The canonical bytes."""
        return canonical_bytes(self.record)


def campaign_record(
    *,
    title: str,
    purpose: str,
    controller: str,
    contact: str,
    created: str,
    schema: Schema,
    method: Record,
    epsilon: str,
    groups: Sequence[tuple[str, int]],
    minimum: int,
    closing: Record,
    enrolment: str = "walk_in",
    token: Record | None = None,
    texts: Mapping[str, str] | None = None,
    review: bool = False,
    retention_days: int = 30,
) -> Record:
    """The canonical form of a campaign, checked."""
    record: Record = {
        "type": "campaign",
        "version": 2,
        "title": title,
        "purpose": purpose,
        "controller": controller,
        "contact": contact,
        "texts": dict(texts or {}),
        "created": created,
        "schema": schema.record(),
        "method": method,
        "epsilon": epsilon,
        "groups": [{"id": i, "share": s} for i, s in groups],
        "minimum": minimum,
        "closing": closing,
        "enrolment": enrolment,
        "token": {"tier": "none"} if token is None else token,
        "review": review,
        "retention_days": retention_days,
    }
    Campaign.of(record)
    return record


def wave_record(campaign: str, number: int, questions: Sequence[Record]) -> Record:
    """The canonical form of a wave: its questions, in the order of the campaign's groups."""
    return {"type": "wave", "version": 1, "campaign": campaign, "number": number, "questions": list(questions)}


def check_wave(data: bytes, campaign: Campaign, number: int, policy: Policy) -> dict[str, Question]:
    """The questions of a wave by group, every one of them checked; else ``QuestionRefused``.

    All are checked, not only the device's own: what one device would refuse, all refuse, whatever their group.
    """
    try:
        record = fields(parse_canonical(data), "type version campaign number questions", "the wave")
        if record["type"] != "wave" or record["campaign"] != campaign.digest:
            raise ValueError("expected a wave of the pinned campaign")
        integer(record["version"], "version", 1, 1)
        if integer(record["number"], "number", 1, 10_000) != number or not isinstance(record["questions"], list):
            raise ValueError("expected the wave that was asked for, with a list of questions")
    except ValueError as error:
        raise QuestionRefused(str(error)) from None
    made: dict[str, Question] = {}
    for inner in record["questions"]:
        if not isinstance(inner, dict):
            raise QuestionRefused("expected questions to be records")
        question = check_question(canonical_bytes(inner), campaign.schema, campaign.digest, policy)
        if question.wave != number or question.epsilon != campaign.epsilon:
            raise QuestionRefused("expected the wave's number and the campaign's epsilon in every question")
        made[question.group] = question
    order = [group for group, _ in campaign.groups if group in made]
    if list(made) != order or len(made) != len(record["questions"]) or not made:
        raise QuestionRefused("expected each group of the campaign at most once, in order")
    return made


def check_text(value: object, name: str) -> str:
    """The value itself if it is a text for people: not empty, not endless, no control characters but line ends."""
    if not isinstance(value, str) or not 1 <= len(value) <= _LONGEST_TEXT:
        raise ValueError(f"expected {name} to be a text of 1 to {_LONGEST_TEXT} characters")
    if not all(c.isprintable() or c == "\n" for c in value):
        raise ValueError(f"expected {name} without control characters")
    return value


def _check_texts(texts: object) -> None:
    if not isinstance(texts, dict):
        raise ValueError("expected texts to be a record of texts")
    for key, value in texts.items():
        check_text(value, f"texts.{key}")


def _check_day(day: object) -> None:
    try:
        if not isinstance(day, str) or dt.date.fromisoformat(day).isoformat() != day:
            raise ValueError
    except ValueError:
        raise ValueError("expected created to be a day, YYYY-MM-DD") from None


def _check_closing(closing: object) -> None:
    kind = closing.get("kind") if isinstance(closing, dict) else None
    if kind == "reports":
        integer(fields(closing, "kind reports", "closing")["reports"], "closing.reports", 1, 10**9)
    elif kind == "deadline":
        integer(fields(closing, "kind seconds", "closing")["seconds"], "closing.seconds", 1, 10**9)
    elif kind == "manual":
        fields(closing, "kind", "closing")
    else:
        raise ValueError("expected closing to be of kind reports, deadline or manual")


def _groups(groups: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(groups, list) or not 1 <= len(groups) <= _MOST_GROUPS:
        raise ValueError(f"expected 1 to {_MOST_GROUPS} groups")
    made = []
    for group in groups:
        found = fields(group, "id share", "a group")
        made.append((check_text(found["id"], "a group's id"), integer(found["share"], "a share", 1, 10**6)))
    if len({name for name, _ in made}) != len(made):
        raise ValueError("expected groups of different ids")
    return tuple(made)


def _token(token: object) -> tuple[str, tuple[int, int] | None]:
    tier = token.get("tier") if isinstance(token, dict) else None
    if tier == "none":
        fields(token, "tier", "token")
        return tier, None
    if tier not in TIERS:
        raise ValueError(f"expected the tier of token to be one of {', '.join(TIERS)}")
    found = fields(token, "tier n e", "token")
    text = found["n"]
    if not isinstance(text, str) or not _HEX.fullmatch(text) or not 512 <= len(text) <= 1024 or len(text) % 2:
        raise ValueError("expected token.n to be an RSA modulus of 2048 to 4096 bits in lower-case hexadecimal")
    n = int(text, 16)
    if n % 2 == 0 or n.bit_length() != 4 * len(text):
        raise ValueError("expected token.n to be odd and to fill its digits")
    integer(found["e"], "token.e", PUBLIC_EXPONENT, PUBLIC_EXPONENT)
    return tier, (n, PUBLIC_EXPONENT)
