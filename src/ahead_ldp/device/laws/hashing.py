"""Optimised local hashing: randomised response on a random hash of the value (WBLJ17)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.canonical import integer
from ahead_ldp.device.epsilon import exact_epsilon, exp_bounds
from ahead_ldp.device.laws.base import (
    Law,
    check_cells,
    check_threshold,
    integer_length,
    largest_keep,
    pack_integer,
    sharpest,
    unpack_integer,
)
from ahead_ldp.device.laws.grr import GRRLaw, two_level_ratio
from ahead_ldp.device.refusals import Reason, ReportRejected
from ahead_ldp.device.words import Words, below

PRIME = 2**31 - 1
_COEFFICIENT = 4  # bytes


@dataclass(frozen=True, slots=True)
class OLHLaw(Law):
    """GRR on ``g`` hash values, the hash drawn by the device and sent along.

    The hash family is h(x) = floor(g * ((a x**2 + b x + c) mod P) / P) with P = 2**31 - 1 and a, b, c uniform
    below P: the polynomial is uniform and independent on any three codes, so the covariance of any two
    estimates is known exactly.

    Words: ``below(P)`` for a, then b, then c on 32-bit words; then those of GRR on g. Payload: a, b, c as four
    bytes each, then the reported hash value, all big-endian.
    """

    name: ClassVar[str] = "olh"
    cells: int
    bits: int
    keep: int
    g: int

    def __post_init__(self) -> None:
        """Refuse integers that are no law."""
        check_cells(self.cells)
        integer(self.g, "g", 2, 2**16)
        check_threshold(self.keep, self.bits, "keep")

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The law with g = exp(epsilon) + 1, rounded (at most 65536), and the largest private ``keep``."""
        e, d = exact_epsilon(epsilon), check_cells(cells)
        g = min(2**16, round(exp_bounds(e)[0] + 1))
        return sharpest(lambda bits: cls(d, bits, largest_keep(e, 1, g - 1, bits), g), e)

    def ratio(self) -> Fraction:
        """That of GRR on g, whatever the hash."""
        return two_level_ratio(self.keep, self.bits, 1, self.g - 1)

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
        y = GRRLaw(self.g, self.bits, self.keep).draw_code(self.hash(a, b, c, code), words)
        return b"".join(x.to_bytes(_COEFFICIENT, "big") for x in (a, b, c)) + pack_integer(y, self.g - 1)

    def check_payload(self, payload: bytes) -> None:
        """Coefficients below P and a hash value below g."""
        self.check_length(payload)
        for i in range(3):
            if int.from_bytes(payload[_COEFFICIENT * i : _COEFFICIENT * (i + 1)], "big") >= PRIME:
                raise ReportRejected(Reason.RANGE)
        unpack_integer(payload[3 * _COEFFICIENT :], self.g - 1)
