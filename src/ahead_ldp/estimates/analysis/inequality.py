"""How unequally a total is shared out: the Lorenz curve, shares of the top and the bottom, the Gini coefficient."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from ahead_ldp.estimates.analysis.ground import MEMBERS, Bound, Line, first_of_all, last_of_all, levels_apart, upper_at
from ahead_ldp.estimates.bands import pointwise_quantile
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Each, Findings
from ahead_ldp.estimates.slices import slices
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.units import borders

_TENTHS = tuple(i / 10 for i in range(1, 10))  # asked for where the caller names no levels
_BAND = 24  # places at which the curve of people is bounded for a Gini coefficient; a choice, not measured (Q6)
_ROUNDS = 50  # of a ratio that settles in five to ten (Q7)
_SETTLED = 1e-12  # tolerance: of this ratio


def lorenz(estimate: Estimate, attribute: str | None = None, levels: ArrayLike = _TENTHS) -> Findings:
    """The part of the total that the people with the least hold: the Lorenz curve at some shares of the people."""
    line, wanted = Line.of(estimate, attribute, positive=True), _levels(levels)
    each = Each([partial(_bottom, line, p) for p in wanted.tolist()])
    limits = np.zeros(wanted.size), wanted
    errors = _errors(line, wanted)
    says = estimate.assumes
    return Findings({"bottom": wanted}, _lorenz(line, wanted), each, errors, says, limits, is_share=True)


def top_share(estimate: Estimate, attribute: str | None = None, levels: ArrayLike = (0.01, 0.1)) -> Findings:
    """The part of the total that the people with the most hold, for some shares of the people."""
    line, wanted = Line.of(estimate, attribute, positive=True), _levels(levels)
    each = Each([partial(_top, line, p) for p in wanted.tolist()])
    limits = wanted, np.ones(wanted.size)
    errors = _errors(line, 1 - wanted)
    return Findings(
        {"top": wanted}, 1 - _lorenz(line, 1 - wanted), each, errors, estimate.assumes, limits, is_share=True
    )


def _bottom(line: Line, p: float, level: float) -> tuple[float, float]:
    return lorenz_ends(line, p, level)


def _top(line: Line, p: float, level: float) -> tuple[float, float]:
    low, high = lorenz_ends(line, 1 - p, level)
    return 1 - high, 1 - low


def gini(estimate: Estimate, attribute: str | None = None) -> Findings:
    """The Gini coefficient among those who have a value: 0 if all have the same, near 1 if one has everything."""
    line = Line.of(estimate, attribute, positive=True)
    numbers, shares = line.density
    held, people = np.append(0.0, np.cumsum(shares * numbers)), np.append(0.0, np.cumsum(shares))
    value = 1 - float(np.sum(np.diff(people) * (held[1:] + held[:-1]))) / max(float(held[-1]), 1e-300)
    labels = {"attribute": np.array([line.attribute.name], object), "of": np.array(["Gini coefficient"], object)}
    mean = max(float(held[-1]), 1e-300)
    middle = (people[1:] + people[:-1]) / 2
    rest = mean - (held[1:] + held[:-1]) / 2
    error = line.error((2 * (numbers * middle + rest) - (1 + value) * (mean + numbers)) / mean)
    ends, values = Each([_Curve(line).ends]), np.array([min(max(value, 0.0), 1.0)])
    return Findings(labels, values, ends, np.array([error]), estimate.assumes, (0.0, 1.0))


def _levels(levels: ArrayLike) -> Floats:
    wanted = np.atleast_1d(np.asarray(levels, float))
    if wanted.ndim != 1 or not ((wanted > 0) & (wanted < 1)).all():
        raise ValueError(f"expected levels in (0, 1), got {levels!r}")
    return wanted


def _lorenz(line: Line, levels: Floats) -> Floats:
    """The estimate's own curve."""
    numbers, shares = line.density
    held = np.append(0.0, np.cumsum(shares * numbers))
    return np.interp(levels, np.append(0.0, np.cumsum(shares)), held / max(float(held[-1]), 1e-300))


def _errors(line: Line, levels: Floats) -> Floats:
    """The model's standard errors of the curve."""
    numbers, shares = line.density
    mean, errors = max(float(shares @ numbers), 1e-300), []
    for p, held in zip(levels.tolist(), _lorenz(line, levels).tolist(), strict=True):
        c = float(np.interp(p, np.cumsum(shares), numbers))
        errors.append(line.error((c * p - np.maximum(c - numbers, 0.0) - held * numbers) / mean))
    return np.array(errors)


def lorenz_ends(line: Line, p: float, level: float) -> tuple[float, float]:
    """What the share p of the people with the least may hold of the total."""
    on_the_way, own = levels_apart(level)
    z, (low, high) = pointwise_quantile(own), line.codes
    members = np.unique(np.linspace(*line.quantile_ends(p, on_the_way), MEMBERS))
    members = np.roll(members, -(members.size // 2))  # the middle first: the others seldom reach further
    near = np.array([float(np.searchsorted(low, members[0]))])  # one problem for all of them

    def upper(c: float, r: float) -> float:
        """The upper bound, for a cut at c, of what the poorest hold less r times everything."""
        return upper_at(line.evidence, line.numbers(*_held(low, high, c, p, r), near), z)

    def lower(c: float, r: float) -> float:
        """The same of its negative."""
        least, most = _held(low, high, c, p, r)
        return upper_at(line.evidence, line.numbers(-most, -least, near), z)

    lowest = first_of_all([partial(lower, c) for c in members.tolist()], 0.0, p)
    return lowest, last_of_all([partial(upper, c) for c in members.tolist()], 0.0, p)  # Q5


def _held(low: Floats, high: Floats, c: float, p: float, r: float) -> tuple[Floats, Floats]:
    """The range of c p - (c - x)+ - r x for x between two ends: it rises up to c, and falls beyond."""

    def at(x: Floats) -> Floats:
        """What one person with the number x adds."""
        return c * p - np.maximum(c - x, 0.0) - r * x  # Q5

    return np.minimum(at(low), at(high)), at(np.clip(c, low, high))


@dataclass(frozen=True, eq=False)
class _Curve:
    """The share of people above every number, as a band that the reports allow, for a Gini coefficient."""

    line: Line

    @cached_property
    def widths(self) -> Floats:
        """Lengths of the stretches between borders of codes; before them the one from 0, where all people are above."""
        return np.append(float(self.line.attribute.lo), np.diff(borders(self.line.attribute)))

    def band(self, level: float) -> tuple[Floats, Floats]:
        """Between what the share above lies, on every stretch, all at once."""
        a, schema = self.line.attribute, self.line.estimate.schema
        if a.ordered_size <= _BAND:  # every border: what few people hold would stay wide, however many people came
            places = np.arange(1.0, a.ordered_size)
        else:
            places = np.unique(np.round(np.interp(np.arange(1, _BAND) / _BAND, *self._curve)))
            places = places[(places > 0) & (places < a.ordered_size)]
        if a.missing == "cell":
            places = np.append(places, float(a.ordered_size))
        answers = self.line.evidence.answers(slices(schema, a.name, 0 * places, places))
        low, high = answers.interval(level, simultaneous=True)
        if a.missing == "cell":  # of those who have a value
            low, high, places = low[:-1] / max(high[-1], 1e-9), high[:-1] / max(low[-1], 1e-9), places[:-1]
        ends = np.append(0.0, np.append(places, float(a.ordered_size)))
        below, above = np.append(0.0, np.append(low, 1.0)), np.append(0.0, np.append(np.minimum(high, 1.0), 1.0))
        below, above = np.maximum.accumulate(below), np.minimum.accumulate(above[::-1])[::-1]
        codes = np.arange(a.ordered_size)
        unit = a.edges is None  # a stretch of length 1 begins with its only value
        least = 1 - above[np.searchsorted(ends, codes + 1)]
        most = 1 - below[np.searchsorted(ends, codes + unit, side="right") - 1]
        return np.append(1.0, least), np.append(1.0, np.maximum(most, least))  # Q6

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        shares = self.line.density[1]
        return np.append(0.0, np.cumsum(shares)), np.linspace(0, self.line.attribute.ordered_size, shares.size + 1)

    def ends(self, level: float) -> tuple[float, float]:
        """The Gini coefficients that the reports allow."""
        on_the_way, own = levels_apart(level)
        least, most = self.band(on_the_way)
        lowest, highest = _extreme(least, most, self.widths, False), _extreme(least, most, self.widths, True)
        codes = np.arange(self.line.attribute.ordered_size) + 0.5
        middle = np.clip(np.append(1.0, 1 - np.interp(codes, *self._curve[::-1])), least, most)
        z, members = pointwise_quantile(own), (middle, least, most, lowest, highest)
        smallest = 1 - last_of_all([self._about(above, z, 1.0) for above in members], 0.0, 1.0)  # Q6
        largest = 1 - first_of_all([self._about(above, z, -1.0) for above in members], 0.0, 1.0)
        low, high = max(smallest, _gini(lowest, self.widths)), min(largest, _gini(highest, self.widths))  # Q7
        return min(low, high), max(low, high)

    def _about(self, above: Floats, z: float, sign: float) -> Bound:
        """The bound if this were the curve: the mean of 2 C(x) - r x less the integral of its square is 0 at 1 - G."""
        (low, high), whole = self.line.codes, float(np.sum(above**2 * self.widths))
        start = np.cumsum(above * self.widths)[:-1]  # C at the borders where codes begin
        at_low, at_high = 2 * start - whole, 2 * (start + above[1:] * (high - low)) - whole

        def bound(r: float) -> float:
            """The upper bound for the ratio r."""
            ends = _sorted(sign * (at_low - r * low), sign * (at_high - r * high))
            return upper_at(self.line.evidence, self.line.numbers(*ends), z)

        return bound


def _sorted(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    return np.minimum(a, b), np.maximum(a, b)


def _gini(above: Floats, widths: Floats) -> float:
    """Of a curve of shares above."""
    return 1 - float(np.sum(above**2 * widths)) / max(float(np.sum(above * widths)), 1e-300)


def _extreme(least: Floats, most: Floats, widths: Floats, largest: bool) -> Floats:
    """The curve inside a band whose Gini coefficient is the largest, or the least."""
    above, ratio = (least + most) / 2, np.inf
    for _ in range(_ROUNDS):
        new = 1 - _gini(above, widths)
        if abs(new - ratio) <= _SETTLED:
            break
        ratio = new
        above = np.clip(ratio / 2, least, most) if largest else np.where(least + most >= ratio, most, least)  # Q7
    return above
