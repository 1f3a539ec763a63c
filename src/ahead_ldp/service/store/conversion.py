"""What a step of a migration does beside its SQL: version 3 seals payloads that were stored as they came.

Chunks are moved to a new table and the old one is dropped: what is updated in place leaves its old bytes in the pages
of a database for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from ahead_ldp.service.store.binding import reports_digest
from ahead_ldp.service.store.transactions import Transaction

_SEALING = 3


class Converted(Transaction, Protocol):
    """A transaction that can read a large table while it changes others."""

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a large table, a few at a time."""


def convert(tx: Converted, version: int) -> None:
    """What belongs to the step that leads to this version."""
    if version == _SEALING:
        _give_keys(tx)
        _seal_chunks(tx)
        _bind_ids(tx)


def _give_keys(tx: Converted) -> None:
    """Every wave whose payloads are still there, or still to come, gets a key."""
    wanted = tx.rows(
        "SELECT key FROM waves WHERE state IN ('open', 'held') OR key IN (SELECT q.wave FROM questions q"
        " JOIN old_chunks k ON k.question = q.key WHERE k.n > 0)"
    )
    for (wave,) in wanted:
        tx.change("UPDATE waves SET key_name = ? WHERE key = ?", tx.keys.create(), wave)


def _seal_chunks(tx: Converted) -> None:
    """Payloads under the key of their wave; ids as they were; no hash."""
    names = tx.rows("SELECT q.key, w.key_name FROM questions q JOIN waves w ON w.key = q.wave")
    ciphers = {question: tx.keys.cipher(name) for question, name in names if name}
    for seq, question, n, ids, payloads in tx.stream("SELECT seq, question, n, ids, payloads FROM old_chunks"):
        sealed = ciphers[question].seal(bytes(payloads), bytes(ids)) if n else b""
        sql = "INSERT INTO chunks (seq, question, n, ids, payloads) VALUES (?, ?, ?, ?, ?)"
        tx.change(sql, seq, question, n, bytes(ids), sealed)
    tx.change("DROP TABLE old_chunks")


def _bind_ids(tx: Converted) -> None:
    """The digests of the counted groups, over ids alone; those of a void group counted nothing."""
    counted = tx.rows("SELECT key, state FROM questions WHERE reports_digest IS NOT NULL")
    for question, state in counted:
        ids = [] if state == "void" else tx.rows("SELECT ids FROM chunks WHERE question = ? ORDER BY seq", question)
        digest = reports_digest(bytes(joined) for (joined,) in ids)
        tx.change("UPDATE questions SET reports_digest = ? WHERE key = ?", digest, question)
