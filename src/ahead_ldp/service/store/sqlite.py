"""The embedded store: one SQLite file, write-ahead log, synced at every commit, one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from ahead_ldp.service.store import conversion, migrations
from ahead_ldp.service.store.interface import StoreUnavailable
from ahead_ldp.service.store.keys import Keys, sync_file
from ahead_ldp.service.store.known_ids import KnownIds
from ahead_ldp.service.store.tables import TableStore
from ahead_ldp.service.store.transactions import Lock

CACHE_KB = 16 * 1024
CHECKPOINT_BYTES = 32 * 1024 * 1024  # a page that many commits touch is copied back once
PAGE_BYTES = 4096
BUSY_S = 30.0
_FOLDING_MS = 100
_FULL = 2  # PRAGMA synchronous: the log is synced before COMMIT returns
_UNAVAILABLE = {  # primary result codes that are about the disk and its neighbours, not about our SQL
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
}


class SQLiteStore(TableStore):
    """A store in one file. Writers take turns; readers see the last commit and wait for nobody."""

    def __init__(self, path: str | Path, *, migrate: bool = False, keys: str | Path | None = None) -> None:
        """Open or create. ``SchemaMismatch`` for tables of another version, unless ``migrate`` brings them up."""
        self.path = Path(path)
        self.keys = Keys(keys)
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        self._known = KnownIds(self.path.parent)
        self._closed = False
        try:
            with self._lock, _mapped():
                keep_private(self.path)
                self._migrate(migrate)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[_Transaction]:
        """One writer at a time; COMMIT syncs the log before it returns."""
        with self._lock, _mapped(self._drop_writer):
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _Transaction(connection, self._known, self.keys)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # the first error is the one to tell; SQLite may have rolled back itself
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[_Transaction]:
        """A snapshot on a connection of its own."""
        with _mapped():
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._connect()
            try:
                connection.execute("PRAGMA query_only = ON")
                connection.execute("BEGIN")
                yield _Transaction(connection, KnownIds(), self.keys)
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
        self._readers.append(connection)
        if self._closed:  # asked after it was given back: whoever closes meanwhile sees it, or is seen
            self._close_readers()

    def backup(self, path: str) -> None:
        """A compact copy of one snapshot; reports keep coming in meanwhile. The file appears when it is complete."""
        with _mapped(), new_file(path) as part, closing(self._connect()) as connection:
            connection.execute("VACUUM INTO ?", (str(part),))

    def close(self) -> None:
        """Close all connections; the last one folds the log into the file."""
        with self._lock:
            self._closed = True
            self._close_readers()
            self._drop_writer()

    def _close_readers(self) -> None:
        with suppress(IndexError):
            while True:
                self._readers.pop().close()

    def _connected(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = self._connect()
            self._prepare(self._writer)
        return self._writer

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        return sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)

    def _prepare(self, writer: sqlite3.Connection) -> None:
        for pragma in (
            f"page_size = {PAGE_BYTES}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "fullfsync = ON",  # where the system tells a sync from a sync
            "secure_delete = ON",  # what is deleted is overwritten
            "foreign_keys = ON",
            f"cache_size = -{CACHE_KB}",
            f"wal_autocheckpoint = {CHECKPOINT_BYTES // PAGE_BYTES}",
            f"journal_size_limit = {2 * CHECKPOINT_BYTES}",
        ):
            writer.execute(f"PRAGMA {pragma}")
        ((mode,),) = writer.execute("PRAGMA journal_mode").fetchall()
        ((level,),) = writer.execute("PRAGMA synchronous").fetchall()
        if mode != "wal" or level != _FULL:
            raise StoreUnavailable(f"expected a synced write-ahead log, got {mode} and synchronous {level}")

    def _migrate(self, migrate: bool) -> None:
        """Bring the tables to this program's version, each step a transaction of its own."""
        connection = self._connected()
        version = migrations.version(connection.execute, "SELECT name FROM sqlite_master")
        for number, sql in migrations.missing("sqlite", version, migrate).items():
            connection.execute("BEGIN EXCLUSIVE")
            try:
                for statement in _statements(sql):
                    connection.execute(statement)
                conversion.convert(_Transaction(connection, KnownIds(), self.keys), number)
                connection.execute("UPDATE meta SET value = ? WHERE name = 'version'", (number,))
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        if 0 < version < migrations.SCHEMA_VERSION:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what was overwritten is not left in the log

    def _wipe(self) -> None:
        """Fold the log into the file and cut it off, so that no deleted report is left in it, sealed as it is.

        A long reader (a backup) can be in the way; uploads do not wait for it, a later checkpoint does the rest.
        """
        with self._lock, suppress(StoreUnavailable), _mapped(self._drop_writer):
            writer = self._connected()
            writer.execute(f"PRAGMA busy_timeout = {_FOLDING_MS}")
            try:
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                writer.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")

    def _drop_writer(self) -> None:
        """After an error of the disk nothing in memory is believed: the next writer opens the file anew."""
        writer, self._writer = self._writer, None
        self._known = KnownIds(self.path.parent)
        if writer is not None:
            with suppress(sqlite3.Error):
                writer.close()


class _Transaction:
    """One transaction. Its own reports are pending: their chunks are written last, and are all that is written."""

    skip_locked: ClassVar[str] = ""  # a writer is alone

    def __init__(self, connection: sqlite3.Connection, known: KnownIds, keys: Keys) -> None:
        self.keys, self.erases = keys, False
        self.doomed: list[str] = []
        self.left: list[tuple[int, int]] = []
        self._connection = connection
        self._known = known
        self._caught_up = False
        self._pending: dict[int, Sequence[tuple[bytes, int]]] = {}  # by campaign, as all that follows
        self._known_before: dict[int, dict[bytes, int]] = {}
        self._met: dict[int, dict[bytes, int]] = {}

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows at once."""
        return self._connection.execute(sql, parameters).fetchall()

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a large table, a few at a time."""
        return iter(self._connection.execute(sql))

    def change(self, sql: str, *parameters: object) -> int:
        """What SQLite counted."""
        return self._connection.execute(sql, parameters).rowcount

    def lock(self, what: Lock, key: int = 0, *, shared: bool = False) -> None:
        """A writer is alone already."""

    def insert_seen(self, campaign: int, rows: Sequence[tuple[bytes, int]]) -> int:
        """Only remember them: the chunks that the caller stores are what makes them known."""
        ids = [i for i, _ in rows]
        known = self.find_seen(campaign, ids)
        self._pending[campaign] = [row for row in rows if row[0] not in known] if known else rows
        self._known_before[campaign] = known
        return len(set(ids)) - len(known)

    def find_seen(self, campaign: int, ids: Sequence[bytes]) -> dict[bytes, int]:
        """Ask the index in memory, and those that this transaction takes in."""
        if not self._caught_up:
            self._known.catch_up(self._connection)
            self._caught_up = True
        if campaign not in self._pending:
            return self._known.find(self._connection, campaign, ids)
        if campaign not in self._met:  # the first of an id wins
            self._met[campaign] = dict(reversed(self._pending[campaign]))
            self._met[campaign] |= self._known_before[campaign]
        met = self._met[campaign]
        others = [i for i in ids if i not in met]
        known = self._known.find(self._connection, campaign, others) if others else {}
        return known | {i: met[i] for i in ids if i in met}

    def withdraw(self, campaign: int, report_id: bytes) -> None:
        """Add it to the list of those that are."""
        self.change("INSERT INTO withdrawn (campaign, id) VALUES (?, ?)", campaign, report_id)

    def new_chunks(self, k: int) -> list[int]:
        """Those after the last; SQLite remembers it though the chunk be deleted."""
        ((last,),) = self.rows("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'chunks'")
        return list(range(last + 1, last + k + 1))


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A name to write under, where nothing may be yet; what was written appears at ``path`` when it is whole."""
    whole = Path(path)
    part = whole.with_name(whole.name + ".part")
    if whole.exists():
        raise ValueError(f"expected a path where nothing is yet, got {str(whole)!r}")
    if not whole.parent.is_dir():
        raise ValueError(f"expected a path in a folder that is there, got {str(whole)!r}")
    part.unlink(missing_ok=True)
    keep_private(part)
    yield part
    sync_file(part)
    part.rename(whole)
    sync_file(whole.parent)


def keep_private(path: Path) -> None:
    """Make a file that is not there, for its owner alone; take away what others may do with one that is.

    SQLite gives the log beside a file the same mode.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            with suppress(PermissionError):  # somebody else's file, which we may use
                path.chmod(mode & 0o7700)


def _statements(sql: str) -> Iterator[str]:
    """The statements of a step, one by one: a script would commit what stands before it."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


@contextmanager
def _mapped(failed: Any = None) -> Iterator[None]:
    """SQLite's errors about the disk as ``StoreUnavailable``; our own mistakes stay what they are."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"file system: {error.strerror}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None or code & 0xFF not in _UNAVAILABLE:
            raise
        if failed is not None:
            failed()
        raise StoreUnavailable(f"SQLite: {error} ({error.sqlite_errorname})") from error
