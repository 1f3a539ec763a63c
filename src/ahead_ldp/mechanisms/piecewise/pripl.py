"""PriPL-Tree: a first look at the density in straight lines, and a tree on its segments (WYHM24).

WYHM24: L. Wang, Ye, Hu, Meng: PriPL-Tree: Accurate Range Query for Arbitrary Distribution under Local Differential
Privacy. PVLDB 17(11), 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.grids import Grid
from ahead_ldp.mechanisms.piecewise.adaptive_grids import adapt_columns
from ahead_ldp.mechanisms.piecewise.interval_estimates import IntervalEstimate, Margin
from ahead_ldp.mechanisms.piecewise.pripl_estimates import PairsEstimate
from ahead_ldp.mechanisms.piecewise.pripl_margins import MarginTree
from ahead_ldp.oracles import OUE, LinearOracle, named_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol import mechanism as asking
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, Wave, axes_of, several_codes

ESTIMATORS = ("joint", "published")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriPL(Mechanism):
    """Any number of attributes; two waves for one, three for several.

    Wave 1: a part ``alpha`` of the people report by square wave, and lines are fitted to the result, at most
    ``segments``. Wave 2: the others are asked about the nodes of a tree on the segments, divided along its paths in
    ``slots`` equal groups. With several attributes half of the people do this, and wave 3 asks the other half for a
    grid of each pair, its columns adapted to the marginals with the constant ``eta``.

    ``estimator``: "joint" fits the leaves to the reports of both waves at once; "published" averages leaves with the
    first wave's histogram and makes families of siblings consistent. ``oracle`` is a registered name, or "best" for the
    least variance. ``users`` is the number of people expected, read off the first wave if not given.
    """

    name: ClassVar[str] = "pripl"
    idea: ClassVar[str] = "a tree on a piecewise-linear density"
    source: ClassVar[str] = "Wang et al., VLDB 2024"
    users: int | None = None
    alpha: float = 0.2  # as published (WYHM24; docs/methods/piecewise/pripl.md)
    segments: int = 32  # docs/methods/piecewise/pripl.md
    slots: int = 12  # docs/methods/piecewise/pripl.md: few groups lose little
    eta: float = 0.04  # as published (WYHM24 Sec. 4.2)
    oracle: str = "best"
    estimator: str = "joint"

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        asking.check_count("users", self.users, optional=True)
        asking.check_choice("estimator", self.estimator, ESTIMATORS)
        if not 0.001 <= self.alpha <= 0.999:
            raise ValueError(f"expected alpha from 0.001 to 0.999, got {self.alpha!r}")
        if not 2 <= self.segments <= 256 or not 8 <= self.slots <= 1000:
            raise ValueError(f"expected segments in 2..256 and slots in 8..1000, got {self.segments}, {self.slots}")
        if not 0 < self.eta < float("inf"):
            raise ValueError(f"expected eta > 0, got {self.eta!r}")
        self._oracle(2)

    @classmethod
    def paper(cls, epsilon: float | str | Fraction, users: int | None = None) -> Self:
        """The published method."""
        return cls(epsilon=epsilon, users=users, oracle="oue", estimator="published", slots=60)

    @classmethod
    def strong(cls, epsilon: float | str | Fraction, users: int | None = None) -> Self:
        """The best setting found at the same epsilon: the default (docs/methods/piecewise/pripl.md)."""
        return cls(epsilon=epsilon, users=users)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """For each attribute one that shows the shape and ``slots`` for the tree; then one for each pair."""
        attributes = several_codes(schema)
        pairs = list(combinations(attributes, 2))
        shape, slot = round(1000 * self.alpha) * self.slots, 1000 - round(1000 * self.alpha)
        scale = max(len(pairs), 1)  # half of the people for the attributes, half for the pairs
        groups = []
        for a in attributes:
            groups.append(Group(f"shape-{a}", scale * shape))
            groups += [Group(f"tree-{a}-{s}", scale * slot) for s in range(self.slots)]
        whole = (shape + slot * self.slots) * len(attributes)
        return (*groups, *(Group(f"grid-{a}-{b}", whole) for a, b in pairs))

    def run(self, schema: Schema) -> Run:
        """Shape, tree, and for several attributes grids (WYHM24 Sec. 3.2 and 4.1)."""
        trees = [self._tree(schema, a) for a in several_codes(schema)]
        if not trees:
            return PairsEstimate.of(schema, {}, [])
        tallies = yield {f"shape-{tree.attribute}": tree.first_question() for tree in trees}
        for tree in trees:
            tally = tallies[f"shape-{tree.attribute}"]
            tree.grow(tally, self._everybody(len(trees), tally.n))
        tallies = yield {group: question for tree in trees for group, question in tree.questions().items()}
        margins = {tree.attribute: tree.margin(tallies) for tree in trees}
        if len(schema.attributes) == 1:
            return IntervalEstimate(schema, margins[0], consistent=True)
        questions = self._grid_questions(schema, trees, margins)
        tallies = (yield questions) if questions else {}
        grids = [Grid.of(q.attributes, q.partition, q.oracle, tallies[group]) for group, q in questions.items()]
        return PairsEstimate.of(schema, margins, grids)

    def _tree(self, schema: Schema, attribute: int) -> MarginTree:
        return MarginTree(
            attribute,
            Axis.of(schema.attributes[attribute]),
            self.epsilon,
            self._oracle,
            segments=self.segments,
            slots=self.slots,
            joint=self.estimator == "joint",
        )

    def _everybody(self, attributes: int, told: int) -> float:
        """How many people an attribute has for both of its waves."""
        if self.users is None:
            return told / self.alpha
        return self.users / (2 * attributes if attributes > 1 else 1)

    def _grid_questions(self, schema: Schema, trees: list[MarginTree], margins: dict[int, Margin]) -> Wave:
        """A grid for each pair, cells counting with the people that half of everybody are (Sec. 4.2)."""
        pairs = list(combinations(trees, 2))
        people = sum(tree.everybody for tree in trees) / max(len(pairs), 1)
        variance = float(OUE.make(self.epsilon, 2).variance(1)) / max(people, 1.0)
        questions = {}
        for one, two in pairs:
            both = (one.attribute, two.attribute)
            first, second = (margins[a] for a in both)
            columns = adapt_columns(
                (first.borders, second.borders),
                (first.density, second.density),
                variance,
                self.eta,
                (one.forced, two.forced),
            )
            partition = Partition.grid(axes_of(schema, both), [side[1:-1].tolist() for side in columns])
            if partition.cells == 1:  # too few people for anything finer
                partition = Partition.equal_grid(partition.axes, [2, 2])
            questions[f"grid-{both[0]}-{both[1]}"] = Question(both, partition, self._oracle(partition.cells))
        return questions

    def _oracle(self, cells: int) -> LinearOracle:
        return named_oracle(self.oracle, self.epsilon, cells)
