"""Which ids are in a SQLite store: an index in memory over the chunks, 16 bytes an id but for the latest 2,048.

Ids are random, so each insertion into a large tree on disk would dirty a page of its own, and a commit of 2,000 reports
would write 2,000 pages. The chunks hold the same ids, one after the other: they are the truth, and this index says
which chunk to look into. It is read back from committed chunks only, so it knows what the disk knows, whoever wrote it.

An id is indexed by a keyed 64-bit sum of its halves: nobody outside can make many ids that fall together.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.schema.arrays import Ints
from ahead_ldp.service.store.rows import ID_LENGTH

_RECENT = 2_048  # ids that are not sorted in yet
_SIZES = (65_536,)  # ids in the upper levels, which are copied when the recent ones are sorted in
_Keys = NDArray[np.uint64]
_Chunks = Ints
_SECRET = np.array([secrets.randbits(64) | 1, secrets.randbits(64) | 1], np.uint64)


class KnownIds:
    """The index of every campaign that was asked about. Used by one writer, inside its transactions."""

    def __init__(self) -> None:
        """Know nothing; what is needed is read when it is."""
        self._last = 0  # chunks up to here are in
        self._last_withdrawn = 0
        self._campaigns: dict[int, _Campaign] = {}

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Take in what was committed since the last time, by anybody. Called before the transaction writes."""
        sql = "SELECT seq, campaign, id FROM withdrawn WHERE seq > ? ORDER BY seq"
        for seq, campaign, report_id in connection.execute(sql, (self._last_withdrawn,)):
            self._campaigns.setdefault(campaign, _Campaign()).withdrawn.add(report_id)
            self._last_withdrawn = seq
        for campaign, seq, ids in connection.execute(f"{_CHUNKS} WHERE k.seq > ? ORDER BY k.seq", (self._last,)):
            if campaign in self._campaigns and self._campaigns[campaign].is_loaded:
                self._campaigns[campaign].add(ids, seq)
            self._last = seq

    def find(self, connection: sqlite3.Connection, campaign: int, ids: Sequence[bytes]) -> dict[bytes, int]:
        """The chunk of those that are in; 0 if withdrawn."""
        index = self._campaigns.setdefault(campaign, _Campaign())
        if not index.is_loaded:
            where = "WHERE w.campaign = ? AND k.seq <= ? ORDER BY k.seq"
            index.load(connection.execute(f"{_CHUNKS} {where}", (campaign, self._last)))
        chunks: dict[bytes, int] = {}
        for chunk, wanted in index.candidates(ids).items():
            ((held,),) = connection.execute("SELECT ids FROM chunks WHERE seq = ?", (chunk,))
            chunks.update((report_id, chunk) for report_id in _held(held, wanted))
        if not index.withdrawn.isdisjoint(ids):
            chunks.update((i, 0) for i in ids if i in index.withdrawn)
        return chunks


class _Campaign:
    """Keys and chunks in sorted levels, each much larger than the one above it, and as they are the ids of late."""

    def __init__(self) -> None:
        self.is_loaded = False
        self.withdrawn: set[bytes] = set()
        self._recent: dict[bytes, int] = {}
        self._levels = [_NOTHING] * (len(_SIZES) + 1)

    def load(self, chunks: sqlite3.Cursor) -> None:
        """Take in all chunks of the campaign at once."""
        keys, numbers = [_NOTHING[0]], [_NOTHING[1]]
        for _, seq, ids in chunks:
            keys.append(_keys(ids))
            numbers.append(np.full(keys[-1].size, seq, np.int64))
        self._levels[-1] = _sorted(np.concatenate(keys), np.concatenate(numbers))
        self.is_loaded = True

    def add(self, ids: bytes, chunk: int) -> None:
        """Take in one more chunk."""
        new = dict.fromkeys(cut(ids, ID_LENGTH), chunk)
        if not self._recent.keys().isdisjoint(new):  # levels can have an id twice
            self._sort_in()
        self._recent |= new
        if len(self._recent) > _RECENT:
            self._sort_in()

    def _sort_in(self) -> None:
        levels = self._levels
        chunks = np.fromiter(self._recent.values(), np.int64, len(self._recent))
        levels[0] = _merged(levels[0], _sorted(_keys(b"".join(self._recent)), chunks))
        self._recent = {}
        for i, most in enumerate(_SIZES):
            if levels[i][0].size > most:
                levels[i + 1], levels[i] = _merged(levels[i + 1], levels[i]), _NOTHING

    def candidates(self, ids: Sequence[bytes]) -> dict[int, list[bytes]]:
        """By chunk, the ids whose keys are known there: almost always they are there themselves."""
        by_chunk: dict[int, list[bytes]] = {}
        if not self._recent.keys().isdisjoint(ids):
            for report_id in ids:
                if report_id in self._recent:
                    by_chunk.setdefault(self._recent[report_id], []).append(report_id)
        keys = _keys(b"".join(ids))
        for known, chunks in self._levels:
            if not known.size:
                continue
            low = np.searchsorted(known, keys)
            for i in np.flatnonzero(np.take(known, low, mode="clip") == keys).tolist():
                for chunk in chunks[low[i] : np.searchsorted(known, keys[i], "right")].tolist():
                    by_chunk.setdefault(chunk, []).append(ids[i])
        return by_chunk


_CHUNKS = (
    "SELECT w.campaign, k.seq, k.ids FROM chunks k JOIN questions q ON q.key = k.question"
    " JOIN waves w ON w.key = q.wave"
)
_Level = tuple[_Keys, _Chunks]
_NOTHING: _Level = (np.empty(0, np.uint64), np.empty(0, np.int64))


def cut(joined: bytes, length: int) -> list[bytes]:
    """Values of one length that stand one after the other, each by itself."""
    return [joined[i : i + length] for i in range(0, len(joined), length)]


def position(ids: bytes, report_id: bytes) -> int | None:
    """Where an id stands among ids; bytes that straddle two of them are no match."""
    at = ids.find(report_id)
    while at % ID_LENGTH and at >= 0:
        at = ids.find(report_id, at + 1)
    return None if at < 0 else at // ID_LENGTH


def _held(ids: bytes, wanted: Sequence[bytes]) -> Iterable[bytes]:
    """Those of the wanted ids that are among ids."""
    if len(wanted) < 8:  # a search through a few kilobytes is faster than a set of them
        return [report_id for report_id in wanted if position(ids, report_id) is not None]
    return set(cut(ids, ID_LENGTH)).intersection(wanted)


def _keys(ids: bytes) -> _Keys:
    halves = np.frombuffer(ids, np.uint64).reshape(-1, 2)
    return halves[:, 0] * _SECRET[0] + halves[:, 1] * _SECRET[1]  # modulo 2^64


def _sorted(keys: _Keys, chunks: _Chunks) -> _Level:
    order = np.argsort(keys)
    return keys[order], chunks[order]


def _merged(a: _Level, b: _Level) -> _Level:
    at = np.searchsorted(a[0], b[0])
    return np.insert(a[0], at, b[0]), np.insert(a[1], at, b[1])
