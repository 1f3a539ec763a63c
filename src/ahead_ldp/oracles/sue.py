"""Symmetric unary encoding (SUE), the basic RAPPOR."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ahead_ldp.device.laws import SUELaw
from ahead_ldp.oracles.unary import UnaryOracle


@dataclass(frozen=True, slots=True)
class SUE(UnaryOracle):
    """p = exp(epsilon/2) / (exp(epsilon/2) + 1), q = 1 - p (Erlingsson et al. 2014; WBLJ17)."""

    name: ClassVar[str] = "sue"

    @classmethod
    def make(cls, epsilon: float | str | Fraction, cells: int) -> Self:
        """SUE with the largest private p."""
        return cls(SUELaw.make(epsilon, cells))
