"""How far an estimated distribution is from the true one: Wasserstein's and Kolmogorov's distance of every attribute.

With F the share of people up to each code, of d codes on a line of length 1, Wasserstein's distance W1 is the mean of
|F - F'| over the codes: how far people have to be moved, as a share of the whole range. Kolmogorov's and Smirnov's, KS,
is the largest of them: how wrong the worst "up to here" is. Both are of single attributes. A task of several has the
mean over those with an order.
"""

from __future__ import annotations

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import slices
from ahead_ldp.schema.arrays import Floats, Ints

Curves = dict[str, Floats]  # attribute -> share of people up to each of its codes but the last

METRICS = {"mse": "MSE", "wasserstein": "W1", "ks": "KS"}  # and what they are called in a narrow column
WRITTEN_OUT = {"mse": "mean squared error", "wasserstein": "Wasserstein distance", "ks": "Kolmogorov-Smirnov distance"}


def check_metric(metric: str) -> None:
    """A clear error for another name."""
    if metric not in METRICS:
        raise ValueError(f"expected metric to be one of {', '.join(METRICS)}, got {metric!r}")


def true_curves(schema: Schema, records: Ints | None, histogram: Ints | None) -> Curves:
    """The curve of every attribute that has an order and two codes; missing values stand nowhere in it."""
    curves = {}
    for place, a in enumerate(schema.attributes):
        if a.kind == "nominal" or a.ordered_size < 2:
            continue
        if records is not None:
            counts = np.bincount(records[:, place], minlength=a.size)
        else:
            assert histogram is not None
            counts = histogram.sum(axis=tuple(k for k in range(len(schema.sizes)) if k != place))
        curves[a.name] = np.cumsum(counts)[: a.ordered_size - 1] / counts.sum()
    return curves


def distances(estimate: Estimate, curves: Curves) -> tuple[float, float] | None:
    """W1 and KS, each the mean over the attributes; None if none of them has an order."""
    if not curves:
        return None
    found = []
    for name, true in curves.items():
        ends = np.arange(1.0, true.size + 1)
        below = slices(estimate.schema, name, np.zeros(ends.size), ends)
        gap = np.abs(estimate.answer(below, errors=False).values - true)
        found.append((gap.sum() / (true.size + 1), gap.max()))
    return float(np.mean([w1 for w1, _ in found])), float(np.mean([ks for _, ks in found]))
