"""The integer laws of the randomisers, one registry."""

from __future__ import annotations

from ahead_ldp.device.laws.base import Law
from ahead_ldp.device.laws.grr import GRRLaw
from ahead_ldp.device.laws.hashing import OLHLaw
from ahead_ldp.device.laws.signs import HaarLaw, HRRLaw
from ahead_ldp.device.laws.subset import SSLaw
from ahead_ldp.device.laws.unary import OUELaw, SUELaw, UnaryLaw
from ahead_ldp.device.laws.wave import SWLaw

__all__ = [
    "LAWS",
    "GRRLaw",
    "HRRLaw",
    "HaarLaw",
    "Law",
    "OLHLaw",
    "OUELaw",
    "SSLaw",
    "SUELaw",
    "SWLaw",
    "UnaryLaw",
    "law_from_record",
]

LAWS: dict[str, type[Law]] = {law.name: law for law in (GRRLaw, OUELaw, SUELaw, OLHLaw, SSLaw, HRRLaw, SWLaw, HaarLaw)}


def law_from_record(record: object) -> Law:
    """The law that a question names, with its integers checked; an unknown name is refused."""
    name = record.get("name") if isinstance(record, dict) else None
    if not isinstance(name, str) or name not in LAWS:
        raise ValueError(f"expected the oracle to be one of {', '.join(LAWS)}")
    return LAWS[name].from_record(record)
