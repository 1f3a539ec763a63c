"""PrivNUD: a tree with a fan-out of its own for every node, pruned while it is asked (WWWN23).

WWWN23: N. Wang, Y. Wang, Z. Wang, Nie, Wei, Tang, Gu, Yu: PrivNUD: Effective Range Query Processing under Local
Differential Privacy. ICDE 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import ClassVar, Self

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.measurements import pool
from ahead_ldp.estimates.solvers.norm_sub import norm_sub
from ahead_ldp.estimates.solvers.tree_least_squares import TreeLeastSquares
from ahead_ldp.mechanisms.grain import PRIVNUD_NOISE
from ahead_ldp.mechanisms.piecewise.fanout_plan import PlannedNode, containing, plan
from ahead_ldp.mechanisms.piecewise.interval_estimates import IntervalEstimate, Margin
from ahead_ldp.mechanisms.piecewise.interval_reports import NodeReport, cell_precision
from ahead_ldp.mechanisms.piecewise.interval_trees import IntervalTree
from ahead_ldp.mechanisms.piecewise.piecewise_linear import Pieces
from ahead_ldp.mechanisms.piecewise.segment_masses import Masses
from ahead_ldp.oracles import LinearOracle, Tally, named_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol import mechanism as asking
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, only_axis
from ahead_ldp.schema.arrays import Bools, Floats

ESTIMATORS = ("weighted", "published")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivNUD(Mechanism):
    """One attribute. People stand in a fixed order and are divided along the paths of the planned tree.

    A node that has been asked about and is not worth its children is pruned: everybody who comes later is asked about
    the node itself. So there is one wave for each moment at which some node of the plan has been asked about, 13 for
    1024 codes.

    ``estimator``: "weighted" is generalised least squares, non-negative in each family of siblings; "published" makes
    the levels non-negative first and then averages as if all nodes were equally noisy. ``oracle`` is a registered name,
    or "best" for the least variance. ``users`` is the number of people expected, read off the first waves if not given.
    """

    name: ClassVar[str] = "privnud"
    idea: ClassVar[str] = "a tree whose nodes choose their fanout"
    source: ClassVar[str] = "Wang et al., ICDE 2023"
    most_attributes: ClassVar[int | None] = 1
    users: int | None = None
    oracle: str = "best"
    estimator: str = "weighted"

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        asking.check_choice("estimator", self.estimator, ESTIMATORS)
        asking.check_count("users", self.users, optional=True)
        self._oracle(2)

    @classmethod
    def paper(cls, epsilon: float | str | Fraction, users: int | None = None) -> Self:
        """The published method."""
        return cls(epsilon=epsilon, users=users, oracle="oue", estimator="published")

    @classmethod
    def strong(cls, epsilon: float | str | Fraction, users: int | None = None) -> Self:
        """The best setting found at the same epsilon: the default (docs/methods/piecewise/privnud.md)."""
        return cls(epsilon=epsilon, users=users)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each stretch of people between two moments of the plan."""
        moments = _moments(planned(only_axis(schema, self.name)))
        scale = lcm(*(m.denominator for m in moments))
        return tuple(Group(str(i), int((b - a) * scale)) for i, (a, b) in enumerate(pairwise(moments), start=1))

    def run(self, schema: Schema) -> Run:
        """Ask, prune, ask the next stretch of people; then put the tree together."""
        axis = only_axis(schema, self.name)
        nodes = planned(axis)
        moments = _moments(nodes)
        progress = _Progress(nodes, axis.size)
        for group, (now, then) in zip(self.groups(schema), pairwise(moments), strict=True):
            asked = progress.asked(now)
            cuts = [nodes[i].lo for i in asked][1:]
            oracle = self._oracle(len(asked))
            tally = (yield {group.id: Question((0,), Partition.grid([axis], [cuts]), oracle)})[group.id]
            progress.tell(asked, tally, oracle)
            everybody = self.users if self.users is not None else float(progress.people / then)
            progress.prune(then, everybody)
        return self._estimate(schema, progress)

    def _oracle(self, cells: int) -> LinearOracle:
        return named_oracle(self.oracle, self.epsilon, cells)

    def _estimate(self, schema: Schema, progress: _Progress) -> IntervalEstimate:
        tree, reports = progress.tree()
        own, precision = pool(tree, reports)
        published = self.estimator == "published"
        if published:
            own = level_norm_sub(tree, own, precision > 0)
        passes = TreeLeastSquares.of(tree, (precision > 0).astype(float) if published else precision)
        values = (passes.solve(own) if published else passes.solve_non_negative(own))[tree.segments]
        nothing = np.zeros(tree.size)
        masses = Masses(tree, values, passes, tuple(reports), nothing, nothing, progress.people)
        borders = np.append(tree.lo[tree.segments], tree.hi[0])
        margin = Margin(Pieces(borders, np.zeros(values.size)), values, masses)
        return IntervalEstimate(schema, margin, consistent=not published)


class _Progress:
    """The plan while it is carried out: which nodes are pruned, and what was said about the others."""

    def __init__(self, nodes: tuple[PlannedNode, ...], d: int) -> None:
        self.nodes, self.d = nodes, d
        self.stop = [n.stop for n in nodes]  # 1 once a node is pruned
        self.alive = [True] * len(nodes)
        self.answers: list[tuple[list[int], Tally, LinearOracle]] = []
        self.sums = np.zeros((len(nodes), 3))  # people, precision, precision times estimate

    @property
    def people(self) -> int:
        """Everybody who answered so far."""
        return sum(tally.n for _, tally, _ in self.answers)

    def asked(self, now: Fraction) -> list[int]:
        """The nodes that the people from this moment on are asked about, from left to right."""
        live = (i for i, n in enumerate(self.nodes) if i and self.alive[i] and n.start <= now < self.stop[i])
        return sorted(live, key=lambda i: self.nodes[i].lo)

    def tell(self, asked: list[int], tally: Tally, oracle: LinearOracle) -> None:
        """Take in what a group said."""
        self.answers.append((asked, tally, oracle))
        if tally.n:
            precision = cell_precision(oracle, tally.n)
            self.sums[asked, :2] += tally.n, precision
            self.sums[asked, 2] += precision * oracle.estimate(tally)

    def prune(self, now: Fraction, everybody: float) -> None:
        """Decide about every node that has just been asked about for the last time."""
        for i, node in enumerate(self.nodes):
            if self.alive[i] and node.children and i and self.stop[i] == now and not self._is_worth(i, everybody):
                self.stop[i] = Fraction(1)
                below = list(node.children)
                while below:
                    child = below.pop()
                    self.alive[child] = False
                    below += self.nodes[child].children

    def _is_worth(self, i: int, everybody: float) -> bool:
        """Whether noise with children is less than without, where the bias takes all mass to be in one child.

        That is the child which most ranges use on its own. Without reports there is no reason to cut.
        """
        people, precision, weighted = self.sums[i]
        if people == 0:
            return False
        node, family = self.nodes[i], [self.nodes[c] for c in self.nodes[i].children]
        f, variance = weighted / precision, 1 / precision
        uses = self._uses([node], self.nodes[node.parent])[0]
        child_uses = self._uses(family, node)
        left = max(everybody * float(1 - node.start), people)
        cut = (uses + child_uses.sum()) * variance
        even, most = f / len(family), child_uses.max()
        whole = uses * variance * people / left + (child_uses.sum() - most) * even**2 + most * (f - even) ** 2
        return bool(round(whole / cut * PRIVNUD_NOISE) >= PRIVNUD_NOISE)  # A12

    def _uses(self, nodes: list[PlannedNode], parent: PlannedNode) -> Floats:
        lo, hi = np.array([n.lo for n in nodes]), np.array([n.hi for n in nodes])
        both = np.array([parent.lo]), np.array([parent.hi])
        return containing(lo, hi, self.d) - containing(*both, self.d)

    def tree(self) -> tuple[IntervalTree, list[NodeReport]]:
        """The root's children and the families that somebody was asked about, and what was said about them."""
        heard = (self.sums[:, 0] > 0) & self.alive
        kept, todo = [0], [0]
        while todo:
            children = self.nodes[todo.pop()].children
            if children and (self.nodes[children[0]].parent == 0 or heard[list(children)].any()):
                kept += children
                todo += children
        tree = IntervalTree.of((self.nodes[i].lo, self.nodes[i].hi) for i in kept)
        place = {span: j for j, span in enumerate(zip(tree.lo[:, 0].tolist(), tree.hi[:, 0].tolist(), strict=True))}
        reports = []
        for asked, tally, oracle in self.answers:
            if tally.n:
                nodes = np.array([place[self.nodes[i].lo, self.nodes[i].hi] for i in asked])
                reports.append(NodeReport(nodes, oracle.estimate(tally), tally.n, oracle))
        return tree, reports


def planned(axis: Axis) -> tuple[PlannedNode, ...]:
    """The plan for an axis. Nominal codes part at once; the missing code is a child of the root on its own."""
    ordered = axis.size - axis.missing
    if axis.nominal or ordered == 1:
        return _flat(axis.size)
    nodes = plan(ordered)
    if not axis.missing:
        return nodes
    whole, zero = nodes[0], Fraction(0)
    root = PlannedNode(0, axis.size, -1, (*whole.children, len(nodes)), zero, zero)
    return (root, *nodes[1:], PlannedNode(ordered, axis.size, 0, (), zero, Fraction(1)))


def _flat(d: int) -> tuple[PlannedNode, ...]:
    zero = Fraction(0)
    codes = range(d) if d > 1 else ()
    root = PlannedNode(0, d, -1, tuple(range(1, len(codes) + 1)), zero, zero)
    return (root, *(PlannedNode(v, v + 1, 0, (), zero, Fraction(1)) for v in codes))


def level_norm_sub(tree: IntervalTree, own: Floats, known: Bools) -> Floats:
    """Each level non-negative, with the sum of the nodes above it; a level that is not known in full stays."""
    own = own.copy()
    own[0] = 1.0
    for level in list(tree.levels())[1:]:
        if known[level].all():
            above = np.unique(tree.parent[level])
            own[level] = norm_sub(own[level], max(float(own[above].sum()), 0.0))
    return own


def _moments(nodes: tuple[PlannedNode, ...]) -> list[Fraction]:
    """0, and when each node of the plan has been asked about."""
    return sorted({n.stop for n in nodes} | {Fraction(0)})
