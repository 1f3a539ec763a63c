"""Frequency oracles: how a group of people reports on a partition, and how the reports are read.

One file each, one registry line each: the contract tests run over the registry.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ahead_ldp.device.laws import Law, law_from_record
from ahead_ldp.oracles.base import LinearOracle, Moments, Oracle, SupportOracle
from ahead_ldp.oracles.grr import GRR
from ahead_ldp.oracles.haar import Haar
from ahead_ldp.oracles.hrr import HRR
from ahead_ldp.oracles.olh import OLH
from ahead_ldp.oracles.oue import OUE
from ahead_ldp.oracles.ss import SS
from ahead_ldp.oracles.sue import SUE
from ahead_ldp.oracles.sw import SW
from ahead_ldp.oracles.tally import Tally

__all__ = [
    "GRR", "HRR", "OLH", "ORACLES", "OUE", "SS", "SUE", "SW", "Choice", "Haar", "LinearOracle", "Moments", "Oracle",
    "SupportOracle", "Tally", "choose_oracle", "make_oracle", "oracle_of_law",
]  # fmt: skip

ORACLES: dict[str, type[Oracle]] = {oracle.name: oracle for oracle in (GRR, OUE, OLH, SS, HRR, SUE, SW, Haar)}


@lru_cache(maxsize=1024, typed=True)  # True is no epsilon, even where 1 has been seen
def make_oracle(name: str, epsilon: float | str | Fraction, cells: int) -> Oracle:
    """The named oracle with its best parameters."""
    if name not in ORACLES:
        raise ValueError(f"expected oracle to be one of {', '.join(ORACLES)}, got {name!r}")
    return ORACLES[name].make(epsilon, cells)


def oracle_of_law(law: Law | dict[str, object]) -> Oracle:
    """The oracle that reads reports of this law (or of its canonical record)."""
    if isinstance(law, dict):
        law = law_from_record(law)
    return ORACLES[law.name](law)


@dataclass(frozen=True, slots=True)
class Choice:
    """An oracle and why it was taken."""

    oracle: LinearOracle
    reason: str


def choose_oracle(
    epsilon: float | str | Fraction,
    cells: int,
    among: tuple[str, ...] = ("grr", "oue", "olh", "ss", "hrr", "sue"),
) -> Choice:
    """The oracle of least variance for these cells; within a thousandth, the one with the shortest report.

    Compared is ``contrast_variance``: what is left of a cell's variance once the sum is known to be 1.
    """
    found: list[LinearOracle] = []
    for name in among:
        oracle = make_oracle(name, epsilon, cells)
        if not isinstance(oracle, LinearOracle):
            raise ValueError(f"expected oracles with an unbiased estimate, got {name!r}")
        found.append(oracle)
    if not found:
        raise ValueError("expected at least one oracle to choose from")
    least = min(o.contrast_variance(1) for o in found)
    best = min((o for o in found if o.contrast_variance(1) <= 1.001 * least), key=lambda o: o.report_bytes)
    others = ", ".join(
        f"{o.name} {o.contrast_variance(1) / best.contrast_variance(1):.2f}" for o in found if o is not best
    )
    reason = f"{best.name}: least variance on {cells} cells at epsilon {float(Fraction(epsilon)):g}"
    return Choice(best, f"{reason} (others, relative: {others})" if others else reason)
