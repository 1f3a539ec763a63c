"""Where a simulation runs: the application objects in this process over a store that fails when it is told to."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from ahead_ldp.service.server.app import Application, create_app
from ahead_ldp.service.server.config import NO_RATES, Settings
from ahead_ldp.service.store import StoreUnavailable, open_store, restore
from tests.service.server.asgi import Answer, ask
from tests.service.server.harness import FakeClock
from tests.service.system.bookkeeping import Book

LEASE_S = 60


class FaultyStore:
    """A store whose calls fail on demand: before they did anything, or after they did it and before they say so."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._left: int | None = None  # calls until the fault, if one is armed
        self._after = self._for_good = False
        self.down = False

    def arm(self, calls: int, after: bool, for_good: bool) -> None:
        """Fail at the call after so many; ``for_good`` is the end of the process, else it recovers at once."""
        with self._lock:
            self._left, self._after, self._for_good = calls, after, for_good

    def disarm(self) -> None:
        with self._lock:
            self._left = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        return self._guarded(found) if callable(found) else found

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if self.down:
                raise StoreUnavailable("the process is gone")
            fails = self._strikes()
            if fails and not self._after:
                raise StoreUnavailable("not done")
            done = call(*args, **kwargs)
            if fails:
                raise StoreUnavailable("done, and nobody was told")
            return done

        return guarded

    def _strikes(self) -> bool:
        with self._lock:
            if self._left is None:
                return False
            self._left -= 1
            if self._left >= 0:
                return False
            self._left = None
            self.down = self.down or self._for_good
            return True


class AppWorld:
    """Two servers over one store in this process, a clock that the simulation moves, and closers run by hand."""

    can_crash = True
    wait = ""

    def __init__(
        self, folder: Path, new_url: Callable[[], str], rng: Random, mutant: Callable[[Any], Any] = lambda store: store
    ) -> None:
        self.folder, self.new_url, self.rng, self.mutant = folder, new_url, rng, mutant
        self.clock = FakeClock()
        self.settings = Settings(closer_interval_s=0.0, window_ms=0.0, lease_s=LEASE_S, **NO_RATES)
        self.url = new_url()
        self.stores: list[FaultyStore] = []
        self.apps: list[Application] = []
        self._open()
        self.operator = self.apps[0].service.add_token("operator", "op")

    def _open(self) -> None:
        if self.url.startswith("postgres"):
            self.stores = [FaultyStore(self.mutant(open_store(self.url))) for _ in range(2)]
        else:  # one process owns the file
            self.stores = [FaultyStore(self.mutant(open_store(self.url)))] * 2
        if not self.apps:
            self.apps = [create_app(store, self.settings, self.clock) for store in self.stores]  # type: ignore[arg-type]
        for app, store in zip(self.apps, self.stores, strict=True):  # all but the routes, which are code, is new
            app.service.__init__(store, self.settings, self.clock)  # type: ignore[misc]
            app.__init__(app.service, app.control)  # type: ignore[misc]

    @property
    def now(self) -> int:
        return self.clock.now

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        """One request to one of the servers."""
        headers = {"authorization": f"Bearer {self.operator}", **options.pop("headers", {})}
        return await ask(self.rng.choice(self.apps), method, f"/v1{path}", headers=headers, **options)

    async def round(self, times: int = 1) -> None:
        """Closers, several at once."""
        await asyncio.gather(*(asyncio.to_thread(self.apps[k % 2].round) for k in range(times)))

    async def idle(self) -> None:
        """Return when no commit is on its way."""
        for app in self.apps:
            if app.ingest is not None:
                await app.ingest.committer._idle.wait()

    async def close_again(self, campaign: str, wave: int) -> None:
        """A closer that thinks the wave is still to be closed."""
        await asyncio.to_thread(self.rng.choice(self.apps).jobs.closer.close, campaign, wave)

    def stands(self, book: Book) -> bool:
        """Whether the waves and groups are where the book has them: then there is nothing new to look at."""
        store = self.stores[0].store
        waves = {wave.number: wave.state.value for wave in store.waves(book.campaign)}
        groups = {(q.wave, q.group): q.state.value for q in store.questions(book.campaign)}
        return (store.campaign(book.campaign).state.value, waves, groups) == (book.state, book.waves, book.groups)

    def events(self) -> Any:
        return self.stores[0].store.events(0, 100_000)

    def arm(self, calls: int, after: bool, for_good: bool) -> None:
        for store in set(self.stores):
            store.arm(calls, after, for_good)

    def disarm(self) -> None:
        for store in set(self.stores):
            store.disarm()

    async def crash(self) -> None:
        """Everything in memory is gone; what is on disk is opened."""
        await self._abandon()
        old = self.url
        if old.startswith("postgres"):
            with psycopg.connect(old, autocommit=True) as connection:
                sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                connection.execute(f"{sql} AND pid <> pg_backend_pid()")
        else:
            self.url = self.new_url()
            for suffix in ("", "-wal"):
                if Path(_path(old) + suffix).exists():
                    shutil.copyfile(_path(old) + suffix, _path(self.url) + suffix)
        for store in set(self.stores):
            store.store.close()
        self._open()

    async def restore(self, backup: Path, keep: list[str], epoch: int) -> None:
        """Another store, filled from a backup."""
        await self._abandon()
        for store in set(self.stores):
            store.store.close()
        self.url = self.new_url()
        restore(backup, self.url, self.now, keep, epoch)
        self._open()

    def backup(self) -> Path:
        path = self.folder / f"backup{self.rng.getrandbits(64)}"
        self.stores[0].store.backup(str(path))
        return path

    async def stop(self) -> None:
        await self._abandon()
        for store in set(self.stores):
            store.store.close()

    async def _abandon(self) -> None:
        """Let threads of this process end; nothing is flushed."""
        for store in self.stores:
            store.down = True
        for app in self.apps:
            if app.ingest is not None:
                await app.ingest.committer.drain()


def _path(url: str) -> str:
    return url.removeprefix("sqlite:")
