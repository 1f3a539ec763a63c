"""What changed between two estimates: shares, curves, quantiles and means of one less those of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.analysis.difference_intervals import DifferenceIntervals, added
from ahead_ldp.estimates.analysis.ground import Crowd, Line, assumed
from ahead_ldp.estimates.answers import Answers, Kind
from ahead_ldp.estimates.bands import normal_draws, pointwise_quantile
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Each, Ends, Findings
from ahead_ldp.estimates.quantiles import Quantiles
from ahead_ldp.estimates.slices import bin_labels, histogram_bins, slices
from ahead_ldp.estimates.strict.reports import StrictReports
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.coding import declared_range
from ahead_ldp.schema.queries import Query, Snap
from ahead_ldp.schema.units import borders, numbers_of, positions, positions_after, spoken, unit
from ahead_ldp.schema.workloads import Workload

_POINTS = 24  # of a curve, where the caller does not say which: each takes a bound of either estimate
_ENOUGH = 8  # points at borders that both estimates have; with fewer, those of one estimate are taken. A choice
_BOXES = 64  # of all queries together, beyond which no joint law is worked out
_SEED = 1_963  # draws for a critical value are the same every time
SAMPLED_NOTE = "The people of each estimate count as drawn at random from everybody; intervals are about everybody."
PEOPLE_NOTE = "Intervals are about the people who took part, not about others."


def difference(first: Estimate, second: Estimate, *, sampled: bool = True) -> Difference:
    """What changed from the first estimate to the second: every number is the second's less the first's.

    Queries and places are in the user's units, so the two may have different buckets. With ``sampled`` the people of
    either estimate are taken as drawn at random from everybody, and intervals are about everybody; without it they
    are about the people who took part. The two must come from different reports. Two campaigns always do. Two runs
    outside a campaign do unless method, epsilon, schema and every count of the first wave are the same.
    """
    for estimate in (first, second):
        if not isinstance(estimate, Estimate):
            raise ValueError(f"expected two estimates, got a {type(estimate).__name__}: `ahead_ldp.load` reads files")
        if estimate.provenance is None:
            raise ValueError("expected estimates that know their reports, from simulations, collections or files")
    one, other = (list(e.provenance.links) if e.provenance else [] for e in (first, second))
    shared = not set(one).isdisjoint(other)
    same = first is second or (shared and one == other)
    if shared and not same:
        raise ValueError("expected estimates from different reports, got two that share some of them")
    return Difference(first, second, sampled, same)


@dataclass(frozen=True, eq=False)
class Difference:
    """The second of two estimates less the first."""

    first: Estimate
    second: Estimate
    sampled: bool
    same: bool  # the two are one: every difference is 0

    def __repr__(self) -> str:
        who = "everybody" if self.sampled else "the people who took part"
        return f"<Difference of {', '.join(self.shared) or 'nothing'}, about {who}>"

    @property
    def shared(self) -> list[str]:
        """Attributes of one name and kind in both estimates, in the order of the second; they can be compared."""
        others = {a.name: a for a in self.first.schema.attributes}
        return [a.name for a in self.second.schema.attributes if a.name in others and _alike(others[a.name], a)]

    @property
    def _both(self) -> tuple[Estimate, Estimate]:
        return self.first, self.second

    def ask(self, *queries: Query | str, snap: Snap | None = None) -> Answers:
        """By how much the share of each query changed."""
        texts = np.array([str(query) for query in queries], object)
        return self._answers([Workload.from_queries(e.schema, queries, snap) for e in self._both], {"query": texts})

    def cdf(self, attribute: str | None = None, points: int | Sequence[Any] = _POINTS) -> Answers:
        """By how much the share of people up to each point, included, changed.

        ``points`` are in the user's units, or a number of borders that both estimates have, spread over the people.
        Where they share only a few, the borders of the coarser one are taken. They end inside buckets of the other, so
        intervals are wider there.
        """
        a, b = self._attributes(attribute, ordered=True)
        whole = a.kind != "real"
        if isinstance(points, int):
            numbers = self._points(a, b, points)
            said: NDArray[Any] = spoken(a, numbers - whole)
            ends = [positions(x, numbers) for x in (a, b)]
        else:
            said = np.asarray(points)
            ends = [positions_after(x, numbers_of(a, points)) for x in (a, b)]
        pairs = zip(self._both, ends, strict=True)
        return self._answers([slices(e.schema, a.name, np.zeros(at.size), at) for e, at in pairs], {a.name: said})

    def histogram(self, attribute: str | None = None, bins: int | Sequence[Any] = 16) -> Answers:
        """By how much the share of people in each bin changed.

        ``bins`` are borders in the user's units, as for a histogram, or a number of bins that end where both estimates
        have borders, or the coarser one where they share only a few. Categories are bins; those that only one of the
        estimates knows are left out.
        """
        a, b = self._attributes(attribute, ordered=False)
        if a.labels:
            common = [label for label in a.labels if label in b.labels]
            if not common:
                raise ValueError(f"expected categories of {a.name} that both estimates know, got none")
            answers = self.ask(*(Query({a.name: frozenset([label])}) for label in common))
            return replace(answers, labels={a.name: np.array(common, object)})
        if isinstance(bins, int):
            if bins < 1:
                raise ValueError(f"expected bins >= 1, got {bins}")
            both, range_ = np.intersect1d(borders(a), borders(b)), _range_of_both(a, b)
            inner = self._points(a, b, bins - 1) if bins > 1 else both[:0]
            outer = both if inner.size and np.isin(inner, both).all() else range_
            edges = np.unique([outer[0], *inner, outer[-1]])
            ends = [positions(x, edges) for x in (a, b)]
            sides, labels = [(at[:-1], at[1:]) for at in ends], bin_labels(a, edges)
        else:
            made = [histogram_bins(x, bins) for x in (a, b)]
            sides, labels = [(lo, hi) for lo, hi, _ in made], made[0][2]
        workloads = [slices(e.schema, a.name, *side) for e, side in zip(self._both, sides, strict=True)]
        return self._answers(workloads, {a.name: labels})

    def mean(self, attribute: str | None = None) -> Findings:
        """By how much the average of a numeric attribute changed; in days for dates, in seconds for times."""
        a, b = self._attributes(attribute, ordered=True)
        lines = self._lines(a.name)
        means = [e.mean(a.name) for e in self._both]
        value = means[1].number - means[0].number
        errors = [np.hypot(m.spread, self._drawn(line, _variance(line))) for m, line in zip(means, lines, strict=True)]
        reach = max(a.hi, b.hi) - min(a.lo, b.lo)
        of = " in ".join(filter(None, ["mean", unit(a)]))
        limits = float(-reach), float(reach)
        return self._finding(
            a.name, of, np.array([value]), [partial(self._mean_ends, lines)], self._apart(errors), limits
        )

    def quantiles(self, attribute: str | None = None, levels: ArrayLike = (0.25, 0.5, 0.75)) -> Findings:
        """By how much quantiles changed; in days for dates, in seconds for times, in codes for categories."""
        a, b = self._attributes(attribute, ordered=True)
        if a.labels:
            raise ValueError(f"expected a numeric attribute for a difference of quantiles, got {a.name}")
        if not np.size(levels):
            raise ValueError("expected at least one level of quantiles, got none")
        parts = [e.quantiles(a.name, levels) for e in self._both]
        wanted = parts[0].levels
        numbers = np.stack([part._numbers(wanted) for part in parts])
        said = numbers if a.kind == "real" else np.stack([_whole(x, y) for x, y in zip((a, b), numbers, strict=True)])
        lines = self._lines(a.name)
        errors = [self._quantile_errors(part, line) for part, line in zip(parts, lines, strict=True)]
        reach = float(max(a.hi, b.hi) - min(a.lo, b.lo))
        each = Each([partial(self._quantile_ends, lines, p) for p in wanted.tolist()])
        return Findings(
            {"level": wanted}, said[1] - said[0], each, self._apart(errors), assumed(self._both), (-reach, reach),
            middle=None if a.kind == "real" else numbers[1] - numbers[0], remarks=self._notes(),
            backend=self.second.backend,
        )  # fmt: skip

    def changed(self, answers: Answers, level: float = 0.95, kind: Kind | None = None) -> tuple[Bools, Bools]:
        """Which of the changes exclude 0: each for itself, and with all at once."""
        (low, high), (least, most) = answers.interval(level, False, kind), answers.interval(level, True, kind)
        return (low > 0) | (high < 0), (least > 0) | (most < 0)

    def test(self, attribute: str | None = None, level: float = 0.95, kind: Kind | None = None) -> ChangeTest:
        """Whether anything about an attribute changed: its curve at 24 points, or all of its categories at once.

        "No change" is rejected where 0 is outside of any simultaneous interval, so a false alarm has at most the
        probability 1 - level.
        """
        a, _ = self._attributes(attribute, ordered=False)
        answers = self.histogram(a.name) if a.labels else self.cdf(a.name)
        return ChangeTest(a.name, answers, self.changed(answers, level, kind)[1], level, bool(a.labels))

    def _finding(
        self, name: str, of: str, values: Floats, ends: list[Ends], error: Floats, limits: tuple[float, float]
    ) -> Findings:
        labels = {"attribute": np.array([name], object), "of": np.array([of], object)}
        return Findings(
            labels, values, Each(ends), error, assumed(self._both), limits, remarks=self._notes(),
            backend=self.second.backend,
        )  # fmt: skip

    def _drawn(self, line: Line, variance: Floats | float) -> Floats:
        """The error of a mean from who was drawn, where people are a sample; ``variance`` is that of one person."""
        origin = line.estimate.provenance
        people = line.present * (1 if origin is None else origin.people)
        return np.sqrt(np.asarray(variance) * self.sampled / max(people, 1.0))  # Q15

    def _apart(self, errors: Sequence[Floats]) -> Floats:
        """The error of a difference, from those of two independent estimates."""
        return np.atleast_1d(np.hypot(*errors) * (not self.same))

    def _quantile_errors(self, part: Quantiles, line: Line) -> Floats:
        """The model's errors of quantiles: as far as the error of the curve, and that of who was drawn, move them."""
        curve = np.interp(part.levels, part.curve, part.curve_error) if part.curve_error is not None else 0.0
        share = np.maximum(part.share_error, curve)
        drawn = self._drawn(line, part.levels * (1 - part.levels))
        return replace(part, share_error=np.hypot(share, drawn)).standard_error

    def _notes(self) -> tuple[str, ...]:
        return (SAMPLED_NOTE if self.sampled else PEOPLE_NOTE,)

    def _attributes(self, name: str | None, ordered: bool) -> tuple[Attribute, Attribute]:
        a = self.first._attribute(name, ordered)
        if a.name not in self.second.schema.names:
            both = ", ".join(self.shared) or "none"
            raise ValueError(f"expected an attribute that both estimates have ({both}), got {a.name!r}")
        b = self.second._attribute(a.name, ordered)
        if not _alike(a, b):
            said = [x.kind + " with missing values" * (x.missing == "cell") for x in (a, b)]
            raise ValueError(f"expected {a.name} to be of the same kind in both estimates, got {' and '.join(said)}")
        return a, b

    def _points(self, a: Attribute, b: Attribute, most: int) -> Floats:
        """Borders inside the ranges of both attributes, at most so many, spread over the people.

        They are borders of both where there are enough of these, else those of the coarser one.
        """
        if most < 1:
            raise ValueError(f"expected at least one point, got {most}")
        low, high = _range_of_both(a, b)
        own = [x[(x > low) & (x < high)] for x in (borders(a), borders(b))]
        shared = self._spread(a, b, np.intersect1d(own[0], own[1]), most)
        if shared.size >= min(most, _ENOUGH):
            return shared
        coarser = self._spread(a, b, min(own, key=lambda x: x.size or np.inf), most)
        points = coarser if coarser.size > shared.size else shared
        if not points.size:
            raise ValueError(f"expected borders of {a.name} inside the ranges of both estimates, got none: name points")
        return points

    def _spread(self, a: Attribute, b: Attribute, numbers: Floats, most: int) -> Floats:
        """At most so many of the numbers, between which there are about equally many people."""
        if not numbers.size:
            return numbers
        pairs = zip(self._both, (a, b), strict=True)
        below = [e._shares(slices(e.schema, a.name, 0 * numbers, positions(x, numbers))) for e, x in pairs]
        curve = np.maximum.accumulate((below[0] + below[1]) / 2)
        wanted = np.arange(1, most + 1) / (most + 1)
        return numbers[np.unique(np.clip(np.searchsorted(curve, wanted), 0, numbers.size - 1))]

    @cached_property
    def _evidence(self) -> tuple[StrictReports, StrictReports]:
        made = []
        for estimate in self._both:
            origin: Any = estimate.provenance
            made.append(StrictReports(estimate.schema, Crowd(origin) if self.sampled else origin))
        return made[0], made[1]

    def _lines(self, name: str) -> list[Line]:
        return [Line.of(e, name, evidence=told) for e, told in zip(self._both, self._evidence, strict=True)]

    def _mean_ends(self, lines: Sequence[Line], level: float) -> tuple[float, float]:
        if self.same:
            return 0.0, 0.0
        before, after = lines
        if any(line.attribute.missing == "cell" for line in lines):
            each = pointwise_quantile(float(np.sqrt(level)))  # Q14
            (low, high), (least, most) = (line.mean_ends(*line.codes, each) for line in (before, after))
            return least - high, most - low
        lost = before.numbers(*before.codes).negative()
        bounds = added(after.evidence.both([after.numbers(*after.codes)]), before.evidence.both([lost]))
        upper, lower = bounds.at(pointwise_quantile(level))
        return -float(lower), float(upper)

    def _quantile_ends(self, lines: Sequence[Line], p: float, level: float) -> tuple[float, float]:
        if self.same:
            return 0.0, 0.0
        each = float(np.sqrt(level))  # Q14
        (low, high), (least, most) = (line.quantile_ends(p, each) for line in lines)
        return least - high, most - low

    def _answers(self, workloads: Sequence[Workload], labels: dict[str, NDArray[Any]]) -> Answers:
        before, after = (e.answer(w) for e, w in zip(self._both, workloads, strict=True))
        variance = before.spread**2 + after.spread**2
        if self.sampled:
            for e, answers in zip(self._both, (before, after), strict=True):
                f, origin = np.clip(answers.values, 0.0, 1.0), e.provenance
                variance += f * (1 - f) / max(1 if origin is None else origin.people, 1)  # Q15
        strict = DifferenceIntervals(self._evidence, (workloads[0], workloads[1]), self.same)
        marked = before.bias_not_included | after.bias_not_included
        error = np.zeros(len(variance)) if self.same else np.sqrt(variance)
        consistent, says = before.consistent and after.consistent, assumed(self._both)
        return Answers(
            after.values - before.values, error, marked, labels, consistent,
            joint=_JointChange(self, (workloads[0], workloads[1])), strict=strict, assumption=says, limits=(-1.0, 1.0),
            backend=self.second.backend,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _JointChange:
    """Draws of the model's errors of all changes together: those of either estimate, and of who was drawn (Q19)."""

    change: Difference
    workloads: tuple[Workload, Workload]

    def __call__(self) -> Floats | None:
        """The draws, (draws, n); None where an estimate does not know its joint law."""
        if self.change.same or len(self.workloads[0].owner) > _BOXES:
            return None
        rng, errors = np.random.default_rng(_SEED), np.zeros(1)
        for estimate, workload, sign in zip(self.change._both, self.workloads, (-1.0, 1.0), strict=True):
            own = estimate.joint_errors(workload)
            if own is None:
                return None
            drawn = normal_draws(_who_was_drawn(estimate, workload), len(own)) if self.change.sampled else 0.0 * own
            # All draws come from one seed: in another order they are independent.
            errors = errors + sign * own[rng.permutation(len(own))] + drawn[rng.permutation(len(own))]  # Q19
        return errors


def _who_was_drawn(estimate: Estimate, workload: Workload) -> Floats:  # -> (n, n)
    """Covariances of the shares of queries in a sample of the estimate's size: shares of both less their product."""
    boxes, owner, n = workload.boxes, workload.owner, workload.n
    lo = np.maximum(boxes[:, None, :, 0], boxes[None, :, :, 0])
    hi = np.maximum(np.minimum(boxes[:, None, :, 1], boxes[None, :, :, 1]), lo)
    overlaps = np.stack([lo, hi], axis=-1).reshape(-1, lo.shape[-1], 2)
    pairs = (owner[:, None] * n + owner[None, :]).reshape(-1)
    some = (overlaps[..., 0] < overlaps[..., 1]).all(axis=1)
    both = np.zeros(n * n)
    if some.any():
        held, place = np.unique(pairs[some], return_inverse=True)
        shares = estimate._shares(Workload(workload.sizes, overlaps[some], place.reshape(-1), held.size))
        both[held] = np.clip(shares, 0.0, 1.0)
    table, origin = both.reshape(n, n), estimate.provenance
    own = np.diag(table)
    return (table - np.outer(own, own)) / max(1 if origin is None else origin.people, 1)  # Q15


@dataclass(frozen=True, slots=True, eq=False)
class ChangeTest:
    """Whether "no change" is rejected, and where."""

    attribute: str
    answers: Answers
    where: Bools
    level: float
    labelled: bool = False  # categories, and not a curve

    def __repr__(self) -> str:
        return f"<ChangeTest: {self.text()}>"

    @property
    def rejected(self) -> bool:
        """Whether something changed, with the probability of a false alarm that the level leaves."""
        return bool(self.where.any())

    def text(self) -> str:
        """The verdict as a sentence."""
        if not self.rejected:
            return f"No change of {self.attribute} can be told from the reports, at the level {100 * self.level:g} %."
        return (
            f"{self.attribute} changed, with {100 * self.level:g} % confidence: another share of people is"
            f" {'with' if self.labelled else 'at or below'} {self.named}."
        )

    @property
    def named(self) -> str:
        """Where something changed: the first three places, as people read them."""
        some = next(iter(self.answers.labels.values()))[self.where.reshape(-1)].tolist()
        return ", ".join(map(_spoken, some[:3])) + " and others" * (len(some) > 3)


def _spoken(place: object) -> str:
    return f"{place:,.12g}" if isinstance(place, float) else f"{place:,}" if isinstance(place, int) else str(place)


def _alike(a: Attribute, b: Attribute) -> bool:
    return a.kind == b.kind and (a.missing == "cell") == (b.missing == "cell")


def _range_of_both(a: Attribute, b: Attribute) -> tuple[float, float]:
    """Where the ranges of two attributes overlap."""
    (low, high), (least, most) = ((float(x[0]), float(x[-1])) for x in (borders(a), borders(b)))
    if max(low, least) >= min(high, most):
        apart = " and ".join(declared_range(x) for x in (a, b))
        raise ValueError(f"expected borders of {a.name} that both estimates have, got ranges apart: {apart}")
    return max(low, least), min(high, most)


def _whole(attribute: Attribute, numbers: Floats) -> Floats:
    """The values that people hold at some numbers, as numbers."""
    return spoken(attribute, numbers).astype(float)


def _variance(line: Line) -> float:
    """The variance of an attribute among those who have a value, by the estimate."""
    numbers, shares = line.density
    return max(float(shares @ numbers**2) - float(shares @ numbers) ** 2, 0.0)
