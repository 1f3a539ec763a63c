"""A code for every value, fitting or not: who has agreed sends one report, whatever the value is (decision 010)."""

from __future__ import annotations

from collections.abc import Mapping

from ahead_ldp.device.codes import Attribute, Number
from ahead_ldp.device.question import Question
from ahead_ldp.device.refusals import ValueRefused
from ahead_ldp.device.words import Words, below


def fitted_payload(question: Question, values: Mapping[str, object], words: Words) -> tuple[bytes, tuple[str, ...]]:
    """The noisy answer to a question, and the attributes whose value did not fit.

    Guarantees:
        always    every record gives a payload of the same length
        privacy   epsilon-LDP over all records, those that do not fit included: the law runs once, on one cell
        fitting   a record that fits the declaration is answered by the law of ``Question.payload``
        chance    the words taken do not depend on whether a value fits
    """
    asked = [question.schema.attributes[i] for i in question.attributes]
    codes, replaced = [], []
    for attribute in asked:
        code, fits = fitted_code(attribute, values.get(attribute.name), words)
        codes.append(code)
        if not fits:
            replaced.append(attribute.name)
    return question.law.draw(question.partition.cell(question.axes, codes), words), tuple(replaced)


def fitted_code(attribute: Attribute, value: object, words: Words) -> tuple[int, bool]:
    """The code of a value and True; of one that does not fit another code and False.

    A number, date or time beyond the declared ends counts as the nearer one. What has no place in the order (missing
    where that is refused, of another kind, no declared category) is missing where the declaration has a code for
    that, and else any code, drawn evenly. The draw is made for every value, so that all take the same chance.
    """
    spare = below(attribute.size, words, 64)
    try:
        return attribute.code(value), True
    except ValueRefused:
        number = None if attribute.labels else _number(attribute, value)
    if number is not None and number < attribute.lo:
        return 0, False
    if number is not None and number > attribute.hi:
        return attribute.ordered_size - 1, False
    return (spare if attribute.missing_code is None else attribute.missing_code), False


def _number(attribute: Attribute, value: object) -> Number | None:
    """Where a value stands in the order, if anywhere; a number may be too large for its kind, or infinite."""
    try:
        return attribute.number(value)
    except ValueRefused:
        return value if isinstance(value, int | float) and attribute.kind in ("integer", "real") else None
