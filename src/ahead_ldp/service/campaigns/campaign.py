"""A campaign as the server runs it: the record, its mechanism, and the session that its frozen tallies lead to."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ahead_ldp.device.campaign import Campaign, campaign_record, wave_record
from ahead_ldp.device.canonical import Record, canonical_bytes, digest, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import epsilon_text, exact_epsilon, new_epsilon
from ahead_ldp.mechanisms import make_mechanism, mechanism_from_record
from ahead_ldp.mechanisms.few_people import group_people
from ahead_ldp.mechanisms.recorded.recorded import Recorded
from ahead_ldp.protocol import mechanism as protocol
from ahead_ldp.protocol.mechanism import Mechanism, Tallies, tally_from_record
from ahead_ldp.protocol.session import NOTHING, ReplayMismatch, Session, replay
from ahead_ldp.protocol.turnout import Staffing, check_people, staffing
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import FrozenGroup, NewQuestion, NewWave, QuestionRow, WaveRow

_MOST_LETTERS, _DIGITS = 24, 6  # unit: of a title and of a digest, in a short name
WAYS_OUT = (
    "finish the campaign here, on what was counted, or let the version of the program that opened it ask the next "
    "questions: both keep every report"
)


@dataclass(frozen=True, eq=False)
class Terms:
    """What was agreed: the campaign's record, and the mechanism that it names, as long as this program has it.

    Reports are taken, counted and published by the stored questions alone. The mechanism says what is asked next, and
    makes the estimate that the campaign was announced with; it is not looked for before that.
    """

    campaign: Campaign

    @classmethod
    def of(cls, campaign: Campaign) -> Terms:
        """The terms behind a new campaign, whose method exists here and agrees with it; else a ``ValueError``."""
        _named_mechanism(campaign)
        closing = campaign.record["closing"]
        if closing.get("reports", campaign.minimum) < campaign.minimum:
            raise ValueError("expected closing.reports to be at least the minimum")
        return cls(campaign)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism; ``ReplayMismatch`` where this program does not have it, or not as it was."""
        try:
            return _named_mechanism(self.campaign)
        except Exception as error:  # whatever a method does that has changed: its campaign goes on without it
            raise ReplayMismatch(_reason(error)) from error

    @property
    def digest(self) -> str:
        """The name of the campaign."""
        return self.campaign.digest

    @property
    def name(self) -> str:
        """A short name for people who run campaigns: words of the title, and the beginning of the digest."""
        plain = unicodedata.normalize("NFKD", self.campaign.record["title"]).encode("ascii", "ignore").decode().lower()
        words = "-".join(re.findall(r"[a-z0-9]+", plain))[:_MOST_LETTERS].strip("-")
        return f"{words or 'campaign'}-{self.digest[:_DIGITS]}"

    @property
    def schema(self) -> Schema:
        """The attributes."""
        return self.campaign.schema

    def session(self, stored: Sequence[QuestionRow] = (), tallies: Tallies | None = None) -> Session:
        """The session behind the stored waves, every question recomputed and compared with its stored bytes.

        ``tallies`` are those of the last wave, if it is counted and not frozen yet. What a method cannot compute, or
        computes otherwise than is stored, is a ``ReplayMismatch``.
        """
        waves, history = _asked_and_told(stored)
        try:
            session = replay(self.mechanism, self.schema, waves, history, self.digest)
            if tallies is not None:
                session.tell(tallies)
        except ReplayMismatch:
            raise
        except Exception as error:  # a method that fails on what another version asked is none that asked it
            raise ReplayMismatch(_reason(error)) from error
        return session

    def stored_session(self, stored: Sequence[QuestionRow]) -> Session:
        """The session of the stored questions as they are: no method is run."""
        waves, history = _asked_and_told(stored)
        method = Recorded.of(self.campaign.record["method"], self.schema, self.campaign.groups, waves, self.digest)
        session = Session(method, self.schema, self.digest)
        for tallies in history:
            session.tell(tallies)
        return session

    def questions(self, session: Session) -> list[Record]:
        """The open questions of a session, in the order of the campaign's groups."""
        records = session.question_records()
        return [records[group] for group, _ in self.campaign.groups if group in records]

    def next_wave(self, session: Session, now: int) -> NewWave:
        """The open wave of a session as a store takes it, with its deadline if the campaign has one."""
        questions = tuple(NewQuestion(r["group"], digest(r), canonical_bytes(r)) for r in self.questions(session))
        seconds = self.campaign.record["closing"].get("seconds")
        return NewWave(session.number, questions, None if seconds is None else now + seconds)


def _named_mechanism(campaign: Campaign) -> Mechanism:
    mechanism = mechanism_from_record(campaign.record["method"])
    groups = tuple((g.id, g.share) for g in mechanism.groups(campaign.schema))
    if groups != campaign.groups:
        raise ValueError("expected groups to be the method's, in order")
    if exact_epsilon(mechanism.epsilon) != campaign.epsilon:
        raise ValueError("expected epsilon to be the method's")
    return mechanism


def stored_tallies(rows: Sequence[QuestionRow]) -> Tallies:
    """The tallies of a frozen wave."""
    return {r.group: tally_from_record(parse_canonical(r.tally), r.digest) for r in rows if r.tally is not None}


def frozen_digest(campaign: str, stored: Sequence[QuestionRow]) -> str:
    """The end of the public chain, from the bytes of the frozen tallies alone."""
    end = NOTHING
    for rows in _by_wave(stored):
        if any(row.tally is None for row in rows):
            break
        end = frozen_after(campaign, end, rows)
    return end


def frozen_after(campaign: str, before: str, groups: Sequence[QuestionRow | FrozenGroup]) -> str:
    """The chain one wave further."""
    tallies = {g.group: hashlib.sha256(g.tally).hexdigest() for g in groups if g.tally is not None}
    return protocol.frozen_digest(campaign, before, tallies)


def wave_bytes(campaign: str, number: int, questions: Sequence[bytes]) -> bytes:
    """The canonical bytes of a wave, put together from those of its questions, which are not read for it."""
    head, tail = canonical_bytes(wave_record(campaign, number, [])).split(b"[]")
    return b"".join([head, b"[", b",".join(questions), b"]", tail])


def _by_wave(stored: Sequence[QuestionRow]) -> list[list[QuestionRow]]:
    return [[row for row in stored if row.wave == number] for number in sorted({row.wave for row in stored})]


def _asked_and_told(stored: Sequence[QuestionRow]) -> tuple[list[dict[str, bytes]], list[Tallies]]:
    """The questions of every wave by group, and the tallies of those that are frozen."""
    waves = _by_wave(stored)
    frozen = [rows for rows in waves if all(row.tally is not None for row in rows)]
    return [{row.group: row.record for row in rows} for rows in waves], [stored_tallies(rows) for rows in frozen]


def _reason(error: Exception) -> str:
    """Why a method cannot be run, in one line: our own errors speak for themselves, others by their class."""
    return str(error) if isinstance(error, ValueError) else f"the method fails with {type(error).__name__}"


def draft(request: Mapping[str, Any]) -> Terms:
    """The terms of a new campaign: a whole record, or schema, method and texts from which one is made.

    ``users``, the people expected, must be enough for every group to reach the minimum; else ``TooFewPeople``. Without
    ``closing``, or its number of reports, waves close at as many of every group as 80 % of the people bring.
    """
    if request.get("type") == "campaign":
        terms = Terms.of(Campaign.of(dict(request)))
        new_epsilon(terms.campaign.record["epsilon"])
        return terms
    texts = dict(request)
    schema = _schema(texts.pop("schema"))
    epsilon = epsilon_text(new_epsilon(texts.pop("epsilon")))
    method = texts.pop("method", None) or {}
    users, paper = texts.pop("users", None), bool(texts.pop("paper", False))
    if isinstance(method, str):
        method = {"name": method}
    choices = {key: tuple(c) if isinstance(c, list) else c for key, c in method.get("choices", {}).items()}
    mechanism = sized_mechanism(method.get("name"), schema, epsilon, users, texts["minimum"], paper, **choices)
    texts["closing"] = _closing(texts.get("closing"), mechanism, schema, users, texts["minimum"])
    groups = [(g.id, g.share) for g in mechanism.groups(schema)]
    record = campaign_record(schema=schema, method=mechanism.record(), epsilon=epsilon, groups=groups, **texts)
    return Terms.of(Campaign.of(record))


def sized_mechanism(
    method: str | None,
    schema: Schema,
    epsilon: str,
    users: int | None,
    minimum: int,
    paper: bool = False,
    **choices: Any,
) -> Mechanism:
    """A method; one that plans with the people expected has as many groups as they fill to the campaign's minimum."""
    mechanism = make_mechanism(method, schema, epsilon, users, paper, **choices)
    if users is None or "group_people" in choices or not hasattr(mechanism, "group_people"):
        return mechanism
    return replace(mechanism, group_people=group_people(minimum))  # type: ignore[call-arg]


def planned(terms: Terms, users: int | None = None) -> Staffing | None:
    """How the people whom a campaign expects are spread; None if it does not say how many they are."""
    expected = getattr(terms.mechanism, "users", None) if users is None else users
    if expected is None:
        return None
    return staffing(terms.mechanism, terms.schema, expected, terms.campaign.minimum)


def _closing(closing: Record | None, mechanism: Mechanism, schema: Schema, users: int | None, minimum: int) -> Record:
    """When waves close, checked against the people expected; or as many reports as they will bring."""
    if users is None:
        if closing is None:
            raise ValueError("expected users, the number of people who will come, or closing")
        return closing
    given: Any = {"kind": "reports"} if closing is None else closing
    said = given if isinstance(given, dict) else {}  # what is no record is refused with the campaign's other terms
    wanted = said.get("reports")
    found = check_people(mechanism, schema, users, minimum, wanted if type(wanted) is int else None)
    if wanted is None and said.get("kind") in ("reports", "both"):
        return {**said, "reports": found.reports}
    return given


def find_wave(store: Store, campaign: str, number: int) -> WaveRow:
    """A wave of a campaign."""
    for wave in store.waves(campaign):
        if wave.number == number:
            return wave
    raise Problem("not_found", "no such wave")


def audit_event(kind: str, campaign: str, **fields: object) -> bytes:
    """The body of a link of the audit chain."""
    return canonical_bytes({"event": kind, "campaign": campaign, **fields})


def too_large(session: Session, max_cells: int) -> str:
    """What is wrong with questions of more cells than the server takes (and devices answer); empty if nothing is."""
    for group, question in session.wave.items():
        if question.oracle.d > max_cells:
            return f"expected questions of at most {max_cells} cells, got {question.oracle.d} for {group}"
    return ""


def _schema(given: Any) -> Schema:
    return Schema.from_record(dict(given)) if isinstance(given, Mapping) else as_schema(given)
