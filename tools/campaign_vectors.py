"""Test vectors of campaigns, waves and groups; `tools.vectors` writes them with the others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ahead_ldp.device import LAWS, Attribute, GridForm, Policy, QuestionRefused, Schema, canonical_bytes
from ahead_ldp.device.campaign import Campaign, campaign_record, check_wave, wave_record
from ahead_ldp.device.question import question_record
from ahead_ldp.device.tokens import token_group
from ahead_ldp.device.wording import wording_records

Case = dict[str, Any]

SCHEMA = Schema((Attribute("age", "integer", 18, 33), Attribute("town", "nominal", labels=("Ulm", "Bonn", "Köln"))))
MODULUS = "c" + "f" * 511
TOKEN = {"tier": "blind", "version": 2, "n": MODULUS, "e": 65537}


WORDING: list[dict[str, Any]] = [
    {"attribute": "age", "question": "Wie alt sind Sie?", "unit": "Jahre", "example": "42", "outside": "nearest"},
    {
        "attribute": "town",
        "question": "Where do you live?",
        "help": "Your main home.\nNot a holiday flat. <b>",
        "choices": ["Ulm (Danube)", "Bonn (Rhine)", "Köln (Rhine)"],
    },
]


def good_campaign(**change: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "title": "Age and town",
        "purpose": "To plan buses.",
        "controller": "The town of Ulm",
        "contact": "buses@ulm.example",
        "created": "2026-01-31",
        "schema": SCHEMA,
        "method": {"name": "made_up", "version": 1, "epsilon": "1.1", "choices": {}},
        "epsilon": "1.1",
        "groups": [("a", 1), ("b", 3), ("c", 2)],
        "minimum": 20,
        "closing": {"kind": "deadline", "seconds": 3600},
        "texts": {"consent": "Zwei Zeilen,\nmit Umlaut: ä"},
    }
    return campaign_record(**{**parts, **change})


def campaign_cases() -> Iterator[Case]:
    base = good_campaign()
    for name, record in {
        "walk-in": base,
        "panel, blind": good_campaign(enrolment="panel", token=TOKEN),
        "signed, review": good_campaign(review=True, token={**TOKEN, "tier": "signed"}),
        "signed, tokens of version 1": {**base, "token": {"tier": "signed", "n": MODULUS, "e": 65537}},
        "by hand": good_campaign(closing={"kind": "manual"}, texts={}),
        "by both": good_campaign(closing={"kind": "both", "reports": 90, "seconds": 3600}),
        "by both, with one": {**base, "closing": {"kind": "both", "reports": 90}},
        "version 1": {**base, "version": 1},
        "another type": {**base, "type": "wave"},
        "no title": {**base, "title": ""},
        "a control character": {**base, "purpose": "a\tb"},
        "text that is none": {**base, "texts": {"consent": 1}},
        "no such day": {**base, "created": "2026-02-29"},
        "epsilon spelled longer": {**base, "epsilon": "1.10"},
        "no groups": {**base, "groups": []},
        "share zero": {**base, "groups": [{"id": "a", "share": 0}]},
        "a group twice": {**base, "groups": [{"id": "a", "share": 1}] * 2},
        "minimum zero": {**base, "minimum": 0},
        "closing unknown": {**base, "closing": {"kind": "soon"}},
        "closing with more": {**base, "closing": {"kind": "manual", "seconds": 1}},
        "enrolment unknown": {**base, "enrolment": "all"},
        "tier unknown": {**base, "token": {"tier": "gold"}},
        "short modulus": {**base, "token": {**TOKEN, "n": "ff" * 128}},
        "even modulus": {**base, "token": {**TOKEN, "n": MODULUS[:-1] + "e"}},
        "another exponent": {**base, "token": {**TOKEN, "e": 3}},
        "tokens of version 3": {**base, "token": {**TOKEN, "version": 3}},
        "tokens that say version 1": {**base, "token": {**TOKEN, "version": 1}},
        "a version where there is no token": {**base, "token": {"tier": "none", "version": 2}},
        "a day in a list": {**base, "created": ["2026-01-31"]},
        "review as a number": {**base, "review": 1},
        "unknown field": {**base, "more": 1},
        "kept for ever": {**base, "retention_days": 36_501},
        **{f"wording: {name}": {**base, "wording": wording} for name, wording in wordings().items()},
    }.items():
        case: Case = {"name": name, "campaign": canonical_bytes(record).hex()}
        try:
            found = Campaign.of(record)
        except ValueError:
            yield {**case, "refused": True}
        else:
            words = {"wording": wording_records(found.wording)} if found.wording else {}
            yield {**case, "digest": found.digest, "tier": found.tier, "minimum": found.minimum, **words,
                   "token_message": found.token_message(bytes(range(32))).hex()}  # fmt: skip


def wordings() -> dict[str, Any]:
    """Words that are taken, and words that every language refuses."""
    age, town = WORDING
    plain = {"attribute": "age", "question": "How old are you?"}
    return {
        "of both attributes": WORDING,
        "of one": [plain],
        "as long as it may be": [
            {**plain, "question": "q" * 300, "unit": "u" * 40, "help": "h" * 1000, "example": "e" * 60}
        ],
        "letters beyond the first plane count once": [{**plain, "question": "\U0001d538" * 300}],
        "none": [],
        "a record": plain,
        "a text": ["age"],
        "of nobody": [{**plain, "attribute": "pay"}],
        "of a list": [{**plain, "attribute": ["age"]}],
        "twice": [plain, plain],
        "another order": [town, age],
        "without a question": [{"attribute": "age", "unit": "years"}],
        "an empty question": [{**plain, "question": ""}],
        "a question that is none": [{**plain, "question": 1}],
        "a question of 301 letters": [{**plain, "question": "q" * 301}],
        "a unit of 41 letters": [{**age, "unit": "u" * 41}],
        "a question of two lines": [{**plain, "question": "How old\nare you?"}],
        "a space around": [{**plain, "question": "How old? "}],
        "a turned direction": [{**plain, "question": "How old\u202e?"}],
        "a control character": [{**age, "help": "a\tb"}],
        "an unknown part": [{**age, "html": "x"}],
        "outside said as by default": [{**age, "outside": "ask"}],
        "outside said as nothing": [{**age, "outside": None}],
        "outside of categories": [{**town, "outside": "nearest"}],
        "choices of a number": [{**age, "choices": ["young", "old"]}],
        "too few choices": [{**town, "choices": ["Ulm", "Bonn"]}],
        "a choice twice": [{**town, "choices": ["Ulm", "Bonn", "Ulm"]}],
        "choices that are a text": [{**town, "choices": "UBK"}],
    }


def good_question(group: str, campaign: str, **change: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "campaign": campaign,
        "wave": 1,
        "group": group,
        "tallies": "00" * 32,
        "epsilon": "1.1",
        "attributes": ["age"],
        "partition": GridForm(((4, 8),)),
        "law": LAWS["grr"].make("1.1", 3),
    }
    return question_record(**{**parts, **change})


def wave_cases() -> Iterator[Case]:
    campaign = Campaign.of(good_campaign())
    a, b = (good_question(group, campaign.digest) for group in "ab")
    base = wave_record(campaign.digest, 1, [a, b])
    dear = good_question("b", campaign.digest, epsilon="1.2", law=LAWS["grr"].make("1.2", 3))
    for name, record in {
        "two groups": base,
        "one group": {**base, "questions": [b]},
        "another order": {**base, "questions": [b, a]},
        "a group twice": {**base, "questions": [a, a]},
        "a group that is none": {**base, "questions": [a, {**b, "group": "z"}]},
        "another wave": {**base, "number": 2},
        "a question of another wave": {**base, "questions": [a, {**b, "wave": 2}]},
        "another price": {**base, "questions": [a, dear]},
        "another campaign": {**base, "campaign": "00" * 32},
        "no question": {**base, "questions": []},
        "a question that is none": {**base, "questions": [a, 1]},
        "unknown field": {**base, "more": 1},
    }.items():
        data = canonical_bytes(record)
        case: Case = {
            "name": name,
            "campaign": campaign.encode().hex(),
            "number": 1,
            "max_epsilon": "2",
            "wave": data.hex(),
        }
        try:
            found = check_wave(data, campaign, 1, Policy("2"))
        except QuestionRefused:
            yield {**case, "refused": True}
        else:
            yield {**case, "questions": {group: question.digest for group, question in found.items()}}


def group_cases() -> Iterator[Case]:
    groups = [("a", 1), ("b", 3), ("c", 2)]
    for wave in (0, 1, 7):
        for i in range(6):
            signature = hashlib.sha512(b"signature %d" % i).digest() * 4
            campaign = hashlib.sha256(b"campaign %d" % (i % 2)).hexdigest()
            found = token_group(signature, campaign, wave, groups)
            given = {"signature": signature.hex(), "campaign": campaign, "wave": wave, "groups": groups}
            yield {"name": f"signature {i}, wave {wave}", **given, "group": found}
