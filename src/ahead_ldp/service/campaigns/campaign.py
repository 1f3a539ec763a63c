"""A campaign as the server runs it: the record, its mechanism, and the session that its frozen tallies lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ahead_ldp.device.campaign import Campaign, campaign_record
from ahead_ldp.device.canonical import Record, canonical_bytes, digest, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import epsilon_text, exact_epsilon, new_epsilon
from ahead_ldp.mechanisms import make_mechanism, mechanism_from_record
from ahead_ldp.protocol.mechanism import Mechanism, Tallies, tally_from_record
from ahead_ldp.protocol.session import Session, replay
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import NewQuestion, NewWave, QuestionRow, WaveRow


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What was agreed: the campaign's record and the mechanism that it names."""

    campaign: Campaign
    mechanism: Mechanism

    @classmethod
    def of(cls, campaign: Campaign) -> Terms:
        """The terms behind a campaign whose method exists here and agrees with it; else a ``ValueError``."""
        mechanism = mechanism_from_record(campaign.record["method"])
        groups = tuple((g.id, g.share) for g in mechanism.groups(campaign.schema))
        if groups != campaign.groups:
            raise ValueError("expected groups to be the method's, in order")
        if exact_epsilon(mechanism.epsilon) != campaign.epsilon:
            raise ValueError("expected epsilon to be the method's")
        closing = campaign.record["closing"]
        if closing["kind"] == "reports" and closing["reports"] < campaign.minimum:
            raise ValueError("expected closing.reports to be at least the minimum")
        return cls(campaign, mechanism)

    @property
    def digest(self) -> str:
        """The name of the campaign."""
        return self.campaign.digest

    @property
    def schema(self) -> Schema:
        """The attributes."""
        return self.campaign.schema

    def session(self, stored: Sequence[QuestionRow] = ()) -> Session:
        """The session behind the stored waves, every question recomputed and compared with its stored bytes."""
        waves: list[dict[str, bytes]] = []
        history: list[Tallies] = []
        for number in sorted({row.wave for row in stored}):
            rows = [row for row in stored if row.wave == number]
            waves.append({row.group: row.record for row in rows})
            if all(row.tally is not None for row in rows):
                history.append(stored_tallies(rows))
        return replay(self.mechanism, self.schema, waves, history, self.digest)

    def questions(self, session: Session) -> list[Record]:
        """The open questions of a session, in the order of the campaign's groups."""
        records = session.question_records()
        return [records[group] for group, _ in self.campaign.groups if group in records]

    def next_wave(self, session: Session, now: int) -> NewWave:
        """The open wave of a session as a store takes it, with its deadline if the campaign has one."""
        questions = tuple(NewQuestion(r["group"], digest(r), canonical_bytes(r)) for r in self.questions(session))
        seconds = self.campaign.record["closing"].get("seconds")
        return NewWave(session.number, questions, None if seconds is None else now + seconds)


def stored_tallies(rows: Sequence[QuestionRow]) -> Tallies:
    """The tallies of a frozen wave."""
    return {r.group: tally_from_record(parse_canonical(r.tally), r.digest) for r in rows if r.tally is not None}


def draft(request: Mapping[str, Any]) -> Terms:
    """The terms of a new campaign: a whole record, or schema, method and texts from which one is made."""
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
    mechanism = make_mechanism(method.get("name"), schema, epsilon, users, paper, **choices)
    groups = [(g.id, g.share) for g in mechanism.groups(schema)]
    record = campaign_record(schema=schema, method=mechanism.record(), epsilon=epsilon, groups=groups, **texts)
    return Terms.of(Campaign.of(record))


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
