"""The person behind `ahead respond`: their ledger, what they are shown, and what they are asked.

The answer is never printed or logged.
"""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import typer

from ahead_ldp.cli import printing, spending
from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.entries import LedgerRefused
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.naming import similar_fields
from ahead_ldp.device.refusals import QuestionRefused, ValueRefused
from ahead_ldp.device.texts import check_name
from ahead_ldp.service.client import Fields, Offer, Unreachable, WithdrawalRefused


@contextmanager
def ledger_at(path: Path) -> Iterator[Ledger]:
    """The owner's ledger. What the ledger, the client or the server refuse meanwhile is one line."""
    try:
        with Ledger(path) as ledger:
            yield ledger
    except (QuestionRefused, LedgerRefused, Unreachable, WithdrawalRefused) as error:
        raise ValueError(str(error)) from None


def read_fields(file: Path) -> dict[str, Fields]:
    """A file of mappings: JSON, by the digest of a campaign the owner's field of each of its attributes."""
    brought = None
    with suppress(ValueError, RecursionError):
        brought = json.loads(file.read_text("utf-8"))
    if not isinstance(brought, dict) or not all(isinstance(mapped, dict) for mapped in brought.values()):
        raise ValueError("expected --fields to be a JSON object of campaigns, each an object of attributes and fields")
    return brought


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at a terminal, who is asked for every value."""

    yes: bool  # consent was given beforehand
    ledger: Ledger

    def consent(self, offer: Offer) -> bool:
        """Show what is asked, and ask for a yes."""
        print(introduction(offer), file=sys.stderr)
        return self.yes or typer.confirm("Take part?", default=False, err=True)

    def fields(self, offer: Offer, names: Sequence[str]) -> Fields:
        """Which thing of theirs every attribute is that they have not named for this campaign; asked, never guessed."""
        known, chosen = self.ledger.names(), dict[str, str | None]()
        for name in names:
            chosen[name] = field = ask_field(name, known)
            if field is not None:
                known |= {field: field, name: field}
        return chosen

    def values(self, offer: Offer) -> dict[str, object]:
        """The answers, typed without an echo."""
        return {a.name: _ask(a) for a in offer.attributes}


@dataclass(frozen=True, slots=True)
class Script(Person):
    """Answers that were given beforehand; whether they are all there is known before anything is promised.

    Whether they fit is said before that only if somebody is there to mend them; else a report goes out whatever they
    are, because a missing one would tell (decision 010).
    """

    given: Mapping[str, object]

    def consent(self, offer: Offer) -> bool:
        """Check what can be checked, and ask for a yes if there was none."""
        for attribute in offer.attributes:
            if attribute.name not in self.given and attribute.missing_code is None:
                raise ValueError(f"expected a value for {attribute.name}")
            if not self.yes:
                attribute.code(parse_value(attribute, self.given.get(attribute.name)))
        return self.yes or Person.consent(self, offer)

    def fields(self, offer: Offer, names: Sequence[str]) -> Fields:
        """Asked of whoever gave the consent; where that was given beforehand, nobody is there to be asked."""
        if self.yes:
            name, digest = names[0], offer.campaign.digest
            raise QuestionRefused(
                f"expected --field {name}=FIELD, or --fields with the fields of {digest}: what of yours is {name}?"
            )
        return Person.fields(self, offer, names)

    def values(self, offer: Offer) -> dict[str, object]:
        """The answers as the attributes' kinds read them."""
        return {a.name: self._value(a) for a in offer.attributes}

    def _value(self, attribute: Attribute) -> object:
        value = self.given.get(attribute.name)
        try:
            return parse_value(attribute, value)
        except ValueRefused:
            return value  # a text that is no number: the client knows what to do with it


def introduction(offer: Offer) -> str:
    """Who asks what and why, and what it costs, in the words of the campaign and one honest sentence."""
    record = offer.campaign.record
    texts = [record["texts"]["consent"], ""] if "consent" in record["texts"] else []
    kept = (
        f"Noisy reports are kept for {record['retention_days']} days after the end, then deleted, and no backup brings"
        " them back. Two things stay: the counts over everybody, and a random number that tells that somebody took"
        " part. The number goes when the server's store is removed."
    )
    return "\n".join(
        [
            record["title"],
            "",
            f"{record['controller']} asks {record['purpose']}. Contact: {record['contact']}.",
            "",
            *texts,
            "Asked: " + "; ".join(_asked(offer, a) for a in offer.attributes) + ".",
            offer.privacy_sentence(),
            f"{kept} You can withdraw until the wave closes.",
            *spending.lines(offer.statement, offer.askers),
        ]
    )


def _asked(offer: Offer, attribute: Attribute) -> str:
    """What is asked, in the campaign's words if it has some."""
    words = offer.campaign.wording.get(attribute.name)
    if words is None:
        return f"{attribute.name}, {describe(attribute)}"
    example = f", for example {words.example}" if words.example else ""
    return f"“{words.question}” ({attribute.name}, {describe(attribute)}{words.unit and ' ' + words.unit}{example})"


def ask_field(name: str, known: Mapping[str, str]) -> str | None:
    """The owner's field behind a name that a campaign chose; None if they are not sure. ``known`` has fields by name.

    Enter takes what they said of this name before, else the most similar field, else the name itself where no field is
    known yet. Where others are known and none is similar, they have to type one.
    """
    similar = list(dict.fromkeys(known[other] for other in similar_fields(name, known)))
    printing.note(
        f"What of yours is {name}? A thing that was asked before has its own name, whatever it is called here."
    )
    for field in dict.fromkeys([*similar, *known.values()]):
        printing.note(f"  {field}" + (" (looks similar)" if field in similar else ""))
    printing.note(
        "Type one of these, or a new name for a new thing; ? if you are not sure: then it counts against all."
    )
    default = similar[0] if similar else None if known else name
    while True:
        text = str(typer.prompt(name, default=default, err=True)).strip()
        if text == "?":
            return None
        try:
            return check_name(text, "the name of a field")
        except ValueError as error:
            printing.note(str(error))


def describe(attribute: Attribute) -> str:
    """What values an attribute takes, in words."""
    if attribute.labels:
        return "one of " + ", ".join(attribute.labels)
    if attribute.kind in ("integer", "real"):
        whole = " (whole)" if attribute.kind == "integer" else ""
        return f"a number from {attribute.lo:g} to {attribute.hi:g}{whole}"
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
