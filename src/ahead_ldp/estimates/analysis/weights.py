"""Answers as if some attributes had shares that are known of everybody: post-stratification and raking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.analysis.ground import levels_apart, reports_of
from ahead_ldp.estimates.bands import pointwise_quantile
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Each, Findings
from ahead_ldp.estimates.slices import proper
from ahead_ldp.estimates.strict.functionals import Shares
from ahead_ldp.estimates.strict.reports import StrictReports
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.queries import Query
from ahead_ldp.schema.workloads import Workload

_MOST_STRATA = 1024  # combinations of the margins' categories
_ROUNDS = 1000  # of raking, at most
_SETTLED = 1e-10  # tolerance: of a margin after raking
_LARGE = 5.0  # times: a weight above this is worth a warning; a choice, not measured


@dataclass(frozen=True, eq=False)
class Calibrated:
    """An estimate whose people are weighted so that some attributes have the shares that are known of everybody.

    One margin is post-stratification. Several are raked: the weight of a person is a product of one factor per margin,
    so that the dependence between the margins stays as the estimate has it.
    """

    estimate: Estimate
    attributes: tuple[Attribute, ...]
    groups: tuple[tuple[tuple[float, float], ...], ...]  # of each margin: positions of every category
    targets: tuple[Floats, ...]  # known shares of every category

    @classmethod
    def of(cls, estimate: Estimate, margins: Mapping[str, Mapping[Any, float]]) -> Calibrated:
        """Margins by name: the known share, or count, of every category.

        A category of an attribute with an order is a label, or a text such as "18..29" or "30" of closed ranges.
        """
        reports_of(estimate)
        if not margins:
            raise ValueError("expected at least one margin, got none")
        attributes, groups, targets = [], [], []
        for name, known in margins.items():
            a = estimate._attribute(name, ordered=False)
            shares = np.array([float(share) for share in known.values()])
            if not shares.size or not np.isfinite(shares).all() or (shares < 0).any() or not shares.sum() > 0:
                raise ValueError(
                    f"expected shares or counts >= 0, not all 0, in the margin of {name}, got {dict(known)}"
                )
            sides = tuple(_side(estimate, a, category) for category in known)
            covered = np.zeros(a.size)
            for lo, hi in sides:
                covered[int(lo) : int(hi)] += 1
            if (covered != 1).any():
                raise ValueError(f"expected the margin of {name} to hold every code of it once, got {list(known)}")
            attributes.append(a)
            groups.append(sides)
            targets.append(shares / shares.sum())
        if prod(len(sides) for sides in groups) > _MOST_STRATA:
            raise ValueError(f"expected at most {_MOST_STRATA} combinations of categories")
        return cls(estimate, tuple(attributes), tuple(groups), tuple(targets))

    @cached_property
    def evidence(self) -> StrictReports:
        """What was asked and told."""
        return reports_of(self.estimate)

    @cached_property
    def strata(self) -> Workload:
        """Every combination of the margins' categories, the last fastest."""
        sizes, shape = self.estimate.schema.sizes, [len(sides) for sides in self.groups]
        index = np.indices(shape).reshape(len(shape), -1)
        boxes = np.zeros((index.shape[1], len(sizes), 2))
        boxes[..., 1] = sizes
        for a, sides, at in zip(self.attributes, self.groups, index, strict=True):
            boxes[:, self.estimate.schema.index(a.name)] = np.array(sides)[at]
        return Workload(sizes, boxes, np.arange(len(boxes)), len(boxes))

    @cached_property
    def shares(self) -> Floats:
        """The estimate's own shares of the strata."""
        return proper(self.estimate._shares(self.strata))

    @cached_property
    def weights(self) -> Floats:
        """The weight of the people of each stratum; 1 changes nothing."""
        return _raked(self.shares.reshape([t.size for t in self.targets]), self.targets).reshape(-1)

    def warnings(self, level: float = 0.95) -> list[str]:
        """What a reader must know: strata that the reports cannot support, and weights that are large."""
        low, _ = self.evidence.answers(self.strata).interval(level, simultaneous=True)
        asked = np.array([t > 0 for t in self._target_of], bool)
        empty, notes = int((asked & (low <= 0)).sum()), []
        if empty:
            notes.append(
                f"{empty} of {self.strata.n} strata may be empty: the reports cannot support these weights there."
            )
        largest = float(self.weights.max())
        if largest > _LARGE:
            notes.append(f"The largest weight is {largest:.1f}: a few people stand for many, and intervals are wide.")
        return notes

    @cached_property
    def _target_of(self) -> Floats:
        """The weighted share of each stratum."""
        return self.weights * self.shares

    def ask(self, *queries: Query | str) -> Findings:
        """The weighted shares of queries.

        Strict intervals are given where one margin is weighted, and a question holds the attributes of the query and
        the margin together. Else they are the model's, for weights that are taken as known.
        """
        texts = np.array([str(query) for query in queries], object)
        boxes = [Workload.from_queries(self.estimate.schema, [query]).boxes for query in queries]
        each = [self._value(some) for some in boxes]
        values, errors = np.array([v for v, _ in each]), np.array([e for _, e in each])
        strict = len(self.attributes) == 1 and all(self._ground(some) is not None for some in boxes)
        ends = Each([partial(self._ends, some) for some in boxes]) if strict else None
        says = f"the weights are right as they are, {self.estimate.assumption}"
        notes = () if strict else ("No question holds all of these attributes, so only the model tells.",)
        return Findings(
            {"query": texts}, np.clip(values, 0.0, 1.0), ends, errors, says, (0.0, 1.0), is_share=True,
            remarks=(*self.warnings(), *notes),
        )  # fmt: skip

    def _cut(self, boxes: Floats) -> tuple[Workload, Floats]:
        """The boxes of a query inside each stratum as one workload, and which strata hold something."""
        lo = np.maximum(boxes[None, ..., 0], self.strata.boxes[:, None, :, 0])
        hi = np.minimum(boxes[None, ..., 1], self.strata.boxes[:, None, :, 1])
        inside = np.stack([lo, np.maximum(hi, lo)], axis=-1).reshape(-1, lo.shape[-1], 2)
        owner = np.repeat(np.arange(self.strata.n), len(boxes))
        return Workload(self.strata.sizes, inside, owner, self.strata.n), inside

    def _value(self, boxes: Floats) -> tuple[float, float]:
        """The weighted share of a query, and the model's standard error for fixed weights."""
        cut, _ = self._cut(boxes)
        inside = self.estimate._shares(cut)
        both = Workload(
            cut.sizes,
            np.concatenate([cut.boxes, self.strata.boxes]),
            np.append(cut.owner, cut.n + self.strata.owner),
            2 * cut.n,
        )
        ratio = np.clip(inside / np.maximum(self.shares, 1e-9), 0.0, 1.0)
        linear = self.estimate.linear(both, np.append(self.weights, -self.weights * ratio)[None])  # Q12, Q16
        return float(self.weights @ inside), float(linear.spread[0])

    def _ground(self, boxes: Floats) -> tuple[int, ...] | None:
        places = {self.estimate.schema.index(a.name) for a in self.attributes}
        cut = ((boxes[..., 0] > 0) | (boxes[..., 1] < np.array(self.estimate.schema.sizes))).any(axis=0)
        return self.evidence.attributes_for(tuple(sorted(places | set(np.flatnonzero(cut).tolist()))))

    def _ends(self, boxes: Floats, level: float) -> tuple[float, float]:
        """The weighted shares that the reports allow: over all sizes of the strata that they allow."""
        on_the_way, own = levels_apart(level)
        low, high = self.evidence.answers(self.strata).interval(on_the_way, simultaneous=True)
        target = self._target_of
        if ((low <= 0) & (target > 0)).any():
            return 0.0, 1.0
        ground = self._ground(boxes)
        cut, _ = self._cut(boxes)
        ratio = np.clip(self.estimate._shares(cut) / np.maximum(self.shares, 1e-9), 0.0, 1.0)
        z, ends = pointwise_quantile(own), []
        for size in (np.clip(self.shares, low, high), low, high):
            weights = np.where(target > 0, target / np.maximum(size, 1e-12), 0.0)
            upper, lower = self.evidence.both([self._functional(cut, weights, ratio, list(ground or ()))]).at(z)
            ends.append((-float(lower), float(upper)))
        start = float(target @ ratio)
        return start + min(a for a, _ in ends), start + max(b for _, b in ends)  # Q16

    def _functional(self, cut: Workload, weights: Floats, ratio: Floats, own: list[int]) -> Shares:
        """The sum over strata of weight times (share inside the query less ratio times the stratum's share)."""
        terms = []
        for g in np.flatnonzero(weights > 0).tolist():
            inside = cut.boxes[cut.owner == g][:, own]
            some: Bools = (inside[..., 0] < inside[..., 1]).all(axis=1)
            if some.any():
                terms.append((float(weights[g]), inside[some]))
            terms.append((-float(weights[g] * ratio[g]), self.strata.boxes[[g]][:, own]))
        return Shares(tuple(own), tuple(terms))


def _side(estimate: Estimate, a: Attribute, category: Any) -> tuple[float, float]:
    """The positions of one category of a margin."""
    text = str(category)
    if a.labels:
        if text == "missing" and a.missing == "cell" and text not in a.labels:
            return float(a.ordered_size), float(a.size)
        box = Workload.from_queries(estimate.schema, [Query({a.name: frozenset([text])})]).boxes
    elif text == "missing":
        box = Workload.from_queries(estimate.schema, [Query({a.name: None})]).boxes
    else:
        low, dots, high = text.partition("..")
        box = Workload.from_queries(estimate.schema, [Query({a.name: (low, high if dots else low)})]).boxes
    lo, hi = box[0, estimate.schema.index(a.name)]
    if lo != np.floor(lo) or hi != np.floor(hi) or lo >= hi:
        raise ValueError(f"expected categories of the margin of {a.name} to end where its buckets do, got {text!r}")
    return float(lo), float(hi)


def _raked(shares: Floats, targets: tuple[Floats, ...]) -> Floats:
    """Weights, a product of one factor per margin, with which the margins are those that are known."""
    weights = np.ones_like(shares)
    for _ in range(_ROUNDS):
        worst = 0.0
        for axis, target in enumerate(targets):
            others = tuple(i for i in range(shares.ndim) if i != axis)
            margin = (weights * shares).sum(axis=others)
            if ((margin <= 0) & (target > 0)).any():
                raise ValueError("expected people in every category of the margins, got an estimate without any there")
            factor = np.divide(target, margin, out=np.zeros_like(margin), where=margin > 0)
            worst = max(worst, float(np.abs(margin - target).max()))
            weights = weights * factor.reshape([-1 if i == axis else 1 for i in range(shares.ndim)])  # Q17
        if worst <= _SETTLED:
            break
    return weights
