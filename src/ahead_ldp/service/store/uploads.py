"""Reports in the tables: an id is taken in once, its payload goes into one chunk, both in one transaction.

The id alone decides what becomes of a report. Nothing that is computed from a payload is stored but the payload itself,
under the key of its wave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter
from typing import Any

from ahead_ldp.service.store import campaigns, events
from ahead_ldp.service.store.interface import StateChanged
from ahead_ldp.service.store.keys import Cipher, Keys
from ahead_ldp.service.store.known_ids import cut, position
from ahead_ldp.service.store.rows import ID_LENGTH, RESTORED, Batch, Chunk, Outcome, Withdrawal
from ahead_ldp.service.store.transactions import Lock, Transaction

PORTION = 16 * 1024 * 1024  # bytes of payloads that one transaction deletes: uploads wait for no more
_WITHDRAWN = 0  # in seen.chunk
_SeenRow = tuple[bytes, int]  # id and chunk
Places = list[tuple[int, int]]  # questions, and the last of their chunks that was looked at


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
            rows.setdefault(at.campaign, []).extend(zip(cut(batch.ids, ID_LENGTH), repeat(at.chunk)))
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
        return Withdrawal.UNKNOWN
    key = int(campaigns_of_name[0][0])
    chunk = tx.find_seen(key, [report_id]).get(report_id)
    return Withdrawal.UNKNOWN if chunk is None else _take_out(tx, key, report_id, chunk)


def reports(
    read: Callable[..., list[tuple[Any, ...]]], keys: Keys, key_name: str | None, question: int, rows: int
) -> Iterator[Chunk]:
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
        sql = "SELECT n, ids, payloads FROM chunks WHERE question = ? AND n > 0 AND seq BETWEEN ? AND ? ORDER BY seq"
        parts = read(sql, question, pieces[0][0], last)
        if parts:
            sizes, ids, sealed = zip(*parts, strict=True)
            cipher = keys.cipher(key_name)
            payloads = [cipher.unseal(*part) for part in zip(sealed, ids, strict=True)]
            yield Chunk(sum(sizes), b"".join(ids), b"".join(payloads))


def delete(
    tx: Transaction, campaign: str, now: int, event: bytes | None = None, places: Places | None = None
) -> tuple[int, Places]:
    """Delete a portion of the reports of a campaign that ended, from these places on, and the keys of its waves.

    How many, and the places where more are left. The event is noted with the last portion.
    """
    key, state = campaigns.locked(tx, campaign)
    if state not in campaigns.FINAL:
        raise StateChanged(f"expected a finished or void campaign, got {state}")
    doom(tx, "campaign = ?", key)
    if places is None:
        places = begin(tx, "wave IN (SELECT key FROM waves WHERE campaign = ?)", key)
    n, left = erase_some(tx, places)
    if not left:
        tx.erases = True  # again too: the wiping may have failed the first time
        if n:
            events.note(tx, event, now)
    return n, left


def begin(tx: Transaction, which: str, key: int) -> Places:
    """The places at which all reports of some questions begin."""
    return [(question, 0) for (question,) in tx.rows(f"SELECT key FROM questions WHERE {which} ORDER BY key", key)]


def void(tx: Transaction, which: str, key: int) -> None:
    """Some questions have no reports any more: a portion of the payloads goes now, the rest once this is durable."""
    tx.erases = True
    _, tx.left = erase_some(tx, begin(tx, which, key))
    tx.change(f"UPDATE questions SET state = 'void' WHERE {which}", key)


def erase_some(tx: Transaction, places: Places) -> tuple[int, Places]:
    """Delete a portion of payloads; the ids stay, so that they cannot come back.

    A place is a question and its last chunk that was looked at. How many reports, and where more are left.
    """
    n, room, places = 0, float(PORTION), list(places)
    while places:
        question, last = places[0]
        sql = "SELECT seq, n FROM chunks WHERE question = ? AND n > 0 AND seq > ? ORDER BY seq LIMIT 4096"
        pieces = tx.rows(sql, question, last)
        if not pieces:
            del places[0]
            continue
        if room <= 0:
            break
        first = pieces[0][0]
        ((length,),) = tx.rows("SELECT length(payloads) FROM chunks WHERE seq = ?", first)
        each = length / pieces[0][1]  # the same for all reports to a question
        for seq, size in pieces:
            n, room, last = n + size, room - each * size, seq
            if room <= 0:
                break
        sql = "UPDATE chunks SET n = 0, payloads = ? WHERE question = ? AND seq BETWEEN ? AND ?"
        tx.change(sql, b"", question, first, last)
        places[0] = question, last
    return n, places


def unfinished(tx: Transaction) -> tuple[Places, list[str]]:
    """What is void, durably, and may still be there: questions with payloads, and keys of waves that have no other.

    Not the keys of waves that a restore ended: in the store that was backed up they may go on, until the retention.
    """
    places = tx.rows(
        "SELECT DISTINCT q.key FROM questions q JOIN chunks k ON k.question = q.key WHERE q.state = 'void' AND k.n > 0"
    )
    names = tx.rows(
        "SELECT key_name FROM waves w WHERE key_name IS NOT NULL AND note <> ?"
        " AND NOT EXISTS (SELECT 1 FROM questions q WHERE q.wave = w.key AND q.state <> 'void')",
        RESTORED,
    )
    return [(question, 0) for (question,) in places], [name for (name,) in names]


def erase(tx: Transaction, of: str, key: int) -> None:
    """Delete the payloads of some chunks, all in this transaction; the ids stay."""
    tx.change(f"UPDATE chunks SET n = 0, payloads = ? WHERE {of}", b"", key)


def doom(tx: Transaction, which: str, key: int) -> None:
    """Have the keys of some waves destroyed, once what this transaction does is durable."""
    tx.doomed += [name for (name,) in tx.rows(f"SELECT key_name FROM waves WHERE {which}", key) if name]


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
        ids, enters = cut(batch.ids, ID_LENGTH), batch.insert and target.takes
        outcomes = _outcomes(tx, ids, target, enters, entered.setdefault(target.campaign, set()))
        answers.append(bytes(outcomes))
        if Outcome.NEW in outcomes:
            kept.setdefault(target.chunk, []).append(_select(batch, outcomes))
    for target in targets.values():
        if target.chunk in kept:
            _store(tx, target, kept[target.chunk])
    return answers


def _outcomes(tx: Transaction, ids: list[bytes], target: _Target, enters: bool, entered: set[bytes]) -> list[int]:
    """What becomes of reports with these ids; nothing else about them is known here."""
    known = tx.find_seen(target.campaign, ids)
    outcomes: list[int] = []
    for report_id in ids:
        chunk = known.get(report_id)
        if chunk is None:
            outcomes.append(Outcome.UNKNOWN if target.takes else Outcome.CLOSED)
        elif enters and chunk == target.chunk and report_id not in entered:
            entered.add(report_id)
            outcomes.append(Outcome.NEW)
        else:
            outcomes.append(Outcome.WITHDRAWN if chunk == _WITHDRAWN else Outcome.KNOWN)
    return outcomes


def _store(tx: Transaction, target: _Target, batches: Sequence[Batch]) -> None:
    lengths = {len(b.payloads) // b.n for b in batches}
    if len(lengths) != 1:
        raise ValueError("expected payloads of one length for one question")
    ids = b"".join(b.ids for b in batches)
    tx.change(
        "INSERT INTO chunks (seq, question, n, ids, payloads) VALUES (?, ?, ?, ?, ?)",
        target.chunk,
        target.question,
        sum(b.n for b in batches),
        ids,
        _cipher(tx, target.wave).seal(b"".join(b.payloads for b in batches), ids),
    )


def _cipher(tx: Transaction, wave: int) -> Cipher:
    ((name,),) = tx.rows("SELECT key_name FROM waves WHERE key = ?", wave)
    return tx.keys.cipher(name)


def _select(batch: Batch, outcomes: Sequence[int]) -> Batch:
    """The new ones of a batch."""
    at = [i for i, outcome in enumerate(outcomes) if outcome == Outcome.NEW]
    if len(at) == batch.n:
        return batch
    size = len(batch.payloads) // batch.n
    ids, payloads = (
        b"".join(part[i * length : (i + 1) * length] for i in at)
        for part, length in ((batch.ids, ID_LENGTH), (batch.payloads, size))
    )
    return Batch(batch.campaign, batch.wave, batch.group, ids, payloads)


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
    ((n, ids, sealed),) = tx.rows("SELECT n, ids, payloads FROM chunks WHERE seq = ?", chunk)
    at = position(bytes(ids), report_id)
    if at is None or not n:
        return Withdrawal.GONE
    cipher = _cipher(tx, int(wave))
    left, payloads = (
        part[: at * size] + part[(at + 1) * size :]
        for part in (bytes(ids), cipher.unseal(bytes(sealed), bytes(ids)))
        for size in (len(part) // n,)
    )
    sql = "UPDATE chunks SET n = ?, ids = ?, payloads = ? WHERE seq = ?"
    tx.change(sql, n - 1, left, cipher.seal(payloads, left), chunk)
    tx.withdraw(campaign, report_id)
    return Withdrawal.REMOVED
