"""The shared store: PostgreSQL, for several server processes at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ahead_ldp.service.store import backups, conversion, migrations, notes
from ahead_ldp.service.store.interface import StoreUnavailable
from ahead_ldp.service.store.keys import Keys
from ahead_ldp.service.store.rows import ID_LENGTH
from ahead_ldp.service.store.tables import TableStore
from ahead_ldp.service.store.transactions import Lock

if TYPE_CHECKING:
    import psycopg

MOST_CONNECTIONS = 8  # per process
LOCK_S = 30
_MIGRATING = 0x61686561_6C6470  # an advisory lock for whoever makes or changes tables
_SESSION = (
    f"-c synchronous_commit=on -c lock_timeout={LOCK_S}s -c idle_in_transaction_session_timeout=60s"
    " -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2 -c tcp_user_timeout=20000"
)
# A connection whose other end is gone without a word ends after this long, and not when TCP gives up, in a quarter of
# an hour: what was sent and not confirmed, and what is waited for.
_SILENCE_S = 15
_LINK: dict[str, Any] = {
    "connect_timeout": 10,
    "tcp_user_timeout": 1000 * _SILENCE_S,
    "keepalives_idle": _SILENCE_S // 3,
    "keepalives_interval": _SILENCE_S // 3,
    "keepalives_count": 2,
}
_NAMES_OF_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
_CHECKED = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
# Ids travel as one byte string, cut up there; chunk numbers as a list and two bytes of index a row.
_INSERT_SEEN = f"""
INSERT INTO seen (campaign, id, chunk)
SELECT %(campaign)s::bigint, substr(%(ids)s::bytea, {ID_LENGTH} * i + 1, {ID_LENGTH}),
       (%(chunks)s::bigint[])[1 + 256 * get_byte(%(which)s::bytea, 2 * i) + get_byte(%(which)s::bytea, 2 * i + 1)]
FROM generate_series(0, %(n)s::int - 1) AS i
ON CONFLICT DO NOTHING"""

_SEEN_FROM_CHUNKS = f"""
INSERT INTO seen (campaign, id, chunk)
SELECT w.campaign, substr(k.ids, {ID_LENGTH} * i + 1, {ID_LENGTH}), k.seq
FROM chunks k JOIN questions q ON q.key = k.question JOIN waves w ON w.key = q.wave
CROSS JOIN LATERAL generate_series(0, length(k.ids) / {ID_LENGTH} - 1) AS i"""


class PostgresStore(TableStore):
    """A store in a PostgreSQL database. Uploads run side by side; a closer waits for them, and they for it."""

    def __init__(self, url: str, *, migrate: bool = False, keys: str | Path | None = None) -> None:
        """Connect, and make the tables in an empty database. ``SchemaMismatch`` as for SQLite."""
        self._url = url
        self.keys = Keys(keys)
        self._idle: list[psycopg.Connection] = []
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._closed = False
        try:
            with self._connection() as connection:
                self._migrate(connection, migrate)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[_Transaction]:
        """Read committed: what is read after a lock is as new as the lock. COMMIT returns when the log is synced."""
        with self._connection() as connection, connection.cursor(binary=True) as cursor:
            yield _Transaction(cursor, self.keys)
            connection.commit()

    @contextmanager
    def reading(self) -> Iterator[_Transaction]:
        """One snapshot."""
        with self._connection() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _Transaction(cursor, self.keys)
            connection.commit()

    def backup(self, path: str) -> None:
        """A SQLite file with the same tables, from one snapshot."""
        with self.reading() as tx:
            backups.write_file(path, tx)

    def load(self, source: backups.Source) -> None:
        """Fill the empty tables from a snapshot of a SQLite store, in one transaction."""
        with self.writing() as tx:
            if tx.rows("SELECT 1 FROM campaigns LIMIT 1"):
                raise ValueError("expected an empty store")
            tx.change("UPDATE meta SET value = ? WHERE name = 'epoch'", notes.epoch(source))
            for table, number in backups.TABLES.items():
                tx.copy(table, backups.column_names(source, table), source.stream(f"SELECT * FROM {table}"))
                if number is not None:
                    sequence = f"pg_get_serial_sequence('{table}', '{number}')"
                    tx.rows(f"SELECT setval({sequence}, COALESCE(MAX({number}), 0) + 1, false) FROM {table}")
            tx.change(_SEEN_FROM_CHUNKS)
            for campaign, report_id in source.stream("SELECT campaign, id FROM withdrawn"):
                tx.change("INSERT INTO seen VALUES (?, ?, 0)", campaign, report_id)

    def close(self) -> None:
        """Close the idle connections; busy ones are closed when they come back."""
        self._closed = True
        self._close_idle()

    def _migrate(self, connection: psycopg.Connection, migrate: bool) -> None:
        """Bring the tables to this program's version, all steps in one transaction."""
        with connection.cursor(binary=True) as cursor:
            tx = _Transaction(cursor, self.keys)
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            version = migrations.version(cursor.execute, _NAMES_OF_TABLES)
            for number, sql in migrations.missing("postgres", version, migrate).items():
                with connection.cursor() as plain:
                    plain.execute(sql.encode())
                conversion.convert(tx, number)
                tx.change("UPDATE meta SET value = ? WHERE name = 'version'", number)
        connection.commit()

    def _wipe(self) -> None:
        """Dead rows are PostgreSQL's to remove; without the key of their wave they say nothing."""

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        import psycopg

        if not self._free.acquire(timeout=LOCK_S):
            raise StoreUnavailable("PostgreSQL: all connections are busy")
        connection: psycopg.Connection | None = None
        try:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            connection = self._taken()
            yield connection
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as error:
            if connection is None or connection.broken:  # the server is gone: so are its other connections
                self._close_idle()
            why = f"{type(error).__name__} ({error.sqlstate})" if connection else " ".join(str(error).split())
            raise StoreUnavailable(f"PostgreSQL: {why}") from error
        finally:
            self._give_back(connection)
            self._free.release()

    def _taken(self) -> psycopg.Connection:
        import psycopg

        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if not connection.closed:
                return connection
        try:
            connection = psycopg.connect(
                self._url, options=_SESSION, application_name="ahead", client_encoding="utf8", **_LINK
            )
        except psycopg.ProgrammingError:  # it repeats what it cannot read, which may be a password
            raise StoreUnavailable("PostgreSQL: expected a URL like postgresql://user@host/database") from None
        for name, wanted in _CHECKED.items():
            ((setting,),) = connection.execute(f"SELECT current_setting('{name}')").fetchall()
            if setting != wanted:
                connection.close()
                raise StoreUnavailable(f"PostgreSQL: expected {name} to be {wanted}, got {setting}")
        connection.rollback()
        return connection

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _give_back(self, connection: psycopg.Connection | None) -> None:
        import psycopg

        if connection is None:
            return
        with suppress(psycopg.Error):
            connection.rollback()  # nothing to undo after a commit
            if not self._closed and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()


class _Transaction:
    skip_locked: ClassVar[str] = "FOR UPDATE SKIP LOCKED"

    def __init__(self, cursor: psycopg.Cursor, keys: Keys) -> None:
        self._cursor = cursor
        self.keys, self.erases = keys, False
        self.doomed: list[str] = []
        self.left: list[tuple[int, int]] = []

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows at once."""
        return self._cursor.execute(_spelled(sql), parameters).fetchall()

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a large table, a few at a time."""
        with self._cursor.connection.cursor("stream", binary=True) as cursor:
            cursor.itersize = 500
            yield from cursor.execute(_spelled(sql))

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Append rows to a table, fast."""
        with self._cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def change(self, sql: str, *parameters: object) -> int:
        """What PostgreSQL counted."""
        return self._cursor.execute(_spelled(sql), parameters).rowcount

    def lock(self, what: Lock, key: int = 0, *, shared: bool = False) -> None:
        """Advisory locks queue fairly: under a steady stream of uploads a closer still gets its turn."""
        call = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        self._cursor.execute(f"SELECT {call}(%s::int, %s::int)", (what.value, key))

    def insert_seen(self, campaign: int, rows: Sequence[tuple[bytes, int]]) -> int:
        """In one statement; an id that another transaction takes in meanwhile is waited for."""
        chunks = sorted({chunk for _, chunk in rows})
        index = {chunk: at.to_bytes(2, "big") for at, chunk in enumerate(chunks)}
        inserted = self._cursor.execute(
            _INSERT_SEEN,
            {
                "campaign": campaign,
                "ids": b"".join([i for i, _ in rows]),
                "chunks": chunks,
                "which": b"".join([index[chunk] for _, chunk in rows]),
                "n": len(rows),
            },
        )
        return inserted.rowcount

    def withdraw(self, campaign: int, report_id: bytes) -> None:
        """Its id stays."""
        self.change("UPDATE seen SET chunk = 0 WHERE campaign = ? AND id = ?", campaign, report_id)

    def find_seen(self, campaign: int, ids: Sequence[bytes]) -> dict[bytes, int]:
        """By the primary key, all at once."""
        return dict(self.rows("SELECT id, chunk FROM seen WHERE campaign = ? AND id = ANY(?)", campaign, list(ids)))

    def new_chunks(self, k: int) -> list[int]:
        """From the sequence, which no rollback sets back."""
        sql = "SELECT nextval(pg_get_serial_sequence('chunks', 'seq')) FROM generate_series(1, ?)"
        return [number for (number,) in self.rows(sql, k)]


def _spelled(sql: str) -> bytes:
    """Our SQL with PostgreSQL's parameter marks."""
    return sql.replace("?", "%s").encode()
