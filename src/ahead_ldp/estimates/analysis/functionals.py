"""Numbers for pairs of codes whose mean is bounded: products of two attributes, and numbers inside a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ahead_ldp.estimates.strict.evidence import Piece
from ahead_ldp.estimates.strict.functionals import Attributes
from ahead_ldp.schema.arrays import Floats

Side = tuple[Floats, Floats]  # the least and the largest number of every code


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """The product of two numbers, one for each code of two attributes, times a sign."""

    attributes: Attributes
    axes: tuple[int, int]  # among them
    sides: tuple[Side, Side]
    marks: tuple[Floats, Floats]  # codes at which to look closely
    sign: float = 1.0

    @property
    def boxes(self) -> Floats:
        """From each mark to the next, along each of the two axes."""
        counts = [marks.size - 1 for marks in self.marks]
        boxes = np.zeros((sum(counts), len(self.attributes), 2))
        boxes[: counts[0], self.axes[0]] = np.stack([self.marks[0][:-1], self.marks[0][1:]], axis=1)
        boxes[counts[0] :, self.axes[1]] = np.stack([self.marks[1][:-1], self.marks[1][1:]], axis=1)
        return boxes

    def highest(self, piece: Piece) -> Floats:
        """The largest product over each atom: it is at a corner."""
        (low, high), (least, most) = (
            (_over(piece, axis, side[0], np.minimum), _over(piece, axis, side[1], np.maximum))
            for axis, side in zip(self.axes, self.sides, strict=True)
        )
        corners = self.sign * np.stack([low * least, low * most, high * least, high * most])
        return piece.on_atoms(corners.max(axis=0))  # Q8

    def negative(self) -> Products:
        """Minus the product."""
        return Products(self.attributes, self.axes, self.sides, self.marks, -self.sign)


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """A number for every code of one attribute that counts inside some boxes, and is 0 outside of them."""

    attributes: Attributes
    axis: int  # of the number, among them
    side: Side
    inside: Floats  # (k, m, 2), apart from one another
    marks: Floats

    @property
    def boxes(self) -> Floats:
        """The boxes, cut at the marks."""
        cut = np.repeat(self.inside, self.marks.size - 1, axis=0)
        cut[:, self.axis] = np.tile(np.stack([self.marks[:-1], self.marks[1:]], axis=1), (len(self.inside), 1))
        return cut

    def highest(self, piece: Piece) -> Floats:
        """The largest number of an atom's codes; where a box cuts the atom, the larger of it and 0."""
        number = _over(piece, self.axis, self.side[1], np.maximum)
        cut = np.where(piece.covered(self.inside), number, np.maximum(number, 0.0))
        return piece.on_atoms(np.where(piece.touched(self.inside), cut, 0.0))  # Q11

    def negative(self) -> Inside:
        """Minus the number."""
        return Inside(self.attributes, self.axis, (-self.side[1], -self.side[0]), self.inside, self.marks)


def _over(piece: Piece, axis: int, values: Floats, least_or_largest: np.ufunc) -> Floats:
    """The least or the largest of some values of the codes of one attribute, over each of the piece's boxes."""
    sides, place = np.unique(np.stack([piece.lo[:, axis], piece.hi[:, axis]]), axis=1, return_inverse=True)
    each = np.array([least_or_largest.reduce(values[int(lo) : int(hi)]) for lo, hi in sides.T], float)
    return each[place.reshape(-1)]
