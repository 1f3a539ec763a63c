"""Times of the published code, measured on other days; none of that code is part of this project.

AHEAD: https://github.com/link-zju/ccs21-AHEAD at b3f4dcd; HDG: https://github.com/YangJianyu-bupt/privmdr at 8a8a619.
One repetition on one core, N = 10^6: build, and 200 random queries. Measured again on a busy machine, AHEAD in one
attribute with |D| = 1024 took 7.3 and 0.55 CPU seconds; ratios are to the smaller figures.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Seconds of one repetition."""

    build_s: float
    queries_s: float


AHEAD_1D = Published(3.3, 0.22)
LLE_5D = Published(5.8, 279.0)
HDG_5D = Published(1.8, 6.5)
NOTE = (
    "Published: the authors' code as it was measured on another day, one core, N = 10^6, 200 queries "
    "(benchmarks/published.py names the commits). The ratio is no side-by-side comparison."
)
