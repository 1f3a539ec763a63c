"""Visits to the dashboard in the tables, by the hash of their id."""

from __future__ import annotations

from ahead_ldp.service.store import events
from ahead_ldp.service.store.rows import Visit
from ahead_ldp.service.store.transactions import Transaction

_COLUMNS = "digest, family, token, started_at, made_at, expires_at"


def start(tx: Transaction, visit: Visit, event: bytes | None = None) -> None:
    """A new one; those that have expired are forgotten."""
    tx.change("DELETE FROM sessions WHERE expires_at <= ?", visit.made_at)
    _add(tx, visit)
    events.note(tx, event, visit.made_at)


def one(tx: Transaction, digest: bytes, now: int) -> Visit | None:
    """The one of a hash, if it has not expired."""
    rows = tx.rows(f"SELECT {_COLUMNS} FROM sessions WHERE digest = ? AND expires_at > ?", digest, now)
    return Visit(*rows[0]) if rows else None


def rotate(tx: Transaction, digest: bytes, visit: Visit, until: int) -> bool:
    """Go on under a new hash; the old one holds until then. False if that was done before, or the visit has ended."""
    changed = tx.change("UPDATE sessions SET expires_at = ? WHERE digest = ? AND expires_at > ?", until, digest, until)
    if changed:
        _add(tx, visit)
    return bool(changed)


def end(tx: Transaction, family: bytes, now: int, event: bytes | None = None) -> bool:
    """End a visit under all its hashes; False if it had ended."""
    ended = tx.change("DELETE FROM sessions WHERE family = ?", family)
    if ended:
        events.note(tx, event, now)
    return bool(ended)


def _add(tx: Transaction, visit: Visit) -> None:
    tx.change(
        f"INSERT INTO sessions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        visit.digest,
        visit.family,
        visit.token,
        visit.started_at,
        visit.made_at,
        visit.expires_at,
    )
