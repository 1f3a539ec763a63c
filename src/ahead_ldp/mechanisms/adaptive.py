"""Adaptive: one attribute, partitions that grow finer where people are, and an estimate from all reports at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.adaptive_estimates import AdaptiveEstimate
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.partition import Axis, TreeForm
from ahead_ldp.inference.adaptive_density import ESTIMATORS, look
from ahead_ldp.inference.averaging import Measurement
from ahead_ldp.inference.binary_trees import BinaryTree, complete_tree
from ahead_ldp.mechanisms.decomposition import check_choice, levels
from ahead_ldp.mechanisms.hdg import named_oracle
from ahead_ldp.oracles import LinearOracle
from ahead_ldp.partitions import Partition
from ahead_ldp.protocol import Group, Mechanism, Question, Run, Tallies, axes_of, check_tallies
from ahead_ldp.trees import Tree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_GRAIN = 2.0**30  # comparisons on the way to a question are rounded to 2**-30 (DESIGN, decision 3)
_TOP = 2  # levels of the first partition: four cells
_AT_ONCE = 6  # scales asked about before anything is known: up to 128 cells
_ROUGH = 0.25  # standard deviation of a half's share up to which cells need not be finer
_MOST_LEVELS = 14  # of the finest: 16,384 cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive(Mechanism):
    """One attribute; the default where nothing else is named.

    ``resolutions`` groups of equal size are asked about partitions from coarse to fine. A partition's cells hold at
    most a certain mass, as far as is known when the question is asked. From group to group that mass falls by the same
    factor, from one half to ``finest`` standard deviations of a cell if everybody were asked about it; where people lie
    evenly, to more. So every scale that the reports can resolve gets about as many people (docs/methods/adaptive.md).

    ``waves`` is in how many waves the groups are asked, by default one each. The groups of the first wave are asked
    about equal cells, 4, 8, 16 and so on to 128, then from 4 again. ``oracle`` is a registered name, or "best" for the
    least variance. ``estimator`` other than "shrinkage" is for comparison (``inference.adaptive_density``).

    Privacy: a person draws a group without looking at the value and sends one report, through an epsilon-LDP
    oracle, about a partition that depends on other people's reports only (those of earlier waves; groups of one wave do
    not see each other). How many groups there are depends on the schema alone. All the rest is post-processing: each
    change against AHEAD (the oracle, cells by mass, equal scales, the estimate) only chooses among partitions, or
    works on reports that were sent. So epsilon-LDP holds as in AHEAD Sec. 4.3.
    """

    name: ClassVar[str] = "adaptive"
    most_attributes: ClassVar[int | None] = 1
    oracle: str = "best"
    resolutions: int = 8
    finest: float = 3.5
    waves: int | None = None
    estimator: str = "shrinkage"

    def __post_init__(self) -> None:
        """Refuse choices that are none."""
        Mechanism.__post_init__(self)
        if type(self.resolutions) is not int or not 1 <= self.resolutions <= 64:
            raise ValueError(f"expected resolutions in 1..64, got {self.resolutions!r}")
        if self.waves is not None and (type(self.waves) is not int or self.waves < 1):
            raise ValueError(f"expected waves to be a positive integer or None, got {self.waves!r}")
        if not 0 < self.finest < float("inf"):
            raise ValueError(f"expected finest > 0, got {self.finest!r}")
        check_choice("estimator", self.estimator, ESTIMATORS)
        self._oracle(2)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each resolution; a single one where there is nothing finer than the first question."""
        return tuple(Group(str(i + 1)) for i in range(self._count(_axis(schema))))

    def run(self, schema: Schema) -> Run:
        """Waves from coarse to fine, then the estimate from all of them."""
        axis = _axis(schema)
        tree, count = complete_tree(axis, _MOST_LEVELS), self._count(axis)
        told: list[Measurement] = []
        for wave in np.array_split(np.arange(count), min(self.waves or count, count)) if count else ():
            cuts = {i: self._cut(tree, told, i, count) for i in wave.tolist()}
            questions = {str(i + 1): self._question(tree.tree, cut) for i, cut in cuts.items()}
            tallies = yield questions
            for i, cut in cuts.items():
                oracle, tally = self._oracle(int(cut.cells.size)), tallies[str(i + 1)]
                told.append(Measurement(cut.cells, oracle.estimate(tally), tally.n, oracle))
        return AdaptiveEstimate.of(schema, tree, told, self.estimator)

    def _count(self, axis: Axis) -> int:
        if axis.size == 1:
            return 0
        finer = levels((axis,), 2) - _TOP + 1
        return 1 if axis.nominal else max(1, min(self.resolutions, finer))

    def _cut(self, tree: BinaryTree, told: Sequence[Measurement], i: int, count: int) -> Cut:
        """The partition for group i: cells of at most the mass of its turn, or before anything is known equal cells."""
        if not told:
            return Cut.of(tree.tree, tree.tree.level < _TOP + i % _AT_ONCE)
        reports = sum(m.n for m in told)
        if reports == 0:
            return Cut.of(tree.tree, tree.tree.level < _TOP)
        everybody = reports * count / len(told)
        variance = max(float(m.oracle.variance(1)) for m in told) / everybody
        masses, roughness = look(tree, told)
        top = 2.0 ** (1 - _TOP)
        deviations = self.finest * np.maximum(1.0, _ROUGH / roughness)
        least = np.minimum(deviations * float(np.sqrt(variance)), top)
        limit = top * (least / top) ** (i / (count - 1))
        heavy = np.rint(masses * _GRAIN) > np.rint(limit * _GRAIN)
        return Cut.of(tree.tree, heavy | (tree.tree.level < 1))

    def _question(self, tree: Tree, cut: Cut) -> Question:
        flags = "".join("1" if flag else "0" for flag in cut.flags)
        partition = Partition(TreeForm(tree.fanout, flags), tree.axes, tree.lo[cut.cells], tree.hi[cut.cells])
        return Question((0,), partition, self._oracle(cut.cells.size))

    def _oracle(self, cells: int) -> LinearOracle:
        return _oracle_of(self.oracle, self.epsilon, cells)


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A partition into nodes of a tree."""

    flags: Bools  # for each node at or above the cells, breadth first: whether it is divided
    cells: Ints  # the nodes, breadth first

    @classmethod
    def of(cls, tree: Tree, divided: Bools) -> Cut:  # (nodes,)
        """The first nodes on the way down that are not to be divided."""
        divided = divided & tree.is_split
        reached = np.zeros(tree.size, bool)
        reached[0] = True
        for level in list(tree.levels())[1:]:
            above = tree.parent[level]
            reached[level] = reached[above] & divided[above]
        return cls(divided[reached], np.flatnonzero(reached & ~divided))


@lru_cache(maxsize=4096, typed=True)
def _oracle_of(name: str, epsilon: float | str | Fraction, cells: int) -> LinearOracle:
    return named_oracle(name, epsilon, cells)


def _axis(schema: Schema) -> Axis:
    if len(schema.attributes) != 1:
        raise ValueError(f"expected one attribute for {Adaptive.name}, got {len(schema.attributes)}")
    return axes_of(schema)[0]


def reread(mechanism: Mechanism, schema: Schema, history: Sequence[Tallies]) -> AdaptiveEstimate:
    """The estimate that this module makes of another method's tallies: post-processing, so nothing is asked again.

    For one attribute whose questions are about nodes of its binary tree, such as AHEAD's with fan-out 2; those of
    other partitions are refused.
    """
    tree = complete_tree(_axis(schema), _MOST_LEVELS)
    place = {
        side: i for i, side in enumerate(zip(tree.tree.lo[:, 0].tolist(), tree.tree.hi[:, 0].tolist(), strict=True))
    }
    told, run = [], mechanism.run(schema)
    wave = next(run, {})
    for tallies in history:
        for group, question in wave.items():
            sides = zip(question.partition.lo[:, 0].tolist(), question.partition.hi[:, 0].tolist(), strict=True)
            nodes = np.array([place.get(side, -1) for side in sides])
            oracle, tally = question.oracle, tallies[group]
            if (nodes < 0).any() or not isinstance(oracle, LinearOracle):
                raise ValueError(f"expected questions about nodes of a binary tree, got those of {mechanism.name}")
            told.append(Measurement(nodes, oracle.estimate(tally), tally.n, oracle))
        try:
            wave = run.send(check_tallies(wave, tallies))
        except StopIteration:
            break
    return AdaptiveEstimate.of(schema, tree, told)
