"""Who may have a token: hashes of one-time secrets, and a mark on each that was used."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ahead_ldp.device.canonical import expect

SHORTEST_SECRET = 16
_TABLES = (
    "CREATE TABLE IF NOT EXISTS person (secret BLOB PRIMARY KEY, message BLOB) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)


class SecretRefused(Exception):
    """The secret is unknown, or was used for another message. Which of the two is not said."""


class Roster:
    """Enrolments in one SQLite file. A secret is good for one message, however often that message is sent again.

    Secrets and messages are stored as hashes, without a time: the file does not say who came when. Nor does it help
    whoever has it to find somebody's report: a message is not made of the report's id, and its hash has a prefix that
    nothing else has. A roster of before, which kept the plain hash of a nonce, is rewritten when it is opened.
    """

    def __init__(self, path: Path) -> None:
        path.touch(mode=0o600, exist_ok=True)
        self._path = path
        with self._transaction() as database:
            for table in _TABLES:
                database.execute(table)
            _migrate(database)

    def enrol(self, count: int) -> list[str]:
        """New secrets for that many people, shown here once and never again."""
        expect(count >= 1, f"at least one person to enrol, got {count}")
        new_secrets = [secrets.token_urlsafe(18) for _ in range(count)]
        self.add(new_secrets)
        return new_secrets

    def add(self, new_secrets: Sequence[str]) -> None:
        """Enrol people with secrets that the operator made."""
        is_long = all(len(secret) >= SHORTEST_SECRET for secret in new_secrets)
        expect(is_long, f"secrets of at least {SHORTEST_SECRET} characters")
        rows = [(_hash(secret.encode()),) for secret in new_secrets]
        with self._transaction() as database:
            try:
                database.executemany("INSERT INTO person (secret) VALUES (?)", rows)
            except sqlite3.IntegrityError:
                raise ValueError("expected secrets that are all different, and new") from None

    def redeem(self, secret: str, message: bytes) -> None:
        """Bind a secret to this message, durably; ``SecretRefused`` unless it is unused or bound to the same one."""
        person, bound = _hash(secret.encode()), _bound(_hash(message))
        with self._transaction() as database:
            row = database.execute("SELECT message FROM person WHERE secret = ?", (person,)).fetchone()
            if row is None or row[0] not in (None, bound):
                raise SecretRefused("the secret is unknown or was used before")
            if row[0] is None:
                database.execute("UPDATE person SET message = ? WHERE secret = ?", (bound, person))

    def fetched(self, given: Sequence[str]) -> list[bool]:
        """Whether the token behind each secret was fetched. That is all the roster knows of anybody."""
        with self._transaction() as database:
            known = dict(database.execute("SELECT secret, message IS NOT NULL FROM person").fetchall())
        hashes = [_hash(secret.encode()) for secret in given]
        expect(all(key in known for key in hashes), "secrets that this roster has enrolled")
        return [bool(known[key]) for key in hashes]

    def count(self) -> tuple[int, int]:
        """People enrolled, and how many of them have used their secret."""
        with self._transaction() as database:
            row = database.execute("SELECT count(*), count(message) FROM person").fetchone()
        return int(row[0]), int(row[1])

    @property
    def tier(self) -> str | None:
        """What kind of messages are signed; fixed once."""
        with self._transaction() as database:
            row = database.execute("SELECT value FROM setting WHERE name = 'tier'").fetchone()
        return None if row is None else str(row[0])

    @tier.setter
    def tier(self, tier: str) -> None:
        """Fix the kind; a second time is refused."""
        with self._transaction() as database:
            database.execute("INSERT INTO setting VALUES ('tier', ?)", (tier,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One connection and one transaction: any thread may call, and what returned is on disk."""
        database = sqlite3.connect(self._path, timeout=30.0, isolation_level=None)
        try:
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("PRAGMA secure_delete = ON")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
        finally:
            database.close()


def _migrate(database: sqlite3.Connection) -> None:
    """Version 1 kept SHA-256 of the message, which was the nonce: its first half was the report's id."""
    if database.execute("SELECT value FROM setting WHERE name = 'version'").fetchone() is not None:
        return
    used = database.execute("SELECT message, secret FROM person WHERE message IS NOT NULL").fetchall()
    changes = [(_bound(plain), secret) for plain, secret in used]
    database.executemany("UPDATE person SET message = ? WHERE secret = ?", changes)
    database.execute("INSERT INTO setting VALUES ('version', '2')")


def _bound(plain: bytes) -> bytes:
    return _hash(b"ahead-ldp roster 2\n" + plain)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
