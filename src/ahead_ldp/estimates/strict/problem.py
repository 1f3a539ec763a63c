"""Strict bounds of linear functionals of a distribution, from rows of several groups (docs/derivations/strict.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ahead_ldp.estimates.strict.program import Cone, Start
from ahead_ldp.estimates.strict.rows import Rows
from ahead_ldp.schema.arrays import Floats, Ints

_FOLDS = 4  # decision 014; S12
_SEED = 1_972  # the folds' noise is the same every time (S12)
_RIDGE = 1e-3  # on M: two distributions differ by at most 2 in squares, far below z^2 (S9)
_PRIOR = 1.0  # people's worth of an even distribution, in a pilot (S11)
_FEW = 100  # atoms: an active set is tried again for every query
_EVEN = 0.1  # of a pilot is even, at most: no atom is ever taken as empty (S11)
_UNSEEN = 2.0  # standard deviations of an empty cell (S11)


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """One-sided bounds of functionals, for any critical value: centre + z * error, with the weights behind them."""

    centre: Floats  # (q,)
    error: Floats  # (q,) standard deviation; 0 where the bound is the functional's own largest value
    weights: Floats  # (folds, q, r)


@dataclass(frozen=True, eq=False)
class Problem:
    """Atoms, and what the reports of all groups say about their shares.

    ``people`` is the number of those whose shares are asked for, all groups together; None: more are to come, and the
    shares are those of everybody whom the groups were drawn from.
    """

    rows: tuple[Rows, ...]
    even: Floats  # (d,) the share of codes in each atom
    people: int | None

    @cached_property
    def matrix(self) -> Floats:
        """The rows of all groups, (r, d)."""
        return np.concatenate([np.empty((0, self.even.size)), *(rows.matrix for rows in self.rows)])

    @cached_property
    def y(self) -> Floats:
        """Their values, (r,)."""
        return np.concatenate([np.empty(0), *(rows.y for rows in self.rows)])

    @cached_property
    def _sizes(self) -> Ints:
        return np.array([rows.y.size for rows in self.rows], np.int64)

    @cached_property
    def _starts(self) -> Ints:
        return np.cumsum(self._sizes) - self._sizes

    @cached_property
    def _coefficients(self) -> tuple[Floats, Floats, Floats]:
        """Per row: what the variance of a weighted sum has times the row's share, without it; and the row's members."""
        own = np.repeat([rows.own / rows.n for rows in self.rows], self._sizes)
        other = np.concatenate([np.empty(0), *(rows.other / rows.n * rows.members for rows in self.rows)])  # S3
        members = np.concatenate([np.empty(0), *(rows.members for rows in self.rows)])
        return own, other, members

    @cached_property
    def _pairs(self) -> tuple[Floats, Floats, Floats]:
        """Per group: shared / n, tied / n, 1 / n."""
        n = np.array([rows.n for rows in self.rows], float)
        shared, tied = np.array([rows.shared for rows in self.rows]), np.array([rows.tied for rows in self.rows])
        return shared / n, tied / n, 1 / n

    @cached_property
    def pilot(self) -> Floats:
        """A distribution near the reports, by all of them; (d,)."""
        own, other, _ = self._coefficients
        one = np.repeat(self._pairs[2], self._sizes)  # person: a row that nobody was counted in has a variance too
        variance = own * np.clip(self.y, one, 1.0) + other
        cone = Cone.of(self._information(variance) + np.diag(_PRIOR / self.even))  # S11
        return self._mixed(cone.nearest(self.matrix.T @ (self.y / variance) + _PRIOR))

    @cached_property
    def variance(self) -> Floats:
        """The variance of each row by which weights are chosen; (r,)."""
        return self._diagonal(self.pilot)

    @cached_property
    def information(self) -> Floats:
        """What the rows say about the atoms, (d, d)."""
        return self._information(self.variance)

    @cached_property
    def cone(self) -> Cone:
        """Of the information about the atoms."""
        return Cone.of(self.information + _RIDGE * np.eye(self.even.size))

    @cached_property
    def folds(self) -> tuple[Floats, Floats]:
        """Reports divided into folds that are nearly independent (S12), (k, r), and a pilot from the others, (k, d)."""
        noise = np.random.default_rng(_SEED).standard_normal((_FOLDS, self.y.size))
        y = self.y + np.sqrt(_FOLDS * self.variance) * (noise - noise.mean(axis=0))  # S12
        part = (_FOLDS - 1) / _FOLDS
        cone = Cone.of(part * self.information + np.diag(_PRIOR / self.even))
        others = (y.sum(axis=0) - y) / (_FOLDS - 1)
        right = part * (others / self.variance) @ self.matrix + _PRIOR
        return y, np.stack([self._mixed(cone.nearest(b)) for b in right])

    def upper(self, q: Floats, z: float) -> Ends:  # (k, d)
        """Upper bounds of ``q @ f``, best for the critical value z."""
        values, pilots = self.folds
        away, settles = np.zeros((_FOLDS, *q.shape)), True
        for i, row in enumerate(q):
            start = Start(np.zeros(row.size, bool), settles)
            for fold, f in enumerate(pilots):
                away[fold, i] = self.cone.farthest(row, f, z, start)
            settles = start.settles or self.even.size < _FEW
        weights = (away @ self.matrix.T) / self.variance  # S9
        flat = weights.reshape(_FOLDS * len(q), self.y.size)
        slack = (q - self._least(flat).reshape(away.shape)).max(axis=2)  # S7
        shifts = self._centred(flat).reshape(_FOLDS, len(q), len(self.rows))
        weights += np.repeat(shifts, self._sizes, axis=2)
        centre = np.einsum("kqr,kr->q", weights, values) + slack.sum(axis=0) - shifts.sum(axis=(0, 2))
        squares = self.squares(weights.reshape(flat.shape)).reshape(_FOLDS, -1).mean(axis=0)  # S13
        error, one = np.sqrt(np.maximum(squares, 0.0)), z * self._one_person(weights)
        return Ends(centre / _FOLDS, np.sqrt(error**2 + error * one + one**2), weights)  # S22

    def _one_person(self, weights: Floats) -> Floats:  # (folds, q, r) -> (q,)
        """How far one person more or less moves ``weights @ y``: what is rarer than that, no variance has seen.

        For a count k of a few people the bound is then k + z^2 and a little more, as an exact one would be.
        """
        if not self.rows:
            return np.zeros(weights.shape[1])
        highest = np.maximum.reduceat(weights, self._starts, axis=2)
        lowest = np.minimum.reduceat(weights, self._starts, axis=2)
        cells = [rows.sums or rows.least is not None for rows in self.rows]
        apart = np.where(cells, highest - lowest, 2 * np.maximum(highest, -lowest)) * self._pairs[2]
        return np.asarray(apart.mean(axis=0).max(axis=1))

    def squares(self, weights: Floats) -> Floats:  # (q, r) -> (q,)
        """The variance of ``weights @ y`` with the chance of who fell into which group (S2, S6)."""
        f, (own, other, members), (shared, tied, one) = self.pilot, self._coefficients, self._pairs
        total, mean = self._group(weights * members), self._group(weights * (self.matrix @ f))
        square = weights**2 @ (own * (np.abs(self.matrix) @ f) + other)
        square += total**2 @ shared + 2 * (total * mean) @ tied - mean**2 @ one  # S2
        if not self.people:  # not known yet, or nobody has answered
            return np.asarray(square)
        h = weights @ self.matrix
        return np.asarray(square - (h**2 @ f - (h @ f) ** 2) / self.people)  # S6

    def covariance(self, ends: Ends) -> Floats:  # -> (q, q)
        """Of the errors of all bounds."""
        f, (own, other, members), (shared, tied, one) = self.pilot, self._coefficients, self._pairs
        diagonal, result = own * (np.abs(self.matrix) @ f) + other, np.zeros((ends.error.size, ends.error.size))
        for weights in ends.weights:
            total, mean = self._group(weights * members), self._group(weights * (self.matrix @ f))
            crossed = (total * tied) @ mean.T
            result += (weights * diagonal) @ weights.T + (total * shared) @ total.T
            result += crossed + crossed.T - (mean * one) @ mean.T
            if self.people:
                h = weights @ self.matrix
                result -= ((h * f) @ h.T - np.multiply.outer(h @ f, h @ f)) / self.people  # S6
        return result / _FOLDS

    def _group(self, terms: Floats) -> Floats:  # (q, r) -> (q, groups)
        return np.add.reduceat(terms, self._starts, axis=1) if self.rows else terms

    def _least(self, weights: Floats) -> Floats:  # (q, r) -> (q, d)
        if all(rows.least is None for rows in self.rows):
            return np.asarray(weights @ self.matrix)
        parts = np.split(weights, self._starts[1:], axis=1)
        each = (w @ r.matrix if r.least is None else r.least(w) for r, w in zip(self.rows, parts, strict=True))
        return sum(each, np.zeros((len(weights), self.even.size)))

    def _centred(self, weights: Floats) -> Floats:  # (q, r) -> (q, groups)
        """The number c for which (weights + c) @ y - c has the least variance; c may be added where rows sum to 1."""
        f, (own, other, members), (shared, tied, one) = self.pilot, self._coefficients, self._pairs
        share, whole = self.matrix @ f, self._group(members[None])[0]
        diagonal = own * share + other
        total, mean = self._group(weights * members), self._group(weights * share)
        own_square = self._group(diagonal[None])[0] + whole**2 * shared + 2 * whole * tied - one
        with_sum = self._group(weights * diagonal) + total * whole * shared + (total + whole * mean) * tied - mean * one
        free = np.array([rows.sums for rows in self.rows], bool) & (own_square > 1e-9 * whole * one)
        return -np.divide(with_sum, own_square, out=np.zeros_like(with_sum), where=free)  # S8

    def _diagonal(self, f: Floats) -> Floats:
        """Variance less covariance of each row, roughly: weights are chosen by it, and no bound rests on it."""
        own, other, _ = self._coefficients
        return own * (np.abs(self.matrix) @ f) + other  # S9

    def _information(self, variance: Floats) -> Floats:
        return np.asarray((self.matrix.T / variance) @ self.matrix)

    def _mixed(self, f: Floats) -> Floats:
        """A pilot of which a little is even: as much as the reports could overlook in a cell, a tenth at most."""
        unseen = min(
            (_UNSEEN * float(np.sqrt(rows.other / rows.n)) for rows in self.rows if rows.other > 0), default=1.0
        )
        part = min(_EVEN, unseen)
        return (1 - part) * f + part * self.even  # S11
