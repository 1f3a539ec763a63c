"""A mechanism asks questions and is told tallies; nothing else. It never meets a person, a socket or a clock."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ahead_ldp.device.canonical import Record, digest, fields, integer
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import epsilon_text, exact_epsilon, parse_epsilon
from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.oracles.base import Oracle
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.partitions.partition import Partition


@dataclass(frozen=True, slots=True)
class Group:
    """People who answer one question: an id, and a share of everybody relative to the other groups'."""

    id: str
    share: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What a group is asked: some attributes, a partition of their domain, and the oracle that hides the cell."""

    attributes: tuple[int, ...]
    partition: Partition
    oracle: Oracle

    def __post_init__(self) -> None:
        """Partition and oracle must speak of the same cells."""
        if self.partition.cells != self.oracle.d:
            raise ValueError(f"expected an oracle on {self.partition.cells} cells, got one on {self.oracle.d}")


Wave = Mapping[str, Question]  # group id -> question; the questions open at the same time
Tallies = Mapping[str, Tally]
Run = Generator[Wave, Tallies, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism(ABC):
    """A way to turn people's noisy answers into range answers. Its fields are its named choices, all publishable.

    Guarantees, held for everything registered by the contract tests:
        privacy  every person answers at most one question, with an epsilon-LDP oracle
        pure     questions and estimate are functions of the schema, the fields and the tallies
        any n    a tally of n = 0 is legal for any group and means "no information": so feeding empty tallies ends
                 a run after any number of waves with an estimate from what is known
    """

    name: ClassVar[str]
    idea: ClassVar[str] = ""  # in a few words, for lists of methods
    source: ClassVar[str] = ""  # the paper, or our own page
    version: ClassVar[int] = 1  # of the questions: one more whenever any of them changes (decision 015)
    estimate_version: ClassVar[int] = 1  # of what is made of the tallies: one more whenever an answer changes
    most_attributes: ClassVar[int | None] = None  # None: any number
    ordered_only: ClassVar[bool] = False  # refuses nominal attributes and cells for missing values
    computes: ClassVar[bool] = True  # its questions from the tallies; where not, they are recorded beside them
    epsilon: float | str | Fraction

    def __post_init__(self) -> None:
        """Raise ValueError for an epsilon that is not positive, or too large to be declared."""
        exact_epsilon(self.epsilon)

    @abstractmethod
    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """All groups, known before the first report; each answers in exactly one wave."""

    @abstractmethod
    def run(self, schema: Schema) -> Run:
        """Yield waves of questions, be sent their tallies, return the estimate."""

    def left_out(self, schema: Schema) -> str:
        """What is not asked since few people are expected, in a sentence's part; empty if nothing is."""
        del schema
        return ""

    def record(self) -> Record:
        """The canonical form: name, versions and every choice. A version of the estimate that is not named is 1."""
        choices = {f.name: _write(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name != "epsilon"}
        named = {} if self.estimate_version == 1 else {"estimate_version": self.estimate_version}
        return {
            "name": self.name,
            "version": self.version,
            **named,
            "epsilon": epsilon_text(self.epsilon),
            "choices": choices,
        }

    @classmethod
    def from_record(cls, record: object) -> Self:
        """The mechanism behind its canonical form; another version is refused."""
        named = "" if cls.estimate_version == 1 else "estimate_version"
        stored = fields(record, f"name version epsilon choices {named}", "the method")
        if stored["name"] != cls.name or stored["version"] != cls.version:
            raise ValueError(f"expected {cls.name} of version {cls.version}, got {stored['name']} {stored['version']}")
        if stored.get("estimate_version", 1) != cls.estimate_version:
            got = stored.get("estimate_version", 1)
            raise ValueError(f"expected {cls.name} with estimates of version {cls.estimate_version}, got {got}")
        names = [f.name for f in dataclasses.fields(cls) if f.name != "epsilon"]
        choices = fields(stored["choices"], " ".join(names), "the choices")
        parse_epsilon(stored["epsilon"])
        return cls(epsilon=stored["epsilon"], **{name: _read(choices[name]) for name in names})


def axes_of(schema: Schema, attributes: Sequence[int] | None = None) -> tuple[Axis, ...]:
    """The axes of some attributes, or of all."""
    chosen = range(len(schema.attributes)) if attributes is None else attributes
    return tuple(Axis.of(schema.attributes[i]) for i in chosen)


def only_axis(schema: Schema, method: str) -> Axis:
    """The axis of the only attribute; a ValueError where there are several."""
    if len(schema.attributes) != 1:
        raise ValueError(f"expected one attribute for {method}, got {len(schema.attributes)}")
    return Axis.of(schema.attributes[0])


def check_ordered(axes: Sequence[Axis], method: str) -> None:
    """Raise ValueError for a nominal attribute, and for one that has a cell for missing values."""
    for axis in axes:
        if axis.nominal or axis.missing:
            kind = "a nominal attribute" if axis.nominal else "a cell for missing values"
            raise ValueError(
                f"expected an ordered attribute without a cell for missing values for {method}, got {kind}"
            )


def several_codes(schema: Schema) -> list[int]:
    """The attributes with more than one code: there is nothing to ask about the others."""
    return [a for a, size in enumerate(schema.sizes) if size > 1]


def dotted(numbers: Sequence[int]) -> str:
    """The id of a group from the attributes or levels that it is asked about."""
    return ".".join(map(str, numbers))


def check_choice(argument: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not among the named ones."""
    if value not in allowed:
        raise ValueError(f"expected {argument} to be one of {', '.join(allowed)}, got {value!r}")


def check_count(
    argument: str, value: object, least: int = 1, most: int | None = None, *, optional: bool = False
) -> None:
    """Raise ValueError for what is no integer in least..most; None passes where it is ``optional``."""
    if optional and value is None:
        return
    if type(value) is not int or value < least or (most is not None and value > most):
        wanted = f"an integer in {least}..{most}" if most is not None else f"an integer >= {least}"
        wanted = "a positive integer" if (least, most) == (1, None) else wanted
        raise ValueError(f"expected {argument} to be {wanted}{' or None' * optional}, got {value!r}")


def check_tallies(wave: Wave, tallies: Tallies) -> Tallies:
    """The tallies themselves if they answer exactly the questions of the wave."""
    if set(tallies) != set(wave):
        raise ValueError(f"expected tallies of the groups {sorted(wave)}, got {sorted(tallies)}")
    for group, question in wave.items():
        question.oracle.check_tally(tallies[group])
    return tallies


def campaign_record(mechanism: Mechanism, schema: Schema) -> Record:
    """What a run is about: the schema, the method, its groups. The service adds who asks, why and until when."""
    groups = [{"id": g.id, "share": g.share} for g in mechanism.groups(schema)]
    return {
        "type": "campaign",
        "version": 1,
        "schema": schema.record(),
        "method": mechanism.record(),
        "groups": groups,
    }


def tally_record(question: str, tally: Tally) -> Record:
    """The canonical form of a tally of the question with this digest."""
    return {
        "type": "tally",
        "version": 1,
        "question": question,
        "n": tally.n,
        "counts": tally.counts.tolist(),
    }


def tally_from_record(record: object, question: str) -> Tally:
    """The tally behind its canonical form, if it is of this question."""
    stored = fields(record, "type version question n counts", "the tally")
    if (stored["type"], stored["version"], stored["question"]) != ("tally", 1, question):
        raise ValueError("expected a tally of version 1 of the question at hand")
    counts = stored["counts"]
    if not isinstance(counts, list):
        raise ValueError(f"expected counts to be a list, got {type(counts).__name__}")
    n = integer(stored["n"], "n", 0)
    return Tally(n, np.array([integer(c, "every count", 0, n) for c in counts], np.int64))


def frozen_digest(campaign: str, previous: str, tallies: Mapping[str, str]) -> str:
    """The link of the public chain that binds a wave's tallies (group -> digest) to all before them."""
    listed = [{"group": group, "tally": tallies[group]} for group in sorted(tallies)]
    return digest({"type": "frozen", "version": 1, "campaign": campaign, "previous": previous, "tallies": listed})


def _write(choice: Any) -> Any:
    if isinstance(choice, float):
        return {"real": repr(choice)}
    return list(choice) if isinstance(choice, tuple) else choice


def _read(choice: Any) -> Any:
    if isinstance(choice, dict):
        return float(fields(choice, "real", "a choice")["real"])
    return tuple(choice) if isinstance(choice, list) else choice
