"""What a mechanism returns: data, and what people want to know about them, with its uncertainty.

Everything is built on one method, ``answer``; a kind of estimate overrides others where it can do better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ahead_ldp.device.canonical import Record, canonical_bytes
from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.estimates.answers import Answers, StrictIntervals, kind_given, text_table
from ahead_ldp.estimates.bands import Kind, normal_draws
from ahead_ldp.estimates.findings import Findings
from ahead_ldp.estimates.origin import Origin
from ahead_ldp.estimates.quantiles import Mean, Quantiles, StrictNumber, StrictPlaces, notes_of
from ahead_ldp.estimates.showing import Seed, Shown
from ahead_ldp.estimates.slices import (
    around_levels,
    blocks,
    cells,
    covariance,
    crossed_curve,
    histogram_bins,
    joint_shares,
    proper,
    slices,
    taken_together,
)
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.coding import bucket_label
from ahead_ldp.schema.queries import Asked, Snap, as_query
from ahead_ldp.schema.units import buckets, centres, numbers_at, numbers_of, positions_after, spoken
from ahead_ldp.schema.workloads import Workload

if TYPE_CHECKING:  # what analyses give: they stand above, and are loaded on use
    from ahead_ldp.estimates.analysis.differences import Difference
    from ahead_ldp.estimates.analysis.groups import Groups
    from ahead_ldp.estimates.analysis.spread import Mode
    from ahead_ldp.estimates.analysis.weights import Calibrated, Margin

__all__ = ["Answers", "Estimate", "Seed"]

MOST_POINTS = 1024  # of a curve, where the caller does not say which: no picture shows more
_TERMS = 64  # of a linear combination whose covariances are found pair by pair, at most: 2016 pairs
_QUARTILES = (0.25, 0.5, 0.75)  # asked for where the caller names no levels
_MARKS = np.arange(1, 16) / 16  # shares of the people at which a mean is looked at closely
_ROUNDING = 1e-12  # a share of people below this is rounding


class Reports(Protocol):
    """Everything that was asked and told in a run: strict intervals of what an estimate is asked come from it."""

    def answers(self, workload: Workload) -> StrictIntervals:
        """Those of the answers to a workload."""

    def sums(self, workload: Workload, weights: Floats) -> StrictIntervals:
        """Those of weighted sums of the answers to a workload, one for each row of weights."""

    def quantiles(self, attribute: Attribute, levels: Floats, near: Floats) -> StrictPlaces:
        """Those of quantiles; ``near`` are the positions where the estimate has them."""

    def mean(self, attribute: Attribute, low: Floats, high: Floats, marks: Floats) -> StrictNumber:
        """That of a mean, where of each code the least and the largest number is known."""


class Estimate(Shown, ABC):
    """A distribution as far as the reports tell it.

    ``consistent`` says whether answers are additive, within [0, 1] and monotone in the box; the paper's own
    post-processing does not make them so. Quantiles and samples need a proper distribution: a curve is then made
    monotone, and cells are brought to non-negative values of sum 1 (Norm-Sub).

    ``attribute`` may be left out everywhere if there is only one. Standard errors are about the frequencies
    among the people who took part.
    """

    schema: Schema
    consistent: bool
    provenance: Origin | None = None
    assumption: ClassVar[str] = "people lie evenly inside the cells that were not divided further"
    through_pairs: ClassVar[bool] = False  # nothing is known of three attributes but what their pairs tell

    @abstractmethod
    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers to a workload of boxes; ``errors=False`` leaves the standard errors out (NaN) and is faster."""

    def joint_errors(self, workload: Workload, draws: int = 1000) -> Floats | None:  # -> (draws, n)
        """Draws from the joint law of the errors (answer less truth) of the answers to a workload.

        They hold everything that ``answer`` puts into its errors: each column has mean near 0 and the answer's
        ``spread``, and columns vary together as the errors do. The same call gives the same draws. Simultaneous
        intervals use them for the largest |error| / spread over all queries; None where no joint law is known, and
        they are then Bonferroni's. Here they are normal, with covariances from the variances of sums of two answers,
        for at most 64 queries.
        """
        known = workload.n <= _TERMS and np.isfinite(self.answer(workload).spread).all()
        return normal_draws(covariance(lambda w: self.answer(w).spread, workload), draws) if known else None

    def answer_jointly(self, workload: Workload, *, errors: bool = True) -> Answers:
        """Answers that know their joint law, for simultaneous intervals; it is worked out when it is asked for."""
        answers = self.answer(workload, errors=errors)
        joint = _JointErrors(self, workload) if errors and answers.joint is None else answers.joint
        strict = self._reports.answers(workload) if errors and self._reports else None
        known = replace(answers, joint=joint, consistent=self.consistent, strict=strict, assumption=self.assumes)
        return replace(known, backend=self.backend)

    @cached_property
    def _reports(self) -> Reports | None:
        """What the reports alone say, which strict intervals come from; None where nothing is known of them."""
        if self.provenance is None:
            return None
        module: Any = import_module("ahead_ldp.estimates.strict.reports")  # on use: an estimate needs none of it
        reports: Reports = module.StrictReports(self.schema, self.provenance)
        return reports

    def linear(self, workload: Workload, weights: Floats) -> Answers:  # (k, n) -> k
        """Weighted sums of the answers to a workload, one for each row of weights, with standard errors.

        Here they hold noise and bias together. Covariances come from the variances of sums of two answers. Beyond
        64 queries neighbours in the workload are taken together, with their average weight, for the error alone.
        """
        answers = self.answer(workload)
        merged, average = taken_together(workload, weights, _TERMS)
        if np.isfinite(answers.spread).all():
            variance = np.einsum("ki,ij,kj->k", average, covariance(lambda w: self.answer(w).spread, merged), average)
        else:
            variance = np.full(len(weights), np.inf)
        error = np.sqrt(np.maximum(variance, 0.0))
        flagged = (weights != 0) @ answers.bias_not_included
        return Answers(weights @ answers.values, error, flagged, {}, self.consistent)

    def weighted(self, queries: Sequence[Asked], weights: ArrayLike, snap: Snap | None = None) -> Answers:
        """Weighted sums of answers, one for each row of weights, such as the difference of two: weights [1, -1].

        Their strict intervals come from the reports at once: they are narrower than the sum of the queries' widths.
        """
        workload = Workload.from_queries(self.schema, queries, snap)
        rows = np.atleast_2d(np.asarray(weights, float))
        if rows.ndim != 2 or rows.shape[1] != workload.n or not np.isfinite(rows).all():
            raise ValueError(f"expected {workload.n} finite weights in each row, got {weights!r}")
        limits = float(np.minimum(rows, 0).sum(axis=1).min()), float(np.maximum(rows, 0).sum(axis=1).max())
        strict = self._reports.sums(workload, rows) if self._reports else None
        texts = [
            " ".join(f"{w:+g} ({q})" for w, q in zip(row, map(_spoken_query, queries), strict=True) if w)
            for row in rows
        ]
        labels = {"sum": np.array(texts, object)}
        sums = replace(self.linear(workload, rows), labels=labels, limits=limits)
        return replace(sums, strict=strict, assumption=self.assumes, backend=self.backend)

    # What people ask.

    def ask(self, *queries: Asked | list[Asked], snap: Snap | None = None) -> Answers:
        """Answers to queries in the user's units, such as ``"salary > 50k and age between 30 and 39"``.

        A query is a text, a `Query`, conditions such as ``{"age": (30, 39), "town": ["A", "B"]}``, or a tuple as in
        ``("age", 30, 39)``; a list holds several. ``snap`` ("outward", "inward", "nearest") moves ends to a border.
        """
        every = [query for given in queries for query in (given if isinstance(given, list) else [given])]
        texts = np.array([_spoken_query(query) for query in every], object)
        return self._labelled(Workload.from_queries(self.schema, every, snap), {"query": texts})

    def cdf(
        self,
        attribute: str | None = None,
        points: int | Sequence[Any] | NDArray[Any] | None = None,
        *,
        errors: bool = True,
    ) -> Answers:
        """The share of people with a value up to each point, included.

        Points are in the user's units, or a number of them: the last values of (nearly) equally many buckets, or of
        reals, those below the border. Left out, at most 1024. People without a value count too: it may end below 1.
        """
        a = self._attribute(attribute, ordered=True)
        if points is None or isinstance(points, int | np.integer):
            most = MOST_POINTS if points is None else int(points)
            if most < 1:
                raise ValueError(f"expected points >= 1, got {points}")
            ends = blocks(a.ordered_size, most)[1:].astype(float)
            labels = spoken(a, numbers_at(a, ends) - (a.kind != "real"))
        else:
            ends = positions_after(a, numbers_of(a, points))
            labels = np.asarray(points)
        return self._labelled(slices(self.schema, a.name, np.zeros(ends.size), ends), {a.name: labels}, errors)

    def quantiles(self, attribute: str | None = None, levels: ArrayLike = _QUARTILES) -> Quantiles:
        """The values below which these shares of the people lie, among those who have a value."""
        a = self._attribute(attribute, ordered=True)
        wanted = np.atleast_1d(np.asarray(levels, float))
        if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError(f"expected levels in [0, 1], got {levels!r}")
        places, curve = crossed_curve(self._shares, self.schema, a, wanted)
        at = np.interp(wanted, curve, places)
        strict, says = self._reports.quantiles(a, wanted, at) if self._reports else None, self.assumes
        back = self.backend
        if a.missing == "cell":  # F(x) - level F(end), over F(end)
            lo, hi = np.append(np.zeros(at.size), at), np.append(at, np.full(at.size, float(a.ordered_size)))
            workload = slices(self.schema, a.name, lo, hi)
            total = self._shares(workload).reshape(2, -1).sum(axis=0)
            below = self.linear(workload, np.hstack([np.diag(1 - wanted), np.diag(-wanted)]))
            scale, order = np.maximum(total, _ROUNDING), np.argsort(at)
            error = np.interp(places, at[order], (below.spread / scale)[order])
            errors = below.standard_error / scale
            return Quantiles(a, wanted, errors, places, curve, below.bias_not_included, error, None, strict, says, back)
        below = self.answer(slices(self.schema, a.name, np.zeros(at.size), at))
        around = around_levels(places, curve, wanted, below.spread)
        near = self.answer_jointly(slices(self.schema, a.name, np.zeros(around.size), around))
        error = np.interp(places, around, near.spread)
        errors = below.standard_error
        return Quantiles(a, wanted, errors, places, curve, below.bias_not_included, error, near, strict, says, back)

    def histogram(
        self,
        attribute: str | None = None,
        bins: int | Sequence[Any] | NDArray[Any] | None = None,
        *,
        errors: bool = True,
    ) -> Answers:
        """The share of people in each bin.

        ``bins`` are a number of bins of (nearly) equally many buckets, or borders in the user's units, half open
        but for the last one; left out, every bucket is a bin, and so are the people without a value.
        """
        a = self._attribute(attribute, ordered=bins is not None)
        lo, hi, labels = histogram_bins(a, bins)
        return self._labelled(slices(self.schema, a.name, lo, hi), {a.name: labels}, errors)

    def marginal(self, *attributes: str, errors: bool = True) -> Answers:
        """The share of people at every code of one attribute, or at every pair of codes of two (an array of both)."""
        names = attributes or self.schema.names
        if len(names) not in (1, 2):
            raise ValueError(f"expected one or two attributes for a marginal, got {len(names)}")
        chosen = [self.schema.attributes[self.schema.index(name)] for name in names]
        workload, index = cells(self.schema, names)
        labels = {
            a.name: np.array([bucket_label(a, c) for c in range(a.size)], object)[place]
            for a, place in zip(chosen, index, strict=True)
        }
        return self._labelled(workload, labels, errors).reshaped(tuple(a.size for a in chosen))

    def mean(self, attribute: str | None = None) -> Mean:
        """The average of a numeric attribute among those who have a value."""
        a = self._attribute(attribute, ordered=True)
        if a.labels:
            raise ValueError(f"expected a numeric attribute for a mean, got the categories of {a.name}")
        ends = blocks(a.ordered_size, 4 * MOST_POINTS)
        middle = centres(a, ends[:-1], ends[1:] - 1)
        lo, hi = ends[:-1].astype(float), ends[1:].astype(float)
        ones = np.ones(middle.size)
        if not self.consistent:  # sums by parts: ranges from the left are known better than the sum of their cells
            middle, ones, lo = -np.diff(middle, append=0.0), np.eye(middle.size)[-1], np.zeros(middle.size)
        workload = slices(self.schema, a.name, lo, hi)
        shares = self._shares(workload)
        total = max(float(shares @ ones), _ROUNDING)
        number = float(shares @ middle) / total
        ratio = self.linear(workload, (middle - number * ones)[None] / total)  # linearised
        bias = 0.0 if ratio.bias_error is None else float(ratio.bias_error[0])
        strict = self._strict_mean(self._reports, a) if self._reports else None
        error, marked = float(ratio.standard_error[0]), bool(ratio.bias_not_included[0])
        return Mean(a, number, error, marked, bias, strict, self.assumes, self.backend)

    def _strict_mean(self, reports: Reports, a: Attribute) -> StrictNumber:
        low, high = buckets(a, np.arange(a.ordered_size))
        places, curve = crossed_curve(self._shares, self.schema, a, _MARKS, _MARKS.size)
        marks = np.unique(np.round([0.0, *np.interp(_MARKS, curve, places), float(a.ordered_size)]))
        return reports.mean(a, low, high - (a.kind != "real"), marks)

    def sample_codes(self, n: int, rng: Generator) -> Ints:  # -> (n, m)
        """Codes drawn from the joint distribution, every cell of which is asked for."""
        p = proper(joint_shares(self._shares, self.schema))
        return np.stack(np.unravel_index(rng.choice(p.size, size=n, p=p), self.schema.sizes), axis=1).astype(np.int64)

    # What people ask beyond shares: found on use, in ``analysis``, which stands above (docs/analysis.md).

    def std(self, attribute: str | None = None) -> Findings:
        """The standard deviation of a numeric attribute."""
        return self._found("spread", "std", attribute)

    def below(self, attribute: str | None, line: Any) -> Findings:
        """The share of people below a line, among those who have a value."""
        return self._found("spread", "below", attribute, line)

    def above(self, attribute: str | None, line: Any) -> Findings:
        """The share of people above a line, among those who have a value."""
        return self._found("spread", "above", attribute, line)

    def below_median(self, attribute: str | None = None, times: float = 0.6) -> Findings:
        """The share of people below a part of the median, as relative poverty is defined."""
        return self._found("spread", "below_median", attribute, times)

    def lorenz(self, attribute: str | None = None, levels: ArrayLike | None = None) -> Findings:
        """The part of the total that the people with the least hold, for shares of the people; left out, tenths."""
        return self._found("inequality", "lorenz", attribute, *([] if levels is None else [levels]))

    def top_share(self, attribute: str | None = None, levels: ArrayLike = (0.01, 0.1)) -> Findings:
        """The part of the total that the people with the most hold, for shares of the people."""
        return self._found("inequality", "top_share", attribute, levels)

    def gini(self, attribute: str | None = None) -> Findings:
        """The Gini coefficient of a numeric attribute that is not negative."""
        return self._found("inequality", "gini", attribute)

    def correlation(self, first: str, second: str) -> Findings:
        """The correlation of two numeric attributes."""
        return self._found("pairs", "correlation", first, second)

    def mutual_information(self, first: str, second: str, cells: int = 4) -> Findings:
        """The mutual information, in bits, of two attributes that are cut into blocks."""
        return self._found("pairs", "mutual_information", first, second, cells)

    def mode(self, attribute: str | None = None, bins: int | Sequence[Any] | None = None) -> Mode:
        """Where most people may be: the bins that no other one surely exceeds."""
        return _analysis("spread").mode(self, attribute, bins)

    def by(self, attribute: str, bins: int | Sequence[Any] | None = None) -> Groups:
        """Answers for each category, or bin, of an attribute."""
        return _analysis("groups").Groups.of(self, attribute, bins)

    def calibrated(self, margins: Mapping[str, Margin]) -> Calibrated:
        """Answers as if some attributes had the shares that are known of everybody.

        ``margins`` are, by attribute, the share, percentage or count of every category: a mapping such as
        ``{"team": {"north": 0.5, "south": 0.5}}``, or a Series of pandas such as ``value_counts`` gives.
        """
        return _analysis("weights").Calibrated.of(self, margins)

    def since(self, before: Estimate, *, sampled: bool = True) -> Difference:
        """What changed since an earlier estimate; see `difference`."""
        return _analysis("differences").difference(before, self, sampled=sampled)

    def _found(self, module: str, function: str, *given: Any) -> Findings:
        findings: Findings = getattr(_analysis(module), function)(self, *given)
        return replace(findings, backend=self.backend)

    # Summaries, pictures, files.

    def summary(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """A text table: method, epsilon, people, and for each attribute its quartiles with intervals."""
        head = ["attribute", "kind", "codes", "25 %", "median", "75 %"]
        rows, every = [], list[Quantiles]()
        for a in self.schema.attributes:
            texts, quartiles = self._quartile_texts(a, level, kind)
            every += [] if quartiles is None else [quartiles]
            rows.append([a.name, a.kind, str(a.size), *texts])
        notes, p = [*self._clipped_notes(), *notes_of(every, level, kind)], self.provenance
        marked = kind_given(kind, p) == "model" and any(quartiles.bias_not_included.any() for quartiles in every)
        lines = [] if p is None else [f"{p.method}, epsilon {p.epsilon}, {p.people:,} people"]
        lines += [text_table(head, rows, left=2), f"[ , ]: {100 * level:g} % intervals", *notes]
        if any(a.kind == "nominal" for a in self.schema.attributes):
            lines.append("nominal attributes: the three most common categories")
        if marked:
            lines.append("Quartiles inside a cell that was not divided further rest on an assumed density there.")
        if not self.consistent and any(a.kind != "nominal" for a in self.schema.attributes):
            lines.append("The estimate is not consistent; quartiles are read off a curve made monotone.")
        return "\n".join(lines)

    def _quartile_texts(self, a: Attribute, level: float, kind: Kind | None) -> tuple[list[str], Quantiles | None]:
        """Three texts: the quartiles, or the most common categories where there is no order."""
        if a.kind != "nominal":
            quartiles = self.quantiles(a.name)
            return quartiles.texts(level, kind), quartiles
        shares = self.marginal(a.name, errors=False).values
        top = np.argsort(-shares, kind="stable")[:3]
        texts = [f"{bucket_label(a, i)} {100 * shares[i]:.1f} %" for i in top]
        return [*texts, *[""] * (3 - len(texts))], None

    @property
    def assumes(self) -> str:
        """What the model's intervals rest on, with as many attributes as there are."""
        several = self.through_pairs and len(self.schema.attributes) > 2
        return self.assumption + several * ", and attributes depend on one another through their pairs alone"

    def attach(self, provenance: Origin) -> Self:
        """This estimate with its provenance, which the driver of a run knows."""
        object.__setattr__(self, "provenance", provenance)  # the one thing that a mechanism cannot know
        self.__dict__.pop("_reports", None)
        return self

    def fingerprint(self) -> Floats:
        """Shares of the people below some places of every attribute, by which `load` knows the estimate again."""
        values = []
        for name, size in zip(self.schema.names, self.schema.sizes, strict=True):
            ends = blocks(size, 16)[1:].astype(float)
            values.append(self.answer(slices(self.schema, name, np.zeros(ends.size), ends), errors=False).values)
        return np.concatenate(values)

    def record(self) -> Record:
        """What the estimate is a function of, in its canonical form."""
        if self.provenance is None:
            raise ValueError("expected an estimate from a simulation, a collection or a session to save")
        return self.provenance.record(self.fingerprint())

    def save(self, path: str | PathLike[str]) -> None:
        """Write what the estimate is a function of: schema, method and tallies, as canonical JSON with digests.

        ``ahead_ldp.load`` computes it again and checks it.
        """
        Path(path).write_bytes(canonical_bytes(self.record()) + b"\n")

    def _shares(self, workload: Workload) -> Floats:
        return self.answer(workload, errors=False).values

    def _labelled(self, workload: Workload, labels: dict[str, NDArray[Any]], errors: bool = True) -> Answers:
        return replace(self.answer_jointly(workload, errors=errors), labels=labels)

    def _attribute(self, name: str | None, ordered: bool) -> Attribute:
        if name is None and len(self.schema.names) > 1:
            raise ValueError(f"expected an attribute among {', '.join(self.schema.names)}, got none")
        a = self.schema.attributes[0 if name is None else self.schema.index(name)]
        if ordered and a.kind == "nominal":
            raise ValueError(f"expected an attribute with an order, got the nominal {a.name}")
        return a


@dataclass(frozen=True, eq=False)
class _JointErrors:
    """The joint law of the errors of some answers, worked out when it is first asked for."""

    estimate: Estimate
    workload: Workload

    @cached_property
    def draws(self) -> Floats | None:
        """Draws of it."""
        return self.estimate.joint_errors(self.workload)

    def __call__(self) -> Floats | None:
        return self.draws


def _spoken_query(asked: Asked) -> str:
    """A query as it was written, or else its text."""
    return asked if isinstance(asked, str) else str(as_query(asked))


def _analysis(name: str) -> Any:
    return import_module(f"ahead_ldp.estimates.analysis.{name}")  # on use: it stands above
