"""The one interface between the service and whatever keeps its reports.

Calls are synchronous and safe from any thread; a server keeps them off its event loop. A call that changes something
is one transaction, and durable when it returns: synced to disk, not only handed to the operating system. A call
that raises has changed nothing, except that after ``StoreUnavailable`` a change may or may not have been made, as
after any lost answer: repeat it, every change can be repeated.

Changes of state are compare and swap: they name the state they start from, and raise ``StateChanged`` if another
caller was faster. ``event`` is a body for the audit chain, which is written with the change or not at all.
Times are whole seconds since 1970 and come from the caller: a store has no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ahead_ldp.service.store import rows


class StoreError(Exception):
    """Something a store said no to. Messages hold no report, token or value."""


class StoreUnavailable(StoreError):
    """The store cannot work now: disk full, read-only, locked for too long, connection lost. Answer 503, try again."""


class KeyMissing(StoreUnavailable):
    """The key of a wave is not in the key directory: its payloads can be neither read nor added to."""


class StateChanged(StoreError):
    """A compare and swap found another state than expected; read again before deciding anew."""


class LeaseLost(StateChanged):
    """The job is not the caller's any more: its lease ran out, and another may have done it meanwhile."""


class NotFound(StoreError):
    """There is no such campaign, wave, group or job."""


class SchemaMismatch(StoreError):
    """The stored tables are of another version than this program's; ``migrate`` brings older ones up."""


class Store(Protocol):
    """Durable state of the service. Everything listed here holds for every store (tests/service/store)."""

    # The store itself

    def ping(self) -> None:
        """Return if the store can be read; else ``StoreUnavailable``."""

    def check_writable(self) -> None:
        """Return if a durable write works now; else ``StoreUnavailable``. For readiness; changes nothing visible.

        Uploads also need the keys of the open waves: one that is not there is ``KeyMissing``.
        """

    def missing_keys(self) -> list[tuple[str, int]]:
        """The open and held waves, by campaign and number, whose key is not in the key directory."""

    def epoch(self) -> int:
        """1 for a new store, one more after every restore."""

    def backup(self, path: str) -> None:
        """Write a consistent copy to a new file while everything goes on; durable on return."""

    def close(self) -> None:
        """Release everything. Calls after it raise ``StoreUnavailable``."""

    # Campaigns

    def create_campaign(self, digest: str, record: bytes, now: int, event: bytes | None = None) -> bool:
        """Keep a new campaign as a draft. False if it is there already: a digest names one record."""

    def campaigns(self) -> list[rows.CampaignRow]:
        """All campaigns, oldest first."""

    def campaign(self, digest: str) -> rows.CampaignRow:
        """One campaign; ``NotFound`` if there is none."""

    def set_campaign_state(
        self, digest: str, expected: rows.CampaignState, new: rows.CampaignState, now: int, event: bytes | None = None
    ) -> None:
        """From one state to another. FINISHED and VOID are final; both want every wave closed or void."""

    # Waves

    def open_wave(
        self,
        campaign: str,
        wave: rows.NewWave,
        now: int,
        expected: rows.CampaignState,
        event: bytes | None = None,
    ) -> None:
        """Store the questions of the next wave and open it; the campaign goes from ``expected`` to OPEN.

        The same wave again, with equal questions, changes nothing. The number must follow the last wave's, and that
        one must be closed.
        """

    def waves(self, campaign: str) -> list[rows.WaveRow]:
        """The waves of a campaign in order; none for an unknown campaign."""

    def questions(self, campaign: str, wave: int | None = None) -> list[rows.QuestionRow]:
        """The questions of a wave, or of all, by wave and in the order in which they were given."""

    def set_wave_state(
        self,
        campaign: str,
        wave: int,
        expected: rows.WaveState,
        new: rows.WaveState,
        now: int,
        note: str = "",
        event: bytes | None = None,
        *,
        lease: rows.Lease | None = None,
        hold: str | None = None,
    ) -> None:
        """OPEN to HELD, HELD to OPEN, either to VOID: its reports are deleted. CLOSED comes from ``freeze_wave``.

        Reports that are deleted here and in ``void_group`` are out at once, for every reader. Their payloads may go in
        several transactions, and what a call that raised has left goes with ``finish_deletions``.

        When this returns with HELD, no report of the wave comes or goes any more: count at leisure. With a ``lease``
        it is renewed in the same step, and nothing happens without it: ``LeaseLost``. With a ``hold`` the wave must
        be held under this note: one that was open since is ``StateChanged``.
        """

    def extend_wave(
        self, campaign: str, wave: int, closes_at: int, extensions: int, now: int, event: bytes | None = None
    ) -> None:
        """Give an open wave a new deadline; ``extensions`` is the expected number of earlier ones."""

    def void_group(
        self, campaign: str, wave: int, group: str, now: int, event: bytes | None = None, *, hold: str | None = None
    ) -> None:
        """Delete the reports of one group uncounted; it takes no more. Again: changes nothing. Not once closed.

        ``hold`` as in ``set_wave_state``.
        """

    def freeze_wave(
        self,
        campaign: str,
        wave: int,
        groups: Sequence[rows.FrozenGroup],
        now: int,
        state: rows.CampaignState,
        next_wave: rows.NewWave | None = None,
        event: bytes | None = None,
        note: str | None = None,
    ) -> bool:
        """Close a HELD wave of an OPEN campaign for good: tallies in, next wave opened, campaign to ``state``.

        One transaction. All groups of the wave are given, and every n must be the number of stored reports (0 if
        void), else ``StateChanged``; so is a ``note`` that is not the wave's any more: it was open since. Frozen
        before with equal counts: False, and nothing changes, whatever is given as next; frozen otherwise:
        ``StateChanged``.
        """

    # Reports

    def add_reports(self, batches: Sequence[rows.Batch]) -> list[bytes]:
        """Take many uploads in one transaction; one ``Outcome`` byte per report of each batch, in order.

        Durable on return. The id alone decides: of two reports with one id the first in order enters, and every
        later one gets the same outcome whatever it says. Batches that cannot enter (``insert=False``, or a question
        that takes no more) count as later. The wave's state, the look-up and the insertion are one atomic step
        against every closer and every other upload. Batches of one (campaign, wave, group) that insert must have one
        payload length.
        """

    def withdraw(self, campaign: str, report_id: bytes, now: int) -> rows.Withdrawal:
        """Delete a report while its wave is open; its id stays and cannot come back. An unknown id changes nothing."""

    def counts(self, campaign: str, wave: int) -> dict[str, int]:
        """Stored reports per group of the wave, 0 included."""

    def reports(self, campaign: str, wave: int, group: str, rows: int = 65_536) -> Iterator[rows.Chunk]:
        """The reports of one group in chunks of about ``rows``; a stable set once the wave is no longer open."""

    def delete_reports(self, campaign: str, now: int, event: bytes | None = None) -> int:
        """Delete the reports of a FINISHED or VOID campaign (retention) and say how many; the ids alone stay.

        The keys of its waves are destroyed, so that every copy of the store forgets the reports too. Many reports are
        deleted in several transactions, and uploads go on in between. A call that raised may have deleted some:
        the next one deletes the rest. The event is written once, when all are gone.
        """

    def finish_deletions(self) -> None:
        """Delete what was given up, wave or group, where whoever did it died in the middle; nothing where all is gone.

        Readers and uploads notice nothing of it: what was given up is out for them already.
        """

    # Around it

    def add_counters(self, counts: Mapping[tuple[str, int, str], int]) -> None:
        """Add to counters named by (campaign, wave, reason): refusals and the like. Not part of any upload."""

    def counters(self, campaign: str) -> dict[tuple[int, str], int]:
        """The counters of a campaign by (wave, reason)."""

    def put_document(self, campaign: str, wave: int, kind: str, body: bytes) -> None:
        """Keep a derived document (screens of a wave, say), replacing the last of its kind."""

    def change_document(self, campaign: str, wave: int, kind: str, old: bytes | None, body: bytes) -> bool:
        """Replace what was read, or none; False, and nothing is done, if another server has changed it since."""

    def document(self, campaign: str, wave: int, kind: str) -> bytes | None:
        """A derived document, if there is one."""

    def add_job(self, key: str, kind: str, args: bytes, now: int, not_before: int = 0) -> rows.Job:
        """The job of this key: a new one, unless one of this key is queued, leased or done. FAILED is queued anew."""

    def lease_job(self, now: int, seconds: int) -> rows.Job | None:
        """The oldest due job that nobody holds (or whose lease ran out), leased to the caller; None if none is."""

    def renew_job(self, number: int, lease: str, until: int) -> bool:
        """Keep a lease longer; False if it is not the caller's any more."""

    def end_job(
        self, number: int, lease: str, state: rows.JobState, result: bytes | None = None, not_before: int | None = None
    ) -> bool:
        """DONE or FAILED with a result, or QUEUED again; False if the lease is not the caller's any more."""

    def job(self, number: int) -> rows.Job:
        """One job; ``NotFound`` if there is none."""

    def jobs(self) -> list[rows.Job]:
        """All jobs, oldest first."""

    def add_role_token(self, token: rows.RoleToken, event: bytes | None = None) -> None:
        """Keep a new token, by its hash; ``StateChanged`` if hash or name is taken."""

    def role_token(self, digest: bytes) -> rows.RoleToken | None:
        """The token of this hash, revoked and expired ones too."""

    def role_tokens(self) -> list[rows.RoleToken]:
        """All tokens, oldest first."""

    def revoke_role_token(self, name: str, now: int, event: bytes | None = None) -> bool:
        """Revoke by name; False if it is unknown or revoked already."""

    def start_session(self, visit: rows.Visit, event: bytes | None = None) -> None:
        """Keep a new visit to the dashboard; those that have expired are forgotten."""

    def session(self, digest: bytes, now: int) -> rows.Visit | None:
        """The visit of this hash, unless it has expired."""

    def rotate_session(self, digest: bytes, visit: rows.Visit, until: int) -> bool:
        """Go on under a new hash; the old one holds ``until`` then. False if that was done before, or it has ended."""

    def end_session(self, family: bytes, now: int, event: bytes | None = None) -> bool:
        """End a visit under all its hashes; False if it had ended."""

    def add_event(self, body: bytes, now: int) -> rows.Event:
        """Append to the audit chain."""

    def events(self, after: int = 0, limit: int = 1_000) -> list[rows.Event]:
        """The audit chain after a number, oldest first."""
