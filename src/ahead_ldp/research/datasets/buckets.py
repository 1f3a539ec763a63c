"""From values to buckets: the paper's rule, recovered from its printed correlations, and equal slots.

The paper prints no formula. ``floor((x - min) / (max - min) * (D - 1))``, with 0 for missing values and the bounds of
the whole column, gives the correlations of its Tables 4 and 5 to all printed digits on the first 1,000 rows. The last
bucket then holds the maximum alone. Such bounds are read from the data: for experiments, never for a collection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.schema.arrays import Floats, Ints


def paper_buckets(values: NDArray[Any], d: int) -> Ints:
    """Codes 0..d-1 of a column by the paper's rule."""
    x = np.nan_to_num(numbers(values), nan=0.0)
    low, high = float(x.min()), float(x.max())
    if not high > low:
        return np.zeros(x.size, np.int64)
    return np.floor((x - low) / (high - low) * (d - 1)).astype(np.int64)


def equal_slots(values: NDArray[Any], low: float, high: float, d: int) -> Ints:
    """Codes 0..d-1 of the values in low..high, d slots of one length; the others are dropped."""
    x = numbers(values)
    x = x[(x >= low) & (x <= high)]
    return np.minimum(np.floor((x - low) / (high - low) * d), d - 1).astype(np.int64)


def numbers(values: NDArray[Any]) -> Floats:
    """A column as numbers; what is none ("Not Provided", an empty cell) is NaN."""
    if values.dtype.kind in "iuf":
        return np.asarray(values, np.float64)
    found = np.full(values.size, np.nan)
    for i, value in enumerate(values.tolist()):
        try:
            found[i] = float(value)
        except (TypeError, ValueError):
            continue
    return found
