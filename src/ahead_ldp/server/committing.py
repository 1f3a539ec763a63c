"""Group commit: uploads that arrive together become durable together, in one transaction of one writer thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ahead_ldp.server.metrics import Metrics
from ahead_ldp.server.problems import Problem
from ahead_ldp.server.store.interface import Store
from ahead_ldp.server.store.rows import Batch

_MOST_PER_COMMIT = 20_000
_ENOUGH = 2_000  # reports that need not wait for more
_WINDOWS = 3  # the longest wait, in windows


class Committer:
    """A bounded queue in front of ``Store.add_reports``. An upload is answered only after its commit has returned."""

    def __init__(self, store: Store, metrics: Metrics, window_s: float, most_waiting: int) -> None:
        """Nothing waits; the thread starts with the first upload."""
        self.store, self.metrics, self.window_s, self.most_waiting = store, metrics, window_s, most_waiting
        self._waiting: list[tuple[Sequence[Batch], int, asyncio.Future[list[bytes]]]] = []
        self._reports = 0
        self._busy = False  # a commit runs, or a window is open
        self._last = 0  # uploads of the commit before
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ahead-commit")
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, batches: Sequence[Batch], n: int) -> asyncio.Future[list[bytes]]:
        """The outcomes of these batches once they are durable; a full queue is a ``Problem``."""
        if self._reports + n > self.most_waiting and self._waiting:
            raise Problem("busy")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[bytes]] = loop.create_future()
        self._waiting.append((batches, n, future))
        self._reports += n
        if not self._busy:
            self._busy, self._last = True, 0
            self._idle.clear()
            self._open_window(loop)
        return future

    async def drain(self) -> None:
        """Return when nothing waits any more."""
        await self._idle.wait()
        self._thread.shutdown(wait=True)

    def _open_window(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(self.window_s, self._ripen, loop, loop.time() + _WINDOWS * self.window_s)

    def _ripen(self, loop: asyncio.AbstractEventLoop, until: float) -> None:
        """Commit, unless those who were just answered are still about to send again: one sync does for all."""
        if self._reports < _ENOUGH and len(self._waiting) < self._last and loop.time() < until:
            loop.call_later(self.window_s / 2, self._ripen, loop, until)
        else:
            self._commit(loop)

    def _commit(self, loop: asyncio.AbstractEventLoop) -> None:
        taken, count = 0, 0
        while taken < len(self._waiting) and (not taken or count < _MOST_PER_COMMIT):
            count += self._waiting[taken][1]
            taken += 1
        now, self._waiting = self._waiting[:taken], self._waiting[taken:]
        self.metrics.waiting.set(self._reports)
        batches = [batch for some, _, _ in now for batch in some]
        done = loop.run_in_executor(self._thread, self._write, batches)
        done.add_done_callback(lambda future: self._answer(loop, now, count, future))

    def _write(self, batches: list[Batch]) -> list[bytes]:
        started = time.perf_counter()
        outcomes = self.store.add_reports(batches)
        self.metrics.commits.observe(time.perf_counter() - started)
        return outcomes

    def _answer(
        self,
        loop: asyncio.AbstractEventLoop,
        taken: list[tuple[Sequence[Batch], int, asyncio.Future[list[bytes]]]],
        count: int,
        done: asyncio.Future[list[bytes]],
    ) -> None:
        self._reports -= count
        error = done.exception()
        place = 0
        for batches, _, future in taken:
            if future.cancelled():
                pass  # whoever asked has gone; the reports are in nevertheless
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(done.result()[place : place + len(batches)])
            place += len(batches)
        if self._waiting:
            self._last = len(taken)
            self._open_window(loop)
        else:
            self._busy = False
            self._idle.set()
