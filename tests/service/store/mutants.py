"""Stores that break the one promise that matters: what is acknowledged is on disk. The proofs must find them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ahead_ldp.service.store import Batch, PostgresStore, SQLiteStore, Store, open_store


class UnsyncedSQLite(SQLiteStore):
    """Commits that the operating system has, and the disk perhaps not."""

    level = "OFF"

    def _prepare(self, writer: sqlite3.Connection) -> None:
        super()._prepare(writer)
        writer.execute(f"PRAGMA synchronous = {self.level}")


class CheckpointSyncedSQLite(UnsyncedSQLite):
    """What SQLite recommends for speed: the log is synced at checkpoints only."""

    level = "NORMAL"


class UnsyncedPostgres(PostgresStore):
    """Commits that PostgreSQL flushes when it finds the time."""

    @contextmanager
    def writing(self) -> Iterator[Any]:
        with super().writing() as tx:
            tx.change("SET LOCAL synchronous_commit = off")
            yield tx


class EarlyStore:
    """Acknowledges what it keeps in memory, and commits a few uploads later."""

    def __init__(self, store: Store, behind: int = 20) -> None:
        self._store, self._behind, self._waiting = store, behind, list[Batch]()

    def add_reports(self, batches: Sequence[Batch]) -> list[bytes]:
        self._waiting += batches
        if len(self._waiting) > self._behind:
            self._store.add_reports([self._waiting.pop(0)])
        return [bytes(batch.n) for batch in batches]


MUTANTS = ("early", "unsynced")


def open_mutant(url: str, mutant: str) -> Any:
    """A store, whole or broken in one way."""
    if mutant == "unsynced":
        return UnsyncedPostgres(url) if url.startswith("postgres") else UnsyncedSQLite(url.removeprefix("sqlite:"))
    store = open_store(url)
    return EarlyStore(store) if mutant == "early" else store
