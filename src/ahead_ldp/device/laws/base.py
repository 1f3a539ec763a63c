"""What every integer law shares: probabilities are integers over ``2**bits``, rounded towards privacy."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar, Self, TypeVar

from ahead_ldp.device.canonical import Record, fields, integer
from ahead_ldp.device.epsilon import exp_bounds
from ahead_ldp.device.refusals import Reason, ReportRejected
from ahead_ldp.device.words import Words

WORD_BITS = (32, 64)
SHARPNESS = Fraction(1, 10**6)  # the true epsilon lies in [epsilon (1 - SHARPNESS), epsilon]
MOST_CELLS = 2**31 - 2

L = TypeVar("L", bound="Law")


class Law(ABC):
    """A randomiser's exact law on ``cells`` values, for one report.

    Guarantees:
        privacy  for any two values and any report the probabilities differ by a factor of at most ``ratio()``
        exact    ``draw`` has this law for uniform words, and consumes them in the documented order
    """

    name: ClassVar[str]
    cells: int
    bits: int

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
        return [f.name for f in dataclasses.fields(cls) if f.name not in ("cells", "bits")]  # type: ignore[arg-type]

    def record(self) -> Record:
        """The canonical form; thresholds may exceed 2**53, so all parameters are decimal strings."""
        inner = {name: str(getattr(self, name)) for name in self.parameter_names()}
        return {"name": self.name, "cells": self.cells, "bits": self.bits, **inner}

    @classmethod
    def from_record(cls, record: object) -> Self:
        """The law from its canonical form; the constructor checks the integers."""
        names = cls.parameter_names()
        found = fields(record, " ".join(["name", "cells", "bits", *names]), f"the oracle {cls.name}")
        if type(found["bits"]) is not int or found["bits"] not in WORD_BITS:
            raise ValueError("expected bits to be 32 or 64")
        inner = {name: decimal(found[name], name) for name in names}
        return cls(cells=found["cells"], bits=found["bits"], **inner)  # type: ignore[call-arg]

    def check_length(self, payload: bytes) -> None:
        """Raise ``ReportRejected`` unless the payload has the one legal length."""
        if len(payload) != self.payload_length:
            raise ReportRejected(Reason.LENGTH)


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


def check_threshold(threshold: int, bits: int, argument: str) -> None:
    """A threshold that leaves both outcomes possible."""
    if not 0 < threshold < 1 << bits:
        raise ValueError(f"expected 0 < {argument} < 2**{bits}, got {threshold}")


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
            assert law.is_private(epsilon)
            return law
    raise ValueError(f"expected an epsilon that 64-bit words can express, got {float(epsilon)}")


def pack_integer(value: int, largest: int) -> bytes:
    """An integer in ``0 .. largest``, big-endian, in the fewest bytes that hold the largest."""
    return value.to_bytes(integer_length(largest), "big")


def unpack_integer(payload: bytes, largest: int) -> int:
    """The integer behind ``pack_integer``, or ``ReportRejected``."""
    value = int.from_bytes(payload, "big")
    if value > largest:
        raise ReportRejected(Reason.RANGE)
    return value


def integer_length(largest: int) -> int:
    """Bytes that hold every integer in ``0 .. largest``."""
    return max(1, (largest.bit_length() + 7) // 8)
