"""What an estimate knows about where it comes from, without knowing the protocol above it."""

from __future__ import annotations

from typing import Protocol

from ahead_ldp.device.canonical import Record
from ahead_ldp.schema.arrays import Floats


class Origin(Protocol):
    """A run that was told some tallies: the estimate is a pure function of it."""

    @property
    def method(self) -> str:
        """The name of the method."""

    @property
    def epsilon(self) -> str:
        """Epsilon as it was declared."""

    @property
    def people(self) -> int:
        """How many people's reports were counted."""

    def record(self, answers: Floats) -> Record:
        """The canonical form, which is what is saved of an estimate with this fingerprint."""
