"""The issuer's private key: one RSA signature on an encoded or a blinded message."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahead_ldp.device.campaign import PUBLIC_EXPONENT
from ahead_ldp.device.canonical import Record, expect
from ahead_ldp.device.tokens import NONCE_LENGTH, TOKEN_VERSION, PublicKey, encode_pss

BITS = (2048, 3072, 4096)


class SigningFault(RuntimeError):
    """A fault in the machine's arithmetic, or a damaged key. Whoever saw the wrong signature could factor the key."""


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """RSA with the Chinese remainder theorem. The input is blinded anew before every use of the secret exponent."""

    p: int
    q: int
    d: int

    @classmethod
    def generate(cls, bits: int = 2048) -> SigningKey:
        """A new key from the operating system's randomness."""
        from cryptography.hazmat.primitives.asymmetric import rsa

        expect(bits in BITS, f"bits to be one of {', '.join(map(str, BITS))}, got {bits}")
        return cls._of(rsa.generate_private_key(public_exponent=PUBLIC_EXPONENT, key_size=bits))

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """The key in a PEM file."""
        from cryptography.hazmat.primitives.asymmetric import rsa
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(path.read_bytes(), password=None)
        ours = isinstance(key, rsa.RSAPrivateKey) and key.public_key().public_numbers().e == PUBLIC_EXPONENT
        expect(ours, f"an RSA key with exponent {PUBLIC_EXPONENT} in {str(path)!r}")
        return cls._of(key)

    @classmethod
    def _of(cls, key: Any) -> SigningKey:
        numbers = key.private_numbers()
        return cls(numbers.p, numbers.q, numbers.d)

    def save(self, path: Path) -> None:
        """Write a PEM file that its owner alone can read; an existing one is never overwritten."""
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        p, q, d = self.p, self.q, self.d
        public = rsa.RSAPublicNumbers(PUBLIC_EXPONENT, p * q)
        crt = (rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q))
        pem = (
            rsa.RSAPrivateNumbers(p, q, d, *crt, public)
            .private_key()
            .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(pem)

    @property
    def public(self) -> PublicKey:
        """What everybody may know."""
        return PublicKey(self.p * self.q, PUBLIC_EXPONENT)

    def token_record(self, tier: str) -> Record:
        """The field ``token`` of a campaign that trusts this key."""
        return {
            "tier": tier,
            "version": TOKEN_VERSION,
            "n": f"{self.public.n:0{2 * self.public.length}x}",
            "e": PUBLIC_EXPONENT,
        }

    def number(self, message: bytes, tier: str) -> int:
        """What is signed for a message: the encoding of a token's (tier ``signed``), or a blinded one as it is."""
        if tier == "signed":
            expect(len(message) == NONCE_LENGTH, f"a token's message of {NONCE_LENGTH} bytes")
            return int.from_bytes(encode_pss(message, self.public.n.bit_length() - 1), "big")
        number = int.from_bytes(message, "big")
        legal = len(message) == self.public.length and 1 < number < self.public.n - 1
        expect(legal, "a blinded message as long as the modulus and below it")
        return number

    def sign(self, number: int) -> bytes:
        """The signature, or the answer to a blinded message (RFC 9474, Sec. 4.3)."""
        p, q, n, e = self.p, self.q, self.public.n, self.public.e
        factor = secrets.randbelow(n - 2) + 2  # shares no factor with n, but for one chance in 2**1000
        hidden = number * pow(factor, e, n) % n
        a, b = pow(hidden % p, self.d % (p - 1), p), pow(hidden % q, self.d % (q - 1), q)
        signed = (b + q * ((a - b) * pow(q, -1, p) % p)) * pow(factor, -1, n) % n
        if pow(signed, e, n) != number:
            raise SigningFault("the signature is wrong and was not given out: with it the key could be computed")
        return signed.to_bytes(self.public.length, "big")
