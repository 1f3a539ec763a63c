"""Test vectors of the order of steps: what a device does when each step says no; `tools.vectors` writes them.

Unlike the other vectors these are not computed: the order is the specification, and both clients are driven by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ahead_ldp.device import LAWS, GridForm, canonical_bytes
from ahead_ldp.device.campaign import Campaign, wave_record
from tools.campaign_vectors import Case, good_campaign, good_question

STEPS = ("check", "consent", "map", "reserve", "read", "draw", "commit", "send")
CAMPAIGN = Campaign.of(good_campaign())
TOWN = {"attributes": ["town"], "partition": GridForm(((1, 2),))}
BOTH = {"attributes": ["age", "town"], "partition": GridForm(((8,), (1,))), "law": LAWS["grr"].make("1.1", 4)}
OTHER = "0e" * 32  # another campaign, that charged a field


def wave(first: dict[str, Any], second: dict[str, Any]) -> str:
    """A wave of the groups a and b, in hexadecimal."""
    questions = [good_question(group, CAMPAIGN.digest, **change) for group, change in (("a", first), ("b", second))]
    return canonical_bytes(wave_record(CAMPAIGN.digest, 1, questions)).hex()


def case(name: str, last: str, **change: Any) -> Case:
    """A case whose steps end with ``last``; what is not said is a device that answers, and does not answer again."""
    steps = list(STEPS[: STEPS.index(last) + 1])
    sent = last == "send"
    base: Case = {
        "name": name,
        "campaign": CAMPAIGN.encode().hex(),
        "digest": CAMPAIGN.digest,
        "wave": wave({}, {}),
        "max_epsilon": "2",
        "fields": {"age": "age", "town": "home"},
        "told": None,
        "limits": {},
        "lifetime": "20",
        "spent": [],
        "spent_while_asked": [],
        "opted_out": False,
        "consent": True,
        "values": {"age": 20},
        "fails": None,
        "steps": steps,
        "outcome": "acknowledged" if sent else "refused",
        "replaced": [],
        "state": "acknowledged" if sent else "reserved" if "read" in steps else None,
        "charged": ["age"] if "read" in steps else [],
        "again": {"steps": [] if sent else steps, "outcome": "acknowledged" if sent else "refused"},
    }
    return {**base, **change}


def step_cases() -> Iterator[Case]:
    """One case for each way in which a step may end."""
    answered = {"steps": list(STEPS), "outcome": "acknowledged"}  # once what failed has been mended
    no = {"outcome": "declined", "again": {"steps": ["check", "consent"], "outcome": "declined"}}
    charge = {"campaign": OTHER, "field": "age", "epsilon": "1.1"}
    unsure = {"campaign": OTHER, "field": None, "epsilon": "1.1"}
    dear = {"epsilon": "1.2", "law": LAWS["grr"].make("1.2", 3)}
    age_only = {"fields": {"age": "age"}}
    yield case("every step says yes", "send")
    yield case("the question is refused", "check", wave=wave({}, dear))
    yield case("the owner has opted out", "check", opted_out=True)
    yield case("consent is declined", "consent", consent=False, **no)
    yield case("no attribute has a field", "map", fields={})
    yield case("an attribute of another group has no field", "map", wave=wave({}, TOWN), **age_only)
    yield case("an attribute that nobody is asked has no field", "send", **age_only)
    yield case("one field under two names is charged once", "send", wave=wave(BOTH, BOTH),
               fields={"age": "me", "town": "me"}, values={"age": 20, "town": "Ulm"}, charged=["me"])  # fmt: skip
    yield case("the owner is asked after consent", "send", fields={}, told={"age": "years"}, charged=["years"])
    yield case("the owner is asked for what is not mapped", "send", wave=wave(BOTH, BOTH), told={"town": "home"},
               **age_only, values={"age": 20, "town": "Ulm"}, charged=["age", "home"])  # fmt: skip
    yield case("the owner does not say", "map", fields={}, told={})
    yield case("the owner is not sure", "send", fields={}, told={"age": None}, charged=[None])
    then = {"spent": [charge], "charged": ["age"], "again": {"steps": ["check"], "outcome": "refused"}}
    yield case("the owner is not sure, and something is spent", "reserve", fields={}, told={"age": None}, **then)
    yield case("the owner says a field that is spent", "reserve", fields={}, told={"age": "age"}, **then)
    yield case("the owner was not sure before", "check", spent=[unsure], charged=[None])
    yield case("another name for a spent field", "check", fields={"age": "years"}, spent=[{**charge, "field": "years"}],
               charged=["years"])  # fmt: skip
    yield case("the lifetime is spent", "check", lifetime="2.1", spent=[{**charge, "field": "pay"}], charged=["pay"])
    yield case("a field called __proto__", "send", fields={"age": "__proto__"}, charged=["__proto__"])
    yield case("a field called __proto__ is spent", "check", fields={"age": "__proto__"},
               spent=[{**charge, "field": "__proto__"}], charged=["__proto__"])  # fmt: skip
    yield case("the field is spent", "check", spent=[charge], charged=["age"])
    yield case("the field is spent while consent is asked", "reserve", spent_while_asked=[charge], charged=["age"],
               again={"steps": ["check"], "outcome": "refused"})  # fmt: skip
    yield case("a lifetime limit allows more", "send", spent=[charge], limits={"age": "2.2"})
    yield case("a lifetime limit is reached", "check", spent=[charge], limits={"age": "2.1"}, charged=["age"])
    yield case("the ledger cannot reserve", "reserve", fails="reserve", again=answered)
    yield case("the value cannot be read", "read", fails="read", again=answered)
    yield case("the value is missing", "send", values={}, replaced=["age"])
    yield case("the value is outside", "send", values={"age": 99}, replaced=["age"])
    yield case("the value is of another kind", "send", values={"age": "20"}, replaced=["age"])
    yield case("the draw fails", "draw", fails="draw", again=answered)
    yield case("the ledger cannot commit", "commit", fails="commit", again=answered)
