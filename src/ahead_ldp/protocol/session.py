"""The one driver of a run: a mechanism in progress, with the public chain of what was asked and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ahead_ldp.device.canonical import Record, canonical_bytes, digest
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.device.question import question_record
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.protocol import mechanism as protocol
from ahead_ldp.protocol.mechanism import Mechanism, Question, Tallies, Wave
from ahead_ldp.schema.arrays import Floats

NOTHING = "0" * 64  # the digest before anything was frozen


class ReplayMismatch(Exception):
    """A recomputed question differs from the stored one: nothing may be published from this run."""


@dataclass(frozen=True, eq=False)
class Provenance:
    """Where an estimate comes from: what was asked and told, wave by wave. It is all that is saved of an estimate.

    Every wave holds on to the one before it: a session goes on while the estimate of its first waves stays.
    """

    mechanism: Mechanism
    schema: Schema
    own_campaign: str = ""  # the digest of a service's record, richer than ours
    before: Provenance | None = None  # without the last wave
    wave: Wave = field(default_factory=dict)  # the last one that was answered
    tallies: Tallies = field(default_factory=dict)  # its answers

    def __repr__(self) -> str:
        """Short: every question and count is in ``answered``."""
        waves = f"{len(self.waves)} wave{'s' * (len(self.waves) != 1)}"
        return f"<Provenance: {self.method}, epsilon {self.epsilon}, {waves}, {self.people:,} people>"

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.mechanism.name

    @property
    def epsilon(self) -> str:
        """Epsilon as it was declared."""
        return epsilon_text(self.mechanism.epsilon)

    @property
    def people(self) -> int:
        """How many people's reports were counted."""
        return sum(tally.n for tallies in self.history for tally in tallies.values())

    @cached_property
    def campaign(self) -> str:
        """The digest that every question carries."""
        return self.own_campaign or digest(protocol.campaign_record(self.mechanism, self.schema))

    @property
    def waves(self) -> tuple[Provenance, ...]:
        """What was known after each wave."""
        return () if self.before is None else (*self.before.waves, self)

    @property
    def history(self) -> tuple[Tallies, ...]:
        """The tallies of each wave."""
        return tuple(after.tallies for after in self.waves)

    @cached_property
    def answered(self) -> list[tuple[Question, Tally]]:
        """Every question of the closed waves with its tally."""
        return [(question, after.tallies[group]) for after in self.waves for group, question in after.wave.items()]

    @cached_property
    def everybody(self) -> int | None:
        """How many people there are in all; None while some groups have not been asked."""
        asked = {group for after in self.waves for group in after.wave}
        left = any(group.id not in asked for group in self.mechanism.groups(self.schema))
        return None if left else self.people

    @cached_property
    def questions(self) -> dict[str, str]:
        """The digests of the last wave's questions, by group."""
        return {group: digest(record) for group, record in self.question_records().items()}

    @cached_property
    def frozen(self) -> str:
        """The link of the public chain that binds the tallies of all waves to their questions."""
        if self.before is None:
            return NOTHING
        links = {group: digest(record) for group, record in self.tally_records().items()}
        return protocol.frozen_digest(self.campaign, self.before.frozen, links)

    @cached_property
    def links(self) -> list[str]:
        """The chain after each wave: two runs with a link in common share all reports up to it."""
        return [after.frozen for after in self.waves]

    def then(self, wave: Wave, tallies: Tallies) -> Provenance:
        """One wave more."""
        return Provenance(self.mechanism, self.schema, self.own_campaign, self, wave, tallies)

    def question_records(self) -> dict[str, Record]:
        """The canonical forms of the last wave's questions, by group."""
        return {} if self.before is None else self.before.next_records(self.wave)

    def tally_records(self) -> dict[str, Record]:
        """The canonical forms of the last wave's tallies, by group."""
        return {group: protocol.tally_record(asked, self.tallies[group]) for group, asked in self.questions.items()}

    def next_records(self, wave: Wave) -> dict[str, Record]:
        """The canonical forms of the questions that are asked next, by group."""
        return {
            group: question_record(
                campaign=self.campaign,
                wave=len(self.waves) + 1,
                group=group,
                tallies=self.frozen,
                epsilon=self.epsilon,
                attributes=[self.schema.names[i] for i in question.attributes],
                partition=question.partition.form,
                law=question.oracle.law,
            )
            for group, question in wave.items()
        }

    def record(self, answers: Floats) -> Record:
        """The canonical form: schema, method, every tally with the digest of its question, and the chain's end.

        ``answers`` are the estimate's `fingerprint`, by which it is known again. Questions that cannot be computed
        again are in it too.
        """
        waves = [
            [{"group": group, "tally": tally} for group, tally in sorted(after.tally_records().items())]
            for after in self.waves
        ]
        return {
            "type": "estimate",
            "version": 1,
            "campaign": self.campaign,
            "schema": self.schema.record(),
            "method": self.mechanism.record(),
            "waves": waves,
            **({} if self.mechanism.computes else {"questions": self._asked()}),
            "frozen": self.frozen,
            "answers": [repr(float(x)) for x in answers],
            "environment": environment(),
        }

    def _asked(self) -> list[list[Record]]:
        return [
            [{"group": group, "question": question} for group, question in sorted(after.question_records().items())]
            for after in self.waves
        ]


class Session:
    """A mechanism stepped through its waves, whoever answers: the open questions, what was told, and the estimate.

    ``campaign`` is the digest that every question carries; a service passes its own, richer record's.
    """

    def __init__(self, mechanism: Mechanism, schema: Schema, campaign: str = "") -> None:
        """Ask the mechanism for its first wave."""
        self.mechanism, self.schema = mechanism, schema
        self.provenance = Provenance(mechanism, schema, campaign)
        self.wave: Wave = {}  # the open questions; none when the run has ended
        self.estimate: Estimate | None = None  # when it has
        self._so_far: Estimate | None = None  # of a run that has not
        self._run = mechanism.run(schema)
        self._advance(None)

    @classmethod
    def after(cls, mechanism: Mechanism, schema: Schema, history: Sequence[Tallies]) -> Session:
        """A session after these waves."""
        session = cls(mechanism, schema)
        for waves, tallies in enumerate(history):
            if not session.is_open:
                raise ValueError(f"expected the tallies of at most {waves} waves, got {len(history)}")
            session.tell(tallies)
        return session

    @property
    def is_open(self) -> bool:
        """Whether questions wait for tallies."""
        return self.estimate is None

    def question_records(self) -> dict[str, Record]:
        """The canonical forms of the open questions, by group."""
        return self.provenance.next_records(self.wave)

    @property
    def campaign(self) -> str:
        """The digest that every question carries."""
        return self.provenance.campaign

    def answered(self) -> list[tuple[Question, Tally]]:
        """Every question of the closed waves with its tally."""
        return self.provenance.answered

    @property
    def history(self) -> list[Tallies]:
        """The tallies of the closed waves."""
        return list(self.provenance.history)

    def tell(self, tallies: Tallies) -> None:
        """Close the wave with these tallies and go on to the next, or to the estimate."""
        if not self.is_open:
            raise ValueError("expected an open wave, but the run has ended")
        protocol.check_tallies(self.wave, tallies)
        self.provenance = self.provenance.then(self.wave, tallies)
        self._so_far = None
        self._advance(tallies)

    @property
    def frozen(self) -> str:
        """The digest that binds everything told so far."""
        return self.provenance.frozen

    def finish(self) -> Estimate:
        """The estimate from the waves told so far, later ones left empty. The session itself stays as it is."""
        if self.estimate is not None:
            return self.estimate
        if self._so_far is None:
            self._so_far = finish(self.mechanism, self.schema, self.history).attach(self.provenance)
        return self._so_far

    @property
    def number(self) -> int:
        """The open wave, from 1; the last one when the run has ended."""
        return len(self.provenance.waves) + self.is_open

    @one_thread
    def _advance(self, tallies: Tallies | None) -> None:
        try:
            self.wave = next(self._run) if tallies is None else self._run.send(tallies)
        except StopIteration as stop:
            self.wave, self.estimate = {}, stop.value.attach(self.provenance)


def finish(mechanism: Mechanism, schema: Schema, history: Sequence[Tallies] = ()) -> Estimate:
    """The estimate from the waves told so far; the groups of later waves count as empty."""
    session = Session.after(mechanism, schema, history)
    while session.estimate is None:
        session.tell({group: Tally.empty(question.oracle.outcomes) for group, question in session.wave.items()})
    return session.estimate


def replay(
    mechanism: Mechanism,
    schema: Schema,
    stored_questions: Sequence[Mapping[str, bytes]],
    history: Sequence[Tallies],
    campaign: str = "",
) -> Session:
    """The session behind stored questions and tallies: every question is recomputed and must equal its stored bytes.

    Stored bytes are the truth; a mismatch stops with an error, because people answered the stored question.
    """
    session = Session(mechanism, schema, campaign)
    for number, stored in enumerate(stored_questions, start=1):
        recomputed = {group: canonical_bytes(record) for group, record in session.question_records().items()}
        differ = sorted(g for g in set(recomputed) | set(stored) if recomputed.get(g) != stored.get(g))
        if differ:
            raise ReplayMismatch(
                f"wave {number}: the questions of group {', '.join(differ)} are not the stored ones ({environment()})"
            )
        if number > len(history):
            break
        session.tell(history[number - 1])
    return session


def environment() -> str:
    """What a floating-point result may depend on, in one line."""
    import platform

    import numpy

    return f"Python {platform.python_version()}, NumPy {numpy.__version__}, {platform.machine()}"
