"""Reports that came twice: equal bytes count once, different bytes under one id count none.

Exact with little memory: ids, fingerprints of the payloads and places go into buckets on disk, which are looked at one
by one. What comes of it is one bit per report, and only for files that have something to leave out.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.schema.arrays import Bools, Bytes, Ints

Words = NDArray[np.uint64]
_PER_BUCKET = 200_000  # rows aimed at
_MOST_BUCKETS = 512
_AT_ONCE = 300_000  # rows of a bucket read at a time
_ROWS = 8192
_FIELDS = 5  # id (2 words), fingerprint (2), place
_MASK = np.uint64(0xFFFFFFFF)
_NONE = np.empty(0, np.uint8)


class Fingerprints:
    """Hashes of bytes under a key that is drawn afresh: two different rows share one with probability 2**-128.

    Multilinear hashing (Lemire, Kaser 2014): the upper half of a sum of 32-bit words times random 64-bit keys is
    strongly universal. Nobody who writes reports knows the key.
    """

    def __init__(self) -> None:
        self._keys: dict[int, Words] = {}
        self._lock = threading.Lock()

    def of(self, rows: Bytes, hashes: int = 4) -> Words:  # (n, width) -> (n, hashes)
        """The upper halves, one column for each hash."""
        words = -(-rows.shape[1] // 4)
        keys = self._key(rows.shape[1])[:, :hashes]
        out = np.empty((len(rows), hashes), np.uint64)
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            padded = np.zeros((len(some), 4 * words), np.uint8)
            padded[:, : rows.shape[1]] = some
            out[start : start + _ROWS] = padded.view(np.uint32).astype(np.uint64) @ keys[1:] + keys[0]
        return out >> np.uint64(32)

    def _key(self, width: int) -> Words:
        with self._lock:
            if width not in self._keys:  # of its own for every length, so that lengths are apart too
                drawn = np.frombuffer(secrets.token_bytes(8 * 4 * (-(-width // 4) + 1)), np.uint64)
                self._keys[width] = drawn.reshape(-1, 4)
            return self._keys[width]


class Spill:
    """Ids and fingerprints of all reports, in buckets on disk. ``add`` may be called from several threads."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self.buckets = int(min(_MOST_BUCKETS, max(1, -(-rows // _PER_BUCKET))))
        self._prints = Fingerprints()
        self._locks = [threading.Lock() for _ in range(self.buckets)]

    def add(self, file: int, start: int, ids: Bytes, payloads: Bytes, question: str) -> None:
        """Reports at ``start`` and after in the file of this number. Equal are payloads to one question."""
        prints = self._prints.of(payloads)
        apart = np.frombuffer(bytes.fromhex(question)[:16], np.uint64)
        record = np.empty((len(ids), _FIELDS), np.uint64)
        record[:, :2] = np.ascontiguousarray(ids).view(np.uint64)
        record[:, 2] = (prints[:, 0] << np.uint64(32) | prints[:, 1]) ^ apart[0]
        record[:, 3] = (prints[:, 2] << np.uint64(32) | prints[:, 3]) ^ apart[1]
        record[:, 4] = (np.uint64(file) << np.uint64(32)) + np.arange(start, start + len(ids), dtype=np.uint64)
        bucket = (self._prints.of(ids, 1)[:, 0] % np.uint64(self.buckets)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=self.buckets))
        record = record[order]
        for i, (a, b) in enumerate(zip(np.concatenate([[0], ends[:-1]]), ends, strict=True)):
            if a < b:
                with self._locks[i], (self.folder / f"{i}.bucket").open("ab") as out:
                    record[a:b].tofile(out)

    def resolve(self) -> Iterator[tuple[Words, int, int]]:
        """For each bucket the places to leave out, and how many of them are copies and how many in conflict."""
        for i in range(self.buckets):
            path = self.folder / f"{i}.bucket"
            if path.exists():
                yield _resolve(path)
                path.unlink()


def _resolve(path: Path) -> tuple[Words, int, int]:
    # Of every id: its words, the fingerprint and place of the copy kept so far, copies left out, conflict or not.
    known = np.empty((0, _FIELDS + 2), np.uint64)
    dropped: list[Words] = []
    with path.open("rb") as file:
        while (part := np.fromfile(file, np.uint64, _AT_ONCE * _FIELDS)).size:
            part = part.reshape(-1, _FIELDS)
            fresh = np.hstack([part, np.zeros((len(part), 2), np.uint64)])
            known, left = _fold(np.concatenate([known, fresh]))
            dropped.append(left)
    conflict = known[:, 6] > 0
    dropped.append(known[conflict, 4])
    copies = int(known[~conflict, 5].sum())
    return np.concatenate(dropped), copies, int(known[conflict, 5].sum()) + int(conflict.sum())


def _fold(records: Words) -> tuple[Words, Words]:
    """One record for each id, the one of the first place; and the places of the others."""
    order = np.argsort(records[:, 0] ^ records[:, 1], kind="stable")
    mixed = (records[:, 0] ^ records[:, 1])[order]
    same = np.concatenate([[False], mixed[1:] == mixed[:-1]])
    candidate = same | np.concatenate([same[1:], [False]])  # nearly nothing, unless there are copies
    alone, some = records[order[~candidate]], records[order[candidate]]
    if not len(some):
        return alone, np.empty(0, np.uint64)
    some = some[np.lexsort((some[:, 4], some[:, 1], some[:, 0]))]
    first = np.concatenate([[True], (some[1:, :2] != some[:-1, :2]).any(axis=1)])
    run = np.cumsum(first) - 1
    kept = some[first].copy()
    differs = (some[:, 2:4] != kept[run, 2:4]).any(axis=1) | (some[:, 6] > 0)
    kept[:, 6] = np.bincount(run, weights=differs) > 0
    kept[:, 5] = np.bincount(run).astype(np.uint64) - np.uint64(1)
    np.add.at(kept[:, 5], run, some[:, 5])
    return np.concatenate([alone, kept]), some[~first, 4]


class LeftOut:
    """Which rows of which file do not count: one bit each, for the files that have such rows."""

    def __init__(self, bits: dict[int, Bytes] | None = None) -> None:
        self._bits = {} if bits is None else bits

    @property
    def files(self) -> list[int]:
        """The files that have rows to leave out."""
        return sorted(self._bits)

    def mark(self, places: Words) -> None:
        """Leave out these (file, row) places."""
        files = (places >> np.uint64(32)).astype(np.int64)
        for file in np.unique(files).tolist():
            bits = packed_rows((places[files == file] & _MASK).astype(np.int64))
            known = self._bits.get(file, bits[:0])
            both = np.zeros(max(bits.size, known.size), np.uint8)
            both[: known.size] |= known
            both[: bits.size] |= bits
            self._bits[file] = both

    def keep(self, file: int, start: int, count: int) -> Bools | None:
        """Which of ``count`` rows from ``start`` on count; ``None`` for all."""
        return ~self.marked(file, np.arange(start, start + count)) if file in self._bits else None

    def marked(self, file: int, rows: Ints) -> Bools:
        """Which of these rows are to be left out."""
        bits = self._bits.get(file, _NONE)
        inside = rows < 8 * bits.size
        at = np.where(inside, rows, 0)
        return inside & (bits[at // 8] >> (at % 8).astype(np.uint8) & 1 == 1) if bits.size else inside


def packed_rows(rows: Ints) -> Bytes:
    """A bit for every row up to the last of these, set for these, least significant first."""
    bits = np.zeros(int(rows.max(initial=-1)) + 1, bool)
    bits[rows] = True
    return np.packbits(bits, bitorder="little")
