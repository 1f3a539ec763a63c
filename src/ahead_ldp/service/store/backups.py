"""Backup and restore. A backup is one SQLite file with the store's tables, whatever the store."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.service.store import campaigns, events, notes, role_tokens, uploads
from ahead_ldp.service.store.interface import NotFound, StoreUnavailable
from ahead_ldp.service.store.keys import sync_file
from ahead_ldp.service.store.rows import LINKS, RESTORED, CampaignState, RoleToken
from ahead_ldp.service.store.sqlite import SQLiteStore, new_file
from ahead_ldp.service.store.transactions import Transaction

TABLES = {  # in an order in which they can be filled, with the columns that number rows
    "campaigns": "key",
    "waves": "key",
    "questions": "key",
    "chunks": "seq",
    "counters": None,
    "jobs": "number",
    "role_tokens": None,
    "events": None,
    "documents": None,
}


class Source(Transaction, Protocol):
    """A snapshot that can be read table by table."""

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a large table, a few at a time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How a restore was asked for: when, which campaigns go on, the least epoch, the key directory."""

    now: int
    keep: frozenset[str]
    epoch: int
    keys: str | Path | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A campaign that a restore ended, because nobody vouched for it."""

    campaign: str
    state: CampaignState
    wave: int | None  # the one that was open or held, and is void now
    reports: int  # that the backup held of it; they are deleted


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did."""

    epoch: int
    ended: tuple[Ended, ...]
    forgotten: int  # reports of closed waves that the backup holds, and whose keys are gone
    tokens: tuple[RoleToken, ...]  # that hold now; some may have been revoked since the backup


def write_file(path: str, source: Source) -> None:
    """Copy a snapshot to a new SQLite file; it appears when it is complete and synced."""
    with new_file(path) as part, closing(SQLiteStore(part)) as store, store.writing() as tx:
        tx.change("UPDATE meta SET value = ? WHERE name = 'epoch'", notes.epoch(source))
        for table in TABLES:
            columns = column_names(tx, table)
            sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            for row in source.stream(f"SELECT {', '.join(columns)} FROM {table}"):
                tx.change(sql, *row)
        for row in source.stream("SELECT campaign, id FROM seen WHERE chunk = 0"):
            tx.change("INSERT INTO withdrawn (campaign, id) VALUES (?, ?)", *row)


def column_names(tx: Transaction, table: str) -> list[str]:
    """The columns of a table of a SQLite store."""
    return [name for (name,) in tx.rows("SELECT name FROM pragma_table_info(?) ORDER BY cid", table)]


def prepare(backup: str | Path, folder: Path, asked: Asked) -> tuple[Path, Restored]:
    """A copy of a backup, checked, brought to this program's version, and opened as a new epoch."""
    if not Path(backup).is_file():
        raise NotFound(f"expected a backup file, got {str(backup)!r}")
    handle, name = tempfile.mkstemp(suffix=".restoring", dir=folder)
    path = Path(name)
    try:
        with open(handle, "wb") as copy, open(backup, "rb") as file:
            shutil.copyfileobj(file, copy)
        _check_file(path)
        with closing(SQLiteStore(path, migrate=True, keys=asked.keys)) as store:
            with store.writing() as tx:
                restored = _begin_epoch(tx, asked)
            store.check_keys()
        sync_file(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path, restored


def restore_file(backup: str | Path, path: Path, asked: Asked) -> Restored:
    """A backup as a new SQLite store at a path where nothing is yet."""
    if path.exists():
        raise ValueError(f"expected a path where nothing is yet, got {str(path)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"expected a path in a folder that is there, got {str(path)!r}")
    prepared, restored = prepare(backup, path.parent, asked)
    prepared.rename(path)
    sync_file(path.parent)
    return restored


def _check_file(path: Path) -> None:
    try:
        with closing(sqlite3.connect(path)) as connection:
            ((verdict,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    except sqlite3.DatabaseError as error:
        raise StoreUnavailable(f"the backup cannot be read: {error}") from error
    if verdict != "ok":
        raise StoreUnavailable("the backup is damaged")


def _begin_epoch(tx: Transaction, asked: Asked) -> Restored:
    """A published wave is never closed again: what had not ended ends here, unless somebody vouches for it.

    What happened after the backup is not in it. A wave that was open then may have been closed and published since;
    closing it again from fewer reports would publish a second truth. Only who compared the public chain can know.
    """
    now, keep, new = asked.now, asked.keep, max(notes.epoch(tx) + 1, asked.epoch)
    tx.change("UPDATE meta SET value = ? WHERE name = 'epoch'", new)
    tx.change("DELETE FROM sessions")
    tx.change("DELETE FROM documents WHERE kind = ?", LINKS)  # one that was ended since would hold again
    tx.change("UPDATE jobs SET state = 'queued', lease = NULL, lease_until = NULL WHERE state = 'leased'")
    unknown = keep - {c.digest for c in campaigns.every(tx)}
    if unknown:
        raise NotFound(f"expected campaigns to keep that are in the backup, got {', '.join(sorted(unknown))}")
    going_on = [c for c in campaigns.every(tx) if c.state not in campaigns.FINAL and c.digest not in keep]
    ended = tuple(_end(tx, campaign.digest, now) for campaign in going_on)
    forgotten = _forget(tx)
    body = {
        "event": "restored",
        "epoch": new,
        "kept": sorted(keep),
        "ended": [{"campaign": e.campaign, "state": e.state.value, "reports": e.reports} for e in ended],
    }
    events.append(tx, canonical_bytes(body), now)
    tokens = (t for t in role_tokens.every(tx) if t.revoked_at is None and (t.expires_at or now + 1) > now)
    return Restored(new, ended, forgotten, tuple(tokens))


def _forget(tx: Transaction) -> int:
    """Delete what cannot be read any more: reports past their retention, of which the backup is older."""
    forgotten = 0
    for wave, name in tx.rows("SELECT key, key_name FROM waves WHERE state IN ('closed', 'void')"):
        if not tx.keys.has(name):
            of = "question IN (SELECT key FROM questions WHERE wave = ?)"
            ((n,),) = tx.rows(f"SELECT COALESCE(SUM(n), 0) FROM chunks WHERE {of}", wave)
            uploads.erase(tx, of, wave)
            forgotten += int(n)
    return forgotten


def _end(tx: Transaction, digest: str, now: int) -> Ended:
    """From the closed waves what can be had; the one that was going on is void."""
    key, state = campaigns.locked(tx, digest)
    moving = tx.rows("SELECT key, number FROM waves WHERE campaign = ? AND state IN ('open', 'held')", key)
    number, reports = None, 0
    if moving:  # one at most
        wave, number = moving[0]
        of = "question IN (SELECT key FROM questions WHERE wave = ?)"
        ((reports,),) = tx.rows(f"SELECT COALESCE(SUM(n), 0) FROM chunks WHERE {of}", wave)
        uploads.erase(tx, of, wave)
        tx.change("UPDATE questions SET state = 'void' WHERE wave = ?", wave)
        tx.change("UPDATE waves SET state = 'void', note = ?, closed_at = ? WHERE key = ?", RESTORED, now, wave)
    closed = tx.rows("SELECT 1 FROM waves WHERE campaign = ? AND state = 'closed'", key)
    new = CampaignState.FINISHED if closed else CampaignState.VOID
    campaigns.set_state(tx, key, state, new, now)
    return Ended(digest, new, number, reports)
