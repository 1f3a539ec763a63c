"""Adaptive: one attribute, partitions that grow finer where people are, and an estimate from all reports at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellReports
from ahead_ldp.mechanisms.adaptive.density import DECIDED, ESTIMATORS, POSTERIOR, Weighing, interim_density
from ahead_ldp.mechanisms.adaptive.estimates import AdaptiveEstimate
from ahead_ldp.mechanisms.ahead.decomposition import levels
from ahead_ldp.mechanisms.few_people import GROUP_PEOPLE, divide, fewer_groups
from ahead_ldp.mechanisms.grain import ADAPTIVE_SHARE
from ahead_ldp.oracles import LinearOracle, Tally, named_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import (
    Group,
    Mechanism,
    Question,
    Run,
    Tallies,
    check_choice,
    check_count,
    only_axis,
)
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Floats, Ints

_FEWEST_CELLS = 4  # of the first questions (decision 012: three were no better)
_FEWER_CELLS = 3  # of them, where all people together do not tell four apart (decision 024)
_MOST_CELLS = 512  # shifted borders come down to single codes, and the estimate takes seconds at most (choice A9)
_SCALES_AT_ONCE = 6  # asked about before anything is known: up to 128 cells (choice A8)
_SMOOTH_SD = 0.15  # of a half's share: up to it cells need not be finer (choice A9)
_OWN_CELL_SHARE = 0.75  # of a cell's mass: a code with more is a cell of its own (choice A10)
_GOLDEN_SECTION = 0.618034  # of a cell, from partition to partition: shifts fall evenly, however many there are (A11)
_MOST_GROUPS = 26  # unit: the letters that name the groups of a wave

_oracle = lru_cache(maxsize=4096, typed=True)(named_oracle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive1(Mechanism):
    """One attribute, asked in as many groups as the schema allows: version 1, of records without people declared.

    People are asked about cells of equal mass, as far as is known when the question is asked. There are ``scales``
    waves. From wave to wave the cells grow more by the same factor, from four to ``finest`` over the standard deviation
    of a cell if everybody were asked about it, more where people lie unevenly, at most 512. In each wave ``shifts``
    groups of equal size are asked about partitions whose borders are shifted against each other. So every scale that
    the reports can resolve gets about as many people, and no code is worse off than another (docs/methods/adaptive).

    ``waves`` is in how many waves the scales are asked about, by default one each. Those of the first wave are
    asked about cells of equal width, 4, 8, 16 and so on to 128, then from 4 again. ``oracle`` is a registered name, or
    "best" for the least variance. ``estimator`` other than "shrinkage" is for comparison (``AdaptiveDensity.of``).

    Privacy: a person draws a group without looking at the value and sends one report, through an epsilon-LDP
    oracle, about a partition that depends on other people's reports only (those of earlier waves; groups of one wave do
    not see each other). How many groups there are depends on the schema alone. All the rest is post-processing: each
    change against AHEAD (the oracle, cells by mass, shifts, equal scales, the estimate) only chooses among
    partitions, or works on reports that were sent. So epsilon-LDP holds as in AHEAD Sec. 4.3.
    """

    name: ClassVar[str] = "adaptive"
    idea: ClassVar[str] = "partitions of every scale, shrinkage on a tree"
    source: ClassVar[str] = "this project, docs/methods/adaptive"
    most_attributes: ClassVar[int | None] = 1
    oracle: str = "best"
    scales: int = 5  # decision 009
    shifts: int = 4  # decision 009
    finest: float = 0.1  # decision 009
    waves: int | None = None
    estimator: str = "shrinkage"
    weighing: ClassVar[Weighing | None] = None  # how the estimate allows for reports that tell little, if it does

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        check_count("scales", self.scales, 1, _MOST_GROUPS)
        check_count("shifts", self.shifts, 1, _MOST_GROUPS)
        check_count("waves", self.waves, optional=True)
        if not 0 < self.finest < float("inf"):
            raise ValueError(f"expected finest > 0, got {self.finest!r}")
        check_choice("estimator", self.estimator, ESTIMATORS)
        _oracle(self.oracle, self.epsilon, 2)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each scale and shift; a single one where there is nothing finer than the first question."""
        return tuple(Group(name) for wave in self._plan(only_axis(schema, self.name)) for name in wave)

    def divided(self, finer: int) -> tuple[int, int]:
        """How many scales and shifts there are, where the codes can be halved so often after the first question."""
        return min(self.scales, finer), self.shifts

    def run(self, schema: Schema) -> Run:
        """Waves from coarse to fine, then the estimate from all of them."""
        axis, reports = only_axis(schema, self.name), list[CellReports]()
        plan = self._plan(axis)
        for scales in np.array_split(np.arange(len(plan)), self.waves_of(schema)) if plan else ():
            density, cells = self._outlook(axis, reports, sum(map(len, plan)))
            questions = {
                group: Question((0,), Partition.grid([axis], [cuts]), _oracle(self.oracle, self.epsilon, len(cuts) + 1))
                for scale in scales.tolist()
                for group, cuts in self._cuts(axis, density, cells, plan, scale).items()
            }
            tallies = yield questions
            reports += [reports_of(question, tallies[group], density) for group, question in questions.items()]
        return AdaptiveEstimate.of(schema, axis, reports, self.estimator, self.weighing)

    @property
    def fewest_cells(self) -> int:
        """Of the first questions."""
        return _FEWEST_CELLS

    def waves_of(self, schema: Schema) -> int:
        """How many waves there are."""
        scales = len(self._plan(only_axis(schema, self.name)))
        return min(self.waves or scales, scales)

    def _plan(self, axis: Axis) -> list[list[str]]:
        """The groups of every scale."""
        finer = levels((axis,), 2) - 1
        if axis.nominal or finer <= 1:
            return [["1a"]] if axis.size > 1 else []
        scales, shifts = self.divided(finer)
        return [[f"{i + 1}{chr(97 + k)}" for k in range(shifts)] for i in range(scales)]  # A7

    def _outlook(self, axis: Axis, reports: Sequence[CellReports], groups: int) -> tuple[Floats, float | None]:
        """The shares of all codes as far as is known, and how many cells can be told apart; None: nobody answered."""
        density, rough = interim_density(axis, reports)
        people = sum(r.n for r in reports)
        if not people:
            return density, None
        variance = max(float(r.oracle.variance(1)) for r in reports) * len(reports) / (people * groups)  # A9
        finest = self.finest * max(1.0, rough / _SMOOTH_SD)
        return density, min(max(finest / float(np.sqrt(variance)), self.fewest_cells), _MOST_CELLS)  # A9

    def _cuts(
        self, axis: Axis, density: Floats, most: float | None, plan: Sequence[Sequence[str]], scale: int
    ) -> dict[str, list[int]]:
        """The inner borders for the groups of a scale; ``most`` is how many cells the finest scale has."""
        groups, ordered = plan[scale], axis.size - axis.missing
        if axis.nominal:
            return {group: list(range(1, axis.size)) for group in groups}
        turn: Floats = np.arange(len(groups), dtype=float)
        if most is None:
            cells, shifts = self.fewest_cells * 2 ** (scale % _SCALES_AT_ONCE), turn / len(groups)  # A8
        else:
            cells = round(self.fewest_cells * (most / self.fewest_cells) ** (scale / max(len(plan) - 1, 1)))  # A8
            shifts = (scale * len(groups) + turn) * _GOLDEN_SECTION % 1  # A11
        last = [ordered] if axis.missing else []
        return {
            group: [*equal_mass_cuts(density[:ordered], cells, shift).tolist(), *last]
            for group, shift in zip(groups, shifts.tolist(), strict=True)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive2(Adaptive1):
    """One attribute. As version 1, but few people are asked in fewer groups.

    ``users`` is the number of people expected, and ``group_people`` how many of them a group is to have at least.
    ``scales`` and ``shifts`` are the most that there can be. Where the people are too few for all of them there are
    fewer shifts first, then fewer scales (decision 019). Left out, ``users`` is as many as it takes.

    Privacy: as of version 1. The groups follow from declared numbers, never from who came.
    """

    version: ClassVar[int] = 2  # decision 019
    users: int | None = None
    group_people: int = GROUP_PEOPLE

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Adaptive1.__post_init__(self)
        check_count("users", self.users, optional=True)
        check_count("group_people", self.group_people)

    def divided(self, finer: int) -> tuple[int, int]:
        """How many scales and shifts there are for the people expected."""
        return divide(self.users, self.group_people, *Adaptive1.divided(self, finer))

    def left_out(self, schema: Schema) -> str:
        """Scales and shifts that so few people are not asked about."""
        asked, full = len(self.groups(schema)), len(replace(self, users=None).groups(schema))
        return fewer_groups(asked, full)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive3(Adaptive2):
    """One attribute. As version 2, but better where reports tell little.

    If the people expected cannot tell four cells apart, the first questions have three. The estimate is then a mean
    over shapes that people often have, and over even people; the more the reports tell, the less these count (decision
    024).

    Privacy: as of version 2. The cells follow from declared numbers, and the estimate is post-processing.
    """

    version: ClassVar[int] = 3  # decision 024
    weighing: ClassVar[Weighing | None] = POSTERIOR

    @property
    def fewest_cells(self) -> int:
        """Three where the reports of all people expected do not tell four cells apart."""
        if self.users is None:
            return _FEWEST_CELLS
        variance = float(_oracle(self.oracle, self.epsilon, _FEWEST_CELLS).variance(1)) / self.users
        return _FEWEST_CELLS if self.finest / variance**0.5 >= _FEWEST_CELLS else _FEWER_CELLS  # A8


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive(Adaptive3):
    """One attribute; the default where nothing else is named. As before, but between even people and others it decides.

    Where reports leave both likely, half of an estimate is wrong for either. So their evidence counts four times, and
    against shapes that are clearly not even (decision 024). A smooth density that takes many coefficients counts for a
    half at most (decision 028).

    Privacy: as of version 3. The questions are the same, and the estimate is post-processing.
    """

    estimate_version: ClassVar[int] = 2  # decision 024
    weighing: ClassVar[Weighing | None] = DECIDED


def equal_mass_cuts(density: Floats, cells: int, shift: float) -> Ints:  # (d,)
    """Inner borders of cells that hold 1/cells each, nearly; the first one less, by ``shift`` of that (in [0, 1)).

    A code that holds nearly as much or more is a cell of its own. There is always at least one border.
    """
    size, total = density.size, float(density.sum())
    if size == 1:
        return np.zeros(0, np.int64)
    below = np.rint(ADAPTIVE_SHARE * np.cumsum(density) / total) / ADAPTIVE_SHARE  # A12
    marks = (np.arange(cells) + shift) / cells  # A10
    right = np.clip(np.searchsorted(below, marks), 0, size - 1)  # codes before a mark, and one that reaches it
    before = np.where(right > 0, below[np.maximum(right - 1, 0)], 0.0)
    near = right + (below[right] - marks <= marks - before)
    heavy = np.flatnonzero(np.diff(below, prepend=0.0) > _OWN_CELL_SHARE / cells)
    cuts = np.unique(np.concatenate([near, heavy, heavy + 1]))
    cuts = cuts[(cuts > 0) & (cuts < size)]
    return cuts if cuts.size else np.array([size // 2])


def reports_of(question: Question, tally: Tally, density: Floats | None = None) -> CellReports:
    """What a group said about cells of one attribute, in the order of the codes; ``density`` was known before."""
    partition, oracle = question.partition, question.oracle
    if not isinstance(oracle, LinearOracle) or partition.lo.shape[1] != 1:
        raise ValueError(f"expected questions about cells of one attribute through a linear oracle, got {oracle.name}")
    order = np.argsort(partition.lo[:, 0])
    borders = np.append(partition.lo[order, 0], partition.hi[order[-1], 0])
    expected = None if density is None else np.add.reduceat(density, borders[:-1])
    return CellReports(borders, oracle.estimate(tally)[order], tally.n, oracle, expected)  # A1


def reread(mechanism: Mechanism, schema: Schema, history: Sequence[Tallies]) -> AdaptiveEstimate:
    """The estimate that this module makes of another method's tallies: post-processing, so nothing is asked again.

    For one attribute whose questions are about cells of its codes, such as AHEAD's; others are refused.
    """
    answered = Session.after(mechanism, schema, history).answered()
    axis = only_axis(schema, Adaptive1.name)
    return AdaptiveEstimate.of(schema, axis, [reports_of(question, tally) for question, tally in answered])
