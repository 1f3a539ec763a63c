"""Which methods can be told apart by their measured errors, and why.

Every method ran on the same people and the same queries. What is left is noise, which every method draws for itself, so
repetitions of two methods are independent and there is nothing to pair. Each method is set beside the one of least mean
error: the ratio of the two means, with an interval that allows for how differently both vary (Fieller's, with Welch's
degrees of freedom: it excludes 1 just where Welch's test tells the means apart). There are as many such intervals as
other methods, and all of them hold at once with the stated confidence (Bonferroni). The verdict is
read off the interval and nothing else, so it cannot contradict the numbers beside it:

    worse     the whole interval lies above 1
    as good   the whole interval lies below 1.1
    open      neither: these repetitions do not decide
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Any, Literal

import numpy as np

LEVEL = 0.95
NEAR = 1.1  # errors within a tenth of the least are as good as it
MOST_REPEATS = 100_000  # beyond this a difference is not worth finding

Verdict = Literal["worse", "as good", "open"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A method beside the best: how many times its error, from where to where, and what follows.

    ``variation`` are the standard deviations of its repetitions and of the best's, over their means, and ``needed`` is
    how many repetitions would decide, if the ratio is what it seems; None where no number would.
    """

    method: str
    ratio: float
    low: float
    high: float
    variation: tuple[float, float]
    needed: int | None = None

    @property
    def verdict(self) -> Verdict:
        """Worse, as good, or open."""
        return "worse" if self.low > 1 else "as good" if self.high <= NEAR else "open"

    @property
    def text(self) -> str:
        """The numbers, and what would decide where they do not."""
        said = f"{self.method} ({self.ratio:.2f} times its error, {self.interval})"
        if self.verdict != "open":
            return said
        own, best = (100 * x for x in self.variation)
        vary = f"its repetitions vary by {own:.0f} % and the best's by {best:.0f} %"
        return f"{said}: {vary}" + (f", about {self.needed:,} of them would decide" if self.needed else "")

    @property
    def interval(self) -> str:
        """From where to where, in words."""
        return f"{self.low:.2f} to {self.high:.2f}" if self.high < inf else f"{self.low:.2f} or more"

    def record(self) -> dict[str, Any]:
        """As plain numbers."""
        interval = [self.low, self.high if self.high < inf else None]
        return {"method": self.method, "ratio": self.ratio, "interval": interval, "verdict": self.verdict}


def contrasts(errors: Mapping[str, Sequence[float]], level: float = LEVEL) -> tuple[str, list[Contrast]]:
    """The method of least mean error, and every other one beside it, in order of their means."""
    means = {method: float(np.mean(values)) for method, values in errors.items()}
    order = sorted(means, key=lambda method: means[method])
    best, others = order[0], order[1:]
    tail = (1 - level) / (2 * max(len(others), 1))
    return best, [_contrast(method, errors[method], errors[best], tail) for method in others]


def _contrast(method: str, values: Sequence[float], least: Sequence[float], tail: float) -> Contrast:
    from scipy.special import stdtrit

    mean, base = float(np.mean(values)), float(np.mean(least))
    a, b = _squared_error(values), _squared_error(least)
    vary = sqrt(a * len(values)) / mean if mean else 0.0, sqrt(b * len(least)) / base if base else 0.0
    ratio = mean / base if base > 0 else 1.0 if mean <= 0 else inf
    if base <= 0 or a + b <= 1e-24 * mean**2:
        return Contrast(method, ratio, ratio, ratio, vary)
    freedom = (a + b) ** 2 / (a**2 / max(len(values) - 1, 1) + b**2 / max(len(least) - 1, 1))
    t2 = float(stdtrit(freedom, 1 - tail)) ** 2
    # Fieller (1954): the ratios rho for which mean - rho base lies within t standard errors of 0.
    square, rest = base**2 - t2 * b, mean**2 - t2 * a
    root = sqrt(max((mean * base) ** 2 - square * rest, 0.0))
    low = rest / (mean * base + root) if rest > 0 else 0.0
    high = (mean * base + root) / square if square > 0 else inf
    return Contrast(method, ratio, low, high, vary, _needed(mean, base, a, b, len(values), tail))


def _squared_error(values: Sequence[float]) -> float:
    """The variance of the mean of independent values."""
    return float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else 0.0


def _needed(mean: float, base: float, a: float, b: float, repeats: int, tail: float) -> int | None:
    """Repetitions after which the interval would exclude 1, or lie below 1.1, whichever comes first."""
    from scipy.special import stdtrit

    gaps = (((mean - base) ** 2, a + b), (max(NEAR * base - mean, 0.0) ** 2, a + NEAR**2 * b))
    effect = max(gap / variance for gap, variance in gaps)  # in squared standard errors
    if effect <= 0:
        return None
    wanted = float(repeats)
    for _ in range(20):  # the quantile depends on the number
        wanted = min(repeats * float(stdtrit(max(wanted - 1, 1), 1 - tail)) ** 2 / effect, 2.0 * MOST_REPEATS)
    return max(ceil(wanted), repeats + 1) if wanted <= MOST_REPEATS else None


def explanation(methods: int, repeats: int, level: float = LEVEL) -> str:
    """What the verdicts rest on, in words."""
    intervals = "The interval is" if methods == 2 else "The intervals are"
    together = "it holds" if methods == 2 else f"all {methods - 1} hold at once"
    return (
        f"Every method had the same people and queries and its own noise, {repeats} times. {intervals} of its "
        f"mean error over the least mean error; {together} with {100 * level:g} % confidence. "
        f"Worse: the whole interval is above 1. As good: it is below {NEAR:g}. Open: these repetitions do not decide."
    )
