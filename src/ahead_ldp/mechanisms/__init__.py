"""The mechanisms: one paper a file, one registry."""

from __future__ import annotations

from ahead_ldp.mechanisms.adaptive import Adaptive
from ahead_ldp.mechanisms.ahead import AHEAD
from ahead_ldp.mechanisms.calm import CALM
from ahead_ldp.mechanisms.dht import DHT
from ahead_ldp.mechanisms.flat import Flat
from ahead_ldp.mechanisms.fused import Fused
from ahead_ldp.mechanisms.hdg import HDG, TDG
from ahead_ldp.mechanisms.hh import HH
from ahead_ldp.mechanisms.hio import HIO
from ahead_ldp.mechanisms.lle import LLE
from ahead_ldp.mechanisms.pripl import PriPL
from ahead_ldp.mechanisms.privnud import PrivNUD
from ahead_ldp.mechanisms.sw import SW
from ahead_ldp.mechanisms.uniform import Uniform
from ahead_ldp.protocol import Mechanism

__all__ = [
    "AHEAD",
    "CALM",
    "DHT",
    "HDG",
    "HH",
    "HIO",
    "LLE",
    "MECHANISMS",
    "SW",
    "TDG",
    "Adaptive",
    "Flat",
    "Fused",
    "PriPL",
    "PrivNUD",
    "Uniform",
    "mechanism_class",
    "mechanism_from_record",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism
    for mechanism in (AHEAD, LLE, Uniform, Flat, HIO, HH, DHT, SW, CALM, TDG, HDG, PrivNUD, PriPL, Fused, Adaptive)
}


def mechanism_class(name: str) -> type[Mechanism]:
    """The registered mechanism of this name."""
    if name not in MECHANISMS:
        raise ValueError(f"expected method to be one of {', '.join(MECHANISMS)}, got {name!r}")
    return MECHANISMS[name]


def mechanism_from_record(record: object) -> Mechanism:
    """The mechanism behind its canonical form."""
    name = record.get("name") if isinstance(record, dict) else None
    return mechanism_class(str(name)).from_record(record)
