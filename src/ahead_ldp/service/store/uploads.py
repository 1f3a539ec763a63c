"""Reports in the tables: an id enters ``seen`` once, its payload one chunk, both in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter
from typing import Any

from ahead_ldp.service.store import campaigns, events
from ahead_ldp.service.store.interface import StateChanged
from ahead_ldp.service.store.known_ids import cut, position
from ahead_ldp.service.store.rows import HASH_LENGTH, ID_LENGTH, Batch, Chunk, Outcome, Withdrawal
from ahead_ldp.service.store.transactions import Lock, Transaction

_WITHDRAWN = 0  # in seen.chunk
_SeenRow = tuple[bytes, bytes, int]  # id, hash, chunk


@dataclass(slots=True)
class _Target:
    """A question that reports are for, and those of this transaction that want in."""

    campaign: int
    wave: int
    question: int | None  # None: not opened yet, or never
    takes: bool = False
    chunk: int = -1
    batches: list[Batch] = field(default_factory=list)


def add(tx: Transaction, batches: Sequence[Batch]) -> list[bytes]:
    """An outcome for every report. Batches that cannot enter are looked up after those that can."""
    if not batches:
        return []
    targets = _targets(tx, dict.fromkeys((b.campaign, b.wave, b.group) for b in batches))
    rows: dict[int, list[_SeenRow]] = {}  # by campaign
    filled = [t for t in targets.values() if t.takes]
    for target, chunk in zip(filled, tx.new_chunks(len(filled)), strict=True):
        target.chunk = chunk
    for batch in batches:
        at = targets.get((batch.campaign, batch.wave, batch.group))
        if at is not None and at.takes and batch.insert:
            at.batches.append(batch)
            rows.setdefault(at.campaign, []).extend(
                zip(cut(batch.ids, ID_LENGTH), cut(batch.hashes, HASH_LENGTH), repeat(at.chunk))
            )
    all_new = True
    for campaign in sorted(rows):
        # One order for everybody, so that two transactions never wait for each other's ids in a circle;
        # a stable one, so that the first of two reports with one id is the one that enters.
        rows[campaign].sort(key=itemgetter(0))
        all_new &= tx.insert_seen(campaign, rows[campaign]) == len(rows[campaign])
    if all_new and sum(len(t.batches) for t in filled) == len(batches):
        for target in filled:
            if target.batches:
                _store(tx, target, target.batches)
        return [bytes(batch.n) for batch in batches]
    return _settle(tx, batches, targets)


def withdraw(tx: Transaction, campaign: str, report_id: bytes, now: int) -> Withdrawal:
    """Take one report out of its chunk, and keep its id. It leaves no trace of when."""
    del now
    if len(report_id) != ID_LENGTH:
        raise ValueError(f"expected an id of {ID_LENGTH} bytes")
    campaigns_of_name = tx.rows("SELECT key FROM campaigns WHERE digest = ?", campaign)
    if not campaigns_of_name:
        return Withdrawal.TOO_LATE
    key = int(campaigns_of_name[0][0])
    seen = tx.find_seen(key, [report_id]).get(report_id)
    if seen is None:
        return _bury(tx, key, report_id)
    return _take_out(tx, key, report_id, seen[1])


def reports(read: Callable[..., list[tuple[Any, ...]]], question: int, rows: int) -> Iterator[Chunk]:
    """The chunks of a question, joined to about ``rows`` reports; every read is a short transaction of its own."""
    last = 0
    while True:
        sql = "SELECT seq, n FROM chunks WHERE question = ? AND n > 0 AND seq > ? ORDER BY seq LIMIT 4096"
        pieces = read(sql, question, last)
        if not pieces:
            return
        n = 0
        for seq, size in pieces:
            n, last = n + size, seq
            if n >= rows:
                break
        sql = (
            "SELECT n, ids, hashes, payloads FROM chunks WHERE question = ? AND n > 0 AND seq BETWEEN ? AND ?"
            " ORDER BY seq"
        )
        parts = read(sql, question, pieces[0][0], last)
        if parts:
            sizes, ids, hashes, payloads = zip(*parts, strict=True)
            yield Chunk(sum(sizes), b"".join(ids), b"".join(hashes), b"".join(payloads))


def delete(tx: Transaction, campaign: str, now: int, event: bytes | None = None) -> int:
    """Delete the reports of a campaign that ended."""
    key, state = campaigns.locked(tx, campaign)
    if state not in campaigns.FINAL:
        raise StateChanged(f"expected a finished or void campaign, got {state}")
    tx.erases = True  # again too: the wiping may have failed the first time
    of = "question IN (SELECT q.key FROM questions q JOIN waves w ON w.key = q.wave WHERE w.campaign = ?)"
    ((n,),) = tx.rows(f"SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) FROM chunks WHERE {of}", key)
    if n:
        erase(tx, of, key)
        events.note(tx, event, now)
    return int(n)


def erase(tx: Transaction, of: str, key: int) -> None:
    """Delete the payloads of some chunks; the ids stay, so that they cannot come back."""
    tx.change(f"UPDATE chunks SET n = 0, payloads = ? WHERE {of}", b"", key)
    tx.erases = True


def _targets(tx: Transaction, names: Iterable[tuple[str, int, str]]) -> dict[tuple[str, int, str], _Target]:
    """Those of known campaigns, their waves locked against closers, with the states found under the lock."""
    targets = {}
    for name in names:
        keys = tx.rows(
            "SELECT c.key, w.key, q.key FROM campaigns c LEFT JOIN waves w ON w.campaign = c.key AND w.number = ?"
            " LEFT JOIN questions q ON q.wave = w.key AND q.name = ? WHERE c.digest = ?",
            name[1],
            name[2],
            name[0],
        )
        if keys:
            targets[name] = _Target(*keys[0])
    opened = [t for t in targets.values() if t.question is not None]
    for wave in sorted({t.wave for t in opened}):
        tx.lock(Lock.WAVE, wave, shared=True)
    for target in opened:
        target.takes = _states(tx, target.question) == ("open", "open")
    return targets


def _states(tx: Transaction, question: int | None) -> tuple[str, str]:
    """Of the question's wave, and its own."""
    sql = "SELECT w.state, q.state FROM questions q JOIN waves w ON w.key = q.wave WHERE q.key = ?"
    ((wave_state, state),) = tx.rows(sql, question)
    return wave_state, state


def _settle(tx: Transaction, batches: Sequence[Batch], targets: dict[tuple[str, int, str], _Target]) -> list[bytes]:
    """The general case: some ids were known, or came twice, or were too late."""
    entered: dict[int, set[bytes]] = {}  # by campaign: ids whose first report was met
    kept: dict[int, list[Batch]] = {}  # by chunk
    answers = []
    for batch in batches:
        target = targets.get((batch.campaign, batch.wave, batch.group))
        if target is None:  # no such campaign
            answers.append(bytes([Outcome.CLOSED]) * batch.n)
            continue
        outcomes = _outcomes(tx, batch, target, entered.setdefault(target.campaign, set()))
        answers.append(bytes(outcomes))
        if Outcome.NEW in outcomes:
            kept.setdefault(target.chunk, []).append(_select(batch, outcomes))
    for target in targets.values():
        if target.chunk in kept:
            _store(tx, target, kept[target.chunk])
    return answers


def _outcomes(tx: Transaction, batch: Batch, target: _Target, entered: set[bytes]) -> list[int]:
    ids = cut(batch.ids, ID_LENGTH)
    known = tx.find_seen(target.campaign, ids)
    inserted = batch.insert and target.takes
    outcomes: list[int] = []
    for report_id, report_hash in zip(ids, cut(batch.hashes, HASH_LENGTH), strict=True):
        seen = known.get(report_id)
        if seen is None:
            outcomes.append(Outcome.UNKNOWN if target.takes else Outcome.CLOSED)
        elif inserted and seen[1] == target.chunk and report_id not in entered:
            entered.add(report_id)
            outcomes.append(Outcome.NEW)
        elif seen[1] == _WITHDRAWN:
            outcomes.append(Outcome.WITHDRAWN)
        else:
            outcomes.append(Outcome.KNOWN if seen[0] == report_hash else Outcome.REPLAYED)
    return outcomes


def _store(tx: Transaction, target: _Target, batches: Sequence[Batch]) -> None:
    lengths = {len(b.payloads) // b.n for b in batches}
    if len(lengths) != 1:
        raise ValueError("expected payloads of one length for one question")
    tx.change(
        "INSERT INTO chunks (seq, question, n, ids, hashes, payloads) VALUES (?, ?, ?, ?, ?, ?)",
        target.chunk,
        target.question,
        sum(b.n for b in batches),
        b"".join(b.ids for b in batches),
        b"".join(b.hashes for b in batches),
        b"".join(b.payloads for b in batches),
    )


def _select(batch: Batch, outcomes: Sequence[int]) -> Batch:
    """The new ones of a batch."""
    at = [i for i, outcome in enumerate(outcomes) if outcome == Outcome.NEW]
    if len(at) == batch.n:
        return batch
    size = len(batch.payloads) // batch.n
    ids, hashes, payloads = (
        b"".join(part[i * length : (i + 1) * length] for i in at)
        for part, length in ((batch.ids, ID_LENGTH), (batch.hashes, HASH_LENGTH), (batch.payloads, size))
    )
    return Batch(batch.campaign, batch.wave, batch.group, ids, hashes, payloads)


def _bury(tx: Transaction, campaign: int, report_id: bytes) -> Withdrawal:
    last = tx.rows("SELECT key FROM waves WHERE campaign = ? ORDER BY number DESC LIMIT 1", campaign)
    if not last:
        return Withdrawal.TOO_LATE
    tx.lock(Lock.WAVE, int(last[0][0]), shared=True)
    if tx.rows("SELECT state FROM waves WHERE key = ?", last[0][0]) != [("open",)]:
        return Withdrawal.TOO_LATE
    if tx.bury(campaign, report_id):
        return Withdrawal.BURIED
    return _take_out(tx, campaign, report_id, tx.find_seen(campaign, [report_id])[report_id][1])  # it came meanwhile


def _take_out(tx: Transaction, campaign: int, report_id: bytes, chunk: int) -> Withdrawal:
    places = tx.rows(
        "SELECT w.key, q.key FROM chunks k JOIN questions q ON q.key = k.question JOIN waves w ON w.key = q.wave"
        " WHERE k.seq = ?",
        chunk,
    )
    if not places:  # withdrawn before
        return Withdrawal.GONE
    wave, question = places[0]
    tx.lock(Lock.WAVE, int(wave), shared=True)
    wave_state, state = _states(tx, question)
    if state == "void":  # deleted with its group, uncounted
        return Withdrawal.GONE
    if wave_state != "open":  # counted or about to be, also where its payload was deleted since
        return Withdrawal.TOO_LATE
    # Of two withdrawals from one chunk, or of one id, the second waits here and then finds what is left.
    tx.change("UPDATE chunks SET n = n WHERE seq = ?", chunk)
    ((n, *left),) = tx.rows("SELECT n, ids, hashes, payloads FROM chunks WHERE seq = ?", chunk)
    parts = [bytes(part) for part in left]
    at = position(parts[0], report_id)
    if at is None or not n:
        return Withdrawal.GONE
    sizes = [len(part) // n for part in parts]
    ids, hashes, payloads = (
        part[: at * size] + part[(at + 1) * size :] for part, size in zip(parts, sizes, strict=True)
    )
    sql = "UPDATE chunks SET n = ?, ids = ?, hashes = ?, payloads = ? WHERE seq = ?"
    tx.change(sql, n - 1, ids, hashes, payloads, chunk)
    tx.withdraw(campaign, report_id)
    return Withdrawal.REMOVED
