"""What an estimate knows about where it comes from, without knowing the protocol above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ahead_ldp.device.canonical import Record
from ahead_ldp.oracles.base import Oracle
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.schema.arrays import Floats


class Asked(Protocol):
    """A question: some attributes, a partition of their domain, and the oracle that hid the cell."""

    @property
    def attributes(self) -> tuple[int, ...]:
        """Their places in the schema."""

    @property
    def partition(self) -> Partition:
        """The cells."""

    @property
    def oracle(self) -> Oracle:
        """How reports are read."""


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

    @property
    def answered(self) -> Sequence[tuple[Asked, Tally]]:
        """Every question that was asked, with its tally."""

    @property
    def links(self) -> Sequence[str]:
        """A digest after each wave, of campaign and tallies so far: two runs with one in common share reports."""

    @property
    def everybody(self) -> int | None:
        """How many people there are in all; None while some groups have not been asked."""

    def record(self, answers: Floats) -> Record:
        """The canonical form, which is what is saved of an estimate with this fingerprint."""
