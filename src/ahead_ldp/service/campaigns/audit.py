"""An audit of a campaign from outside: everything public is fetched and computed again."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_STEPS = ("campaign", "chain", "questions", "minimum", "frozen")


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
        named = {"campaign": self.campaign, "matched": self.matched, "checks": listed}
        return {**named, "environment": self.environment}


class Mismatch(Exception):
    """Something public does not fit the rest."""


def audit_url(url: str) -> Audit:
    """Audit the campaign at an address such as ``https://host/v1/campaigns/DIGEST`` (or ``/c/DIGEST``).

    A server that cannot be reached is a ``ConnectionError``: nothing is known of its campaign then.
    """
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
    try:
        for name, detail in zip(_STEPS, _steps(campaign, fetch), strict=True):
            checks.append(Check(name, True, detail))
    except (Mismatch, ValueError, KeyError, TypeError) as error:
        checks.append(Check(_STEPS[len(checks)], False, str(error)))
    return Audit(campaign, tuple(checks), environment())


def _steps(campaign: str, fetch: Fetch) -> Iterator[str]:
    """What is computed again, a step after the other; each says what is so, or raises."""
    terms = Terms.of(Campaign.from_bytes(fetch(""), campaign))
    yield "the record has the digest that names it, and its method exists here"
    chain = json.loads(fetch("/chain"))
    if digest(chain["campaign"]) != campaign:
        raise Mismatch("the chain is of another campaign")
    yield f"{len(chain['waves'])} waves"
    session = _replayed(terms, chain["waves"], fetch)
    yield "every question is the one that the tallies before it lead to, byte for byte"
    yield _minimum(terms.campaign.minimum, chain["waves"])
    if not session.frozen == chain["frozen"] == json.loads(fetch("/state"))["frozen"]:
        raise Mismatch("the chain's end is another than the published one")
    yield session.frozen


def _replayed(terms: Terms, waves: Sequence[Mapping[str, Any]], fetch: Fetch) -> Session:
    """The session that the published tallies lead to; every published question must be the recomputed one."""
    session = Session(terms.mechanism, terms.schema, terms.digest)
    for number, wave in enumerate(waves, start=1):
        if wave["number"] != number or not session.is_open:
            raise Mismatch(f"wave {wave['number']} does not follow")
        questions = terms.questions(session)
        published = [group["question"] for group in wave["groups"]]
        if [canonical_bytes(q) for q in questions] != [canonical_bytes(q) for q in published]:
            raise Mismatch(f"the questions of wave {number} are not the ones that follow")
        if fetch(f"/waves/{number}") != canonical_bytes(wave_record(terms.digest, number, questions)):
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
        check_digest(group["reports"], "the digest over the ids counted")
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
            return answer.read()
    except urllib.error.HTTPError as error:
        raise ValueError(f"the server answered {error.code}") from None
    except (urllib.error.URLError, TimeoutError) as error:  # no check has failed: there is nothing to compare
        raise ConnectionError(f"the server cannot be reached: {getattr(error, 'reason', error)}") from None
