"""What a ledger holds of a report, and the states a report moves through."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class LedgerRefused(Exception):
    """The ledger forbids a report, whatever the private value is."""


class LedgerBusy(LedgerRefused):
    """Another process is answering with this ledger."""


class State(StrEnum):
    """Where a report stands."""

    RESERVED = "reserved"
    DRAWN = "drawn"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    LATE = "late"  # its wave closed before it arrived; it is never drawn again
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    WIPED = "wiped"  # by opting out


MOVES = {
    State.RESERVED: {State.DRAWN, State.WIPED},
    State.DRAWN: {State.SENT, State.WIPED},
    State.SENT: {State.SENT, State.ACKNOWLEDGED, State.LATE, State.REJECTED, State.WITHDRAWN, State.WIPED},
    State.ACKNOWLEDGED: {State.WITHDRAWN},
}


@dataclass(frozen=True, slots=True)
class Token:
    """The nonce of a campaign, and its signature once there is one."""

    nonce: bytes
    inverse: int | None
    signature: bytes | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One report as the ledger holds it. ``batch`` is the body to send, byte for byte, once it is drawn."""

    campaign: str
    state: State
    wave: int
    group: str
    question: str
    batch: bytes | None
    not_before: int


class Asker(NamedTuple):
    """Whom a report is for, in the campaign's own words."""

    campaign: str
    title: str
    controller: str


class Place(NamedTuple):
    """Which question of a campaign a report answers."""

    wave: int
    group: str
    question: str
