"""The server of `ahead demo`: a campaign over HTTP, on this machine, which synthetic people answer.

Everything is what a real campaign uses: the server with its SQLite store, the waves, the clients' checks and noise, the
audit. Relays send the reports in batches.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import ahead_ldp
from ahead_ldp import mechanisms
from ahead_ldp.cli import sampletown
from ahead_ldp.cli.remote import Remote
from ahead_ldp.engines import archive
from ahead_ldp.service import dashboard
from ahead_ldp.service import store as stores
from ahead_ldp.service.campaigns import audit as audits
from ahead_ldp.service.campaigns import logs
from ahead_ldp.service.server import config, embedded

YOUR_OWN = """\
With your own people:
  ahead serve --sign-in                           the server; prints an operator's token and a link
  ahead campaign create campaign.toml             who asks what, why and until when; prints the digest
  ahead campaign open DIGEST                      the first wave
  ahead respond https://... DIGEST                what each person runs: checks, consent, then the answer
  ahead campaign close DIGEST                     or by a number of reports, or by a deadline
  ahead campaign query DIGEST "salary in 0..19999"
The pages "Run a campaign" and "Answer from a device" of the documentation have the whole story."""


def serve(
    salaries: Any,
    epsilon: str,
    method: str | None,
    enrolment: str,
    show: Callable[[ahead_ldp.Estimate], None],
    keep: bool,
) -> None:
    """One campaign from its creation to the answers, which `show` prints."""
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
        draft = sampletown.draft(len(salaries), epsilon, chosen, enrolment)
        name, estimate = _collect(operator, analyst, draft, salaries)
        show(estimate)
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
