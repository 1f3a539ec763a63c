"""The digest that binds a frozen group to the ids it counted: same ids, same digest, in whatever order they came.

It covers ids alone. A digest over payloads would let whoever knows all other reports of a group confirm the last.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack

import numpy as np

from ahead_ldp.schema.arrays import Bytes, Ints
from ahead_ldp.service.store.rows import ID_LENGTH

_BUCKETS = 256  # by the first byte of the id
_IN_MEMORY = 2**22  # ids, 64 MiB; more are sorted in runs of so many, which go to a file without a name


def reports_digest(ids: Iterable[bytes]) -> str:
    """SHA-256 over the digests of 256 buckets; a bucket's is SHA-256 over its ids, sorted. Ids come joined, in parts.

    Buckets go by the first byte of the id, so machines that hold different ids compute their buckets alone. An XOR of
    ids would merge more easily, and could be forged.
    """
    with ExitStack() as stack:
        parts, waiting, runs = list[bytes](), 0, list[tuple[Bytes, Ints]]()
        for part in ids:
            parts.append(part)
            waiting += len(part) // ID_LENGTH
            if waiting >= _IN_MEMORY:
                entries, ends = _run(parts)
                file = stack.enter_context(tempfile.TemporaryFile())
                file.write(entries.data)
                file.flush()
                runs.append((np.asarray(np.memmap(file, np.uint8, "r")).reshape(-1, ID_LENGTH), ends))
                parts, waiting = [], 0
        runs.append(_run(parts))
        whole = hashlib.sha256()
        for bucket in range(_BUCKETS):
            found = [entries[ends[bucket] : ends[bucket + 1]] for entries, ends in runs]
            bound = found[0] if len(found) == 1 else _sorted(np.concatenate(found))
            whole.update(hashlib.sha256(bound.tobytes()).digest())
        return whole.hexdigest()


def _run(parts: Iterable[bytes]) -> tuple[Bytes, Ints]:
    """Ids in order, and where each bucket begins and ends among them."""
    entries = _sorted(np.frombuffer(b"".join(parts), np.uint8).reshape(-1, ID_LENGTH))
    return entries, np.searchsorted(entries[:, 0], np.arange(_BUCKETS + 1))


def _sorted(entries: Bytes) -> Bytes:
    keys = entries.view(f"S{ID_LENGTH}").ravel()  # compared as bytes: all have one length
    return entries[np.argsort(keys, kind="stable")]
