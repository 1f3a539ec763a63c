"""Do all groups speak of the same people? The residual of their joint least-squares fit, attribute by attribute.

Groups are random parts of the people, so their estimates differ by noise alone, whose covariance is known. Whoever
poisons one group, or one wave, pulls it away from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ahead_ldp.oracles import LinearOracle, Tally
from ahead_ldp.protocol.mechanism import Question, Tallies
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.service.screening.deviates import distribution, wilson_hilferty

MOST_ATOMS = 256
FEWEST = 200  # reports of a group that takes part


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """One group's unbiased estimate of the shares between cuts of one attribute, with its covariance."""

    cuts: Ints  # (k + 1,), from 0 to the attribute's size
    estimate: Floats  # (k,)
    covariance: Floats  # (k, k): noise, and that the group is a random part of the people
    n: int


def joint_fit(session: Session, tallies: Tallies) -> list[tuple[str, float, int]]:
    """For every attribute that two groups speak of: its name, the residual as a normal deviate, and reports in it."""
    asked = told(session, tallies)
    fits = []
    for i, name in enumerate(session.schema.names):
        marginals = [m for question, tally in asked if (m := marginal(question, tally, i)) is not None]
        residual, freedom = least_squares(marginals) if len(marginals) > 1 else (0.0, 0)
        if freedom > 0:
            fits.append((name, wilson_hilferty(residual, freedom), sum(m.n for m in marginals)))
    return fits


def told(session: Session, tallies: Tallies | None = None) -> list[tuple[Question, Tally]]:
    """Every question told so far with its tally, and those of the open wave with the tallies given for it."""
    now = [] if tallies is None else [(question, tallies[group]) for group, question in session.wave.items()]
    return session.answered() + now


def marginal(question: Question, tally: Tally, attribute: int) -> Marginal | None:
    """What a group says about one attribute, at the cuts that go through none of its cells."""
    oracle = question.oracle
    if attribute not in question.attributes or not isinstance(oracle, LinearOracle) or tally.n < FEWEST:
        return None
    place = question.attributes.index(attribute)
    lo, hi = question.partition.lo[:, place], question.partition.hi[:, place]
    cuts = _clean_cuts(lo, hi, question.partition.axes[place].size)
    if cuts.size < 3:
        return None
    part = np.searchsorted(cuts, lo, side="right") - 1
    return _aggregated(oracle, tally, part, cuts)


def least_squares(marginals: Sequence[Marginal]) -> tuple[float, int]:
    """The residual sum of squares of the joint fit, whitened, and its degrees of freedom. Shares add up to 1."""
    atoms = _coarse(np.unique(np.concatenate([m.cuts for m in marginals])), marginals)
    rows, values = [], []
    for m in marginals:
        part = np.searchsorted(atoms, m.cuts[:-1], side="right") - 1  # atoms' cuts may be fewer than the group's
        kept = np.flatnonzero(np.isin(atoms, m.cuts))
        sums = np.zeros((kept.size - 1, m.estimate.size))
        sums[np.searchsorted(kept, part, side="right") - 1, np.arange(part.size)] = 1.0
        design = np.zeros((kept.size - 1, atoms.size - 1))
        for row, (start, end) in enumerate(pairwise(kept)):
            design[row, start:end] = 1.0
        white = _whitener(sums @ m.covariance @ sums.T)
        rows.append(white @ (design[:, :-1] - design[:, -1:]))  # the last atom is 1 less the others
        values.append(white @ (sums @ m.estimate - design[:, -1]))
    stacked, value = np.concatenate(rows), np.concatenate(values)
    solution, _, rank, _ = np.linalg.lstsq(stacked, value, rcond=1e-10)
    return float(((value - stacked @ solution) ** 2).sum()), int(value.size - rank)


def _clean_cuts(lo: Ints, hi: Ints, size: int) -> Ints:
    """Borders that no cell straddles."""
    covered = np.zeros(size + 1, np.int64)  # how many cells have the border strictly inside
    np.add.at(covered, lo + 1, 1)
    np.add.at(covered, hi, -1)
    return np.flatnonzero(np.cumsum(covered) == 0)


def _aggregated(oracle: LinearOracle, tally: Tally, part: Ints, cuts: Ints) -> Marginal:
    """Sums over the cells of each part, with the covariance in O(cells) (``LinearOracle.covariance``)."""
    k, n, m = cuts.size - 1, tally.n, oracle.moments
    raw = oracle.estimate(tally)
    f = distribution(raw)

    def sums(x: Floats) -> Floats:
        """Over the cells of each part."""
        return np.bincount(part, weights=x, minlength=k).astype(float)

    slope = m.cross_own - m.cross
    own = f * m.own + (1 - f) * m.other - (m.cross + 2 * slope * f) + f  # f: which people are in the group
    ones, shares = sums(np.ones_like(f)), sums(f)
    mixed = slope * (np.outer(shares, ones) + np.outer(ones, shares)) - np.outer(shares, shares)
    covariance = (np.diag(sums(own)) + m.cross * np.outer(ones, ones) + mixed) / n
    return Marginal(cuts, sums(raw), covariance, n)


def _coarse(cuts: Ints, marginals: Sequence[Marginal]) -> Ints:
    """At most ``MOST_ATOMS`` atoms: the cuts that most groups have."""
    if cuts.size - 1 <= MOST_ATOMS:
        return cuts
    votes = np.stack([np.isin(cuts, m.cuts) for m in marginals]).sum(axis=0)
    ends = np.isin(cuts, cuts[[0, -1]]) * len(marginals)
    kept = np.argsort(-(votes + ends), kind="stable")[: MOST_ATOMS + 1]
    return np.sort(cuts[kept])


def _whitener(covariance: Floats) -> Floats:
    """The inverse square root on the part of the space where there is noise."""
    values, vectors = np.linalg.eigh(covariance)
    noisy = values > 1e-9 * values.max()
    return (vectors[:, noisy] / np.sqrt(values[noisy])).T
