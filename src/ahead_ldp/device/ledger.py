"""What a device remembers: every report it ever promised, charged to the owner's fields, written before it is sent.

One SQLite file, readable by its owner alone. A report moves through ``reserved`` (charged, the value not yet read),
``drawn`` (its exact bytes are in the outbox), ``sent`` (they may have left) and ``acknowledged``. A crash at any point
leaves a state from which the same bytes, or nothing, can follow.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from ahead_ldp.device.canonical import expect
from ahead_ldp.device.entries import MOVES, Entry, LedgerBusy, LedgerRefused, Spent, State, Token
from ahead_ldp.device.tokens import new_nonce

VERSION = 1
_APPLICATION = 0x41484C44
_TABLES = """
CREATE TABLE view (campaign TEXT, wave INTEGER, digest TEXT NOT NULL, PRIMARY KEY (campaign, wave));
CREATE TABLE token (campaign TEXT PRIMARY KEY, nonce BLOB NOT NULL, inverse TEXT, signature BLOB);
CREATE TABLE membership (campaign TEXT, wave INTEGER, member TEXT NOT NULL, PRIMARY KEY (campaign, wave));
CREATE TABLE charge (campaign TEXT, field TEXT, epsilon TEXT NOT NULL, PRIMARY KEY (campaign, field));
CREATE TABLE report (campaign TEXT PRIMARY KEY, state TEXT NOT NULL, wave INTEGER NOT NULL, member TEXT NOT NULL,
  question TEXT NOT NULL, batch BLOB, not_before INTEGER NOT NULL DEFAULT 0);
CREATE TABLE choice (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE name (attribute TEXT PRIMARY KEY, field TEXT NOT NULL);
"""


class Ledger:
    """The durable ledger in a file, or one in memory for simulated people (``path=None``).

    Guarantees:
        one      a campaign gets at most one report; its bytes never change once they are drawn
        limits   a field is charged once, or up to its explicit lifetime limit, and never relieved
        durable  what a method has written survives a crash of the process and of the machine

    An object is for one thread; any number of processes may have the same file.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._lock_path = None if path is None else Path(f"{path}.lock")
        for file in (path, self._lock_path):
            if file is not None:
                Path(file).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                Path(file).touch(mode=0o600, exist_ok=True)
                Path(file).chmod(0o600)
        self._database = _connect(":memory:" if path is None else path)
        try:
            with self._transaction():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While this lasts no other process answers with this ledger; ``LedgerBusy`` if one does. A crash frees it."""
        if self._lock_path is None:
            yield
            return
        lock = sqlite3.connect(self._lock_path, timeout=0.0, isolation_level=None)
        try:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                raise LedgerBusy("another process is answering with this ledger") from None
            yield
        finally:
            lock.close()

    def check_view(self, campaign: str, wave: int, digest: str) -> None:
        """Remember what was seen of a wave; refuse if an earlier look showed something else."""
        if self._first("view", "digest", campaign, wave, digest) != digest:
            raise LedgerRefused("this wave was shown with other questions before")

    def token(self, campaign: str) -> Token:
        """The campaign's nonce, drawn at the first call."""
        with self._transaction():
            self._database.execute(
                "INSERT OR IGNORE INTO token (campaign, nonce) VALUES (?, ?)", (campaign, new_nonce())
            )
            ((nonce, inverse, signature),) = self._all(
                "SELECT nonce, inverse, signature FROM token WHERE campaign = ?", campaign
            )
        return Token(nonce, None if inverse is None else int(inverse, 16), signature)

    def keep_inverse(self, campaign: str, inverse: int) -> None:
        """Keep the blinding, so that an issuer's answer is not lost with a crash."""
        self._change("UPDATE token SET inverse = ? WHERE campaign = ?", f"{inverse:x}", campaign)

    def keep_signature(self, campaign: str, signature: bytes) -> None:
        """Keep the issuer's signature; the blinding is no longer needed."""
        self._change("UPDATE token SET signature = ?, inverse = NULL WHERE campaign = ?", signature, campaign)

    def keep_group(self, campaign: str, wave: int, drawn: str) -> str:
        """The group of a wave (0: of a panel): the first one ever drawn, whatever is drawn later."""
        return self._first("membership", "member", campaign, wave, drawn)

    def check_budget(
        self, campaign: str, fields: Iterable[str], epsilon: Fraction, limits: Mapping[str, Fraction]
    ) -> None:
        """Refuse a report that would charge a field more than once, or beyond its explicit lifetime limit."""
        if self.opted_out:
            raise LedgerRefused("the owner of this device has opted out")
        for field in sorted(set(fields)):
            rows = self._all("SELECT epsilon FROM charge WHERE field = ? AND campaign != ?", field, campaign)
            total = sum((Fraction(text) for (text,) in rows), epsilon)
            if field in limits and total > limits[field]:
                raise LedgerRefused(f"the field {field} would exceed its lifetime limit of {float(limits[field]):g}")
            if field not in limits and rows:
                raise LedgerRefused(f"the field {field} was reported before, and no lifetime limit allows more")

    def reserve(
        self,
        campaign: str,
        wave: int,
        group: str,
        question: str,
        fields: Iterable[str],
        epsilon: Fraction,
        limits: Mapping[str, Fraction],
    ) -> None:
        """Charge the fields and promise the one report of a campaign. What is drawn already cannot be promised again.

        A promise that was made but never drawn (a crash, a value that did not fit) may move to another question.
        """
        names = set(fields)
        with self._transaction():
            self.check_budget(campaign, names, epsilon, limits)
            if self._one("SELECT state FROM report WHERE campaign = ?", campaign) not in (None, (State.RESERVED,)):
                raise LedgerRefused("this campaign has its report already")
            self._database.executemany(
                "INSERT OR IGNORE INTO charge VALUES (?, ?, ?)",
                [(campaign, name, str(epsilon)) for name in sorted(names)],
            )
            self._database.execute(
                "INSERT OR REPLACE INTO report (campaign, state, wave, member, question) VALUES (?, ?, ?, ?, ?)",
                (campaign, State.RESERVED, wave, group, question),
            )

    def keep_drawn(self, campaign: str, question: str, batch: bytes, not_before: int) -> None:
        """Put the exact bytes into the outbox: from here on they are this campaign's report, and no others."""
        sql = "UPDATE report SET state = ?, batch = ?, not_before = ? WHERE campaign = ? AND question = ? AND state = ?"
        if self._change(sql, State.DRAWN, batch, not_before, campaign, question, State.RESERVED) != 1:
            raise LedgerRefused("expected a report that is promised and not yet drawn")

    def move(self, campaign: str, state: State) -> None:
        """Take the report to its next state; a move that the protocol does not have is refused."""
        sources = [old for old, news in MOVES.items() if state in news]
        marks = ", ".join("?" for _ in sources)
        sql = f"UPDATE report SET state = ? WHERE campaign = ? AND state IN ({marks})"
        if self._change(sql, state, campaign, *sources) != 1:
            raise LedgerRefused(f"expected a report that can become {state.value}")

    def entry(self, campaign: str) -> Entry | None:
        """The report of a campaign, if one was ever promised."""
        return next(iter(self._entries("WHERE campaign = ?", campaign)), None)

    def entries(self) -> list[Entry]:
        """Every report ever promised."""
        return self._entries("ORDER BY campaign")

    def outbox(self, now: int | None = None) -> list[Entry]:
        """Reports that are drawn and not acknowledged; with ``now`` only those whose time has come."""
        unsent = self._entries("WHERE state IN (?, ?) AND batch IS NOT NULL", State.DRAWN, State.SENT)
        return [entry for entry in unsent if now is None or entry.not_before <= now]

    def spent(self) -> dict[str, Spent]:
        """What every field has been charged so far, for its owner to see."""
        totals: dict[str, Spent] = {}
        for field, text in self._all("SELECT field, epsilon FROM charge ORDER BY field"):
            old = totals.get(field, Spent(0, Fraction(0)))
            totals[field] = Spent(old.reports + 1, old.epsilon + Fraction(text))
        return totals

    def names(self) -> dict[str, str]:
        """The owner's field of every attribute that was named so far."""
        return dict(self._all("SELECT attribute, field FROM name ORDER BY attribute"))

    def keep_name(self, attribute: str, field: str) -> None:
        """Remember that what campaigns call ``attribute`` is the owner's ``field``."""
        self._change("INSERT OR REPLACE INTO name VALUES (?, ?)", attribute, field)

    @property
    def opted_out(self) -> bool:
        """Whether the owner has said no to everything."""
        return self._one("SELECT value FROM choice WHERE name = 'opted_out'") == (1,)

    def opt_out(self) -> None:
        """Stop: nothing is answered any more and the outbox is overwritten. The ledger of what was charged stays."""
        with self._transaction():
            self._database.execute("INSERT OR REPLACE INTO choice VALUES ('opted_out', 1)")
            self._database.execute(
                "UPDATE report SET state = ? WHERE state IN (?, ?, ?)",
                (State.WIPED, State.RESERVED, State.DRAWN, State.SENT),
            )
            self._database.execute("UPDATE report SET batch = NULL")
            self._database.execute("DELETE FROM token")

    def opt_in(self) -> None:
        """Answer again, within what the ledger still allows."""
        self._change("DELETE FROM choice WHERE name = 'opted_out'")

    def _entries(self, condition: str, *values: object) -> list[Entry]:
        columns = "campaign, state, wave, member, question, batch, not_before"
        rows = self._all(f"SELECT {columns} FROM report {condition}", *values)
        return [Entry(c, State(s), w, g, q, b, t) for c, s, w, g, q, b, t in rows]

    def _all(self, sql: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        with _refusing():
            return self._database.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: object) -> tuple | None:  # type: ignore[type-arg]
        return next(iter(self._all(sql, *values)), None)

    def _change(self, sql: str, *values: object) -> int:
        """One statement in a transaction of its own; how many rows it changed."""
        with self._transaction():
            return self._database.execute(sql, values).rowcount

    def _first(self, table: str, column: str, campaign: str, wave: int, value: str) -> str:
        """What was written first for a wave of a campaign: the value, unless another one was before it."""
        with self._transaction():
            self._database.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)", (campaign, wave, value))
            (row,) = self._all(f"SELECT {column} FROM {table} WHERE campaign = ? AND wave = ?", campaign, wave)
        return str(row[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _refusing():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")

    def _prepare(self) -> None:
        ((version,),) = self._all("PRAGMA user_version")
        if version == 0:
            for statement in _TABLES.split(";\n"):
                if statement.strip():
                    self._database.execute(statement)
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._database.execute(f"PRAGMA user_version = {VERSION}")
        else:
            expect(version == VERSION, f"a ledger of version {VERSION}, got version {version}")


@contextmanager
def _refusing() -> Iterator[None]:
    """A disk that is full or broken stops everything, as any other refusal does."""
    try:
        yield
    except sqlite3.Error as error:
        raise LedgerRefused(f"the ledger cannot be used: {error}") from None


def _connect(path: str | Path) -> sqlite3.Connection:
    """A connection that has synced file and directory when a commit returns, and overwrites what it deletes."""
    database = sqlite3.connect(path, timeout=10.0, isolation_level=None)
    try:
        with _refusing():
            for pragma in ("journal_mode = DELETE", "synchronous = EXTRA", "secure_delete = ON", "temp_store = MEMORY"):
                database.execute(f"PRAGMA {pragma}")
    except LedgerRefused:
        database.close()
        raise
    return database
