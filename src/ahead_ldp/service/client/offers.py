"""What a person is shown before being asked, and what they hold afterwards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ahead_ldp.device.budget import Statement
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.canonical import Record
from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.entries import Asker
from ahead_ldp.device.question import Question


@dataclass(frozen=True, slots=True)
class Offer:
    """One question that passed every check. Nothing private has been read yet.

    ``fields`` are the owner's names of what would be read, as far as they are known before consent (None: the owner was
    not sure). ``statement`` says what was given away so far and what is left, ``askers`` to whom. ``asked_of_all`` are
    the attributes that any group of the wave is asked.
    """

    campaign: Campaign
    question: Question
    fields: tuple[str | None, ...]
    statement: Statement
    askers: Mapping[str, Asker]
    closes_at: int | None = None
    asked_of_all: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """What is asked."""
        return self.question.asked

    def privacy_sentence(self) -> str:
        """Epsilon in one honest sentence."""
        return privacy_sentence(self.question.epsilon)


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of a report for its owner. Whoever has the nonce can withdraw the report until its wave closes."""

    campaign: str
    wave: int
    group: str
    question: str
    report_id: str
    nonce: str

    def record(self) -> Record:
        """The canonical form."""
        inner = {name: getattr(self, name) for name in self.__slots__}
        return {"type": "receipt", "version": 1, **inner}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt to answer ended, with the receipt once something was drawn.

    ``replaced`` names the attributes whose value did not fit the declaration, right after the draw: something else was
    reported in its place. It is told here, and written and sent nowhere.
    """

    status: Status
    receipt: Receipt | None = None
    detail: str = ""
    replaced: tuple[str, ...] = ()


class Status(StrEnum):
    """How an attempt to answer ended."""

    ACKNOWLEDGED = "acknowledged"
    QUEUED = "queued"  # drawn and kept; the same bytes are sent when their time comes or the server is back
    WAITING = "waiting"  # no wave is open for this device's group
    DECLINED = "declined"
    LATE = "late"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    WIPED = "wiped"
    OVER = "over"


def privacy_sentence(epsilon: Fraction) -> str:
    """What epsilon means for somebody who sees the report and wavers between two values of the person's."""
    factor = math.exp(epsilon)
    sure = 100 * factor / (1 + factor)
    if sure > 99.9:
        return (
            f"Your answer is mixed with noise here, on your device, but epsilon is {float(epsilon):g}: "
            "whoever sees the report can be almost certain of your answer."
        )
    return (
        f"Your answer is mixed with noise here, on your device: somebody who sees the report and wavered evenly "
        f"between two answers of yours can be at most {sure:.{1 if sure > 99 else 0}f} % sure afterwards "
        f"(epsilon {float(epsilon):g})."
    )
