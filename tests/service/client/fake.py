"""A server in memory for the client's tests: the routes of docs/wire.md over a Session, with faults on demand."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ahead_ldp.device.budget import Limits, Line
from ahead_ldp.device.campaign import Campaign, campaign_record, wave_record
from ahead_ldp.device.canonical import canonical_bytes, digest
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.device.frames import HEADER_LENGTH, ID_LENGTH, Header
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.question import Policy
from ahead_ldp.device.refusals import Reason
from ahead_ldp.device.tokens import NONCE_LENGTH, PANEL_WAVE, report_id, token_group
from ahead_ldp.mechanisms import make_mechanism, mechanism_from_record
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.client import Answer, Fields, Unreachable
from ahead_ldp.service.client.crowd import Crowd
from ahead_ldp.service.issuer import Roster, SigningKey
from ahead_ldp.service.issuer.office import Office
from ahead_ldp.service.server.tokens import verify

SCHEMA = as_schema("pay=integer,0,15")


def make_campaign(**change: Any) -> Campaign:
    """A campaign of AHEAD on 16 codes with epsilon 1, or what ``change`` says."""
    schema = change.pop("schema", SCHEMA)
    mechanism = make_mechanism(change.pop("method", "ahead"), schema, change.pop("epsilon", "1"), 1000)
    parts = {
        "title": "Pay",
        "purpose": "to know how pay is spread",
        "controller": "The Institute",
        "contact": "privacy@example.org",
        "created": "2026-01-01",
        "schema": schema,
        "method": mechanism.record(),
        "epsilon": epsilon_text(mechanism.epsilon),
        "groups": [(g.id, g.share) for g in mechanism.groups(schema)],
        "minimum": 10,
        "closing": {"kind": "manual"},
    }
    return Campaign.of(campaign_record(**{**parts, **change}))


class InEveryCampaign(dict[str, Fields]):
    """An owner who means the same fields by these names, whoever uses them: for tests of other things than names."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self.fields = fields

    def get(self, digest: str, default: Any = None) -> Fields:
        return self.fields


def spent(ledger: Ledger) -> dict[str, Line]:
    """What counts against every field that was charged."""
    return {line.field: line for line in ledger.statement(Limits()).lines if line.field is not None}


@dataclass
class FakeServer:
    """Answers as the wire says. ``change(path, body)`` may rewrite what is shown; ``lose`` drops what is sent."""

    campaign: Campaign
    change: Callable[[str, bytes], bytes] = lambda path, body: body
    lose: str = ""  # "request" or "answer": the next upload
    log: list[tuple[str, str, bytes | None]] = field(default_factory=list)
    seen: dict[bytes, bytes] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    state: str = "open"
    closes_at: int | None = None

    def __post_init__(self) -> None:
        record = self.campaign.record
        self.session = Session(mechanism_from_record(record["method"]), self.campaign.schema, self.campaign.digest)
        self.places: dict[bytes, tuple[int, str]] = {}

    @property
    def name(self) -> str:
        return self.campaign.digest

    def wave(self) -> bytes:
        records = self.session.question_records()
        ordered = [records[group] for group, _ in self.campaign.groups if group in records]
        return canonical_bytes(wave_record(self.name, self.session.number, ordered))

    def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> Answer:
        self.log.append((method, path, body))
        base = f"/v1/campaigns/{self.name}"
        if method == "GET":
            return self._get(path, base)
        assert body is not None
        if path == f"{base}/withdrawals":
            return self._withdraw(bytes.fromhex(json.loads(body)["nonce"]))
        if path != f"{base}/reports":
            return Answer(404, b"{}")
        lost, self.lose = self.lose, ""
        if lost == "request":
            raise Unreachable("lost")
        if lost.isdigit():
            return Answer(int(lost), b"{}")
        answer = self._upload(body)
        if lost == "answer":
            raise Unreachable("lost")
        return Answer(200, self.change(path, json.dumps(answer).encode()))

    def _get(self, path: str, base: str) -> Answer:
        number = self.session.number
        if path == base:
            body = self.campaign.encode()
        elif path == f"{base}/state":
            wave = {"number": number, "state": "open", "opened_at": 0, "closes_at": self.closes_at}
            found = {"state": self.state, "wave": number, "waves": [wave], "frozen": self.session.frozen, "epoch": 1}
            body = json.dumps(found).encode()
        elif path == f"{base}/waves/{number}" and self.session.is_open:
            body = self.wave()
        else:
            return Answer(404, b"{}")
        return Answer(200, self.change(path, body))

    def _upload(self, body: bytes) -> dict[str, Any]:
        header = Header.decode(body)
        assert header.campaign == self.name
        questions = {digest(r): group for group, r in self.session.question_records().items()}
        group = questions.get(header.question)
        refused: list[dict[str, Any]] = []
        if group is None:
            frames = [body[HEADER_LENGTH:]]
            if frames[0][:ID_LENGTH] not in self.seen:
                refused = [{"index": 0, "reason": Reason.CLOSED.value}]
            return {"accepted": 1 - len(refused), "refused": refused}
        law = self.session.wave[group].oracle.law
        tail = 0 if self.campaign.key is None else NONCE_LENGTH + (self.campaign.key[0].bit_length() + 7) // 8
        size = ID_LENGTH + law.payload_length + tail
        frames = [body[i : i + size] for i in range(HEADER_LENGTH, len(body), size)]
        for i, frame in enumerate(frames):
            self.bodies.append(frame)
            reason = self._take(frame, group, law, tail)
            if reason is not None:
                refused.append({"index": i, "reason": reason.value})
        return {"accepted": len(frames) - len(refused), "refused": refused}

    def _take(self, frame: bytes, group: str, law: Any, tail: int) -> Reason | None:
        name = frame[:ID_LENGTH]
        if name in self.seen:
            return None
        law.check_payload(frame[ID_LENGTH : len(frame) - tail])
        if self.campaign.key is not None:
            nonce, signature = frame[-tail:][:NONCE_LENGTH], frame[-tail:][NONCE_LENGTH:]
            if (
                not verify(self.campaign.key, [self.campaign.token_message(nonce)], [signature])[0]
                or report_id(nonce) != name
            ):
                return Reason.TOKEN
            panel = self.campaign.enrolment == "panel"
            among = [g for g in self.campaign.groups if panel or g[0] in self.session.wave]
            wave = PANEL_WAVE if panel else self.session.number
            if token_group(signature, self.name, wave, among) != group:
                return Reason.GROUP
        self.seen[name] = frame
        self.places[name] = (self.session.number, group)
        return None

    def _withdraw(self, nonce: bytes) -> Answer:
        name = report_id(nonce)
        if name not in self.seen:
            return Answer(404, b"{}")
        if self.places.get(name, (0, ""))[0] != self.session.number:
            return Answer(409, b"{}")
        del self.places[name]
        return Answer(200, b"{}")

    def counts(self) -> dict[str, int]:
        """Reports in the open wave, by group."""
        groups = [g for number, g in self.places.values() if number == self.session.number]
        return {group: groups.count(group) for group in self.session.wave}

    def close(self) -> None:
        """Count the wave and go on."""
        tallies = {}
        for group, question in self.session.wave.items():
            names = [name for name, place in self.places.items() if place == (self.session.number, group)]
            end = ID_LENGTH + question.oracle.law.payload_length
            rows = [np.frombuffer(self.seen[name][ID_LENGTH:end], np.uint8) for name in names]
            tallies[group] = question.oracle.tally(np.stack(rows)) if rows else Tally.empty(question.oracle.outcomes)
        self.session.tell(tallies)
        if not self.session.is_open:
            self.state = "finished"


def crowd_of_values(campaign: Campaign, people: list[dict[str, object]], policy: Policy) -> Crowd:
    """People given by values; each value becomes its code as on a device."""
    attributes = campaign.schema.attributes
    return Crowd(campaign, [[a.code(person.get(a.name)) for a in attributes] for person in people], policy)


KEY = SigningKey.generate(2048)


def make_office(tmp_path: Any, tier: str) -> Office:
    """An office with the tests' key."""
    roster = Roster(tmp_path / f"roster-{tier}.db")
    if roster.tier is None:
        roster.tier = tier
    return Office(KEY, roster, tier)


@dataclass
class OfficeSigner:
    """A signer that asks an office directly."""

    office: Office
    secret: str

    def sign(self, message: bytes) -> bytes:
        return self.office.sign(self.secret, message)
