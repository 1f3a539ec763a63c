"""A schema, a campaign and good questions, shared by the tests of questions and the blocked interpreter."""

from typing import Any

from ahead_ldp.device import Attribute, GridForm, Policy, Schema, TreeForm
from ahead_ldp.device.codes import equal_edges
from ahead_ldp.device.laws import LAWS, Law
from ahead_ldp.device.question import question_record

SCHEMA = Schema(
    (
        Attribute("age", "integer", 18, 33),
        Attribute("pay", "real", 0, 100, equal_edges(0, 100, 8), missing="cell"),
        Attribute("town", "nominal", labels=("Ulm", "Bonn", "Köln")),
    )
)
CAMPAIGN = "c0" * 32
POLICY = Policy(max_epsilon=2, max_cells=100)


def good_question(law: str | Law = "oue", **change: Any) -> dict[str, Any]:
    """A grid of 4 x 3 cells over age and pay, or what ``change`` says."""
    parts = {
        "campaign": CAMPAIGN,
        "wave": 1,
        "group": "g0",
        "tallies": "7a" * 32,
        "epsilon": "1.1",
        "attributes": ["age", "pay"],
        "partition": GridForm(((4, 8, 12), (3, 8))),
        "law": LAWS[law].make("1.1", 12) if isinstance(law, str) else law,
    }
    return question_record(**{**parts, **change})


def tree_question(law: str = "grr") -> dict[str, Any]:
    """Age cut into two, the second half again, pay not asked: 3 cells."""
    return good_question(
        attributes=["age"], partition=TreeForm(2, "10100"), law=LAWS[law].make("1.1", 3), wave=2, group="g1"
    )
