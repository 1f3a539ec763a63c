"""Closing a wave: stop it, count it, screen it, derive the next questions, freeze it all in one transaction.

Every step can be repeated by any process after a crash at any point: a stopped wave does not move, counting is a pure
function of it, the next questions are a pure function of the tallies, and the store freezes a wave once.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.protocol.session import ReplayMismatch, Session
from ahead_ldp.schema.arrays import Bytes
from ahead_ldp.service.campaigns.campaign import Terms, check_size
from ahead_ldp.service.campaigns.counting import Counted, count_group, no_reports, payload_rows
from ahead_ldp.service.campaigns.directory import Directory
from ahead_ldp.service.campaigns.lifecycle import short_groups
from ahead_ldp.service.screening.screens import WaveScreens, screen_wave
from ahead_ldp.service.server.logs import event
from ahead_ldp.service.server.problems import Problem
from ahead_ldp.service.store.interface import LeaseLost, StateChanged, Store
from ahead_ldp.service.store.rows import CampaignState, Lease, QuestionRow, QuestionState, WaveRow, WaveState

SCREENS = "screens"
# Why a wave is held: whoever takes over after a crash goes on with the same intent.
COUNTING, GIVING_UP_SHORT, FINISHING = "counting", "giving_up_short_groups", "finishing"


def audit_event(kind: str, campaign: str, **fields: object) -> bytes:
    """The body of a link of the audit chain."""
    return canonical_bytes({"event": kind, "campaign": campaign, **fields})


class NotHeld(Exception):
    """There is nothing to go on with: the wave was opened again, or its closing has ended."""


@dataclass(frozen=True, slots=True)
class Closed:
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
    directory: Directory
    clock: Callable[[], int]
    hold_z: float
    max_cells: int

    def close(
        self,
        campaign: str,
        number: int,
        *,
        finish: bool = False,
        release: bool = False,
        void_short: bool = False,
        void_all: bool = False,
        resume: bool = False,
        lease: Callable[[], Lease] | None = None,
    ) -> Closed:
        """Close a wave, or hold it if its screens say so.

        ``void_short`` gives up groups below the minimum (past their second deadline, or because the campaign ends
        here), else such a wave goes on and the caller is told; ``release`` counts a held wave whatever its screens
        said; ``void_all`` gives up the whole wave; ``finish`` ends the campaign with it. ``resume`` goes on where a
        closer died, and stops no wave by itself: ``NotHeld`` if it is not stopped. ``lease`` is the closer's, kept
        while it counts; without it a wave is not stopped, in one step with that: ``LeaseLost``.
        """
        terms = self.directory.terms(campaign)
        wave = self._wave(campaign, number)
        if resume and wave.state is not WaveState.HELD:
            raise NotHeld
        if wave.state in (WaveState.CLOSED, WaveState.VOID):
            return self._outcome(campaign, number)
        if wave.state is WaveState.OPEN:
            self._stop(campaign, number, FINISHING if finish else GIVING_UP_SHORT if void_short else COUNTING, lease)
            wave = self._wave(campaign, number)
            if wave.state is WaveState.OPEN:
                raise StateChanged(f"expected wave {number} to be held, another closer opened it again")
        intent = wave.note.partition(" ")[0]
        finish = finish or intent == FINISHING
        void_short = void_short or intent in (GIVING_UP_SHORT, FINISHING)
        rows = self.store.questions(campaign, number)
        self._void(terms, rows, wave, void_short, void_all)
        rows = self.store.questions(campaign, number)
        session = self._session(terms, number)
        counted = [self._count(terms, session, row, lease) for row in rows]
        if not release and not void_all and self._screened(terms, session, number, counted).hold:
            event("wave_held", campaign=campaign, wave=number)
            return self._outcome(campaign, number)
        self._freeze(terms, session, wave, counted, finish)
        return self._outcome(campaign, number)

    def _stop(self, campaign: str, number: int, intent: str, lease: Callable[[], Lease] | None) -> None:
        note = f"{intent} {secrets.token_hex(8)}"  # no two holds are alike: a count belongs to one of them
        move, held_by = (WaveState.OPEN, WaveState.HELD), None if lease is None else lease()
        try:
            self.store.set_wave_state(campaign, number, *move, self.clock(), note, lease=held_by)
        except LeaseLost:  # who was asleep for so long that another did it must not stop the wave again
            raise
        except StateChanged:  # another closer was faster; what follows is the same for both
            return

    def _void(self, terms: Terms, rows: Sequence[QuestionRow], wave: WaveRow, void_short: bool, void_all: bool) -> None:
        """Give short groups up, or open the wave again; neither if the hold that they were found in has ended."""
        number, hold = wave.number, wave.note
        counts = self.store.counts(terms.digest, number)
        standing = {row.group for row in rows if row.state is not QuestionState.VOID}
        counts = {group: n for group, n in counts.items() if group in standing}
        short = tuple(counts) if void_all else short_groups(counts, terms.campaign.minimum)
        if short and not void_short and not void_all:
            self.store.set_wave_state(terms.digest, number, WaveState.HELD, WaveState.OPEN, self.clock(), hold=hold)
            raise Problem("below_minimum", f"{len(short)} of {len(counts)} groups")
        for group in short:
            body = audit_event("group_void", terms.digest, wave=number, group=group)
            self.store.void_group(terms.digest, number, group, self.clock(), body, hold=hold)
            event("group_void", campaign=terms.digest, wave=number, group=group)

    def _session(self, terms: Terms, number: int) -> Session:
        """The session that has this wave open, checked against the stored questions."""
        try:
            session = terms.session([row for row in self.store.questions(terms.digest) if row.wave <= number])
        except ReplayMismatch as error:
            event("replay_mismatch", level=40, campaign=terms.digest, wave=number)
            raise Problem("replay_mismatch", str(error)) from error
        if session.number != number:
            raise Problem("wrong_state", "another process closed the wave")
        return session

    def _count(self, terms: Terms, session: Session, row: QuestionRow, lease: Callable[[], Lease] | None) -> Counted:
        def alive() -> None:
            if lease is not None and not self.store.renew_job(*lease()):
                raise LeaseLost("another process took the job over")

        oracle = session.wave[row.group].oracle
        if row.state is QuestionState.VOID:
            return no_reports(row.group, row.digest, oracle)
        return count_group(self.store, terms.digest, row.wave, row.group, row.digest, oracle, alive)

    def _screened(self, terms: Terms, session: Session, number: int, counted: Sequence[Counted]) -> WaveScreens:
        tallies = {c.group: c.tally for c in counted}
        shares = dict(terms.campaign.groups)

        def rows(group: str) -> Iterator[Bytes]:
            length = session.wave[group].oracle.report_bytes
            return payload_rows(self.store, terms.digest, number, group, length)

        screens = screen_wave(session, tallies, shares, rows, np.random.default_rng(), self.hold_z)
        self.store.put_document(terms.digest, number, SCREENS, json.dumps(screens.record()).encode())
        return screens

    def _freeze(self, terms: Terms, session: Session, wave: WaveRow, counted: Sequence[Counted], finish: bool) -> None:
        now, number = self.clock(), wave.number
        session.tell({c.group: c.tally for c in counted})
        state, following = CampaignState.FINISHED, None
        if session.is_open and not finish:
            state = CampaignState.OPEN
            if terms.review or not self._fits(session):
                state = CampaignState.REVIEW
            else:
                following = terms.next_wave(session, now)
        body = audit_event(
            "wave_closed", terms.digest, wave=number, frozen=session.frozen, state=state.value,
            groups=[{"group": c.group, "n": c.tally.n, "reports": c.reports_digest} for c in counted],
        )  # fmt: skip
        frozen = [c.frozen() for c in counted]
        if self.store.freeze_wave(terms.digest, number, frozen, now, state, following, body, wave.note):
            n = sum(c.tally.n for c in counted)
            event("wave_closed", campaign=terms.digest, wave=number, n=n, state=state.value)

    def _fits(self, session: Session) -> bool:
        try:
            check_size(session, self.max_cells)
        except ValueError:
            return False
        return True

    def _wave(self, campaign: str, number: int) -> WaveRow:
        for wave in self.store.waves(campaign):
            if wave.number == number:
                return wave
        raise Problem("not_found", "no such wave")

    def _outcome(self, campaign: str, number: int) -> Closed:
        wave = self._wave(campaign, number)
        rows = self.store.questions(campaign, number)
        void = tuple(row.group for row in rows if row.state is QuestionState.VOID)
        return Closed(wave.state, self.store.campaign(campaign).state, void)
