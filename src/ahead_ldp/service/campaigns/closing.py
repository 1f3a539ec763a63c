"""Closing a wave: stop it, count it, screen it, derive the next questions, freeze it all in one transaction.

Every step can be repeated by any process after a crash at any point: a stopped wave does not move, counting is a pure
function of it, the next questions are a pure function of the tallies, and the store freezes a wave once. Counting and
screening need the stored questions alone; the method is asked last, and a method that is gone does not lose the count.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np

from ahead_ldp.protocol.mechanism import Tallies
from ahead_ldp.protocol.session import ReplayMismatch, Session
from ahead_ldp.service.campaigns import handed_out
from ahead_ldp.service.campaigns.campaign import Terms, audit_event, find_wave, frozen_after, frozen_digest, too_large
from ahead_ldp.service.campaigns.counting import GroupCount, count_group, payload_rows
from ahead_ldp.service.campaigns.elsewhere import Counter
from ahead_ldp.service.campaigns.lifecycle import SCREENS, Intent, short_groups
from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.screening.screens import WaveScreens, screen_wave
from ahead_ldp.service.store.interface import LeaseLost, StateChanged, Store
from ahead_ldp.service.store.rows import (
    CampaignState,
    Job,
    Lease,
    NewWave,
    QuestionRow,
    QuestionState,
    WaveRow,
    WaveState,
)

LeaseOf = Callable[[], Lease]  # a closer's lease, prolonged to from now


class Hold(StrEnum):
    """Why a wave is held, at the head of its note: whoever takes over after a crash goes on with the same."""

    COUNTING = "counting"
    GIVING_UP_SHORT = "giving_up_short_groups"
    FINISHING = "finishing"

    @classmethod
    def of(cls, intent: Intent) -> Hold:
        """The hold that an intent begins."""
        return {Intent.FINISH: cls.FINISHING, Intent.VOID_SHORT: cls.GIVING_UP_SHORT}.get(intent, cls.COUNTING)

    @classmethod
    def noted(cls, note: str) -> Hold:
        """The hold that a note speaks of; one that says something else is to be counted."""
        head = note.partition(" ")[0]
        return next((hold for hold in cls if hold == head), cls.COUNTING)

    def note(self) -> str:
        """A note for the wave. No two are alike: a count belongs to one hold."""
        return f"{self} {secrets.token_hex(8)}"


class NotHeld(Exception):
    """There is nothing to go on with: the wave was opened again, or its closing has ended."""


@dataclass(frozen=True, slots=True)
class ClosingResult:
    """What became of a wave, and of its campaign."""

    wave: WaveState
    campaign: CampaignState
    void: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        """As plain data."""
        return {"wave_state": self.wave.value, "campaign_state": self.campaign.value, "void": list(self.void)}


@dataclass(frozen=True, slots=True)
class Closer:
    """Closes waves of a store, for one process among possibly several."""

    store: Store
    terms: Callable[[str], Terms]  # of a campaign
    clock: Callable[[], int]
    hold_z: float
    max_cells: int
    counter: Counter | None = None  # counts large waves

    def work(self, job: Job, lease: LeaseOf) -> ClosingResult:
        """Do what a job asks for."""
        args = json.loads(job.args)
        intent = next((Intent(name) for name, wanted in args["options"].items() if wanted), Intent.COUNT)
        return self.close(args["campaign"], args["wave"], intent, lease)

    def close(
        self, campaign: str, number: int, intent: Intent = Intent.COUNT, lease: LeaseOf | None = None
    ) -> ClosingResult:
        """Close a wave, or hold it if its screens say so.

        To resume a wave that is not stopped is ``NotHeld``. ``lease`` is the closer's, kept while it counts; without
        it a wave is not stopped, in one step with that: ``LeaseLost``.
        """
        terms = self.terms(campaign)
        wave = find_wave(self.store, campaign, number)
        if intent is Intent.RESUME and wave.state is not WaveState.HELD:
            raise NotHeld
        if wave.state in (WaveState.CLOSED, WaveState.VOID):
            return self._result(campaign, number)
        if wave.state is WaveState.OPEN:
            self._stop(campaign, number, Hold.of(intent), lease)
            wave = find_wave(self.store, campaign, number)
            if wave.state is WaveState.OPEN:
                raise StateChanged(f"expected wave {number} to be held, another closer opened it again")
        holds = {Hold.of(intent), Hold.noted(wave.note)}  # of this closer, and of the one that stopped the wave
        finish = Hold.FINISHING in holds
        void_short = finish or Hold.GIVING_UP_SHORT in holds
        self._void(terms, wave, void_short, void_all=intent is Intent.VOID_ALL)
        session = self._session(terms, number)
        counts = self._counted(terms, session, number, lease)
        if intent in (Intent.RELEASE, Intent.VOID_ALL) or not self._screened(terms, session, number, counts).hold:
            self._freeze(terms, wave, counts, finish)
        else:
            event("wave_held", campaign=campaign, wave=number)
        return self._result(campaign, number)

    def _stop(self, campaign: str, number: int, hold: Hold, lease: LeaseOf | None) -> None:
        move, held_by = (WaveState.OPEN, WaveState.HELD), None if lease is None else lease()
        try:
            self.store.set_wave_state(campaign, number, *move, self.clock(), hold.note(), lease=held_by)
        except LeaseLost:  # who was asleep for so long that another did it must not stop the wave again
            raise
        except StateChanged:  # another closer was faster; what follows is the same for both
            return

    def _void(self, terms: Terms, wave: WaveRow, void_short: bool, void_all: bool) -> None:
        """Give short groups up, or open the wave again; neither if the hold that they were found in has ended."""
        number, hold = wave.number, wave.note
        void = [q.group for q in self.store.questions(terms.digest, number) if q.state is QuestionState.VOID]
        counts = {group: n for group, n in self.store.counts(terms.digest, number).items() if group not in void}
        short = tuple(counts) if void_all else short_groups(counts, terms.campaign.minimum)
        if short and not void_short and not void_all:
            self.store.set_wave_state(terms.digest, number, WaveState.HELD, WaveState.OPEN, self.clock(), hold=hold)
            raise Problem("below_minimum", f"{len(short)} of {len(counts)} groups")
        for group in short:
            body = audit_event("group_void", terms.digest, wave=number, group=group)
            self.store.void_group(terms.digest, number, group, self.clock(), body, hold=hold)
            event("group_void", campaign=terms.digest, wave=number, group=group)

    def _session(self, terms: Terms, number: int) -> Session:
        """The session of the stored questions that has this wave open. Nothing is computed on the way to it."""
        session = terms.stored_session(self._rows(terms, number))
        if not session.is_open or session.number != number:
            raise Problem("wrong_state", "another process closed the wave")
        return session

    def _rows(self, terms: Terms, number: int) -> list[QuestionRow]:
        return [row for row in self.store.questions(terms.digest) if row.wave <= number]

    def _counted(self, terms: Terms, session: Session, number: int, lease: LeaseOf | None) -> list[GroupCount]:
        keep_lease, rows = partial(self._keep_lease, lease), self.store.questions(terms.digest, number)
        handed_out.forget(self.store, terms.digest)  # what a closer that died may have left
        n = sum(self.store.counts(terms.digest, number).values())
        if self.counter is not None and n >= self.counter.least:
            return self.counter.count(self.store, terms, self._rows(terms, number), number, keep_lease)
        oracles = {group: asked.oracle for group, asked in session.wave.items()}
        return [count_group(self.store, terms.digest, row, oracles[row.group], keep_lease) for row in rows]

    def _keep_lease(self, lease: LeaseOf | None) -> None:
        if lease is not None and not self.store.renew_job(*lease()):
            raise LeaseLost("another process took the job over")

    def _screened(self, terms: Terms, session: Session, number: int, counts: Sequence[GroupCount]) -> WaveScreens:
        tallies, shares = {c.group: c.tally for c in counts}, dict(terms.campaign.groups)
        rows = partial(payload_rows, self.store, terms.digest, number)
        screens = screen_wave(session, tallies, shares, rows, np.random.default_rng(), self.hold_z)
        self.store.put_document(terms.digest, number, SCREENS, json.dumps(screens.record()).encode())
        return screens

    def _freeze(self, terms: Terms, wave: WaveRow, counts: Sequence[GroupCount], finish: bool) -> None:
        now, number = self.clock(), wave.number
        tallies = {c.group: c.tally for c in counts}
        state, following = CampaignState.FINISHED, None
        if not finish:
            state, following = self._what_follows(terms, number, tallies, now)
        frozen = [c.frozen() for c in counts]
        before = frozen_digest(terms.digest, self._rows(terms, number - 1))
        body = audit_event(
            "wave_closed", terms.digest, wave=number, frozen=frozen_after(terms.digest, before, frozen),
            state=state.value,
            groups=[{"group": c.group, "n": c.tally.n, "reports": c.reports_digest} for c in counts],
        )  # fmt: skip
        if self.store.freeze_wave(terms.digest, number, frozen, now, state, following, body, wave.note):
            n = sum(c.tally.n for c in counts)
            event("wave_closed", campaign=terms.digest, wave=number, n=n, state=state.value)

    def _what_follows(
        self, terms: Terms, number: int, tallies: Tallies, now: int
    ) -> tuple[CampaignState, NewWave | None]:
        """What the method asks next. Where this program cannot say it, an operator has to: what is counted stays."""
        try:
            session = terms.session(self._rows(terms, number), tallies)
        except ReplayMismatch:
            event("replay_mismatch", level=40, campaign=terms.digest, wave=number)
            return CampaignState.REVIEW, None
        if not session.is_open:
            return CampaignState.FINISHED, None
        if terms.campaign.record["review"] or too_large(session, self.max_cells):
            return CampaignState.REVIEW, None
        return CampaignState.OPEN, terms.next_wave(session, now)

    def _result(self, campaign: str, number: int) -> ClosingResult:
        wave = find_wave(self.store, campaign, number)
        rows = self.store.questions(campaign, number)
        void = tuple(row.group for row in rows if row.state is QuestionState.VOID)
        return ClosingResult(wave.state, self.store.campaign(campaign).state, void)
