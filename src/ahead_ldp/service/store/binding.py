"""The digest that binds a frozen group to the ids it counted: same ids, same digest, in whatever order they came.

It covers ids alone. A digest over payloads would let whoever knows all other reports of a group confirm the last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from ahead_ldp.service.store.rows import ID_LENGTH

_BUCKETS = 256  # by the first byte of the id


def reports_digest(ids: Iterable[bytes]) -> str:
    """SHA-256 over the digests of 256 buckets; a bucket's is SHA-256 over its ids, sorted. Ids come joined, in parts.

    Buckets go by the first byte of the id, so machines that hold different ids compute their buckets alone. An XOR of
    ids would merge more easily, and could be forged.
    """
    entries = np.frombuffer(b"".join(ids), np.uint8).reshape(-1, ID_LENGTH)
    keys = entries.view(f"S{ID_LENGTH}").ravel()  # compared as bytes: all have one length
    entries = entries[np.argsort(keys, kind="stable")]
    ends = np.searchsorted(entries[:, 0], np.arange(_BUCKETS + 1))
    whole = hashlib.sha256()
    for low, high in pairwise(ends):
        whole.update(hashlib.sha256(entries[low:high].tobytes()).digest())
    return whole.hexdigest()
