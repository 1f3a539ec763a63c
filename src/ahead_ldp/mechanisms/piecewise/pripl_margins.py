"""One attribute of PriPL-Tree: from the first look to the distribution (WYHM24 Sec. 3)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.piecewise.interval_estimates import Margin
from ahead_ldp.mechanisms.piecewise.interval_reports import NodeReport, tile
from ahead_ldp.mechanisms.piecewise.interval_trees import IntervalTree
from ahead_ldp.mechanisms.piecewise.path_allocation import allocate, grow_tree
from ahead_ldp.mechanisms.piecewise.piecewise_linear import Pieces, fit_pieces
from ahead_ldp.mechanisms.piecewise.segment_masses import JointMasses, Masses, average, fit_jointly
from ahead_ldp.oracles import OUE, SW, LinearOracle, Tally
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Question, Tallies
from ahead_ldp.schema.arrays import Floats, Ints

_ROUNDING = 1e-12  # a mass below this is rounding: its shape is taken as level


class MarginTree:
    """The tree of one attribute while it is asked about: first question, growth, questions, margin, in this order.

    Nominal codes have no shape: both waves ask for every code. The missing code is a leaf of its own.
    """

    def __init__(
        self,
        attribute: int,
        axis: Axis,
        epsilon: float | str | Fraction,
        oracle: Callable[[int], LinearOracle],
        *,
        segments: int,
        slots: int,
        joint: bool,
    ) -> None:
        self.attribute, self.axis, self.oracle = attribute, axis, oracle
        self.segments, self.slots, self.joint = segments, slots, joint
        self.wave = None if axis.nominal else SW.make(epsilon, axis.size)
        self.bit_variance = float(OUE.make(epsilon, 2).variance(1))  # of one person's answer about a cell
        self.everybody = 0.0

    @property
    def forced(self) -> Ints:
        """Borders that a grid must keep."""
        if self.axis.nominal:
            return np.arange(self.axis.size + 1)
        return np.array([self.axis.size - 1] if self.axis.missing else [], np.int64)

    def first_question(self) -> Question:
        """Phase 1: a square wave on all codes."""
        cells = Partition.cells_of([self.axis])
        return Question((self.attribute,), cells, self.wave or self.oracle(cells.cells))

    def grow(self, tally: Tally, everybody: float) -> None:
        """Fit lines to what the first wave said, and grow the tree on them (Alg. 1 and 2)."""
        self.everybody, self.first = everybody, tally
        d = self.axis.size
        if self.wave is None:
            self.smooth = np.full(d, 1 / d)
            self.pieces = Pieces(np.arange(d + 1), np.zeros(d))
            self.tree = IntervalTree.of([(0, d), *((v, v + 1) for v in range(d))])
        else:
            rough, self.smooth = self.wave.em(tally), self.wave.em(tally, smooth=True)
            self.pieces = self._pieces(rough, self.smooth)
            self.tree = grow_tree(self.pieces.borders)
        start, stop = allocate(self.tree, self.slots)
        self.tiles = [tile(self.tree, start, stop, s) for s in range(self.slots)]

    def _pieces(self, rough: Floats, smooth: Floats) -> Pieces:
        ordered = self.axis.size - self.axis.missing
        if self.first.n == 0:
            pieces = Pieces.equal(ordered, self.segments)
        else:
            # a leaf should stand out of the noise that the tree's people leave in it
            people = max(self.everybody - self.first.n, 1.0)
            least_mass = np.sqrt(self.bit_variance / people)
            pieces = fit_pieces(rough[:ordered], smooth[:ordered], least_mass, self.segments)
        return pieces.with_code() if self.axis.missing else pieces

    def questions(self) -> dict[str, Question]:
        """Phase 2: the nodes of the tree, a tiling of them for each slot of people."""
        questions = {}
        for s, nodes in enumerate(self.tiles):
            cells = Partition.grid([self.axis], [self.tree.lo[nodes, 0][1:].tolist()])
            questions[f"tree-{self.attribute}-{s}"] = Question((self.attribute,), cells, self.oracle(nodes.size))
        return questions

    def margin(self, tallies: Tallies) -> Margin:
        """Phase 3: the masses of the leaves, and lines inside them."""
        reports = [self._report(nodes, tallies[f"tree-{self.attribute}-{s}"]) for s, nodes in enumerate(self.tiles)]
        people = self.first.n + sum(r.n for r in reports)
        start = self.pieces.masses(self.smooth)
        if self.wave is None:
            reports.append(self._report(self.tree.segments, self.first))
            masses: Masses | JointMasses = average(self.tree, reports, None, 0.0, people)
        elif self.joint and people > self.first.n:
            masses = fit_jointly(self.tree, reports, self.wave, self.first, self._shapes(start), start)
        else:
            noise = self.bit_variance / max(self.first.n, 1)
            histogram = start if self.first.n else None
            masses = average(self.tree, reports, histogram, noise, people, equal=not self.joint)
        return Margin(self.pieces, masses.values, masses)

    def _report(self, nodes: Ints, tally: Tally) -> NodeReport:
        oracle = self.oracle(nodes.size)
        return NodeReport(nodes, oracle.estimate(tally), tally.n, oracle)

    def _shapes(self, masses: Floats) -> Floats:  # -> (leaves, d)
        """The density of a unit mass in each leaf."""
        density = self.pieces.density(masses)
        owner = np.repeat(np.arange(masses.size), np.diff(self.pieces.borders))
        level = 1 / np.diff(self.pieces.borders)[owner]
        shape = np.divide(density, masses[owner], out=level, where=masses[owner] > _ROUNDING)
        return np.where(np.arange(masses.size)[:, None] == owner, shape, 0.0)
