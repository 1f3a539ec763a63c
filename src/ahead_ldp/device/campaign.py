"""A campaign as a device meets it: one immutable record, pinned by its digest, read before anything is answered."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ahead_ldp.device.canonical import (
    Record,
    canonical_bytes,
    check_digest,
    digest,
    expect,
    fields,
    integer,
    parse_canonical,
)
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import parse_epsilon
from ahead_ldp.device.question import Policy, Question, check_question
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.device.texts import check_text
from ahead_ldp.device.tokens import TOKEN_VERSION, PublicKey, token_message
from ahead_ldp.device.wording import Wording, read_wording

ENROLMENTS = ("panel", "walk_in")
TIERS = ("none", "signed", "blind")
PUBLIC_EXPONENT = 65537
NOTHING = "0" * 64  # what the first wave's questions follow from
_FIELDS = (
    "type version title purpose controller contact texts created schema method epsilon groups minimum closing"
    " enrolment token review retention_days"
)
_OPTIONAL = ("wording", "rehearsal")  # left out where there is nothing to say: older records are what they were
_CLOSING = {"reports": "reports", "deadline": "seconds", "both": "reports seconds", "manual": ""}  # kind -> numbers
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
    key: PublicKey | None  # of the issuer, unless the tier is "none"
    token_version: int  # what the issuer signs: ``tokens.token_message``
    wording: Mapping[str, Wording]  # of the attributes that have words: records from before there were any have none

    @classmethod
    def of(cls, record: Record) -> Campaign:
        """The campaign behind a record that keeps every rule; else a ``ValueError`` that names the rule."""
        terms = fields(record, " ".join([_FIELDS, *(name for name in _OPTIONAL if name in record)]), "the campaign")
        expect(terms["type"] == "campaign", "a campaign")
        integer(terms["version"], "version", 2, 2)
        for name in ("title", "purpose", "controller", "contact"):
            check_text(terms[name], name)
        expect(isinstance(terms["texts"], dict), "texts to be a record of texts")
        for name, text in terms["texts"].items():
            check_text(text, f"texts.{name}")
        expect(_is_day(terms["created"]), "created to be a day, YYYY-MM-DD")
        _check_closing(terms["closing"])
        flags = isinstance(terms["method"], dict) and type(terms["review"]) is bool
        expect(flags, "method to be a record and review to be true or false")
        expect(terms["enrolment"] in ENROLMENTS, f"enrolment to be one of {', '.join(ENROLMENTS)}")
        integer(terms["retention_days"], "retention_days", 0, 36_500)
        expect(terms.get("rehearsal", True) is True, "rehearsal to be true, or left out")
        tier, key, token_version = _token(terms["token"])
        schema = Schema.from_record(terms["schema"])
        return cls(
            digest(record),
            record,
            schema,
            parse_epsilon(terms["epsilon"]),
            _groups(terms["groups"]),
            integer(terms["minimum"], "minimum", 1, 10**9),
            terms["enrolment"],
            tier,
            key,
            token_version,
            read_wording(terms["wording"], schema) if "wording" in terms else {},
        )

    @classmethod
    def from_bytes(cls, data: bytes, pinned: str | None = None) -> Campaign:
        """The campaign behind canonical bytes; with ``pinned`` it must be the one of that digest."""
        campaign = cls.of(parse_canonical(data))
        expect(pinned is None or campaign.digest == check_digest(pinned, "pinned"), "the pinned campaign")
        return campaign

    @property
    def is_rehearsal(self) -> bool:
        """Whether synthetic people answer it, to try it out: no device of a person does, and no collector takes it."""
        return "rehearsal" in self.record

    def token_message(self, nonce: bytes) -> bytes:
        """What this campaign's issuer signs for a nonce."""
        return token_message(self.digest, nonce, self.token_version)

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
    wording: Sequence[Record] = (),
) -> Record:
    """The canonical form of a new campaign, checked; its tokens are good for no other."""
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
        **({"wording": [dict(each) for each in wording]} if wording else {}),
    }
    campaign = Campaign.of(record)
    bound = campaign.key is None or campaign.token_version == TOKEN_VERSION
    expect(bound, f"token.version to be {TOKEN_VERSION}: older tokens are good for any campaign of their issuer")
    return record


def wave_record(campaign: str, number: int, questions: Sequence[Record]) -> Record:
    """The canonical form of a wave: its questions, in the order of the campaign's groups."""
    return {"type": "wave", "version": 1, "campaign": campaign, "number": number, "questions": list(questions)}


def check_wave(data: bytes, campaign: Campaign, number: int, policy: Policy) -> dict[str, Question]:
    """The questions of a wave by group, every one checked, all after the same tallies; else ``QuestionRefused``.

    All are checked, not only the device's own: what one device would refuse, all refuse, whatever their group.
    """
    try:
        return _check_wave(parse_canonical(data), campaign, number, policy)
    except ValueError as error:
        raise QuestionRefused(str(error)) from None


def _check_wave(record: Record, campaign: Campaign, number: int, policy: Policy) -> dict[str, Question]:
    fields(record, "type version campaign number questions", "the wave")
    expect(record["type"] == "wave" and record["campaign"] == campaign.digest, "a wave of the pinned campaign")
    integer(record["version"], "version", 1, 1)
    asked_for = integer(record["number"], "number", 1, 10_000) == number and isinstance(record["questions"], list)
    expect(asked_for, "the wave that was asked for, with a list of questions")
    questions: dict[str, Question] = {}
    for inner in record["questions"]:
        expect(isinstance(inner, dict), "questions to be records")
        question = check_question(canonical_bytes(inner), campaign.schema, campaign.digest, policy)
        same = question.wave == number and question.epsilon == campaign.epsilon
        expect(same, "the wave's number and the campaign's epsilon in every question")
        questions[question.group] = question
    before = {inner["tallies"] for inner in record["questions"]}
    chained = len(before) == 1 and (number == 1) == (before == {NOTHING})
    order = [group for group, _ in campaign.groups if group in questions]
    once = list(questions) == order and len(questions) == len(record["questions"]) and questions != {}
    expect(once, "each group of the campaign at most once, in order")
    expect(chained, "all questions of a wave to follow from the same tallies")
    return questions


def _is_day(day: object) -> bool:
    try:
        return isinstance(day, str) and dt.date.fromisoformat(day).isoformat() == day
    except ValueError:
        return False


def _check_closing(closing: object) -> None:
    kind = str(closing.get("kind")) if isinstance(closing, dict) else ""
    expect(kind in _CLOSING, "closing to be of kind reports, deadline, both or manual")
    named = fields(closing, f"kind {_CLOSING[kind]}", "closing")
    for name in _CLOSING[kind].split():
        integer(named[name], f"closing.{name}", 1, 10**9)


def _groups(groups: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(groups, list) or not 1 <= len(groups) <= _MOST_GROUPS:
        raise ValueError(f"expected 1 to {_MOST_GROUPS} groups")
    records = [fields(group, "id share", "a group") for group in groups]
    shares = [(check_text(r["id"], "a group's id"), integer(r["share"], "a share", 1, 10**6)) for r in records]
    expect(len(dict(shares)) == len(shares), "groups of different ids")
    return tuple(shares)


def _token(token: object) -> tuple[str, PublicKey | None, int]:
    tier = token.get("tier") if isinstance(token, dict) else None
    if tier == "none":
        fields(token, "tier", "token")
        return tier, None, TOKEN_VERSION
    expect(tier in TIERS, f"the tier of token to be one of {', '.join(TIERS)}")
    is_old = isinstance(token, dict) and "version" not in token
    named = fields(token, "tier n e" if is_old else "tier version n e", "token")
    version = 1 if is_old else integer(named["version"], "token.version", TOKEN_VERSION, TOKEN_VERSION)
    text = named["n"]
    is_long = isinstance(text, str) and _HEX.fullmatch(text) and 512 <= len(text) <= 1024 and len(text) % 2 == 0
    expect(bool(is_long), "token.n to be an RSA modulus of 2048 to 4096 bits in lower-case hexadecimal")
    n = int(text, 16)
    expect(n % 2 == 1 and n.bit_length() == 4 * len(text), "token.n to be odd and to fill its digits")
    integer(named["e"], "token.e", PUBLIC_EXPONENT, PUBLIC_EXPONENT)
    return str(tier), PublicKey(n, PUBLIC_EXPONENT), version
