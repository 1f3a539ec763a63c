"""Answers from stored questions alone: no model of the people, and no method's own way to put its groups together.

Every group estimates the shares of its cells without bias. A query takes from each group the cells that it covers, and
a part of the cells that it cuts. What such a cell holds may lie anywhere in it, so the whole of it counts as the error
that this part may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.densities import stretches
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.estimates.solvers.norm_sub import norm_sub
from ahead_ldp.oracles import LinearOracle, Oracle, Tally
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.shares import shares
from ahead_ldp.schema.arrays import Bools, Floats, Ints
from ahead_ldp.schema.workloads import Workload

_SURE = 2.0  # standard errors by which the mass of cut cells is taken to be larger than it is estimated
_ROUNDING = 1e-12  # of a share of a cell
Told = tuple[tuple[int, ...], Partition, Oracle, Tally]  # attributes, cells, and what was reported about them


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Answers in the making, one for each query: values, variances, and bounds on what cut cells may add."""

    values: Floats  # (q,)
    variance: Floats  # (q,)
    bias: Floats  # (q,) at most

    @property
    def precision(self) -> Floats:
        """How much an answer counts beside others to the same query."""
        return np.asarray(1 / np.maximum(self.variance + self.bias**2, _ROUNDING**2))


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What one group said: unbiased shares of its cells."""

    attributes: tuple[int, ...]
    lo: Ints  # (cells, m)
    hi: Ints  # (cells, m)
    values: Floats  # (cells,)
    shares: Floats  # (cells,) the same as a distribution, at which variances are taken
    n: int
    oracle: LinearOracle

    def answer(self, boxes: Floats, owner: Ints, queries: int) -> Part:
        """The answers of this group to queries on its attributes, each the sum of the boxes that it owns."""
        share = np.ones((len(boxes), self.values.size))
        for place, attribute in enumerate(self.attributes):
            share *= shares(boxes[:, attribute], self.lo[:, place], self.hi[:, place])
        inside = np.zeros((queries, self.values.size))
        np.add.at(inside, owner, share)
        is_cut = (inside > _ROUNDING) & (inside < 1 - _ROUNDING)
        cut = np.where(is_cut, np.maximum(inside, 1 - inside), 0.0)  # how far a part may be off, of the cell's mass
        most = np.maximum(cut @ self.values, 0.0) + _SURE * np.sqrt(self._variance(cut))
        even = inside.mean(axis=1)  # all cells together hold everybody: that much of a range is known without noise
        weights = inside - even[:, None]
        return Part(even + weights @ self.values, self._variance(weights), np.where(is_cut.any(axis=1), most, 0.0))

    def _variance(self, weights: Floats) -> Floats:
        return np.maximum(self.oracle.group_variance(self.n, self.shares, weights), 0.0)


@dataclass(frozen=True, eq=False)
class RecordedEstimate(Estimate):
    """Each query by itself, from all groups that were asked about its attributes, the surest counting most.

    Guarantees:
        bias      ``bias_error`` is at least what cut cells can add, wherever in them their people are
        errors    groups count as independent draws of people, which makes sums over groups no surer than they are
        several   attributes that no group was asked about together are multiplied, as if they did not depend on each
                  other; ``bias_error`` then reaches to the Frechet bounds, beyond which no dependence goes
        unknown   what no group was asked about has no interval: its error is infinite

    Answers are within [0, 1] but do not add up: a range may differ from the sum of its parts. A weighted sum has the
    sum of the errors, and simultaneous intervals are Bonferroni's.
    """

    schema: Schema
    consistent: bool
    readings: tuple[Reading, ...]

    @classmethod
    def of(cls, schema: Schema, told: Sequence[Told]) -> RecordedEstimate:
        """From what every group was asked and said; groups without reports, and oracles without cells, say nothing."""
        readings = []
        for attributes, partition, oracle, tally in told:
            if isinstance(oracle, LinearOracle) and tally.n:
                values = oracle.estimate(tally)
                own = (attributes, partition.lo, partition.hi, values, norm_sub(values), tally.n, oracle)
                readings.append(Reading(*own))
        return cls(schema, False, tuple(readings))

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers with standard errors, and what cells that a query cuts may add to them."""
        n = workload.n
        values, variance, bias = np.zeros(n), np.zeros(n), np.zeros(n)
        width = max([reading.values.size for reading in self.readings], default=1)
        for part, boxes, owner in stretches(workload, 6 * width):
            answered = self._answered(boxes, owner, values[part].size)
            values[part], variance[part], bias[part] = answered.values, answered.variance, answered.bias
        unknown, shown = ~np.isfinite(variance), np.clip(values, 0.0, 1.0)
        if not errors:
            return Answers(shown, np.full(n, np.nan), unknown, consistent=False)
        return Answers(shown, np.sqrt(variance), unknown, consistent=False, bias_error=np.minimum(bias, 1.0))

    def joint_errors(self, workload: Workload, draws: int = 1000) -> Floats | None:
        """No joint law is known."""
        del workload, draws
        return None

    def linear(self, workload: Workload, weights: Floats) -> Answers:
        """Weighted sums of the answers; their errors are the sums of the errors, which no correlation exceeds."""
        answers = self.answer(workload)
        size = np.abs(weights)
        with np.errstate(invalid="ignore"):
            error = np.where(size > 0, size * answers.standard_error, 0.0).sum(axis=1)
        bias = None if answers.bias_error is None else size @ answers.bias_error
        flagged = (weights != 0) @ answers.bias_not_included
        return Answers(weights @ answers.values, error, flagged, {}, False, bias)

    def _answered(self, boxes: Floats, owner: Ints, queries: int) -> Part:
        answered = Part(np.zeros(queries), np.zeros(queries), np.zeros(queries))
        for attributes, rows, places in _by_attributes(self.schema.sizes, boxes, owner, queries):
            own = np.searchsorted(places, owner[rows])
            part = self._on(attributes, boxes[rows], own, places.size)
            answered.values[places], answered.variance[places], answered.bias[places] = (
                part.values, part.variance, part.bias,
            )  # fmt: skip
        return answered

    def _on(self, attributes: tuple[int, ...], boxes: Floats, owner: Ints, queries: int) -> Part:
        """The answers to queries that restrict just these attributes."""
        if not attributes:
            return Part(np.ones(queries), np.zeros(queries), np.zeros(queries))
        asked = [r for r in self.readings if set(attributes) <= set(r.attributes)]
        if asked:
            return _together([reading.answer(boxes, owner, queries) for reading in asked])
        if len(attributes) > 1:
            return self._multiplied(attributes, boxes, owner, queries)
        sides = boxes[:, attributes[0]]
        even = np.bincount(owner, (sides[:, 1] - sides[:, 0]) / self.schema.sizes[attributes[0]], queries).astype(float)
        return Part(even, np.full(queries, np.inf), np.zeros(queries))

    def _multiplied(self, attributes: tuple[int, ...], boxes: Floats, owner: Ints, queries: int) -> Part:
        """Box by box the product over the attributes, with the Frechet bounds as how far it may be off."""
        each = np.arange(len(boxes))
        parts = [self._on((a,), boxes, each, len(boxes)) for a in attributes]
        values = np.clip(np.stack([p.values for p in parts]), 0.0, 1.0)
        product = values.prod(axis=0)
        least, most = np.maximum(values.sum(axis=0) - (len(parts) - 1), 0.0), values.min(axis=0)
        off = np.maximum(product - least, most - product) + sum(p.bias for p in parts)
        error = sum(np.sqrt(p.variance) for p in parts)
        added = [np.bincount(owner, x, queries).astype(float) for x in (product, error, off)]
        return Part(added[0], added[1] ** 2, added[2])


def _together(parts: Sequence[Part]) -> Part:
    """The mean of several groups' answers, the surest counting most."""
    precision = np.stack([part.precision for part in parts])
    weights = precision / precision.sum(axis=0)
    values, variance, bias = (np.stack(x) for x in zip(*((p.values, p.variance, p.bias) for p in parts), strict=True))
    return Part((weights * values).sum(axis=0), (weights**2 * variance).sum(axis=0), (weights * bias).sum(axis=0))


def _by_attributes(
    sizes: Sequence[int], boxes: Floats, owner: Ints, queries: int
) -> Iterator[tuple[tuple[int, ...], Ints, Ints]]:
    """Queries by the attributes that they restrict: those, their boxes that hold something, and the queries."""
    some = np.flatnonzero((boxes[..., 0] < boxes[..., 1]).all(axis=1))
    restricted: Bools = np.zeros((queries, len(sizes)), bool)
    np.logical_or.at(restricted, owner[some], (boxes[some, :, 0] > 0) | (boxes[some, :, 1] < np.array(sizes)))
    for kind in np.unique(restricted[owner[some]], axis=0):
        rows = some[(restricted[owner[some]] == kind).all(axis=1)]
        yield tuple(np.flatnonzero(kind).tolist()), rows, np.unique(owner[rows])
