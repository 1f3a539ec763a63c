"""Workloads that slice a domain along one or two attributes, and the curves that come of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.estimates.solvers.norm_sub import nearest_in_simplex
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.coding import bucket_label
from ahead_ldp.schema.units import borders, buckets, numbers_of, positions, text
from ahead_ldp.schema.workloads import Workload

Shares = Callable[[Workload], Floats]

_CELLS = 2**22  # of a marginal or of a joint distribution, at most: their boxes take 64 MB an attribute
_ROUNDING = 1e-12  # a total below this is rounding


def slices(schema: Schema, name: str, lo: Floats, hi: Floats) -> Workload:
    """One query for each pair of positions of an attribute; the others are unrestricted."""
    boxes = np.zeros((lo.size, len(schema.sizes), 2))
    boxes[..., 1] = schema.sizes
    boxes[:, schema.index(name)] = np.stack([lo, np.maximum(lo, hi)], axis=1)
    return Workload(schema.sizes, boxes, np.arange(lo.size), lo.size)


def cells(schema: Schema, names: Sequence[str]) -> tuple[Workload, Ints]:
    """Every combination of codes of some attributes, the last fastest, and the codes (attributes, cells)."""
    places = [schema.index(name) for name in names]
    if len(set(places)) != len(places):
        raise ValueError(f"expected different attributes, got {', '.join(names)}")
    sizes = [schema.sizes[i] for i in places]
    if prod(sizes) > _CELLS:
        raise ValueError(f"expected at most {_CELLS} cells of {', '.join(names)}, got {prod(sizes)}")
    index = np.indices(sizes).reshape(len(sizes), -1)
    boxes = np.zeros((index.shape[1], len(schema.sizes), 2))
    boxes[..., 1] = schema.sizes
    for place, codes in zip(places, index, strict=True):
        boxes[:, place] = np.stack([codes, codes + 1], axis=1)
    return Workload(schema.sizes, boxes, np.arange(len(boxes)), len(boxes)), index


def blocks(size: int, most: int) -> Ints:
    """Borders of at most ``most`` blocks of codes, as equal as possible, both ends included."""
    count = min(size, most)
    return np.arange(count + 1) * size // count


def equal_blocks(size: int, most: int) -> Ints:
    """Borders of at most ``most`` blocks of codes, all of one length but for the last, both ends included."""
    return np.append(np.arange(0, size, -(-size // most)), size)


def neighbours(n: int, most: int) -> Ints:  # -> (n,)
    """The group of each of n queries, when neighbours are put into at most ``most`` groups."""
    return np.arange(n) * min(n, most) // max(n, 1)


def taken_together(workload: Workload, weights: Floats, most: int) -> tuple[Workload, Floats]:  # (k, n) -> (k, groups)
    """At most ``most`` queries that are sums of neighbouring ones, and the average weight of each."""
    groups = neighbours(workload.n, most)
    merged = Workload(workload.sizes, workload.boxes, groups[workload.owner], int(groups[-1]) + 1)
    return merged, np.stack([np.bincount(groups, weights=row) for row in weights]) / np.bincount(groups)


def covariance(errors: Callable[[Workload], Floats], workload: Workload) -> Floats:  # -> (n, n)
    """Covariances of answers from standard errors alone: Cov(a, b) = (Var(a + b) - Var(a) - Var(b)) / 2."""
    own = errors(workload) ** 2
    first, second = np.triu_indices(workload.n, 1)
    both = errors(_sums_of_two(workload, first, second)) ** 2
    matrix = np.diag(own)
    matrix[first, second] = matrix[second, first] = (both - own[first] - own[second]) / 2
    return matrix


def _sums_of_two(workload: Workload, first: Ints, second: Ints) -> Workload:
    """One query for the sum of each two."""
    order = np.argsort(workload.owner, kind="stable")
    counts = np.bincount(workload.owner, minlength=workload.n)
    starts = np.cumsum(counts) - counts
    picked, owner = [], []
    for side in (first, second):
        length = counts[side]
        offset = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        picked.append(order[np.repeat(starts[side], length) + offset])
        owner.append(np.repeat(np.arange(side.size), length))
    return Workload(workload.sizes, workload.boxes[np.concatenate(picked)], np.concatenate(owner), first.size)


def monotone(shares: Floats) -> Floats:
    """A cumulative curve that rises from 0 to 1: midway between its running maximum and minimum, then scaled.

    Where it rises already only the scale changes.
    """
    clipped = np.maximum(shares, 0.0)
    upper = np.maximum.accumulate(clipped)
    lower = np.minimum.accumulate(clipped[::-1])[::-1]
    curve = (upper + lower) / 2
    curve = curve - curve[0]
    return curve / curve[-1] if curve[-1] > _ROUNDING else np.linspace(0.0, 1.0, shares.size)


def crossed_curve(
    shares: Shares, schema: Schema, a: Attribute, levels: Floats, most: int = 1024
) -> tuple[Floats, Floats]:
    """Positions of an attribute, and the monotone share of people below each; fine where a level is crossed."""
    places = blocks(a.ordered_size, most).astype(float)
    while True:
        curve = monotone(shares(slices(schema, a.name, np.zeros(places.size), places)))
        right = np.clip(np.searchsorted(curve, levels), 1, places.size - 1)
        lo, hi = places[right - 1], places[right]
        wide = hi - lo > 1
        if not wide.any():
            return places, curve
        finer = [np.round(np.linspace(x, y, 65)) for x, y in zip(lo[wide], hi[wide], strict=True)]
        places = np.unique(np.concatenate([places, *finer]))


def around_levels(places: Floats, curve: Floats, levels: Floats, error: Floats, most: int = 20) -> Floats:
    """Places where the curve is within five errors of a level, at most so many for each, with the crossings."""
    chosen = [np.interp(levels, curve, places)]
    for level, e in zip(levels, error, strict=True):
        first, last = np.interp([level - 5 * e, level + 5 * e], curve, places)
        inside = places[(places >= first) & (places <= last)]
        chosen.append(inside[np.unique(np.linspace(0, inside.size - 1, min(most, inside.size)).astype(np.int64))])
        chosen.append(np.array([first, last]))
    return np.unique(np.concatenate(chosen))


def joint_shares(shares: Shares, schema: Schema, at_once: int = 2**18) -> Floats:  # -> (cells,)
    """The share of people in every combination of codes, the last attribute fastest."""
    sizes, parts = schema.sizes, []
    if prod(sizes) > _CELLS:
        raise ValueError(
            f"expected at most {_CELLS} combinations of codes to sample from, got {prod(sizes)}: "
            "use fewer buckets or attributes, or the marginals of one or two attributes"
        )
    for start in range(0, prod(sizes), at_once):
        index = np.stack(np.unravel_index(np.arange(start, min(start + at_once, prod(sizes))), sizes), axis=1)
        parts.append(shares(Workload.from_codes(schema, np.stack([index, index], axis=-1))))
    return np.concatenate(parts)


def proper(shares: Floats) -> Floats:
    """Shares that are non-negative and sum to 1. Only where some are negative does more than the scale change."""
    total = float(shares.sum())
    if total <= _ROUNDING:
        return np.full(shares.size, 1 / shares.size)
    kept = nearest_in_simplex(shares, total) if (shares < 0).any() else shares
    return kept / kept.sum()


def histogram_bins(
    attribute: Attribute, bins: int | Sequence[Any] | NDArray[Any] | None
) -> tuple[Floats, Floats, NDArray[Any]]:
    """Positions where the bins begin and end, and what each is called."""
    a = attribute
    if bins is None:
        codes = np.arange(a.size, dtype=np.float64)
        if a.size > _CELLS:
            raise ValueError(f"expected bins for the {a.size} codes of {a.name}, got none")
        labels = [bucket_label(a, c) for c in range(a.size)]
        return codes, codes + 1, np.array(labels, object)
    if isinstance(bins, int | np.integer):
        if bins < 1:
            raise ValueError(f"expected bins >= 1, got {bins}")
        ends = blocks(a.ordered_size, int(bins))
        lo, hi = ends[:-1].astype(float), ends[1:].astype(float)
        numbers = np.append(buckets(a, ends[:-1])[0], borders(a)[-1:] if a.edges else a.ordered_size + float(a.lo))
    else:
        numbers = numbers_of(a, bins)
        if numbers.size < 2 or (np.diff(numbers) <= 0).any():
            raise ValueError(f"expected at least two rising borders of bins of {a.name}, got {list(bins)!r}")
        at = positions(a, numbers)
        if a.kind == "real" and numbers[-1] >= a.hi:
            at[-1] = a.ordered_size
        elif a.kind != "real":  # the last bin holds its upper border
            numbers[-1] += 1
            at[-1] = positions(a, numbers[-1:])[0]
        lo, hi = at[:-1], at[1:]
    return lo, hi, bin_labels(a, numbers)


def bin_labels(a: Attribute, numbers: Floats) -> NDArray[Any]:
    """What bins between rising borders are called."""
    names = []
    for i, (first, end) in enumerate(pairwise(numbers.tolist())):
        if a.kind == "real":
            names.append(f"[{text(a, first)}, {text(a, end)}{']' if i == numbers.size - 2 else ')'}")
            continue
        low, high = text(a, first), text(a, end - 1)
        names.append(low if low == high else f"{low}..{high}")
    return np.array(names, object)
