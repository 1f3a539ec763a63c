"""Somebody who knows the class reads the reports; and the default asks as if it knew the true density."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.adaptive.adaptive import Adaptive1, reports_of
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellReports, from_zero
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Question
from tools.limit.bound import answers
from tools.limit.classes import Class

Floats = NDArray[np.float64]

MEMBERS = 400  # of the class that the posterior mean is taken over
_STEPS = 40  # of the way to the likeliest member, at most
_FAR = 3.0  # the most that the logarithm of a density moves in a step
_STILL = 1e-3  # standard deviations: a step that is shorter is the last
_WIDER = 1.1  # the spread of the members that are drawn, over that of the normal law that stands for the posterior
EVERYBODY = 10**15  # people whom the reports are a sample of, where the question is the law that they were drawn by


@dataclass(frozen=True, eq=False)
class Posterior:
    """Members of a class, and how likely each is after the reports."""

    density: Floats  # (members, d)
    weights: Floats  # (members,) of sum 1

    @property
    def mean(self) -> Floats:  # -> (d,)
        """The estimate of least mean squared error, for every range at once."""
        return self.weights @ self.density

    def risk(self, ends: Floats) -> float:
        """The mean squared error that the mean's answers are expected to have, over what is left possible."""
        possible = answers(self.density.T, ends)  # (queries, members)
        away = possible - (possible @ self.weights)[:, None]
        return float(np.mean(away**2 @ self.weights))  # L10

    @property
    def effective(self) -> float:
        """How many members the mean rests on, as if all were equally likely."""
        return 1 / float(self.weights @ self.weights)

    @classmethod
    def of(cls, members: Class, data: CellData, rng: Generator, count: int = MEMBERS) -> Posterior:
        """By importance sampling around the likeliest member; drawn in pairs that lie opposite each other."""
        likeliest, lower = _likeliest(members, data)
        half = rng.standard_normal((count // 2, likeliest.size))
        normal = np.concatenate([half, -half])
        theta = likeliest + _WIDER * np.linalg.solve(lower.T, normal.T).T
        density = members.density(theta)
        away = data.estimate[:, None] - data.seen(from_zero(density.T))
        prior = ((theta - members.centre) / members.spread) ** 2
        log = 0.5 * ((normal**2).sum(axis=1) - prior.sum(axis=1) - (away**2).sum(axis=0))
        weights = np.exp(log - log.max())
        return cls(density, weights / weights.sum())  # L9


def read(answered: Sequence[tuple[Question, Tally]], members: Class) -> CellData:
    """What the reports say about the law that people were drawn by; noise is taken at the shape's own shares."""
    reports = [reports_of(question, tally, members.density(members.centre)) for question, tally in answered]
    return CellData.of([r.estimates(EVERYBODY) for r in reports if r.n], 1.0)


@contextmanager
def asked_with(density: Floats) -> Iterator[None]:
    """The default's questions as if this density had been known from the first wave on; all else as it is."""
    own = Adaptive1._outlook

    def told(self: Adaptive1, axis: Axis, reports: Sequence[CellReports], groups: int) -> Any:
        cells = own(self, axis, reports, groups)[1]
        return density, self.fewest_cells if cells is None else cells

    with mock.patch.object(Adaptive1, "_outlook", told):
        yield


def _likeliest(members: Class, data: CellData) -> tuple[Floats, NDArray[np.floating[Any]]]:  # -> (k,), (k, k)
    """The coefficients of the likeliest member, and L: the precision around it is nearly L L^T."""
    lower: NDArray[np.floating[Any]]
    theta, precision = members.centre.copy(), np.diag(members.spread**-2.0)

    def loss(theta: Floats) -> float:
        away = data.estimate - data.seen(from_zero(members.density(theta)))
        return 0.5 * float(away @ away + (((theta - members.centre) / members.spread) ** 2).sum())

    least = loss(theta)
    for _ in range(_STEPS):
        density = members.density(theta)
        jacobian = data.jacobian(members.basis, density)
        away = data.estimate - data.seen(from_zero(density))
        lower = np.linalg.cholesky(jacobian.T @ jacobian + precision)
        uphill = jacobian.T @ away - (theta - members.centre) / members.spread**2
        step = np.linalg.solve(lower.T, np.linalg.solve(lower, uphill))
        step *= min(1.0, _FAR / max(float(np.ptp(members.basis @ step)), 1e-300))
        size = float(np.linalg.norm(lower.T @ step))
        while size > _STILL and (now := loss(theta + step)) > least:
            step, size = step / 3, size / 3
        if size <= _STILL:
            break
        theta, least = theta + step, now
    return theta, lower
