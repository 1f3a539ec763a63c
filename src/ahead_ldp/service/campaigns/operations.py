"""What can be done with campaigns and waves, and what can be seen of them: everything but HTTP.

A call that a campaign's state does not allow is a ``Problem``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ahead_ldp.device.tokens import report_id
from ahead_ldp.protocol.session import Session
from ahead_ldp.service.campaigns import handed_out
from ahead_ldp.service.campaigns.campaign import Terms, audit_event, find_wave, too_large
from ahead_ldp.service.campaigns.directory import Directory
from ahead_ldp.service.campaigns.lifecycle import SCREENS, Intent, being_counted, request_closing
from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.campaigns.replays import notice
from ahead_ldp.service.campaigns.turns import Turns
from ahead_ldp.service.store.interface import StateChanged, Store
from ahead_ldp.service.store.rows import (
    CampaignRow,
    CampaignState,
    Job,
    JobState,
    QuestionState,
    WaveRow,
    WaveState,
    Withdrawal,
)

Clock = Callable[[], int]
_ENDED = (CampaignState.FINISHED, CampaignState.VOID)
_POLL_S = 0.02


T = TypeVar("T")


def system_clock() -> int:
    """Whole seconds since 1970."""
    return int(time.time())


@contextmanager
def _unchanged(detail: str = "something else changed it first") -> Iterator[None]:
    """What another caller changed first is a problem, not an error."""
    try:
        yield
    except StateChanged:
        raise Problem("wrong_state", detail) from None


@dataclass
class Campaigns:
    """The campaigns of a store. Methods are synchronous, call them off an event loop."""

    store: Store
    clock: Clock
    max_cells: int
    rehearsing: bool = False  # the store is for rehearsals, and for nothing else
    wake: threading.Event = field(default_factory=threading.Event)  # there is work for the closer

    def __post_init__(self) -> None:
        """Nothing is read before it is asked for."""
        self.directory, self.turns = Directory(self.store, self.rehearsing), Turns()

    def worked_out(self, work: Callable[[], T]) -> T:
        """What comes of work that takes seconds, in its turn; a ``ValueError`` in it is a mistake in the question."""
        with self.turns.one():
            try:
                return work()
            except ValueError as error:
                raise Problem("invalid_query", str(error)) from None

    # Campaigns

    def create(self, terms: Terms) -> bool:
        """Keep a new campaign as a draft; False if it is there already."""
        if terms.campaign.is_rehearsal != self.rehearsing:
            raise ValueError("expected a campaign without the mark of a rehearsal: a rehearsal never becomes one")
        session = Session(terms.mechanism, terms.schema, terms.digest)
        if not session.is_open:
            raise ValueError("expected a method that asks at least one question of this schema")
        if wrong := too_large(session, self.max_cells):
            raise ValueError(wrong)
        body = audit_event("campaign_created", terms.digest)
        created = self.store.create_campaign(terms.digest, terms.campaign.encode(), self.clock(), body)
        if created:
            event("campaign_created", campaign=terms.digest)
        return created

    def open(self, campaign: str) -> None:
        """Open the first wave of a draft, or the next one of a campaign in review."""
        row = self.going_on(campaign)
        if row.state is CampaignState.OPEN:
            raise Problem("wrong_state", "the campaign is open")
        session, now = self.directory.replayed(campaign), self.clock()
        if wrong := too_large(session, self.max_cells):
            raise Problem("wrong_state", wrong)
        wave = self.directory.terms(campaign).next_wave(session, now)
        with _unchanged():
            body = audit_event("wave_opened", campaign, wave=wave.number)
            self.store.open_wave(campaign, wave, now, row.state, body)
        event("wave_opened", campaign=campaign, wave=wave.number)

    def finish(self, campaign: str) -> int | None:
        """End the campaign here. The number of the job that counts the open wave; None if there is none."""
        row, wave = self.going_on(campaign), self.last_wave(campaign)
        if row.state is CampaignState.DRAFT:
            raise Problem("wrong_state", "the campaign was never opened")
        if row.state is CampaignState.OPEN and wave is not None:
            if wave.state is WaveState.HELD:
                raise Problem("wave_held")
            return self._request(campaign, wave.number, "finish", Intent.FINISH)
        self._set_state(campaign, row.state, CampaignState.FINISHED, "campaign_finished")
        return None

    def void(self, campaign: str) -> None:
        """Give the campaign up: no results, and all its reports are deleted."""
        row, wave, now = self.going_on(campaign), self.last_wave(campaign), self.clock()
        with _unchanged():
            if wave is not None and wave.state in (WaveState.OPEN, WaveState.HELD):
                self.store.set_wave_state(campaign, wave.number, wave.state, WaveState.VOID, now)
        self._set_state(campaign, row.state, CampaignState.VOID, "campaign_void")
        self.store.delete_reports(campaign, now, audit_event("reports_deleted", campaign))
        handed_out.forget(self.store, campaign)

    def _set_state(self, campaign: str, old: CampaignState, new: CampaignState, name: str) -> None:
        with _unchanged():
            self.store.set_campaign_state(campaign, old, new, self.clock(), audit_event(name, campaign))
        event(name, campaign=campaign, state=new.value)

    # Waves

    def close_wave(self, campaign: str, number: int) -> int:
        """Close an open wave; the number of the job."""
        if self._moving(campaign, number).state is WaveState.HELD:
            raise Problem("wave_held")
        return self._request(campaign, number, "close", Intent.COUNT)

    def release_wave(self, campaign: str, number: int) -> int:
        """Count a held wave, whatever its screens said; the number of the job."""
        if self._moving(campaign, number).state is WaveState.OPEN:
            raise Problem("wrong_state", "the wave is open")
        return self._request(campaign, number, "release", Intent.RELEASE)

    def void_wave(self, campaign: str, number: int) -> int:
        """Give up an open or held wave; the number of the job."""
        self._moving(campaign, number)
        return self._request(campaign, number, "void", Intent.VOID_ALL)

    def extend(self, campaign: str, number: int, seconds: int) -> None:
        """Give an open wave a new deadline."""
        wave, closes_at = self.wave(campaign, number), self.clock() + seconds
        body = audit_event("wave_extended", campaign, wave=number, closes_at=closes_at)
        with _unchanged("the wave is not open"):
            self.store.extend_wave(campaign, number, closes_at, wave.extensions, self.clock(), body)

    def void_group(self, campaign: str, number: int, group: str) -> None:
        """Give up one group of an open or held wave."""
        self._moving(campaign, number)
        if group not in {q.group for q in self.store.questions(campaign, number)}:
            raise Problem("not_found", "no such group in this wave")
        with _unchanged("the wave is closed"):
            body = audit_event("group_void", campaign, wave=number, group=group)
            self.store.void_group(campaign, number, group, self.clock(), body)

    def ended_job(self, number: int, wait_s: float) -> Job:
        """A job, when it has ended or this time is over."""
        until = time.monotonic() + wait_s
        while True:
            job = self.store.job(number)
            if job.state in (JobState.DONE, JobState.FAILED) or time.monotonic() >= until:
                return job
            time.sleep(_POLL_S)

    def _request(self, campaign: str, wave: int, name: str, intent: Intent) -> int:
        job = request_closing(self.store, self.clock(), campaign, wave, name, intent)
        self.wake.set()
        return job.number

    def _moving(self, campaign: str, number: int) -> WaveRow:
        wave = self.wave(campaign, number)
        if wave.state in (WaveState.CLOSED, WaveState.VOID):
            raise Problem("wrong_state", "the wave is closed")
        return wave

    # What everybody may see

    def row(self, campaign: str) -> CampaignRow:
        """A campaign with its state."""
        self.directory.terms(campaign)
        return self.store.campaign(campaign)

    def going_on(self, campaign: str) -> CampaignRow:
        """A campaign that has not ended."""
        row = self.row(campaign)
        if row.state in _ENDED:
            raise Problem("wrong_state", "the campaign has ended")
        return row

    def wave(self, campaign: str, number: int) -> WaveRow:
        """A wave of a campaign."""
        self.row(campaign)
        return find_wave(self.store, campaign, number)

    def last_wave(self, campaign: str) -> WaveRow | None:
        """The latest wave, if one was opened."""
        return next(reversed(self.store.waves(campaign)), None)

    def state(self, campaign: str) -> dict[str, Any]:
        """Where a campaign stands."""
        row, waves = self.row(campaign), self.store.waves(campaign)
        return {
            "state": row.state.value,
            "wave": waves[-1].number if waves else 0,
            "waves": [
                {"number": w.number, "state": w.state.value, "opened_at": w.opened_at, "closes_at": w.closes_at}
                for w in waves
            ],
            "frozen": self.directory.frozen(campaign, waves),
            "epoch": row.epoch,
        }

    def progress(self, campaign: str) -> dict[str, Any]:
        """How many reports the latest wave has: numbers, never what they say."""
        row, wave = self.row(campaign), self.last_wave(campaign)
        number = 0 if wave is None else wave.number
        groups = [] if wave is None else self._group_progress(campaign, number)
        counters = self.store.counters(campaign) if wave is not None else {}
        stopped = wave is not None and wave.state is WaveState.HELD
        counting = stopped and being_counted(self.store, campaign, number)
        return {
            "state": row.state.value,
            "wave": number,
            "groups": groups,
            "reports": sum(g["reports"] for g in groups),
            "refused": {reason: count for (of, reason), count in counters.items() if of == number},
            "closes_at": None if wave is None else wave.closes_at,
            "counting": counting,
            "held": stopped and not counting,
            **({"notice": told} if (told := notice(self.store, campaign)) else {}),
        }

    def _group_progress(self, campaign: str, number: int) -> list[dict[str, Any]]:
        counts, minimum = self.store.counts(campaign, number), self.directory.terms(campaign).campaign.minimum
        return [
            {
                "group": q.group,
                "reports": counts.get(q.group, 0) if q.state is QuestionState.OPEN else q.n or 0,
                "minimum": minimum,
                "state": q.state.value,
            }
            for q in self.store.questions(campaign, number)
        ]

    def withdraw(self, campaign: str, nonce: bytes) -> Withdrawal:
        """Delete the report behind a receipt."""
        self.row(campaign)
        return self.store.withdraw(campaign, report_id(nonce), self.clock())

    # What analysts may see

    def screens(self, campaign: str) -> list[tuple[WaveRow, dict[str, Any]]]:
        """Every wave with what its checks said; nothing where it was not checked."""
        self.row(campaign)
        waves = self.store.waves(campaign)
        return [(w, json.loads(self.store.document(campaign, w.number, SCREENS) or b"{}")) for w in waves]

    def closed_session(self, campaign: str) -> Session:
        """The session of the closed waves; a ``Problem`` before the first one, and for a void campaign."""
        if self.row(campaign).state is CampaignState.VOID:
            raise Problem("no_results", "the campaign is void")
        session = self.directory.session(campaign)
        if not session.history:
            raise Problem("no_results")
        return session
