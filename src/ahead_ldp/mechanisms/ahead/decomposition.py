"""A decomposition that grows wave by wave: what AHEAD does to one tree, whoever asks the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.measurements import Measurement
from ahead_ldp.estimates.solvers.norm_sub import norm_sub
from ahead_ldp.mechanisms.ahead.averaging import Averaged, average
from ahead_ldp.mechanisms.grain import AHEAD_FREQUENCY
from ahead_ldp.oracles import LinearOracle, Tally, linear_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Mechanism, Question, check_choice
from ahead_ldp.schema.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownTrees(Mechanism):
    """The named choices of a decomposition; ``docs/departures.md`` says what each costs.

    ``tested``: what is compared with theta: the "raw" estimate (Algorithm 1), or after "norm_sub" (published code).
    ``stopped``: whether a node that was not divided stays so ("final", the text of step 3) or is tested again with
    every later group ("retested", Algorithm 1 to the letter).
    ``scale`` multiplies theta; 1 is the paper's. ``oracle`` is a registered name, or "best" for the least variance.
    """

    source: ClassVar[str] = "Du et al., CCS 2021"
    oracle: str = "oue"
    fanout: int = 2  # paper, Sec. 4.4: the choice of B
    tested: str = "raw"
    stopped: str = "final"
    scale: float = 1.0
    max_cells: int = 1 << 16  # of a question: bounds the work and the reports

    def __post_init__(self) -> None:
        """Refuse a choice that does not exist."""
        Mechanism.__post_init__(self)
        check_choice("tested", self.tested, ("raw", "norm_sub"))
        check_choice("stopped", self.stopped, ("final", "retested"))
        if self.fanout < 2:
            raise ValueError(f"expected fanout >= 2, got {self.fanout}")
        if not self.scale > 0:
            raise ValueError(f"expected scale > 0, got {self.scale}")

    @classmethod
    def paper(cls, epsilon: float | str, fanout: int = 2) -> Self:
        """The paper's: raw estimates are tested, stopped nodes stay stopped and are estimated again."""
        return cls(epsilon=epsilon, fanout=fanout)

    def make_oracle(self, cells: int) -> LinearOracle:
        """The oracle for a question on this many cells."""
        epsilon = self.epsilon if isinstance(self.epsilon, float | str) else float(self.epsilon)
        return linear_oracle(self.oracle, epsilon, cells)


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """A tree, which of its leaves may still be divided, which of them are heavy, and what was measured."""

    rules: GrownTrees
    tree: Tree
    is_open: Bools  # (nodes,) leaves whose fate is not sealed
    heavy: Bools  # (nodes,) leaves above theta
    measurements: tuple[Measurement, ...] = ()

    @classmethod
    def start(cls, rules: GrownTrees, axes: Sequence[Axis]) -> Decomposition:
        """The root, which is always divided."""
        tree = Tree.root(axes, rules.fanout)
        cells = int(tree.prospective_children[0])
        if cells > rules.max_cells:
            raise ValueError(
                f"expected a first question of at most {rules.max_cells} cells, got {cells}: {len(axes)} attributes are"
                " cut at once; use method 'lle', which asks about pairs of attributes"
            )
        return cls(rules, tree, np.array([True]), np.array([True]))

    def divided(self) -> Decomposition:
        """New decomposition generation (AHEAD Alg. 1, lines 6-16): heavy leaves are divided."""
        tree, place = self.tree.split(self.heavy)
        is_open = np.ones(tree.size, bool)
        is_open[place] = self.is_open
        moved = tuple(replace(m, nodes=place[m.nodes]) for m in self.measurements)
        return replace(self, tree=tree, is_open=is_open, heavy=np.zeros(tree.size, bool), measurements=moved)

    @property
    def oracle(self) -> LinearOracle:
        """The oracle for a question on the leaves."""
        return self.rules.make_oracle(self.tree.leaves.size)

    def question(self, attributes: tuple[int, ...]) -> Question:
        """The leaves, asked of one group."""
        return Question(attributes, Partition.of_tree(self.tree), self.oracle)

    def measured(self, tally: Tally) -> Decomposition:
        """Noisy frequency construction (AHEAD Alg. 1, lines 17-21), and the test that decides the next division.

        Without reports nothing is known: nothing is divided and nothing is stopped.
        """
        leaves, oracle = self.tree.leaves, self.oracle
        estimate = oracle.estimate(tally)
        measurement = Measurement(leaves, norm_sub(estimate), tally.n, oracle, projected=True)  # Alg. 2's Norm-Sub
        known = replace(self, measurements=(*self.measurements, measurement))
        if tally.n == 0:
            return known
        tested = estimate if self.rules.tested == "raw" else measurement.estimate
        theta = threshold(oracle.variance(tally.n), self.tree.prospective_children[leaves], self.rules.scale)
        above = np.rint(tested * AHEAD_FREQUENCY) > np.rint(theta * AHEAD_FREQUENCY)
        heavy, is_open = np.zeros(self.tree.size, bool), self.is_open.copy()
        heavy[leaves] = above & self.is_open[leaves]
        if self.rules.stopped == "final":
            is_open[leaves] &= above
        return replace(known, is_open=is_open, heavy=self._within_limit(heavy, leaves, tested))

    def averaged(self) -> Averaged:
        """Post-processing (AHEAD Alg. 2): Norm-Sub was done layer by layer; average from the bottom up."""
        return average(self.tree, self.measurements)

    def _within_limit(self, heavy: Bools, leaves: Ints, tested: Floats) -> Bools:
        """The heaviest of the heavy leaves, as many as ``max_cells`` allows."""
        gain = self.tree.prospective_children - 1
        room = self.rules.max_cells - leaves.size
        if gain[heavy].sum() <= room:
            return heavy
        order = leaves[np.argsort(-np.rint(tested * AHEAD_FREQUENCY), kind="stable")]
        order = order[heavy[order]]
        kept = np.zeros_like(heavy)
        kept[order[np.cumsum(gain[order]) <= room]] = True
        return kept


def threshold(variance: float, children: Ints | int, scale: float = 1.0) -> Floats:
    """theta = sqrt((k + 1) Var), k the children that a node would get (AHEAD Eq. 6, where k = B)."""
    return scale * np.sqrt((np.asarray(children) + 1) * variance)


def levels(axes: Sequence[Axis], fanout: int) -> int:
    """How often a domain can be divided until every cell is a single code: log_B |D| for powers of B."""
    deepest = 0
    for axis in axes:
        lo, hi, count = 0, axis.size, 0
        while hi - lo > 1:
            borders = axis.parts(lo, hi, fanout)
            longest = max(range(len(borders) - 1), key=lambda i: borders[i + 1] - borders[i])
            lo, hi = borders[longest], borders[longest + 1]
            count += 1
        deepest = max(deepest, count)
    return deepest
