"""The device's laws over the streams of many rows: the same words in the same order, hence the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from ahead_ldp.device.laws import Law, SSLaw, UnaryLaw
from ahead_ldp.engines.keyed import RowWords, keystream
from ahead_ldp.schema.arrays import Bytes, Ints

_WORDS = 1 << 20  # drawn at a time


def draw_reports(law: Law, codes: Ints, secrets: Sequence[bytes]) -> Bytes:  # (n,) -> (n, payload length)
    """What ``law.draw`` makes of each code and the words of its row's stream."""
    if isinstance(law, UnaryLaw):
        step = max(1, _WORDS // law.cells)
        blocks = [_unary(law, codes[i : i + step], secrets[i : i + step]) for i in range(0, len(codes), step)]
        return np.concatenate([np.empty((0, law.payload_length), np.uint8), *blocks])
    draw = _subset if isinstance(law, SSLaw) else _one
    payloads = b"".join(draw(law, code, secret) for code, secret in zip(codes.tolist(), secrets, strict=True))
    return np.frombuffer(payloads, np.uint8).reshape(-1, law.payload_length)


def _one(law: Law, code: int, secret: bytes) -> bytes:
    return law.draw(code, RowWords(secret))


def _unary(law: UnaryLaw, codes: Ints, secrets: Sequence[bytes]) -> Bytes:
    data = b"".join(keystream(secret, law.cells * law.bits // 8) for secret in secrets)
    words = np.frombuffer(data, f">u{law.bits // 8}").reshape(len(codes), law.cells).astype(np.uint64)
    rows = np.arange(len(codes))
    bits = words < np.uint64(law.other)
    bits[rows, codes] = words[rows, codes] < np.uint64(law.own)
    return np.packbits(bits, axis=1, bitorder="little")


def _subset(law: Law, code: int, secret: bytes) -> bytes:
    """The set is the first different cells of the stream: drawn at once, and one by one if they do not suffice."""
    assert isinstance(law, SSLaw)
    others = law.cells - 1
    limit = (1 << law.bits) // others * others if others > 1 else 0
    likely = -others * log(max(1 - law.w / law.cells, 1 / law.cells))  # draws until w of all cells have come up
    data = keystream(secret, (1 + int(1.2 * likely) + 16) * law.bits // 8)
    words = np.frombuffer(data, f">u{law.bits // 8}").astype(np.uint64)
    own = int(words[0]) < law.keep
    if not limit:
        return _one(law, code, secret)
    drawn = words[1:] if limit == 1 << law.bits else words[1:][words[1:] < np.uint64(limit)]
    found = list(dict.fromkeys((drawn % np.uint64(others)).tolist()))[: law.w - own]
    if len(found) < law.w - own:
        return _one(law, code, secret)
    bits = np.zeros(law.cells, bool)
    cells = np.array(found, np.int64)
    bits[cells + (cells >= code)] = True
    bits[code] = own
    return np.packbits(bits, bitorder="little").tobytes()
