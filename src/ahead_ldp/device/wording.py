"""The words in which a campaign asks: part of its record, so that its digest binds them and everybody reads the same.

A campaign may leave them out, as a whole or for single attributes; then a page shows the attribute's name and range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ahead_ldp.device.canonical import Record, expect
from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.texts import is_printable

OUTSIDE = ("ask", "nearest")  # of a value outside the range: ask again, or count it as the nearer end
LONGEST = {"question": 300, "unit": 40, "help": 1000, "example": 60}  # characters
_LONGEST_CHOICE = 200


@dataclass(frozen=True, slots=True)
class Wording:
    """How one attribute is asked about. ``choices`` has a text for each category, in the order of the categories."""

    question: str
    unit: str = ""
    help: str = ""
    example: str = ""
    choices: tuple[str, ...] = ()
    outside: str = "ask"

    def record(self) -> Record:
        """The canonical form: what is not said is left out."""
        given: Record = {name: getattr(self, name) for name in LONGEST if getattr(self, name)}
        if self.choices:
            given["choices"] = list(self.choices)
        return {**given, "outside": self.outside} if self.outside != "ask" else given


def read_wording(records: object, schema: Schema) -> dict[str, Wording]:
    """The words of each attribute that has some; a ``ValueError`` names the rule that the records break."""
    if not isinstance(records, list) or not all(isinstance(given, dict) for given in records):
        raise ValueError("expected wording to be a list of records")
    known = {a.name: a for a in schema.attributes}
    named = [given.get("attribute") for given in records]
    ordered = [name for name in known if name in named]
    expect(bool(ordered) and named == ordered, "wording of attributes of the campaign, each once, in their order")
    return {given["attribute"]: _wording_of(given, known[given["attribute"]]) for given in records}


def wording_records(wording: Mapping[str, Wording]) -> list[Record]:
    """The canonical form of the words of some attributes, which are given in the order of the schema."""
    return [{"attribute": name, **each.record()} for name, each in wording.items()]


def _wording_of(given: Record, attribute: Attribute) -> Wording:
    name = attribute.name
    expect("question" in given, f"a question in the wording of {name}")
    strange = set(given) - {"attribute", *LONGEST, "choices", "outside"}
    expect(not strange, f"no {', '.join(sorted(map(str, strange)))} in the wording of {name}")
    texts = {key: _text(given[key], f"{key} of {name}", LONGEST[key], key == "help") for key in LONGEST if key in given}
    is_known = "outside" not in given or (given["outside"] == "nearest" and not attribute.labels)
    expect(is_known, f"outside of {name} to be left out, or nearest where there is a range")
    choices = _choices(given["choices"], attribute) if "choices" in given else ()
    return Wording(**texts, choices=choices, outside="nearest" if "outside" in given else "ask")


def _choices(given: object, attribute: Attribute) -> tuple[str, ...]:
    rule = f"choices of {attribute.name} to be different texts, one for each of its categories"
    listed = given if isinstance(given, Sequence) and not isinstance(given, str) else []
    expect(bool(attribute.labels) and len(listed) == len(attribute.labels), rule)
    texts = tuple(_text(text, f"a choice of {attribute.name}", _LONGEST_CHOICE) for text in listed)
    expect(len(set(texts)) == len(texts), rule)
    return texts


def _text(value: object, what: str, most: int, lines: bool = False) -> str:
    """A short printable text without spaces around; ``lines`` lets it have ends of lines."""
    is_text = isinstance(value, str) and 1 <= len(value) <= most and value == value.strip(" \n")
    if not isinstance(value, str) or not is_text or not is_printable(value.replace("\n", "") if lines else value):
        raise ValueError(f"expected {what} to be 1 to {most} printable characters without spaces around")
    return value
