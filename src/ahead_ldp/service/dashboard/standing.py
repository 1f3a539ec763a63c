"""Where a campaign stands, in words: how far it is, how long it may take, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ahead_ldp.protocol.session import Session
from ahead_ldp.service.campaigns.campaign import Terms

STATES = {"draft": "draft", "open": "open", "review": "waiting for you", "finished": "finished", "void": "given up"}
_HELD = [
    "This round is on hold: its answers are not what honest devices would send.",
    "Somebody may have sent made-up answers, or a program may be at fault. Chance alone hardly ever does this.",
    "Nobody can answer while it is on hold.",
]
_COUNTING = "This round takes no more answers. They are being counted."
_ENOUGH_TO_SAY = 20  # answers before a rate means something
_MOST_ROUNDS = 200
_STAND_INS = 1000  # people of a made-up group


def standing(
    terms: Terms,
    state: Mapping[str, Any],
    progress: Mapping[str, Any],
    people: int,
    now: int,
    rounds: int | None = None,
) -> dict[str, Any]:
    """The headline, the facts and the next step of a campaign."""
    record, number = terms.campaign.record, int(progress["wave"])
    groups, closing = progress["groups"], record["closing"]
    target = closing.get("reports", record["minimum"])
    moving = [g for g in groups if g["state"] == "open"]
    needed = _needed(terms, moving, target) if progress["state"] == "open" else 0
    opened = next((w["opened_at"] for w in state["waves"] if w["number"] == number), now)
    over = progress["state"] in ("finished", "void")
    facts = [_answered(people, over)] if number else []
    if progress["counting"]:
        facts.append(_COUNTING)
    elif progress["held"]:
        facts += _HELD
    elif progress["state"] == "open":
        facts += _facts(
            people, needed, target, moving, int(progress["reports"]), now - opened, progress["closes_at"], now
        )
    return {
        "headline": _headline(progress["state"], number, rounds),
        "facts": facts,
        "next": _next_step(progress, needed, closing["kind"]),
        "state": said_of(progress),
        "enough": progress["state"] == "open" and needed <= 0,
    }


def said_of(progress: Mapping[str, Any]) -> str:
    """The state of a campaign in a word or two."""
    if progress["counting"]:
        return "counting"
    return "on hold" if progress["held"] else STATES[progress["state"]]


def _answered(people: int, over: bool) -> str:
    if people == 0:
        return "Nobody answered." if over else "Nobody has answered yet."
    who, have = ("One person", "has") if people == 1 else (f"{people:,} people", "have")
    return f"{who} answered." if over else f"{who} {have} answered so far."


def _headline(state: str, number: int, rounds: int | None) -> str:
    if state == "draft":
        return "Not open yet"
    if state in ("finished", "void"):
        return "This campaign is over"
    said = f"Round {number}" if rounds is None or rounds < number else f"Round {number} of {rounds}"
    return f"{said} is counted" if state == "review" else said


def _needed(terms: Terms, moving: Sequence[Mapping[str, Any]], target: int) -> int:
    """People who should still come for every group to have enough, as chance divides them."""
    shares = dict(terms.campaign.groups)
    total = sum(shares[g["group"]] for g in moving)
    return max((math.ceil((target - g["reports"]) * total / shares[g["group"]]) for g in moving), default=0)


def _facts(
    people: int,
    needed: int,
    target: int,
    moving: Sequence[Any],
    reports: int,
    open_s: int,
    closes_at: int | None,
    now: int,
) -> list[str]:
    said = [f"{reports:,} of them in this round."] * (reports < people)
    if needed > 0:
        short = sum(g["reports"] < target for g in moving)
        groups = "group still needs" if short == 1 else "groups still need"
        said.append(f"About {needed:,} more should come: {short} {groups} answers.")
        if reports >= _ENOUGH_TO_SAY and open_s > 0:
            said.append(f"At this pace that takes about {_span(needed * open_s / reports)}.")
    else:
        said.append("Every group has the answers it needs.")
    if closes_at is not None:
        said.append(f"The round closes by itself in {_span(max(closes_at - now, 0))}.")
    return said


def _span(seconds: float) -> str:
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = math.ceil(seconds / size - 0.25)
            return f"{count:,} {name}{'' if count == 1 else 's'}"
    return "a minute"


def _next_step(progress: Mapping[str, Any], needed: int, closing: str) -> str:
    state = progress["state"]
    if progress["counting"]:
        return "Wait a moment. This page goes on by itself."
    if progress["held"]:
        return "Look at Checks. Then count the round as it is, or leave it out. Nothing goes on until you decide."
    if state == "open" and needed > 0:
        return "Invite people: give them the link or the code on this page."
    if state == "open":
        close = (
            "Close the round when you like." if closing in ("manual", "deadline") else "The round closes by itself now."
        )
        return f"There is enough for this round. {close}"
    return {
        "draft": "Try it with made-up people, and look at the results. Then open the campaign.",
        "review": "Look at the results so far. Then open the next round, or finish here.",
        "finished": "Read the results, and show them to others.",
        "void": "There is nothing to do." + " The answers were deleted." * bool(progress["wave"]),
    }[state]


def rounds_of(terms: Terms) -> int | None:
    """How many rounds a campaign will have, from a run on made-up even answers; None where that cannot be told."""
    rng = np.random.default_rng(0)
    try:
        session = Session(terms.mechanism, terms.schema, terms.digest)
        while session.is_open and session.number <= _MOST_ROUNDS:
            tallies = {
                group: q.oracle.simulate(np.full(q.oracle.d, max(_STAND_INS // q.oracle.d, 1)), rng)
                for group, q in session.wave.items()
            }
            session.tell(tallies)
        return len(session.history)
    except Exception:  # a method that this program does not have as it was, or that cannot use even answers
        return None
