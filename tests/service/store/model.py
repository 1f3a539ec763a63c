"""What a store must answer, in a few dictionaries: the obvious version that the stateful tests compare with."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from ahead_ldp.service.store import Withdrawal
from tests.service.store.support import CLOSED, GROUPS, KNOWN, NEW, UNKNOWN, WITHDRAWN


@dataclass
class Entry:
    """One id: the change of bytes that came in, where it went, and whether its payload is still there."""

    change: int
    wave: int
    group: str
    place: str = "in"  # or "withdrawn", "deleted"


@dataclass
class Model:
    """One campaign: ids by name, waves by number."""

    entries: dict[str, Entry] = field(default_factory=dict)
    waves: dict[int, str] = field(default_factory=lambda: {1: "open"})
    void: set[tuple[int, str]] = field(default_factory=set)
    frozen: dict[int, dict[str, int]] = field(default_factory=dict)
    ended: bool = False

    @property
    def wave(self) -> int:
        """The latest."""
        return max(self.waves)

    def copy(self) -> Model:
        """A snapshot."""
        return copy.deepcopy(self)

    def takes(self, wave: int, group: str) -> bool:
        """Whether a question takes new reports."""
        return self.waves.get(wave) == "open" and (wave, group) not in self.void

    def upload(self, name: str, change: int, wave: int, group: str, insert: bool = True) -> int:
        """The outcome of one report, in the order of checks of docs/wire.md."""
        entry = self.entries.get(name)
        if entry is not None:
            return WITHDRAWN if entry.place == "withdrawn" else KNOWN
        if not self.takes(wave, group):
            return CLOSED
        if not insert:
            return UNKNOWN
        self.entries[name] = Entry(change, wave, group)
        return NEW

    def withdraw(self, name: str) -> Withdrawal:
        """The answer to a withdrawal."""
        entry = self.entries.get(name)
        if entry is None:
            return Withdrawal.UNKNOWN
        if entry.place == "withdrawn" or (entry.wave, entry.group) in self.void:
            return Withdrawal.GONE
        if self.waves[entry.wave] != "open":
            return Withdrawal.TOO_LATE
        entry.place = "withdrawn"
        return Withdrawal.REMOVED

    def names(self, wave: int, group: str) -> dict[str, int]:
        """Name and change of the reports that are there."""
        found = {n: e for n, e in self.entries.items() if (e.wave, e.group, e.place) == (wave, group, "in")}
        return {name: entry.change for name, entry in found.items()}

    def delete(self, wave: int, group: str) -> None:
        """The payloads go, the ids stay."""
        for name in self.names(wave, group):
            self.entries[name].place = "deleted"

    def counts(self, wave: int) -> dict[str, int]:
        """Reports per group."""
        return {group: len(self.names(wave, group)) for group in GROUPS}
