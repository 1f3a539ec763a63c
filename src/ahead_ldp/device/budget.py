"""What a device may still give away: charges to the owner's fields, held against the owner's limits.

These are the rules of every ledger, in Python and in TypeScript; tests/vectors/ledger.json pins them. A charge whose
field the owner was not sure about (``None``) counts against every field, for it may have been about any of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from ahead_ldp.device.entries import LedgerRefused

LIFETIME = Fraction(20)  # over all fields, unless the owner says otherwise: decision 017


class Charge(NamedTuple):
    """Epsilon that a campaign's report costs one field; ``None`` is a field that the owner was not sure about."""

    campaign: str
    field: str | None
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class Limits:
    """What the owner allows in a lifetime: over all fields, and for single fields that may be reported again."""

    lifetime: Fraction = LIFETIME
    fields: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """One field of a statement: what counts against it, its own limit if it has one, and what is left of it."""

    field: str | None
    charges: tuple[Charge, ...]
    spent: Fraction
    limit: Fraction | None
    left: Fraction


@dataclass(frozen=True, slots=True)
class Statement:
    """What was given away so far, field by field and in all, and what is left."""

    lines: tuple[Line, ...]
    spent: Fraction
    lifetime: Fraction
    left: Fraction


def check_charge(
    charges: Sequence[Charge], campaign: str, fields: Collection[str | None], epsilon: Fraction, limits: Limits
) -> None:
    """Raise ``LedgerRefused`` if a campaign's report would charge a field or a lifetime more than the owner allows.

    A field without a limit of its own is reported once. A field that the owner is not sure about must be free to be
    any of those that are known, or a new one.
    """
    others = [charge for charge in charges if charge.campaign != campaign]
    if _sum(others) + epsilon > limits.lifetime:
        raise LedgerRefused(f"the lifetime limit of {float(limits.lifetime):g} over all fields would be exceeded")
    concerned = dict.fromkeys(fields)
    if None in concerned:
        concerned |= dict.fromkeys(_known(others, limits))
    for name in concerned:
        before = _against(others, name)
        limit = None if name is None else limits.fields.get(name)
        shown = "that is not named" if name is None else name
        if limit is not None and _sum(before) + epsilon > limit:
            raise LedgerRefused(f"the field {shown} would exceed its lifetime limit of {float(limit):g}")
        if limit is None and before:
            raise LedgerRefused(f"the field {shown} was reported before, and no lifetime limit allows more")


def make_statement(charges: Sequence[Charge], limits: Limits) -> Statement:
    """What the charges amount to, for the owner to see; fields with a limit are listed even if nothing was charged."""
    spent = _sum(charges)
    left = max(limits.lifetime - spent, Fraction(0))
    names: list[str | None] = list(_known(charges, limits))
    if any(charge.field is None for charge in charges):
        names.append(None)
    lines = []
    for name in names:
        against = list({charge.campaign: charge for charge in _against(charges, name)}.values())  # one a report
        limit = None if name is None else limits.fields.get(name)
        own = Fraction(0) if limit is None else max(limit - _sum(against), Fraction(0))
        lines.append(Line(name, tuple(against), _sum(against), limit, min(own, left)))
    return Statement(tuple(lines), spent, limits.lifetime, left)


def _known(charges: Iterable[Charge], limits: Limits) -> list[str]:
    """Every field that was charged or has a limit, in order."""
    return sorted({charge.field for charge in charges if charge.field is not None} | set(limits.fields))


def _against(charges: Iterable[Charge], name: str | None) -> list[Charge]:
    """The charges that count against a field: its own, and those of which nobody knows the field."""
    return [charge for charge in charges if charge.field is None or charge.field == name]


def _sum(charges: Iterable[Charge]) -> Fraction:
    """Epsilon of all campaigns, each once: a report about two fields is still one report."""
    largest: dict[str, Fraction] = {}
    for charge in charges:
        largest[charge.campaign] = max(charge.epsilon, largest.get(charge.campaign, Fraction(0)))
    return sum(largest.values(), Fraction(0))
