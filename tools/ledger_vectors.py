"""Test vectors of the ledger: who may be charged what, names that mean something to a language, files that are damaged.

`tools.vectors` writes them. The named cases are specified here; the long ones are drawn, and say what Python's ledger
did.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from ahead_ldp.device.budget import Limits
from ahead_ldp.device.entries import Asker, LedgerRefused, Place, State
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.naming import similar_fields

Case = dict[str, Any]
Operation = dict[str, Any]
A, B, C, D = (letter * 64 for letter in "abcd")
PROTOTYPES = ("constructor", "__proto__", "toString", "hasOwnProperty", "valueOf")
PLACE = Place(1, "g", "0" * 64)


def reserve(campaign: str, *fields: str | None, epsilon: str = "1", refused: bool = False) -> Operation:
    """A report of a campaign about some fields; null is one that the owner is not sure about."""
    return {"op": "reserve", "campaign": campaign, "fields": list(fields), "epsilon": epsilon, "refused": refused}


def draw(campaign: str, refused: bool = False) -> Operation:
    return {"op": "draw", "campaign": campaign, "refused": refused}


def case(name: str, operations: Sequence[Operation], lifetime: str = "20", **limits: str) -> Case:
    """A case with the statement that follows from its operations."""
    given = {"name": name, "lifetime": lifetime, "limits": limits, "operations": list(operations)}
    with Ledger(None) as ledger:
        for operation in operations:
            if run(ledger, operation, limits_of(given)) is operation["refused"]:
                raise RuntimeError(f"{name}: the ledger says something else to {operation}")
        return {**given, "statement": told(ledger, limits_of(given))}


def limits_of(case: Case) -> Limits:
    """The limits of a case."""
    return Limits(Fraction(case["lifetime"]), {name: Fraction(text) for name, text in case["limits"].items()})


def run(ledger: Ledger, operation: Operation, limits: Limits) -> bool:
    """Do one operation; whether the ledger took it."""
    campaign = operation.get("campaign", "")
    try:
        if operation["op"] == "reserve":
            epsilon = Fraction(operation["epsilon"])
            ledger.reserve(Asker(campaign, "t", "c"), PLACE, operation["fields"], epsilon, limits)
        elif operation["op"] == "draw":
            ledger.keep_drawn(campaign, PLACE.question, b"bytes", 0)
        elif operation["op"] == "move":
            ledger.move(campaign, State(operation["state"]))
        else:
            {"opt_out": ledger.opt_out, "opt_in": ledger.opt_in}[operation["op"]]()
    except (LedgerRefused, ValueError):
        return False
    return True


def told(ledger: Ledger, limits: Limits) -> Case:
    """The statement: in all, and for each field what counts against it, its limit, what is left, how many reports."""
    found = ledger.statement(limits)
    lines = [
        [
            line.field,
            str(line.spent),
            None if line.limit is None else str(line.limit),
            str(line.left),
            len(line.charges),
        ]
        for line in found.lines
    ]
    return {"spent": str(found.spent), "left": str(found.left), "lines": lines}


def ledger_cases() -> Iterator[Case]:
    """Every rule of the budget, then long sequences."""
    out, back = {"op": "opt_out", "refused": False}, {"op": "opt_in", "refused": False}
    yield case("nothing was charged", [])
    yield case("a field is reported once", [reserve(A, "age"), reserve(B, "age", refused=True)])
    yield case("fields are counted apart", [reserve(A, "age"), reserve(B, "pay")])
    yield case("the same campaign again before it is drawn", [reserve(A, "age"), reserve(A, "age"), draw(A)])
    yield case(
        "a promise moves to another field, and both are charged", [reserve(A, "age"), reserve(A, "pay"), draw(A)]
    )
    yield case("what is drawn is not promised again", [reserve(A, "age"), draw(A), reserve(A, "age", refused=True)])
    yield case("drawn once", [reserve(A, "age"), draw(A), draw(A, refused=True)])
    yield case("nothing is drawn without a promise", [draw(A, refused=True)])
    yield case("a report is about something", [reserve(A, refused=True)])
    yield case("a pair charges both fields and the lifetime once", [reserve(A, "age", "pay")], "1")
    yield case("a pair with a spent field charges neither", [reserve(A, "age"), reserve(B, "age", "pay", refused=True)])
    more = [reserve(A, "age"), reserve(B, "age"), reserve(C, "age", epsilon="0.001", refused=True)]
    yield case("a limit allows more, and no more than it says", more, age="2")
    yield case("a limit below one report", [reserve(A, "age", refused=True)], age="0.99")
    yield case("a limit is exact", [reserve(x, "age", epsilon="0.1") for x in (A, B, C)], age="0.3")
    over = [reserve(A, "a"), reserve(B, "b"), reserve(C, "c", refused=True), reserve(C, "c", epsilon="0.5")]
    yield case("a lifetime over all fields", over, "2.5")
    yield case(
        "a lifetime is stronger than a field's limit", [reserve(A, "a"), reserve(B, "a", refused=True)], "1", a="9"
    )
    yield case("not sure, and nothing known", [reserve(A, None)])
    yield case("not sure counts against every field", [reserve(A, None), reserve(B, "age", refused=True)])
    yield case("not sure counts against itself", [reserve(A, None), reserve(B, None, refused=True)])
    yield case(
        "not sure counts against a limit",
        [reserve(A, None), reserve(B, "age"), reserve(C, "age", refused=True)],
        age="2",
    )
    yield case("not sure may be any known field", [reserve(A, "age"), reserve(B, None, refused=True)])
    yield case("not sure within the limit of every known field", [reserve(A, "age"), reserve(B, None)], age="2")
    yield case(
        "not sure beyond the limit of one", [reserve(A, "age"), reserve(B, None, refused=True)], age="2", pay="0.5"
    )
    yield case("not sure about one of two", [reserve(A, "pay"), reserve(B, "age", None, refused=True)])
    yield case("not sure counts for the lifetime", [reserve(A, None), reserve(B, "x", refused=True)], "1.5", x="9")
    for name in PROTOTYPES:
        yield case(f"a field called {name}", [reserve(A, name), reserve(B, name, refused=True), reserve(C, "age")])
        yield case(
            f"a limit on {name}", [reserve(A, name), reserve(B, name), reserve(C, name, refused=True)], **{name: "2"}
        )
    yield case("a name with spaces around", [reserve(A, " age", refused=True)])
    yield case("a name without letters", [reserve(A, "", refused=True)])
    yield case("a name that cannot be seen", [reserve(A, "a\u202eb", refused=True)])
    stop = [
        reserve(A, "age"),
        out,
        reserve(B, "pay", refused=True),
        back,
        reserve(B, "pay"),
        reserve(C, "age", refused=True),
    ]
    yield case("opting out refuses everything and relieves nothing", stop)
    moves = [
        {"op": "move", "campaign": A, "state": s, "refused": r} for s, r in (("acknowledged", True), ("sent", False))
    ]
    yield case("nothing is acknowledged before it is sent", [reserve(A, "age"), draw(A), *moves])
    for seed in range(40):
        yield drawn_case(seed)


def drawn_case(seed: int) -> Case:
    """A long sequence: what Python's ledger takes and refuses of it is what every ledger must."""
    rng = random.Random(seed)
    names = [None, "age", "pay", *rng.sample(PROTOTYPES, 2)]
    limits = {str(name): f"{rng.randint(1, 30) / 10:g}" for name in names[1:] if rng.random() < 0.6}
    given: Case = {"name": f"drawn {seed}", "lifetime": str(rng.choice([3, 6, 20])), "limits": limits, "operations": []}
    with Ledger(None) as ledger:
        for _ in range(30):
            campaign = rng.choice("0123456789abcdef") * 64
            fields = rng.sample(names, rng.choice([1, 1, 1, 2]))
            weights = [0.02 if name is None else 1.0 for name in names]
            operation = reserve(campaign, *(fields if None not in fields else rng.choices(names, weights)))
            operation["epsilon"] = f"{rng.randint(1, 20) / 10:g}"
            if rng.random() < 0.3:
                operation = {"op": "draw", "campaign": campaign}
            given["operations"].append({**operation, "refused": not run(ledger, operation, limits_of(given))})
        return {**given, "statement": told(ledger, limits_of(given))}


def file_cases() -> Iterator[Case]:
    """What a file must be for a ledger to be read from it. A share of a good ledger's bytes, or other bytes."""
    yield {"name": "there is no file", "keep": None, "bytes": None, "refused": False}
    yield {"name": "a whole ledger", "keep": 1.0, "bytes": None, "refused": False}
    yield {"name": "no byte", "keep": 0.0, "bytes": None, "refused": True}
    for share in (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99):
        yield {"name": f"cut off at {share}", "keep": share, "bytes": None, "refused": True}
    for name, data in {"zeros": bytes(8192), "a line": b"\n", "an empty record": b"{}", "null": b"null"}.items():
        yield {"name": name, "keep": None, "bytes": data.hex(), "refused": True}


def naming_cases() -> Iterator[Case]:
    """Which known fields are offered for a name, in order."""
    known = ["age", "body height", "constructor", "monthly pay", "pay", "Größe"]
    for name in ("age", "age_0", "Age2", "AGE", "ages", "aeg", "my age in years", "pay", "wage", "paid", "monthly",
                 "height", "size", "Größe_2", "groesse", "7", "", "__proto__", "constructor1", "xyz"):  # fmt: skip
        yield {"name": name, "known": known, "similar": similar_fields(name, known)}
