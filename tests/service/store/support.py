"""Small campaigns and reports for the tests of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ahead_ldp.service.store import (
    Batch,
    CampaignState,
    FrozenGroup,
    NewQuestion,
    NewWave,
    Outcome,
    Store,
    WaveState,
    reports_digest,
)

CAMPAIGN = hashlib.sha256(b"campaign").hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()
GROUPS = ("coarse", "fine")
LENGTH = 8  # bytes of a payload
NEW, KNOWN, WITHDRAWN, CLOSED, UNKNOWN = Outcome


def new_wave(number: int = 1, groups: Iterable[str] = GROUPS, closes_at: int | None = None) -> NewWave:
    """Questions that are told apart by wave and group."""
    records = {group: f"question {number} {group}".encode() for group in groups}
    questions = tuple(NewQuestion(g, hashlib.sha256(r).hexdigest(), r) for g, r in records.items())
    return NewWave(number, questions, closes_at)


def open_campaign(store: Store, campaign: str = CAMPAIGN, groups: Iterable[str] = GROUPS) -> None:
    """A campaign with its first wave open."""
    store.create_campaign(campaign, campaign.encode(), 100)
    store.open_wave(campaign, new_wave(1, groups), 101, CampaignState.DRAFT)


def report(name: object, change: int = 0) -> tuple[bytes, bytes]:
    """Id and payload of the report of this name; with ``change`` other bytes under the same id."""
    report_id = hashlib.sha256(f"id {name}".encode()).digest()[:16]
    payload = hashlib.sha256(f"payload {name} {change}".encode()).digest()[:LENGTH]
    return report_id, payload


def batch(
    names: Iterable[object],
    group: str = GROUPS[0],
    wave: int = 1,
    campaign: str = CAMPAIGN,
    change: int = 0,
    insert: bool = True,
) -> Batch:
    """A batch of the reports of these names."""
    ids, payloads = zip(*(report(name, change) for name in names), strict=True)
    return Batch(campaign, wave, group, b"".join(ids), b"".join(payloads), insert)


def stored(store: Store, group: str = GROUPS[0], wave: int = 1, campaign: str = CAMPAIGN, rows: int = 7) -> set[bytes]:
    """The frames of a group; ids are checked to be unique."""
    frames: list[bytes] = []
    for chunk in store.reports(campaign, wave, group, rows):
        for i in range(chunk.n):
            parts = ((chunk.ids, 16), (chunk.payloads, LENGTH))
            frames.append(b"".join(part[i * size : (i + 1) * size] for part, size in parts))
    assert len({frame[:16] for frame in frames}) == len(frames)
    return set(frames)


def frames(names: Iterable[object], change: int = 0) -> set[bytes]:
    """What ``stored`` says when exactly these are in."""
    return {i + p for i, p in (report(name, change) for name in names)}


def count(store: Store, wave: int = 1, campaign: str = CAMPAIGN) -> list[FrozenGroup]:
    """A count of every group, with the n of the reports as they are read."""
    made = []
    for group in store.counts(campaign, wave):
        chunks = list(store.reports(campaign, wave, group))
        n = sum(chunk.n for chunk in chunks)
        made.append(FrozenGroup(group, n, f"tally {wave} {group} {n}".encode(), reports_digest(c.ids for c in chunks)))
    return made


def hold(store: Store, wave: int = 1, campaign: str = CAMPAIGN) -> None:
    """No report of the wave comes or goes any more."""
    store.set_wave_state(campaign, wave, WaveState.OPEN, WaveState.HELD, 200, "closing")


def close(store: Store, wave: int = 1, campaign: str = CAMPAIGN, last: bool = False) -> bool:
    """Hold, count and freeze a wave, and open the next."""
    hold(store, wave, campaign)
    state = CampaignState.FINISHED if last else CampaignState.OPEN
    return store.freeze_wave(
        campaign, wave, count(store, wave, campaign), 201, state, None if last else new_wave(wave + 1)
    )
