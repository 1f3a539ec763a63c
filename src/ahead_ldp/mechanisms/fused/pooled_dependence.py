"""How strongly pairs of attributes depend on each other, learned from all pairs at once.

A pair alone cannot tell that there is no dependence from that there is a weak one. Many pairs together can: if most of
them show none, the others' noise is no dependence either. So each pair's coefficients may have a prior of several
widths, from hardly any dependence to a strong one, and all pairs together say how often each width occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ahead_ldp.estimates.one_thread import one_thread
from ahead_ldp.mechanisms.fused.grid_reports import GridReport, pooled
from ahead_ldp.mechanisms.fused.interactions import (
    Basis,
    Interaction,
    Likeliest,
    Smooth,
    interaction,
    law_without_dependence,
    likeliest,
    measured_spread,
    mixture,
    strength_of_determined,
    widened,
)
from ahead_ldp.mechanisms.fused.rough_cells import MANY_STEPS
from ahead_ldp.schema.arrays import Floats

_NARROWER = np.array([1e-4, 0.01, 0.1])  # of the variances that the reports chose (choice F28)
_WIDTHS = np.array([1e-4, 0.01, 0.1, 1.0])  # of the variances before anything is known (choice F27)
_HARDLY_TIED = 2  # of these widths: the first ones are hardly any dependence (choice F27)
_CARRY = 1.0  # pairs that equal frequencies of all widths count for (choice F28)
_ROUNDS = 30  # tolerance: of EM
_ROUGH_STRENGTH = 250.0  # of the smooth table among single cells, times the squares of rough coefficients (choice F29)
_LEAST_SPREAD = 1e-9  # tolerance: of single cells, so that the strength is finite


class AskedPair(NamedTuple):
    """A pair with the masses of its bins, the functions of both attributes, and what was said about it."""

    rows: Floats
    columns: Floats
    bases: tuple[Basis, Basis]
    reports: Sequence[GridReport]

    @property
    def told(self) -> list[GridReport]:
        """One report for each grid; none where there is nothing to depend on each other."""
        return pooled(self.reports) if self.bases[0].roughness.size * self.bases[1].roughness.size else []


@dataclass(frozen=True, slots=True, eq=False)
class Widths:
    """The laws of a pair's coefficients with priors of several widths, and how likely the reports are with each."""

    means: Floats  # (widths, k)
    covariances: Floats  # (widths, k, k)
    log_evidence: Floats  # (widths,)

    @classmethod
    def of(cls, precision: Floats, right: Floats, priors: Floats) -> Widths:  # (k, k), (k,), (widths, k)
        """From what the reports say about the coefficients to first order."""
        whitened = np.eye(right.size) + precision * priors[:, :, None]
        inverse: Floats = np.linalg.solve(whitened, np.eye(right.size) * priors[:, None, :]).astype(float, copy=False)
        means: Floats = inverse @ right
        return cls(means, inverse, (means @ right - np.linalg.slogdet(whitened)[1]) / 2)  # F10


def frequencies(log_evidence: Floats) -> Floats:  # (pairs, widths) -> (pairs, widths)
    """How likely each width is for each pair, with frequencies that all pairs have learned together (EM)."""
    likelihood = np.exp(log_evidence - log_evidence.max(axis=1, keepdims=True))
    pairs, widths = likelihood.shape
    share = np.full(widths, 1 / widths)
    for _ in range(_ROUNDS):
        chance = likelihood * share
        chance /= chance.sum(axis=1, keepdims=True)
        share = (chance.sum(axis=0) + _CARRY / widths) / (pairs + _CARRY)  # F28
    return chance


@one_thread
def chances_of_dependence(asked: Sequence[AskedPair]) -> Floats:  # -> (pairs,)
    """How likely it is of each pair that its attributes depend on each other in a way worth asking about."""
    evidence = np.zeros((len(asked), _WIDTHS.size))
    for k, pair in enumerate(asked):
        if pair.told:
            prior, precision, right = law_without_dependence(pair.rows, pair.columns, pair.bases, pair.told)
            evidence[k] = Widths.of(precision, right, _WIDTHS[:, None] * prior).log_evidence
    return frequencies(evidence)[:, _HARDLY_TIED:].sum(axis=1)  # F27


@one_thread
def fit_interactions(asked: Sequence[AskedPair]) -> list[Interaction]:
    """The tables of all pairs, each with shrinkage of a width that all pairs have a say in."""
    found = {k: likeliest(p.rows, p.columns, p.bases, p.told) for k, p in enumerate(asked) if p.told}
    laws = [
        Widths.of(
            *fit.model.law(fit.table, fit.theta),
            np.concatenate([_NARROWER[:, None] * fit.prior, widened(fit.prior, fit.model.first_prior)]),  # F28
        )
        for fit in found.values()
    ]
    weights = frequencies(np.stack([law.log_evidence for law in laws])) if laws else np.zeros((0, 1))
    smooth = dict[int, Smooth]()
    for (k, fit), law, weight in zip(found.items(), laws, weights, strict=True):
        mean, covariance = mixture(law.means, law.covariances, weight)
        table = fit.model.table(mean)
        strength = _strength(fit, table, mean, covariance)
        smooth[k] = Smooth(table, mean, covariance, fit.determined, strength, MANY_STEPS)
    return [interaction(p.rows, p.columns, p.bases, p.told, smooth.get(k)) for k, p in enumerate(asked)]


def _strength(fit: Likeliest, table: Floats, mean: Floats, covariance: Floats) -> float:
    """Of a smooth table among single cells: cells depart if there are rough coefficients, or if they are seen to."""
    squares = np.maximum(mean**2 - np.diag(covariance), 0.0)
    rough = float(squares[fit.model.bands > 1].sum())
    measured, error = measured_spread(table, fit.model.finest, fit.determined)
    spread = max(rough / _ROUGH_STRENGTH, measured - error, _LEAST_SPREAD)
    return max(strength_of_determined(fit.determined), 1 / spread)  # F29
