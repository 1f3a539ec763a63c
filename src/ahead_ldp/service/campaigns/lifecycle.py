"""When a wave closes, is extended, loses its short groups, or is being counted: functions of what is stored.

What was decided, by the clock or by an operator, becomes a job with an intent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ahead_ldp.device.canonical import Record
from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import Job, JobState, WaveRow, WaveState

CLOSE, SCREENS = "close", "screens"  # kinds of a job, and of a document


class Intent(StrEnum):
    """What is to become of a wave; the text is the option that a job is stored with."""

    COUNT = ""  # if no group is below the minimum; else it goes on, and whoever asked is told
    VOID_SHORT = "void_short"  # give up groups below the minimum: past their second deadline
    FINISH = "finish"  # the same, and the campaign ends with it
    RELEASE = "release"  # count a held wave, whatever its screens said
    VOID_ALL = "void_all"  # give up the whole wave
    RESUME = "resume"  # go on where a closer died; stop no wave for it


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is due."""


@dataclass(frozen=True, slots=True)
class Extend:
    """Some group is short at the first deadline: the wave stays open until ``closes_at``."""

    closes_at: int


@dataclass(frozen=True, slots=True)
class Close:
    """The wave closes; the groups in ``void`` are short for good, and their reports are deleted uncounted."""

    void: tuple[str, ...] = ()


Action = Wait | Extend | Close


def short_groups(counts: Mapping[str, int], minimum: int) -> tuple[str, ...]:
    """The groups that have fewer reports than the campaign promises to count."""
    return tuple(sorted(group for group, n in counts.items() if n < minimum))


def due(closing: Record, minimum: int, wave: WaveRow, counts: Mapping[str, int], now: int) -> Action:
    """What is to be done with an open wave at this time.

    A wave of kind "reports" closes when every group has enough. A wave with a deadline closes there; groups below
    the minimum have it extended once, by as long as it was open, and are void the second time. A wave of kind "both"
    has both, and closes at what comes first.
    """
    if wave.state is not WaveState.OPEN:
        return Wait()
    if "reports" in closing and counts and min(counts.values()) >= closing["reports"]:
        return Close()
    if wave.closes_at is None or now < wave.closes_at:
        return Wait()
    short = short_groups(counts, minimum)
    if short and wave.extensions == 0:
        return Extend(now + max(1, wave.closes_at - wave.opened_at))
    return Close(short)


def request_closing(store: Store, now: int, campaign: str, wave: int, name: str, intent: Intent) -> Job:
    """The job that closes a wave in this way: a new one, or the one that is on its way under this name."""
    options = {intent.value: True} if intent else {}
    args = json.dumps({"campaign": campaign, "wave": wave, "options": options}).encode()
    return store.add_job(f"{name}/{campaign}/{wave}", CLOSE, args, now)


def being_counted(store: Store, campaign: str, number: int) -> bool:
    """Whether a wave that takes no more reports is being counted, and does not wait for an operator.

    The store knows both as held. What waits for an operator was counted, and its checks say so.
    """
    at_work = (JobState.QUEUED, JobState.LEASED)
    if any(job.key.endswith(f"/{campaign}/{number}") and job.state in at_work for job in store.jobs()):
        return True
    checked = store.document(campaign, number, SCREENS)
    return checked is None or not json.loads(checked)["hold"]
