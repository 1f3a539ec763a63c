"""Whether one more coefficient of a density's logarithm is asked for: the score test on what a fit leaves.

Nothing is fitted again: to first order the new coefficient is what the residuals say about it, less what the
coefficients that are there already could take up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData
from ahead_ldp.mechanisms.adaptive.log_linear import LogLinear
from ahead_ldp.schema.arrays import Floats

_LEAST_INFORMATION = 1e-12  # tolerance: below it a coefficient does nothing to any cell
_LEAST_SHARE_LEFT = 0.02  # of what a column does must be more than the smooth coefficients can do (choice A28)


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """What a law leaves of the estimates, and how one more coefficient would answer to it."""

    data: CellData
    law: LogLinear
    mass: Floats  # (cells,) in the estimates' standard deviations
    residual: Floats  # (cells,)
    effect: Floats  # (cells, k) of the law's coefficients, in their posterior standard deviations

    @classmethod
    def of(cls, data: CellData, law: LogLinear) -> Residuals:
        """Of the law of places or of all codes, as the data count them."""
        x = law.frequencies
        mass = data.cells(np.add.reduceat(x, data.borders[:-1]))
        return cls(data, law, mass, data.residual(x), data.jacobian(law.basis, x) @ law.spread)

    @property
    def misfit(self) -> float:
        """How much more is left than chance would leave, on average, if the law were right."""
        left = float(self.residual @ self.residual) + self.data.within
        return left - (self.data.freedom - float((self.effect**2).sum()))  # A30

    @property
    def pull(self) -> Floats:  # (places,)
        """By how much half the squared misfit falls, per person more in each place."""
        return self.data.around(self.residual) - self.mass @ self.residual  # A26

    def of_places(self) -> tuple[Floats, Floats]:  # (places,) each
        """For people more in each place: their number in standard deviations, and the number.

        A place moves each cell that holds it by 1, and every cell by its share less, since the others give way.
        """
        taken = self.data.around(self.effect) - self.mass @ self.effect
        whole = self.data.around(self.data.root - 2 * self.mass) + self.mass @ self.mass
        information = np.maximum(whole - (taken**2).sum(axis=1), _LEAST_INFORMATION)  # A27
        return self.pull / np.sqrt(information), self.pull / information

    def of_columns(self, sums: Floats) -> tuple[Floats, Floats]:  # (places, columns) -> (columns,) each
        """For coefficients whose columns have these sums of people: each in standard deviations, and itself.

        Those that the law's coefficients could take up say nothing: 0.
        """
        moved = self.data.cells(sums) - self.mass[:, None] * sums.sum(axis=0)
        whole = (moved**2).sum(axis=0)
        information = whole - ((self.effect.T @ moved) ** 2).sum(axis=0)  # A27
        apart = information > np.maximum(_LEAST_SHARE_LEFT * whole, _LEAST_INFORMATION)
        pull, information = np.where(apart, moved.T @ self.residual, 0.0), np.where(apart, information, 1.0)  # A26
        return pull / np.sqrt(information), pull / information
