"""What a person has given away so far, on what, to whom, and what is left: as lines and as a record."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ahead_ldp.device.budget import Charge, Statement
from ahead_ldp.device.canonical import Record
from ahead_ldp.device.entries import Asker


def lines(statement: Statement, askers: Mapping[str, Asker]) -> list[str]:
    """What was given away so far, on what, to whom, and what is left."""
    whole = f"{_number(statement.spent)} of {_number(statement.lifetime)}, {_number(statement.left)} left"
    written = [f"Given away on this device so far, in epsilon: {whole}."] if statement.lines else []
    for line in statement.lines:
        own = "not again" if line.limit is None else f"{_number(line.left)} of {_number(line.limit)} left"
        name = "not sure which, so it counts against all" if line.field is None else line.field
        written.append(f"  {name}: {_number(line.spent)}, {own}")
        written += [f"    {_number(charge.epsilon)} to {_asker(charge.campaign, askers)}" for charge in line.charges]
    return written


def record(statement: Statement, askers: Mapping[str, Asker]) -> Record:
    """The same for programs."""
    fields = [
        {
            "field": line.field,
            "spent": float(line.spent),
            "limit": None if line.limit is None else float(line.limit),
            "left": float(line.left),
            "campaigns": [_charge_record(charge, askers) for charge in line.charges],
        }
        for line in statement.lines
    ]
    whole = {"spent": float(statement.spent), "lifetime": float(statement.lifetime), "left": float(statement.left)}
    return {**whole, "fields": fields}


def _charge_record(charge: Charge, askers: Mapping[str, Asker]) -> Record:
    asker = askers.get(charge.campaign)
    said = {"title": None if asker is None else asker.title, "controller": None if asker is None else asker.controller}
    return {"campaign": charge.campaign, "epsilon": float(charge.epsilon), **said}


def _asker(campaign: str, askers: Mapping[str, Asker]) -> str:
    asker = askers.get(campaign)
    if asker is None:
        return f"campaign {campaign[:12]}"
    return f"{asker.controller} ({asker.title})".replace("\n", " ")  # a title cannot write lines of its own


def _number(epsilon: Fraction) -> str:
    return f"{float(epsilon):g}"
