"""`ahead campaign rehearse`: a campaign answered by synthetic people, before anybody is asked."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ahead_ldp.cli import printing
from ahead_ldp.cli.printing import Shown, Table, between, percent
from ahead_ldp.cli.remote import Remote, find
from ahead_ldp.cli.survey import ask_survey
from ahead_ldp.device import campaign as records
from ahead_ldp.schema.boxes import query_boxes
from ahead_ldp.schema.queries import parse_query
from ahead_ldp.service.campaigns import campaign as campaigns
from ahead_ldp.service.campaigns import logs
from ahead_ldp.service.campaigns import survey as surveys
from ahead_ldp.service.dashboard import pages, results
from ahead_ldp.service.rehearsal import rehearsal as rehearsals


def show(
    terms: campaigns.Terms, serve: Any, people: int | None, seed: int | None, asked: list[str], keep: bool
) -> Shown:
    """Rehearse a campaign on a server that ``serve`` starts, and what is to be shown of it."""
    logs.LOGGER.setLevel("WARNING")
    for query in asked:  # or what is wrong with one would be found out after everybody has answered
        query_boxes(terms.schema, parse_query(query))
    with rehearsals.Rehearsal(terms, serve, people, seed) as tried:
        printing.note(f"Rehearsal of {terms.campaign.record['title']!r}: {tried.people:,} synthetic people answer.")
        report = tried.run(_say)
        printing.note(f"{report.accepted:,} of {report.people:,} answers are counted.\n")
        answers = _answers(tried, asked)
        about = {"rehearsal": True, "campaign": tried.campaign, "people": tried.people, "rounds": tried.rounds}
        shown = Shown({**about, "queries": answers}, list(_text(tried, answers)))
        if not keep:
            return shown
        print(*shown.text, sep="\n")
        _show(tried, serve)
        return Shown(shown.record, [])


def terms_of(what: str | None, remote: Remote) -> campaigns.Terms:
    """What is rehearsed: a file, a campaign of the server, or what somebody answers now."""
    if what is None:
        return _drafted(surveys.survey_draft(ask_survey(input)))
    path = Path(what)
    if path.suffix not in (".toml", ".json") and not path.exists():
        return campaigns.Terms.of(records.Campaign.from_bytes(remote.read(f"/campaigns/{find(remote, what)}")))
    try:
        given = (json.loads if path.suffix == ".json" else tomllib.loads)(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"expected a survey, a campaign or a record in {what!r}: {error}") from None
    return _drafted(surveys.survey_draft(given) if "question" in given else given)


def _drafted(given: dict[str, Any]) -> campaigns.Terms:
    if given.get("type") == "campaign":
        return campaigns.draft(given)
    given = {"created": time.strftime("%Y-%m-%d"), **given}
    if missing := [name for name in ("attributes", "epsilon", "minimum") if name not in given]:
        raise ValueError(f"expected {', '.join(missing)} in the campaign")
    schema = given.pop("attributes")
    try:
        return campaigns.draft({**given, "schema": schema})
    except TypeError:
        raise ValueError("expected the fields of a campaign, as docs/campaigns.md lists them") from None


def _say(number: int, rounds: int, answers: int) -> None:
    printing.note(f"  round {number} of {rounds} counted, {answers:,} answers so far")


def _text(tried: rehearsals.Rehearsal, answers: list[dict[str, Any]]) -> Iterator[str | Table]:
    yield f"{tried.terms.campaign.record['title']}: {tried.people:,} synthetic people, so the truth is known."
    rows = [[r["query"], percent(r["share"]), between(r["low"], r["high"]), percent(r["truth"])] for r in answers]
    yield Table("", ["query", "share", "95 % interval", "truth"], rows)
    inside = sum(r["low"] <= r["truth"] <= r["high"] for r in answers)
    yield f"{inside} of {len(answers)} intervals hold the truth."


def _answers(tried: rehearsals.Rehearsal, asked: list[str]) -> list[dict[str, Any]]:
    """Every answer with the truth; without questions those about bars that the results would show."""
    estimate = tried.service.directory.estimate(tried.campaign)
    asked = asked or [query for a in estimate.schema.attributes for query in results.bar_queries(estimate, a)]
    truth = [tried.truth.share(query) for query in asked]
    return [{**found, "truth": true} for found, true in zip(estimate.ask(*asked).records(), truth, strict=True)]


def _show(tried: rehearsals.Rehearsal, serve: Any) -> None:
    """The page of results, for as long as somebody looks at it."""
    site, path = pages.rehearsal_pages(tried)
    with serve(tried.store) as server, suppress(KeyboardInterrupt):
        server.app.pages = site
        print(f"\nThe page of results: {server.url}{path}\nCtrl-C ends it and deletes the rehearsal.", flush=True)
        _stay(f"{server.url}{path}")


def _stay(address: str) -> None:
    """Until somebody presses Ctrl-C."""
    del address
    threading.Event().wait()
