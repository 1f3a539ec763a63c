"""The person behind `ahead respond`: their ledger, what they are shown, and what they are asked.

The answer is never printed or logged.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from ahead_ldp.cli import printing
from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.entries import LedgerRefused
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused, ValueRefused
from ahead_ldp.service.client import Offer, Unreachable, WithdrawalRefused


@contextmanager
def ledger_at(path: Path) -> Iterator[Ledger]:
    """The owner's ledger. What the ledger, the client or the server refuse meanwhile is one line."""
    try:
        with Ledger(path) as ledger:
            yield ledger
    except (QuestionRefused, LedgerRefused, Unreachable, WithdrawalRefused) as error:
        raise ValueError(str(error)) from None


def keep_names(ledger: Ledger, asked: Iterable[str], declared: Mapping[str, str], interactive: bool) -> dict[str, str]:
    """Know the owner's field behind every attribute of a campaign: as declared, as known, or as asked now."""
    for name, field in declared.items():
        ledger.keep_name(name, field)
    known = sorted(set(ledger.names().values()))  # of earlier campaigns: the attributes of one are different things
    for name in asked:
        if name not in ledger.names():
            ledger.keep_name(name, _own_name(name, known, interactive))
    return ledger.names()


def _own_name(attribute: str, known: Sequence[str], interactive: bool) -> str:
    """The owner's field behind a new name: a campaign must not get a second report by asking under another name."""
    if not known:
        return attribute
    if not interactive:
        raise ValueError(f"expected --field {attribute}=FIELD: is it new, or one of {', '.join(known)}?")
    printing.note(f"{attribute} was not asked under this name before. Known so far: {', '.join(known)}.")
    printing.note("If it is one of these under another name, type that one; else give it a name of its own.")
    return str(typer.prompt(attribute, default=attribute, err=True)).strip() or attribute


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at a terminal, who is asked for every value."""

    yes: bool  # consent was given beforehand

    def consent(self, offer: Offer) -> bool:
        """Show what is asked, and ask for a yes."""
        print(introduction(offer), file=sys.stderr)
        return self.yes or typer.confirm("Take part?", default=False, err=True)

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
    spent = [
        f"{field} was reported {before.reports} times before, epsilon {float(before.epsilon):g} in all."
        for field in offer.fields
        if (before := offer.spent.get(field)) is not None
    ]
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
            "Asked: " + "; ".join(f"{a.name}, {describe(a)}" for a in offer.attributes) + ".",
            offer.privacy_sentence(),
            *spent,
            f"{kept} You can withdraw until the wave closes.",
        ]
    )


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
