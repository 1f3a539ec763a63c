"""The parts of one server process, and the operations that its routes offer over them."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ahead_ldp.device.campaign import wave_record
from ahead_ldp.device.canonical import canonical_bytes, parse_canonical
from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.protocol.session import NOTHING, Session
from ahead_ldp.service.campaigns.campaign import Terms, check_size
from ahead_ldp.service.campaigns.closing import Closer, audit_event
from ahead_ldp.service.campaigns.directory import Directory
from ahead_ldp.service.campaigns.jobs import Jobs
from ahead_ldp.service.server.auth import Role, allows, new_token, token_hash
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.logs import event
from ahead_ldp.service.server.metrics import Metrics
from ahead_ldp.service.server.problems import Problem
from ahead_ldp.service.store.interface import StateChanged, Store
from ahead_ldp.service.store.rows import (
    CampaignRow,
    CampaignState,
    QuestionState,
    RoleToken,
    WaveRow,
    WaveState,
    Withdrawal,
)

Clock = Callable[[], int]


def system_clock() -> int:
    """Whole seconds since 1970."""
    return int(time.time())


@dataclass(slots=True)
class Service:
    """Everything that the routes need. Methods are synchronous, call them off the event loop."""

    store: Store
    settings: Settings
    clock: Clock = system_clock
    metrics: Metrics = field(default_factory=Metrics)
    wake: threading.Event = field(default_factory=threading.Event)  # there is work for the closer
    directory: Directory = field(init=False)
    closer: Closer = field(init=False)
    jobs: Jobs = field(init=False)

    def __post_init__(self) -> None:
        """Put the parts together."""
        settings = self.settings
        self.directory = Directory(self.store)
        self.closer = Closer(self.store, self.directory, self.clock, settings.hold_z, settings.max_cells)
        self.jobs = Jobs(self.store, self.closer, self.clock, settings.lease_s)

    # Campaigns

    def create(self, terms: Terms) -> bool:
        """Keep a new campaign as a draft; False if it is there already."""
        session = Session(terms.mechanism, terms.schema, terms.digest)
        if not session.is_open:
            raise ValueError("expected a method that asks at least one question of this schema")
        check_size(session, self.settings.max_cells)
        body = audit_event("campaign_created", terms.digest)
        made = self.store.create_campaign(terms.digest, terms.campaign.encode(), self.clock(), body)
        if made:
            event("campaign_created", campaign=terms.digest)
        return made

    def open(self, campaign: str) -> None:
        """Open the first wave of a draft, or the next one of a campaign in review."""
        terms, row = self.directory.terms(campaign), self.row(campaign)
        if row.state is CampaignState.OPEN:
            raise Problem("wrong_state", "the campaign is open")
        if row.state not in (CampaignState.DRAFT, CampaignState.REVIEW):
            raise Problem("wrong_state", "the campaign has ended")
        session, now = self.directory.session(campaign), self.clock()
        try:
            check_size(session, self.settings.max_cells)
        except ValueError as error:
            raise Problem("wrong_state", str(error)) from None
        wave = terms.next_wave(session, now)
        body = audit_event("wave_opened", campaign, wave=wave.number)
        try:
            self.store.open_wave(campaign, wave, now, row.state, body)
        except StateChanged:
            raise Problem("wrong_state", "something else changed it first") from None
        event("wave_opened", campaign=campaign, wave=wave.number)

    def finish(self, campaign: str) -> int | None:
        """End the campaign here. The number of the job that counts the open wave; None if there is none."""
        row, wave = self.row(campaign), self.last_wave(campaign)
        if row.state in (CampaignState.FINISHED, CampaignState.VOID):
            raise Problem("wrong_state", "the campaign has ended")
        if row.state is CampaignState.DRAFT:
            raise Problem("wrong_state", "the campaign was never opened")
        if row.state is CampaignState.OPEN and wave is not None:
            if wave.state is WaveState.HELD:
                raise Problem("wave_held")
            return self.request(campaign, wave.number, "finish", finish=True)
        self._set_state(campaign, row.state, CampaignState.FINISHED, "campaign_finished")
        return None

    def void(self, campaign: str) -> None:
        """Give the campaign up: no results, and all its reports are deleted."""
        row, wave, now = self.row(campaign), self.last_wave(campaign), self.clock()
        if row.state in (CampaignState.FINISHED, CampaignState.VOID):
            raise Problem("wrong_state", "the campaign has ended")
        try:
            if wave is not None and wave.state in (WaveState.OPEN, WaveState.HELD):
                self.store.set_wave_state(campaign, wave.number, wave.state, WaveState.VOID, now)
        except StateChanged:
            raise Problem("wrong_state", "something else changed it first") from None
        self._set_state(campaign, row.state, CampaignState.VOID, "campaign_void")
        self.store.delete_reports(campaign, now, audit_event("reports_deleted", campaign))

    def _set_state(self, campaign: str, old: CampaignState, new: CampaignState, name: str) -> None:
        try:
            self.store.set_campaign_state(campaign, old, new, self.clock(), audit_event(name, campaign))
        except StateChanged:
            raise Problem("wrong_state", "something else changed it first") from None
        event(name, campaign=campaign, state=new.value)

    # Waves

    def request(self, campaign: str, wave: int, name: str, **options: bool) -> int:
        """Ask the background closer for a wave; the number of the job."""
        number = self.jobs.request(campaign, wave, name, **options).number
        self.wake.set()
        return number

    def wave(self, campaign: str, number: int) -> WaveRow:
        """A wave of a campaign."""
        self.row(campaign)
        for wave in self.store.waves(campaign):
            if wave.number == number:
                return wave
        raise Problem("not_found", "no such wave")

    def close_wave(self, campaign: str, number: int, name: str, **options: bool) -> int:
        """Close an open wave ("close"), or settle a held one ("release", "void"); the number of the job."""
        wave = self.wave(campaign, number)
        if wave.state in (WaveState.CLOSED, WaveState.VOID):
            raise Problem("wrong_state", "the wave is closed")
        if name == "close" and wave.state is WaveState.HELD:
            raise Problem("wave_held")
        if name == "release" and wave.state is WaveState.OPEN:
            raise Problem("wrong_state", "the wave is open")
        return self.request(campaign, number, name, **options)

    def extend(self, campaign: str, number: int, seconds: int) -> None:
        """Give an open wave a new deadline."""
        wave, closes_at = self.wave(campaign, number), self.clock() + seconds
        body = audit_event("wave_extended", campaign, wave=number, closes_at=closes_at)
        try:
            self.store.extend_wave(campaign, number, closes_at, wave.extensions, self.clock(), body)
        except StateChanged:
            raise Problem("wrong_state", "the wave is not open") from None

    def void_group(self, campaign: str, number: int, group: str) -> None:
        """Give up one group of an open or held wave."""
        if self.wave(campaign, number).state not in (WaveState.OPEN, WaveState.HELD):
            raise Problem("wrong_state", "the wave is closed")
        if group not in {q.group for q in self.store.questions(campaign, number)}:
            raise Problem("not_found", "no such group in this wave")
        try:
            body = audit_event("group_void", campaign, wave=number, group=group)
            self.store.void_group(campaign, number, group, self.clock(), body)
        except StateChanged:
            raise Problem("wrong_state", "the wave is closed") from None

    # What everybody may see

    def row(self, campaign: str) -> CampaignRow:
        """A campaign with its state."""
        self.directory.terms(campaign)
        return self.store.campaign(campaign)

    def last_wave(self, campaign: str) -> WaveRow | None:
        """The latest wave, if one was opened."""
        waves = self.store.waves(campaign)
        return waves[-1] if waves else None

    def wave_bytes(self, campaign: str, number: int) -> bytes:
        """The canonical record of a wave, from the stored questions."""
        self.wave(campaign, number)
        rows = self.store.questions(campaign, number)
        return canonical_bytes(wave_record(campaign, number, [parse_canonical(row.record) for row in rows]))

    def state(self, campaign: str) -> dict[str, Any]:
        """Where a campaign stands."""
        row, waves = self.row(campaign), self.store.waves(campaign)
        listed = [
            {"number": w.number, "state": w.state.value, "opened_at": w.opened_at, "closes_at": w.closes_at}
            for w in waves
        ]
        frozen = self.directory.session(campaign).frozen if waves else NOTHING
        return {
            "state": row.state.value,
            "wave": waves[-1].number if waves else 0,
            "waves": listed,
            "frozen": frozen,
            "epoch": row.epoch,
        }

    def progress(self, campaign: str) -> dict[str, Any]:
        """How many reports the latest wave has: numbers, never what they say."""
        terms, row, wave = self.directory.terms(campaign), self.row(campaign), self.last_wave(campaign)
        groups: list[dict[str, Any]] = []
        refused: dict[str, int] = {}
        if wave is not None:
            counts = self.store.counts(campaign, wave.number)
            for q in self.store.questions(campaign, wave.number):
                n = counts.get(q.group, 0) if q.state is QuestionState.OPEN else q.n or 0
                minimum = terms.campaign.minimum
                groups.append({"group": q.group, "reports": n, "minimum": minimum, "state": q.state.value})
            for (number, reason), count in self.store.counters(campaign).items():
                if number == wave.number:
                    refused[reason] = refused.get(reason, 0) + count
        return {
            "state": row.state.value,
            "wave": 0 if wave is None else wave.number,
            "groups": groups,
            "reports": sum(g["reports"] for g in groups),
            "refused": refused,
            "closes_at": None if wave is None else wave.closes_at,
            "held": wave is not None and wave.state is WaveState.HELD,
        }

    def withdraw(self, campaign: str, nonce: bytes) -> Withdrawal:
        """Delete the report behind a receipt."""
        self.row(campaign)
        report_id = hashlib.sha256(nonce).digest()[:ID_LENGTH]
        found = self.store.withdraw(campaign, report_id, self.clock())
        self.metrics.withdrawals.labels(found.value).inc()
        return found

    # What analysts may see

    def closed_session(self, campaign: str) -> Session:
        """The session of the closed waves; a ``Problem`` before the first one, and for a void campaign."""
        if self.row(campaign).state is CampaignState.VOID:
            raise Problem("no_results", "the campaign is void")
        session = self.directory.session(campaign)
        if not session.history:
            raise Problem("no_results")
        return session

    # Tokens of roles

    def add_token(self, role: str, name: str, expires_in_s: int | None = None) -> str:
        """A new token of a role; its text is returned here and kept nowhere."""
        token, now = new_token(), self.clock()
        expires = None if expires_in_s is None else now + expires_in_s
        row = RoleToken(token_hash(token), Role(role).value, name, now, expires, None)
        try:
            self.store.add_role_token(row, canonical_bytes({"event": "token_added", "role": role, "name": name}))
        except StateChanged:
            raise Problem("wrong_state", "a token of this name exists") from None
        event("token_added", role=role)
        return token

    def authorize(self, token: str | None, wanted: Role) -> None:
        """Return if the token's role may do this."""
        found = None if token is None else self.store.role_token(token_hash(token))
        if found is None or found.revoked_at is not None or (found.expires_at or self.clock() + 1) <= self.clock():
            raise Problem("unauthorized")
        if not allows(Role(found.role), wanted):
            raise Problem("forbidden")
