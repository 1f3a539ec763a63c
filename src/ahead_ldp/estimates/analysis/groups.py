"""Answers for every category, or bin, of an attribute: shares, means and quantiles among the people there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ahead_ldp.estimates.analysis.functionals import Inside
from ahead_ldp.estimates.analysis.ground import (
    Line,
    first_near,
    first_place,
    last_place,
    reports_of,
    restricted_to,
    upper_at,
)
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.bands import pointwise_quantile, shared_level
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Each, Findings
from ahead_ldp.estimates.slices import blocks, histogram_bins, monotone
from ahead_ldp.estimates.strict.answers import StrictAnswers
from ahead_ldp.estimates.strict.functionals import Attributes, Shares
from ahead_ldp.estimates.strict.reports import StrictReports
from ahead_ldp.schema.arrays import Bools, Floats, Ints
from ahead_ldp.schema.queries import Query
from ahead_ldp.schema.units import centres, numbers_at, spoken
from ahead_ldp.schema.workloads import Workload

_MOST_GROUPS = 200  # each takes some bounds of two attributes
_BLOCKS = 256  # of codes, for the estimate's own mean and quantiles in a group
_NAMED = 12  # groups in a note
_MARKS = 6  # stretches of an attribute that a mean in a group looks at closely; a choice, not measured (Q11)
_FEW = 64  # blocks of codes, for the mean in a group
_COARSE = 16  # and for the model's error of it, which takes a covariance of every two

Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Groups:
    """An estimate, divided by one attribute. Small groups have wide intervals; ``small`` says which are too small."""

    estimate: Estimate
    name: str
    labels: NDArray[Any]
    lo: Floats  # (groups,) positions of the attribute
    hi: Floats

    @classmethod
    def of(cls, estimate: Estimate, attribute: str, bins: int | Sequence[Any] | None = None) -> Groups:
        """Groups by the categories of an attribute, or by bins as those of a histogram."""
        a = estimate._attribute(attribute, ordered=bins is not None)
        if bins is None and not a.labels and a.size > _MOST_GROUPS:
            raise ValueError(f"expected bins for the {a.size} codes of {a.name}, got none")
        reports_of(estimate)
        lo, hi, labels = histogram_bins(a, bins)
        if lo.size > _MOST_GROUPS:
            raise ValueError(f"expected at most {_MOST_GROUPS} groups, got {lo.size}")
        return cls(estimate, a.name, labels, lo, hi)

    def __repr__(self) -> str:
        return f"<Groups by {self.name}: {', '.join(map(str, self.labels.tolist()))}>"

    # What people ask.

    @cached_property
    def shares(self) -> Answers:
        """How many of all people are in each group."""
        sizes = self.estimate.schema.sizes
        sides = [{self.place: side} for side in zip(self.lo.tolist(), self.hi.tolist(), strict=True)]
        boxes = np.stack([restricted_to(sizes, tuple(range(len(sizes))), side) for side in sides])
        workload = Workload(sizes, boxes, np.arange(len(boxes)), len(boxes))
        return replace(self.estimate.answer_jointly(workload), labels={self.name: self.labels})

    def small(self, level: float = 0.95) -> Bools:
        """Groups that may be empty: about the people there the reports say nothing."""
        return np.asarray(self.shares.interval(level, simultaneous=True)[0] <= 0)

    def share(self, query: Query | str) -> Findings:
        """The share of each group's people whom a query holds."""
        whole = Workload.from_queries(self.estimate.schema, [query]).reach
        if any(self._is_cut(box) for box in whole):
            raise ValueError(f"expected a query about other attributes than {self.name}, got {str(query)!r}")
        values, errors = self._ratios([self._within(whole, g) for g in range(len(self.labels))])
        ends = [partial(self.share_ends, whole, g) for g in range(len(self.labels))]
        return self._findings(values, ends, errors, (0.0, 1.0), is_share=True)

    def mean(self, attribute: str) -> Findings:
        """The average of another attribute in each group, among those who have a value."""
        line = self._line(attribute)
        each = [self._mean(line, g) for g in range(len(self.labels))]
        a = line.attribute
        ends = [partial(self._mean_ends, line, g) for g in range(len(self.labels))]
        values, errors = np.array([v for v, _ in each]), np.array([e for _, e in each])
        return replace(self._findings(values, ends, errors, (float(a.lo), float(a.hi))), attribute=a)

    def quantiles(self, attribute: str, levels: ArrayLike = 0.5) -> Findings:
        """Quantiles of another attribute in each group, among those who have a value; left out, the median."""
        line, wanted = self._line(attribute), np.atleast_1d(np.asarray(levels, float))
        if wanted.ndim != 1 or not ((wanted > 0) & (wanted < 1)).all():
            raise ValueError(f"expected levels in (0, 1), got {levels!r}")
        groups, values, errors = np.repeat(np.arange(len(self.labels)), wanted.size), list[float](), list[float]()
        for g in range(len(self.labels)):
            for p in wanted.tolist():
                value, error = self._quantile(line, g, p)
                values.append(value)
                errors.append(error)
        asked = zip(groups.tolist(), np.tile(wanted, len(self.labels)).tolist(), strict=True)
        ends = [partial(self._quantile_ends, line, g, p) for g, p in asked]
        a = line.attribute
        numbers = np.array(values)
        said = spoken(a, numbers).astype(float)
        found = self._findings(said, ends, np.array(errors), (float(a.lo), float(a.hi)), groups)
        labels, middle = (
            {**found.labels, "level": np.tile(wanted, len(self.labels))},
            None if a.kind == "real" else numbers,
        )
        return replace(found, labels=labels, attribute=a, middle=middle)

    def compare(self, findings: Findings, first: Any, second: Any) -> Findings:
        """The number of the second group less that of the first, for shares, means or medians of these groups.

        Both intervals hold at once, and their ends are subtracted: right, and wider than need be.
        """
        names = [str(label) for label in findings.labels[self.name].tolist()]
        for label in (first, second):
            if names.count(str(label)) != 1:
                raise ValueError(f"expected one of the groups {', '.join(names)}, got {label!r}")
        if str(first) == str(second):
            raise ValueError(f"expected two different groups, got {first} twice")
        i, j = names.index(str(first)), names.index(str(second))
        error = None if findings.error is None else np.hypot(findings.error[[i]], findings.error[[j]])
        labels = {self.name: np.array([f"{second} less {first}"], object)}
        value, reach = (
            findings.values[[j]] - findings.values[[i]],
            float(np.max(findings.limits[1]) - np.min(findings.limits[0])),
        )
        each = Each([partial(_less, findings, i, j)])
        return Findings(
            labels, value, each, error, findings.assumption, (-reach, reach), is_share=findings.is_share,
            middle=None if findings.middle is None else findings.middle[[j]] - findings.middle[[i]],
            backend=findings.backend,
        )  # fmt: skip

    # How.

    @cached_property
    def place(self) -> int:
        """Of the groups' attribute in the schema."""
        return self.estimate.schema.index(self.name)

    @cached_property
    def evidence(self) -> StrictReports:
        """What was asked and told."""
        return reports_of(self.estimate)

    def _findings(
        self,
        values: Floats,
        ends: Sequence[Callable[[float], Ends]],
        errors: Floats,
        limits: Ends,
        groups: Ints | None = None,
        is_share: bool = False,
    ) -> Findings:
        labels = {self.name: self.labels if groups is None else self.labels[groups]}
        small = self.labels[self.small()].tolist()
        named = ", ".join(map(str, small[:_NAMED])) + f" and {len(small) - _NAMED} more" * (len(small) > _NAMED)
        remarks = (f"These groups may be empty, so nothing can be said of them: {named}.",)
        says = self.estimate.assumes
        return Findings(
            labels, np.clip(values, *limits), Each(list(ends)), errors, says, limits,
            is_share=is_share, remarks=remarks if small else (), backend=self.estimate.backend,
        )  # fmt: skip

    def _line(self, attribute: str) -> Line:
        line = Line.of(self.estimate, attribute)
        if line.attribute.name == self.name:
            raise ValueError(f"expected another attribute than {self.name}, by which people are grouped")
        return line

    def _is_cut(self, box: Floats) -> bool:
        lo, hi = box[self.place]
        return bool(lo > 0 or hi < self.estimate.schema.sizes[self.place])

    def _within(self, boxes: Floats, g: int) -> Floats:
        """Boxes, cut down to one group."""
        cut = boxes.copy()
        cut[:, self.place] = self.lo[g], self.hi[g]
        return cut

    def _ratios(self, boxes: list[Floats]) -> tuple[Floats, Floats]:
        """The estimate's own shares of boxes in their groups, and the model's errors."""
        n = len(boxes)
        owner = np.concatenate([np.repeat(g, len(b)) for g, b in enumerate(boxes)] + [np.arange(n, 2 * n)])
        group = self.shares
        sizes = self.estimate.schema.sizes
        all_of = [restricted_to(sizes, tuple(range(len(sizes))), {self.place: s}) for s in self._sides]
        workload = Workload(sizes, np.concatenate([*boxes, np.stack(all_of)]), owner, 2 * n)
        inside = self.estimate._shares(workload)[:n]
        total = np.maximum(group.values, 1e-9)
        ratio = np.clip(inside / total, 0.0, 1.0)
        linear = self.estimate.linear(workload, np.hstack([np.diag(1 / total), -np.diag(ratio / total)]))  # Q12
        return ratio, linear.spread

    @property
    def _sides(self) -> list[tuple[float, float]]:
        return list(zip(self.lo.tolist(), self.hi.tolist(), strict=True))

    def share_ends(self, boxes: Floats, g: int, level: float) -> Ends:
        """What the share r of a group's people in boxes may be: the share inside less r times the group's may be 0."""
        inside = self._within(boxes, g)
        sizes = np.array(self.estimate.schema.sizes)
        restricted = ((inside[..., 0] > 0) | (inside[..., 1] < sizes)).any(axis=0)
        attributes = self.evidence.attributes_for(tuple(np.flatnonzero(restricted).tolist()))
        if attributes is None:
            return self._apart(inside, g, level)
        z, own = pointwise_quantile(level), list(attributes)
        all_of = restricted_to(self.estimate.schema.sizes, attributes, {self.place: self._sides[g]})[None]

        def bound(r: float, sign: float) -> float:
            """The upper bound of share less r, or of its negative, times the people of the group."""
            terms = ((sign, inside[:, own]), (-sign * r, all_of))
            return upper_at(self.evidence, Shares(attributes, terms), z)

        return first_place(lambda r: bound(r, -1.0), 0.0, 1.0), last_place(lambda r: bound(r, 1.0), 0.0, 1.0)  # Q11

    def _apart(self, inside: Floats, g: int, level: float) -> Ends:
        """The same where no question holds all attributes: bounds of the two shares, both at once."""
        sizes = self.estimate.schema.sizes
        all_of = restricted_to(sizes, tuple(range(len(sizes))), {self.place: self._sides[g]})[None]
        owner = np.append(np.zeros(len(inside), np.int64), 1)
        both = Workload(sizes, np.concatenate([inside, all_of]), owner, 2)
        low, high = StrictAnswers(self.evidence, both).interval(level, simultaneous=True)  # Q14
        return float(low[0] / max(high[1], 1e-9)), float(min(high[0] / max(low[1], 1e-9), 1.0))

    def _ground(self, line: Line) -> tuple[Attributes, int]:
        attributes = self.evidence.attributes_for(tuple(sorted((line.place, self.place))))
        if attributes is None:
            raise ValueError(f"expected questions about {line.attribute.name} and {self.name} together, got none")
        return attributes, attributes.index(line.place)

    def _mean_ends(self, line: Line, g: int, level: float) -> Ends:
        attributes, axis = self._ground(line)
        z, (low, high), a = pointwise_quantile(level), line.codes, line.attribute
        sides = {self.place: self._sides[g], line.place: (0.0, float(a.ordered_size))}
        inside = restricted_to(self.estimate.schema.sizes, attributes, sides)[None]
        marks = line.marks[np.unique(np.round(np.linspace(0, line.marks.size - 1, _MARKS + 1)).astype(np.int64))]
        nobody = np.zeros(a.size - low.size)

        def bound(m: float, sign: float) -> float:
            """The upper bound of the sum of (number - m) in the group, or of its negative."""
            least, most = (low - m, high - m) if sign > 0 else (m - high, m - low)
            side = np.append(least, nobody), np.append(most, nobody)
            return upper_at(self.evidence, Inside(attributes, axis, side, inside, marks), z)

        first, last = float(low.min()), float(high.max())
        return first_place(lambda m: bound(m, -1.0), first, last), last_place(
            lambda m: bound(m, 1.0), first, last
        )  # Q11

    def _quantile_ends(self, line: Line, g: int, p: float, level: float) -> Ends:
        """The numbers x that may have the share p of the group's people below them."""
        attributes, _ = self._ground(line)
        z, size, sizes = pointwise_quantile(level), line.attribute.ordered_size, self.estimate.schema.sizes

        def bound(x: int, sign: float) -> float:
            """The upper bound of the share below x less the level, in the group, or of its negative."""
            sides = [
                {self.place: self._sides[g], line.place: side} for side in ((0.0, float(x)), (float(x), float(size)))
            ]
            below, rest = (restricted_to(sizes, attributes, side)[None] for side in sides)
            terms = ((sign * (1 - p), below), (-sign * p, rest))
            return upper_at(self.evidence, Shares(attributes, terms), z)  # S19

        ends, workload = self._blocks(line, g, _BLOCKS)
        below = np.append(0.0, np.maximum.accumulate(np.cumsum(self.estimate._shares(workload))))
        own = np.interp(np.arange(size + 1.0), ends, below) - p * below[-1]  # the functional of the estimate, at each x
        first = first_near(lambda x: bound(x + 1, 1.0), own[1:])
        last = size - 1 - first_near(lambda y: bound(size - 1 - y, -1.0), -own[:size][::-1])
        low, high = line.codes
        return float(low[min(first, last)]), float(high[max(first, last)])

    def _blocks(self, line: Line, g: int, most: int) -> tuple[Ints, Workload]:
        """Blocks of codes, and the queries for each of them inside a group."""
        ends, sizes = blocks(line.attribute.ordered_size, most), self.estimate.schema.sizes
        boxes = np.repeat(
            restricted_to(sizes, tuple(range(len(sizes))), {self.place: self._sides[g]})[None], ends.size - 1, 0
        )
        boxes[:, line.place] = np.stack([ends[:-1], ends[1:]], axis=1)
        return ends, Workload(sizes, boxes, np.arange(len(boxes)), len(boxes))

    def _mean(self, line: Line, g: int) -> Ends:
        """The estimate's own mean in a group, and the model's error."""
        ends, workload = self._blocks(line, g, _FEW)
        middle, shares = centres(line.attribute, ends[:-1], ends[1:] - 1), self.estimate._shares(workload)
        total = max(float(shares.sum()), 1e-9)
        value = float(np.clip(shares @ middle / total, line.attribute.lo, line.attribute.hi))
        ends, workload = self._blocks(line, g, _COARSE)
        away = centres(line.attribute, ends[:-1], ends[1:] - 1) - value
        return value, float(self.estimate.linear(workload, away[None] / total).spread[0])  # Q12

    def _quantile(self, line: Line, g: int, p: float) -> Ends:
        """The estimate's own quantile in a group, and the model's error."""
        ends, workload = self._blocks(line, g, _BLOCKS)
        shares = self.estimate._shares(workload)
        curve = monotone(np.append(0.0, np.cumsum(shares)))
        at = float(np.interp(p, curve, ends))
        value = float(numbers_at(line.attribute, np.array([at]))[0])
        total = max(float(shares.sum()), 1e-9)
        cut = int(ends[ends <= at].max(initial=0))
        sides = [{self.place: self._sides[g], line.place: side} for side in ((0.0, cut), (cut, float(ends[-1])))]
        sizes = self.estimate.schema.sizes
        boxes = np.stack([restricted_to(sizes, tuple(range(len(sizes))), side) for side in sides])
        both = Workload(sizes, boxes, np.arange(2), 2)  # below and above: all blocks of a side have one weight
        error = float(self.estimate.linear(both, np.array([[1 - p, -p]]) / total).spread[0])  # Q12
        low, high = np.interp([p - error, p + error], curve, ends)
        ends_at = numbers_at(line.attribute, np.array([low, high]))
        return value, float(ends_at[1] - ends_at[0]) / 2


def _less(findings: Findings, i: int, j: int, level: float) -> Ends:
    """The strict interval of one finding less another: both intervals hold at once, and their ends are subtracted."""
    if findings.ends is None:
        raise ValueError("expected numbers that the reports alone can bound, got others")
    low, high = findings.ends.interval(shared_level(level, 2))  # Q14
    low, high = np.clip(low, *findings.limits), np.clip(high, *findings.limits)
    return float(low[j] - high[i]), float(high[j] - low[i])
