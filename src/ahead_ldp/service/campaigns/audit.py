"""An audit of a campaign from outside: everything public is fetched and computed again."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ahead_ldp.device.campaign import Campaign, wave_record
from ahead_ldp.device.canonical import canonical_bytes, check_digest, digest
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import tally_from_record
from ahead_ldp.protocol.session import Session, environment
from ahead_ldp.service.campaigns.campaign import Terms

Fetch = Callable[[str], bytes]
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was computed again: whether it matched, and what did not."""

    name: str
    matched: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Audit:
    """All checks of a campaign, in order; the first that fails ends it."""

    campaign: str
    checks: tuple[Check, ...]
    environment: str

    @property
    def matched(self) -> bool:
        """Whether everything public fits together."""
        return all(check.matched for check in self.checks)

    def record(self) -> dict[str, Any]:
        """As plain data."""
        listed = [{"check": c.name, "matched": c.matched, "detail": c.detail} for c in self.checks]
        return {
            "campaign": self.campaign,
            "matched": self.matched,
            "checks": listed,
            "environment": self.environment,
        }


class Mismatch(Exception):
    """Something public does not fit the rest."""


def audit_url(url: str) -> Audit:
    """Audit the campaign at an address such as ``https://host/v1/campaigns/DIGEST`` (or ``/c/DIGEST``)."""
    parts = urlsplit(url)
    name = parts.path.rstrip("/").rsplit("/", 1)[-1]
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("expected the http(s) address of a campaign, ending with its digest")
    campaign = check_digest(name, "the end of the address")
    base = f"{parts.scheme}://{parts.netloc}/v1/campaigns/{campaign}"
    return audit(campaign, lambda path: _get(base + path))


def audit(campaign: str, fetch: Fetch) -> Audit:
    """Audit a campaign whose public documents ``fetch`` brings, by their path below the campaign's address."""
    checks: list[Check] = []

    def check(name: str, passed: Callable[[], str]) -> bool:
        try:
            checks.append(Check(name, True, passed()))
        except (Mismatch, ValueError, KeyError, TypeError) as error:
            checks.append(Check(name, False, str(error)))
        return checks[-1].matched

    found: dict[str, Any] = {}

    def campaign_is_pinned() -> str:
        found["terms"] = Terms.of(Campaign.from_bytes(fetch(""), campaign))
        return "the record has the digest that names it, and its method exists here"

    def chain_is_whole() -> str:
        found["chain"] = json.loads(fetch("/chain"))
        if digest(found["chain"]["campaign"]) != campaign:
            raise Mismatch("the chain is of another campaign")
        return f"{len(found['chain']['waves'])} waves"

    def waves_follow() -> str:
        found["session"] = _replayed(found["terms"], found["chain"]["waves"], fetch)
        return "every question is the one that the tallies before it lead to, byte for byte"

    def minimum_is_kept() -> str:
        return _minimum(found["terms"].campaign.minimum, found["chain"]["waves"])

    def frozen_matches() -> str:
        state = json.loads(fetch("/state"))
        if not found["session"].frozen == found["chain"]["frozen"] == state["frozen"]:
            raise Mismatch("the chain's end is another than the published one")
        return found["session"].frozen

    steps = {
        "campaign": campaign_is_pinned,
        "chain": chain_is_whole,
        "questions": waves_follow,
        "minimum": minimum_is_kept,
        "frozen": frozen_matches,
    }
    for name, step in steps.items():
        if not check(name, step):
            break
    return Audit(campaign, tuple(checks), environment())


def _replayed(terms: Terms, waves: Sequence[Mapping[str, Any]], fetch: Fetch) -> Session:
    """The session that the published tallies lead to; every published question must be the recomputed one."""
    session = Session(terms.mechanism, terms.schema, terms.digest)
    for number, wave in enumerate(waves, start=1):
        if wave["number"] != number or not session.is_open:
            raise Mismatch(f"wave {wave['number']} does not follow")
        made = terms.questions(session)
        published = [group["question"] for group in wave["groups"]]
        if [canonical_bytes(q) for q in made] != [canonical_bytes(q) for q in published]:
            raise Mismatch(f"the questions of wave {number} are not the ones that follow")
        if fetch(f"/waves/{number}") != canonical_bytes(wave_record(terms.digest, number, made)):
            raise Mismatch(f"wave {number} is served with other questions")
        tallies = _tallies(wave)
        if tallies is None:
            if number < len(waves):
                raise Mismatch(f"wave {number} has no tallies, and another follows")
            break
        session.tell(tallies)
    return session


def _tallies(wave: Mapping[str, Any]) -> dict[str, Tally] | None:
    if any(group["tally"] is None for group in wave["groups"]):
        return None
    for group in wave["groups"]:
        check_digest(group["reports"], "the digest over the reports")
    return {g["group"]: tally_from_record(g["tally"], digest(g["question"])) for g in wave["groups"]}


def _minimum(minimum: int, waves: Sequence[Mapping[str, Any]]) -> str:
    counted = [g["tally"]["n"] for wave in waves for g in wave["groups"] if g["tally"] is not None]
    if any(0 < n < minimum for n in counted):
        raise Mismatch(f"a group was counted with fewer than {minimum} reports")
    void = sum(n == 0 for n in counted)
    return f"{len(counted) - void} groups counted, each with at least {minimum} reports; {void} void"


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            body: bytes = answer.read()
            return body
    except urllib.error.HTTPError as error:
        raise ValueError(f"the server answered {error.code}") from None
    except (urllib.error.URLError, TimeoutError) as error:
        raise ValueError(f"the server cannot be reached: {getattr(error, 'reason', error)}") from None
