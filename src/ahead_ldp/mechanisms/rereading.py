"""Recorded tallies of AHEAD and LLE, read again: least squares over the raw estimates of all waves at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.covers import cover_weights
from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates import Estimate
from ahead_ldp.inference.attribute_consistency import Pair, attribute_weights
from ahead_ldp.inference.averaging import Averaged, Measurement, pool
from ahead_ldp.inference.bands import normal_draws, with_spread
from ahead_ldp.inference.errors import (
    linear_covariance,
    linear_variance,
    uneven_covariances,
    uneven_functional,
    uneven_variance,
)
from ahead_ldp.inference.tree_least_squares import TreeLeastSquares
from ahead_ldp.mechanisms import adaptive
from ahead_ldp.mechanisms.ahead import AHEAD
from ahead_ldp.mechanisms.lle import LLE
from ahead_ldp.oracles import Tally
from ahead_ldp.pair_estimates import PairEstimate
from ahead_ldp.protocol import Mechanism, Tallies, finish
from ahead_ldp.tree_estimates import TreeEstimate
from ahead_ldp.workloads import Workload

Floats = NDArray[np.float64]

_HOLD = 1e9  # how much surer a value that is held at 0 is than any measured one
_ROUNDS = 50
_MOST_TOGETHER = 1024  # queries whose errors are drawn together


def reread(mechanism: Mechanism, schema: Schema, history: Sequence[Tallies]) -> Estimate:
    """A better estimate from the tallies of an AHEAD or LLE run, or of its first waves; nobody is asked again.

    One attribute: the estimate of ``Adaptive`` (``mechanisms.adaptive.reread``). Several: in each tree, generalised
    least squares over what every wave said about every node, with the whole at 1 and nothing below 0. LLE's
    pairs are then brought to agree on attributes and joined as usual. Groups without reports are left out.

    Privacy: post-processing of tallies, so whatever epsilon the run had still holds (AHEAD Sec. 4.3).
    """
    if not isinstance(mechanism, AHEAD | LLE):
        raise ValueError(f"expected tallies of ahead or lle to read again, got those of {mechanism.name}")
    if len(schema.attributes) == 1:
        return adaptive.reread(mechanism, schema, history)
    first, told = finish(mechanism, schema, history), _tallies(mechanism, schema, history)
    if isinstance(first, PairEstimate):
        trees = {pair: solved(averaged, told[pair]) for pair, averaged in first.trees.items()}
        return SolvedPairsEstimate(schema, trees, first.combine)
    assert isinstance(first, TreeEstimate)
    every = tuple(range(len(schema.attributes)))
    return SolvedTreeEstimate(schema, solved(first.averaged, told[every]), consistent=True)


def _tallies(
    mechanism: Mechanism, schema: Schema, history: Sequence[Tallies]
) -> defaultdict[tuple[int, ...], list[Tally]]:
    """What was told about each set of attributes, wave by wave; the history was found to be one of this run."""
    told, run = defaultdict[tuple[int, ...], list[Tally]](list), mechanism.run(schema)
    wave = next(run, {})
    for tallies in history:
        for group, question in wave.items():
            told[question.attributes].append(tallies[group])
        try:
            wave = run.send(tallies)
        except StopIteration:
            break
    return told


@dataclass(frozen=True, slots=True, eq=False)
class RawMeasurement(Measurement):
    """What one group said, as it is: that the whole is 1 comes in with all groups at once."""

    @property
    def precision(self) -> float:
        """Inverse of the variance that matters, the sum of all cells being known; 0 without reports."""
        return 0.0 if self.n == 0 else 1 / self.oracle.contrast_variance(self.n)


@dataclass(frozen=True, slots=True, eq=False)
class Solved(Averaged):
    """Node frequencies by least squares. ``own_weight`` is 1: how the nodes' own estimates mix is the solution's."""

    solution: TreeLeastSquares

    @property
    def has_reports(self) -> bool:
        """Whether anybody said anything."""
        return any(m.n for m in self.measurements)

    def variance(self, weights: Floats) -> Floats:  # (k, nodes) -> (k,)
        """Variance of ``weights @ values``, the bound at 0 left out; without reports infinite for all but the root."""
        if not self.has_reports:
            return np.where((weights[:, 1:] == 0).all(axis=1), 0.0, np.inf)
        return linear_variance(self, self.solution.coefficients(weights)[0])

    def covariance(self, weights: Floats) -> Floats:  # (k, nodes) -> (k, k)
        """Covariances of ``weights @ values``, likewise."""
        return linear_covariance(self, self.solution.coefficients(weights)[0])


def solved(averaged: Averaged, tallies: Sequence[Tally]) -> Solved:
    """The least squares on the same tree, from the tallies behind its first measurements; the others were empty."""
    tree = averaged.tree
    raw = [
        RawMeasurement(m.nodes, m.oracle.estimate(tally), m.n, m.oracle)
        for m, tally in zip(averaged.measurements, tallies, strict=False)
        if tally.n
    ]
    own, own_precision = pool(tree, raw)
    solution = TreeLeastSquares.of(tree, own_precision)
    filled, precision, even = solution.open, 1 / solution.variance, np.ones(tree.size)
    filled[0], precision[0] = False, np.inf
    linear = Solved(tree, tuple(raw), own_precision, even, precision, filled, solution.solve(own), solution)
    return replace(linear, values=_non_negative(linear, own))


def _non_negative(linear: Solved, own: Floats) -> Floats:  # (nodes,) -> (nodes,)
    """The least squares among values that are not negative: exact, by active sets.

    The finest measured nodes below 0 are held there by a measurement that outweighs all others, and let go where the
    solution then pulls them up. A few rounds settle it; what is left below 0 by rounding, going down mends.
    """
    tree, precision, ends = linear.tree, linear.own_precision, np.zeros(linear.tree.size, bool)
    ends[linear.supported] = True
    held = ends & (linear.values < 0)
    for _ in range(_ROUNDS):
        total = precision + held * _HOLD * precision.max()
        pulled = np.divide(precision * own, total, out=np.zeros(tree.size), where=total > 0)
        solution = TreeLeastSquares.of(tree, total)
        before, held = held, ends & (solution.solve(pulled) < 0)
        if (held == before).all():
            break
    return solution.solve_non_negative(pulled)


@dataclass(frozen=True, eq=False)
class SolvedTreeEstimate(TreeEstimate):
    """A consistent tree; the errors are those of its least squares."""

    averaged: Solved

    def _variance(self, weights: Floats) -> Floats:  # (k, nodes) -> (k,)
        if self._has_reports:
            return self.averaged.variance(weights)
        return super()._variance(weights)

    def joint_errors(self, workload: Workload, draws: int = 1000) -> Floats | None:  # -> (draws, n)
        """Normal draws with the covariance of the answers' errors; None beyond 1024 queries, or without reports."""
        if workload.n > _MOST_TOGETHER or not self._has_reports:
            return None
        weights = np.zeros((workload.n, self.tree.size))
        np.add.at(weights, workload.owner, cover_weights(self.tree, workload.boxes))
        covariance = self.averaged.covariance(weights)
        for rows, extra in uneven_covariances(self.tree, self._supported, self._masses, workload.boxes):
            owner = workload.owner[rows]
            np.add.at(covariance, (owner[:, None], owner), extra)
        return with_spread(normal_draws(covariance, draws), self.answer(workload).spread)


@dataclass(frozen=True, eq=False)
class SolvedPairsEstimate(PairEstimate):
    """Consistent trees of pairs, made to agree on attributes; errors as in ``PairEstimate``, from the least squares."""

    trees: Mapping[Pair, Solved]

    @cached_property
    def _typical_variance(self) -> dict[Pair, float]:
        """The same boxes as in every pair estimate."""
        low, middle, high = [0, 0.5], [0.25, 0.75], [0.5, 1]
        corners = np.array([[low, low], [middle, middle], [low, high], [high, low]])
        found = {}
        for pair, member in self.trees.items():
            boxes = np.round(corners * np.array([[a.size] for a in member.tree.axes], float))
            found[pair] = float(np.mean(member.variance(cover_weights(member.tree, boxes))))
        return found

    def _answer_one(self, attribute: int, ranges: Floats, errors: bool) -> tuple[Floats, Floats, Floats]:
        """The agreed marginal; in a consistent tree what lies outside of a range tells nothing more about it."""
        values, variance, uneven = super()._answer_one(attribute, ranges, errors=False)
        for pair, weight in attribute_weights(self._raw_grids, attribute).items() if errors else ():
            tree, slab = self.trees[pair].tree, self._slab(pair, attribute, ranges)
            variance += self.trees[pair].variance(weight * cover_weights(tree, slab))
            uneven += weight**2 * uneven_variance(tree, *self._cells[pair], slab)
        return values, variance, uneven

    def _errors(self, attributes: tuple[int, ...], boxes: Floats, by_block: Floats) -> tuple[Floats, Floats]:
        """As in every pair estimate: a pair without reports is not missed if others tell of both its attributes."""
        variance, uneven = np.zeros(len(boxes)), np.zeros(len(boxes))
        told = {a for pair in combinations(attributes, 2) if self.trees[pair].has_reports for a in pair}
        for k, (i, j) in enumerate(combinations(range(len(attributes)), 2)):
            pair = attributes[i], attributes[j]
            member, parts = self.trees[pair], self._pair_parts(pair, boxes[:, i], boxes[:, j])
            if not member.has_reports and told.issuperset(pair):
                continue
            total = np.zeros((len(boxes), member.tree.size))
            for b, block in enumerate(parts):
                total += by_block[:, k, b, None] * sum(cover_weights(member.tree, box) for box in block)
            variance += member.variance(total)
            uneven += uneven_functional(member.tree, *self._cells[pair], parts, by_block[:, k])
        return variance, uneven
