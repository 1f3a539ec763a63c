"""Tokens by the thousand: the issuer's signatures checked with a compiled library, the key loaded once.

What ``device.tokens.check_signature`` accepts and what this accepts is the same; a test holds them together. That a
token is spent once needs no list of its own: the report's id follows from the nonce, and an id is counted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any


def verify(key: tuple[int, int], messages: Sequence[bytes], signatures: Sequence[bytes]) -> list[bool]:
    """For every message (``Campaign.token_message``) whether its signature is the one of the issuer's key (n, e)."""
    if len(messages) != len(signatures):
        raise ValueError(f"expected as many signatures as messages, got {len(signatures)} for {len(messages)}")
    public, padding, digest, invalid = _prepared(key)
    check, mask = public.verify, []
    for message, signature in zip(messages, signatures, strict=True):
        try:
            check(signature, message, padding, digest)
        except invalid:
            mask.append(False)
        else:
            mask.append(True)
    return mask


@lru_cache(maxsize=64)
def _prepared(key: tuple[int, int]) -> tuple[Any, Any, Any, type[Exception]]:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    n, e = key
    public = rsa.RSAPublicNumbers(e, n).public_key()
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=0)
    return public, pss, hashes.SHA384(), InvalidSignature
