"""Bearer tokens in the tables, by their hash."""

from __future__ import annotations

from ahead_ldp.service.store import events
from ahead_ldp.service.store.interface import StateChanged
from ahead_ldp.service.store.rows import RoleToken
from ahead_ldp.service.store.transactions import Transaction

_COLUMNS = "digest, role, name, created_at, expires_at, revoked_at"


def add(tx: Transaction, token: RoleToken, event: bytes | None = None) -> None:
    """A new one."""
    added = tx.change(
        f"INSERT INTO role_tokens ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        token.digest,
        token.role,
        token.name,
        token.created_at,
        token.expires_at,
        token.revoked_at,
    )
    if not added:
        raise StateChanged("expected a new token under a new name")
    events.note(tx, event, token.created_at)


def one(tx: Transaction, digest: bytes) -> RoleToken | None:
    """The one of a hash."""
    rows = tx.rows(f"SELECT {_COLUMNS} FROM role_tokens WHERE digest = ?", digest)
    return RoleToken(*rows[0]) if rows else None


def every(tx: Transaction) -> list[RoleToken]:
    """All, oldest first."""
    return [RoleToken(*row) for row in tx.rows(f"SELECT {_COLUMNS} FROM role_tokens ORDER BY created_at, name")]


def revoke(tx: Transaction, name: str, now: int, event: bytes | None = None) -> bool:
    """Revoke by name."""
    changed = tx.change("UPDATE role_tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL", now, name)
    if changed:
        events.note(tx, event, now)
    return bool(changed)
