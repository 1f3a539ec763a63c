"""The file of a ledger: made whole or not at all, opened if it is whole, brought to the present version."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ahead_ldp.device.entries import LedgerBusy, LedgerRefused

VERSION = 2
_APPLICATION = 0x41484C44
_ASKERS_AND_FIELDS = """
CREATE TABLE asker (campaign TEXT PRIMARY KEY, title TEXT NOT NULL, controller TEXT NOT NULL);
CREATE TABLE mapping (campaign TEXT, attribute TEXT, field TEXT NOT NULL, PRIMARY KEY (campaign, attribute));
"""
_TABLES = f"""
CREATE TABLE view (campaign TEXT, wave INTEGER, digest TEXT NOT NULL, PRIMARY KEY (campaign, wave));
CREATE TABLE token (campaign TEXT PRIMARY KEY, nonce BLOB NOT NULL, inverse TEXT, signature BLOB);
CREATE TABLE membership (campaign TEXT, wave INTEGER, member TEXT NOT NULL, PRIMARY KEY (campaign, wave));
CREATE TABLE charge (campaign TEXT, field TEXT, epsilon TEXT NOT NULL, PRIMARY KEY (campaign, field));
CREATE TABLE report (campaign TEXT PRIMARY KEY, state TEXT NOT NULL, wave INTEGER NOT NULL, member TEXT NOT NULL,
  question TEXT NOT NULL, batch BLOB, not_before INTEGER NOT NULL DEFAULT 0);
CREATE TABLE choice (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
{_ASKERS_AND_FIELDS}"""
# Version 1 kept fields by name, made before consent from whatever a campaign called things: not the owner's word.
_MIGRATIONS = {1: f"{_ASKERS_AND_FIELDS}DROP TABLE name;\n"}


def open_database(path: Path | None, lock: Path | None) -> sqlite3.Connection:
    """The database of a ledger, in memory without a path; a file that is damaged is ``LedgerRefused``."""
    if path is None or lock is None:
        database = _connect(":memory:")
        _run(database, _TABLES)
        return database
    if path.exists() and not path.is_file():  # whose rights would be changed below
        raise LedgerRefused(f"expected the ledger to be a file, got {str(path)!r}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock.touch(mode=0o600, exist_ok=True)
    if not path.exists():
        _make(path, lock)
    for file in (path, lock):
        file.chmod(0o600)
    if path.stat().st_size == 0:
        raise LedgerRefused(f"the ledger {path.name} is damaged: it is empty, so what was charged is not known")
    database = _connect(path)
    try:
        with refusing():
            _check_and_migrate(database, path)
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def locked(lock: Path, timeout_s: float = 0.0) -> Iterator[None]:
    """While this lasts no other process holds the lock; ``LedgerBusy`` if one does. A crash frees it."""
    with closing(sqlite3.connect(lock, timeout=timeout_s, isolation_level=None)) as database:
        try:
            database.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise LedgerBusy("another process is answering with this ledger") from None
        yield


@contextmanager
def refusing() -> Iterator[None]:
    """A disk that is full or broken stops everything, as any other refusal does."""
    try:
        yield
    except sqlite3.Error as error:
        raise LedgerRefused(f"the ledger cannot be used: {error}") from None


def _make(path: Path, lock: Path) -> None:
    """A new ledger, complete before it has its name: an empty file of that name is damage, whenever it is seen."""
    beside = Path(f"{path}.new")
    with locked(lock, timeout_s=10.0):
        if path.exists():  # another process was faster
            return
        for stale in (beside, Path(f"{beside}-journal")):
            stale.unlink(missing_ok=True)
        beside.touch(mode=0o600)
        with refusing(), closing(_connect(beside)) as database:
            _run(database, f"{_TABLES}PRAGMA application_id = {_APPLICATION};\nPRAGMA user_version = {VERSION};\n")
        beside.rename(path)


def _check_and_migrate(database: sqlite3.Connection, path: Path) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        ((application,),) = database.execute("PRAGMA application_id")
        ((version,),) = database.execute("PRAGMA user_version")
        if application != _APPLICATION or version < 1:
            raise LedgerRefused("the ledger cannot be used: the file is no ledger")
        if version > VERSION:
            raise LedgerRefused(f"expected a ledger of version {VERSION} or older, got version {version}")
        ((pages, size),) = database.execute("SELECT page_count, page_size FROM pragma_page_count, pragma_page_size")
        if path.stat().st_size != pages * size:  # SQLite takes a last page that is cut off for one that ends in zeros
            raise LedgerRefused("the ledger is damaged: it is cut off")
        if (found := database.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
            raise LedgerRefused(f"the ledger is damaged: {found[0]}")
        for old in range(version, VERSION):
            _run(database, f"{_MIGRATIONS[old]}PRAGMA user_version = {old + 1};\n", own=False)
        database.execute("COMMIT")
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def _run(database: sqlite3.Connection, statements: str, own: bool = True) -> None:
    """Statements that end with a line each; in a transaction of their own, or in the caller's."""
    if own:
        database.execute("BEGIN IMMEDIATE")
    for statement in statements.split(";\n"):
        if statement.strip():
            database.execute(statement)
    if own:
        database.execute("COMMIT")


def _connect(path: str | Path) -> sqlite3.Connection:
    """A connection that has synced file and directory when a commit returns, and overwrites what it deletes."""
    with refusing():
        database = sqlite3.connect(path, timeout=10.0, isolation_level=None)
    try:
        with refusing():
            for pragma in ("journal_mode = DELETE", "synchronous = EXTRA", "secure_delete = ON", "temp_store = MEMORY"):
                database.execute(f"PRAGMA {pragma}")
    except LedgerRefused:
        database.close()
        raise
    return database
