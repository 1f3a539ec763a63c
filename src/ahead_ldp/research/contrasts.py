"""Which methods can be told apart by their measured errors, and why.

Every method ran on the same people and the same queries. What is left is noise, which every method draws for itself, so
repetitions of two methods are independent and there is nothing to pair. Each method is set beside the one of least mean
error: the ratio of the two means, with an interval that allows for how differently both vary (Welch). There are as many
such intervals as other methods, and all of them hold at once with the stated confidence (Bonferroni). The verdict is
read off the interval and nothing else, so it cannot contradict the numbers beside it:

    worse     the whole interval lies above 1
    as good   the whole interval lies below 1.1
    open      neither: these repetitions do not decide
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt
from typing import Any, Literal

import numpy as np

LEVEL = 0.95
NEAR = 1.1  # errors within a tenth of the least are as good as it
MOST_REPEATS = 100_000  # beyond this a difference is not worth finding

Verdict = Literal["worse", "as good", "open"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A method beside the best: how many times its error, from where to where, and what follows.

    ``variation`` is the standard deviation of its repetitions over their mean, and ``needed`` how many repetitions
    would decide, if the ratio is what it seems; None where no number would.
    """

    method: str
    ratio: float
    low: float
    high: float
    variation: float
    needed: int | None = None

    @property
    def verdict(self) -> Verdict:
        """Worse, as good, or open."""
        return "worse" if self.low > 1 else "as good" if self.high <= NEAR else "open"

    @property
    def text(self) -> str:
        """The numbers, and what would decide where they do not."""
        said = f"{self.method} ({self.ratio:.2f} times its error, {self.low:.2f} to {self.high:.2f})"
        if self.verdict != "open":
            return said
        vary = f"its repetitions vary by {100 * self.variation:.0f} %"
        return f"{said}: {vary}" + (f", about {self.needed:,} of them would decide" if self.needed else "")

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
    own = float(np.std(values, ddof=1)) / mean if mean > 0 and len(values) > 1 else 0.0
    other = float(np.std(least, ddof=1)) / base if base > 0 and len(least) > 1 else 0.0
    if base <= 0:
        ratio = 1.0 if mean <= 0 else inf
        return Contrast(method, ratio, ratio, ratio, own)
    ratio, a, b = mean / base, own**2 / len(values), other**2 / len(least)
    if a + b <= 1e-24:
        return Contrast(method, ratio, ratio, ratio, own)
    freedom = (a + b) ** 2 / (a**2 / max(len(values) - 1, 1) + b**2 / max(len(least) - 1, 1))
    half = float(stdtrit(freedom, 1 - tail)) * sqrt(a + b)  # of the logarithm of the ratio
    return Contrast(method, ratio, ratio * exp(-half), ratio * exp(half), own, _needed(ratio, a + b, len(values), tail))


def _needed(ratio: float, variance: float, repeats: int, tail: float) -> int | None:
    """Repetitions after which the interval would exclude 1, or 1.1, whichever is nearer to being decided."""
    from scipy.special import stdtrit

    gap, wanted = max(log(ratio), log(NEAR / ratio)), float(repeats)
    for _ in range(20):  # the quantile depends on the number
        wanted = repeats * variance * (float(stdtrit(max(wanted - 1, 1), 1 - tail)) / gap) ** 2
        wanted = min(wanted, 2.0 * MOST_REPEATS)
    return max(ceil(wanted), repeats + 1) if wanted <= MOST_REPEATS else None


def explanation(methods: int, repeats: int, level: float = LEVEL) -> str:
    """What the verdicts rest on, in words."""
    return (
        f"Every method had the same people and queries and its own noise, {repeats} times. The intervals are of its "
        f"mean error over the least mean error; all {methods - 1} hold at once with {100 * level:g} % confidence. "
        f"Worse: the whole interval is above 1. As good: it is below {NEAR:g}. Open: these repetitions do not decide."
    )
