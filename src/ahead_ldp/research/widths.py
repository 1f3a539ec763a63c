"""The width of what will be printed: strict intervals on reference populations, by the kind of question.

Strict intervals come from the reports alone and are wider than an estimate's own error, so a plan says both. Half a
width stands for the reach to either side. That of a quantile is a share of the attribute's range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import slices
from ahead_ldp.research.evaluation import workload_rng
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.workloads import Workload, random_workload

Kind = Literal["range", "code", "quantile"]

KINDS: tuple[Kind, ...] = ("range", "code", "quantile")
LEVEL = 0.95
WIDTH_REPEATS = 2  # of a simulation: widths scatter far less than errors
_RANGES = {1: 8}  # random ranges of one attribute; of more, whose bounds take longer:
BOXES = 4
_CODES = 6  # of all attributes together, the heaviest first
_LEVELS = (0.25, 0.5, 0.75)
QUANTILES = 2  # attributes whose quartiles are looked at


def half_widths(estimate: Estimate, shares: Sequence[Floats], kind: Kind, seed: int) -> Floats:
    """Half the widths of the intervals that some questions of a kind would be printed with.

    ``shares`` are the people's at the codes of each attribute: heavy codes are what is asked for. There are none of a
    kind that the attributes do not have.
    """
    if kind == "quantile":
        return _of_quantiles(estimate)
    if kind == "code":
        return np.concatenate([np.empty(0), *(_of(estimate, w) for w in _single_codes(estimate, shares))])
    sizes = estimate.schema.sizes
    return _of(estimate, random_workload(sizes, _RANGES.get(len(sizes), BOXES), workload_rng(seed)))


def means(found: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    """The mean of each list; None where it is empty."""
    return {name: float(np.mean(values)) if len(values) else None for name, values in found.items()}


def _of(estimate: Estimate, workload: Workload) -> Floats:
    low, high = estimate.answer_jointly(workload).interval(LEVEL)
    return (high - low) / 2


def _single_codes(estimate: Estimate, shares: Sequence[Floats]) -> list[Workload]:
    """Of every attribute with several codes: the heaviest ones, and as many evenly spread."""
    names = [name for name, size in zip(estimate.schema.names, estimate.schema.sizes, strict=True) if size > 1]
    each, workloads = max(1, _CODES // (2 * max(len(names), 1))), []
    for name in names:
        own = shares[estimate.schema.index(name)]
        heavy, even = np.argsort(-own, kind="stable")[:each], (np.arange(each) + 0.5) / each * own.size
        codes = np.unique(np.concatenate([heavy, even.astype(np.int64)])).astype(float)
        workloads.append(slices(estimate.schema, name, codes, codes + 1))
    return workloads


def _of_quantiles(estimate: Estimate) -> Floats:
    found = [np.empty(0)]
    ordered = [a for a in estimate.schema.attributes if a.kind != "nominal" and a.ordered_size > 1]
    for a in ordered[:QUANTILES]:
        strict = estimate.quantiles(a.name, _LEVELS).strict
        if strict is not None:
            first, last = strict.codes(LEVEL)
            found.append((last - first) / a.ordered_size / 2)
    return np.concatenate(found)
