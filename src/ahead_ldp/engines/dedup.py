"""Reports that came twice: of all that have one id the first counts, whatever the others say.

The first is the first by name of file, then by row: an order that every machine knows. Payloads are not looked at.
Exact with little memory. First every id gets a hash of 64 bits. Where no hash comes twice, which is the usual case,
there are no copies. Else the ids behind such hashes are looked at again, with their places, in buckets on disk. What
comes of it is one bit per report, and only for files that have something to leave out.
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
IN_MEMORY = 2**22  # hashes: 32 MiB, and as much again while they are brought together
_PER_BUCKET = 200_000  # rows aimed at
_MOST_BUCKETS = 512
_AT_ONCE = 300_000  # rows of a bucket read at a time
_FIELDS = 3  # id (2 words), place
_MASK = np.uint64(0xFFFFFFFF)
_NONE = np.empty(0, np.uint8)


class Hashes:
    """A hash of every id, under a key that is drawn afresh. ``add`` may be called from several threads.

    They are kept in memory up to 2^22, and by their highest bits in files beyond. Whoever chooses ids that share a hash
    gets them looked at again, and no more.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self._folder = folder
        self.buckets = max(1, -(-rows // IN_MEMORY))
        self._key = np.frombuffer(secrets.token_bytes(16), np.uint64) | np.uint64(1)
        self._parts = list[Words]()
        self._lock = threading.Lock()

    def of(self, ids: Bytes) -> Words:  # (n, 16) -> (n,)
        """Those of some ids."""
        return hash_ids(ids, self._key)

    def add(self, ids: Bytes) -> None:
        """Take note of some ids."""
        hashes = self.of(ids)
        if self.buckets == 1:
            self._parts.append(hashes)
            return
        hashes.sort()
        ends = np.searchsorted(self._bucket(hashes), np.arange(1, self.buckets))
        with self._lock:
            for i, part in enumerate(np.split(hashes, ends)):
                with (self._folder / f"{i}.hashes").open("ab") as out:
                    part.tofile(out)

    def again(self) -> Words:
        """Hashes that came more than once, in order; what was noted is forgotten."""
        parts, self._parts = self._parts, []
        if self.buckets == 1:
            return repeated(np.concatenate([np.empty(0, np.uint64), *parts]))
        return np.concatenate([self._again(i) for i in range(self.buckets)])

    def _again(self, bucket: int) -> Words:
        path = self._folder / f"{bucket}.hashes"
        if not path.exists():
            return np.empty(0, np.uint64)
        found = repeated(np.fromfile(path, np.uint64))
        path.unlink()
        return found

    def _bucket(self, hashes: Words) -> Words:
        return (hashes >> np.uint64(32)) * np.uint64(self.buckets) >> np.uint64(32)


def hash_ids(ids: Bytes, key: Words) -> Words:  # (n, 16), (2,) -> (n,)
    """A number of 64 bits for every id."""
    words = np.ascontiguousarray(ids).view(np.uint64)
    return np.asarray(words[:, 0] * key[0] + words[:, 1] * key[1])


def records_of(file: int, rows: Ints, ids: Bytes) -> Words:  # (n,), (n, 16) -> (n, 3)
    """Ids with their places: the number of the file, and the row in it."""
    records = np.empty((len(ids), _FIELDS), np.uint64)
    records[:, :2] = np.ascontiguousarray(ids).view(np.uint64)
    records[:, 2] = (np.uint64(file) << np.uint64(32)) + rows.astype(np.uint64)
    return records


def repeated(hashes: Words) -> Words:
    """Those that are there more than once, in order. The array is sorted in place."""
    hashes.sort()
    return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])


class Spill:
    """Ids and places of some reports, in buckets on disk. ``add`` may be called from several threads.

    The bucket of an id is a multilinear hash (Lemire, Kaser 2014) under a key that is drawn afresh: the upper half of
    a sum of 32-bit words times random 64-bit keys. Whoever chooses ids cannot fill one bucket.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self.buckets = int(min(_MOST_BUCKETS, max(1, -(-rows // _PER_BUCKET))))
        self._key = np.frombuffer(secrets.token_bytes(8 * 5), np.uint64)
        self._locks = [threading.Lock() for _ in range(self.buckets)]

    def add(self, file: int, rows: Ints, ids: Bytes) -> None:
        """Reports in these rows of the file of this number."""
        ids = np.ascontiguousarray(ids)
        record = records_of(file, rows, ids)
        hashed = (ids.view(np.uint32).astype(np.uint64) @ self._key[1:] + self._key[0]) >> np.uint64(32)
        bucket = (hashed % np.uint64(self.buckets)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=self.buckets))
        record = record[order]
        for i, (a, b) in enumerate(zip(np.concatenate([[0], ends[:-1]]), ends, strict=True)):
            if a < b:
                with self._locks[i], (self.folder / f"{i}.bucket").open("ab") as out:
                    record[a:b].tofile(out)

    def resolve(self) -> Iterator[Words]:
        """For each bucket the places to leave out."""
        for i in range(self.buckets):
            path = self.folder / f"{i}.bucket"
            if path.exists():
                yield _resolve(path)
                path.unlink()


def _resolve(path: Path) -> Words:
    known = np.empty((0, _FIELDS), np.uint64)  # of every id: its words, and its first place so far
    dropped: list[Words] = []
    with path.open("rb") as file:
        while (part := np.fromfile(file, np.uint64, _AT_ONCE * _FIELDS)).size:
            known, left = first_places(np.concatenate([known, part.reshape(-1, _FIELDS)]))
            dropped.append(left)
    return np.concatenate(dropped)


def first_places(records: Words) -> tuple[Words, Words]:
    """One record for each id, the one of the first place; and the places of the others."""
    records = records.reshape(-1, _FIELDS)
    order = np.argsort(records[:, 0] ^ records[:, 1], kind="stable")
    mixed = (records[:, 0] ^ records[:, 1])[order]
    same = np.concatenate([[False], mixed[1:] == mixed[:-1]])
    candidate = same | np.concatenate([same[1:], [False]])  # nearly nothing, unless there are copies
    alone, some = records[order[~candidate]], records[order[candidate]]
    some = some[np.lexsort((some[:, 2], some[:, 1], some[:, 0]))]
    first = np.concatenate([np.full(min(len(some), 1), True), (some[1:, :2] != some[:-1, :2]).any(axis=1)])
    return np.concatenate([alone, some[first]]), some[~first, 2]


class LeftOut:
    """Which rows of which file do not count: one bit each, for the files that have such rows."""

    def __init__(self) -> None:
        self._bits = dict[int, Bytes]()

    @property
    def files(self) -> list[int]:
        """The files that have rows to leave out."""
        return sorted(self._bits)

    def mark(self, places: Words) -> None:
        """Leave out these (file, row) places."""
        files = (places >> np.uint64(32)).astype(np.int64)
        for file in np.unique(files).tolist():
            bits = _packed_rows((places[files == file] & _MASK).astype(np.int64))
            known = self._bits.get(file, bits[:0])
            both = np.zeros(max(bits.size, known.size), np.uint8)
            both[: known.size] |= known
            both[: bits.size] |= bits
            self._bits[file] = both

    def marked(self, file: int, rows: Ints) -> Bools:
        """Which of these rows are to be left out."""
        bits = self._bits.get(file, _NONE)
        inside = rows < 8 * bits.size
        at = np.where(inside, rows, 0)
        return inside & (bits[at // 8] >> (at % 8).astype(np.uint8) & 1 == 1) if bits.size else inside


def _packed_rows(rows: Ints) -> Bytes:
    """A bit for every row up to the last of these, set for these, least significant first."""
    bits = np.zeros(int(rows.max(initial=-1)) + 1, bool)
    bits[rows] = True
    return np.packbits(bits, bitorder="little")
