"""`ahead methods`."""

from __future__ import annotations

from typing import Any

from ahead_ldp.cli import printing
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.session import Session
from ahead_ldp.research.evaluation import choose
from ahead_ldp.schema.attributes import as_schema

REFERENCE = "value=codes,256"  # the schema that waves are counted on


def run(as_json: bool) -> None:
    """Print the registry."""
    found = [describe(name) for name in MECHANISMS]
    if as_json:
        printing.print_json({"methods": found})
        return
    rows = [
        [
            m["method"],
            m["idea"],
            m["source"],
            ", ".join(m["settings"][1:]),
            str(m["most_attributes"] or "any"),
            str(m["waves"]),
        ]
        for m in found
    ]
    head = ["method", "idea", "source", "also as", "attr.", "waves"]
    printing.print_table("Methods (waves: for one attribute of 256 codes)", head, rows, left=4)


def describe(name: str) -> dict[str, Any]:
    """A registered method: how many attributes it takes, how many waves it asks, where it is from."""
    cls = MECHANISMS[name]
    return {
        "method": name,
        "idea": cls.idea,
        "source": cls.source,
        "most_attributes": cls.most_attributes,
        "waves": _waves(name),
        "settings": ["default", *(preset for preset in ("paper", "strong") if hasattr(cls, preset))],
    }


def _waves(name: str) -> int:
    """Counted in a run that nobody answers."""
    schema = as_schema(REFERENCE)
    session, waves = Session(choose(name, schema, "1", users=1_000_000)[0], schema), 0
    while session.is_open:
        session.tell({group: Tally.empty(question.oracle.outcomes) for group, question in session.wave.items()})
        waves += 1
    return waves
