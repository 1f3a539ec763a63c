"""`ahead respond`: a campaign shown to one person, their yes, their answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from ahead_ldp.cli import participant, spending
from ahead_ldp.cli.options import File, Text, Texts, argument, at_least, flag, option
from ahead_ldp.cli.printing import Shown, note
from ahead_ldp.device import budget, entries
from ahead_ldp.service import client as clients

_FINE = ("acknowledged", "queued", "declined", "withdrawn", "wiped")
_SAID = {
    "acknowledged": "Your noisy answer was received. Thank you.",
    "queued": "Your noisy answer is kept here and not sent yet. Run the same command again to send it.",
    "waiting": "Nothing is asked of you at the moment. Come back later.",
    "declined": "Nothing was asked, nothing was sent.",
    "late": "The wave closed before your answer arrived. It was not counted and will not be asked again.",
    "rejected": "The server refused the answer. It was not counted and will not be asked again.",
    "withdrawn": "Your answer was withdrawn.",
    "wiped": "You opted out; what was not sent is wiped.",
    "over": "The campaign is over.",
}


def respond(
    url: Annotated[str, argument("URL", "Where the service is.")],
    campaign: Annotated[str, argument("CAMPAIGN", "Digest of the campaign, from your invitation.")],
    value: Annotated[
        Texts, option("--value", "NAME=V", "An answer, for scripts; others here may see it in `ps`.")
    ] = None,
    values: Annotated[Text, option("--values", "FILE", "Answers as a JSON object; - is standard input.")] = None,
    yes: Annotated[bool, flag("--yes", "Consent without being asked.")] = False,
    ledger: Annotated[
        File,
        option("--ledger", "FILE", "What was answered so far.", envvar="AHEAD_LEDGER", show_envvar=True),
    ] = None,
    field: Annotated[
        Texts, option("--field", "NAME=FIELD", "Your own name for what this campaign calls NAME; ? if not sure.")
    ] = None,
    fields: Annotated[File, option("--fields", "FILE", "The same for scripts: JSON, by campaign digest.")] = None,
    limit: Annotated[
        Texts, option("--limit", "FIELD=E", "Lifetime limit of a field; without one it is reported once.")
    ] = None,
    lifetime: Annotated[str, option("--lifetime", "E", "Lifetime limit over all fields together.")] = "20",
    max_epsilon: Annotated[str, option("--max-epsilon", "E", "Refuse to give away more in one report.")] = "4",
    min_group: Annotated[int, option("--min-group", "N", "Refuse campaigns that count smaller groups.")] = 10,
    mirror: Annotated[Text, option("--mirror", "URL", "A second way to the campaign, to compare with.")] = None,
    issuer: Annotated[Text, option("--issuer", "URL", "Who signs tokens, where the campaign asks for one.")] = None,
    secret: Annotated[File, option("--secret", "FILE", "The secret that the issuer's operator gave you.")] = None,
    jitter: Annotated[int, option("--jitter", "S", "Send at a random moment within this many seconds.")] = 30,
    withdraw: Annotated[bool, flag("--withdraw", "Take the answer back; until its wave closes.")] = False,
    opt_out: Annotated[bool, flag("--opt-out", "Withdraw, wipe what is unsent, answer nothing more.")] = False,
    opt_in: Annotated[bool, flag("--opt-in", "Answer again after opting out.")] = False,
) -> Shown:
    """Answer a campaign as one of its people.

    You see who asks, what and why, what it costs in privacy, and what you gave
    away before. Only after you agree are you asked what of yours it is about,
    and for the answer. Noise is added here, once.
    """
    given = _given(value, values)
    at_least(0, jitter=jitter)
    with participant.ledger_at(ledger or Path(typer.get_app_dir("ahead-ldp")) / "ledger.db") as book:
        if opt_in:
            book.opt_in()
        own = _fields(campaign, field, fields)
        policy = clients.OwnerPolicy(
            max_epsilon, least_group=min_group, fields=own, limits=_pairs(limit, "--limit"), lifetime=lifetime
        )
        client = clients.Client(url, book, policy, mirror=mirror, signer=_signer(issuer, secret), jitter_s=jitter)
        if opt_out:
            client.opt_out()
            outcome = clients.Outcome(clients.Status.WIPED)
        elif withdraw:
            client.withdraw(campaign)
            outcome = clients.Outcome(clients.Status.WITHDRAWN)
        else:
            person = participant.Person(yes, book) if given is None else participant.Script(yes, book, given)
            outcome = _answer(client, campaign, person, jitter)
        return _shown(outcome, client.statement(), book.askers())


def _fields(campaign: str, listed: Sequence[str] | None, file: Path | None) -> dict[str, clients.Fields]:
    """The owner's fields by campaign: those of the file, and those of the command line for the one that it answers."""
    brought = {} if file is None else participant.read_fields(file)
    pairs = {name: None if own == "?" else own for name, own in _pairs(listed, "--field").items()}
    return {**brought, campaign: {**brought.get(campaign, {}), **pairs}} if pairs else brought


def _given(listed: Sequence[str] | None, file: str | None) -> dict[str, object] | None:
    """The answers of the command line and of a file; None where somebody at the terminal is to be asked."""
    if not listed and file is None:
        return None
    text = "{}" if file is None else sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    answers = None
    with suppress(ValueError, RecursionError):
        answers = json.loads(text)
    if not isinstance(answers, dict):
        raise ValueError("expected --values to be a JSON object")
    return {**_pairs(listed, "--value"), **answers}


def _signer(issuer: str | None, secret: Path | None) -> clients.Signer | None:
    if (issuer is None) != (secret is None):
        raise ValueError("expected --issuer and --secret together")
    if issuer is None or secret is None:
        return None
    return clients.IssuerClient(issuer, secret.read_text("utf-8").strip())


def _answer(client: clients.Client, campaign: str, person: participant.Person, jitter: int) -> clients.Outcome:
    """Answer once, and stay until the answer is sent."""
    outcome = client.answer(campaign, person.consent, person.values, person.fields)
    for name in outcome.replaced:
        note(f"{name} is none of the declared values: another was reported in its place")
    if outcome.status is clients.Status.QUEUED:
        note(f"sending at a random moment within {jitter} s; stopping now loses nothing")
        outcome = client.deliver(campaign)
    return outcome


def _pairs(listed: Sequence[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE texts, none of which is ever shown."""
    pairs = {}
    for text in listed or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ValueError(f"expected NAME=... for {option}")
        pairs[name] = value
    return pairs


def _shown(outcome: clients.Outcome, statement: budget.Statement, askers: Mapping[str, entries.Asker]) -> Shown:
    receipt, status = outcome.receipt, outcome.status
    record = {
        "status": status.value,
        "detail": outcome.detail,
        "receipt": None if receipt is None else receipt.record(),
        "budget": spending.record(statement, askers),
    }
    text = [_SAID[status] + (f" ({outcome.detail})" if outcome.detail else "")]
    if receipt is not None and status in ("acknowledged", "queued"):
        text.append(f"Report {receipt.report_id}. Until the wave closes, --withdraw takes it back.")
    text += spending.lines(statement, askers)
    return Shown(record, text, code=0 if status in _FINE else 1)
