"""Symmetric unary encoding (SUE), the basic RAPPOR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ahead_ldp.device.laws.unary import SUELaw
from ahead_ldp.oracles.unary import UnaryOracle


@dataclass(frozen=True, slots=True)
class SUE(UnaryOracle):
    """p = exp(epsilon/2) / (exp(epsilon/2) + 1), q = 1 - p (Erlingsson et al. 2014; WBLJ17)."""

    name: ClassVar[str] = "sue"
    law_type: ClassVar[type[SUELaw]] = SUELaw
