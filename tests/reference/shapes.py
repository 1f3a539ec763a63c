"""Every shape against every estimate, one after the other: slow and obvious."""

from collections.abc import Sequence

import numpy as np

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellEstimates
from ahead_ldp.mechanisms.adaptive.shapes import bank


def log_likelihoods(given: Sequence[CellEstimates], size: int, total: float) -> np.ndarray:
    """Of all shapes of the ``size`` ordered codes, which hold ``total`` of the people."""
    log = np.zeros(len(bank()))
    for i, curve in enumerate(bank()):
        below = total * np.interp(np.arange(size + 1) / size, np.linspace(0, 1, curve.size), curve)
        for g in given:
            at = np.append(below, 1.0)[np.minimum(g.borders, size + 1)]
            log[i] -= 0.5 * float(g.precision @ (g.estimate - np.diff(at)) ** 2)
    return log
