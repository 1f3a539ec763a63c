"""Optimised local hashing: randomised response on a random hash of the value (WBLJ17)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ahead_ldp.device.canonical import integer
from ahead_ldp.device.epsilon import exp_bounds
from ahead_ldp.device.laws.base import TwoLevelLaw, check_integer, integer_length
from ahead_ldp.device.words import Words, below

PRIME = 2**31 - 1
_COEFFICIENT = 4  # bytes


@dataclass(frozen=True, slots=True)
class OLHLaw(TwoLevelLaw):
    """GRR on ``g`` hash values, the hash drawn by the device and sent along.

    The hash family is h(x) = floor(g * ((a x**2 + b x + c) mod P) / P) with P = 2**31 - 1 and a, b, c uniform
    below P: the polynomial is uniform and independent on any three codes, so the covariance of any two
    estimates is known exactly.

    Words: ``below(P)`` for a, then b, then c on 32-bit words; then those of GRR on g. Payload: a, b, c as four
    bytes each, then the reported hash value, all big-endian.
    """

    name: ClassVar[str] = "olh"
    g: int

    def check_parameters(self) -> None:
        """Refuse fewer than two hash values, and too many."""
        integer(self.g, "g", 2, 2**16)

    @classmethod
    def best_parameters(cls, epsilon: Fraction, cells: int) -> tuple[int, ...]:
        """g = exp(epsilon) + 1, rounded, at most 65536."""
        return (min(2**16, round(exp_bounds(epsilon)[0] + 1)),)

    @property
    def sides(self) -> tuple[int, int]:
        """Those of GRR on g, whatever the hash."""
        return 1, self.g - 1

    @property
    def payload_length(self) -> int:
        """Three coefficients and the hash value."""
        return 3 * _COEFFICIENT + integer_length(self.g - 1)

    def hash(self, a: int, b: int, c: int, code: int) -> int:
        """The hash value of a code under the polynomial (a, b, c)."""
        return self.g * (((a * code + b) * code + c) % PRIME) // PRIME

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        a, b, c = (below(PRIME, words, 32) for _ in range(3))
        y = self.respond(self.hash(a, b, c, code), self.g, words)
        return b"".join(x.to_bytes(_COEFFICIENT, "big") for x in (a, b, c)) + self.pack(y)

    def check_payload(self, payload: bytes) -> None:
        """Coefficients below P and a hash value below g."""
        self.check_length(payload)
        for i in range(3):
            check_integer(payload[_COEFFICIENT * i : _COEFFICIENT * (i + 1)], PRIME)
        check_integer(payload[3 * _COEFFICIENT :], self.g)
