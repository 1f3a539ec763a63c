"""Generalised randomised response: the value itself, or uniformly another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ahead_ldp.device.laws.base import TwoLevelLaw
from ahead_ldp.device.words import Words


@dataclass(frozen=True, slots=True)
class GRRLaw(TwoLevelLaw):
    """Keep the value with probability ``keep / 2**bits``, else one of the others (AHEAD Sec. 2.2.1).

    Words: one for the coin; if it says move, ``below(cells - 1)`` among the others in order.
    """

    name: ClassVar[str] = "grr"

    @property
    def sides(self) -> tuple[int, int]:
        """The value, and the d - 1 others: the ratio is p (d - 1) / (1 - p)."""
        return 1, self.cells - 1

    def draw(self, code: int, words: Words) -> bytes:
        """One report about ``code``."""
        return self.pack(self.draw_code(code, words))

    def draw_code(self, code: int, words: Words) -> int:
        """The reported code, not yet packed."""
        return self.respond(code, self.cells, words)
