"""A store in SQL tables: every call of the interface as one transaction; SQLite and PostgreSQL say how."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ahead_ldp.service.store import campaigns as _campaigns
from ahead_ldp.service.store import events as _events
from ahead_ldp.service.store import jobs as _jobs
from ahead_ldp.service.store import notes, uploads
from ahead_ldp.service.store import role_tokens as _role_tokens
from ahead_ldp.service.store import sessions as _sessions
from ahead_ldp.service.store import waves as _waves
from ahead_ldp.service.store.interface import StoreUnavailable
from ahead_ldp.service.store.keys import Keys
from ahead_ldp.service.store.rows import Chunk, QuestionState
from ahead_ldp.service.store.transactions import Transaction, known_row

_BREATH_S = (
    0.01  # between two portions of a deletion: a lock is not given in turn, so whoever waits needs time to take it
)

P = ParamSpec("P")
R = TypeVar("R")
_Step = Callable[Concatenate[Transaction, P], R]  # what is done in a transaction
_Method = Callable[Concatenate["TableStore", P], R]  # the same as a call of the interface


def _writes(step: _Step[P, R]) -> _Method[P, R]:
    """A call that is one transaction, durable when it returns."""

    @wraps(step)
    def method(store: TableStore, /, *args: P.args, **options: P.kwargs) -> R:
        """Say what the step says."""
        with store.writing() as tx:
            result = step(tx, *args, **options)
        store._forget(tx)
        return result

    return method


def _reads(step: _Step[P, R]) -> _Method[P, R]:
    """A call that sees one state throughout."""

    @wraps(step)
    def method(store: TableStore, /, *args: P.args, **options: P.kwargs) -> R:
        """Say what the step says."""
        with store.reading() as tx:
            return step(tx, *args, **options)

    return method


class TableStore(ABC):
    """The interface ``Store`` on transactions; what each call promises is said there."""

    keys: Keys

    @abstractmethod
    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that is durable when its block has ended, and undone when the block raises."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one state throughout."""

    @abstractmethod
    def _wipe(self) -> None:
        """Called after reports were deleted: the place to wipe what a database keeps of them."""

    ping = _reads(notes.ping)
    _probe = _writes(notes.probe)
    _keyed = _reads(_waves.keyed)
    epoch = _reads(notes.epoch)

    create_campaign = _writes(_campaigns.create)
    campaigns = _reads(_campaigns.every)
    campaign = _reads(_campaigns.one)
    set_campaign_state = _writes(_campaigns.change_state)

    open_wave = _writes(_waves.open_next)
    questions = _reads(_waves.questions)
    set_wave_state = _writes(_waves.set_state)
    extend_wave = _writes(_waves.extend)
    void_group = _writes(_waves.void_group)
    freeze_wave = _writes(_waves.freeze)
    counts = _reads(_waves.counts)
    waves = _reads(_waves.every)

    add_reports = _writes(uploads.add)
    withdraw = _writes(uploads.withdraw)
    _delete_some = _writes(uploads.delete)

    add_counters = _writes(notes.add_counters)
    counters = _reads(notes.counters)
    put_document = _writes(notes.put_document)
    change_document = _writes(notes.change_document)
    document = _reads(notes.document)

    add_job = _writes(_jobs.add)
    lease_job = _writes(_jobs.lease)
    renew_job = _writes(_jobs.renew)
    end_job = _writes(_jobs.end)
    job = _reads(_jobs.one)
    jobs = _reads(_jobs.every)

    add_role_token = _writes(_role_tokens.add)
    role_token = _reads(_role_tokens.one)
    revoke_role_token = _writes(_role_tokens.revoke)
    role_tokens = _reads(_role_tokens.every)

    start_session = _writes(_sessions.start)
    session = _reads(_sessions.one)
    rotate_session = _writes(_sessions.rotate)
    end_session = _writes(_sessions.end)

    add_event = _writes(_events.append)
    events = _reads(_events.every)

    def reports(self, campaign: str, wave: int, group: str, rows: int = 65_536) -> Iterator[Chunk]:
        """Chunk by chunk, each read for itself: a long export keeps no transaction open."""
        with self.reading() as tx:
            question, key_name, state = known_row(tx, "group of a known wave", _QUESTION, campaign, wave, group)
        if state == QuestionState.VOID:
            return iter(())
        return uploads.reports(self._rows, self.keys, key_name, int(question), rows)

    def delete_reports(self, campaign: str, now: int, event: bytes | None = None) -> int:
        """See ``Store``. A transaction for each portion, so that uploads to other campaigns go on."""
        n, left = self._delete_some(campaign, now, event)
        while left:
            time.sleep(_BREATH_S)
            some, left = self._delete_some(campaign, now, event, left)
            n += some
        return n

    def finish_deletions(self) -> None:
        """See ``Store``."""
        with self.reading() as tx:
            tx.left, tx.doomed = uploads.unfinished(tx)
            tx.erases = bool(tx.left)
        self._forget(tx)

    def check_writable(self) -> None:
        """A write that changes nothing visible, and a look at the keys that uploads need."""
        self._probe()
        self.check_keys()

    def check_keys(self) -> None:
        """Return if every wave that is to be counted has its key, else ``KeyMissing``."""
        if self.missing_keys():
            self.keys.cipher(None)

    def missing_keys(self) -> list[tuple[str, int]]:
        """See ``Store``."""
        return [(campaign, wave) for campaign, wave, name in self._keyed() if not self.keys.has(name)]

    def _forget(self, tx: Transaction) -> None:
        """What a transaction has decided to delete, now that it is durable: what is undone must stay readable.

        A key that cannot be removed keeps nothing else from being deleted; it is told of at the end.
        """
        stuck: StoreUnavailable | None = None
        for name in tx.doomed:
            try:
                self.keys.destroy(name)
            except StoreUnavailable as error:
                stuck = error
        left = tx.left
        while left:
            time.sleep(_BREATH_S)
            with self.writing() as portion:
                _, left = uploads.erase_some(portion, left)
        if tx.erases:
            self._wipe()
        if stuck is not None:
            raise stuck

    def _rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self.reading() as tx:
            return tx.rows(sql, *parameters)


_QUESTION = """SELECT q.key, w.key_name, q.state FROM questions q JOIN waves w ON w.key = q.wave
 JOIN campaigns c ON c.key = w.campaign WHERE c.digest = ? AND w.number = ? AND q.name = ?"""
