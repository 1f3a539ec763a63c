"""Fused: what single attributes say and what pairs of them say, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, log2, sqrt
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.adaptive.adaptive import Adaptive
from ahead_ldp.mechanisms.fused.attribute_runs import AttributeRun
from ahead_ldp.mechanisms.fused.estimates import FusedEstimate
from ahead_ldp.mechanisms.fused.grid_columns import Columns
from ahead_ldp.mechanisms.fused.grid_reports import GridReport, pooled
from ahead_ldp.mechanisms.fused.interactions import Basis, fit_interaction, misfit
from ahead_ldp.mechanisms.fused.margins import Margin, equal_mass_borders
from ahead_ldp.mechanisms.fused.pair_grids import grid_question, grid_report, scales
from ahead_ldp.mechanisms.fused.pairwise_models import PairwiseModel
from ahead_ldp.oracles import Tally, choose_oracle
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of
from ahead_ldp.schema.arrays import Floats, Ints

Pair = tuple[int, int]

_SHARES = 2**20  # people are shared out to this grain
_PAIRS = 0.2  # how the share of the pairs grows with the attributes
_EARLY = {"coarse": (4.0, 0.0), "middle": (6.0, 2.0)}  # groups of a pair asked first: 2^x cells at most; 2^y times as
# many as smooth dependence would be asked about
_LATE = ("again", "fine")  # those that are asked with the last wave
_GRIDS = (*_EARLY, *_LATE)
_PILOT = 2  # the wave, from 0, with which pairs are asked first
_GUESS = 100_000  # people behind a pair's question, where nothing tells
_ROUGH = 1.0  # standard errors of a pair's misfit from which a single one counts as rough: to be wrong costs little
_FEW = 2  # functions of each attribute that tell smooth dependence from rough
_CLOSER = 2.5  # times ``fineness`` for rough dependence
_GRAIN = 2.0**10  # decisions on the way to a question are rounded, so that machines agree (DESIGN, decision 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused(Mechanism):
    """The default for two or more attributes: a tree for each, and grids for each pair.

    The trees are ``Adaptive``'s, side by side. With their third wave every pair is asked about two coarse grids whose
    columns have equal mass, by what the trees say then, and with the last one about two more. A pair whose first grids
    do not fit a smooth dependence is rough: then its part of the groups that its attributes' trees would ask from there
    on is asked about grids of the pair instead. The finest grid is as fine as its noise allows: a cell's mass is about
    a standard deviation of its estimate over ``fineness``.

    ``single`` is the share of the people who are asked about one attribute if nothing is rough; left out, it falls with
    the number of pairs. ``waves`` is in how many waves the trees are asked. ``users``, the number of people expected,
    counts only where pairs are asked before anybody has answered. Dependence is fitted on ``bins`` columns per
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
    fineness: float = 0.4
    bins: int = 32
    smoothness: int = 6

    def __post_init__(self) -> None:
        """Refuse choices that are none."""
        Mechanism.__post_init__(self)
        if self.users is not None and (type(self.users) is not int or self.users < 1):
            raise ValueError(f"expected users to be a positive integer or None, got {self.users!r}")
        if self.waves is not None and (type(self.waves) is not int or self.waves < 1):
            raise ValueError(f"expected waves to be a positive integer or None, got {self.waves!r}")
        if self.single is not None and not 0 < self.single < 1:
            raise ValueError(f"expected 0 < single < 1, got {self.single!r}")
        if not 0 < self.fineness < float("inf"):
            raise ValueError(f"expected fineness > 0, got {self.fineness!r}")
        for name, least in (("bins", 2), ("smoothness", 1)):
            if type(getattr(self, name)) is not int or getattr(self, name) < least:
                raise ValueError(f"expected {name} to be an integer >= {least}, got {getattr(self, name)!r}")

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """The groups of every attribute's tree, and for each pair two that are asked early and two that are late."""
        several, pairs = _several(schema), list(combinations(_several(schema), 2))
        alone = self._alone(len(several))
        found = []
        for a in several:
            groups = self._tree().groups(_only(schema, a))
            total = sum(g.share for g in groups)
            part = alone / len(several) / total
            found += [Group(f"{a + 1}.{g.id}", max(1, round(_SHARES * part * g.share))) for g in groups]
        share = max(1, round(_SHARES * (1 - alone) / max(len(pairs), 1) / len(_GRIDS)))
        return (*found, *(Group(_group(pair, grid), share) for pair in pairs for grid in _GRIDS))

    def run(self, schema: Schema) -> Run:
        """The trees side by side; the pairs' grids with their third wave and the last, and in between if need be."""
        axes, several = axes_of(schema), _several(schema)
        trees = {a: AttributeRun(self._tree(), _only(schema, a), a) for a in several}
        pairs = list(combinations(several, 2))
        last = max((t.waves for t in trees.values()), default=0) - 1
        pilot = min(_PILOT, max(last - 1, 1), last)
        told: dict[Pair, list[GridReport]] = {p: [] for p in pairs}
        columns, rough, finest, people = dict[int, Columns](), set[Pair](), dict[Pair, float](), 0
        for number in range(last + 1):
            asked = {a: tree.ask() for a, tree in trees.items()}
            grids: dict[str, tuple[Pair, float]] = {}  # groups that are asked about 2^x cells of a pair
            if number == pilot and pairs:
                densities, everybody = {a: tree.density() for a, tree in trees.items()}, self._people(schema, trees)
                columns = {a: Columns.of(densities[a], axes[a], self.bins) for a in several}
                finest = dict.fromkeys(pairs, self._finest(everybody, len(several), None))
                grids |= {_group(p, g): (p, min(x, finest[p] + y)) for p in pairs for g, (x, y) in _EARLY.items()}
            if number == pilot + 1 and pairs:
                masses = {a: np.add.reduceat(densities[a], columns[a].bins[:-1]) for a in several}
                rough = {p for p in pairs if self._misfit(axes, p, masses, told[p]) > _least_misfit(len(pairs))}
                later = (last - pilot) / (last + 1)
                finest |= dict.fromkeys(rough, self._finest(everybody, len(several), later))
            if rough:
                grids |= _instead(asked, rough, finest, number)
            if number == last:
                for p in pairs:
                    two = scales(finest[p], p in rough)[-len(_LATE) :]
                    grids |= {_group(p, name): (p, two[k % len(two)]) for k, name in enumerate(_LATE)}
            wave = {g: grid_question(schema, p, columns, cells, self.epsilon) for g, (p, cells) in grids.items()}
            wave |= {g: question for mine in asked.values() for g, question in mine.items() if g not in grids}
            tallies = yield wave
            for a, tree in trees.items():
                silent = {g: Tally.empty(q.oracle.outcomes) for g, q in asked[a].items() if g in grids}
                tree.tell({**tallies, **silent})
            for g, (p, _) in grids.items():
                told[p].append(grid_report(wave[g], tallies[g], columns))
                people += tallies[g].n
        return self._estimate(schema, trees, columns, {p: pooled(reports) for p, reports in told.items()}, people)

    def _alone(self, attributes: int) -> float:
        """The share of the people who are asked about single attributes."""
        if attributes < 2:
            return 1.0
        return 1 / (1 + _PAIRS * (attributes - 1)) if self.single is None else self.single

    def _tree(self) -> Adaptive:
        return Adaptive(epsilon=self.epsilon, waves=self.waves)

    def _people(self, schema: Schema, trees: Mapping[int, AttributeRun]) -> float:
        """How many there are in all, by those of the trees' groups that have answered."""
        shares = {g.id: g.share for g in self.groups(schema)}
        people, told = sum(t.people for t in trees.values()), sum(shares[g] for t in trees.values() for g in t.told)
        if people:
            return people / told * sum(shares.values())
        pairs = len(trees) * (len(trees) - 1) / 2
        if self.users is None:
            return _GUESS * pairs * len(_GRIDS) / (1 - self._alone(len(trees)))
        return self.users

    def _finest(self, everybody: float, attributes: int, later: float | None) -> float:
        """c, such that the finest of a pair's grids has 2^c cells: their sd is ``fineness`` times their mass.

        ``later`` is the share of the trees' groups that rough pairs get; None: dependence is smooth.
        """
        alone, fineness = self._alone(attributes), self.fineness
        share = (1 - alone) / len(_GRIDS)  # of one group
        if later is not None:
            share, fineness = 2 * share + later * alone, _CLOSER * fineness
        expected = everybody * share / (attributes * (attributes - 1) / 2)
        noise = choose_oracle(self.epsilon, 64).oracle.contrast_variance(1) / max(expected, 1.0)
        return float(max(1, round(log2(fineness / sqrt(noise)))))

    def _misfit(self, axes: Sequence[Axis], pair: Pair, masses: Mapping[int, Floats], told: list[GridReport]) -> float:
        """How far a pair's first grids are from a smooth dependence, in standard errors."""
        one, other = (Basis.of(masses[a], _FEW, axes[a].nominal, axes[a].missing) for a in pair)
        found = misfit(masses[pair[0]], masses[pair[1]], (one, other), told)
        return round(found * _GRAIN) / _GRAIN

    def _estimate(
        self,
        schema: Schema,
        trees: Mapping[int, AttributeRun],
        columns: Mapping[int, Columns],
        reports: Mapping[Pair, Sequence[GridReport]],
        told: int,
    ) -> FusedEstimate:
        axes, margins = axes_of(schema), []
        for a, axis in enumerate(axes):
            bins = columns[a].bins if a in columns else _even_bins(axis, self.bins)
            margin = trees[a].margin(bins) if a in trees else _sure()
            margins.append(margin.agreed(_column_sums(reports, margin, a)))
        bases = {a: Basis.of(margins[a].masses, self.smoothness, axes[a].nominal, axes[a].missing) for a in trees}
        pairs = {
            (i, j): fit_interaction(margins[i].masses, margins[j].masses, (bases[i], bases[j]), told_of)
            for (i, j), told_of in reports.items()
        }
        people = sum(tree.people for tree in trees.values()) + told
        return FusedEstimate(schema, PairwiseModel(tuple(margins), pairs, people), len(trees) <= 2)


def _least_misfit(pairs: int) -> float:
    """From which a pair counts as rough: the more there are, the more would by chance, at their trees' expense."""
    return sqrt(_ROUGH**2 + 2 * log(pairs))


def _instead(
    asked: Mapping[int, Mapping[str, Question]], rough: set[Pair], finest: Mapping[Pair, float], number: int
) -> dict[str, tuple[Pair, float]]:
    """The groups of trees that are asked about rough pairs of their attribute instead, and the sizes of their grids.

    The groups of an attribute are dealt to all its pairs, wave after wave; what smooth pairs get stays with the tree.
    """
    found: dict[str, tuple[Pair, float]] = {}
    turn = dict.fromkeys(rough, 0)
    for a, groups in asked.items():
        mine = sorted(p for p in finest if a in p)
        for k, group in enumerate(groups):
            pair = mine[(number * len(groups) + k) % len(mine)]
            if pair in rough:
                sizes = scales(finest[pair], True)
                found[group] = pair, sizes[turn[pair] % len(sizes)]
                turn[pair] += 1
    return found


def _column_sums(
    reports: Mapping[Pair, Sequence[GridReport]], margin: Margin, attribute: int
) -> list[tuple[Ints, Floats, float]]:
    """What the pairs of an attribute say about it alone."""
    found = []
    for pair, both in reports.items():
        for report in both if attribute in pair else ():
            side = pair.index(attribute)
            starts = margin.bins[(report.rows, report.columns)[side]]
            found.append((starts, report.values.sum(axis=1 - side), report.variance * report.values.shape[1 - side]))
    return found


def _sure() -> Margin:
    """An attribute of one value."""
    return Margin(np.ones(1), np.array([0, 1]), np.array([0, 1]), np.zeros((1, 1)))


def _even_bins(axis: Axis, bins: int) -> Ints:
    return equal_mass_borders(np.full(axis.size, 1 / axis.size), axis, bins)


def _only(schema: Schema, attribute: int) -> Schema:
    return Schema((schema.attributes[attribute],))


def _several(schema: Schema) -> list[int]:
    return [a for a, size in enumerate(schema.sizes) if size > 1]


def _group(pair: Pair, grid: str) -> str:
    return f"{pair[0] + 1}-{pair[1] + 1}.{grid}"
