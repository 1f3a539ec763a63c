"""How far people lie apart: the standard deviation, shares beyond a line, and where most people may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.estimates.analysis.ground import MEMBERS, Line, last_place, levels_apart, reports_of, upper_at
from ahead_ldp.estimates.analysis.ground import first_place as first
from ahead_ldp.estimates.answers import Answers, plain
from ahead_ldp.estimates.bands import pointwise_quantile
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Each, Findings
from ahead_ldp.estimates.strict.functionals import Shares
from ahead_ldp.estimates.strict.summaries import whole_attributes
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.units import numbers_of, positions, positions_after, unit

_BINS = 16  # of an attribute with an order, among which the most common is looked for


def squares(low: Floats, high: Floats, centre: float) -> tuple[Floats, Floats]:
    """The least and the largest squared distance from a centre, for numbers that lie between two ends."""
    away = np.maximum(np.maximum(low - centre, centre - high), 0.0)
    return away**2, np.maximum(centre - low, high - centre) ** 2


def std_ends(line: Line, level: float) -> tuple[float, float]:
    """The standard deviations that the reports allow: those about every mean that they allow."""
    on_the_way, own = levels_apart(level)
    low, high = line.codes
    least, most = line.mean_ends(low, high, pointwise_quantile(on_the_way))
    z = pointwise_quantile(own)
    ends = [line.mean_ends(*squares(low, high, m), z) for m in np.linspace(least, most, MEMBERS).tolist()]  # Q2
    smallest, largest = min(a for a, _ in ends), max(b for _, b in ends)
    return float(max(smallest, 0.0)) ** 0.5, float(max(largest, 0.0)) ** 0.5


def std(estimate: Estimate, attribute: str | None = None) -> Findings:
    """The standard deviation among those who have a value; in days for dates, in seconds for times."""
    line = Line.of(estimate, attribute)
    numbers, shares = line.density
    value = max(float(shares @ numbers**2) - float(shares @ numbers) ** 2, 0.0) ** 0.5
    low, high = line.codes
    limits = 0.0, float(high[-1] - low[0]) / 2
    error = line.error(((numbers - shares @ numbers) ** 2 - value**2) / (2 * max(value, 1e-300)))
    ends = Each([partial(std_ends, line)])
    return _finding(
        line,
        min(value, limits[1]),
        ends,
        error,
        " in ".join(filter(None, ["standard deviation", unit(line.attribute)])),
        limits,
    )


def below(estimate: Estimate, attribute: str | None, line: Any) -> Findings:
    """The share of people with a value below a line, the line itself not included, among those who have a value."""
    known = Line.of(estimate, attribute)
    at = float(positions(known.attribute, numbers_of(known.attribute, [line]))[0])
    return _up_to(known, at, f"below {plain(line)}")


def above(estimate: Estimate, attribute: str | None, line: Any) -> Findings:
    """The share of people with a value above a line, the line itself not included, among those who have a value."""
    known = Line.of(estimate, attribute)
    at = float(positions_after(known.attribute, numbers_of(known.attribute, [line]))[0])
    return _up_to(known, at, f"above {plain(line)}", beyond=True)


def below_median(estimate: Estimate, attribute: str | None, times: float = 0.6) -> Findings:
    """The share of people below a part of the median, such as the six tenths of it that define relative poverty."""
    if not 0 < times < 1:
        raise ValueError(f"expected 0 < times < 1, got {times!r}")
    line = Line.of(estimate, attribute, positive=True)
    numbers, shares = line.density
    middle = float(np.interp(0.5, np.cumsum(shares), numbers))
    value = float(shares[numbers < times * middle].sum())
    near = np.abs(numbers - times * middle) <= 0.05 * middle, np.abs(numbers - middle) <= 0.05 * middle
    slope = times * float(shares[near[0]].sum()) / max(float(shares[near[1]].sum()), 1e-9)
    error = line.error((numbers < times * middle) - value - slope * ((numbers < middle) - 0.5))
    ends = Each([partial(_below_median_ends, line, times)])
    return _finding(line, value, ends, error, f"share below {times:g} of the median", is_share=True)


def _below_median_ends(line: Line, times: float, level: float) -> tuple[float, float]:
    """The shares below a part of the median that the reports allow: of the least and the largest median."""
    on_the_way, own = levels_apart(level)
    lines = times * np.array(line.quantile_ends(0.5, on_the_way))
    lowest, highest = positions(line.attribute, lines)
    z = pointwise_quantile(own)
    return _share_ends(line, lowest, z)[0], _share_ends(line, highest, z)[1]  # Q3


def _up_to(line: Line, at: float, what: str, beyond: bool = False) -> Findings:
    _, shares = line.density
    places = np.linspace(0, line.attribute.ordered_size, shares.size + 1)
    share = float(np.interp(at, places, np.append(0.0, np.cumsum(shares))))
    error = line.error(np.clip(at - places[:-1], 0.0, 1.0) - share)
    ends = Each([partial(_up_to_ends, line, at, beyond)])
    return _finding(line, 1 - share if beyond else share, ends, error, f"share {what}", is_share=True)


def _up_to_ends(line: Line, at: float, beyond: bool, level: float) -> tuple[float, float]:
    """The shares below a place, or from it on, that the reports allow."""
    low, high = _share_ends(line, at, pointwise_quantile(level))
    return (1 - high, 1 - low) if beyond else (low, high)


def _share_ends(line: Line, at: float, z: float) -> tuple[float, float]:
    """The shares below a place that the reports allow, among those who have a value."""
    size = float(line.attribute.ordered_size)
    if at <= 0 or at >= size:
        return float(at > 0), float(at > 0)
    attributes, axis = whole_attributes(line.evidence, line.place)
    under = np.zeros((1, len(attributes), 2))
    under[0, :, 1] = [line.estimate.schema.sizes[a] for a in attributes]
    over = under.copy()
    under[0, axis], over[0, axis] = (0.0, at), (at, size)

    def share(r: float, sign: float) -> float:
        """The upper bound of the share less r, or of its negative."""
        return upper_at(line.evidence, Shares(attributes, ((sign * (1 - r), under), (-sign * r, over))), z)  # S19

    if line.attribute.missing != "cell":
        most, least = line.evidence.both([Shares(attributes, ((1.0, under),))]).at(z)
        return -float(least), float(most)
    return first(lambda r: share(r, -1.0), 0.0, 1.0), last_place(lambda r: share(r, 1.0), 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """Where most people may be: the bins that no other one surely exceeds."""

    answers: Answers  # the shares of all bins
    attribute: str

    def region(self, level: float = 0.95) -> Bools:
        """Which bins may hold the most people, with this probability for all statements at once."""
        low, high = self.answers.interval(level, simultaneous=True)
        return np.asarray(high >= low.max())  # Q4

    def __repr__(self) -> str:
        return f"<Mode of {self.attribute}: {self.value}>"

    @property
    def bins(self) -> NDArray[Any]:
        """What the bins are called."""
        return self.answers.labels[self.attribute]

    @property
    def value(self) -> Any:
        """The bin in which the estimate has the most people."""
        return self.bins[int(np.argmax(self.answers.values))]

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """A record for each bin, and whether it may hold the most people."""
        region = self.region(level).tolist()
        return [{**row, "may_be_mode": may} for row, may in zip(self.answers.records(level), region, strict=True)]

    def table(self, level: float = 0.95) -> str:
        """The region as text."""
        some = self.bins[self.region(level)].tolist()
        return f"Most people are, with {100 * level:g} % probability, in one of: {', '.join(map(str, some))}"


def mode(estimate: Estimate, attribute: str | None = None, bins: int | Sequence[Any] | None = None) -> Mode:
    """Where most people may be, among bins as for a histogram; left out, 16 bins, or the categories."""
    a = estimate._attribute(attribute, ordered=bins is not None)
    reports_of(estimate)
    chosen: Any = bins if bins is not None or a.labels else min(_BINS, a.ordered_size)
    return Mode(estimate.histogram(a.name, chosen), a.name)


def _finding(
    line: Line,
    value: float,
    ends: Each,
    error: float,
    of: str,
    limits: tuple[float, float] = (0.0, 1.0),
    is_share: bool = False,
) -> Findings:
    labels = {"attribute": np.array([line.attribute.name], object), "of": np.array([of], object)}
    says = line.estimate.assumes
    return Findings(labels, np.array([value]), ends, np.array([error]), says, limits, is_share=is_share)
