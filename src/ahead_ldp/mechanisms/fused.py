"""Fused: what single attributes say and what pairs of them say, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import floor, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Schema
from ahead_ldp.fused_estimates import FusedEstimate
from ahead_ldp.inference.interactions import Basis, GridReport, fit_interaction
from ahead_ldp.inference.margins import Margin, coarser, equal_mass_borders
from ahead_ldp.inference.pairwise_models import PairwiseModel
from ahead_ldp.mechanisms.adaptive import Adaptive
from ahead_ldp.mechanisms.attribute_runs import AttributeRun
from ahead_ldp.oracles import LinearOracle, Tally, choose_oracle
from ahead_ldp.partitions import Partition
from ahead_ldp.protocol import Group, Mechanism, Question, Run, axes_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Pair = tuple[int, int]

_SHARES = 2**20  # people are shared out to this grain
_MOST_COLUMNS = 24
_GRIDS = ("coarse", "fine")
_COARSE = 4  # columns of a coarse grid
_PAIRS = 0.2  # how the share of the pairs grows with the attributes
_GUESS = 100_000  # people behind a pair's question, where nothing tells


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused(Mechanism):
    """The default for two or more attributes: a tree for each, and one grid for each pair.

    The trees are ``Adaptive``'s, side by side. With their last wave every pair is asked about two grids whose columns
    have equal mass, by what the trees say then: a coarse one, which tells best how strongly the two go together, and
    one as fine as its noise allows: a cell's mass is about a standard deviation of its estimate over ``fineness``.
    ``single`` is the share of the people who are asked about one attribute; left out, it falls with the number of
    pairs. ``waves`` is in how many waves the trees are asked. ``users``, the number of people expected, counts only
    where pairs are asked before anybody has answered. Dependence is fitted on ``bins`` columns per attribute with
    ``smoothness`` functions of each.

    Privacy: a person draws a group without looking at the value and sends one report through an epsilon-LDP oracle,
    about a partition of one or two attributes that depends on other people's reports only: the trees' questions are
    their own mechanism's, and a grid's borders come from the reports of earlier waves. Groups and shares are fixed
    before the first report. All the rest, margins, interactions and fitting, is post-processing.
    """

    name: ClassVar[str] = "fused"
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
        """The groups of every attribute's tree, and for each pair one for a coarse grid and one for a fine grid."""
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
        """The trees side by side; with their last wave, the pairs."""
        several = _several(schema)
        trees = {a: AttributeRun(self._tree(), _only(schema, a), a) for a in several}
        pairs = list(combinations(several, 2))
        bins, reports, told = _even_bins(schema, self.bins), dict[Pair, list[GridReport]](), 0
        last = max((t.waves for t in trees.values()), default=0) - 1
        for number in range(last + 1):
            wave: dict[str, Question] = {}
            for tree in trees.values():
                wave |= tree.ask()
            if number == last and pairs:
                densities, axes = {a: tree.density() for a, tree in trees.items()}, axes_of(schema)
                bins = {a: equal_mass_borders(densities[a], axes[a], self.bins) for a in several}
                finest = self._columns(schema, trees, len(pairs))
                for grid, columns in zip(_GRIDS, (min(_COARSE, finest), finest), strict=True):
                    cuts = {a: coarser(densities[a], bins[a], axes[a], columns) for a in several}
                    wave |= {_group(p, grid): self._question(schema, p, [cuts[a] for a in p]) for p in pairs}
            tallies = yield wave
            for tree in trees.values():
                tree.tell(tallies)
            if number == last:
                names = {p: [_group(p, grid) for grid in _GRIDS] for p in pairs}
                reports = {p: [_report(wave[g], tallies[g], bins) for g in groups] for p, groups in names.items()}
                told = sum(tallies[g].n for groups in names.values() for g in groups)
        return self._estimate(schema, trees, bins, reports, told)

    def _alone(self, attributes: int) -> float:
        """The share of the people who are asked about single attributes."""
        if attributes < 2:
            return 1.0
        return 1 / (1 + _PAIRS * (attributes - 1)) if self.single is None else self.single

    def _tree(self) -> Adaptive:
        return Adaptive(epsilon=self.epsilon, waves=self.waves)

    def _columns(self, schema: Schema, trees: Mapping[int, AttributeRun], pairs: int) -> int:
        """g for the pairs' grids, such that a cell's standard deviation is ``fineness`` times its mass 1 / g^2."""
        people = sum(t.people for t in trees.values())
        shares = {g.id: g.share for g in self.groups(schema)}
        told = sum(shares[group] for t in trees.values() for group in t.told)
        each = (1 - self._alone(len(trees))) / pairs / len(_GRIDS)
        if people:
            expected = people / told * sum(shares.values()) * each
        else:
            expected = _GUESS if self.users is None else self.users * each
        noise = choose_oracle(self.epsilon, 64).oracle.contrast_variance(1) / max(expected, 1.0)
        steady = round(sqrt(self.fineness / sqrt(noise)) * 2**30) / 2**30
        return max(2, min(_MOST_COLUMNS, floor(steady + 0.5)))

    def _question(self, schema: Schema, pair: Pair, borders: Sequence[Ints]) -> Question:
        partition = Partition.grid(axes_of(schema, pair), [b[1:-1].tolist() for b in borders])
        return Question(pair, partition, choose_oracle(self.epsilon, partition.cells).oracle)

    def _estimate(
        self,
        schema: Schema,
        trees: Mapping[int, AttributeRun],
        bins: Mapping[int, Ints],
        reports: Mapping[Pair, Sequence[GridReport]],
        told: int,
    ) -> FusedEstimate:
        axes = axes_of(schema)
        margins = []
        for a in range(len(axes)):
            margin = trees[a].margin(bins[a]) if a in trees else _sure()
            margins.append(margin.agreed(_column_sums(reports, margin, a)))
        bases = {a: Basis.of(margins[a].masses, self.smoothness, axes[a].nominal, axes[a].missing) for a in trees}
        pairs = {
            (i, j): fit_interaction(margins[i].masses, margins[j].masses, (bases[i], bases[j]), told_of)
            for (i, j), told_of in reports.items()
        }
        people = sum(tree.people for tree in trees.values()) + told
        return FusedEstimate(schema, PairwiseModel(tuple(margins), pairs, people), len(trees) <= 2)


def _report(question: Question, tally: Tally, bins: Mapping[int, Ints]) -> GridReport:
    """What a pair's group said, on the bins of its attributes."""
    oracle, partition = question.oracle, question.partition
    assert isinstance(oracle, LinearOracle)
    first, second = (np.unique(partition.lo[:, k]) for k in (0, 1))
    values = oracle.estimate(tally).reshape(first.size, second.size)
    rows, columns = (np.searchsorted(bins[a], s) for a, s in zip(question.attributes, (first, second), strict=True))
    variance = oracle.contrast_variance(tally.n) if tally.n else float("inf")
    return GridReport(rows, columns, values, variance)


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


def _even_bins(schema: Schema, bins: int) -> dict[int, Ints]:
    return {
        a: equal_mass_borders(np.full(axis.size, 1 / axis.size), axis, bins) for a, axis in enumerate(axes_of(schema))
    }


def _only(schema: Schema, attribute: int) -> Schema:
    return Schema((schema.attributes[attribute],))


def _several(schema: Schema) -> list[int]:
    return [a for a, size in enumerate(schema.sizes) if size > 1]


def _group(pair: Pair, grid: str) -> str:
    return f"{pair[0] + 1}-{pair[1] + 1}.{grid}"
