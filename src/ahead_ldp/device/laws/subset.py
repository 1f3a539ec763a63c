"""Subset selection: a random set of w cells that favours the value's own (Ye, Barg 2018; Wang et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.epsilon import exact_epsilon, exp_bounds
from ahead_ldp.device.laws.base import Law, check_cells, check_threshold, largest_keep, sharpest
from ahead_ldp.device.laws.grr import two_level_ratio
from ahead_ldp.device.laws.unary import check_padding
from ahead_ldp.device.refusals import Reason, ReportRejected
from ahead_ldp.device.words import Words, below


@dataclass(frozen=True, slots=True)
class SSLaw(Law):
    """A set of ``w`` cells: with probability ``keep / 2**bits`` one that holds the value, else one that does not.

    Words: one for the coin; then cells other than the value's by ``below(cells - 1)``, a cell already chosen
    drawn again, until the set is full. Payload: the set as a mask of ``cells`` bits, least significant first.
    """

    name: ClassVar[str] = "ss"
    cells: int
    bits: int
    keep: int
    w: int

    def __post_init__(self) -> None:
        """Refuse integers that are no law."""
        check_cells(self.cells)
        check_threshold(self.keep, self.bits, "keep")
        if not 1 <= self.w < self.cells:
            raise ValueError(f"expected 1 <= w < cells, got {self.w} of {self.cells}")

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """The law with w = d / (exp(epsilon) + 1), rounded, and the largest private ``keep``."""
        e, d = exact_epsilon(epsilon), check_cells(cells)
        w = max(1, round(d / (exp_bounds(e)[0] + 1)))
        return sharpest(lambda bits: cls(d, bits, largest_keep(e, w, d - w, bits), w), e)

    def ratio(self) -> Fraction:
        """p (d - w) / ((1 - p) w)."""
        return two_level_ratio(self.keep, self.bits, self.w, self.cells - self.w)

    @property
    def payload_length(self) -> int:
        """One bit per cell."""
        return (self.cells + 7) // 8

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
        """Zero padding and exactly ``w`` ones."""
        self.check_length(payload)
        check_padding(payload, self.cells)
        if int.from_bytes(payload, "little").bit_count() != self.w:
            raise ReportRejected(Reason.WEIGHT)
