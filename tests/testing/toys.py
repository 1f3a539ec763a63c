"""Foreign methods and an oracle: a right one of each, and the three faults that the contract is there for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.laws.grr import GRRLaw
from ahead_ldp.estimates.measurements import Measurement
from ahead_ldp.mechanisms.ahead.averaging import average
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.oracles import GRR, linear_oracle
from ahead_ldp.oracles.base import Moments
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Halves(Mechanism):
    """Two groups of one attribute's people answer the same question; their estimates are averaged."""

    name: ClassVar[str] = "halves"
    most_attributes: ClassVar[int | None] = 1

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        if len(schema.attributes) != 1:
            raise ValueError(f"expected one attribute for halves, got {len(schema.attributes)}")
        return (Group("1", 1), Group("2", 3)) if schema.sizes[0] > 1 else ()

    def run(self, schema: Schema) -> Run:
        groups = self.groups(schema)
        tree = Tree.root(axes_of(schema), max(2, schema.sizes[0]))
        if not groups:
            return TreeEstimate(schema, average(tree, []), consistent=False)
        tree = tree.split(np.array([True]))[0]
        oracle = linear_oracle("grr", self.epsilon, tree.leaves.size)
        question = Question((0,), Partition.of_tree(tree), oracle)
        told = yield {group.id: question for group in groups}
        told = {**told, **(yield from self.again(question))}
        measurements = [
            Measurement(tree.leaves, oracle.estimate(tally), n, oracle, projected=False)
            for tally, n in self.weighed([(group, told[group]) for group in self.order(told)])
        ]
        return TreeEstimate(schema, average(tree, measurements), consistent=False)

    def again(self, question):
        return {}
        yield

    def order(self, told):
        return sorted(told)

    def weighed(self, tallies):
        return [(tally, tally.n) for _, tally in tallies]


class AsksTwice(Halves):
    """The people of the first group are asked a second time."""

    __slots__ = ()

    def again(self, question):
        return (yield {"1": question})


class DependsOnOrder(Halves):
    """Weighs by the place of a group in what it is told, where it should look at its name."""

    __slots__ = ()

    def order(self, told):
        return list(told)

    def weighed(self, tallies):
        return [(tally, tally.n * (i + 1)) for i, (_, tally) in enumerate(tallies)]


class WrongVariance(Halves):
    """Believes that there are twice as many people as there are."""

    __slots__ = ()

    def weighed(self, tallies):
        return [(tally, 2 * tally.n) for _, tally in tallies]


# An oracle with a law of its own: randomised response under another name.


@dataclass(frozen=True, slots=True)
class ToyLaw(GRRLaw):
    name: ClassVar[str] = "toy"


@dataclass(frozen=True, slots=True)
class Toy(GRR):
    name: ClassVar[str] = "toy"
    law_type: ClassVar[type[GRRLaw]] = ToyLaw


class ToyWrongVariance(Toy):
    """Promises half the variance."""

    __slots__ = ()

    @property
    def moments(self) -> Moments:
        m = GRR.moments.fget(self)
        return Moments(m.own / 2, m.other / 2, m.cross_own / 2, m.cross / 2)


class ToyTells(Toy):
    """Tells the truth more often than it says."""

    __slots__ = ()

    def _log_prob(self, reports, code):
        return GRR._log_prob(self, reports, code) * 1.1
