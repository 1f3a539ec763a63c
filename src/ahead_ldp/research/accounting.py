"""What reports give away behind a shuffler: from local epsilon to a central (epsilon, delta).

If a trusted shuffler strips every report of its origin and passes them on in random order, the collector's view of n
reports, each epsilon-LDP, is (central epsilon, delta)-differentially private with a central epsilon far below the local
one (FMT21, FMT23). Nothing here changes what a device sends: without a trusted shuffler the guarantee is the local one.

The numerical bound. Let R be epsilon-LDP, x and x' two values of the person in question, w = e^eps / (1 + e^eps) and
p = 1 / (1 + e^eps). Where R(x) > R(x'), put a = (R(x) - R(x')) / (e^eps - 1), else b = (R(x') - R(x)) / (e^eps - 1);
then R(x) = e^eps a + b + c and R(x') = a + e^eps b + c with c >= 0, and everybody else's R(y) >= a + b, as
a <= e^-eps R(x) and b <= e^-eps R(x'). a and b have the same mass, at most p. So each other report is, with probability
of that mass, a draw from a, likewise from b: a clone that hides the person's. Mass p is the worst case: less is a
thinning of it, which is post-processing. What is left is a pair of distributions of two counts,

    C ~ Bin(n - 1, 2p),  A ~ Bin(C, 1/2),  D ~ Bernoulli(w):  (A + D, C - A + 1 - D)  against  (A + 1 - D, C - A + D),

whose hockey-stick divergence is summed up here. The argument holds report by report whatever was asked before, so it
covers adaptive waves as FMT21 show, on the conditions of ``CONDITIONS``.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p, sqrt
from typing import Literal

import numpy as np

from ahead_ldp.schema.arrays import Floats, Ints

Bound = Literal["numerical", "closed_form", "closed_form_2021"]

BOUNDS: tuple[Bound, ...] = ("numerical", "closed_form", "closed_form_2021")
CONDITIONS = (
    "every report passes a shuffler that the collector cannot look into: no address, time, order or name is left",
    "the shuffler decides by a hidden, uniformly random order who answers which question; if people are grouped before"
    " it, or each wave is shuffled apart, n is the number of reports shuffled together: the smallest group",
    "report ids and tokens are made anew by the shuffler or cannot be linked to a person",
    "n counts honest people: with a share of fake or colluding ones, n is what is left",
)
_SPREAD = 12.0  # standard deviations of C that are summed; what lies outside is added to delta
_PRECISION = 1e-7  # of a bisected epsilon


def central_epsilon(epsilon: float, n: int, delta: float, bound: Bound = "numerical") -> float:
    """An upper bound of the central epsilon of n shuffled epsilon-LDP reports at this delta; never above the local one.

    "numerical" is the tightest; "closed_form" is the bound of FMT23 and "closed_form_2021" that of FMT21: where their
    conditions on epsilon and n fail they say nothing, and the local epsilon is returned.
    """
    _check(epsilon, n, delta)
    if bound == "numerical":
        return _numerical(epsilon, n, delta)
    if bound == "closed_form":
        limit, tail = n / (8 * log(2 / delta)) - 1, log(4 / delta)
        if limit <= 0 or epsilon > log(limit):
            return epsilon
        gain = expm1(epsilon) * (4 * sqrt(2 * tail / ((exp(epsilon) + 1) * n)) + 4 / n)
    elif bound == "closed_form_2021":
        if epsilon > log(n / (16 * log(2 / delta))):
            return epsilon
        grown = exp(epsilon)
        gain = expm1(epsilon) / (grown + 1) * (8 * sqrt(grown * log(4 / delta) / n) + 8 * grown / n)
    else:
        raise ValueError(f"expected bound to be one of {', '.join(BOUNDS)}, got {bound!r}")
    return min(log1p(gain), epsilon)


def local_epsilon(central: float, n: int, delta: float, bound: Bound = "numerical", most: float = 16.0) -> float:
    """The largest local epsilon, up to ``most``, whose n shuffled reports keep this central epsilon at this delta."""
    _check(central, n, delta)
    low, high = central, most
    if central >= most or central_epsilon(most, n, delta, bound) <= central:
        return most
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if central_epsilon(middle, n, delta, bound) <= central:
            low = middle
        else:
            high = middle
    return low


def central_delta(epsilon: float, n: int, central: float) -> float:
    """An upper bound of the delta at which n shuffled epsilon-LDP reports are (central, delta)-private."""
    if central >= epsilon:
        return 0.0
    from scipy.stats import binom

    share = 2 / (exp(epsilon) + 1)
    around = _SPREAD * sqrt((n - 1) * share * (1 - share)) + _SPREAD**2
    first = max(int((n - 1) * share - around), 0)
    last = min(int((n - 1) * share + around) + 1, n - 1)
    c = np.arange(first, last + 1)
    outside = binom.cdf(first - 1, n - 1, share) + binom.sf(last, n - 1, share)
    return float(binom.pmf(c, n - 1, share) @ _hockey_stick(c, epsilon, central) + outside)


def _hockey_stick(c: Ints, epsilon: float, central: float) -> Floats:
    """E[(dP - e^central dQ)+] given C = c: the ratio grows with the first count, so a tail of it is all there is."""
    from scipy.stats import binom

    w, raised = exp(epsilon) / (exp(epsilon) + 1), exp(central)
    odds = (raised * w - (1 - w)) / (w - raised * (1 - w))  # k / (c + 1 - k) at which dP = e^central dQ
    least = np.ceil(odds * (c + 1) / (1 + odds))  # the first k that counts
    tail, shifted = binom.sf(least - 1, c, 0.5), binom.sf(least - 2, c, 0.5)  # P(A >= k), P(A >= k - 1)
    excess: Floats = (w * shifted + (1 - w) * tail) - raised * ((1 - w) * shifted + w * tail)
    return np.maximum(excess, 0.0)


def _numerical(epsilon: float, n: int, delta: float) -> float:
    low, high = 0.0, epsilon
    while high - low > _PRECISION * epsilon:
        middle = (low + high) / 2
        if central_delta(epsilon, n, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _check(epsilon: float, n: int, delta: float) -> None:
    if not 0 < epsilon < inf:
        raise ValueError(f"expected epsilon > 0, got {epsilon!r}")
    if n < 1:
        raise ValueError(f"expected n >= 1, got {n!r}")
    if not 0 < delta < 1:
        raise ValueError(f"expected 0 < delta < 1, got {delta!r}")
