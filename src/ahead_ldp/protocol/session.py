"""A mechanism in progress, with the public chain of what was asked and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ahead_ldp.device.canonical import Record, canonical_bytes, digest
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.device.question import question_record
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.protocol.mechanism import (
    Mechanism,
    Question,
    Tallies,
    Wave,
    campaign_record,
    check_tallies,
    finish,
    frozen_digest,
    tally_record,
)

NOTHING = "0" * 64  # the digest before anything was frozen


class ReplayMismatch(Exception):
    """A recomputed question differs from the stored one: nothing may be published from this run."""


@dataclass(frozen=True, eq=False)
class Provenance:
    """Where an estimate comes from. It is a function of these, so they are what is saved of it."""

    mechanism: Mechanism
    schema: Schema
    history: tuple[Tallies, ...]
    campaign: str = ""

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
        return sum(tally.n for told in self.history for tally in told.values())

    def record(self) -> Record:
        """The canonical form: schema, method, every tally with the digest of its question, and the chain's end."""
        session = Session(self.mechanism, self.schema, self.campaign)
        waves = []
        for told in self.history:
            questions = {group: digest(record) for group, record in session.question_records().items()}
            waves.append([{"group": g, "tally": tally_record(questions[g], told[g])} for g in sorted(told)])
            session.tell(told)
        return {
            "type": "estimate",
            "version": 1,
            "campaign": session.campaign,
            "schema": self.schema.record(),
            "method": self.mechanism.record(),
            "waves": waves,
            "frozen": session.frozen,
            "answers": [repr(float(x)) for x in session.finish().fingerprint()],
            "environment": environment(),
        }


@dataclass
class Session:
    """The waves of one run: which questions are open, what was told, and the digest that binds it all.

    ``campaign`` is the digest that every question carries; a service passes its own, richer record's.
    """

    mechanism: Mechanism
    schema: Schema
    campaign: str = ""
    number: int = 0
    wave: Wave = field(default_factory=dict)
    frozen: str = NOTHING
    history: list[Tallies] = field(default_factory=list)
    estimate: Estimate | None = None

    def __post_init__(self) -> None:
        """Ask the mechanism for its first wave."""
        self.campaign = self.campaign or digest(campaign_record(self.mechanism, self.schema))
        self._run = self.mechanism.run(self.schema)
        self._advance(None)

    @property
    def is_open(self) -> bool:
        """Whether questions wait for tallies."""
        return self.estimate is None

    def question_records(self) -> dict[str, Record]:
        """The canonical forms of the open questions, by group."""
        return {group: self._question_record(group, question) for group, question in self.wave.items()}

    def tell(self, tallies: Tallies) -> None:
        """Close the wave with these tallies and go on to the next, or to the estimate."""
        if not self.is_open:
            raise ValueError("expected an open wave, but the run has ended")
        check_tallies(self.wave, tallies)
        records = self.question_records()
        links = {group: digest(tally_record(digest(records[group]), tallies[group])) for group in tallies}
        self.frozen = frozen_digest(self.campaign, self.frozen, links)
        self.history.append(tallies)
        self._advance(tallies)

    def finish(self) -> Estimate:
        """The estimate from the waves told so far, later ones left empty. The session itself stays as it is."""
        if self.estimate is not None:
            return self.estimate
        return finish(self.mechanism, self.schema, self.history).attach(self._provenance())

    def _advance(self, tallies: Tallies | None) -> None:
        try:
            self.wave = next(self._run) if tallies is None else self._run.send(tallies)
            self.number += 1
        except StopIteration as stop:
            self.wave, self.estimate = {}, stop.value.attach(self._provenance())

    def _provenance(self) -> Provenance:
        return Provenance(self.mechanism, self.schema, tuple(self.history), self.campaign)

    def _question_record(self, group: str, question: Question) -> Record:
        return question_record(
            campaign=self.campaign,
            wave=self.number,
            group=group,
            tallies=self.frozen,
            epsilon=epsilon_text(self.mechanism.epsilon),
            attributes=[self.schema.names[i] for i in question.attributes],
            partition=question.partition.form,
            law=question.oracle.law,
        )


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
        made = {group: canonical_bytes(record) for group, record in session.question_records().items()}
        differ = sorted(g for g in set(made) | set(stored) if made.get(g) != stored.get(g))
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
