"""Golden campaigns for upgrades: a store with every method in the middle of a campaign, and how each of them ended.

    python -m tools.golden_upgrades tests/golden/LABEL/upgrades [METHOD ...]

Without names, all methods. Run it with the program whose campaigns are to be kept (PYTHONPATH names its source). What
people sent after the middle is kept as bytes, so that another program can be held to the same questions after the same
reports.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import ahead_ldp
from ahead_ldp.device.campaign import Campaign, check_wave
from ahead_ldp.device.frames import encode_batch
from ahead_ldp.device.question import Policy
from tools import golden

PEOPLE = 120  # of a wave, and half as many once more in its middle
ATTRIBUTES = ["age=integer,0,15", "pay=integer,0,7"]
DRAFT = {"purpose": "to be finished by another program", "controller": "The golden files",
         "contact": "nobody@example.org", "created": "2021-11-15", "minimum": 1, "closing": {"kind": "manual"},
         "retention_days": 36_500, "epsilon": "2", "users": 1000}  # fmt: skip


def methods() -> list[str]:
    """Every method that asks somebody."""
    return sorted(set(ahead_ldp.MECHANISMS) - {"uni"})


def opened(server: golden.Process, method: str) -> str:
    """A campaign of a method with its first wave open."""
    few = ahead_ldp.MECHANISMS[method].most_attributes == 1
    draft = {**DRAFT, "title": method, "method": {"name": method}, "attributes": ATTRIBUTES[: 1 if few else 2]}
    campaign = str(server.post("/campaigns", draft)["campaign"])
    server.read(f"/campaigns/{campaign}/open", b"")
    return campaign


def uploads(server: golden.Process, campaign: str, wave: int, n: int, rng: np.random.Generator) -> list[bytes]:
    """What n people send to a wave, a batch for each group; every group has at least two of them."""
    record = Campaign.from_bytes(server.read(f"/campaigns/{campaign}"), campaign)
    questions = check_wave(server.read(f"/campaigns/{campaign}/waves/{wave}"), record, wave, Policy("4"))
    shares = {group: share for group, share in record.groups if group in questions}
    weights = np.array(list(shares.values()), float)
    members = 2 + rng.multinomial(n, weights / weights.sum())
    bodies = []
    for (group, _), count in zip(shares.items(), members.tolist(), strict=True):
        age, pay = np.minimum(rng.poisson(6, count), 15), rng.integers(0, 8, count)
        people = [{"age": int(a), "pay": int(p)} for a, p in zip(age, pay, strict=True)]
        question = questions[group]
        bodies.append(encode_batch(question.header, (question.report(person) for person in people)))
    return bodies


def send(server: golden.Process, campaign: str, bodies: list[bytes]) -> int:
    """How many reports were accepted."""
    return sum(json.loads(server.read(f"/campaigns/{campaign}/reports", body))["accepted"] for body in bodies)


def to_the_middle(server: golden.Process, campaign: str, rng: np.random.Generator) -> int:
    """The first wave closed if another follows it, and some reports to the open one; how many there are by now."""
    sent = send(server, campaign, uploads(server, campaign, 1, PEOPLE // 2, rng))
    groups, asked = server.get(f"/campaigns/{campaign}")["groups"], server.get(f"/campaigns/{campaign}/waves/1")
    if len(asked["questions"]) < len(groups):  # a group answers once: some are asked later
        server.close(campaign, 1)
        sent += send(server, campaign, uploads(server, campaign, 2, PEOPLE // 2, rng))
    return sent


def to_the_end(server: golden.Process, campaign: str, rng: np.random.Generator) -> Mapping[str, Any]:
    """All further waves: what was sent to them, and how the campaign ended."""
    rest = []
    while (state := server.get(f"/campaigns/{campaign}/state"))["state"] == "open":
        bodies = uploads(server, campaign, state["wave"], PEOPLE, rng)
        send(server, campaign, bodies)
        server.close(campaign, state["wave"])
        rest.append({"wave": state["wave"], "uploads": [base64.b64encode(body).decode() for body in bodies]})
    found = {path: server.get(f"/campaigns/{campaign}{path}") for path in ("/chain", "/results", "/tallies")}
    return {"rest": rest, "chain": found["/chain"], "results": found["/results"], "tallies": found["/tallies"]}


def write(folder: Path, named: list[str]) -> None:
    """A new folder with the store and what came of its campaigns, of the named methods or of all."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(17)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        with golden.serving(scratch, "store.db") as server:
            token = server.token
            campaigns = {method: opened(server, method) for method in named or methods()}
            sent = {method: to_the_middle(server, campaign, rng) for method, campaign in campaigns.items()}
        golden.pack(folder / "middle.tar.gz", scratch, "store.db", "keys")
        with golden.serving(scratch, "store.db", token) as server:
            ended = {method: to_the_end(server, campaign, rng) for method, campaign in campaigns.items()}
    about = {m: {"campaign": campaigns[m], "sent": sent[m], **ended[m]} for m in campaigns}
    golden.write_json(folder / "campaigns.json.gz", about)


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:])
