"""A store in SQL tables: every call of the interface as one transaction; SQLite and PostgreSQL say how."""

# ruff: noqa: D102  (what each method promises is said in interface.py, once)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from ahead_ldp.service.store import campaigns, events, jobs, notes, role_tokens, uploads, waves
from ahead_ldp.service.store.interface import LeaseLost, NotFound
from ahead_ldp.service.store.rows import (
    ID_LENGTH,
    Batch,
    CampaignRow,
    CampaignState,
    Chunk,
    Event,
    FrozenGroup,
    Job,
    JobState,
    Lease,
    NewWave,
    QuestionRow,
    RoleToken,
    WaveRow,
    WaveState,
    Withdrawal,
)
from ahead_ldp.service.store.transactions import Transaction


class TableStore(ABC):
    """The interface ``Store`` on transactions; what each method promises is said there."""

    _SKIP_LOCKED: ClassVar[str] = ""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that is durable when its block has ended, and undone when the block raises."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one state throughout."""

    @abstractmethod
    def _erased(self) -> None:
        """Called after reports were deleted: the place to wipe what a database keeps of them."""

    def ping(self) -> None:
        with self.reading() as tx:
            tx.rows("SELECT 1")

    def check_writable(self) -> None:
        with self.writing() as tx:
            tx.change("UPDATE meta SET value = value + 1 WHERE name = 'probe'")

    def epoch(self) -> int:
        with self.reading() as tx:
            ((epoch,),) = tx.rows("SELECT value FROM meta WHERE name = 'epoch'")
        return int(epoch)

    def create_campaign(self, digest: str, record: bytes, now: int, event: bytes | None = None) -> bool:
        with self.writing() as tx:
            return campaigns.create(tx, digest, record, now, event)

    def campaigns(self) -> list[CampaignRow]:
        with self.reading() as tx:
            return campaigns.every(tx)

    def campaign(self, digest: str) -> CampaignRow:
        with self.reading() as tx:
            return campaigns.one(tx, digest)

    def set_campaign_state(
        self, digest: str, expected: CampaignState, new: CampaignState, now: int, event: bytes | None = None
    ) -> None:
        with self.writing() as tx:
            campaigns.change_state(tx, digest, expected, new, now, event)

    def open_wave(
        self, campaign: str, wave: NewWave, now: int, expected: CampaignState, event: bytes | None = None
    ) -> None:
        with self.writing() as tx:
            waves.open_next(tx, campaign, wave, now, expected, event)

    def waves(self, campaign: str) -> list[WaveRow]:
        with self.reading() as tx:
            return waves.every(tx, campaign)

    def questions(self, campaign: str, wave: int | None = None) -> list[QuestionRow]:
        with self.reading() as tx:
            return waves.questions(tx, campaign, wave)

    def set_wave_state(
        self,
        campaign: str,
        wave: int,
        expected: WaveState,
        new: WaveState,
        now: int,
        note: str = "",
        event: bytes | None = None,
        *,
        lease: Lease | None = None,
        hold: str | None = None,
    ) -> None:
        with self.writing() as tx:
            if lease is not None and not jobs.renew(tx, *lease):
                raise LeaseLost(f"expected the lease of job {lease.job}")
            waves.change_state(tx, campaign, wave, (expected, new), now, note, event, hold)
        if new == WaveState.VOID:
            self._erased()

    def extend_wave(
        self, campaign: str, wave: int, closes_at: int, extensions: int, now: int, event: bytes | None = None
    ) -> None:
        with self.writing() as tx:
            waves.extend(tx, campaign, wave, closes_at, extensions, now, event)

    def void_group(
        self, campaign: str, wave: int, group: str, now: int, event: bytes | None = None, *, hold: str | None = None
    ) -> None:
        with self.writing() as tx:
            waves.void_group(tx, campaign, wave, group, now, event, hold)
        self._erased()

    def freeze_wave(
        self,
        campaign: str,
        wave: int,
        groups: Sequence[FrozenGroup],
        now: int,
        state: CampaignState,
        next_wave: NewWave | None = None,
        event: bytes | None = None,
        note: str | None = None,
    ) -> bool:
        with self.writing() as tx:
            return waves.freeze(tx, campaign, wave, groups, now, state, next_wave, event, note)

    def add_reports(self, batches: Sequence[Batch]) -> list[bytes]:
        if not batches:
            return []
        with self.writing() as tx:
            return uploads.add(tx, batches)

    def withdraw(self, campaign: str, report_id: bytes, now: int) -> Withdrawal:
        if len(report_id) != ID_LENGTH:
            raise ValueError(f"expected an id of {ID_LENGTH} bytes")
        with self.writing() as tx:
            return uploads.withdraw(tx, campaign, report_id)

    def counts(self, campaign: str, wave: int) -> dict[str, int]:
        with self.reading() as tx:
            return waves.counts(tx, campaign, wave)

    def reports(self, campaign: str, wave: int, group: str, rows: int = 65_536) -> Iterator[Chunk]:
        found = self._read(
            "SELECT q.key FROM questions q JOIN waves w ON w.key = q.wave JOIN campaigns c ON c.key = w.campaign"
            " WHERE c.digest = ? AND w.number = ? AND q.name = ?",
            (campaign, wave, group),
        )
        if not found:
            raise NotFound("expected a known group of a known wave")
        return uploads.reports(self._read, int(found[0][0]), rows)

    def delete_reports(self, campaign: str, now: int, event: bytes | None = None) -> int:
        with self.writing() as tx:
            n = uploads.delete(tx, campaign, now, event)
        self._erased()
        return n

    def add_counters(self, counts: Mapping[tuple[str, int, str], int]) -> None:
        with self.writing() as tx:
            notes.add_counters(tx, counts)

    def counters(self, campaign: str) -> dict[tuple[int, str], int]:
        with self.reading() as tx:
            return notes.counters(tx, campaign)

    def put_document(self, campaign: str, wave: int, kind: str, body: bytes) -> None:
        with self.writing() as tx:
            notes.put_document(tx, campaign, wave, kind, body)

    def document(self, campaign: str, wave: int, kind: str) -> bytes | None:
        with self.reading() as tx:
            return notes.document(tx, campaign, wave, kind)

    def add_job(self, key: str, kind: str, args: bytes, now: int, not_before: int = 0) -> Job:
        with self.writing() as tx:
            return jobs.add(tx, key, kind, args, now, not_before)

    def lease_job(self, now: int, seconds: int) -> Job | None:
        with self.writing() as tx:
            return jobs.lease(tx, now, seconds, self._SKIP_LOCKED)

    def renew_job(self, number: int, lease: str, until: int) -> bool:
        with self.writing() as tx:
            return jobs.renew(tx, number, lease, until)

    def end_job(
        self, number: int, lease: str, state: JobState, result: bytes | None = None, not_before: int | None = None
    ) -> bool:
        with self.writing() as tx:
            return jobs.end(tx, number, lease, state, result, not_before)

    def job(self, number: int) -> Job:
        with self.reading() as tx:
            return jobs.one(tx, number)

    def jobs(self) -> list[Job]:
        with self.reading() as tx:
            return jobs.every(tx)

    def add_role_token(self, token: RoleToken, event: bytes | None = None) -> None:
        with self.writing() as tx:
            role_tokens.add(tx, token, event)

    def role_token(self, digest: bytes) -> RoleToken | None:
        with self.reading() as tx:
            return role_tokens.one(tx, digest)

    def role_tokens(self) -> list[RoleToken]:
        with self.reading() as tx:
            return role_tokens.every(tx)

    def revoke_role_token(self, name: str, now: int, event: bytes | None = None) -> bool:
        with self.writing() as tx:
            return role_tokens.revoke(tx, name, now, event)

    def add_event(self, body: bytes, now: int) -> Event:
        with self.writing() as tx:
            event = events.append(tx, body, now)
        assert event is not None
        return event

    def events(self, after: int = 0, limit: int = 1_000) -> list[Event]:
        with self.reading() as tx:
            return events.after(tx, after, limit)

    def _read(self, sql: str, parameters: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self.reading() as tx:
            return tx.rows(sql, *parameters)
