"""Waves and their questions in the tables: opened, extended, held, voided, frozen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ahead_ldp.service.store import campaigns, events, jobs, uploads
from ahead_ldp.service.store.interface import LeaseLost, NotFound, StateChanged
from ahead_ldp.service.store.rows import (
    CampaignState,
    FrozenGroup,
    Lease,
    NewWave,
    QuestionRow,
    QuestionState,
    WaveRow,
    WaveState,
)
from ahead_ldp.service.store.transactions import Lock, Transaction, known_row, locked_row

_MOVES = {
    (WaveState.OPEN, WaveState.HELD),
    (WaveState.HELD, WaveState.OPEN),
    (WaveState.OPEN, WaveState.VOID),
    (WaveState.HELD, WaveState.VOID),
}


def every(tx: Transaction, campaign: str) -> list[WaveRow]:
    """The waves of a campaign."""
    rows = tx.rows(
        "SELECT c.digest, w.number, w.state, w.note, w.opened_at, w.closes_at, w.closed_at, w.extensions FROM waves w"
        " JOIN campaigns c ON c.key = w.campaign WHERE c.digest = ? ORDER BY w.number",
        campaign,
    )
    return [WaveRow(d, number, WaveState(state), *rest) for d, number, state, *rest in rows]


def questions(tx: Transaction, campaign: str, wave: int | None = None) -> list[QuestionRow]:
    """The questions of a wave, or of all."""
    which = " AND w.number = ?" if wave is not None else ""
    rows = tx.rows(
        "SELECT w.number, q.name, q.digest, q.record, q.state, q.n, q.tally, q.reports_digest FROM questions q"
        " JOIN waves w ON w.key = q.wave JOIN campaigns c ON c.key = w.campaign"
        f" WHERE c.digest = ?{which} ORDER BY w.number, q.key",
        campaign,
        *([wave] if wave is not None else []),
    )
    return [_question(row) for row in rows]


def counts(tx: Transaction, campaign: str, wave: int) -> dict[str, int]:
    """Stored reports per group."""
    rows = tx.rows(
        "SELECT q.name, CAST(COALESCE(SUM(k.n), 0) AS BIGINT) FROM questions q JOIN waves w ON w.key = q.wave"
        " JOIN campaigns c ON c.key = w.campaign LEFT JOIN chunks k ON k.question = q.key AND q.state <> 'void'"
        " WHERE c.digest = ? AND w.number = ? GROUP BY q.key, q.name ORDER BY q.key",
        campaign,
        wave,
    )
    if not rows:
        raise NotFound("expected a known wave")
    return {name: int(n) for name, n in rows}


def keyed(tx: Transaction) -> list[tuple[str, int, str | None]]:
    """Campaign, number and name of the key of every wave whose reports are still to be counted."""
    rows = tx.rows(
        "SELECT c.digest, w.number, w.key_name FROM waves w JOIN campaigns c ON c.key = w.campaign"
        " WHERE w.state IN ('open', 'held')"
        " AND EXISTS (SELECT 1 FROM questions q WHERE q.wave = w.key AND q.state = 'open') ORDER BY w.key"
    )
    return [(digest, number, name) for digest, number, name in rows]


def open_next(
    tx: Transaction, campaign: str, wave: NewWave, now: int, expected: CampaignState, event: bytes | None = None
) -> None:
    """Open the wave after the last one; again with equal questions: nothing."""
    key, state = campaigns.locked(tx, campaign)
    if state == CampaignState.OPEN and _same_questions(questions(tx, campaign, wave.number), wave):
        return
    if state != expected:
        raise StateChanged(f"expected the campaign to be {expected}, got {state}")
    _insert(tx, key, wave, now)
    campaigns.set_state(tx, key, state, CampaignState.OPEN, now)
    events.note(tx, event, now)


def set_state(
    tx: Transaction,
    campaign: str,
    wave: int,
    expected: WaveState,
    new: WaveState,
    now: int,
    note: str = "",
    event: bytes | None = None,
    *,
    lease: Lease | None = None,
    hold: str | None = None,
) -> None:
    """Compare and swap between open, held and void."""
    if (expected, new) not in _MOVES:
        raise ValueError(f"expected a move of a wave, got {expected} to {new}")
    if lease is not None and not jobs.renew(tx, *lease):
        raise LeaseLost(f"expected the lease of job {lease.job}")
    key, state = _locked(tx, campaign, wave)
    if state != expected:
        raise StateChanged(f"expected wave {wave} to be {expected}, got {state}")
    _check_hold(tx, key, wave, hold)
    if new == WaveState.VOID:
        uploads.doom(tx, "key = ?", key)
        uploads.void(tx, "wave = ?", key)
        tx.change("UPDATE waves SET closed_at = ? WHERE key = ?", now, key)
    tx.change("UPDATE waves SET state = ?, note = ? WHERE key = ?", new.value, note, key)
    events.note(tx, event, now)


def extend(
    tx: Transaction, campaign: str, wave: int, closes_at: int, extensions: int, now: int, event: bytes | None = None
) -> None:
    """A new deadline for an open wave that was extended so many times."""
    key, state = _locked(tx, campaign, wave)
    changed = tx.change(
        "UPDATE waves SET closes_at = ?, extensions = extensions + 1"
        " WHERE key = ? AND state = 'open' AND extensions = ?",
        closes_at,
        key,
        extensions,
    )
    if not changed:
        raise StateChanged(f"expected wave {wave} to be open and extended {extensions} times, got {state}")
    events.note(tx, event, now)


def void_group(
    tx: Transaction,
    campaign: str,
    wave: int,
    group: str,
    now: int,
    event: bytes | None = None,
    *,
    hold: str | None = None,
) -> None:
    """Delete what one group sent, uncounted."""
    key, state = _locked(tx, campaign, wave)
    sql = "SELECT key, state FROM questions WHERE wave = ? AND name = ?"
    question, question_state = known_row(tx, "group", sql, key, group)
    if question_state == QuestionState.VOID:
        uploads.void(tx, "key = ?", question)  # the deletion may not have come to its end the first time
        return
    if state not in (WaveState.OPEN, WaveState.HELD):
        raise StateChanged(f"expected wave {wave} to be open or held, got {state}")
    _check_hold(tx, key, wave, hold)
    uploads.void(tx, "key = ?", question)
    if not tx.rows("SELECT 1 FROM questions WHERE wave = ? AND state <> 'void'", key):
        uploads.doom(tx, "key = ?", key)
    events.note(tx, event, now)


def freeze(
    tx: Transaction,
    campaign: str,
    wave: int,
    groups: Sequence[FrozenGroup],
    now: int,
    state: CampaignState,
    next_wave: NewWave | None = None,
    event: bytes | None = None,
    note: str | None = None,
) -> bool:
    """Close a held wave for good, in one step with the next; False if these counts are in already."""
    if (next_wave is not None) != (state == CampaignState.OPEN) or state == CampaignState.DRAFT:
        raise ValueError("expected a next wave exactly if the campaign stays open")
    campaign_key, campaign_state = campaigns.locked(tx, campaign)
    key, wave_state = _locked_wave(tx, campaign_key, wave)
    stored = questions(tx, campaign, wave)
    counted = {g.group: g for g in groups}
    if len(counted) != len(groups) or set(counted) != {q.group for q in stored}:
        raise ValueError(f"expected each group of wave {wave} once")
    if wave_state == WaveState.CLOSED and all(_same_count(q, counted[q.group]) for q in stored):
        return False
    if wave_state != WaveState.HELD or campaign_state != CampaignState.OPEN:
        raise StateChanged(f"expected a held wave of an open campaign, got {wave_state} and {campaign_state}")
    _check_hold(tx, key, wave, note)
    if counts(tx, campaign, wave) != {name: g.n for name, g in counted.items()}:
        raise StateChanged(f"expected the number of stored reports for every group of wave {wave}")
    for question in stored:
        _freeze_group(tx, key, question, counted[question.group])
    tx.change("UPDATE waves SET state = 'closed', note = '', closed_at = ? WHERE key = ?", now, key)
    if next_wave is not None:
        _insert(tx, campaign_key, next_wave, now)
    campaigns.set_state(tx, campaign_key, campaign_state, state, now)
    events.note(tx, event, now)
    return True


def _insert(tx: Transaction, campaign: int, wave: NewWave, now: int) -> None:
    ((last, moving),) = tx.rows(
        "SELECT COALESCE(MAX(number), 0), COALESCE(SUM(CASE WHEN state IN ('open', 'held') THEN 1 ELSE 0 END), 0)"
        " FROM waves WHERE campaign = ?",
        campaign,
    )
    if wave.number != last + 1 or moving:
        raise StateChanged(f"expected to open wave {last + 1} after all before it are closed, got wave {wave.number}")
    if not wave.questions or len({q.group for q in wave.questions}) != len(wave.questions):
        raise ValueError("expected a question for each group, and at least one")
    ((key,),) = tx.rows(
        "INSERT INTO waves (campaign, number, state, note, opened_at, closes_at, extensions, key_name)"
        " VALUES (?, ?, 'open', '', ?, ?, 0, ?) RETURNING key",
        campaign,
        wave.number,
        now,
        wave.closes_at,
        tx.keys.create(),
    )
    for q in wave.questions:
        tx.change(
            "INSERT INTO questions (wave, name, digest, record, state) VALUES (?, ?, ?, ?, 'open')",
            key,
            q.group,
            q.digest,
            q.record,
        )


def _freeze_group(tx: Transaction, wave: int, question: QuestionRow, count: FrozenGroup) -> None:
    state = QuestionState.VOID if question.state == QuestionState.VOID else QuestionState.COUNTED
    tx.change(
        "UPDATE questions SET state = ?, n = ?, tally = ?, reports_digest = ? WHERE wave = ? AND name = ?",
        state.value,
        count.n,
        count.tally,
        count.reports_digest,
        wave,
        question.group,
    )


def _locked(tx: Transaction, campaign: str, number: int) -> tuple[int, WaveState]:
    key, _ = campaigns.locked(tx, campaign)
    return _locked_wave(tx, key, number)


def _locked_wave(tx: Transaction, campaign: int, number: int) -> tuple[int, WaveState]:
    key, state = locked_row(tx, Lock.WAVE, "campaign = ? AND number = ?", campaign, number)
    return key, WaveState(state)


def _check_hold(tx: Transaction, wave: int, number: int, hold: str | None) -> None:
    """A hold that has ended is not taken for the one after it."""
    if hold is not None and tx.rows("SELECT state, note FROM waves WHERE key = ?", wave) != [("held", hold)]:
        raise StateChanged(f"expected wave {number} to be held since it was looked at")


def _same_questions(stored: Sequence[QuestionRow], wave: NewWave) -> bool:
    return [(q.group, q.digest, q.record) for q in stored] == [(q.group, q.digest, q.record) for q in wave.questions]


def _same_count(stored: QuestionRow, count: FrozenGroup) -> bool:
    return (stored.n, stored.tally, stored.reports_digest) == (count.n, count.tally, count.reports_digest)


def _question(row: tuple[Any, ...]) -> QuestionRow:
    wave, group, digest, record, state, n, tally, reports = row
    tally = None if tally is None else bytes(tally)
    return QuestionRow(wave, group, digest, bytes(record), QuestionState(state), n, tally, reports)
