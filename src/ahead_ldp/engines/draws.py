"""Randomness of a table's rows: a function of the row's key under a secret of the holder, so a retry gives the same.

A row's stream is the ChaCha20 keystream under BLAKE2b(job key; what for; context; row key). Nobody without the job key
can tell it from independent uniform bytes. Devices have no such thing: they draw from the operating system.

The device's laws run over the streams of many rows: the same words in the same order, hence the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np

from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.device.laws import Law, SSLaw, UnaryLaw
from ahead_ldp.device.words import below
from ahead_ldp.schema.arrays import Bytes, Ints

KEY_LENGTH = 32
_START = bytes(16)  # counter and nonce: every stream has a key of its own
_BLOCK = 64
_WORDS = 1 << 20  # drawn at a time


def row_secret(job_key: bytes, purpose: bytes, context: str, row_key: bytes) -> bytes:
    """The key of one row's stream for one purpose in one context (a digest)."""
    hashed = hashlib.blake2b(bytes.fromhex(context), key=job_key, digest_size=KEY_LENGTH, person=purpose)
    hashed.update(row_key)
    return hashed.digest()


def keystream(secret: bytes, length: int) -> bytes:
    """The first bytes of a row's stream."""
    return bytes(_cipher(secret).update(bytes(length)))


def _cipher(secret: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    return Cipher(algorithms.ChaCha20(secret, _START), mode=None).encryptor()


class RowWords:
    """A row's stream as words, big-endian like the device's own; it does not end."""

    def __init__(self, secret: bytes) -> None:
        self._stream, self._bytes, self._at = _cipher(secret), b"", 0

    def take(self, bits: int) -> int:
        """The next word of 32 or 64 bits."""
        return int.from_bytes(self.take_bytes(bits // 8), "big")

    def take_bytes(self, length: int) -> bytes:
        """The next bytes."""
        if self._at + length > len(self._bytes):
            self._bytes = self._bytes[self._at :] + self._stream.update(bytes(max(_BLOCK, length)))
            self._at = 0
        self._at += length
        return self._bytes[self._at - length : self._at]


def place_row(job_key: bytes, campaign: str, row_key: bytes, shares: int) -> tuple[int, bytes]:
    """A uniform number below ``shares``, which decides the row's group, and its report id."""
    words = RowWords(row_secret(job_key, b"place", campaign, row_key))
    return below(shares, words, 64), words.take_bytes(ID_LENGTH)


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
    chosen = list(dict.fromkeys((drawn % np.uint64(others)).tolist()))[: law.w - own]
    if len(chosen) < law.w - own:
        return _one(law, code, secret)
    bits = np.zeros(law.cells, bool)
    cells = np.array(chosen, np.int64)
    bits[cells + (cells >= code)] = True
    bits[code] = own
    return np.packbits(bits, bitorder="little").tobytes()
