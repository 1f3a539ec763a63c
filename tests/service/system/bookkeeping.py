"""What must be true of a campaign, kept by whoever sent its reports: the slow, obvious version of the server.

Every report has an id of its own, so each that is lost, doubled or exchanged is seen. The books know what was sent
and what was answered; the server is asked for its public chain and its stored reports, and both are compared.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

# GONE: withdrawn or given up at the same time, and nobody can tell which came first.
ABSENT, IN, MAYBE, WITHDRAWN, DELETED, GONE = "absent", "in", "maybe", "withdrawn", "deleted", "gone"
FINAL = ("finished", "void")
DAY_S = 86_400
_MOVES = {  # of a campaign
    "draft": {"open", "void"},
    "open": {"open", "review", "finished", "void"},
    "review": {"open", "finished", "void"},
    "finished": set(),
    "void": set(),
}


class Violation(AssertionError):
    """The server broke a promise."""


def check(condition: object, *what: object) -> None:
    """Raise a ``Violation`` that says what was found."""
    if not condition:
        raise Violation(*what)


@dataclass
class Sent:
    """One report as its device keeps it: the receipt, the bytes, the question, and what became of it."""

    nonce: bytes
    frame: bytes
    wave: int
    group: str
    status: str = ABSENT
    also: bytes | None = None  # other bytes under this id, sent at the same time: one of the two is stored

    @property
    def id(self) -> bytes:
        return self.frame[:16]


@dataclass
class Book:
    """One campaign: its reports by id, its waves as last seen, and what the operator asked for."""

    campaign: str
    minimum: int
    deadline_s: int | None
    retention_days: int
    reports: dict[bytes, Sent] = field(default_factory=dict)
    state: str = "draft"
    waves: dict[int, str] = field(default_factory=dict)
    groups: dict[tuple[int, str], str] = field(default_factory=dict)  # "open", "counted" or "void"
    questions: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    closed: dict[int, Any] = field(default_factory=dict)  # the published part, which never changes
    asked_void: set[tuple[int, str]] = field(default_factory=set)
    asked_finish: bool = False
    extended: set[int] = field(default_factory=set)
    opened_at: dict[int, int] = field(default_factory=dict)
    frozen: str = ""
    recounted: set[int] = field(default_factory=set)

    def copy(self) -> Book:
        """As it is now."""
        return copy.deepcopy(self)

    @property
    def wave(self) -> int:
        """The latest wave."""
        return max(self.waves, default=0)

    @property
    def live(self) -> bool:
        return self.state not in FINAL

    def takes(self, wave: int, group: str) -> bool:
        """Whether a question takes new reports."""
        return self.waves.get(wave) == "open" and self.groups.get((wave, group)) == "open"

    # Answers

    def upload(self, sent: Sent, frame: bytes, where: tuple[int, str], reason: str | None, bad: str | None) -> None:
        """Check the answer to one frame (None: accepted) when nothing else was going on, and note what it means.

        The order of checks is that of docs/wire.md; ``bad`` is what is wrong with the frame's form, if anything.
        """
        expected = self._expected(sent, where, bad)
        check(reason in expected, "upload", sent.status, where, self.waves, self.groups.get(where), reason, expected)
        self.note(sent, frame, where, reason)

    def _expected(self, sent: Sent, where: tuple[int, str], bad: str | None) -> tuple[str | None, ...]:
        if sent.status == WITHDRAWN:
            return ("report_withdrawn",)
        if sent.status in (IN, DELETED):  # whatever the bytes are: the first ones count
            return (None,)
        known = (None,) if sent.status == MAYBE else ()
        if not self.takes(*where):
            return ("wave_closed", *known)
        return (bad, *known)

    def note(self, sent: Sent, frame: bytes, where: tuple[int, str], reason: str | None) -> None:
        """What an answer says about a report, whatever was expected."""
        if reason is None:
            if sent.status in (ABSENT, MAYBE):
                stored = where if sent.status == ABSENT or self.takes(*where) else (sent.wave, sent.group)
                sent.frame, (sent.wave, sent.group) = frame, stored
                sent.status = DELETED if self.groups.get(stored) == "void" else IN
        elif sent.status == MAYBE and reason != "report_withdrawn":
            sent.status = ABSENT
        else:
            check(sent.status in (ABSENT, WITHDRAWN), "refused", reason, sent.status)

    def withdrawal(self, sent: Sent, status: int) -> None:
        """Check the answer to a withdrawal."""
        before = sent.status
        if before == IN:
            expected = 200 if self.waves[sent.wave] == "open" else 409
        elif before == ABSENT:
            expected = 404
        elif before == MAYBE:
            expected = status
        else:
            expected = 200
        check(status == expected, "withdrawal", before, self.waves, status)
        if before == MAYBE and status == 200 and self.groups.get((sent.wave, sent.group)) == "void":
            sent.status = GONE  # withdrawn, or given up with its group: nobody can tell
        elif before in (IN, MAYBE) and status == 200:
            sent.status = WITHDRAWN
        elif before == MAYBE and status == 404:
            sent.status = ABSENT
        elif before == MAYBE and self.waves.get(sent.wave) == "open":
            raise Violation("an open wave refused a withdrawal")

    # What the server publishes

    def observe(self, chain: dict[str, Any], now: int) -> None:
        """Compare the public chain with the last one: what may move moves forward, what is published stays.

        ``now`` is the server's clock, which may have been set back: a wave that is new was opened by it.
        """
        check(chain["state"] == self.state or chain["state"] in _reachable(self.state), self.state, chain["state"])
        numbers = [wave["number"] for wave in chain["waves"]]
        check(numbers == list(range(1, len(numbers) + 1)), numbers)
        check(set(self.waves) <= set(numbers), "a wave is gone")
        self.state = chain["state"]
        for wave in chain["waves"]:
            self._observe_wave(wave, now)
        if self.state in FINAL:
            check(not {"open", "held"} & set(self.waves.values()), "an ended campaign has an open wave")
        self.frozen = chain["frozen"]

    def _observe_wave(self, wave: dict[str, Any], now: int) -> None:
        number, state = wave["number"], wave["state"]
        before = self.waves.get(number)
        check(before not in ("closed", "void") or state == before, "a closed wave moved", before, state)
        self.waves[number] = state
        self.opened_at.setdefault(number, now)
        for group in wave["groups"]:
            name = (number, group["group"])
            check(self.questions.setdefault(name, group["question"]) == group["question"], "a question changed")
            old = self.groups.get(name)
            check(old != "void" or group["state"] == "void", "a void group came back")
            self.groups[name] = group["state"]
            if group["state"] == "void" or state == "void":
                self.delete(*name)
        if state == "closed":
            check(self.closed.setdefault(number, wave) == wave, "a published wave changed")
        else:
            check(all(group["tally"] is None for group in wave["groups"]), "tallies of an open wave")

    def unsettled(self) -> set[tuple[int, str]]:
        """Groups with reports whose answer was lost, where the stored reports tell what became of them."""
        return {
            (s.wave, s.group)
            for s in self.reports.values()
            if (s.status == MAYBE or s.also) and self.groups.get((s.wave, s.group), "void") != "void"
        }

    def recount(self, now: int) -> None:
        """Count every wave that was published since the last time, report by report."""
        for number, wave in self.closed.items():
            if number not in self.recounted:
                self._recount(wave, now)
                self.recounted.add(number)

    def _recount(self, wave: dict[str, Any], now: int) -> None:
        for group in wave["groups"]:
            name = (wave["number"], group["group"])
            inside = self.inside(*name)
            tally = group["tally"]
            if group["state"] == "void":
                check(tally["n"] == 0 and not any(tally["counts"]), "a void group was counted")
                self._check_void(name, now)
                continue
            check(tally["n"] == len(inside), "counted", name, tally["n"], len(inside))
            check(tally["n"] >= self.minimum, "counted below the minimum")
            check(any(tally["counts"] == naive_counts(some, len(tally["counts"])) for some in choices(inside)), name)
            check(group["reports"] == naive_digest(inside), "digest", name)

    def _check_void(self, name: tuple[int, str], now: int) -> None:
        if name in self.asked_void or self.asked_finish or name[0] in self.extended:
            return
        check(self.deadline_s is not None, "a group was given up and nobody asked", name)
        check(now >= self.opened_at[name[0]] + 2 * self.deadline_s, "given up before the second deadline", name)

    # Reports

    def inside(self, wave: int, group: str) -> list[Sent]:
        """The reports that are stored."""
        return [s for s in self.reports.values() if (s.wave, s.group, s.status) == (wave, group, IN)]

    def delete(self, wave: int, group: str) -> None:
        """The reports of a group were given up; those whose fate is not known stay so."""
        for sent in self.inside(wave, group):
            sent.status = DELETED

    def compare_stored(self, wave: int, group: str, frames: list[bytes], erased: bool) -> None:
        """What the operator exports is what was acknowledged; where an answer was lost it tells how it went."""
        check(len({f[:16] for f in frames}) == len(frames), "an id is stored twice")
        if erased and not frames:
            return
        found = set(frames)
        for sent in self.inside(wave, group):
            if sent.also in found:
                sent.frame = sent.also
            sent.also = None
        wanted = {s.frame for s in self.inside(wave, group)}
        check(wanted <= found, "acknowledged and lost", len(wanted - found), wave, group)
        for sent in self.reports.values():
            if sent.status == MAYBE and (sent.wave, sent.group) == (wave, group):
                if self.groups.get((wave, group)) != "void":
                    sent.status = IN if sent.frame in found else ABSENT
                found.discard(sent.frame)
        check(found <= wanted, "stored and never acknowledged", len(found - wanted), wave, group)

    def end_by_restore(self) -> None:
        """Nobody vouched for the campaign: the wave that was going on is void."""
        for number, state in self.waves.items():
            if state in ("open", "held"):
                self.waves[number] = "void"
                for wave, group in self.groups:
                    if wave == number:
                        self.groups[wave, group] = "void"
                        self.delete(wave, group)
        if self.live:
            self.state = "finished" if "closed" in self.waves.values() else "void"


def _reachable(state: str) -> set[str]:
    """Several changes may have happened since it was last looked at."""
    found, new = set(), {state}
    while new - found:
        found |= new
        new = set().union(*(_MOVES[s] for s in new))
    return found


def choices(reports: list[Sent]) -> Iterator[list[bytes]]:
    """The frames, in every way in which one of two was stored and nobody can tell which."""
    yield from map(list, product(*([s.frame] if s.also is None else [s.frame, s.also] for s in reports)))


def naive_counts(frames: list[bytes], cells: int) -> list[int]:
    """Ones per cell, bit by bit."""
    return [sum(frame[16 + j // 8] >> (j % 8) & 1 for frame in frames) for j in range(cells)]


def naive_digest(reports: list[Sent]) -> str:
    """The binding digest as docs/wire.md has it, id by id."""
    entries = sorted(s.id for s in reports)
    buckets = (b"".join(e for e in entries if e[0] == first) for first in range(256))
    return hashlib.sha256(b"".join(hashlib.sha256(bucket).digest() for bucket in buckets)).hexdigest()
