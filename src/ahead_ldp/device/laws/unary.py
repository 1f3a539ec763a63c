"""Unary encodings: one noisy bit per cell. Optimised (OUE) and symmetric (SUE, basic RAPPOR)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt
from typing import ClassVar, Self

from ahead_ldp.device.canonical import expect
from ahead_ldp.device.epsilon import exact_epsilon, exp_bounds
from ahead_ldp.device.laws.base import MaskLaw, check_cells, sharpest
from ahead_ldp.device.words import Words, take_many


class UnaryLaw(MaskLaw):
    """Bit i is 1 with probability ``own / 2**bits`` if i is the value's cell, else ``other / 2**bits``.

    Words: one per cell, in order of the cells. Every pattern of bits is a payload.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def own(self) -> int:
        """Threshold of the value's own bit."""

    def ratio(self) -> Fraction:
        """p (1 - q) / (q (1 - p)): the two bits in which two values differ."""
        one = 1 << self.bits
        return Fraction(self.own * (one - self.other), self.other * (one - self.own))

    @property
    @abstractmethod
    def other(self) -> int:
        """Threshold of every other bit."""

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        drawn = take_many(words, self.bits, self.cells)
        other = self.other
        bits = ["1" if word < other else "0" for word in drawn]
        bits[code] = "1" if drawn[code] < self.own else "0"
        return int("".join(reversed(bits)), 2).to_bytes(self.payload_length, "little")


@dataclass(frozen=True, slots=True)
class OUELaw(UnaryLaw):
    """Optimised unary encoding (AHEAD Sec. 2.2.2; WBLJ17): p = 1/2, q = q_num / 2**bits."""

    name: ClassVar[str] = "oue"
    q_num: int

    def check_parameters(self) -> None:
        """Refuse q at or above p."""
        expect(self.q_num < self.own, f"q_num < 2**{self.bits - 1}, got {self.q_num}")

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The law with the smallest private ``q_num``: (1 - q) / q <= exp(epsilon)."""
        e, d = exact_epsilon(epsilon), check_cells(cells)
        share = 1 / (exp_bounds(e)[0] + 1)
        return sharpest(lambda bits: cls(d, bits, ceil(share * (1 << bits))), e)

    @property
    def own(self) -> int:
        """One half."""
        return 1 << (self.bits - 1)

    @property
    def other(self) -> int:
        """``q_num``."""
        return self.q_num


@dataclass(frozen=True, slots=True)
class SUELaw(UnaryLaw):
    """Symmetric unary encoding, basic RAPPOR (WBLJ17): p = p_num / 2**bits, q = 1 - p."""

    name: ClassVar[str] = "sue"
    p_num: int

    def check_parameters(self) -> None:
        """Refuse p at or below q."""
        expect(self.p_num > self.other, f"p_num > 2**{self.bits - 1}, got {self.p_num}")

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The law with the largest private ``p_num``: (p / (1 - p))**2 <= exp(epsilon)."""
        e, d = exact_epsilon(epsilon), check_cells(cells)
        low, scale = exp_bounds(e)[0], 10**40
        root = isqrt(low.numerator * scale**2 // low.denominator)  # sqrt(low), rounded down, over scale
        return sharpest(lambda bits: cls(d, bits, (root << bits) // (root + scale)), e)

    @property
    def own(self) -> int:
        """``p_num``."""
        return self.p_num

    @property
    def other(self) -> int:
        """The complement of ``p_num``."""
        return (1 << self.bits) - self.p_num
