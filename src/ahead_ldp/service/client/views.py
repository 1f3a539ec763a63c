"""What a server shows: campaign, state and wave, each checked before anything private is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.canonical import check_digest
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.service.client.transport import Answer, Transport, Unreachable

_STATES = ("draft", "open", "review", "finished", "void")


@dataclass(frozen=True, slots=True)
class CampaignState:
    """Which wave is open, if one is, and until when."""

    state: str
    open_wave: int | None = None
    closes_at: int | None = None

    @property
    def over(self) -> bool:
        """Whether nothing will be asked any more."""
        return self.state in ("finished", "void")


def fetch_campaign(transport: Transport, digest: str) -> Campaign:
    """The pinned campaign; any other bytes are refused."""
    body = _get(transport, f"/v1/campaigns/{check_digest(digest, 'campaign')}").body
    try:
        return Campaign.from_bytes(body, pinned=digest)
    except ValueError as error:
        raise QuestionRefused(str(error)) from None


def fetch_state(transport: Transport, digest: str) -> CampaignState:
    """What is open now."""
    shown = read_json(_get(transport, f"/v1/campaigns/{digest}/state"))
    state, number, waves = shown.get("state"), shown.get("wave"), shown.get("waves")
    if state not in _STATES or not isinstance(waves, list):
        raise QuestionRefused("expected the state of a campaign")
    if state != "open" or number is None:
        return CampaignState(state)
    last = [w for w in waves if isinstance(w, dict) and w.get("number") == number]
    if type(number) is not int or not 1 <= number <= 10_000 or len(last) != 1:
        raise QuestionRefused("expected the state to list the wave that it names")
    closes_at = last[0].get("closes_at")
    if last[0].get("state") != "open":
        return CampaignState(state)
    return CampaignState(state, number, closes_at if type(closes_at) is int else None)


def fetch_wave(transport: Transport, campaign: Campaign, number: int) -> bytes:
    """The bytes of a wave, not yet checked."""
    return _get(transport, f"/v1/campaigns/{campaign.digest}/waves/{number}").body


def same_at_mirror(mirror: Transport | None, path: str, data: bytes) -> None:
    """Refuse unless a second way to the campaign, where there is one, shows the same bytes."""
    if mirror is None:
        return
    try:
        other = mirror.request("GET", path)
    except Unreachable:
        raise QuestionRefused("the mirror cannot be reached") from None
    if other.status != 200 or other.body != data:
        raise QuestionRefused("the mirror shows something else")


def read_json(answer: Answer) -> Mapping[str, Any]:
    """The object in an answer's body."""
    try:
        record = json.loads(answer.body)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise Unreachable("the server's answer is no JSON object")
    return record


def _get(transport: Transport, path: str) -> Answer:
    answer = transport.request("GET", path)
    if answer.status != 200:
        raise Unreachable(f"the server answered {answer.status}")
    return answer
