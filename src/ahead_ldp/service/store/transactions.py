"""What the tables' functions ask of a database: rows, changes and locks inside one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, ClassVar, Protocol

from ahead_ldp.service.store.interface import NotFound
from ahead_ldp.service.store.keys import Keys


class Lock(IntEnum):
    """What can be locked until a transaction ends. Always taken in this order, so that nobody waits in a circle."""

    CAMPAIGN = 1  # whoever changes the state of a campaign or of its waves
    WAVE = 2  # shared by uploads and withdrawals, exclusive for whoever opens, holds or voids
    EVENTS = 3  # the end of the audit chain


class Transaction(Protocol):
    """One transaction. SQL is the part that SQLite and PostgreSQL share, with ``?`` for every parameter."""

    skip_locked: ClassVar[str]  # how a query passes over rows that others are about to change
    keys: Keys  # the directory of the waves' keys
    erases: bool  # reports were deleted: once this is durable, what a database keeps of them is wiped
    doomed: list[str]  # names of keys to be destroyed once this is durable
    left: list[tuple[int, int]]  # questions whose reports are deleted once this is durable, after these chunks

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """What a query finds, or what a change returns."""

    def change(self, sql: str, *parameters: object) -> int:
        """How many rows a statement changed."""

    def lock(self, what: Lock, key: int = 0, *, shared: bool = False) -> None:
        """Wait for a lock and hold it to the end; what is read after it is at least as new as the lock."""

    def insert_seen(self, campaign: int, rows: Sequence[tuple[bytes, int]]) -> int:
        """Take in (id, chunk) in this order where the id is new, and say how many were. Once per campaign.

        The caller stores every chunk with exactly the ids that were new, in the same transaction.
        """

    def find_seen(self, campaign: int, ids: Sequence[bytes]) -> dict[bytes, int]:
        """The chunk of those ids that are in; 0 if withdrawn."""

    def withdraw(self, campaign: int, report_id: bytes) -> None:
        """Mark a known id as withdrawn."""

    def new_chunks(self, k: int) -> list[int]:
        """Numbers for k new chunks, never given out before."""


def known_row(tx: Transaction, what: str, sql: str, *parameters: object) -> tuple[Any, ...]:
    """The first row of a query for something that must exist; else ``NotFound``."""
    rows = tx.rows(sql, *parameters)
    if not rows:
        raise NotFound(f"expected a known {what}")
    return rows[0]


def locked_row(tx: Transaction, what: Lock, where: str, *parameters: object) -> tuple[int, str]:
    """Key and state of a campaign or wave that nobody else changes until this transaction ends."""
    name = what.name.lower()
    key = int(known_row(tx, name, f"SELECT key FROM {name}s WHERE {where}", *parameters)[0])
    tx.lock(what, key)
    ((state,),) = tx.rows(f"SELECT state FROM {name}s WHERE key = ?", key)
    return key, state
