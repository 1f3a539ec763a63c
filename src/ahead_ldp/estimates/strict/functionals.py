"""What strict bounds are asked for: weighted sums over the people, as a number for every code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ahead_ldp.estimates.strict.evidence import Piece
from ahead_ldp.schema.arrays import Floats

Attributes = tuple[int, ...]


class Functional(Protocol):
    """A number for every combination of codes of some attributes; its mean over the people is wanted."""

    @property
    def attributes(self) -> Attributes:
        """On which it depends."""

    @property
    def boxes(self) -> Floats:
        """Boxes (k, m, 2) at whose ends the number changes most."""

    def highest(self, piece: Piece) -> Floats:  # -> (atoms,)
        """The largest number over each atom: where the people of an atom are inside it is not known."""

    def negative(self) -> Functional:
        """The same with the sign changed: its upper bound is minus the lower one of this."""


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """A weighted sum of the shares of some queries, each of boxes that are apart from one another."""

    attributes: Attributes
    terms: tuple[tuple[float, Floats], ...]  # (weight, boxes (k, m, 2))

    @property
    def boxes(self) -> Floats:
        """All boxes."""
        return np.concatenate([boxes for _, boxes in self.terms])

    def highest(self, piece: Piece) -> Floats:
        """A cell that a box cuts counts as inside if that makes the sum larger, and as outside if not."""
        total = np.zeros(len(piece.lo))
        for weight, boxes in self.terms:
            total += weight * (piece.touched(boxes) if weight > 0 else piece.covered(boxes))  # S16, S17
        return piece.on_atoms(total)

    def negative(self) -> Shares:
        """Minus the sum."""
        return Shares(self.attributes, tuple((-weight, boxes) for weight, boxes in self.terms))


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A number for every code of one attribute, of which only a least and a largest value are known."""

    attributes: Attributes
    axis: int  # among them
    low: Floats  # (codes,)
    high: Floats
    marks: Floats  # codes at which to look closely

    @property
    def boxes(self) -> Floats:
        """From each mark to the next."""
        boxes = np.zeros((self.marks.size - 1, len(self.attributes), 2))
        boxes[:, self.axis] = np.stack([self.marks[:-1], self.marks[1:]], axis=1)
        return boxes

    def highest(self, piece: Piece) -> Floats:
        """The largest number of an atom's codes."""
        return piece.highest(self.high, self.axis)  # S18

    def negative(self) -> Numbers:
        """Minus the numbers."""
        return Numbers(self.attributes, self.axis, -self.high, -self.low, self.marks)


def both_signs(functionals: Sequence[Functional]) -> list[Functional]:
    """The functionals, then their negatives."""
    return [*functionals, *(functional.negative() for functional in functionals)]
