"""Frequency oracles: how a group of people reports on a partition, and how the reports are read.

A new oracle is one file and one line in ``ORACLES``. The contract tests then run over it. Other packages bring theirs
by an entry point of the group ``ahead_ldp.oracles`` (docs/tutorials/own-method.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ahead_ldp.device.laws import LAWS, Law, law_from_record
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
from ahead_ldp.schema.registry import Registry

__all__ = [
    "GRR", "HRR", "OLH", "ORACLES", "OUE", "SS", "SUE", "SW", "Choice", "Haar", "LinearOracle", "Moments", "Oracle",
    "SupportOracle", "Tally", "adaptive_oracle", "choose_oracle", "linear_oracle", "make_oracle", "named_oracle",
    "oracle_of_law",
]  # fmt: skip

Epsilon = float | str | Fraction


class _Oracles(Registry[Oracle]):
    """Oracles by name. Where one is known, so is its law: this process then reads and makes its reports.

    A person's device does not look here. It answers only the laws that it has itself.
    """

    def loaded(self, entry: type[Oracle]) -> None:
        """Let the oracle's law be read from questions."""
        LAWS.setdefault(entry.law_type.name, entry.law_type)


_HERE = "ahead_ldp.oracles"
ORACLES: Registry[Oracle] = _Oracles(
    "oracle",
    {
        "grr": f"{_HERE}.grr:GRR",
        "oue": f"{_HERE}.oue:OUE",
        "olh": f"{_HERE}.olh:OLH",
        "ss": f"{_HERE}.ss:SS",
        "hrr": f"{_HERE}.hrr:HRR",
        "sue": f"{_HERE}.sue:SUE",
        "sw": f"{_HERE}.sw:SW",
        "haar": f"{_HERE}.haar:Haar",
    },
    group="ahead_ldp.oracles",
    kind=Oracle,
)
UNBIASED = ("grr", "oue", "olh", "ss", "hrr", "sue")  # those to choose the least variance from
_TIE = 1.001  # variances within a thousandth are taken as equal: the shorter report decides


@lru_cache(maxsize=1024, typed=True)  # True is no epsilon, even where 1 has been seen
def make_oracle(name: str, epsilon: Epsilon, cells: int) -> Oracle:
    """The named oracle with its best parameters."""
    return ORACLES.find(name).make(epsilon, cells)


@lru_cache(maxsize=4096, typed=True)
def linear_oracle(name: str, epsilon: Epsilon, cells: int, among: tuple[str, ...] = UNBIASED) -> LinearOracle:
    """The named oracle, which must have an unbiased estimate; "best" is the one of least variance ``among`` some."""
    if name == "best":
        return choose_oracle(epsilon, cells, among).oracle
    oracle = make_oracle(name, epsilon, cells)
    if not isinstance(oracle, LinearOracle):
        raise ValueError(f"expected an oracle with an unbiased estimate, got {name!r}")
    return oracle


def named_oracle(name: str, epsilon: Epsilon, cells: int) -> LinearOracle:
    """``linear_oracle``, where "adaptive" is also a name: GRR or OLH, as WBLJ17 has it."""
    if name == "adaptive":
        return adaptive_oracle(epsilon, cells, ("grr", "olh"))
    return linear_oracle(name, epsilon, cells)


def adaptive_oracle(epsilon: Epsilon, cells: int, among: tuple[str, ...]) -> LinearOracle:
    """The one of least variance at f = 0, the first of equals: GRR for cells < 3 exp(epsilon) + 2 (WBLJ17)."""
    return min((linear_oracle(name, epsilon, cells) for name in among), key=lambda oracle: float(oracle.variance(1)))


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


def choose_oracle(epsilon: Epsilon, cells: int, among: tuple[str, ...] = UNBIASED) -> Choice:
    """The oracle of least variance for these cells; within a thousandth, the one with the shortest report.

    Compared is ``contrast_variance``: what is left of a cell's variance once the sum is known to be 1.
    """
    if not among:
        raise ValueError("expected at least one oracle to choose from")
    candidates = [linear_oracle(name, epsilon, cells) for name in among]
    variance = {o.name: o.contrast_variance(1) for o in candidates}
    good = (o for o in candidates if variance[o.name] <= _TIE * min(variance.values()))
    best = min(good, key=lambda o: o.report_bytes)
    others = ", ".join(f"{o.name} {variance[o.name] / variance[best.name]:.2f}" for o in candidates if o is not best)
    reason = f"{best.name}: least variance on {cells} cells at epsilon {float(Fraction(epsilon)):g}"
    return Choice(best, f"{reason} (others, relative: {others})" if others else reason)
