"""What the store holds and never changes, read once: terms of campaigns, questions, published waves, sessions.

What devices need (terms, targets of their reports, waves, the end of the chain) comes from stored bytes. Only analysts'
estimates run a method, and they do without it where this program does not ask the stored questions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import TypeVar

from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.canonical import check_digest
from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.device.question import Policy, check_question
from ahead_ldp.device.tokens import NONCE_LENGTH
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.oracles import Oracle, oracle_of_law
from ahead_ldp.protocol.session import ReplayMismatch, Session
from ahead_ldp.service.campaigns.campaign import WAYS_OUT, Terms, frozen_digest, wave_bytes
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.screening.joint_fit import told
from ahead_ldp.service.screening.manipulation import AskedWave
from ahead_ldp.service.store.interface import NotFound, Store
from ahead_ldp.service.store.rows import Key, WaveRow, WaveState

_MOST_TARGETS = 100_000
T = TypeVar("T")
Standing = tuple[tuple[int, bool], ...]  # every wave, and whether it is closed
_MOST_PUBLISHED = 64 * 2**20  # bytes of waves in memory
_MOST_CAMPAIGNS = 32  # whose sessions and estimates stay in memory: some 50 MB for five attributes


@dataclass(frozen=True, slots=True)
class Published:
    """A wave as everybody gets it: bytes that never change, and the tag by which a reader knows them again."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What a report to one question must look like, and where it goes."""

    terms: Terms
    wave: int
    group: str
    question: str
    oracle: Oracle
    payload_length: int
    frame_length: int
    groups: tuple[tuple[str, int], ...]  # among which the device drew
    entering: Key  # of reports that are well
    asking: Key  # of reports that are not, and are only looked up
    has_tokens: bool  # frames end with a nonce and its signature


class Directory:
    """Look-ups by digest. Safe from any thread: entries are immutable, a race computes a small one twice."""

    def __init__(self, store: Store, rehearsing: bool = False) -> None:
        """Nothing is read before it is asked for. Rehearsals are found where they belong, and nowhere else."""
        self.store, self._rehearsing = store, rehearsing
        self._terms: dict[str, Terms] = {}
        self._targets: dict[bytes, Target] = {}
        self._published: dict[tuple[str, int], Published] = {}
        self._chains: dict[str, tuple[Standing, str]] = {}
        self._sessions: dict[str, tuple[Standing, Session]] = {}
        self._estimates: dict[str, tuple[Standing, Estimate]] = {}
        self._one_by_one: dict[str, Lock] = {}  # of campaigns whose estimate was asked for
        self._asked: dict[str, tuple[Standing, list[AskedWave]]] = {}

    def terms(self, campaign: str) -> Terms:
        """The terms of a stored campaign; a ``Problem`` if there is none."""
        if (known := self._terms.get(campaign)) is not None:
            return known
        try:
            row = self.store.campaign(check_digest(campaign, "campaign"))
        except (ValueError, NotFound):
            raise Problem("not_found", "no such campaign") from None
        terms = Terms(Campaign.from_bytes(row.record, campaign))
        if terms.campaign.is_rehearsal != self._rehearsing:
            raise Problem("not_found", "no such campaign: a rehearsal is none")
        self._terms[campaign] = terms
        return terms

    def cached_target(self, key: bytes) -> Target | None:
        """The target of campaign and question digest (64 bytes), if it was loaded before."""
        return self._targets.get(key)

    def target(self, key: bytes) -> Target | None:
        """The target of campaign and question digest (64 bytes); None if no wave has the question."""
        if (known := self._targets.get(key)) is not None:
            return known
        campaign, question = key[:32].hex(), key[32:].hex()
        terms = self.terms(campaign)
        rows = self.store.questions(campaign)
        if question not in {row.digest for row in rows}:
            return None
        if len(self._targets) > _MOST_TARGETS:
            self._targets.clear()
        made = dict[bytes, Target]()
        for row in rows:
            asked = tuple(r.group for r in rows if r.wave == row.wave)
            policy = Policy(terms.campaign.epsilon, max_cells=2**31)
            law = check_question(row.record, terms.schema, campaign, policy).law
            length = ID_LENGTH + law.payload_length
            if terms.campaign.key is not None:
                length += NONCE_LENGTH + (terms.campaign.key[0].bit_length() + 7) // 8
            panel = terms.campaign.enrolment == "panel"
            groups = tuple(g for g in terms.campaign.groups if panel or g[0] in asked)
            place = (campaign, row.wave, row.group)
            made[key[:32] + bytes.fromhex(row.digest)] = Target(
                terms, row.wave, row.group, row.digest, oracle_of_law(law), law.payload_length, length, groups,
                entering=(*place, True), asking=(*place, False), has_tokens=terms.campaign.key is not None,
            )  # fmt: skip
        self._targets |= made
        return made[key]

    def published(self, campaign: str, number: int) -> Published | None:
        """A wave that was read before."""
        return self._published.get((campaign, number))

    def publish(self, campaign: str, number: int) -> Published:
        """A wave from its stored questions, kept in memory; a ``Problem`` if there is none."""
        if (known := self._published.get((campaign, number))) is not None:
            return known
        self.terms(campaign)
        rows = self.store.questions(campaign, number)
        if not rows:
            raise Problem("not_found", "no such wave")
        body = wave_bytes(campaign, number, [row.record for row in rows])
        made = Published(body, f'"{hashlib.sha256(body).hexdigest()}"')
        if sum(len(wave.body) for wave in list(self._published.values())) + len(body) > _MOST_PUBLISHED:
            self._published.clear()
        self._published[campaign, number] = made
        return made

    def frozen(self, campaign: str, waves: Sequence[WaveRow]) -> str:
        """The end of the public chain after these waves, from the stored tallies of those that are closed."""
        standing = _standing(waves)
        known = self._chains.get(campaign)
        if known is None or known[0] != standing:
            closed = {number for number, is_closed in standing if is_closed}
            rows = [row for row in self.store.questions(campaign) if row.wave in closed] if closed else []
            known = self._chains[campaign] = (standing, frozen_digest(campaign, rows))
        return known[1]

    def replayed(self, campaign: str) -> Session:
        """The session of the campaign's own method behind all stored waves; a ``Problem`` where it is gone."""
        rows = self.store.questions(campaign)
        try:
            return self.terms(campaign).session(rows)
        except ReplayMismatch as error:
            ways_out = WAYS_OUT if rows else "create the campaign anew: nobody was asked yet"
            raise Problem("replay_mismatch", f"{error}; {ways_out}") from error

    def session(self, campaign: str) -> Session:
        """The session behind all stored waves, read anew when a wave was frozen or opened since the last call.

        It is the method's own, or, where that does not ask the stored questions, the session of those questions. The
        session is shared: do not tell it anything.
        """
        return self._session(campaign)[1]

    def estimate(self, campaign: str) -> Estimate:
        """The estimate from the closed waves, computed once for each of them."""
        return self._derived(campaign, self._estimates, Session.finish)

    def asked(self, campaign: str) -> list[AskedWave]:
        """The questions of every closed wave with their tallies; the mechanism is replayed once when one was closed."""
        return self._derived(campaign, self._asked, _asked)

    def _derived(self, campaign: str, kept: dict[str, tuple[Standing, T]], derive: Callable[[Session], T]) -> T:
        self.terms(campaign)  # there is one
        with self._one_by_one.setdefault(campaign, Lock()):  # it takes seconds, and many may ask when a wave was closed
            standing, session = self._session(campaign)
            known = kept.get(campaign)
            if known is None or known[0] != standing:
                known = _keep(kept, campaign, (standing, derive(session)))
            return known[1]

    def _session(self, campaign: str) -> tuple[Standing, Session]:
        terms, standing = self.terms(campaign), _standing(self.store.waves(campaign))
        known = self._sessions.get(campaign)
        if known is not None and known[0] == standing:
            return known
        rows = self.store.questions(campaign)
        try:
            session = terms.session(rows)
        except ReplayMismatch:
            session = terms.stored_session(rows)
        if len(session.history) == sum(closed for _, closed in standing):
            _keep(self._sessions, campaign, (standing, session))  # unless a wave was closed between the two reads
        return standing, session


def _keep(kept: dict[str, T], campaign: str, made: T) -> T:
    """Keep what was made of a campaign; of too many the first that was made goes."""
    kept.pop(campaign, None)
    kept[campaign] = made
    for oldest in list(kept)[:-_MOST_CAMPAIGNS]:
        kept.pop(oldest, None)
    return made


def _standing(waves: Sequence[WaveRow]) -> Standing:
    return tuple((wave.number, wave.state is WaveState.CLOSED) for wave in waves)


def _asked(session: Session) -> list[AskedWave]:
    pairs = iter(told(session))
    return [list(islice(pairs, len(tallies))) for tallies in session.history]
