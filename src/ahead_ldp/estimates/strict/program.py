"""How far a distribution can be from a pilot in the direction of a query: the quadratic programs of strict bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ahead_ldp.schema.arrays import Bools, Floats, Ints

_STEPS = 16  # of an active set: two to six are usual (S10)
_RELEASES = 2  # of half of the atoms at 0, where no distribution is near enough (S10)
_INTERIOR_STEPS = 40  # eight to fifteen are usual (S10)
_GAP = 0.02  # of the way from the pilot to the bound: nearer to the best weights is worth nothing (S10)
_CENTRING = 0.1  # of the complementarity is left by a step, at least
_SHORT = 0.05  # of z: a distance from the pilot that no step is led by
_NEARLY = 0.95  # of the way to the border of what is allowed
_TOUCH = 1e-12  # below 0 by less is rounding


@dataclass(slots=True, eq=False)
class Start:
    """Where the program for a query begins: with atoms at 0, and with a guess of 1 / t."""

    zero: Bools
    settles: bool = True  # whether active sets have settled so far
    inverse: float = 0.0
    kq: Floats | None = None  # the inverse of M times the query


@dataclass(frozen=True, slots=True, eq=False)
class Cone:
    """The inverse of a positive definite matrix M (d, d), with what every program on the simplex needs of it."""

    matrix: Floats
    inverse: Floats
    row_sums: Floats
    total: float

    @classmethod
    def of(cls, matrix: Floats) -> Cone:
        """From M itself."""
        inverse = np.linalg.inv(matrix)
        inverse = (inverse + inverse.T) / 2
        sums = inverse.sum(axis=1)
        return cls(matrix, inverse, sums, float(sums.sum()))

    def nearest(self, b: Floats) -> Floats:  # (d,) -> (d,)
        """The distribution that minimises x'Mx/2 - b'x (the pilot, S11)."""
        kb, zero = self.inverse @ b, np.zeros(b.size, bool)
        x = kb
        for _ in range(_STEPS):
            at = np.flatnonzero(zero)
            multipliers = self._multipliers(at, np.append(-kb[at], 1 - kb.sum())[:, None])
            x = kb + self._moved(at, multipliers)[:, 0]  # S11
            if not _exchange(zero, at, multipliers[:-1, 0], x):
                break
        x = np.maximum(x, 0.0)
        return x / x.sum()

    def farthest(self, q: Floats, f: Floats, z: float, start: Start) -> Floats:  # (d,) -> (d,)
        """(x - f) / t for the distribution x farthest along q with (x - f)'M(x - f) <= z^2, t its multiplier (S10).

        An active set settles in a few steps where reports say much; where it does not, an interior point is followed.
        ``start`` is where a program for the same q and another pilot ended, and is left as this one ends.
        """
        kq = self.inverse @ q if start.kq is None else start.kq
        start.kq, released = kq, 0
        for _ in range(_STEPS if start.settles else 0):
            at = np.flatnonzero(start.zero)
            right = np.zeros((at.size + 1, 2))
            right[:-1, 0], right[:-1, 1], right[-1, 1] = -f[at], -kq[at], -kq.sum()
            multipliers = self._multipliers(at, right)
            step, pull = self._moved(at, multipliers), np.zeros((q.size, 2))
            step[:, 1] += kq
            pull[at] = multipliers[:-1]
            pull += multipliers[-1]
            pull[:, 1] += q
            t = _length(step, pull, z)
            if not t:  # with all these atoms at 0 nobody is as near to f as z
                if released == _RELEASES or not at.size:
                    break
                start.zero[at[np.argsort(-f[at])[: (at.size + 1) // 2]]] = False  # the half that f has most people in
                released += 1
                continue
            away = step[:, 0] / t + step[:, 1]  # S10
            if not _exchange(start.zero, at, multipliers[:-1, 0] / t + multipliers[:-1, 1], f + t * away):
                return away
        start.settles = False
        if not start.inverse:
            away = kq - kq.sum() / self.total * self.row_sums
            start.inverse = float(np.sqrt(max(float(away @ q), _TOUCH))) / z
        return self._interior(q, f, z, start)

    def _interior(self, q: Floats, f: Floats, z: float, start: Start) -> Floats:
        """The same by a primal-dual interior point method, to a fiftieth of the bound's distance from the pilot.

        Newton's steps hold the sum of x and lead its distance from f to z; the predictor decides how far they are
        drawn to the centre.
        """
        x, g, length, inverse = f.copy(), np.zeros(q.size), 0.0, start.inverse
        slack, shift = (float(np.ptp(q)) or 1.0) / q.size / f, float(q.mean())
        best, least, near = np.zeros(q.size), float(q.max()), _GAP * float(q.max() - q @ f)
        for _ in range(_INTERIOR_STEPS):
            h = inverse * g
            bound = float((q - h).max() + h @ f) + z * inverse * length
            if bound < least:
                best, least, start.inverse = inverse * (x - f), bound, inverse
            if length <= (1 + _GAP) * z and (least - q @ x <= _GAP * (least - q @ f) or q.max() - q @ x <= near):
                break
            newton = _Newton.of(inverse * self.matrix, x, slack, q - h - shift, g, _goal(length, z))
            x, slack, change = newton.step(x, slack, inverse)
            g = self.matrix @ (x - f)
            length = float(np.sqrt(max(float((x - f) @ g), 0.0)))
            inverse = inverse + change if newton.leads else inverse * min(max((length / z) ** 0.5, 0.3), 3.0)
            shift = float((q - inverse * g + slack) @ x)
        return best

    def _multipliers(self, at: Ints, right: Floats) -> Floats:  # (k,), (k + 1, c) -> (k + 1, c)
        """Of the constraints x[at] = 0 and sum(x) = 1."""
        k = at.size
        matrix = np.empty((k + 1, k + 1))
        matrix[:k, :k] = self.inverse[np.ix_(at, at)]
        matrix[:k, k] = matrix[k, :k] = self.row_sums[at]
        matrix[k, k] = self.total
        return np.asarray(np.linalg.solve(matrix, right), np.float64)

    def _moved(self, at: Ints, multipliers: Floats) -> Floats:  # -> (d, c)
        """The inverse times what the constraints pull with."""
        return np.asarray(self.inverse[:, at] @ multipliers[:-1] + np.outer(self.row_sums, multipliers[-1]))


def _exchange(zero: Bools, at: Ints, multipliers: Floats, x: Floats) -> bool:
    """Free atoms that pull away from 0, hold those below it; whether anything changed."""
    wrong = (x < -_TOUCH) & ~zero
    wrong[at[multipliers < 0]] = True
    zero ^= wrong
    if zero.all():  # somebody is somewhere
        zero[np.argmax(x)] = False
    return bool(wrong.any())


def _length(step: Floats, pull: Floats, z: float) -> float:
    """t for which x - f = step[:, 0] + t step[:, 1] has the length z in M's norm, pull = M step; 0 if there is none."""
    a, b, c = step[:, 1] @ pull[:, 1], step[:, 0] @ pull[:, 1], step[:, 0] @ pull[:, 0] - z * z
    inside = b * b - a * c
    return max(float((np.sqrt(inside) - b) / a), 0.0) if a > 0 and inside >= 0 else 0.0


def _goal(length: float, z: float) -> float:
    """Half the square that a step adds to the length, which at most doubles; 0 while it is too short to be led."""
    return (min(z, 2 * length) ** 2 - length**2) / 2 if length > _SHORT * z else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Newton:
    """Steps of the interior point: columns that leave the sum of x as it is, for any complementarity m."""

    plain: Floats  # (d,) for m = 0
    centre: Floats  # times m
    led: Floats  # less so much times the change of 1 / t
    slopes: tuple[float, float, float]  # of half the squared length, along each
    goal: float
    leads: bool

    @classmethod
    def of(cls, curved: Floats, x: Floats, slack: Floats, pull: Floats, g: Floats, goal: float) -> _Newton:
        """Solve for all columns at once."""
        curved.flat[:: x.size + 1] += slack / x
        right = np.stack([pull, 1 / x, g, np.ones(x.size)], axis=1)
        solved = dpotrs(dpotrf(curved, lower=1, overwrite_a=1)[0], right, lower=1)[0]
        solved = solved[:, :3] - np.multiply.outer(solved[:, 3], solved[:, :3].sum(axis=0) / solved[:, 3].sum())
        slopes = g @ solved
        leads = goal > 0 and float(slopes[2]) > _TOUCH**2
        return cls(solved[:, 0], solved[:, 1], solved[:, 2], (slopes[0], slopes[1], slopes[2]), goal, leads)

    def step(self, x: Floats, slack: Floats, inverse: float) -> tuple[Floats, Floats, float]:
        """The next x and slack, and the change of 1 / t; first without centring, which shows how much is needed."""
        mu = float(slack @ x) / x.size
        size, dx, ds, _ = self._direction(x, slack, inverse, 0.0)
        left = float((slack + size * ds) @ (x + size * dx)) / x.size / mu
        size, dx, ds, change = self._direction(x, slack, inverse, mu * min(max(left**3, _CENTRING), 0.8))
        return x + size * dx, slack + size * ds, size * change

    def _direction(self, x: Floats, slack: Floats, inverse: float, m: float) -> tuple[float, Floats, Floats, float]:
        change = 0.0
        if self.leads:
            change = (self.slopes[0] + m * self.slopes[1] - self.goal) / self.slopes[2]
            change = float(min(max(change, -0.7 * inverse), 3 * inverse))
        dx = self.plain + m * self.centre - change * self.led
        ds = (m - slack * dx) / x - slack
        return min(1.0, _reach(x, dx), _reach(slack, ds)), dx, ds, change


def _reach(values: Floats, changes: Floats) -> float:
    """How many steps keep all values positive, nearly."""
    most = float((-changes / values).max())
    return _NEARLY / most if most > 0 else np.inf
