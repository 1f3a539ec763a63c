"""The demonstration: a collection server, many people answering it over HTTP, and what can be said about them.

Everything is what a real campaign uses: the server with its SQLite store, the waves, the clients' checks and noise, the
audit. Only the people are synthetic, and relays send their reports in batches. Run it with ``make demo`` or
``python -m ahead_ldp.cli.demo``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from ahead_ldp.cli.remote import Remote
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.engines.archive import estimate_from_record
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import mechanism_from_record
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.plots import plot_answers, plot_estimate, plot_tree
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Ints
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.coding import encode
from ahead_ldp.service.campaigns.audit import audit_url
from ahead_ldp.service.campaigns.logs import LOGGER
from ahead_ldp.service.client import HttpTransport, OwnerPolicy, privacy_sentence
from ahead_ldp.service.client.crowd import Crowd, Visits
from ahead_ldp.service.client.fleet import FleetReport, run_fleet_async
from ahead_ldp.service.client.views import fetch_campaign
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.embedded import start
from ahead_ldp.service.store import open_store

PEOPLE = 100_000
FEWEST = 1000
EPSILON = 2.0
TOP = 160_000
ATTRIBUTE = f"salary=integer,0,{TOP - 1},64"
SCHEMA = as_schema(ATTRIBUTE)
RANGES = [(0, 19_999), (20_000, 39_999), (30_000, 49_999), (40_000, 59_999), (60_000, 99_999), (100_000, TOP - 1)]
QUERIES = [f"salary in {lo}..{hi}" for lo, hi in RANGES]
BATCH, CONNECTIONS = 100, 8

YOUR_OWN = """\
With your own people:
  ahead serve --init                              the server; prints the first operator's token
  ahead campaign create campaign.toml             who asks what, why and until when; prints the digest
  ahead campaign open DIGEST                      the first wave
  ahead respond https://... DIGEST                what each person runs: checks, consent, then the answer
  ahead campaign close DIGEST                     or by a number of reports, or by a deadline
  ahead campaign query DIGEST "salary in 0..19999"
docs/campaigns.md has the whole story, docs/client.md the people's side."""


def synthetic_salaries(n: int, rng: Generator) -> Ints:
    """Log-normal salaries, one in five rounded to a multiple of 10,000, none above the declared maximum."""
    exact = rng.lognormal(mean=np.log(38_000), sigma=0.5, size=n)
    rounded = np.where(rng.random(n) < 0.2, np.round(exact, -4), exact)
    return np.minimum(rounded, TOP - 1).astype(np.int64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve, collect over HTTP, audit, print a table beside the truth, and draw."""
    options = _options(arguments)
    epsilon = epsilon_text(options.epsilon)
    if options.people < FEWEST:
        raise ValueError(f"expected at least {FEWEST} people, got {options.people}")
    salaries = synthetic_salaries(options.people, np.random.default_rng(2021))
    print(f"Synthetic salaries, log-normal with heaping, {options.people:,} people.")
    LOGGER.setLevel("WARNING")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/demo.db")
        try:
            with start(store, Settings(port=0, closer_interval_s=0.2)) as server:
                server.app.pages = make_pages(server.service)
                tokens = {role: server.service.add_token(role, role) for role in ("operator", "analyst")}
                name, estimate = _campaign(server.url, tokens, salaries, epsilon, options)
                _answers(estimate, salaries, options.out)
                print(f"\n{YOUR_OWN}")
                _dashboard(f"{server.url}/campaigns/{name}/results", tokens["analyst"], options.keep)
        finally:
            store.close()


def _dashboard(address: str, token: str, keep: bool) -> None:
    """Where the results can be looked at; with ``keep`` the server stays until Ctrl-C."""
    if not keep:
        print(f"\nThe dashboard of this campaign was at {address}")
        print("To look at it in a browser: make demo KEEP=1, or python -m ahead_ldp.cli.demo --keep")
        return
    print(f"\nThe dashboard: {address}\nSign in with this analyst's token: {token}\nCtrl-C stops it.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        _stay(address, token)


def _stay(address: str, token: str) -> None:
    """Until somebody presses Ctrl-C."""
    del address, token
    threading.Event().wait()


def _campaign(
    url: str, tokens: dict[str, str], salaries: Ints, epsilon: str, options: argparse.Namespace
) -> tuple[str, Estimate]:
    """One campaign from its creation to its results, every step over HTTP."""
    operator, analyst = Remote(url, tokens["operator"]), Remote(url, tokens["analyst"])
    name = operator.post("/campaigns", _draft(epsilon, options))["campaign"]
    operator.post(f"/campaigns/{name}/open")
    campaign = fetch_campaign(HttpTransport(url), name)
    enrolment = options.enrolment.replace("_", "-")
    print(f"A server listens at {url}. Campaign {name[:16]}..., {enrolment}, {_method(campaign)}.")
    print(privacy_sentence(campaign.epsilon) + "\n")
    started = time.perf_counter()
    report = _collect(url, operator, campaign, salaries)
    seconds = time.perf_counter() - started
    print(
        f"{report}.\n{report.uploads:,} uploads in {seconds:.1f} s: {CONNECTIONS} relays send batches of {BATCH}"
        " reports, and each is on disk before it is acknowledged.\n"
    )
    audit = audit_url(f"{url}/v1/campaigns/{name}")
    matched = sum(check.matched for check in audit.checks)
    print(f"Audit of the public chain: {matched} of {len(audit.checks)} checks matched.")
    results = analyst.get(f"/campaigns/{name}/results")
    worst = max((s["z"] for wave in results["screens"] for s in wave["screens"]), default=0.0)
    print(f"Screens for manipulated reports: the largest is {worst:.1f} standard deviations.\n")
    return name, estimate_from_record(json.loads(analyst.read(f"/campaigns/{name}/tallies")))


def _draft(epsilon: str, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "title": "Salaries in Sampletown",
        "purpose": "to know how salaries are spread, without knowing anybody's",
        "controller": "The demonstration",
        "contact": "nobody@example.org",
        "attributes": [ATTRIBUTE],
        "epsilon": epsilon,
        "method": None if options.method is None else {"name": options.method},
        "users": options.people,
        "minimum": 20,
        "closing": {"kind": "manual"},
        "enrolment": options.enrolment,
    }


def _collect(url: str, operator: Remote, campaign: Campaign, salaries: Ints) -> FleetReport:
    """Everybody answers: a walk-in's visitors when they come, a panel's members when their group is asked."""
    people = encode(SCHEMA, [salaries]).tolist()
    crowd = Crowd(campaign, people, OwnerPolicy(campaign.epsilon))
    visits = Visits.draw(len(people), _weights(campaign), returning=int(campaign.enrolment == "panel"))

    def close(number: int) -> None:
        path = f"/campaigns/{campaign.digest}"
        asked = operator.get(f"{path}/waves/{number}")["questions"]
        counted = operator.post(f"{path}/waves/{number}/close?wait=60")
        if counted["state"] != "done":
            raise RuntimeError(f"expected wave {number} to close, got {counted['state']}")
        told = [g for w in operator.get(f"{path}/chain")["waves"] if w["number"] == number for g in w["groups"]]
        cells = sorted({q["oracle"]["cells"] for q in asked})
        sizes = f"{cells[0]}" if len(cells) == 1 else f"{cells[0]} to {cells[-1]}"
        print(f"  wave {number}: {sum(g['tally']['n'] for g in told):7,} reports on {sizes} cells, closed and frozen")

    return run_fleet_async(url, crowd, visits, close, batch=BATCH, connections=CONNECTIONS)


def _weights(campaign: Campaign) -> list[int]:
    """How many people each wave needs, by the shares of its groups: as the method would ask an even population."""
    session = Session(mechanism_from_record(campaign.record["method"]), campaign.schema, campaign.digest)
    shares, weights, rng = dict(campaign.groups), [], np.random.default_rng(1)
    while session.is_open:
        weights.append(sum(shares[group] for group in session.wave))
        even = {group: np.full(question.oracle.d, 1000) for group, question in session.wave.items()}
        session.tell({group: q.oracle.simulate(even[group], rng) for group, q in session.wave.items()})
    return weights


def _method(campaign: Campaign) -> str:
    groups = len(campaign.groups)
    return f"method {campaign.record['method']['name']} with {groups} group{'s' if groups > 1 else ''}"


def _answers(estimate: Estimate, salaries: Ints, out: Path) -> None:
    answers = estimate.ask(*QUERIES)
    truth = [float(((salaries >= lo) & (salaries <= hi)).mean()) for lo, hi in RANGES]
    print(answers.table(truth=truth))
    low, high = answers.interval()
    inside = int(((low <= truth) & (truth <= high)).sum())
    print(f"{inside} of {len(truth)} intervals hold the truth; the widest is {100 * (high - low).max():.1f} points.\n")
    print(estimate.summary())
    print(f"mean: {estimate.mean()}; truth {salaries.mean():,.0f}\n")
    _draw(estimate, salaries, out)
    plot_answers(answers, truth=truth).savefig(out.with_stem(out.stem + "-answers"), dpi=110)
    print(f"Pictures: {out} and {out.with_stem(out.stem + '-answers')}")


def _draw(estimate: Estimate, salaries: Ints, out: Path) -> None:
    counts = np.bincount(encode(SCHEMA, [salaries])[:, 0], minlength=SCHEMA.sizes[0])
    is_tree = isinstance(estimate, TreeEstimate)
    figure = plot_tree(estimate, truth=counts) if is_tree else plot_estimate(estimate, truth=counts)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ahead_ldp.cli.demo", description=__doc__)
    parser.add_argument("--people", type=int, default=PEOPLE, help="how many people (%(default)s)")
    parser.add_argument("--epsilon", type=float, default=EPSILON, help="privacy parameter (%(default)s)")
    parser.add_argument("--method", default=None, help="the best for one attribute where left out")
    parser.add_argument("--enrolment", choices=["walk_in", "panel"], default="walk_in", help="(%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/demo.png"), help="where the picture goes (%(default)s)")
    keep = "keep the server running and print the dashboard's address and an analyst's token"
    parser.add_argument("--keep", action="store_true", help=keep)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, ImportError) as error:
        sys.exit(f"{error}")
