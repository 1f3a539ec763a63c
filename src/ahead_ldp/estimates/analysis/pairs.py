"""How two attributes go together: their correlation, and their mutual information on blocks of codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.analysis.functionals import Products
from ahead_ldp.estimates.analysis.ground import NUISANCE, Line, reports_of
from ahead_ldp.estimates.analysis.spread import std_ends
from ahead_ldp.estimates.bands import pointwise_quantile
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Each, Findings
from ahead_ldp.estimates.slices import blocks, proper
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.units import centres
from ahead_ldp.schema.workloads import Workload

_BLOCKS = 64  # of codes of each attribute, for the estimate's own correlation
_CELLS = 4  # blocks of each attribute, for mutual information
_MOST_CELLS = 64  # of a table for mutual information: each takes a bound of two attributes
_MARKS = 4  # stretches of an attribute that a product looks at closely; a choice, not measured (Q8)
_LEAST = 1e-6  # of the range: a smaller standard deviation is rounding, of people who all have one value
LEANS = (
    "The estimate itself leans towards no dependence: what lies inside the cells that were asked about is not known."
)
_TILTS = np.linspace(0.0, 1.5, 13)  # of the function that shows dependence: the best of them counts (Q10)


def correlation(estimate: Estimate, first: str, second: str) -> Findings:
    """The correlation of two numeric attributes that everybody has a value of."""
    lines = tuple(Line.of(estimate, name) for name in (first, second))
    _different(lines[0].attribute, lines[1].attribute)
    for line in lines:
        if line.attribute.missing == "cell":
            raise ValueError(f"expected attributes without missing values for a correlation, got {line.attribute.name}")
    labels = {"first": np.array([first], object), "second": np.array([second], object)}
    pair = _Pair(estimate, lines[0], lines[1])
    values = np.array([pair.estimated])
    return Findings(labels, values, Each([pair.ends]), None, "", (-1.0, 1.0), remarks=(LEANS,))


@dataclass(frozen=True, eq=False)
class _Pair:
    estimate: Estimate
    one: Line
    other: Line

    @cached_property
    def estimated(self) -> float:
        """The estimate's own correlation, on blocks of codes."""
        a, b = self.one.attribute, self.other.attribute
        ends = blocks(a.ordered_size, _BLOCKS), blocks(b.ordered_size, _BLOCKS)
        f = table(self.estimate, (a, b), ends)
        x, y = (centres(line, e[:-1], e[1:] - 1) for line, e in zip((a, b), ends, strict=True))
        x, y = x - f.sum(axis=1) @ x, y - f.sum(axis=0) @ y
        spreads = (float(np.sqrt(f.sum(axis=i) @ z**2)) for i, z in ((1, x), (0, y)))
        u, v = (z / max(spread, _LEAST * float(np.ptp(z))) for spread, z in zip(spreads, (x, y), strict=True))
        return float(np.clip(u @ f @ v, -1.0, 1.0))

    def ends(self, level: float) -> tuple[float, float]:
        """The correlations that the reports allow."""
        each = 1 - NUISANCE * (1 - level) / 4  # of two means and two standard deviations
        on_the_way, z = pointwise_quantile(each), pointwise_quantile(1 - (1 - NUISANCE) * (1 - level))
        means = [line.mean_ends(*line.codes, on_the_way) for line in (self.one, self.other)]
        spreads = [std_ends(line, each) for line in (self.one, self.other)]
        bounds = [self._covariance(m, n, z) for m, n in product(*means)]
        bounds.append(self._covariance(float(np.mean(means[0])), float(np.mean(means[1])), z))
        low, high = min(a for a, _ in bounds), max(b for _, b in bounds)  # Q9
        least, most = spreads[0][0] * spreads[1][0], spreads[0][1] * spreads[1][1]
        if least <= 0:
            return -1.0 if low < 0 else 0.0, 1.0 if high > 0 else 0.0
        return low / (most if low > 0 else least), high / (least if high > 0 else most)

    def _covariance(self, m: float, n: float, z: float) -> tuple[float, float]:
        """The means of (x - m)(y - n) that the reports allow."""
        evidence, places = self.one.evidence, (self.one.place, self.other.place)
        attributes = evidence.attributes_for(tuple(sorted(places))) or places
        (low, high), (least, most) = self.one.codes, self.other.codes
        sides = (low - m, high - m), (least - n, most - n)
        axes = attributes.index(places[0]), attributes.index(places[1])
        marks = _thin(self.one.marks), _thin(self.other.marks)
        upper, lower = evidence.both([Products(attributes, axes, sides, marks)]).at(z)
        return -float(lower), float(upper)


def _thin(marks: Floats) -> Floats:
    """Some of the marks, both ends included."""
    return marks[np.unique(np.round(np.linspace(0, marks.size - 1, _MARKS + 1)).astype(np.int64))]


def mutual_information(estimate: Estimate, first: str, second: str, cells: int = _CELLS) -> Findings:
    """The mutual information, in bits, of two attributes that are cut into at most ``cells`` blocks of codes each.

    Blocks hide what is inside them, so this is at most the mutual information of the attributes themselves. A category
    without an order is a block for itself while there are few enough of them.
    """
    a, b = (estimate.schema.attributes[estimate.schema.index(name)] for name in (first, second))
    _different(a, b)
    if not 2 <= cells <= _MOST_CELLS // 2:
        raise ValueError(f"expected 2 <= cells <= {_MOST_CELLS // 2}, got {cells!r}")
    ends = blocks(a.size, cells), blocks(b.size, cells)
    if (ends[0].size - 1) * (ends[1].size - 1) > _MOST_CELLS:
        raise ValueError(f"expected at most {_MOST_CELLS} pairs of blocks, got cells={cells!r}")
    f = table(estimate, (a, b), ends)
    value = _information(f) / np.log(2)
    most = np.log2(min(f.shape)) if min(f.shape) > 1 else 0.0
    labels = {"first": np.array([first], object), "second": np.array([second], object)}
    each = Each([partial(_bits, estimate, (a, b), ends, f)])
    remark = f"In bits, on {f.shape[0]} blocks of {first} and {f.shape[1]} of {second}; finer blocks may tell more."
    values, limits = np.array([min(value, most)]), (0.0, float(most))
    return Findings(labels, values, each, None, "", limits, remarks=(remark, LEANS))


def _bits(
    estimate: Estimate, chosen: tuple[Attribute, Attribute], ends: tuple[Ints, Ints], f: Floats, level: float
) -> tuple[float, float]:
    low, high = _information_ends(estimate, chosen, ends, f, level)
    return low / np.log(2), high / np.log(2)


def _different(a: Attribute, b: Attribute) -> None:
    if a.name == b.name:
        raise ValueError(f"expected two different attributes, got {a.name} twice")


def table(estimate: Estimate, chosen: tuple[Attribute, Attribute], ends: tuple[Ints, Ints]) -> Floats:
    """The estimate's shares of pairs of blocks, none negative, of sum 1."""
    shape = (ends[0].size - 1, ends[1].size - 1)
    return proper(estimate._shares(_workload(estimate, chosen, ends))).reshape(shape)


def _workload(estimate: Estimate, chosen: tuple[Attribute, Attribute], ends: tuple[Ints, Ints]) -> Workload:
    sizes, places = estimate.schema.sizes, [estimate.schema.index(a.name) for a in chosen]
    index = np.indices([e.size - 1 for e in ends]).reshape(2, -1)
    boxes = np.zeros((index.shape[1], len(sizes), 2))
    boxes[..., 1] = sizes
    for place, e, i in zip(places, ends, index, strict=True):
        boxes[:, place] = np.stack([e[i], e[i + 1]], axis=1)
    return Workload(sizes, boxes, np.arange(len(boxes)), len(boxes))


def _information(f: Floats) -> float:
    both = np.multiply.outer(f.sum(axis=1), f.sum(axis=0))
    some = f > 0
    return max(float(np.sum(f[some] * np.log(f[some] / both[some]))), 0.0)


def _information_ends(
    estimate: Estimate, chosen: tuple[Attribute, Attribute], ends: tuple[Ints, Ints], f: Floats, level: float
) -> tuple[float, float]:
    """What the mutual information may be if all cells, rows and columns of the table are inside their intervals."""
    cells = _workload(estimate, chosen, ends)
    sums = [
        Workload(cells.sizes, cells.boxes, label.reshape(-1), int(label.max()) + 1) for label in np.indices(f.shape)
    ]
    every = Workload(
        cells.sizes,
        np.concatenate([cells.boxes] * 3),
        np.concatenate([cells.owner, cells.n + sums[0].owner, cells.n + sums[0].n + sums[1].owner]),
        cells.n + sums[0].n + sums[1].n,
    )
    low, high = reports_of(estimate).answers(every).interval(level, simultaneous=True)
    parts = np.split(np.arange(every.n), [cells.n, cells.n + sums[0].n])
    (low_f, high_f), row, column = ((low[part], high[part]) for part in parts)
    return _least_information(low_f, high_f, row, column, f), _most_information(low_f, high_f, f)


def _most_information(low: Floats, high: Floats, f: Floats) -> float:
    """The distance from any product is at least the information; its terms are convex, so chords are above them."""
    both = np.multiply.outer(f.sum(axis=1), f.sum(axis=0)).reshape(-1)
    both = np.maximum(both, 1e-6) / np.maximum(both, 1e-6).sum()
    at_low, at_high = _times_log(low), _times_log(high)
    slope = np.divide(at_high - at_low, high - low, out=np.zeros_like(low), where=high > low)
    start = at_low - slope * low
    return max(float(start.sum()) + _largest(slope - np.log(both), low, high), 0.0)  # Q10


def _least_information(
    low: Floats, high: Floats, row: tuple[Floats, Floats], column: tuple[Floats, Floats], f: Floats
) -> float:
    """The bound of Donsker and Varadhan, for functions that show dependence; the best of them."""
    both = np.multiply.outer(f.sum(axis=1), f.sum(axis=0))
    ratio = np.log(np.maximum(f, 1e-6) / np.maximum(both, 1e-6))
    best = 0.0
    for tilt in _TILTS.tolist():
        shown = tilt * np.clip(ratio, -3.0, 3.0)
        seen = -_largest(-shown.reshape(-1), low, high)
        rows = np.array([_largest(weights, *column) for weights in np.exp(shown)])
        best = max(best, seen - float(np.log(_largest(rows, *row))))  # Q10
    return best


def _largest(weights: Floats, low: Floats, high: Floats) -> float:
    """The largest weighted sum of shares that lie between bounds and have the sum 1."""
    left, total = 1.0 - float(low.sum()), float(weights @ low)
    for i in np.argsort(-weights, kind="stable").tolist():
        part = min(max(left, 0.0), float(high[i] - low[i]))
        total, left = total + part * float(weights[i]), left - part
    return total


def _times_log(x: Floats) -> Floats:
    return np.where(x > 0, x * np.log(np.maximum(x, 1e-300)), 0.0)
