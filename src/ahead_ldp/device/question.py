"""A question as a device meets it: checked in full before the private value is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ahead_ldp.device.canonical import Record, check_digest, digest, fields, integer, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import exact_epsilon, parse_epsilon
from ahead_ldp.device.frames import Header, Report, new_report_id
from ahead_ldp.device.laws import Law, law_from_record
from ahead_ldp.device.partition import Axis, PartitionForm, partition_from_record
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.device.words import SystemWords, Words

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
    def axes(self) -> list[Axis]:
        """The axes of the attributes asked."""
        return [Axis.of(self.schema.attributes[i]) for i in self.attributes]

    @property
    def header(self) -> Header:
        """The header of a batch that answers this question."""
        return Header(self.campaign, self.digest)

    def cell(self, values: Mapping[str, object]) -> int:
        """The cell of a private record. Attributes that are not asked are not read."""
        asked = [self.schema.attributes[i] for i in self.attributes]
        return self.partition.cell(self.axes, [a.code(values.get(a.name)) for a in asked])

    def payload(self, values: Mapping[str, object], words: Words) -> bytes:
        """The noisy answer from given words: for test vectors. A device calls ``report``."""
        return self.law.draw(self.cell(values), words)

    def report(self, values: Mapping[str, object]) -> Report:
        """One report, from the operating system's randomness. Call it once; resend its bytes, never redraw."""
        return Report(new_report_id(), self.payload(values, SystemWords()))


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
    found = fields(record, _FIELDS, "the question")
    if found["type"] != "question":
        raise ValueError("expected a question")
    integer(found["version"], "version", 1, 1)
    if check_digest(found["campaign"], "campaign") != campaign:
        raise ValueError("expected a question of the pinned campaign")
    check_digest(found["tallies"], "tallies")
    if not isinstance(found["group"], str) or not found["group"]:
        raise ValueError("expected group to be a text")
    names = found["attributes"]
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise ValueError("expected attributes to be a list of names")
    asked = tuple(schema.index(name) for name in names)
    if len(set(asked)) != len(asked):
        raise ValueError("expected each attribute once")
    epsilon = parse_epsilon(found["epsilon"])
    if epsilon > exact_epsilon(policy.max_epsilon):
        raise ValueError("expected epsilon within the device's limit")
    partition, law = partition_from_record(found["partition"]), law_from_record(found["oracle"])
    if law.cells > policy.max_cells:
        raise ValueError(f"expected at most {policy.max_cells} cells")
    if partition.cells([Axis.of(schema.attributes[i]) for i in asked]) != law.cells:
        raise ValueError("expected the oracle's cells to be the partition's")
    if not law.is_private(epsilon):
        raise ValueError("expected the oracle's integers to keep the declared epsilon")
    wave = integer(found["wave"], "wave", 1, 10_000)
    return Question(schema, campaign, digest(record), wave, found["group"], epsilon, asked, partition, law)
