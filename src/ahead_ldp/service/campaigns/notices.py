"""What an operator is told of when nobody looks: a round was counted, is on hold, got more time, or was the last.

A notice is a job of the store, one for each channel. So it survives a restart, is sent by one process, and is tried
again until it arrives or was tried often enough. It says what happened. It has no results and no token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import CampaignState, Job, WaveState

NOTIFY = "notify"  # kind of a job
MOST_ATTEMPTS = 12
_FIRST_WAIT_S, _LONGEST_WAIT_S = 30, 3600

SENTENCES = {
    "round_counted": "A round was counted. The results so far can be read.",
    "round_on_hold": "A round is on hold, because its answers look unusual. Count it, or leave it out.",
    "round_given_more_time": "A round was to close, and some group had too few answers. It was given more time, once.",
    "waiting_for_you": "A round was counted, and the next one waits for you to open it.",
    "campaign_finished": "The campaign is finished. The results can be read.",
}


class NotDelivered(Exception):
    """A channel did not take a notice; its text is a reason that may be logged."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened to a campaign. ``key`` is the same for every attempt, so a receiver can tell repetitions."""

    key: str
    what: str
    campaign: str
    round: int
    at: int

    @property
    def sentence(self) -> str:
        """What happened, and what to do."""
        return SENTENCES[self.what]


Channel = Callable[[Notice], None]  # delivers, or raises NotDelivered


def what_closing_means(wave: WaveState, campaign: CampaignState) -> str | None:
    """What is told after a round was closed or held; None if there is nothing to tell."""
    if wave is WaveState.HELD:
        return "round_on_hold"
    if wave is not WaveState.CLOSED:
        return None
    return {CampaignState.FINISHED: "campaign_finished", CampaignState.REVIEW: "waiting_for_you"}.get(
        campaign, "round_counted"
    )


def announce(
    store: Store, channels: Iterable[str], what: str, campaign: str, wave: int, now: int, again: int = 0
) -> None:
    """Queue a notice for every channel, once: ``again`` tells apart what can happen to a round more than once."""
    for channel in channels:
        key = f"{NOTIFY}/{channel}/{what}/{again}/{campaign}/{wave}/told"
        args = {"channel": channel, "what": what, "campaign": campaign, "wave": wave, "at": now}
        store.add_job(key, NOTIFY, json.dumps(args).encode(), now)


def deliver(job: Job, channels: Mapping[str, Channel]) -> None:
    """Hand a queued notice to its channel; ``NotDelivered`` if that does not take it, or is no longer set up."""
    args = json.loads(job.args)
    if args["channel"] not in channels:
        raise NotDelivered("channel_gone")
    notice = Notice(job.key, args["what"], args["campaign"], args["wave"], args["at"])
    channels[args["channel"]](notice)


def wait_s(attempts: int) -> int:
    """How long to wait after so many attempts: longer and longer."""
    return int(min(_FIRST_WAIT_S * 2 ** max(attempts - 1, 0), _LONGEST_WAIT_S))
