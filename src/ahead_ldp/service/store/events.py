"""The audit chain: every event is bound to all before it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ahead_ldp.service.store.rows import Event
from ahead_ldp.service.store.transactions import Lock, Transaction

BEFORE_ALL = "0" * 64


def event_digest(previous: str, at: int, body: bytes) -> str:
    """SHA-256 of the previous digest (32 bytes), the time (8 bytes, big-endian) and the body."""
    return hashlib.sha256(bytes.fromhex(previous) + at.to_bytes(8, "big") + body).hexdigest()


def check_chain(events: Iterable[Event], previous: str = BEFORE_ALL, after: int = 0) -> str:
    """The last digest of a chain without gap or change; else a ``ValueError`` that names the number."""
    for number, event in enumerate(events, start=after + 1):
        if event.number != number or event.digest != event_digest(previous, event.at, event.body):
            raise ValueError(f"expected event {number} to follow from the one before it")
        previous = event.digest
    return previous


def note(tx: Transaction, body: bytes | None, now: int) -> None:
    """Append what a change wants to have said, if it says anything."""
    if body is not None:
        append(tx, body, now)


def append(tx: Transaction, body: bytes, now: int) -> Event:
    """One more event."""
    tx.lock(Lock.EVENTS)
    last = tx.rows("SELECT number, digest FROM events ORDER BY number DESC LIMIT 1")
    number, previous = last[0] if last else (0, BEFORE_ALL)
    event = Event(number + 1, now, body, event_digest(previous, now, body))
    tx.change("INSERT INTO events VALUES (?, ?, ?, ?)", event.number, event.at, event.body, event.digest)
    return event


def every(tx: Transaction, after: int = 0, limit: int = 1_000) -> list[Event]:
    """The events after a number, oldest first."""
    sql = "SELECT number, at, body, digest FROM events WHERE number > ? ORDER BY number LIMIT ?"
    return [Event(*row) for row in tx.rows(sql, after, limit)]
