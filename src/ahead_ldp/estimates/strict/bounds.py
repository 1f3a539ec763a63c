"""Strict bounds of functionals from everything that was asked and told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.partition import TreeForm
from ahead_ldp.estimates.bands import largest_of, shared_level
from ahead_ldp.estimates.origin import Origin
from ahead_ldp.estimates.strict.boxes import BoxGround
from ahead_ldp.estimates.strict.evidence import GridGround, Ground, grid_sources
from ahead_ldp.estimates.strict.functionals import Attributes, Functional, both_signs
from ahead_ldp.schema.arrays import Floats

Interval = tuple[Floats, Floats]

_Z = 1.959964  # weights are best for this critical value, and valid for every one
_TOGETHER = 256  # functionals whose joint law is worked out; more are taken in blocks, whose risks add up (S20)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Upper bounds of n functionals, for any critical value: centre + z error, at most ``most``."""

    centre: Floats  # (n,)
    error: Floats  # (n,) standard deviation of the centre
    most: Floats  # (n,) what the functional cannot exceed, whoever the people are
    directions: tuple[tuple[Attributes, Floats], ...]  # each error among the rows of its ground, in standard units

    def at(self, z: float) -> Floats:
        """The bounds for a critical value."""
        return np.minimum(self.centre + z * self.error, self.most)

    def critical(self, level: float) -> float:
        """The critical value with which all bounds hold at once: errors of different grounds count as independent."""
        some = np.flatnonzero(self.error > 0)
        parts = np.array_split(some, max(1, -(-some.size // (2 * _TOGETHER))))
        each = shared_level(level, len(parts))
        return max(self._critical(part.tolist(), each) for part in parts)  # S20

    def _critical(self, some: Sequence[int], level: float) -> float:
        correlation = np.zeros((len(some), len(some)))
        for attributes in dict.fromkeys(self.directions[i][0] for i in some):
            mine = [j for j, i in enumerate(some) if self.directions[i][0] == attributes]
            rows = np.stack([self.directions[some[j]][1] for j in mine])
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
            correlation[np.ix_(mine, mine)] = rows @ rows.T
        np.fill_diagonal(correlation, 1.0)
        return largest_of(correlation, level)  # S20


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was asked and told, and bounds on functionals from it."""

    schema: Schema
    origin: Origin
    grounds: dict[Attributes, Ground] = field(default_factory=dict)  # made before

    @cached_property
    def trees(self) -> tuple[Attributes, ...]:
        """The sets of several attributes that trees were asked about."""
        asked = (q.attributes for q, _ in self.origin.answered if isinstance(q.partition.form, TreeForm))
        return tuple(dict.fromkeys(attributes for attributes in asked if len(attributes) > 1))

    def attributes_for(self, restricted: Attributes) -> Attributes | None:
        """The attributes on which a query that restricts some is bounded; None: only bounds of pairs can tell."""
        for attributes in self.trees:
            if set(restricted) <= set(attributes):
                return attributes
        return restricted if len(restricted) <= 2 else None

    def ground(self, attributes: Attributes) -> Ground:
        """All that is known about some attributes."""
        if attributes not in self.grounds:
            answered, sizes, people = self.origin.answered, self.schema.sizes, self.origin.everybody
            if attributes in self.trees:
                self.grounds[attributes] = BoxGround.of(answered, attributes, sizes, people)
            else:
                own = tuple(sizes[a] for a in attributes)
                self.grounds[attributes] = GridGround(own, people, grid_sources(answered, attributes, sizes))
        return self.grounds[attributes]

    def upper(self, functionals: Sequence[Functional]) -> Bounds:
        """Upper bounds of all of them; those on the same attributes and near one another share a problem."""
        n = len(functionals)
        centre, error, most = np.zeros(n), np.zeros(n), np.zeros(n)
        directions: list[tuple[Attributes, Floats]] = [((), np.empty(0))] * n
        for attributes in dict.fromkeys(f.attributes for f in functionals):
            ground, mine = self.ground(attributes), [i for i, f in enumerate(functionals) if f.attributes == attributes]
            scale = np.sqrt(ground.variances)
            for batch in ground.batches([functionals[i].boxes for i in mine]):
                at = [mine[j] for j in batch]
                piece = ground.near(np.concatenate([functionals[i].boxes for i in at]))
                q = np.stack([functionals[i].highest(piece) for i in at])
                ends = piece.problem.upper(q, _Z)
                centre[at], error[at], most[at] = ends.centre, ends.error, q.max(axis=1)
                for i, direction in zip(at, piece.everywhere(ends.weights.mean(axis=0)) * scale, strict=True):
                    directions[i] = attributes, direction
        return Bounds(centre, error, most, tuple(directions))

    def both(self, functionals: Sequence[Functional]) -> Bounds:
        """Upper bounds of the functionals, then of their negatives."""
        return self.upper(both_signs(functionals))
