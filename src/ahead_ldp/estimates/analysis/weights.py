"""Answers as if some attributes had shares that are known of everybody: post-stratification and raking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from numbers import Real
from typing import Any, Protocol

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.analysis.ground import levels_apart, reports_of
from ahead_ldp.estimates.answers import percent
from ahead_ldp.estimates.bands import pointwise_quantile
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Each, Findings
from ahead_ldp.estimates.slices import proper
from ahead_ldp.estimates.strict.functionals import Shares
from ahead_ldp.estimates.strict.reports import StrictReports
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.coding import bucket_label
from ahead_ldp.schema.queries import Query
from ahead_ldp.schema.workloads import Workload

_MOST_STRATA = 1024  # combinations of the margins' categories
_ROUNDS = 1000  # of raking, at most
_SETTLED = 1e-10  # tolerance: of a margin after raking
_ROUNDED = 0.02  # by which shares that were rounded may miss 1, and a quarter of it for each of many; a choice
_ONLY_MODEL = (
    "Only the model tells here: a strict interval needs one margin, and questions that held its attribute together with"
    " those of the query."
)
_LARGE = 5.0  # times: a weight above this is worth a warning; a choice, not measured


class Margin(Protocol):
    """What is known of each category: a mapping, or a Series of pandas with the categories as its index."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Every category with its share, percentage or count."""


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
    def of(cls, estimate: Estimate, margins: Mapping[str, Margin]) -> Calibrated:
        """Margins by name: the known share, percentage or count of every category.

        A category of an attribute with an order is a label, or a text such as "18..29" or "30" of closed ranges.
        """
        reports_of(estimate)
        if not margins:
            raise ValueError("expected at least one margin, got none")
        attributes, groups, targets = [], [], []
        for name, margin in margins.items():
            a = estimate._attribute(name, ordered=False)
            known = _by_category(name, margin)
            shares = _known(name, known)
            sides = tuple(_side(estimate, a, category) for category in known)
            _check_cover(a, sides)
            attributes.append(a)
            groups.append(sides)
            targets.append(_scaled(name, shares))
        if prod(len(sides) for sides in groups) > _MOST_STRATA:
            raise ValueError(f"expected at most {_MOST_STRATA} combinations of categories")
        return cls(estimate, tuple(attributes), tuple(groups), tuple(targets))

    def __repr__(self) -> str:
        return f"<Calibrated to the shares of {', '.join(a.name for a in self.attributes)}>"

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
        shares = self.shares.reshape([t.size for t in self.targets])
        for axis, (a, sides, target) in enumerate(zip(self.attributes, self.groups, self.targets, strict=True)):
            own = shares.sum(axis=tuple(i for i in range(shares.ndim) if i != axis))
            for (lo, _), some in zip(sides, (own <= 0) & (target > 0), strict=True):
                if some:
                    raise ValueError(
                        f"expected people in every category of the margin of {a.name}, got an estimate with nobody in"
                        f" {bucket_label(a, int(lo))!r}"
                    )
        return _raked(shares, self.targets).reshape(-1)

    def warnings(self, level: float = 0.95) -> list[str]:
        """What a reader must know: strata that the reports cannot support, and weights that are large."""
        low, _ = self.evidence.answers(self.strata).interval(level, simultaneous=True)
        empty, notes = self._open(low), []
        if empty.any():
            notes.append(
                f"{int(empty.sum())} of {self.strata.n} groups may be empty: the reports cannot support these weights"
                f" there. Of {percent(float(self._target_of[empty].sum()))} of everybody nothing is known."
            )
        largest = float(self.weights.max())
        if largest > _LARGE:
            notes.append(f"The largest weight is {largest:.1f}: a few people stand for many, and intervals are wide.")
        return notes

    def _open(self, low: Floats) -> Bools:
        """Strata that are wanted and may be empty, by the lower ends of their sizes."""
        return np.asarray((low <= 0) & (self._target_of > 0))

    @cached_property
    def _target_of(self) -> Floats:
        """The weighted share of each stratum."""
        return self.weights * self.shares

    def ask(self, *queries: Query | str) -> Findings:
        """The weighted shares of queries.

        Strict intervals are given where one margin is weighted, and a question holds the attributes of the query and
        the margin together. Else they are the model's.
        """
        texts = np.array([str(query) for query in queries], object)
        boxes = [Workload.from_queries(self.estimate.schema, [query]).reach for query in queries]
        each = [self._value(some) for some in boxes]
        values, errors = np.array([v for v, _ in each]), np.array([e for _, e in each])
        strict = len(self.attributes) == 1 and all(self._ground(some) is not None for some in boxes)
        ends = Each([partial(self._ends, some) for some in boxes]) if strict else None
        notes = () if strict else (_ONLY_MODEL,)
        return Findings(
            {"query": texts}, np.clip(values, 0.0, 1.0), ends, errors, self.estimate.assumes, (0.0, 1.0),
            is_share=True, remarks=(*self.warnings(), *notes), backend=self.estimate.backend,
        )  # fmt: skip

    def _cut(self, boxes: Floats) -> tuple[Workload, Floats]:
        """The boxes of a query inside each stratum as one workload, and which strata hold something."""
        lo = np.maximum(boxes[None, ..., 0], self.strata.boxes[:, None, :, 0])
        hi = np.minimum(boxes[None, ..., 1], self.strata.boxes[:, None, :, 1])
        inside = np.stack([lo, np.maximum(hi, lo)], axis=-1).reshape(-1, lo.shape[-1], 2)
        owner = np.repeat(np.arange(self.strata.n), len(boxes))
        return Workload(self.strata.sizes, inside, owner, self.strata.n), inside

    def _value(self, boxes: Floats) -> tuple[float, float]:
        """The weighted share of a query, and the model's standard error, that of the weights counted in."""
        cut, _ = self._cut(boxes)
        inside = self.estimate._shares(cut)
        both = Workload(
            cut.sizes,
            np.concatenate([cut.boxes, self.strata.boxes]),
            np.append(cut.owner, cut.n + self.strata.owner),
            2 * cut.n,
        )
        ratio = np.clip(inside / np.maximum(self.shares, 1e-9), 0.0, 1.0)
        linear = self.estimate.linear(both, np.append(self.weights, -self.weights * self._fitted(ratio))[None])
        return float(self.weights @ inside), float(linear.spread[0])  # Q12, Q17

    def _fitted(self, ratio: Floats) -> Floats:
        """The ratios of the strata as sums of a number for each category of each margin, nearest in weighted squares.

        By as much a person of a stratum moves the weights of others. For one margin they are the ratios themselves.
        """
        places = np.indices([t.size for t in self.targets]).reshape(len(self.targets), -1)
        design = np.hstack([np.eye(t.size)[at] for t, at in zip(self.targets, places, strict=True)])
        root = np.sqrt(self._target_of)
        return design @ np.linalg.lstsq(design * root[:, None], ratio * root, rcond=None)[0]  # Q17

    def _ground(self, boxes: Floats) -> tuple[int, ...] | None:
        places = {self.estimate.schema.index(a.name) for a in self.attributes}
        cut = ((boxes[..., 0] > 0) | (boxes[..., 1] < np.array(self.estimate.schema.sizes))).any(axis=0)
        return self.evidence.attributes_for(tuple(sorted(places | set(np.flatnonzero(cut).tolist()))))

    def _ends(self, boxes: Floats, level: float) -> tuple[float, float]:
        """The weighted shares that the reports allow: over all sizes of the strata that they allow."""
        on_the_way, own = levels_apart(level)
        low, high = self.evidence.answers(self.strata).interval(on_the_way, simultaneous=True)
        open_, target = self._open(low), self._target_of
        supported = np.where(open_, 0.0, target)
        if not supported.any():
            return 0.0, 1.0
        ground = self._ground(boxes)
        cut, _ = self._cut(boxes)
        ratio = np.clip(self.estimate._shares(cut) / np.maximum(self.shares, 1e-9), 0.0, 1.0)
        z, ends = pointwise_quantile(own), []
        for size in (np.clip(self.shares, low, high), low, high):
            weights = np.where(supported > 0, supported / np.maximum(size, 1e-12), 0.0)
            upper, lower = self.evidence.both([self._functional(cut, weights, ratio, list(ground or ()))]).at(z)
            ends.append((-float(lower), float(upper)))
        start, unknown = float(supported @ ratio), float(target[open_].sum())
        return start + min(a for a, _ in ends), start + max(b for _, b in ends) + unknown  # Q16

    def _functional(self, cut: Workload, weights: Floats, ratio: Floats, own: list[int]) -> Shares:
        """The sum over strata of weight times (share inside the query less ratio times the stratum's share)."""
        terms = []
        for g in np.flatnonzero(weights > 0).tolist():
            inside = cut.reach[cut.owner == g][:, own]
            some: Bools = (inside[..., 0] < inside[..., 1]).all(axis=1)
            if some.any():
                terms.append((float(weights[g]), inside[some]))
            terms.append((-float(weights[g] * ratio[g]), self.strata.boxes[[g]][:, own]))
        return Shares(tuple(own), tuple(terms))


def _by_category(name: str, margin: Any) -> dict[Any, Any]:
    """What is known of each category, each once."""
    try:
        pairs = list(margin.items())
        known = dict(pairs)
    except (AttributeError, TypeError, ValueError):
        raise ValueError(
            f"expected a share or count for each category in the margin of {name}, got {margin!r}"
        ) from None
    if len(known) < len(pairs):
        raise ValueError(f"expected every category of {name} once in its margin, got {len(pairs)} of {len(known)}")
    return known


def _known(name: str, margin: Mapping[Any, Any]) -> Floats:
    """What is known of each category, as it was given: shares, percentages or counts."""
    numbers = all(isinstance(share, Real) and not isinstance(share, bool) for share in margin.values())
    shares = np.array(list(margin.values()), float) if numbers else np.zeros(0)
    if not shares.size or not np.isfinite(shares).all() or (shares < 0).any() or not shares.sum() > 0:
        raise ValueError(f"expected shares or counts >= 0, not all 0, in the margin of {name}, got {dict(margin)}")
    return shares


def _scaled(name: str, shares: Floats) -> Floats:
    """With sum 1; numbers that look like shares must have it already."""
    total, room = float(shares.sum()), max(_ROUNDED, _ROUNDED / 4 * shares.size)
    if (shares % 1 > 0).any() and shares.max() <= 1 and abs(total - 1) > room:
        raise ValueError(f"expected shares that sum to 1, or counts, in the margin of {name}, got the sum {total:.6g}")
    return shares / total


def _check_cover(a: Attribute, sides: tuple[tuple[float, float], ...]) -> None:
    """Every code must be in one category of the margin."""
    covered = np.zeros(a.size)
    for lo, hi in sides:
        covered[int(lo) : int(hi)] += 1
    wrong = np.flatnonzero(covered != 1)
    if wrong.size:
        code = int(wrong[0])
        said = bucket_label(a, code)
        got = f"{said!r} twice" if covered[code] > 1 else f"none for {said!r}"
        raise ValueError(f"expected a share of every value of {a.name} in its margin, each once, got {got}")


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
