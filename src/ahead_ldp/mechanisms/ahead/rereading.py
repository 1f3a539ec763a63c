"""Recorded tallies of AHEAD and LLE, read again: least squares over the raw estimates of all waves at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.measurements import Measurement, pool
from ahead_ldp.estimates.solvers.tree_least_squares import TreeLeastSquares, non_negative_least_squares
from ahead_ldp.mechanisms.adaptive import adaptive
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.averaging import Averaged
from ahead_ldp.mechanisms.ahead.lle import LLE
from ahead_ldp.mechanisms.ahead.pair_estimates import PairEstimate
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism, Tallies
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Floats


def reread(mechanism: Mechanism, schema: Schema, history: Sequence[Tallies]) -> Estimate:
    """A better estimate from the tallies of an AHEAD or LLE run, or of its first waves; nobody is asked again.

    One attribute: the estimate of ``Adaptive`` (``adaptive.reread``). Several: in each tree, generalised
    least squares over what every wave said about every node, with the whole at 1 and nothing below 0. LLE's
    pairs are then brought to agree on attributes and joined as usual. Groups without reports are left out.

    Privacy: post-processing of tallies, so whatever epsilon the run had still holds (AHEAD Sec. 4.3).
    """
    if not isinstance(mechanism, AHEAD | LLE):
        raise ValueError(f"expected tallies of ahead or lle to read again, got those of {mechanism.name}")
    if len(schema.attributes) == 1:
        return adaptive.reread(mechanism, schema, history)
    session, tallies = Session.after(mechanism, schema, history), defaultdict[tuple[int, ...], list[Tally]](list)
    for question, tally in session.answered():  # wave by wave
        tallies[question.attributes].append(tally)
    first = session.finish()
    if isinstance(first, PairEstimate):
        trees = {pair: solved(averaged, tallies[pair]) for pair, averaged in first.trees.items()}
        return PairEstimate(schema, trees, first.combine)
    assert isinstance(first, TreeEstimate)
    every = tuple(range(len(schema.attributes)))
    return TreeEstimate(schema, solved(first.averaged, tallies[every]), consistent=True)


class RawMeasurement(Measurement):
    """What one group said, as it is: that the whole is 1 comes in with all groups at once."""

    __slots__ = ()

    @property
    def precision(self) -> float:
        """Inverse of the variance that matters, the sum of all cells being known; 0 without reports."""
        return self.oracle.contrast_precision(self.n)


@dataclass(frozen=True, slots=True, eq=False)
class Solved(Averaged):
    """Node frequencies by least squares. ``own_weight`` is 1: how the nodes' own estimates mix is the solution's."""

    solution: TreeLeastSquares

    @property
    def is_consistent(self) -> bool:
        """They are: children add up to their parent."""
        return True

    def coefficients(self, weights: Floats) -> Floats:  # (k, nodes) -> (k, nodes)
        """How much each node's own estimate counts in ``weights @ values``, the bound at 0 left out."""
        return self.solution.coefficients(weights)[0]


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
    values = non_negative_least_squares(tree, own_precision, own)
    return Solved(tree, tuple(raw), own_precision, even, precision, filled, values, solution)
