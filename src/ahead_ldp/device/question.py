"""A question as a device meets it: checked in full before the private value is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ahead_ldp.device.canonical import Record, check_digest, digest, expect, fields, integer, parse_canonical
from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.epsilon import exact_epsilon, parse_epsilon
from ahead_ldp.device.frames import Header, Report
from ahead_ldp.device.laws import Law, law_from_record
from ahead_ldp.device.partition import Axis, PartitionForm, partition_from_record
from ahead_ldp.device.refusals import QuestionRefused, ValueRefused
from ahead_ldp.device.tokens import new_nonce, report_id
from ahead_ldp.device.words import SystemWords, Words, below

_FIELDS = "type version campaign wave group tallies epsilon attributes partition oracle"


@dataclass(frozen=True, slots=True)
class Policy:
    """What this device is willing to answer, whatever a server says."""

    max_epsilon: float | str | Fraction
    max_cells: int = 2**16


@dataclass(frozen=True, slots=True)
class Question:
    """A question that passed every check: its partition tiles the domain and its law is epsilon-LDP."""

    schema: Schema
    campaign: str
    digest: str
    wave: int
    group: str
    epsilon: Fraction
    attributes: tuple[int, ...]
    partition: PartitionForm
    law: Law

    @property
    def asked(self) -> tuple[Attribute, ...]:
        """The attributes asked, in the question's order."""
        return tuple(self.schema.attributes[i] for i in self.attributes)

    @property
    def axes(self) -> list[Axis]:
        """The axes of the attributes asked."""
        return [Axis.of(attribute) for attribute in self.asked]

    @property
    def header(self) -> Header:
        """The header of a batch that answers this question."""
        return Header(self.campaign, self.digest)

    def cell(self, values: Mapping[str, object]) -> int:
        """The cell of a private record that fits the declaration. Attributes that are not asked are not read."""
        return self.partition.cell(self.axes, [a.code(values.get(a.name)) for a in self.asked])

    def draw(self, values: Mapping[str, object], words: Words) -> tuple[bytes, tuple[str, ...]]:
        """The payload for a private record, and the names of the attributes whose value did not fit.

        This is the one draw: every device makes it, in every language, and the vectors pin it. Values that are missing
        or outside the declaration are replaced, and the report is sent all the same (decision 010).

        Guarantees:
            always    every record gives a payload of the same length
            privacy   epsilon-LDP over all records, those that do not fit included: the law runs once, on one cell
            chance    the words taken do not depend on whether a value fits

        Words: for each attribute in order ``below(size)`` on 64-bit words, its spare code; then those of the law.
        """
        codes, replaced = [], []
        for attribute in self.asked:
            value, spare = _value(values, attribute.name), below(attribute.size, words, 64)
            try:
                codes.append(attribute.code(value))
            except ValueRefused:
                codes.append(attribute.stand_in(value, spare))
                replaced.append(attribute.name)
        return self.law.draw(self.partition.cell(self.axes, codes), words), tuple(replaced)

    def report(self, values: Mapping[str, object]) -> Report:
        """One report, from the operating system's randomness. Call it once; resend its bytes, never redraw.

        For a program that can mend what it holds: a value that does not fit raises ``ValueRefused``, and nothing is
        drawn. A person's device calls ``draw``, because its silence would tell.
        """
        held = {attribute.name: values.get(attribute.name) for attribute in self.asked}
        for attribute in self.asked:
            attribute.code(held[attribute.name])
        return Report(report_id(new_nonce()), self.draw(held, SystemWords())[0])


def _value(values: Mapping[str, object], name: str) -> object:
    """The value of a record, missing where the record does not give one: reading it never fails."""
    try:
        return values.get(name)
    except Exception:  # a record of another kind, whose methods raise what they like
        return None


def question_record(
    *,
    campaign: str,
    wave: int,
    group: str,
    tallies: str,
    epsilon: str,
    attributes: list[str],
    partition: PartitionForm,
    law: Law,
) -> Record:
    """The canonical form of a question. ``tallies`` is the digest of all that was frozen before it."""
    return {
        "type": "question",
        "version": 1,
        "campaign": campaign,
        "wave": wave,
        "group": group,
        "tallies": tallies,
        "epsilon": epsilon,
        "attributes": attributes,
        "partition": partition.record(),
        "oracle": law.record(),
    }


def check_question(data: bytes, schema: Schema, campaign: str, policy: Policy) -> Question:
    """The question behind canonical bytes, or ``QuestionRefused`` with the rule that it breaks.

    Nothing here looks at a private value, so a refusal says nothing about one.
    """
    try:
        return _check(parse_canonical(data), schema, campaign, policy)
    except ValueError as error:
        raise QuestionRefused(str(error)) from None


def _check(record: Record, schema: Schema, campaign: str, policy: Policy) -> Question:
    named = fields(record, _FIELDS, "the question")
    expect(named["type"] == "question", "a question")
    integer(named["version"], "version", 1, 1)
    expect(check_digest(named["campaign"], "campaign") == campaign, "a question of the pinned campaign")
    check_digest(named["tallies"], "tallies")
    expect(isinstance(named["group"], str) and named["group"] != "", "group to be a text")
    names = named["attributes"]
    is_list = isinstance(names, list) and names != [] and all(isinstance(name, str) for name in names)
    expect(is_list, "attributes to be a list of names")
    asked = tuple(schema.index(name) for name in names)
    expect(len(set(asked)) == len(asked), "each attribute once")
    epsilon = parse_epsilon(named["epsilon"])
    expect(epsilon <= exact_epsilon(policy.max_epsilon), "epsilon within the device's limit")
    partition, law = partition_from_record(named["partition"]), law_from_record(named["oracle"])
    expect(law.cells <= policy.max_cells, f"at most {policy.max_cells} cells")
    cells = partition.cells([Axis.of(schema.attributes[i]) for i in asked])
    expect(cells == law.cells, "the oracle's cells to be the partition's")
    expect(law.is_private(epsilon), "the oracle's integers to keep the declared epsilon")
    wave = integer(named["wave"], "wave", 1, 10_000)
    return Question(schema, campaign, digest(record), wave, named["group"], epsilon, asked, partition, law)
