"""What the measurements of `tools.accuracy --out` say about the default method, by rules fixed beforehand.

python -m tools.verdicts FILE [FILE ...]

Ratios are of mean squared errors over repetitions. "Higher" means that the lower end of the ratio's interval, at 95 %
for all settings of the file together (Bonferroni), lies above the line. The best rival of a setting is chosen on the
even repetitions and compared on the odd ones.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """The default's error over another's in every setting: the ratio, and the simultaneous lower end of it."""

    ratio: Floats  # (cells,)
    low: Floats  # (cells,)

    @property
    def mean(self) -> float:
        """The geometric mean of the ratios."""
        return float(np.exp(np.log(self.ratio).mean()))

    def above(self, line: float) -> int:
        """Settings in which the error is higher than ``line`` times the other's, at 95 % for all together."""
        return int((self.low > line).sum())


def compare(ours: Floats, theirs: Floats) -> Comparison:  # (cells, repeats) each
    """Ratios of means, with Student intervals on their logarithms (delta method, repetitions paired)."""
    from scipy.special import stdtrit

    cells, n = ours.shape
    a, b = ours.mean(axis=1), theirs.mean(axis=1)
    influence = (ours - a[:, None]) / a[:, None] - (theirs - b[:, None]) / b[:, None]
    error = influence.std(axis=1, ddof=1) / np.sqrt(n)
    log = np.log(a / b)
    return Comparison(np.exp(log), np.exp(log - stdtrit(n - 1, 1 - 0.05 / cells) * error))


def against_best(ours: Floats, rivals: Floats) -> Comparison:  # (cells, repeats), (cells, rivals, repeats)
    """Against the rival of each setting that is best on the even repetitions, compared on the odd ones."""
    best = rivals[..., ::2].mean(axis=2).argmin(axis=1)
    chosen = rivals[np.arange(len(best)), best]
    return compare(ours[:, 1::2], chosen[:, 1::2])


def verdict(measured: dict[str, Any]) -> str:
    """Lines of Markdown: the first method against each other one, and against the best of all but the second."""
    mse = np.asarray(measured["mse"])  # (settings, epsilons, methods, repeats)
    methods = measured["methods"]
    flat = mse.reshape(-1, len(methods), mse.shape[-1])
    ours = flat[:, 0]
    head = f"{measured['split']} {measured['part']}, workload {measured['workload']}: {len(measured['settings'])}"
    counts = f"settings x {len(measured['epsilons'])} epsilons, {mse.shape[-1]} repetitions"
    lines = [
        f"{head} {counts}; {methods[0]} against others",
        "",
        "| against | error over theirs, geometric mean | times lower | at least 2x lower | least, most | higher |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for k, name in enumerate(methods[1:], start=1):
        lines.append(_row(name, compare(ours, flat[:, k]), 1.0))
    if len(methods) > 3:
        lines.append(_row("the best rival of each setting", against_best(ours, flat[:, 2:]), 1.25))
    return "\n".join(lines)


def _row(name: str, found: Comparison, line: float) -> str:
    twice = 100 * float((found.ratio <= 0.5).mean())
    spread = f"{found.ratio.min():.2f}, {found.ratio.max():.2f}"
    higher = f"{found.above(line)} of {found.ratio.size}" + ("" if line == 1 else f" (above {line:g})")
    return f"| {name} | {found.mean:.3f} | {1 / found.mean:.2f} | {twice:.0f} % | {spread} | {higher} |"


def main() -> None:
    """Print the verdicts of every file."""
    for name in sys.argv[1:]:
        print(verdict(json.loads(Path(name).read_text())), end="\n\n")


if __name__ == "__main__":
    main()
