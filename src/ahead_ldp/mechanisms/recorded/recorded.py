"""A mechanism that asks what was asked: its questions are the stored ones, whatever method once computed them.

It stands in where a campaign's own method cannot be run (a version that this program does not have), or would have
asked something else. Nothing is computed on the way to a question, so nothing that was stored can disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ahead_ldp.device.canonical import Record, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.question import Policy, check_question
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms.recorded.recorded_estimates import RecordedEstimate
from ahead_ldp.mechanisms.square_wave.wave_estimates import WaveEstimate
from ahead_ldp.mechanisms.wavelet.wavelet_estimates import Order, WaveletEstimate, halvings
from ahead_ldp.oracles import SW, Haar, Tally, oracle_of_law
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, Wave

_ANY_CELLS = 2**31  # the campaign was accepted when it was opened
_EM_TOLERANCE = 1e-3  # LWLLS20


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Mechanism):
    """The stored questions of a campaign, wave by wave, and an estimate from them alone."""

    name: ClassVar[str] = "recorded"
    computes: ClassVar[bool] = False
    method: Record  # what the campaign names; it is not run
    members: tuple[Group, ...]
    waves: tuple[Wave, ...]

    @classmethod
    def of(
        cls,
        method: Record,
        schema: Schema,
        groups: Sequence[tuple[str, int]],
        stored: Sequence[Mapping[str, bytes]],
        campaign: str,
    ) -> Recorded:
        """From the canonical bytes of the questions by group, wave by wave; ``campaign`` is the digest they carry."""
        epsilon = next((parse_canonical(data)["epsilon"] for wave in stored for data in wave.values()), None)
        waves = tuple({g: stored_question(data, schema, campaign) for g, data in wave.items()} for wave in stored)
        members = tuple(Group(*group) for group in groups)
        return cls(epsilon=epsilon or method["epsilon"], method=method, members=members, waves=waves)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """As the campaign lists them."""
        del schema
        return self.members

    def record(self) -> Record:
        """The record of the campaign's own method."""
        return self.method

    def run(self, schema: Schema) -> Run:
        """Ask what was asked."""
        told: list[tuple[Question, Tally]] = []
        for wave in self.waves:
            tallies = yield wave
            told += [(question, tallies[group]) for group, question in wave.items()]
        return estimate_from(schema, told)


def stored_question(data: bytes, schema: Schema, campaign: str) -> Question:
    """The question behind canonical bytes, checked as a device checks it."""
    epsilon = parse_canonical(data)["epsilon"]
    checked = check_question(data, schema, campaign, Policy(epsilon, max_cells=_ANY_CELLS))
    partition = Partition.of_form(checked.partition, checked.axes)
    return Question(checked.attributes, partition, oracle_of_law(checked.law))


def estimate_from(schema: Schema, told: Sequence[tuple[Question, Tally]]) -> Estimate:
    """What questions and their tallies say by themselves.

    Haar coefficients and square waves say nothing about a single cell: they are read by the transform and the
    likelihood that belong to them. Everything else is a ``RecordedEstimate``.
    """
    if len(schema.attributes) == 1 and any(isinstance(question.oracle, Haar) for question, _ in told):
        orders = sorted((Order.of(question, tally) for question, tally in told), key=lambda order: order.halves.size)
        if halvings(schema, orders):
            return WaveletEstimate.of(schema, orders, "clipped")
    if len(told) == 1 and isinstance(oracle := told[0][0].oracle, SW) and schema.sizes == (oracle.d,):
        return WaveEstimate.of(schema, oracle, told[0][1], False, _EM_TOLERANCE)
    return RecordedEstimate.of(schema, [(q.attributes, q.partition, q.oracle, tally) for q, tally in told])
