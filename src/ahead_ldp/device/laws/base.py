"""What every integer law shares: probabilities are integers over ``2**bits``, rounded towards privacy."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self, TypeVar

from ahead_ldp.device.canonical import Record, expect, fields, integer
from ahead_ldp.device.epsilon import exact_epsilon, exp_bounds
from ahead_ldp.device.refusals import Reason, ReportRejected
from ahead_ldp.device.words import Words, below

WORD_BITS = (32, 64)
SHARPNESS = Fraction(1, 10**6)  # the true epsilon lies in [epsilon (1 - SHARPNESS), epsilon]
MOST_CELLS = 2**31 - 2

L = TypeVar("L", bound="Law")


@dataclass(frozen=True, slots=True)
class Law(ABC):
    """A randomiser's exact law on ``cells`` values, for one report. A subclass adds the integers that fix it.

    The first of these is the threshold of the law's coin: a word of ``bits`` bits below it falls for the value.

    Guarantees:
        privacy  for any two values and any report the probabilities differ by a factor of at most ``ratio()``
        exact    ``draw`` has this law for uniform words, and consumes them in the documented order
    """

    name: ClassVar[str]
    cells: int
    bits: int

    def __post_init__(self) -> None:
        """Refuse integers that are no law."""
        check_cells(self.cells)
        name = self.parameter_names()[0]
        threshold = getattr(self, name)
        expect(0 < threshold < 1 << self.bits, f"0 < {name} < 2**{self.bits}, got {threshold}")
        self.check_parameters()

    def check_parameters(self) -> None:  # noqa: B027 - most laws have no other rule
        """Refuse integers that break a rule of this law alone."""

    @classmethod
    @abstractmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The law with its best parameters for ``(epsilon, cells)``."""

    @abstractmethod
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one report under two values, as a rational."""

    @abstractmethod
    def draw(self, code: int, words: Words) -> bytes:
        """The payload of one report about ``code``, from these words."""

    @property
    @abstractmethod
    def payload_length(self) -> int:
        """Bytes of every payload, the same for all values."""

    @abstractmethod
    def check_payload(self, payload: bytes) -> None:
        """Raise ``ReportRejected`` unless ``draw`` could have made this payload."""

    def is_private(self, epsilon: Fraction) -> bool:
        """Whether the law is epsilon-LDP: one inequality between integers, no rounding."""
        return self.ratio() <= exp_bounds(epsilon)[0]

    def is_sharp(self, epsilon: Fraction) -> bool:
        """Whether no more than a millionth of epsilon is given away."""
        return self.ratio() >= exp_bounds(epsilon * (1 - SHARPNESS))[1]

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The integers beside ``cells`` and ``bits`` that fix the law."""
        return [f.name for f in dataclasses.fields(cls) if f.name not in ("cells", "bits")]

    def record(self) -> Record:
        """The canonical form; thresholds may exceed 2**53, so all parameters are decimal strings."""
        inner = {name: str(getattr(self, name)) for name in self.parameter_names()}
        return {"name": self.name, "cells": self.cells, "bits": self.bits, **inner}

    @classmethod
    def from_record(cls, record: object) -> Self:
        """The law from its canonical form; the constructor checks the integers."""
        names = cls.parameter_names()
        named = fields(record, " ".join(["name", "cells", "bits", *names]), f"the oracle {cls.name}")
        expect(type(named["bits"]) is int and named["bits"] in WORD_BITS, "bits to be 32 or 64")
        return cls(named["cells"], named["bits"], *(decimal(named[name], name) for name in names))

    def check_length(self, payload: bytes) -> None:
        """Raise ``ReportRejected`` unless the payload has the one legal length."""
        if len(payload) != self.payload_length:
            raise ReportRejected(Reason.LENGTH)


class MaskLaw(Law):
    """A law whose report is a set of cells: bit i stands for cell i, least significant first, padded with zeros."""

    __slots__ = ()

    @property
    def payload_length(self) -> int:
        """One bit per cell."""
        return (self.cells + 7) // 8

    def check_payload(self, payload: bytes) -> None:
        """The right length, and no bit beyond the last cell."""
        self.check_length(payload)
        if self.cells % 8 and payload[-1] >> self.cells % 8:
            raise ReportRejected(Reason.PADDING)


@dataclass(frozen=True, slots=True)
class TwoLevelLaw(Law):
    """With probability ``keep / 2**bits`` one of the outcomes that the value favours, else one of the others.

    Within either of the two sets the outcome is uniform. The payload is the outcome's number, big-endian, unless the
    law says otherwise.
    """

    keep: int

    @property
    @abstractmethod
    def sides(self) -> tuple[int, int]:
        """How many outcomes a value favours, and how many others there are."""

    @property
    def outcomes(self) -> int:
        """How many different outcomes there are."""
        return sum(self.sides)

    @classmethod
    def best_parameters(cls, epsilon: Fraction, cells: int) -> tuple[int, ...]:
        """The best integers after ``keep``, where the law has any."""
        return ()

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The law with its best parameters and the largest private ``keep``."""
        e, d = exact_epsilon(epsilon), check_cells(cells)
        shape = cls(d, WORD_BITS[0], 1, *cls.best_parameters(e, d))
        return sharpest(lambda bits: replace(shape, bits=bits, keep=largest_keep(e, *shape.sides, bits)), e)

    def ratio(self) -> Fraction:
        """keep / inside over (2**bits - keep) / outside, or its inverse, whichever is larger."""
        inside, outside = self.sides
        ratio = Fraction(self.keep * outside, ((1 << self.bits) - self.keep) * inside)
        return max(ratio, 1 / ratio)

    @property
    def payload_length(self) -> int:
        """The outcome's number."""
        return integer_length(self.outcomes - 1)

    def check_payload(self, payload: bytes) -> None:
        """The number of an outcome that exists."""
        self.check_length(payload)
        check_integer(payload, self.outcomes)

    def pack(self, outcome: int) -> bytes:
        """The payload of an outcome."""
        return outcome.to_bytes(integer_length(self.outcomes - 1), "big")

    def respond(self, code: int, codes: int, words: Words) -> int:
        """Randomised response: the code itself, or uniformly another of ``codes``. One word for the coin."""
        if words.take(self.bits) < self.keep:
            return code
        other = below(codes - 1, words, self.bits)
        return other + (other >= code)


def decimal(text: object, argument: str) -> int:
    """A non-negative integer below 2**64 from its canonical decimal string."""
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= 20:
        value = int(text)
        if str(value) == text and value < 2**64:
            return value
    raise ValueError(f"expected {argument} to be a decimal string below 2**64")


def check_cells(cells: object, argument: str = "cells") -> int:
    """The number of cells of a question: at least two, for one cell asks nothing."""
    return integer(cells, argument, 2, MOST_CELLS)


def largest_keep(epsilon: Fraction, inside: int, outside: int, bits: int) -> int:
    """The largest integer ``keep`` with ``keep * outside <= exp(epsilon) * (2**bits - keep) * inside``.

    With probability keep / 2**bits a report falls, uniformly, on one of ``inside`` outcomes that the value
    favours, else on one of ``outside`` others: the law of GRR (1, d-1), subset selection (w, d-w), the square
    wave (2b+1, d-1) and Hadamard response (1, 1).
    """
    low = exp_bounds(epsilon)[0]
    favoured = low.numerator * inside
    return (favoured << bits) // (favoured + low.denominator * outside)


def sharpest(make: Callable[[int], L], epsilon: Fraction) -> L:
    """The law on the shortest words that loses less than a millionth of epsilon to rounding."""
    for bits in WORD_BITS:
        try:
            law = make(bits)
        except ValueError:  # a threshold rounded to 0 or 2**bits
            continue
        if law.is_sharp(epsilon):
            if not law.is_private(epsilon):
                raise AssertionError("expected a law that keeps its epsilon")
            return law
    raise ValueError(f"expected an epsilon that 64-bit words can express, got {float(epsilon)}")


def check_integer(payload: bytes, outcomes: int) -> None:
    """Raise ``ReportRejected`` unless a big-endian integer is below ``outcomes``."""
    if int.from_bytes(payload, "big") >= outcomes:
        raise ReportRejected(Reason.RANGE)


def integer_length(largest: int) -> int:
    """Bytes that hold every integer in ``0 .. largest``."""
    return max(1, (largest.bit_length() + 7) // 8)
