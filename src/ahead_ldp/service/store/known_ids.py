"""Which ids are in a SQLite store: an index over the chunks, 16 bytes an id but for the latest 2,048.

Ids are random, so each insertion into a large tree on disk would dirty a page of its own, and a commit of 2,000 reports
would write 2,000 pages. The chunks hold the same ids, one after the other: they are the truth, and this index says
which chunk to look into. It is read back from committed chunks only, so it knows what the disk knows, whoever wrote it.

An id is indexed by a keyed 64-bit sum of its halves: nobody outside can make many ids that fall together.

The index is in levels, each sixteen times as large as the one above it. Those of more than a million ids are files
without a name beside the store, so memory does not grow with the reports. They end with the process.
"""

from __future__ import annotations

import secrets
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.schema.arrays import Ints
from ahead_ldp.service.store.rows import ID_LENGTH

_RECENT = 2_048  # ids that are not sorted in yet
_SIZES = (2**16, 2**20, 2**24)  # ids in the upper levels; what is larger goes into the next one
_IN_MEMORY = 2**21  # ids of a level in memory
_BLOCK = 2**18  # ids that are merged at a time, from files
_Keys = NDArray[np.uint64]
_Chunks = Ints
_SECRET = np.array([secrets.randbits(64) | 1, secrets.randbits(64) | 1], np.uint64)


class KnownIds:
    """The index of every campaign that was asked about. Used by one writer, inside its transactions."""

    def __init__(self, folder: Path | None = None) -> None:
        """Know nothing; what is needed is read when it is. Large levels are files in the folder, or a temporary one."""
        self._folder = folder
        self._last = 0  # chunks up to here are in
        self._last_withdrawn = 0
        self._campaigns: dict[int, _Campaign] = {}

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Take in what was committed since the last time, by anybody. Called before the transaction writes."""
        sql = "SELECT seq, campaign, id FROM withdrawn WHERE seq > ? ORDER BY seq"
        for seq, campaign, report_id in connection.execute(sql, (self._last_withdrawn,)):
            self._of(campaign).withdrawn.add(report_id)
            self._last_withdrawn = seq
        for campaign, seq, ids in connection.execute(f"{_CHUNKS} WHERE k.seq > ? ORDER BY k.seq", (self._last,)):
            if campaign in self._campaigns and self._campaigns[campaign].is_loaded:
                self._campaigns[campaign].add(ids, seq)
            self._last = seq

    def find(self, connection: sqlite3.Connection, campaign: int, ids: Sequence[bytes]) -> dict[bytes, int]:
        """The chunk of those that are in; 0 if withdrawn."""
        index = self._of(campaign)
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

    def _of(self, campaign: int) -> _Campaign:
        return self._campaigns.setdefault(campaign, _Campaign(self._folder))


class _Campaign:
    """Keys and chunks in sorted levels, each much larger than the one above it, and as they are the ids of late."""

    def __init__(self, folder: Path | None = None) -> None:
        self.is_loaded = False
        self._folder = folder
        self.withdrawn: set[bytes] = set()
        self._recent: dict[bytes, int] = {}
        self._levels = [_NOTHING] * (len(_SIZES) + 1)

    def load(self, chunks: sqlite3.Cursor) -> None:
        """Take in all chunks of the campaign, a million ids at a time."""
        keys, numbers, waiting = [_NOTHING[0]], [_NOTHING[1]], 0
        for _, seq, ids in chunks:
            keys.append(_keys(ids))
            numbers.append(np.full(keys[-1].size, seq, np.int64))
            waiting += keys[-1].size
            if waiting >= _IN_MEMORY // 2:
                self._take(_sorted(np.concatenate(keys), np.concatenate(numbers)))
                keys, numbers, waiting = [_NOTHING[0]], [_NOTHING[1]], 0
        self._take(_sorted(np.concatenate(keys), np.concatenate(numbers)))
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
        chunks = np.fromiter(self._recent.values(), np.int64, len(self._recent))
        self._take(_sorted(_keys(b"".join(self._recent)), chunks))
        self._recent = {}

    def _take(self, new: _Level) -> None:
        levels = self._levels
        levels[0] = _merged(levels[0], new, self._folder)
        for i, most in enumerate(_SIZES):
            if levels[i][0].size > most:
                levels[i + 1], levels[i] = _merged(levels[i + 1], levels[i], self._folder), _NOTHING

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


def _merged(a: _Level, b: _Level, folder: Path | None) -> _Level:
    if a[0].size + b[0].size > _IN_MEMORY:
        return _in_files(_merged_blocks(a, b), folder)
    return _merged_here(a, b)


def _merged_here(a: _Level, b: _Level) -> _Level:
    at = np.searchsorted(a[0], b[0])
    return np.insert(a[0], at, b[0]), np.insert(a[1], at, b[1])


def _merged_blocks(a: _Level, b: _Level) -> Iterator[_Level]:
    """Both, a block after the other. Keys are spread evenly, so that a block of one meets few of the other."""
    done = 0
    for start in range(0, a[0].size, _BLOCK):
        some = slice(start, start + _BLOCK)
        end = int(np.searchsorted(b[0], a[0][some][-1], "right"))
        yield _merged_here((a[0][some], a[1][some]), (b[0][done:end], b[1][done:end]))
        done = end
    for start in range(done, b[0].size, _BLOCK):
        yield b[0][start : start + _BLOCK], b[1][start : start + _BLOCK]


def _in_files(blocks: Iterable[_Level], folder: Path | None) -> _Level:
    """A level in two files without a name, written as files: a full disk is then an error like any other."""
    with tempfile.TemporaryFile(dir=folder) as keys, tempfile.TemporaryFile(dir=folder) as chunks:
        for block in blocks:
            for file, part in zip((keys, chunks), block, strict=True):
                file.write(np.ascontiguousarray(part).data)
        keys.flush()
        chunks.flush()
        return np.asarray(np.memmap(keys, np.uint64, "r")), np.asarray(np.memmap(chunks, np.int64, "r"))
