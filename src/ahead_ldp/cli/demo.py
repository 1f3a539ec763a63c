"""`ahead demo`: a collection server, many people answering it over HTTP, and what can be said about them.

Everything is what a real campaign uses: the server with its SQLite store, the waves, the clients' checks and noise, the
audit. Only the people are synthetic, and relays send their reports in batches.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import ahead_ldp
from ahead_ldp import mechanisms
from ahead_ldp.cli import drawing, inputs, sampletown
from ahead_ldp.cli.options import Text, flag, option
from ahead_ldp.cli.remote import Remote
from ahead_ldp.engines import archive
from ahead_ldp.service import dashboard
from ahead_ldp.service import store as stores
from ahead_ldp.service.campaigns import audit as audits
from ahead_ldp.service.campaigns import logs
from ahead_ldp.service.server import config, embedded

PEOPLE, FEWEST, EPSILON = 100_000, 1000, 2.0

YOUR_OWN = """\
With your own people:
  ahead serve --init                              the server; prints the first operator's token
  ahead campaign create campaign.toml             who asks what, why and until when; prints the digest
  ahead campaign open DIGEST                      the first wave
  ahead respond https://... DIGEST                what each person runs: checks, consent, then the answer
  ahead campaign close DIGEST                     or by a number of reports, or by a deadline
  ahead campaign query DIGEST "salary in 0..19999"
docs/campaigns.md has the whole story, docs/client.md the people's side."""


def demo(
    *,
    people: Annotated[int, option("--people", "N", "How many people.")] = PEOPLE,
    epsilon: Annotated[float, option("--epsilon", "E", "Privacy parameter of a report.")] = EPSILON,
    method: Annotated[Text, option("--method", "M", "Left out, the best for one attribute.")] = None,
    enrolment: Annotated[str, option("--enrolment", "HOW", "walk_in or panel.")] = "walk_in",
    out: Annotated[Path, option("--out", "FILE", "Where the picture goes.")] = Path("out/demo.png"),
    keep: Annotated[bool, flag("--keep", "Keep the server running, for a look at its dashboard.")] = False,
) -> None:
    """Collect salaries from synthetic people, and answer range queries.

    A real server, and many people who answer it over HTTP; then the audit,
    answers beside the truth, and two pictures.
    """
    private = inputs.epsilon(epsilon)
    if people < FEWEST:
        raise ValueError(f"expected at least {FEWEST} people, got {people}")
    if enrolment not in ("walk_in", "panel"):
        raise ValueError(f"expected --enrolment to be walk_in or panel, got {enrolment!r}")
    salaries = sampletown.synthetic_salaries(people)
    print(f"Synthetic salaries, log-normal with heaping, {people:,} people.")
    logs.LOGGER.setLevel("WARNING")
    settings = config.Settings(port=0, closer_interval_s=0.2, **config.NO_RATES)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(stores.open_store(f"{folder}/demo.db", keys=f"{folder}/keys")) as store,
        embedded.start(store, settings) as server,
    ):
        server.app.pages = dashboard.make_pages(server.service)
        operator, analyst = (
            Remote(server.url, server.service.add_token(role, role)) for role in ("operator", "analyst")
        )
        chosen = None if method is None else mechanisms.known_method(method)
        draft = sampletown.draft(people, private, chosen, enrolment)
        name, estimate = _collect(operator, analyst, draft, salaries)
        _print_answers(estimate, salaries, out)
        print(f"\n{YOUR_OWN}")
        _show_dashboard(f"{server.url}/campaigns/{name}/results", analyst.token, keep)


def _collect(operator: Remote, analyst: Remote, draft: dict[str, Any], salaries: Any) -> tuple[str, ahead_ldp.Estimate]:
    """One campaign from its creation to its results, every step over HTTP."""
    name = operator.post("/campaigns", draft)["campaign"]
    operator.post(f"/campaigns/{name}/open")
    campaign = sampletown.introduce(operator.server, name)
    started = time.perf_counter()
    report = sampletown.answer(operator, campaign, salaries)
    seconds = time.perf_counter() - started
    print(
        f"{report}.\n{report.uploads:,} uploads in {seconds:.1f} s: {sampletown.CONNECTIONS} relays send batches of"
        f" {sampletown.BATCH} reports, and each is on disk before it is acknowledged.\n"
    )
    audit = audits.audit_url(f"{operator.server}/v1/campaigns/{name}")
    matched = sum(check.matched for check in audit.checks)
    print(f"Audit of the public chain: {matched} of {len(audit.checks)} checks matched.")
    results = analyst.get(f"/campaigns/{name}/results")
    worst = max((s["z"] for wave in results["screens"] for s in wave["screens"]), default=0.0)
    print(f"Screens for manipulated reports: the largest is {worst:.1f} standard deviations.\n")
    return name, archive.estimate_from_record(json.loads(analyst.read(f"/campaigns/{name}/tallies")))


def _print_answers(estimate: ahead_ldp.Estimate, salaries: Any, out: Path) -> None:
    answers = estimate.ask(*sampletown.QUERIES)
    truth = [float(((salaries >= lo) & (salaries <= hi)).mean()) for lo, hi in sampletown.RANGES]
    print(answers.table(truth=truth))
    low, high = answers.interval()
    inside = int(((low <= truth) & (truth <= high)).sum())
    print(f"{inside} of {len(truth)} intervals hold the truth; the widest is {100 * (high - low).max():.1f} points.\n")
    print(estimate.summary())
    print(f"mean: {estimate.mean()}; truth {salaries.mean():,.0f}\n")
    beside = out.with_stem(out.stem + "-answers")
    drawing.save(drawing.picture(estimate, truth=sampletown.histogram(salaries)), out, dpi=110)
    drawing.save(ahead_ldp.plot_answers(answers, truth=truth), beside, dpi=110)
    print(f"Pictures: {out} and {beside}")


def _show_dashboard(address: str, token: str, keep: bool) -> None:
    """Where the results can be looked at; with ``keep`` the server stays until Ctrl-C."""
    if not keep:
        print(f"\nThe dashboard of this campaign was at {address}")
        print("To look at it in a browser: ahead demo --keep")
        return
    print(f"\nThe dashboard: {address}\nSign in with this analyst's token: {token}\nCtrl-C stops it.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        _stay(address, token)


def _stay(address: str, token: str) -> None:
    """Until somebody presses Ctrl-C."""
    del address, token
    threading.Event().wait()
