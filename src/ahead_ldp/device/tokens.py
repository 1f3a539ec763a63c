"""Tokens of participation: the nonce, the report's name, blind RSA signatures, and the group that follows from one.

Signatures are RSASSA-PSS with SHA-384 and a salt of length 0, blind ones as in RFC 9474
(RSABSSA-SHA384-PSSZERO-Deterministic): a nonce has exactly one signature, so nobody can grind for another group.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import gcd
from typing import NamedTuple

from ahead_ldp.device.canonical import check_digest, expect
from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.device.words import SystemWords, below

NONCE_LENGTH = 32
TOKEN_VERSION = 2  # what is signed: 1 the nonce itself, good for any campaign of the key; 2 ``token_message``
PANEL_WAVE = 0  # a panel's group is drawn once, for all waves
_HASH_LENGTH = 48
_LABEL = b"ahead-ldp token 2\n"
_WORDS = 8


class TokenRefused(ValueError):
    """A signature is not the issuer's on this message."""


class PublicKey(NamedTuple):
    """The issuer's RSA key, as the campaign's record pins it."""

    n: int
    e: int

    @property
    def length(self) -> int:
        """Bytes of a signature."""
        return (self.n.bit_length() + 7) // 8


@dataclass(frozen=True, slots=True)
class Blinded:
    """What goes to a blind issuer, and the secret with which its answer becomes a signature."""

    message: bytes
    inverse: int


def new_nonce() -> bytes:
    """Thirty-two bytes from the operating system: the receipt of a report, and what a token is made for."""
    return os.urandom(NONCE_LENGTH)


def report_id(nonce: bytes) -> bytes:
    """The report's name on the wire, from which nobody finds the nonce."""
    expect(len(nonce) == NONCE_LENGTH, f"a nonce of {NONCE_LENGTH} bytes")
    return hashlib.sha256(nonce).digest()[:ID_LENGTH]


def token_message(campaign: str, nonce: bytes, version: int = TOKEN_VERSION) -> bytes:
    """What the issuer signs for one report of one campaign, and all that it sees of the nonce.

    The nonce cannot be found from it, nor the report's id; and for another campaign it is another message.
    """
    expect(len(nonce) == NONCE_LENGTH, f"a nonce of {NONCE_LENGTH} bytes")
    if version == 1:
        return nonce
    return hashlib.sha256(_LABEL + bytes.fromhex(check_digest(campaign, "campaign")) + nonce).digest()


def encode_pss(message: bytes, bits: int) -> bytes:
    """EMSA-PSS-ENCODE (RFC 8017, Sec. 9.1.1) with SHA-384, MGF1 with SHA-384 and an empty salt."""
    length = (bits + 7) // 8
    expect(length >= _HASH_LENGTH + 2, f"a modulus of at least {8 * (_HASH_LENGTH + 2)} bits")
    tail = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest()).digest()
    plain = bytes(length - _HASH_LENGTH - 2) + b"\x01"
    masked = int.from_bytes(plain, "big") ^ int.from_bytes(_mask(tail, len(plain)), "big")
    masked &= (1 << (8 * len(plain) - (8 * length - bits))) - 1  # the leftmost bits of the block are zero
    return masked.to_bytes(len(plain), "big") + tail + b"\xbc"


def blind(key: PublicKey, message: bytes) -> Blinded:
    """The message as an issuer may see it (RFC 9474, Sec. 4.2): uniform, whatever the message is."""
    while True:
        factor = int.from_bytes(os.urandom(key.length), "big")
        if 1 < factor < key.n and gcd(factor, key.n) == 1:
            return blind_with(key, message, pow(factor, -1, key.n))


def blind_with(key: PublicKey, message: bytes, inverse: int) -> Blinded:
    """Blinding with a given inverse of the factor: for test vectors. A device calls ``blind``."""
    encoded = _encoded(key, message)
    expect(gcd(encoded, key.n) == 1, "a message that shares no factor with the modulus")
    factor = pow(inverse, -1, key.n)
    blinded = encoded * pow(factor, key.e, key.n) % key.n
    return Blinded(blinded.to_bytes(key.length, "big"), inverse)


def unblind(key: PublicKey, message: bytes, answer: bytes, inverse: int) -> bytes:
    """The signature behind a blind issuer's answer (RFC 9474, Sec. 4.4), or ``TokenRefused``."""
    if len(answer) != key.length:
        raise TokenRefused("expected an answer as long as the issuer's modulus")
    signature = (int.from_bytes(answer, "big") * inverse % key.n).to_bytes(key.length, "big")
    return check_signature(key, message, signature)


def check_signature(key: PublicKey, message: bytes, signature: bytes) -> bytes:
    """The signature itself if it is the issuer's one signature on the message, else ``TokenRefused``."""
    number = int.from_bytes(signature, "big")
    good = len(signature) == key.length and number < key.n
    if not good or pow(number, key.e, key.n) != _encoded(key, message):  # no salt: there is one encoding
        raise TokenRefused("expected the issuer's signature on this message")
    return signature


def group_number(signature: bytes, campaign: str, wave: int, total: int) -> int:
    """A number below ``total`` that neither the device nor the server can choose (docs/wire.md, "Groups")."""
    expect(total >= 1, f"the shares to add up to at least 1, got {total}")
    key = hmac.digest(bytes.fromhex(check_digest(campaign, "campaign")), signature, "sha256")  # RFC 5869, extract
    limit = (1 << 64) // total * total
    info = f"ahead-ldp group 1 {wave}".encode("ascii")
    while True:
        data = _expand(key, info, 8 * _WORDS)
        for i in range(0, len(data), 8):
            word = int.from_bytes(data[i : i + 8], "big")
            if word < limit:
                return word % total
        info += b" again"


def pick_group(groups: Sequence[tuple[str, int]], number: int) -> str:
    """The first group whose cumulated share is larger than the number, which is below the sum of the shares."""
    borders = accumulate(share for _, share in groups)
    return next(group for (group, _), border in zip(groups, borders, strict=True) if number < border)


def token_group(signature: bytes, campaign: str, wave: int, groups: Sequence[tuple[str, int]]) -> str:
    """The group of a signature among ``groups`` (id and share, in the campaign's order); wave 0 for a panel."""
    return pick_group(groups, group_number(signature, campaign, wave, sum(share for _, share in groups)))


def draw_group(groups: Sequence[tuple[str, int]]) -> str:
    """A group by share from the operating system's randomness: for campaigns without tokens."""
    return pick_group(groups, below(sum(share for _, share in groups), SystemWords(), 64))


def _encoded(key: PublicKey, message: bytes) -> int:
    return int.from_bytes(encode_pss(message, key.n.bit_length() - 1), "big")


def _mask(seed: bytes, length: int) -> bytes:  # MGF1, RFC 8017, Appendix B.2.1
    blocks = -(-length // _HASH_LENGTH)
    return b"".join(hashlib.sha384(seed + i.to_bytes(4, "big")).digest() for i in range(blocks))[:length]


def _expand(key: bytes, info: bytes, length: int) -> bytes:  # HKDF-Expand, RFC 5869
    blocks = [b""]
    for i in range(1, -(-length // 32) + 1):
        blocks.append(hmac.digest(key, blocks[-1] + info + bytes([i]), "sha256"))
    return b"".join(blocks)[:length]
