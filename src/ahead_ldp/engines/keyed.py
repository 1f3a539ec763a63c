"""Randomness of a table's rows: a function of the row's key under a secret of the holder, so a retry gives the same.

A row's stream is the ChaCha20 keystream under BLAKE2b(job key; what for; context; row key). Nobody without the job key
can tell it from independent uniform bytes. Devices have no such thing: they draw from the operating system.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.device.words import below

KEY_LENGTH = 32
_START = bytes(16)  # counter and nonce: every stream has a key of its own
_BLOCK = 64


def row_secret(job_key: bytes, purpose: bytes, context: str, row_key: bytes) -> bytes:
    """The key of one row's stream for one purpose in one context (a digest)."""
    made = hashlib.blake2b(bytes.fromhex(context), key=job_key, digest_size=KEY_LENGTH, person=purpose)
    made.update(row_key)
    return made.digest()


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
