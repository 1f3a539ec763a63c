"""Group commit: uploads that arrive together become durable together, in one transaction of one writer thread."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from ahead_ldp.service.campaigns.logs import LOGGER
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server.metrics import Metrics
from ahead_ldp.service.store.interface import KeyMissing, Store
from ahead_ldp.service.store.rows import ID_LENGTH, Batch, Key

Settled = Callable[[list[bytes] | BaseException], None]

_MOST_PER_COMMIT = 20_000
_ENOUGH = 2_000  # reports that need not wait for more
_WINDOWS = 3  # the longest wait, in windows


class Part(NamedTuple):
    """Reports of one upload to one question: what a ``Batch`` of the store is made of."""

    key: Key
    ids: bytes
    payloads: bytes


_Entry = tuple[Sequence[Part], int, Settled]


class Committer:
    """A bounded queue in front of ``Store.add_reports``. An upload is answered only after its commit has returned."""

    def __init__(self, store: Store, metrics: Metrics, window_s: float, most_waiting: int) -> None:
        """Nothing waits; the thread starts with the first upload."""
        self.store, self.metrics, self.window_s, self.most_waiting = store, metrics, window_s, most_waiting
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Entry] = []
        self._reports = 0
        self._busy = False  # a commit runs, or a window is open
        self._last = 0  # uploads of the commit before
        self._work: SimpleQueue[list[_Entry] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, parts: Sequence[Part], n: int) -> asyncio.Future[list[bytes]]:
        """The outcomes of each part once they are durable; a full queue is a ``Problem``."""
        future: asyncio.Future[list[bytes]] = self._loop.create_future()

        self.take(parts, n, partial(_settle, future))
        return future

    def has_room(self, n: int) -> bool:
        """Whether that many more may wait."""
        return not self._waiting or self._reports + n <= self.most_waiting

    def take(self, parts: Sequence[Part], n: int, settled: Settled) -> None:
        """Call ``settled`` with the outcomes once they are durable, or with the error; ``Problem``: a full queue."""
        if not self.has_room(n):
            raise Problem("busy")
        self._waiting.append((parts, n, settled))
        self._reports += n
        if not self._busy:
            self._busy, self._last = True, 0
            self._idle.clear()
            self._open_window()

    async def drain(self) -> None:
        """Return when nothing waits any more."""
        await self._idle.wait()
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
            self._thread = None

    def _open_window(self) -> None:
        self._loop.call_later(self.window_s, self._ripen, self._loop.time() + _WINDOWS * self.window_s)

    def _ripen(self, until: float) -> None:
        """Commit, unless those who were just answered are still about to send again: one sync does for all."""
        if self._reports < _ENOUGH and len(self._waiting) < self._last and self._loop.time() < until:
            self._loop.call_later(self.window_s / 2, self._ripen, until)
        else:
            self._commit()

    def _commit(self) -> None:
        taken, count = 0, 0
        while taken < len(self._waiting) and (not taken or count < _MOST_PER_COMMIT):
            count += self._waiting[taken][1]
            taken += 1
        now, self._waiting = self._waiting[:taken], self._waiting[taken:]
        self.metrics.waiting.set(self._reports)
        if self._thread is None:
            self._thread = Thread(target=self._write, name="ahead-commit", daemon=True)
            self._thread.start()
        self._work.put(now)

    def _write(self) -> None:
        """What the thread does: one commit after the other, each told to the loop when it is durable."""
        while (taken := self._work.get()) is not None:
            started = time.perf_counter()
            result: Sequence[list[bytes] | BaseException] | BaseException
            try:
                result = write(self.store, [parts for parts, _, _ in taken])
            except BaseException as error:
                result = error
            self.metrics.commits.observe(time.perf_counter() - started)
            self._loop.call_soon_threadsafe(self._answer, taken, result)

    def _answer(self, taken: list[_Entry], result: Sequence[list[bytes] | BaseException] | BaseException) -> None:
        for i, (_, n, settled) in enumerate(taken):
            self._reports -= n
            try:
                settled(result if isinstance(result, BaseException) else result[i])
            except Exception:  # the others are told nevertheless
                LOGGER.exception("upload_failed")
        if self._waiting:
            self._last = len(taken)
            self._open_window()
        else:
            self._busy = False
            self._idle.set()


def _settle(future: asyncio.Future[list[bytes]], result: list[bytes] | BaseException) -> None:
    if future.cancelled():
        return  # whoever asked has gone; the reports are in nevertheless
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)


def write(store: Store, uploads: Sequence[Sequence[Part]]) -> Sequence[list[bytes] | BaseException]:
    """The outcomes of each upload, in one commit; if a campaign's key is missing, its uploads alone are told so."""
    try:
        return write_joined(store, uploads)
    except KeyMissing:  # nothing was written
        answers: dict[int, list[bytes] | BaseException] = {}
        campaigns = [parts[0].key[0] for parts in uploads]
        for campaign in dict.fromkeys(campaigns):
            at = [i for i, name in enumerate(campaigns) if name == campaign]
            try:
                answers |= zip(at, write_joined(store, [uploads[i] for i in at]), strict=True)
            except KeyMissing as error:
                answers |= dict.fromkeys(at, error)
        return [answers[i] for i in range(len(uploads))]


def write_joined(store: Store, uploads: Sequence[Sequence[Part]]) -> list[list[bytes]]:
    """The outcomes of each upload's parts; all that goes to one question is one batch of the store.

    Uploads that wait at the same time have no order among them, so joining them changes no promise; the reports of
    one upload stay in theirs.
    """
    joined: dict[Key, list[Part]] = {}
    for parts in uploads:
        for part in parts:
            joined.setdefault(part.key, []).append(part)
    answers = store.add_reports([_batch(key, some) for key, some in joined.items()])
    take = {key: io.BytesIO(outcomes).read for key, outcomes in zip(joined, answers, strict=True)}
    return [[take[key](len(ids) // ID_LENGTH) for key, ids, _ in parts] for parts in uploads]


def _batch(key: Key, parts: Sequence[Part]) -> Batch:
    _, ids, payloads = zip(*parts, strict=True)
    campaign, wave, group, insert = key
    return Batch(campaign, wave, group, b"".join(ids), b"".join(payloads), insert)
