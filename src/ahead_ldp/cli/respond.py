"""`ahead respond`: a campaign shown to one person, their yes, their answer. The answer is never printed or logged."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from ahead_ldp.cli import printing
from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.entries import LedgerRefused
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused, ValueRefused
from ahead_ldp.service.client import (
    Client,
    HttpTransport,
    IssuerClient,
    Offer,
    Outcome,
    OwnerPolicy,
    Signer,
    Status,
    Unreachable,
    WithdrawalRefused,
)
from ahead_ldp.service.client.views import fetch_campaign

_FINE = (Status.ACKNOWLEDGED, Status.QUEUED, Status.DECLINED, Status.WITHDRAWN, Status.WIPED)
_SAID = {
    Status.ACKNOWLEDGED: "Your noisy answer was received. Thank you.",
    Status.QUEUED: "Your noisy answer is kept here and not sent yet. Run the same command again to send it.",
    Status.WAITING: "Nothing is asked of you at the moment. Come back later.",
    Status.DECLINED: "Nothing was asked, nothing was sent.",
    Status.LATE: "The wave closed before your answer arrived. It was not counted and will not be asked again.",
    Status.REJECTED: "The server refused the answer. It was not counted and will not be asked again.",
    Status.WITHDRAWN: "Your answer was withdrawn.",
    Status.WIPED: "You opted out; what was not sent is wiped.",
    Status.OVER: "The campaign is over.",
}


def run(
    url: str,
    campaign: str,
    given: Mapping[str, Any],
    limits: Mapping[str, Any],
    ways: Mapping[str, Any],
    as_json: bool,
) -> int:
    """Answer, withdraw or opt out; 0 unless there was nothing to answer or it was not taken."""
    values = _given_values(given["value"], given["values"])
    if ways["jitter"] < 0:
        raise ValueError(f"expected --jitter >= 0, got {ways['jitter']}")
    path = ways["ledger"] or Path(typer.get_app_dir("ahead-ldp")) / "ledger.db"
    try:
        with Ledger(path) as ledger:
            if given["opt_in"]:
                ledger.opt_in()
            client = _client(url, campaign, ledger, values is None, limits, ways)
            outcome = _act(client, campaign, given, values)
            for name in outcome.replaced:
                printing.note(f"{name} is none of the declared values: another was reported in its place")
            if outcome.status is Status.QUEUED:
                printing.note(f"sending at a random moment within {ways['jitter']} s; stopping now loses nothing")
                outcome = client.deliver(campaign)
    except (QuestionRefused, LedgerRefused, Unreachable, WithdrawalRefused) as error:
        raise ValueError(str(error)) from None
    _print(outcome, as_json)
    return 0 if outcome.status in _FINE else 1


def _act(client: Client, campaign: str, given: Mapping[str, Any], values: dict[str, object] | None) -> Outcome:
    if given["opt_out"]:
        client.opt_out()
        return Outcome(Status.WIPED)
    if given["withdraw"]:
        client.withdraw(campaign)
        return Outcome(Status.WITHDRAWN)
    person = _Script(values, given["yes"]) if values is not None else _Person(given["yes"])
    return client.answer(campaign, person.consent, person.values)


class _Person:
    """Somebody at a terminal."""

    def __init__(self, yes: bool) -> None:
        self._yes = yes

    def consent(self, offer: Offer) -> bool:
        print(introduction(offer), file=sys.stderr)
        return self._yes or typer.confirm("Take part?", default=False, err=True)

    def values(self, offer: Offer) -> dict[str, object]:
        return {a.name: _ask(a) for a in offer.attributes}


class _Script:
    """Answers that were given beforehand; whether they are all there is known before anything is promised.

    Whether they fit is said before that only if somebody is there to mend them; else a report goes out whatever they
    are, because a missing one would tell (decision 010).
    """

    def __init__(self, values: dict[str, object], yes: bool) -> None:
        self._values, self._yes = values, yes

    def consent(self, offer: Offer) -> bool:
        for attribute in offer.attributes:
            if attribute.name not in self._values and attribute.missing_code is None:
                raise ValueError(f"expected a value for {attribute.name}")
            if not self._yes:
                attribute.code(parse_value(attribute, self._values.get(attribute.name)))
        if self._yes:
            return True
        print(introduction(offer), file=sys.stderr)
        return typer.confirm("Take part?", default=False, err=True)

    def values(self, offer: Offer) -> dict[str, object]:
        return {a.name: self._parsed(a) for a in offer.attributes}

    def _parsed(self, attribute: Attribute) -> object:
        value = self._values.get(attribute.name)
        try:
            return parse_value(attribute, value)
        except ValueRefused:
            return value  # a text that is no number: the client knows what to do with it


def introduction(offer: Offer) -> str:
    """Who asks what and why, and what it costs, in the words of the campaign and one honest sentence."""
    record = offer.campaign.record
    lines = [
        record["title"],
        "",
        f"{record['controller']} asks {record['purpose']}. Contact: {record['contact']}.",
    ]
    if "consent" in record["texts"]:
        lines += ["", record["texts"]["consent"]]
    lines += ["", "Asked: " + "; ".join(f"{a.name}, {describe(a)}" for a in offer.attributes) + "."]
    lines += [offer.privacy_sentence()]
    for field in offer.fields:
        spent = offer.spent.get(field)
        if spent is not None:
            lines.append(f"{field} was reported {spent.reports} times before, epsilon {float(spent.epsilon):g} in all.")
    days = record["retention_days"]
    lines += [
        f"Noisy reports are kept for {days} days after the end, then deleted. You can withdraw until the wave closes."
    ]
    return "\n".join(lines)


def describe(attribute: Attribute) -> str:
    """What values an attribute takes, in words."""
    if attribute.labels:
        return "one of " + ", ".join(attribute.labels)
    if attribute.kind in ("integer", "real"):
        return f"a number from {attribute.lo:g} to {attribute.hi:g}" + (
            " (whole)" if attribute.kind == "integer" else ""
        )
    return {"date": "a date, YYYY-MM-DD", "time": "a time, HH:MM"}.get(attribute.kind, "a date and time")


def parse_value(attribute: Attribute, value: object) -> object:
    """A text as the attribute's kind reads it; errors never show it."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return None
    try:
        if attribute.kind == "integer":
            return int(text)
        return float(text) if attribute.kind == "real" else text
    except ValueError:
        raise ValueRefused(f"{attribute.name} is not a value of kind {attribute.kind}") from None


def _ask(attribute: Attribute) -> object:
    """The answer, typed without an echo; asked again, here and by nobody else, until it fits."""
    while True:
        text = getpass.getpass(f"{attribute.name}, {describe(attribute)} (not shown): ")
        try:
            value = parse_value(attribute, text)
            attribute.code(value)
            return value
        except ValueRefused as refused:
            printing.note(str(refused))


def _client(
    url: str,
    campaign: str,
    ledger: Ledger,
    interactive: bool,
    limits: Mapping[str, Any],
    ways: Mapping[str, Any],
) -> Client:
    transport = HttpTransport(url)
    if (ways["issuer"] is None) != (ways["secret"] is None):
        raise ValueError("expected --issuer and --secret together")
    signer: Signer | None = None
    if ways["issuer"] is not None:
        signer = IssuerClient(ways["issuer"], ways["secret"].read_text("utf-8").strip())
    for name, field in _pairs(limits["field"], "--field").items():
        ledger.keep_name(name, field)
    known = sorted(set(ledger.names().values()))  # of earlier campaigns: the attributes of one are different things
    for name in fetch_campaign(transport, campaign).schema.names:
        if name not in ledger.names():
            ledger.keep_name(name, _own_name(name, known, interactive))
    policy = OwnerPolicy(
        limits["max_epsilon"],
        least_group=limits["min_group"],
        fields=ledger.names(),
        limits=_pairs(limits["limit"], "--limit"),
    )
    return Client(transport, ledger, policy, mirror=ways["mirror"], signer=signer, jitter_s=max(0, ways["jitter"]))


def _own_name(attribute: str, known: Sequence[str], interactive: bool) -> str:
    """The owner's field behind a new name: a campaign must not get a second report by asking under another name."""
    if not known:
        return attribute
    if not interactive:
        raise ValueError(f"expected --field {attribute}=FIELD: is it new, or one of {', '.join(known)}?")
    printing.note(f"{attribute} was not asked under this name before. Known so far: {', '.join(known)}.")
    printing.note("If it is one of these under another name, type that one; else give it a name of its own.")
    return str(typer.prompt(attribute, default=attribute, err=True)).strip() or attribute


def _given_values(listed: Sequence[str], file: str | None) -> dict[str, object] | None:
    if not listed and file is None:
        return None
    found: dict[str, object] = dict(_pairs(listed, "--value"))
    if file is not None:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        try:
            read = json.loads(text)
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise ValueError("expected --values to be a JSON object")
        found |= read
    return found


def _pairs(listed: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for text in listed:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ValueError(f"expected NAME=... for {option}")
        pairs[name] = value
    return pairs


def _print(outcome: Outcome, as_json: bool) -> None:
    receipt = None if outcome.receipt is None else outcome.receipt.record()
    if as_json:
        printing.print_json({"status": outcome.status.value, "detail": outcome.detail, "receipt": receipt})
        return
    print(_SAID[outcome.status] + (f" ({outcome.detail})" if outcome.detail else ""))
    if outcome.receipt is not None and outcome.status in (Status.ACKNOWLEDGED, Status.QUEUED):
        print(f"Report {outcome.receipt.report_id}. Until the wave closes, --withdraw takes it back.")
