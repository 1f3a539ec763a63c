"""Work in the background: waves that are due, closings that operators ask for, reports past their retention, audits.

A job is leased before it is worked on, so that several processes share one store; a lease that runs out is taken over.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ahead_ldp.service.campaigns import handed_out
from ahead_ldp.service.campaigns.campaign import audit_event
from ahead_ldp.service.campaigns.closing import Closer, NotHeld
from ahead_ldp.service.campaigns.lifecycle import SCREENS, Close, Extend, Intent, due, request_closing
from ahead_ldp.service.campaigns.logs import LOGGER, event
from ahead_ldp.service.campaigns.notices import (
    MOST_ATTEMPTS,
    NOTIFY,
    Channel,
    NotDelivered,
    announce,
    deliver,
    wait_s,
    what_closing_means,
)
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.campaigns.replays import Auditor
from ahead_ldp.service.store.interface import KeyMissing, StateChanged, Store, StoreUnavailable
from ahead_ldp.service.store.rows import (
    RESTORED,
    CampaignRow,
    CampaignState,
    Job,
    JobState,
    Lease,
    QuestionState,
    WaveRow,
    WaveState,
)

_DAY_S = 86_400
_RETRY_S = 60  # a job that failed is tried again by the clock, not at once
_RETENTION, _GIVEN_UP = "retention", "given_up"


@dataclass(slots=True)
class Jobs:
    """Looks for what is due and does it. ``run`` is one round; a server calls it over and over."""

    store: Store
    closer: Closer
    clock: Callable[[], int]
    lease_s: int
    channels: Mapping[str, Channel] = field(default_factory=dict)
    failed_at: dict[str, int] = field(default_factory=dict)
    cleaned_at: int = -_RETRY_S
    around: Callable[[str], AbstractContextManager[Any]] = nullcontext  # of the work of a kind
    auditor: Auditor = field(init=False)

    def __post_init__(self) -> None:
        """The auditor comes last in every round."""
        self.auditor = Auditor(self.store, self.closer.terms, self.clock)

    def run(self) -> int:
        """One round: schedule what is due, work off every job that nobody else holds, audit one campaign.

        How many jobs were done.
        """
        for digest, wave in self.store.missing_keys():
            event("key_missing", logging.ERROR, campaign=digest, wave=wave)
        self._clean_up()
        for campaign in self.store.campaigns():
            try:
                self._look_at(campaign)
            except StoreUnavailable:
                raise
            except Exception:  # the others are closed in time, and forgotten in time, nevertheless
                LOGGER.exception("campaign_failed", extra={"fields": {"campaign": campaign.digest}})
        done = 0
        while (job := self.store.lease_job(self.clock(), self.lease_s)) is not None:
            with self.around(job.kind):
                self._work(job)
            done += 1
        self.auditor.step()
        return done

    def _clean_up(self) -> None:
        """Once a minute, the first time at the start: what a server that died was about to delete.

        Files of reports on this machine that nobody is counting, and what was given up and is still in the store.
        """
        if self.clock() < self.cleaned_at + _RETRY_S:
            return
        self.cleaned_at = self.clock()
        for campaign in self.store.campaigns():
            handed_out.forget(self.store, campaign.digest, unused=partial(self._is_idle, campaign.digest))
        try:
            self.store.finish_deletions()
        except StoreUnavailable as error:  # a key that cannot be removed, say: again in a minute; the rest goes on
            event("store_unavailable", logging.ERROR, kind=_GIVEN_UP, reason=str(error))

    def _is_idle(self, campaign: str) -> bool:
        """Whether nobody works on a campaign, or is about to."""
        waiting = (JobState.QUEUED, JobState.LEASED)
        return not any(campaign in job.key and job.state in waiting for job in self.store.jobs())

    def _look_at(self, campaign: CampaignRow) -> None:
        if campaign.state in (CampaignState.FINISHED, CampaignState.VOID):
            self._retain(campaign)
        elif campaign.state is CampaignState.OPEN:
            for wave in self.store.waves(campaign.digest)[-1:]:
                self._look_at_wave(campaign.digest, wave)

    def _look_at_wave(self, campaign: str, wave: WaveRow) -> None:
        terms, now = self.closer.terms(campaign), self.clock()
        if wave.state is WaveState.HELD:
            if self._is_abandoned(campaign, wave.number):  # a closer died in the middle
                self._schedule(campaign, wave.number, now, f"resume/{wave.extensions}", Intent.RESUME)
            return
        if wave.state is not WaveState.OPEN:
            return
        standing = {q.group for q in self.store.questions(campaign, wave.number) if q.state is QuestionState.OPEN}
        counts = {g: n for g, n in self.store.counts(campaign, wave.number).items() if g in standing}
        action = due(terms.campaign.record["closing"], terms.campaign.minimum, wave, counts, now)
        if isinstance(action, Extend):
            self._extend(campaign, wave, action)
        elif isinstance(action, Close):
            intent = Intent.VOID_SHORT if action.void else Intent.COUNT
            self._schedule(campaign, wave.number, now, f"due/{wave.extensions}", intent)

    def _extend(self, campaign: str, wave: WaveRow, action: Extend) -> None:
        body = audit_event("wave_extended", campaign, wave=wave.number, closes_at=action.closes_at)
        try:
            self.store.extend_wave(campaign, wave.number, action.closes_at, wave.extensions, self.clock(), body)
            event("wave_extended", campaign=campaign, wave=wave.number)
            self._announce("round_given_more_time", campaign, wave.number, wave.extensions)
        except StateChanged:
            return  # another process did it

    def _schedule(self, campaign: str, wave: int, now: int, name: str, intent: Intent) -> None:
        key = f"{name}/{campaign}/{wave}"
        if now - self.failed_at.get(key, -_RETRY_S) >= _RETRY_S:
            request_closing(self.store, now, campaign, wave, name, intent)

    def _is_abandoned(self, campaign: str, wave: int) -> bool:
        """Whether a wave is held and nobody works on it: its state is read last, a closer may just have opened it."""
        if self._is_in_work(campaign, wave) or self._is_held_by_screens(campaign, wave):
            return False
        return any(w.number == wave and w.state is WaveState.HELD for w in self.store.waves(campaign))

    def _is_held_by_screens(self, campaign: str, wave: int) -> bool:
        document = self.store.document(campaign, wave, SCREENS)
        return document is not None and bool(json.loads(document)["hold"])

    def _is_in_work(self, campaign: str, wave: int) -> bool:
        waiting = (JobState.QUEUED, JobState.LEASED)
        return any(job.key.endswith(f"/{campaign}/{wave}") and job.state in waiting for job in self.store.jobs())

    def _announce(self, what: str, campaign: str, wave: int, again: int = 0) -> None:
        announce(self.store, self.channels, what, campaign, wave, self.clock(), again)

    def _deliver(self, job: Job) -> None:
        """Tell somebody. What does not arrive is tried again later, a dozen times; no round waits for it."""
        assert job.lease is not None
        state, later = JobState.DONE, None
        try:
            deliver(job, self.channels)
        except NotDelivered as problem:
            event("not_told", logging.WARNING, reason=str(problem), count=job.attempts)
            state, later = self._again(job)
        except Exception:  # our own mistake, or a setting's: the round goes on, and whoever else is told is told
            LOGGER.exception("not_told")
            state, later = self._again(job)
        self.store.end_job(job.number, job.lease, state, None, later)

    def _again(self, job: Job) -> tuple[JobState, int]:
        """When to tell it again, if it is not given up."""
        state = JobState.QUEUED if job.attempts < MOST_ATTEMPTS else JobState.FAILED
        return state, self.clock() + wait_s(job.attempts)

    def _work(self, job: Job) -> None:
        assert job.lease is not None
        if job.kind == NOTIFY:
            self._deliver(job)
            return
        state, result, waits = JobState.FAILED, b"", True  # the clock does not ask for it again at once
        try:
            closed = self.closer.work(job, partial(self._lease, job))
            result, state, waits = json.dumps(closed.record()).encode(), JobState.DONE, False
            if what := what_closing_means(closed.wave, closed.campaign):
                args = json.loads(job.args)
                self._announce(what, args["campaign"], args["wave"])
        except Problem as problem:
            result = problem.body()
            event("job_failed", logging.WARNING, kind=job.kind, reason=problem.kind)
        except StateChanged:
            result = Problem("wrong_state", "something else changed it first").body()
        except NotHeld:  # not a failure to wait after: when it is held again, it is to be gone on with
            result, waits = Problem("wrong_state", "it is not held").body(), False
        except KeyMissing:  # somebody has to do something, and whoever asked is told so
            result = Problem("key_missing").body()
            event("job_failed", logging.ERROR, kind=job.kind, reason="key_missing")
        except StoreUnavailable as error:
            event("store_unavailable", logging.ERROR, kind=job.kind, reason=str(error))
            return  # the lease runs out, and the job is done then
        except Exception:
            LOGGER.exception("job_crashed")
            result = Problem("internal").body()
        if waits:
            self.failed_at[job.key] = self.clock()
        self.store.end_job(job.number, job.lease, state, result)

    def _lease(self, job: Job) -> Lease:
        assert job.lease is not None
        return Lease(job.number, job.lease, self.clock() + self.lease_s)

    def _retain(self, campaign: CampaignRow) -> None:
        """Delete what is to be deleted by now; of a campaign that was given up, what its operator's call has left."""
        kept = self.closer.terms(campaign.digest).campaign.record["retention_days"]
        given_up = campaign.state is CampaignState.VOID and self.store.waves(campaign.digest)[-1:]
        days = 0 if given_up and given_up[0].note != RESTORED else kept
        if campaign.ended_at is None or self.clock() < campaign.ended_at + days * _DAY_S:
            return
        if self.store.document(campaign.digest, 0, _RETENTION) is None:
            body = audit_event("reports_deleted", campaign.digest)
            try:
                count = self.store.delete_reports(campaign.digest, self.clock(), body)
            except StoreUnavailable as error:  # a key that cannot be removed, say: again in the next round
                said = {"kind": _RETENTION, "campaign": campaign.digest, "reason": str(error)}
                event("store_unavailable", logging.ERROR, **said)
                return
            if not handed_out.forget(self.store, campaign.digest):
                return  # the keys are gone, and files are left: again in the next round
            self.store.put_document(campaign.digest, 0, _RETENTION, b"deleted")
            event("reports_deleted", campaign=campaign.digest, count=count)
