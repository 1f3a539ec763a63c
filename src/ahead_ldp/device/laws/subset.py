"""Subset selection: a random set of w cells that favours the value's own (Ye, Barg 2018; Wang et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ahead_ldp.device.canonical import expect
from ahead_ldp.device.epsilon import exp_bounds
from ahead_ldp.device.laws.base import MaskLaw, TwoLevelLaw
from ahead_ldp.device.refusals import Reason, ReportRejected
from ahead_ldp.device.words import Words, below


@dataclass(frozen=True, slots=True)
class SSLaw(MaskLaw, TwoLevelLaw):
    """A set of ``w`` cells: with probability ``keep / 2**bits`` one that holds the value, else one that does not.

    Words: one for the coin; then cells other than the value's by ``below(cells - 1)``, a cell already chosen
    drawn again, until the set is full.
    """

    name: ClassVar[str] = "ss"
    w: int

    def check_parameters(self) -> None:
        """Refuse the empty set and the set of all."""
        expect(1 <= self.w < self.cells, f"1 <= w < cells, got {self.w} of {self.cells}")

    @classmethod
    def best_parameters(cls, epsilon: Fraction, cells: int) -> tuple[int, ...]:
        """w = d / (exp(epsilon) + 1), rounded, at least 1."""
        return (max(1, round(cells / (exp_bounds(epsilon)[0] + 1))),)

    @property
    def sides(self) -> tuple[int, int]:
        """A cell is in w sets of d: the ratio is p (d - w) / ((1 - p) w)."""
        return self.w, self.cells - self.w

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        own = words.take(self.bits) < self.keep
        others: set[int] = set()
        while len(others) < self.w - own:
            others.add(below(self.cells - 1, words, self.bits))
        mask = own << code
        for other in others:
            mask |= 1 << (other + (other >= code))
        return mask.to_bytes(self.payload_length, "little")

    def check_payload(self, payload: bytes) -> None:
        """A set of exactly ``w`` cells."""
        MaskLaw.check_payload(self, payload)
        if int.from_bytes(payload, "little").bit_count() != self.w:
            raise ReportRejected(Reason.WEIGHT)
