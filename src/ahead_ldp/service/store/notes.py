"""What stands beside the reports, never in their transactions: counters, derived documents, marks of the store."""

from __future__ import annotations

from collections.abc import Mapping

from ahead_ldp.service.store.transactions import Transaction


def ping(tx: Transaction) -> None:
    """Read."""
    tx.rows("SELECT 1")


def probe(tx: Transaction) -> None:
    """Write."""
    tx.change("UPDATE meta SET value = value + 1 WHERE name = 'probe'")


def epoch(tx: Transaction) -> int:
    """The number of the store's epoch."""
    ((number,),) = tx.rows("SELECT value FROM meta WHERE name = 'epoch'")
    return int(number)


def add_counters(tx: Transaction, counts: Mapping[tuple[str, int, str], int]) -> None:
    """Add to each; in one order for everybody."""
    for (campaign, wave, reason), n in sorted(counts.items()):
        tx.change(
            "INSERT INTO counters (campaign, wave, reason, n) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (campaign, wave, reason) DO UPDATE SET n = counters.n + excluded.n",
            campaign,
            wave,
            reason,
            n,
        )


def counters(tx: Transaction, campaign: str) -> dict[tuple[int, str], int]:
    """Those of a campaign."""
    sql = "SELECT wave, reason, n FROM counters WHERE campaign = ? ORDER BY wave, reason"
    return {(wave, reason): n for wave, reason, n in tx.rows(sql, campaign)}


def put_document(tx: Transaction, campaign: str, wave: int, kind: str, body: bytes) -> None:
    """The latest of its kind."""
    tx.change(
        "INSERT INTO documents (campaign, wave, kind, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (campaign, wave, kind) DO UPDATE SET body = excluded.body",
        campaign,
        wave,
        kind,
        body,
    )


def change_document(tx: Transaction, campaign: str, wave: int, kind: str, old: bytes | None, body: bytes) -> bool:
    """Replace this body, or none."""
    if old is None:
        sql = "INSERT INTO documents (body, campaign, wave, kind) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        return tx.change(sql, body, campaign, wave, kind) == 1
    sql = "UPDATE documents SET body = ? WHERE campaign = ? AND wave = ? AND kind = ? AND body = ?"
    return tx.change(sql, body, campaign, wave, kind, old) == 1


def document(tx: Transaction, campaign: str, wave: int, kind: str) -> bytes | None:
    """One of them."""
    sql = "SELECT body FROM documents WHERE campaign = ? AND wave = ? AND kind = ?"
    rows = tx.rows(sql, campaign, wave, kind)
    return bytes(rows[0][0]) if rows else None
