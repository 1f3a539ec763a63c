"""The synthetic people of `ahead demo`, and how they answer a server."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from ahead_ldp.cli.remote import Remote
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.mechanisms import mechanism_from_record
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Ints
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.coding import encode
from ahead_ldp.service.client import HttpTransport, OwnerPolicy, privacy_sentence
from ahead_ldp.service.client.crowd import Crowd, Visits
from ahead_ldp.service.client.fleet import FleetReport, run_fleet_async
from ahead_ldp.service.client.views import fetch_campaign

TOP = 160_000
ATTRIBUTE = f"salary=integer,0,{TOP - 1},64"
SCHEMA = as_schema(ATTRIBUTE)
RANGES = [(0, 19_999), (20_000, 39_999), (30_000, 49_999), (40_000, 59_999), (60_000, 99_999), (100_000, TOP - 1)]
QUERIES = [f"salary in {lo}..{hi}" for lo, hi in RANGES]
BATCH, CONNECTIONS = 100, 8


def synthetic_salaries(n: int, rng: Generator | int = 2021) -> Ints:
    """Log-normal salaries, one in five rounded to a multiple of 10,000, none above the declared maximum."""
    rng = np.random.default_rng(rng)
    exact = rng.lognormal(mean=np.log(38_000), sigma=0.5, size=n)
    rounded = np.where(rng.random(n) < 0.2, np.round(exact, -4), exact)
    return np.minimum(rounded, TOP - 1).astype(np.int64)


def histogram(salaries: Ints) -> Ints:
    """How many people have each code."""
    return np.bincount(encode(SCHEMA, [salaries])[:, 0], minlength=SCHEMA.sizes[0])


def draft(people: int, epsilon: str, method: str | None, enrolment: str) -> dict[str, Any]:
    """The campaign, as an operator would write it."""
    return {
        "title": "Salaries in Sampletown",
        "purpose": "to know how salaries are spread, without knowing anybody's",
        "controller": "The demonstration",
        "contact": "nobody@example.org",
        "attributes": [ATTRIBUTE],
        "epsilon": epsilon,
        "method": None if method is None else {"name": method},
        "users": people,
        "minimum": 20,
        "closing": {"kind": "manual"},
        "enrolment": enrolment,
    }


def introduce(url: str, digest: str) -> Campaign:
    """The campaign as the people get it, said in a line or two."""
    campaign = fetch_campaign(HttpTransport(url), digest)
    groups = len(campaign.groups)
    method = f"method {campaign.record['method']['name']} with {groups} group{'s' if groups > 1 else ''}"
    print(f"A server listens at {url}. Campaign {digest[:16]}..., {campaign.enrolment.replace('_', '-')}, {method}.")
    print(privacy_sentence(campaign.epsilon) + "\n")
    return campaign


def answer(operator: Remote, campaign: Campaign, salaries: Ints) -> FleetReport:
    """Everybody answers: a walk-in's visitors when they come, a panel's members when their group is asked."""
    people = encode(SCHEMA, [salaries]).tolist()
    crowd = Crowd(campaign, people, OwnerPolicy(campaign.epsilon))
    visits = Visits.draw(len(people), _weights(campaign), returning=int(campaign.enrolment == "panel"))

    def close(number: int) -> None:
        """Close a wave, and say what was asked and counted."""
        path = f"/campaigns/{campaign.digest}"
        asked = operator.get(f"{path}/waves/{number}")["questions"]
        counted = operator.post(f"{path}/waves/{number}/close?wait=60")
        if counted["state"] != "done":
            raise RuntimeError(f"expected wave {number} to close, got {counted['state']}")
        groups = [g for w in operator.get(f"{path}/chain")["waves"] if w["number"] == number for g in w["groups"]]
        cells = sorted({q["oracle"]["cells"] for q in asked})
        sizes = f"{cells[0]}" if len(cells) == 1 else f"{cells[0]} to {cells[-1]}"
        print(f"  wave {number}: {sum(g['tally']['n'] for g in groups):7,} reports on {sizes} cells, closed and frozen")

    return run_fleet_async(operator.server, crowd, visits, close, batch=BATCH, connections=CONNECTIONS)


def _weights(campaign: Campaign) -> list[int]:
    """How many people each wave needs, by the shares of its groups: as the method would ask an even population."""
    session = Session(mechanism_from_record(campaign.record["method"]), campaign.schema, campaign.digest)
    shares, weights, rng = dict(campaign.groups), [], np.random.default_rng(1)
    while session.is_open:
        weights.append(sum(shares[group] for group in session.wave))
        session.tell({g: q.oracle.simulate(np.full(q.oracle.d, 1000), rng) for g, q in session.wave.items()})
    return weights
