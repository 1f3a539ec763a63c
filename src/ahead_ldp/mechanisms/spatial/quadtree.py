"""Quadtree (ABG25): everybody is asked about the finest cells once; what is too small to divide is put together again.

ABG25: E. Alptekin, Balioglu, Gursoy: Hierarchical Spatial Decompositions under Local Differential Privacy, 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, prod, sqrt
from typing import ClassVar, Self

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.solvers.norm_sub import norm_sub
from ahead_ldp.mechanisms.grain import SPATIAL_HEIGHT
from ahead_ldp.mechanisms.spatial.box_estimates import BoxesEstimate
from ahead_ldp.oracles import LinearOracle, Tally, named_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of, check_count, several_codes
from ahead_ldp.schema.arrays import Bools, Floats, Ints

MOST_CELLS = 1 << 14  # of the question: bounds the work and the reports
_CLIPPED_VARIANCE = 0.5  # of an estimate that Norm-Sub set to 0: its error is on one side (decision 003)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadtree(Mechanism):
    """One or two attributes, one wave, one question: the cells of a full quadtree of some height.

    The shares of all other nodes are the sums of the cells below them. From the root down, a node stays divided if
    its share is above ``theta`` and above ``scale`` standard deviations of its noise; people lie evenly in the others.
    Without a ``height`` cells are about as small as ``users`` people can tell apart. ``oracle`` is a registered name,
    or "best" for the least variance.
    """

    name: ClassVar[str] = "quadtree"
    idea: ClassVar[str] = "a quadtree from one question about its cells"
    source: ClassVar[str] = "Alptekin et al., 2025"
    most_attributes: ClassVar[int | None] = 2  # places (ABG25)
    users: int = 1_000_000  # where nobody declares how many will come
    height: int | None = None
    theta: float = 0.0
    scale: float = 1.0  # docs/methods/spatial/quadtree.md
    oracle: str = "best"

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        check_count("users", self.users)
        check_count("height", self.height, optional=True)
        if not 0 <= self.theta < 1:
            raise ValueError(f"expected theta >= 0 and < 1, got {self.theta!r}")
        if not 0 <= self.scale < float("inf"):
            raise ValueError(f"expected scale >= 0, got {self.scale!r}")
        self._oracle(2)

    @classmethod
    def paper(cls, epsilon: float | str | Fraction, users: int = 1_000_000) -> Self:
        """ABG25 as far as its abstract goes: a height and a threshold that are chosen beforehand, and OUE."""
        return cls(epsilon=epsilon, users=users, height=5, theta=0.005, scale=0.0, oracle="oue")

    @classmethod
    def strong(cls, epsilon: float | str | Fraction, users: int = 1_000_000) -> Self:
        """The best setting found at the same epsilon (docs/methods/spatial/quadtree.md): the default."""
        return cls(epsilon=epsilon, users=users)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """Everybody, unless there is nothing to ask."""
        return (Group("1"),) if prod(schema.sizes) > 1 else ()

    def run(self, schema: Schema) -> Run:
        """One data collection; then densities go up the tree, and its structure is corrected on the way down."""
        tree = self.full_tree(schema)
        tally, oracle = Tally.empty(0), None
        for group in self.groups(schema):
            oracle = self._oracle(tree.leaves.size)
            question = Question(tuple(range(len(schema.sizes))), Partition.of_tree(tree), oracle)
            tally = (yield {group.id: question})[group.id]
        volume = tree.volume[tree.leaves]
        cells, kept, block = volume / volume.sum(), np.ones(tree.leaves.size, bool), tree.leaves
        if oracle is not None and tally.n:
            cells = norm_sub(oracle.estimate(tally))
            kept, block = cells > 0, self._blocks(tree, cells, sqrt(oracle.variance(tally.n)))
        nodes, owner = np.unique(block, return_inverse=True)
        sums = np.bincount(owner, cells, nodes.size).astype(float)
        errors = CellErrors(oracle, tally.n, cells, owner, kept)
        return BoxesEstimate(schema, True, tree.lo[nodes], tree.hi[nodes], sums, errors)

    def full_tree(self, schema: Schema) -> Tree:
        """All cells divided down to the height, as far as a question of 16,384 cells allows."""
        axes = axes_of(schema)
        if len(axes) > 2:
            raise ValueError(f"expected at most 2 attributes for {self.name}, got {len(axes)}")
        tree, count = Tree.root(axes, 2), len(several_codes(schema))
        for _ in range(self._height(count) if count else 0):
            finer = tree.split(~tree.is_split)[0]
            if finer.leaves.size > MOST_CELLS and tree.height:
                break
            tree = finer
        return tree

    def _height(self, attributes: int) -> int:
        if self.height is not None:
            return self.height
        return told_apart(self.users, float(self._oracle(MOST_CELLS).variance(1)), attributes)

    def _blocks(self, tree: Tree, cells: Floats, deviation: float) -> Ints:  # -> (cells,)
        """The node that holds each cell and is not divided: the structural correction, from the root down."""
        sums, below = np.zeros(tree.size), np.zeros(tree.size)
        sums[tree.leaves], below[tree.leaves] = cells, 1.0
        for level in reversed(list(tree.levels())[1:]):
            np.add.at(sums, tree.parent[level], sums[level])
            np.add.at(below, tree.parent[level], below[level])
        divided = tree.is_split & (sums > self.theta) & (sums > self.scale * deviation * np.sqrt(below))
        block = np.arange(tree.size)
        for level in list(tree.levels())[1:]:
            above = tree.parent[level]
            stays = divided[above] & (block[above] == above)
            block[level] = np.where(stays, np.arange(level.start, level.stop), block[above])
        return block[tree.leaves]

    def _oracle(self, cells: int) -> LinearOracle:
        return named_oracle(self.oracle, self.epsilon, cells)


def told_apart(users: int, variance: float, attributes: int) -> int:
    """The height at which a cell's share is on average as large as the standard deviation of its estimate."""
    cells = sqrt(users / variance)
    return max(1, int(round(log(cells, 2**attributes) * SPATIAL_HEIGHT) / SPATIAL_HEIGHT + 0.5))  # A12


@dataclass(frozen=True, slots=True, eq=False)
class CellErrors:
    """Sums of cells that one group told about, Norm-Sub applied; the division into boxes is taken as given."""

    oracle: LinearOracle | None  # None where there was nothing to ask
    people: int
    cells: Floats  # (cells,) shares
    owner: Ints  # (cells,) the box of each
    kept: Bools  # (cells,) those that Norm-Sub did not set to 0

    @property
    def width(self) -> int:
        """Cells."""
        return self.cells.size

    def variance(self, weights: Floats) -> Floats:  # (k, boxes) -> (k,)
        """Norm-Sub takes the same off all cells that it keeps, so a common shift does not count."""
        a = weights[:, self.owner]
        if self.oracle is None:
            return np.zeros(len(weights))
        if self.people == 0:
            return np.where(np.ptp(a, axis=1) > 0, np.inf, 0.0)
        a = (a - a[:, self.kept].mean(axis=1, keepdims=True)) * np.where(self.kept, 1.0, sqrt(_CLIPPED_VARIANCE))
        return self.oracle.group_variance(self.people, self.cells, a)
