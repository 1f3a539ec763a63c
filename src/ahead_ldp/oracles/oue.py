"""Optimised unary encoding (OUE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ahead_ldp.device.laws.unary import OUELaw
from ahead_ldp.oracles.unary import UnaryOracle


@dataclass(frozen=True, slots=True)
class OUE(UnaryOracle):
    """p = 1/2, q = 1/(exp(epsilon) + 1) (AHEAD Sec. 2.2.2; WBLJ17).

    Variance 4 exp(epsilon) / (n (exp(epsilon) - 1)^2) at f = 0, whatever the number of cells.
    """

    name: ClassVar[str] = "oue"
    law_type: ClassVar[type[OUELaw]] = OUELaw
