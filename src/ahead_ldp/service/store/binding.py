"""The digest that binds a frozen group to its reports: same reports, same digest, in whatever order they came."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from ahead_ldp.service.store.rows import HASH_LENGTH, ID_LENGTH, Chunk

_BUCKETS = 256  # by the first byte of the id
_ENTRY = ID_LENGTH + HASH_LENGTH


def reports_digest(chunks: Iterable[Chunk]) -> str:
    """SHA-256 over the digests of 256 buckets; a bucket's is SHA-256 over its (id, hash) entries, sorted.

    Buckets go by the first byte of the id, so machines that hold different ids compute their buckets alone. An XOR of
    hashes would merge more easily, and could be forged.
    """
    parts = [_entries(chunk) for chunk in chunks if chunk.n]
    entries = np.concatenate(parts) if parts else np.empty((0, _ENTRY), np.uint8)
    keys = np.ascontiguousarray(entries).view(f"S{_ENTRY}").ravel()  # compared as bytes: all have one length
    entries = entries[np.argsort(keys, kind="stable")]
    ends = np.searchsorted(entries[:, 0], np.arange(_BUCKETS + 1))
    whole = hashlib.sha256()
    for low, high in pairwise(ends):
        whole.update(hashlib.sha256(entries[low:high].tobytes()).digest())
    return whole.hexdigest()


def _entries(chunk: Chunk) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:  # (n, 48)
    ids = np.frombuffer(chunk.ids, np.uint8).reshape(chunk.n, ID_LENGTH)
    hashes = np.frombuffer(chunk.hashes, np.uint8).reshape(chunk.n, HASH_LENGTH)
    return np.hstack([ids, hashes])
