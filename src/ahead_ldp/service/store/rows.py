"""What goes into a store and comes out of it: plain frozen values, the same for every store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

ID_LENGTH = 16
LINKS = "shares"  # the kind of the document with a campaign's links to its results
RESTORED = "restored"  # the note of a wave that was going on in a backup, and ended with its restore


class CampaignState(StrEnum):
    """Where a campaign stands; the texts are those of the wire."""

    DRAFT = "draft"
    OPEN = "open"
    REVIEW = "review"  # a wave is frozen, and the next waits for an operator
    FINISHED = "finished"
    VOID = "void"


class WaveState(StrEnum):
    """Where a wave stands. Reports come in and go out only while it is open; what is held does not move."""

    OPEN = "open"
    HELD = "held"  # being counted, or waiting for an operator: ``WaveRow.note`` says which
    CLOSED = "closed"
    VOID = "void"


class QuestionState(StrEnum):
    """Where the question of one group stands."""

    OPEN = "open"
    COUNTED = "counted"
    VOID = "void"  # its reports were deleted uncounted: n = 0


class Outcome(IntEnum):
    """What became of one report. NEW and KNOWN are accepted and durable; the others changed nothing."""

    NEW = 0
    KNOWN = 1  # this id is in already: whatever came with it now, the first report counts
    WITHDRAWN = 2  # this id was withdrawn and cannot come back
    CLOSED = 3  # unknown id, and the wave or the group takes no more reports
    UNKNOWN = 4  # unknown id of a batch with ``insert=False``: the wave is open, nothing was stored


ACCEPTED = frozenset({Outcome.NEW, Outcome.KNOWN})


class Withdrawal(StrEnum):
    """What a withdrawal did. After REMOVED and GONE the report was not counted, and never will be."""

    REMOVED = "removed"  # the report left its chunk in this call
    GONE = "gone"  # it was withdrawn before, or deleted with its group
    UNKNOWN = "unknown"  # no report of this id ever came; one that is still on its way will be taken
    TOO_LATE = "too_late"  # its wave is no longer open


Key = tuple[str, int, str, bool]  # campaign, wave, group, and whether the reports may enter: as in a ``Batch``


@dataclass(frozen=True, slots=True)
class Batch:
    """Reports to one question: ids (16 bytes each), and payloads of one length.

    With ``insert=False`` the ids are only looked up: a server asks so about frames that it would refuse, because
    a known id is accepted before anything else is checked.
    """

    campaign: str  # digest
    wave: int
    group: str
    ids: bytes
    payloads: bytes = b""
    insert: bool = True

    def __post_init__(self) -> None:
        """Both parts must speak of the same number of reports."""
        n = self.n
        if not n or len(self.ids) != n * ID_LENGTH:
            raise ValueError("expected an id of each report")
        if self.insert and (not self.payloads or len(self.payloads) % n):
            raise ValueError("expected payloads of one length")

    @property
    def n(self) -> int:
        """How many reports."""
        return len(self.ids) // ID_LENGTH


@dataclass(frozen=True, slots=True)
class Chunk:
    """Stored reports to one question, in no particular order; ``payloads`` has n rows of one length."""

    n: int
    ids: bytes
    payloads: bytes


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """A campaign: its canonical bytes never change, its state does."""

    digest: str
    record: bytes
    state: CampaignState
    created_at: int
    ended_at: int | None  # when it became finished or void: retention counts from here
    epoch: int  # the store's epoch; a restore raises it


@dataclass(frozen=True, slots=True)
class WaveRow:
    """A wave. ``closes_at`` is None when no deadline is set."""

    campaign: str
    number: int
    state: WaveState
    note: str
    opened_at: int
    closes_at: int | None
    closed_at: int | None
    extensions: int


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question to be opened: group, digest and canonical bytes."""

    group: str
    digest: str
    record: bytes


@dataclass(frozen=True, slots=True)
class NewWave:
    """A wave to be opened."""

    number: int
    questions: tuple[NewQuestion, ...]
    closes_at: int | None = None


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A stored question of a wave. The last three are None until its wave is frozen."""

    wave: int
    group: str
    digest: str
    record: bytes
    state: QuestionState
    n: int | None
    tally: bytes | None
    reports_digest: str | None


@dataclass(frozen=True, slots=True)
class FrozenGroup:
    """The count of one group: the tally's canonical bytes, n, and the digest over its ids (``reports_digest``)."""

    group: str
    n: int
    tally: bytes
    reports_digest: str


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """Work to be done at least once. Whoever holds ``lease`` until ``lease_until`` works on it."""

    number: int
    key: str
    kind: str
    args: bytes
    state: JobState
    attempts: int
    lease: str | None
    lease_until: int | None
    result: bytes | None
    created_at: int
    not_before: int


class Lease(NamedTuple):
    """A worker's hold on a job, and until when it is to be kept."""

    job: int
    lease: str
    until: int


@dataclass(frozen=True, slots=True)
class RoleToken:
    """A bearer token of an operator or analyst, by the SHA-256 of its text; the text itself is nowhere."""

    digest: bytes
    role: str
    name: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit to the dashboard under one of its ids, by the SHA-256 of the id."""

    digest: bytes
    family: bytes  # the same under all ids of one visit
    token: bytes  # the digest of the role token that it was opened with
    started_at: int
    made_at: int  # when this id was made
    expires_at: int


@dataclass(frozen=True, slots=True)
class Event:
    """One link of the audit chain: digest = SHA-256 of previous digest, time (8 bytes, big-endian) and body."""

    number: int
    at: int
    body: bytes
    digest: str
