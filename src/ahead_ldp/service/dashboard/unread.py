"""What is said to somebody whose typed question cannot be answered: in words, with one that could be."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.schema.units import borders, text
from ahead_ldp.schema.workloads import Workload
from ahead_ldp.service.dashboard.axes import short

_MOST_LISTED, _LONGEST, _LONGEST_SAID = 12, 40, 300  # names in a sentence; letters of what was typed, and of a text
# What the query's own errors begin with, and what a page says instead. A test asks for every one of them.
_SAID = [
    (r"expected an attribute among .*, got ''$", "Please choose what to ask about: {names}."),
    (r"expected an attribute among .*, got '(.*)'$", "Nobody was asked about “{0}”. You can ask about {names}."),
    (r"expected a range that meets (.*)\.\.(.*), declared for (.*), got ", "The answers about {2} go from {0} to {1}."),
    (r"expected lo <= hi in the range for (.*), got ", "The first end of a range comes first, as in {example}."),
    (r"expected a category of (.*) among (.*), got '", "{0} has these choices: {1}."),
    (r"expected a value of kind \w+ for (.*), got '(.*)'$", "“{1}” is no answer about {0}. Try {example}."),
    (r"expected numbers below .* for (.*), got ", "This number is too large for {0}."),
    (r"expected a set for the nominal attribute (.*), got ", "The choices of {0} have no order: ask as in {example}."),
    (r"expected (.*) to stand once", "Name {0} once, as in {example}."),
    (r"expected or between conditions on one attribute", "“or” joins answers to one question. Ask about each alone."),
    # Of the forms of analyses.
    (r"expected a query for a share, got none$", "Please write of which people you want the share, as in {example}."),
    (r"expected (?:a number of ranges|bins >= 1), got ", "Ranges: please write a whole number of 1 or more."),
    (r"expected another attribute than (.*), by which", "{0} makes the groups. Ask about something else."),
    (r"expected an attribute with an order, got the nominal (.*)$", "The choices of {0} have no order: count shares."),
    (r"expected one of the groups (.*), got '(.*)'$", "There is no group “{1}”. These are the choices: {0}."),
    (r"expected two different groups, got ", "Please choose two different groups."),
    (r"expected two attributes, got one of them twice$", "Please choose two different questions."),
    (r"expected lines of attribute, category, share, got '(.*)'$", "“{0}” is no line of question, category, share."),
    (r"expected every category of (.*) once, got '(.*)' twice$", "The known shares of {0} have “{1}” twice."),
    (r"expected at least one margin, got none$", "Please write the known shares, a line for each category."),
    (r"expected a share of every value of (.*) in its .*none for '(.*)'$", "The share of “{1}” of {0} is missing."),
    (r"expected shares or counts >= 0, .* in the margin of (.*), got ", "Shares of {0} are 0 or more, not all 0."),
    (r"expected shares that sum to 1, .*margin of (.*), got the sum (.*)$", "The shares of {0} sum to {1}."),
]  # fmt: skip


def signed(typed: str, attributes: Sequence[Attribute]) -> str:
    """A question in which the minus sign that our tables print is the one that a number is typed with."""
    if any("−" in label for a in attributes for label in a.labels or ()):
        return typed
    return re.sub(r"−(?=\s*[\d.])", "-", typed)


def pointed(query: str, schema: Schema) -> str:
    """What is said of a question about single numbers of a range of reals; nothing about any other question.

    Such a range is counted in parts. One number in it has no width: the best guess would be 0, and the interval would
    reach up to the whole part, as many people may have given just this number. A range tells more.
    """
    boxes = Workload.from_queries(schema, [query]).boxes
    for a, (low, high) in zip(schema.attributes, boxes.transpose(1, 2, 0), strict=True):
        for code in low[low == high].tolist():
            edges, at = borders(a), min(int(code), a.ordered_size - 1)
            first, last = (text(a, float(edge)).replace(",", "") for edge in edges[at : at + 2])
            return f"{a.name} is counted in parts. Ask about a range, as in {a.name} between {first} and {last}."
    return ""


def unread(error: ValueError, attributes: Sequence[Attribute], examples: Sequence[str]) -> str:
    """Why a question was not answered, and how one is written."""
    listed = [a.name for a in attributes[:_MOST_LISTED]]
    names = ", ".join(listed) + (" and others" if len(attributes) > _MOST_LISTED else "")
    shown = [text for text in examples if text]
    for pattern, said in _SAID:
        if found := re.match(pattern, str(error), re.DOTALL):
            parts = [short(part, 200 if "choices" in said else _LONGEST) for part in found.groups()]
            fitting = [text for text in shown if parts and text.startswith(parts[0])]
            return said.format(*parts, names=names, example=(fitting or shown)[0])
    return f"This could not be read as a question. Write it as one of these: {'; '.join(shown)}."


def unread_part(error: ValueError, attributes: Sequence[Attribute], example: str) -> str:
    """The same for a form that has more in it than a question: what is wrong with that is said as it is."""
    said = str(error)
    asked = " in the query " in said or any(re.match(pattern, said, re.DOTALL) for pattern, _ in _SAID)
    return unread(error, attributes, [example]) if asked else short(said, _LONGEST_SAID)
