"""Jobs in the tables: work with leases, so that a dead worker's job is taken up again."""

from __future__ import annotations

import secrets

from ahead_ldp.service.store.rows import Job, JobState
from ahead_ldp.service.store.transactions import Transaction, known_row

_COLUMNS = "number, key, kind, args, state, attempts, lease, lease_until, result, created_at, not_before"


def add(tx: Transaction, key: str, kind: str, args: bytes, now: int, not_before: int = 0) -> Job:
    """The job of a key, made or queued anew if need be."""
    tx.change(
        "INSERT INTO jobs (key, kind, args, state, attempts, created_at, not_before)"
        " VALUES (?, ?, ?, 'queued', 0, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET state = 'queued', not_before = excluded.not_before"
        " WHERE jobs.state = 'failed'",
        key,
        kind,
        args,
        now,
        not_before,
    )
    return _job(tx.rows(f"SELECT {_COLUMNS} FROM jobs WHERE key = ?", key)[0])


def lease(tx: Transaction, now: int, seconds: int) -> Job | None:
    """The oldest job that is due and free."""
    leased = tx.rows(
        "UPDATE jobs SET state = 'leased', attempts = attempts + 1, lease = ?, lease_until = ? WHERE number = ("
        "SELECT number FROM jobs WHERE (state = 'queued' AND not_before <= ?)"
        " OR (state = 'leased' AND lease_until <= ?)"
        f" ORDER BY number LIMIT 1 {tx.skip_locked}) RETURNING {_COLUMNS}",
        secrets.token_hex(16),
        now + seconds,
        now,
        now,
    )
    return _job(leased[0]) if leased else None


def renew(tx: Transaction, number: int, lease: str, until: int) -> bool:
    """Keep a lease."""
    sql = "UPDATE jobs SET lease_until = ? WHERE number = ? AND state = 'leased' AND lease = ?"
    return bool(tx.change(sql, until, number, lease))


def end(
    tx: Transaction,
    number: int,
    lease: str,
    state: JobState,
    result: bytes | None = None,
    not_before: int | None = None,
) -> bool:
    """Give a lease back with what came of it."""
    if state == JobState.LEASED:
        raise ValueError("expected the job to be done, failed or queued again")
    return bool(
        tx.change(
            "UPDATE jobs SET state = ?, result = ?, not_before = COALESCE(?, not_before), lease = NULL,"
            " lease_until = NULL WHERE number = ? AND state = 'leased' AND lease = ?",
            state.value,
            result,
            not_before,
            number,
            lease,
        )
    )


def one(tx: Transaction, number: int) -> Job:
    """One job."""
    return _job(known_row(tx, "job", f"SELECT {_COLUMNS} FROM jobs WHERE number = ?", number))


def every(tx: Transaction) -> list[Job]:
    """All, oldest first."""
    return [_job(row) for row in tx.rows(f"SELECT {_COLUMNS} FROM jobs ORDER BY number")]


def _job(row: tuple[object, ...]) -> Job:
    number, key, kind, args, state, *rest = row
    return Job(number, key, kind, args, JobState(state), *rest)  # type: ignore[arg-type]
