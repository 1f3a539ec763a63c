"""Fused: what single attributes say and what pairs of them say, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, comb, log, log2, sqrt
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms.adaptive.adaptive import Adaptive, Adaptive1, Adaptive2
from ahead_ldp.mechanisms.few_people import GROUP_PEOPLE, fewer_groups, groups_of, whole
from ahead_ldp.mechanisms.fused.attribute_runs import AttributeRun
from ahead_ldp.mechanisms.fused.estimates import FusedEstimate
from ahead_ldp.mechanisms.fused.grid_columns import Columns
from ahead_ldp.mechanisms.fused.grid_reports import GridReport, pooled
from ahead_ldp.mechanisms.fused.interactions import Basis, fit_interaction, misfit
from ahead_ldp.mechanisms.fused.margins import Margin, equal_mass_borders
from ahead_ldp.mechanisms.fused.pair_grids import grid_question, grid_report, scales
from ahead_ldp.mechanisms.fused.pairwise_models import PairwiseModel
from ahead_ldp.mechanisms.fused.pooled_dependence import AskedPair, chances_of_dependence, fit_interactions
from ahead_ldp.mechanisms.grain import FUSED_CHANCE, FUSED_MISFIT
from ahead_ldp.oracles import Tally, choose_oracle
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of, check_count
from ahead_ldp.schema.arrays import Floats, Ints

Pair = tuple[int, int]

_SHARE_STEPS = 2**20  # unit: the shares of groups are whole numbers of these steps
_PAIR_SHARE = 0.2  # how the share of the pairs grows with the attributes (decision 004)
# The two groups of a pair that are asked first: at most 2^x cells, and 2^y times what smooth dependence would get.
_EARLY = {"coarse": (4.0, 0.0), "middle": (6.0, 2.0)}  # choice F2
_LATE = ("again", "fine")  # those that are asked with the last wave
_GRIDS = (*_EARLY, *_LATE)
_FEWER_GRIDS = (("fine",), ("coarse", "fine"), ("coarse", "middle", "fine"), _GRIDS)  # where there are 1, 2, .. groups
_PILOT_WAVE = 2  # from 0: the wave with which pairs are asked first (decision 004)
_GUESSED_PEOPLE = 100_000  # behind a pair's question, where nothing tells (choice F2)
_ROUGH_MISFIT = 1.0  # standard errors from which a single pair counts as rough: to be wrong costs little (decision 004)
_TEST_FUNCTIONS = 2  # of each attribute that tell smooth dependence from rough (choice F3)
_FEWEST_PAIRS = 15  # among which some are chosen: with fewer, all are asked about finely (choice F27)
_UNTIED, _TIED = 0.05, 0.5  # chances of dependence below and above which a pair counts as such (choice F27)
_MOST_BINS = 128  # of an attribute; more take long, and gain nothing (choice F30)
_ROUGH_FINENESS = 2.5  # times ``fineness`` for rough dependence (choice F2)
_CERTAIN = Margin(np.ones(1), np.array([0, 1]), np.array([0, 1]), np.zeros((1, 1)))  # of an attribute with one value


@dataclass(frozen=True, slots=True)
class Layout:
    """How people are divided: the grids of a pair, the share asked about trees, and the people of one tree."""

    grids: tuple[str, ...]
    alone: float
    tree_people: int | None = None  # None: as many as it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused1(Mechanism):
    """Two or more attributes, a tree for each and four grids for each pair: version 1, whatever the people expected.

    The trees are ``Adaptive``'s, side by side. With their third wave every pair is asked about two coarse grids whose
    columns have equal mass, by what the trees say then, and with the last one about two more. A pair whose first grids
    do not fit a smooth dependence is rough: then its part of the groups that its attributes' trees would ask from there
    on is asked about grids of the pair instead. The finest grid is as fine as its noise allows: a cell's mass is about
    a standard deviation of its estimate over ``fineness``.

    ``single`` is the share of the people who are asked about one attribute if nothing is rough; left out, it falls with
    the number of pairs. ``waves`` is in how many waves the trees are asked. ``users``, the number of people expected,
    counts here only where pairs are asked before anybody has answered. Dependence is fitted on ``bins`` columns per
    attribute with ``smoothness`` functions of each.

    Privacy: a person draws a group without looking at the value and sends one report through an epsilon-LDP oracle,
    about a partition of one or two attributes that depends on other people's reports only. The trees' questions are
    their own mechanism's; whether a group is asked about its attribute or about a pair, which pair, and the borders and
    fineness of a grid come from the reports of earlier waves. Groups and shares are fixed before the first report.
    All the rest, margins, interactions and fitting, is post-processing.
    """

    name: ClassVar[str] = "fused"
    idea: ClassVar[str] = "trees of single attributes and grids of pairs"
    source: ClassVar[str] = "this project, docs/methods/fused"
    users: int | None = None
    waves: int | None = None
    single: float | None = None
    fineness: float = 0.4  # decision 004
    bins: int = 32  # decision 004
    smoothness: int = 6  # decision 004
    _drawn: ClassVar[bool] = False  # whether grids are as unsure as the chance of who fell into the group makes them
    _pooling: ClassVar[bool] = False  # whether all pairs say together how strongly pairs depend on each other
    _choosing: ClassVar[bool] = False  # whether untied pairs leave their late groups to tied ones
    _widening: ClassVar[bool] = False  # whether there are more columns where the finest grids can tell them apart

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        check_count("users", self.users, optional=True)
        check_count("waves", self.waves, optional=True)
        check_count("bins", self.bins, 2)
        check_count("smoothness", self.smoothness)
        if self.single is not None and not 0 < self.single < 1:
            raise ValueError(f"expected 0 < single < 1, got {self.single!r}")
        if not 0 < self.fineness < float("inf"):
            raise ValueError(f"expected fineness > 0, got {self.fineness!r}")

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """The groups of every attribute's tree, and for each pair two that are asked early and two that are late."""
        several, pairs = _several(schema), list(combinations(_several(schema), 2))
        layout, groups = self.layout(len(several)), list[Group]()
        for a in several:
            own = self.tree(layout).groups(Schema((schema.attributes[a],)))
            part = layout.alone / len(several) / sum(group.share for group in own)
            groups += [Group(f"{a + 1}.{group.id}", max(1, round(_SHARE_STEPS * part * group.share))) for group in own]
        if not layout.grids:
            return tuple(groups)
        share = max(1, round(_SHARE_STEPS * (1 - layout.alone) / max(len(pairs), 1) / len(layout.grids)))
        return (*groups, *(Group(_group(pair, grid), share) for pair in pairs for grid in layout.grids))

    def run(self, schema: Schema) -> Run:
        """The trees side by side; the pairs' grids with their third wave and the last, and in between if need be."""
        several = _several(schema)
        layout = self.layout(len(several))
        trees = {a: AttributeRun(self.tree(layout), Schema((schema.attributes[a],)), a) for a in several}
        pairs = _Pairs(self, layout, schema, trees)
        for number in range(pairs.last + 1):
            asked = {a: tree.ask() for a, tree in trees.items()}
            grids = pairs.ask(number, asked)
            wave = {g: grid_question(schema, p, pairs.columns, cells, self.epsilon) for g, (p, cells) in grids.items()}
            wave |= {g: question for own in asked.values() for g, question in own.items() if g not in grids}
            tallies = yield wave
            for a, tree in trees.items():
                silent = {g: Tally.empty(q.oracle.outcomes) for g, q in asked[a].items() if g in grids}
                tree.tell({**tallies, **silent})
            for group, (pair, _) in grids.items():
                pairs.tell(pair, wave[group], tallies[group])
        return self._estimate(schema, trees, pairs)

    def single_share(self, attributes: int) -> float:
        """The share of the people who are asked about single attributes."""
        if attributes < 2:
            return 1.0
        return 1 / (1 + _PAIR_SHARE * (attributes - 1)) if self.single is None else self.single  # F1

    def layout(self, attributes: int) -> Layout:
        """How so many attributes are asked about."""
        return Layout(_GRIDS, self.single_share(attributes))

    def tree(self, layout: Layout) -> Adaptive1:
        """The mechanism of one attribute."""
        del layout
        return Adaptive1(epsilon=self.epsilon, waves=self.waves)

    def _estimate(self, schema: Schema, trees: Mapping[int, AttributeRun], pairs: _Pairs) -> FusedEstimate:
        reports = {pair: pooled(told) for pair, told in pairs.reports.items()}
        margins = []
        for a, axis in enumerate(axes_of(schema)):
            even = equal_mass_borders(np.full(axis.size, 1 / axis.size), axis, self.bins)
            bins = pairs.columns[a].bins if a in pairs.columns else even
            margin = trees[a].margin(bins) if a in trees else _CERTAIN
            margins.append(margin.agreed(_column_sums(reports, margin, a)))
        bases = {a: _basis(schema, a, margins[a].masses, self.smoothness) for a in trees}
        asked = [
            AskedPair(margins[i].masses, margins[j].masses, (bases[i], bases[j]), told)
            for (i, j), told in reports.items()
        ]
        tables = fit_interactions(asked) if self._pooling else [fit_interaction(*pair) for pair in asked]
        fitted = dict(zip(reports, tables, strict=True))
        people = sum(tree.people for tree in trees.values()) + pairs.answered
        return FusedEstimate(schema, PairwiseModel(tuple(margins), fitted, people), len(trees) <= 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused2(Fused1):
    """Two or more attributes. As version 1, but few people are asked in fewer groups.

    ``users`` is the number of people expected, and ``group_people`` how many of them a group is to have at least.
    Where the people are too few for all groups, trees have fewer shifts, then fewer scales, and pairs fewer grids.
    Where they are too few for a grid of every pair, single attributes alone are asked about (decision 019). Left out,
    ``users`` is as many as it takes.

    Privacy: as of version 1. The groups follow from declared numbers, never from who came.
    """

    version: ClassVar[int] = 2  # decision 019
    group_people: int = GROUP_PEOPLE

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Fused1.__post_init__(self)
        check_count("group_people", self.group_people)

    def layout(self, attributes: int) -> Layout:
        """How so many attributes are asked about by the people expected."""
        full, pairs, people = Fused1.layout(self, attributes), comb(attributes, 2), self.group_people
        if self.users is None or attributes == 0:
            return full
        if pairs == 0 or self.users < (attributes + pairs) * people:
            return Layout((), 1.0, whole(self.users / attributes))
        alone = min(max(full.alone, attributes * people / self.users), 1 - pairs * people / self.users)
        grids = groups_of(self.users * (1 - alone) / pairs, people)
        return Layout(_FEWER_GRIDS[min(grids, len(_GRIDS)) - 1], alone, whole(self.users * alone / attributes))

    def tree(self, layout: Layout) -> Adaptive1:
        """The mechanism of one attribute, for its part of the people."""
        return Adaptive2(
            epsilon=self.epsilon, waves=self.waves, users=layout.tree_people, group_people=self.group_people
        )

    def left_out(self, schema: Schema) -> str:
        """Scales, shifts and grids that so few people are not asked about."""
        fewer = fewer_groups(len(self.groups(schema)), len(replace(self, users=None).groups(schema)))
        alone = bool(fewer) and not self.layout(len(_several(schema))).grids
        return fewer + ", and no pairs of attributes" * alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused(Fused2):
    """The default for two or more attributes. As version 2, with version 3 of the trees and with pairs chosen.

    If the first grids of a pair say that its attributes do not depend on each other, and those of others say that
    theirs do, the late groups of the first are asked about the others: the more attributes, the more of them. So
    people are asked about pairs about which there is something to say. Where reports tell much, there are more than
    ``bins`` columns, and single cells depart from a smooth dependence only if something says so.

    Privacy: as of version 2. Which pair a late group is asked about depends on the reports of earlier waves only.
    Groups and shares are fixed before the first report, and nobody's group depends on the value.
    """

    version: ClassVar[int] = 3  # decision 024
    _drawn: ClassVar[bool] = True
    _pooling: ClassVar[bool] = True
    _choosing: ClassVar[bool] = True
    _widening: ClassVar[bool] = True

    def tree(self, layout: Layout) -> Adaptive1:
        """The mechanism of one attribute, for its part of the people."""
        return Adaptive(
            epsilon=self.epsilon, waves=self.waves, users=layout.tree_people, group_people=self.group_people
        )


class _Pairs:
    """The grids of all pairs while a run goes on: when and how finely they are asked, and what was said about them."""

    def __init__(self, method: Fused1, layout: Layout, schema: Schema, trees: Mapping[int, AttributeRun]) -> None:
        self.method, self.layout, self.schema, self.trees = method, layout, schema, trees
        self.last = max((tree.waves for tree in trees.values()), default=0) - 1  # wave
        self.pilot = min(_PILOT_WAVE, max(self.last - 1, 1), self.last)
        self.reports: dict[Pair, list[GridReport]] = {pair: [] for pair in combinations(trees, 2)}
        self.answered = 0  # people
        self.expected = 0.0  # people in all, as far as was known when columns were cut
        self.columns = dict[int, Columns]()
        self.masses = dict[int, Floats]()  # of the bins, when they were cut
        self.finest = dict[Pair, float]()  # the finest grid of a pair has 2^x cells
        self.rough = set[Pair]()
        self.given = dict[Pair, Pair]()  # the late groups of one pair are asked about another

    def ask(self, number: int, asked: Mapping[int, Mapping[str, Question]]) -> dict[str, tuple[Pair, float]]:
        """The groups that are asked about pairs in a wave, about 2^x cells each; ``asked`` is what trees would ask."""
        if not self.reports or not self.layout.grids:
            return {}
        if number == self.pilot:
            self._cut()
        if number == self.pilot + 1:
            self._judge()
        grids = _instead(asked, self.rough, self.finest, number)
        if number == self.pilot:
            early = {name: size for name, size in _EARLY.items() if name in self.layout.grids}
            grids |= {_group(p, g): (p, min(x, c + y)) for p, c in self.finest.items() for g, (x, y) in early.items()}
        if number == self.last:
            for own in self.finest:
                pair = self.given.get(own, own)
                two = scales(self.finest[pair], pair in self.rough)[-len(_LATE) :]
                late = dict(zip(_LATE, (two[0], two[-1]), strict=True))
                grids |= {_group(own, name): (pair, late[name]) for name in _LATE if name in self.layout.grids}
        return grids

    def tell(self, pair: Pair, question: Question, tally: Tally) -> None:
        """Take in what a group said about a pair."""
        self.reports[pair].append(grid_report(question, tally, self.columns, self.method._drawn))
        self.answered += tally.n

    def _cut(self) -> None:
        """Cut the columns of all attributes, by what the trees say now."""
        axes, self.expected = axes_of(self.schema), self._people()
        bins = max(self.method.bins, self._sides() if self.method._widening else 0)
        for a, tree in self.trees.items():
            density = tree.density()
            self.columns[a] = Columns.of(density, axes[a], bins)
            self.masses[a] = np.add.reduceat(density, self.columns[a].bins[:-1])
        self.finest = dict.fromkeys(self.reports, self._finest(None))

    def _judge(self) -> None:
        """Find the pairs that are rough, which are asked about finer grids from here on."""
        self.rough = {pair for pair in self.reports if self._misfit(pair) > least_misfit(len(self.reports))}
        self.finest |= dict.fromkeys(self.rough, self._finest(self._later))
        if self.method._choosing and len(self.reports) >= _FEWEST_PAIRS:
            self._choose()

    def _choose(self) -> None:
        """Deal the late groups of pairs that are not tied to those that are, the most tied one first."""
        found = chances_of_dependence([self._asked(pair) for pair in self.reports])
        chance = dict(zip(self.reports, np.rint(found * FUSED_CHANCE) / FUSED_CHANCE, strict=True))  # A12
        tied = sorted((p for p, c in chance.items() if c > _TIED or p in self.rough), key=lambda p: (-chance[p], p))
        untied = [p for p, c in chance.items() if c < _UNTIED and p not in self.rough]
        if not tied:
            return
        self.given = {pair: tied[k % len(tied)] for k, pair in enumerate(untied)}  # F27
        for pair in tied:
            if pair not in self.rough:
                self.finest[pair] = self._finest(None, 1 + sum(other == pair for other in self.given.values()))

    def _asked(self, pair: Pair) -> AskedPair:
        """A pair with few functions of each attribute and the masses of the bins when they were cut."""
        one, other = (self.masses[a] for a in pair)
        bases = tuple(_basis(self.schema, a, m, _TEST_FUNCTIONS) for a, m in zip(pair, (one, other), strict=True))
        return AskedPair(one, other, (bases[0], bases[1]), self.reports[pair])

    def _misfit(self, pair: Pair) -> float:
        """How far a pair's first grids are from a smooth dependence, in standard errors."""
        return round(misfit(*self._asked(pair)) * FUSED_MISFIT) / FUSED_MISFIT  # A12

    @property
    def _later(self) -> float:
        """The share of the trees' groups that rough pairs get."""
        return (self.last - self.pilot) / (self.last + 1)

    def _sides(self) -> int:
        """How many columns of either attribute the finest grid of a rough pair has, at most."""
        return int(min(2 ** ceil(self._finest(self._later) / 2), _MOST_BINS))  # F30

    def _finest(self, later: float | None, groups: int = 1) -> float:
        """c, such that the finest of a pair's grids has 2^c cells: their sd is ``fineness`` times their mass.

        ``later`` is the share of the trees' groups that rough pairs get; None: dependence is smooth, and so many groups
        are asked about the finest grid.
        """
        alone, fineness, grids = self.layout.alone, self.method.fineness, self.layout.grids
        share = groups * (1 - alone) / len(grids)  # of the groups of one size
        if later is not None:
            late = sum(name in grids for name in _LATE)
            share, fineness = late * share + later * alone, _ROUGH_FINENESS * fineness
        people = self.expected * share / len(self.reports)
        noise = choose_oracle(self.method.epsilon, 64).oracle.contrast_variance(1) / max(people, 1.0)
        return float(max(1, round(log2(fineness / sqrt(noise)))))  # F2

    def _people(self) -> float:
        """How many there are in all, by those of the trees' groups that have answered."""
        shares = {group.id: group.share for group in self.method.groups(self.schema)}
        answered = sum(shares[group] for tree in self.trees.values() for group in tree.told)
        if people := sum(tree.people for tree in self.trees.values()):
            return people / answered * sum(shares.values())
        if self.method.users is None:
            return _GUESSED_PEOPLE * len(self.reports) * len(self.layout.grids) / (1 - self.layout.alone)
        return self.method.users


def least_misfit(pairs: int) -> float:
    """From which a pair counts as rough: the more there are, the more would by chance, at their trees' expense."""
    return sqrt(_ROUGH_MISFIT**2 + 2 * log(pairs))  # F3


def _instead(
    asked: Mapping[int, Mapping[str, Question]], rough: set[Pair], finest: Mapping[Pair, float], number: int
) -> dict[str, tuple[Pair, float]]:
    """The groups of trees that are asked about rough pairs of their attribute instead, and the sizes of their grids.

    The groups of an attribute are dealt to all its pairs, wave after wave; what smooth pairs get stays with the tree.
    """
    grids: dict[str, tuple[Pair, float]] = {}
    turn = dict.fromkeys(rough, 0)
    for a, groups in asked.items() if rough else ():
        pairs = sorted(pair for pair in finest if a in pair)
        for k, group in enumerate(groups):
            pair = pairs[(number * len(groups) + k) % len(pairs)]
            if pair in rough:
                sizes = scales(finest[pair], True)
                grids[group] = pair, sizes[turn[pair] % len(sizes)]
                turn[pair] += 1
    return grids


def _column_sums(
    reports: Mapping[Pair, Sequence[GridReport]], margin: Margin, attribute: int
) -> list[tuple[Ints, Floats, float]]:
    """What the pairs of an attribute say about it alone."""
    sums = []
    for pair, grids in reports.items():
        for grid in grids if attribute in pair else ():
            side = pair.index(attribute)
            starts = margin.bins[(grid.rows, grid.columns)[side]]
            sums.append((starts, grid.values.sum(axis=1 - side), grid.variance * grid.values.shape[1 - side]))  # F5
    return sums


def _basis(schema: Schema, attribute: int, masses: Floats, functions: int) -> Basis:
    axis = axes_of(schema, [attribute])[0]
    return Basis.of(masses, functions, axis.nominal, axis.missing)


def _several(schema: Schema) -> list[int]:
    return [a for a, size in enumerate(schema.sizes) if size > 1]


def _group(pair: Pair, grid: str) -> str:
    return f"{pair[0] + 1}-{pair[1] + 1}.{grid}"
