"""Campaigns in the tables: a record that never changes and a state that does."""

from __future__ import annotations

from ahead_ldp.service.store import events
from ahead_ldp.service.store.interface import StateChanged
from ahead_ldp.service.store.rows import CampaignRow, CampaignState
from ahead_ldp.service.store.transactions import Lock, Transaction, known_row, locked_row

FINAL = (CampaignState.FINISHED, CampaignState.VOID)
_ROW = """SELECT digest, record, state, created_at, ended_at, (SELECT value FROM meta WHERE name = 'epoch')
 FROM campaigns"""


def create(tx: Transaction, digest: str, record: bytes, now: int, event: bytes | None = None) -> bool:
    """A new draft; False if it is there."""
    created = tx.change(
        "INSERT INTO campaigns (digest, record, state, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
        digest,
        record,
        CampaignState.DRAFT.value,
        now,
    )
    if created:
        events.note(tx, event, now)
    return bool(created)


def every(tx: Transaction) -> list[CampaignRow]:
    """All, oldest first."""
    return [_row(row) for row in tx.rows(f"{_ROW} ORDER BY key")]


def one(tx: Transaction, digest: str) -> CampaignRow:
    """One of them."""
    return _row(known_row(tx, "campaign", f"{_ROW} WHERE digest = ?", digest))


def locked(tx: Transaction, digest: str) -> tuple[int, CampaignState]:
    """Key and state of a campaign that nobody else changes until this transaction ends."""
    key, state = locked_row(tx, Lock.CAMPAIGN, "digest = ?", digest)
    return key, CampaignState(state)


def set_state(tx: Transaction, key: int, old: CampaignState, new: CampaignState, now: int) -> None:
    """From one state to the next, for a campaign that is locked."""
    if old in FINAL and new != old:
        raise StateChanged(f"expected a campaign that goes on, got {old}")
    if new in FINAL:
        tx.change("UPDATE campaigns SET state = ?, ended_at = ? WHERE key = ?", new.value, now, key)
    else:
        tx.change("UPDATE campaigns SET state = ? WHERE key = ?", new.value, key)


def change_state(
    tx: Transaction, digest: str, expected: CampaignState, new: CampaignState, now: int, event: bytes | None = None
) -> None:
    """Compare and swap; a campaign ends only with all its waves."""
    key, old = locked(tx, digest)
    if old != expected:
        raise StateChanged(f"expected the campaign to be {expected}, got {old}")
    if new in FINAL:
        moving = tx.rows("SELECT number FROM waves WHERE campaign = ? AND state IN ('open', 'held')", key)
        if moving:
            raise StateChanged(f"expected every wave to be closed or void, but wave {moving[0][0]} is not")
    set_state(tx, key, old, new, now)
    events.note(tx, event, now)


def _row(row: tuple[object, ...]) -> CampaignRow:
    digest, record, state, *rest = row
    return CampaignRow(digest, bytes(record), CampaignState(state), *rest)  # type: ignore[arg-type, call-overload]
