"""Round numbers for people: where an axis has its marks, and where the bars of a picture begin and end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.wording import Wording
from ahead_ldp.estimates.slices import equal_blocks
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.units import borders, numbers_at, text

_TICKS = 6
_LETTERS = 42  # of the labels along an axis
_MOST_NAMED, _LONGEST = 8, 9  # categories with a name at an axis, and the letters of a name
_LONGEST_OF_FEW, _ROOM_OF_FEW = 16, 1.35  # there are few gaps between few names
_DAY_STEPS = (1, 7, 14)  # days; months and years come after these
_CLOCK_STEPS = (1, 5, 15, 60, 300, 900, 3600, 7200, 10800, 21600, 43200, 86400)  # seconds


def ticks(attribute: Attribute, room: float = 1.0, words: Wording | None = None) -> list[tuple[float, str]]:
    """Places along the codes, 0 to 1, and what stands there in the user's units; categories at their middle.

    ``room`` is how much of a picture's usual width there is. Few categories have room for longer names.
    """
    n = attribute.ordered_size
    if attribute.labels:
        codes = np.unique(np.linspace(0, n - 1, min(n, _MOST_NAMED)).astype(int))
        names = words.choices if words is not None and words.choices else attribute.labels
        most = min(max(_LONGEST, int(_ROOM_OF_FEW * _LETTERS * room / codes.size)), _LONGEST_OF_FEW)
        return [((c + 0.5) / n, short(names[c], most)) for c in codes.tolist()]
    known = borders(attribute)
    low, high = float(known[0]), float(min(known[-1], attribute.hi))
    for count in (_TICKS, 4, 3, 2):  # long labels need room
        marks = _round_marks(attribute, low, high, count)
        said = _said(attribute, marks)
        if len(marks) >= 2 and sum(map(len, said)) + 2 * len(said) <= _LETTERS * room:
            places = np.interp(marks, known, np.arange(known.size)) / n
            return list(zip(places.tolist(), said, strict=True))
    ends = numbers_at(attribute, np.array([0.0, n]))
    return [(0.0, text(attribute, ends[0])), (1.0, text(attribute, min(ends[1], attribute.hi)))]


def _said(attribute: Attribute, marks: Sequence[float]) -> list[str]:
    """What stands at marks; days that begin years are the years."""
    said = [text(attribute, x) for x in marks]
    years = attribute.kind == "date" and all(each.endswith("-01-01") for each in said)
    return [each.removesuffix("-01-01") for each in said] if years else said


def _round_marks(attribute: Attribute, low: float, high: float, most: int) -> list[float]:
    for step in _steps(attribute, high - low):
        marks = _multiples(attribute, step, low, high)
        if len(marks) <= most:
            return marks
    return []


def _steps(attribute: Attribute, span: float) -> Iterator[float]:
    """Round steps, small ones first; negative ones are months."""
    if attribute.kind == "date":
        yield from _DAY_STEPS
        yield from (-1, -3, -6, *(-12 * years for years in (1, 2, 5, 10, 20, 50, 100)))
    elif attribute.kind in ("time", "datetime"):
        yield from _CLOCK_STEPS
        yield from (86400.0 * days for days in (2, 7, 14, 30, 90, 365, 3650))
    else:
        power = math.floor(math.log10(max(span, 1e-9) / 1000))
        for exponent in range(power, power + 7):
            for factor in (1, 2, 5):
                step = factor * 10.0**exponent
                if attribute.kind == "real" or step >= 1:
                    yield step


def _multiples(attribute: Attribute, step: float, low: float, high: float) -> list[float]:
    if attribute.kind == "date" and step < 0:
        months = np.arange(
            np.datetime64(int(low), "D").astype("M8[M]"),
            np.datetime64(int(high) + 1, "D").astype("M8[M]") + np.timedelta64(1, "M"),
        )
        kept = [m for m in months if (12 * 1970 + int(m.astype(int))) % int(-step) == 0]
        days = [float(m.astype("M8[D]").astype(int)) for m in kept]
        return [day for day in days if low <= day <= high]
    if (high - low) / step > 1000:
        return list(np.zeros(1001))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def round_bins(attribute: Attribute, most: int) -> tuple[Ints, float]:
    """Borders of at most ``most`` bins of codes at round numbers, both ends included, and the step between them.

    Where no round step fits the buckets, bins have equally many of them, and the step is 0.
    """
    n = attribute.ordered_size
    if attribute.labels:
        return np.arange(n + 1), 0.0
    known = borders(attribute)
    low, high = float(known[0]), float(known[-1])
    top = high if attribute.edges is None else float(attribute.hi)
    for step in _steps(attribute, high - low):
        marks = np.array(_multiples(attribute, step, low, high))
        if not 2 <= marks.size <= most + 1:
            continue
        at = np.where(marks >= top, n, np.minimum(np.searchsorted(known, marks), n))
        fits = np.isclose(known[at], marks, rtol=0, atol=1e-9 * max(abs(low), abs(high), 1.0))
        if (fits | (marks >= top)).all():  # the largest value ends the last bin, which holds it
            ends = _without_slivers(known, np.unique(np.concatenate([[0], at, [n]])))
            if ends.size - 1 <= most:
                return ends.astype(np.int64), max(step, 0.0)
    return equal_blocks(n, most), 0.0


def _without_slivers(known: Floats, ends: Ints) -> Ints:
    """Borders of which the first and the last leave no bin that is less than half as wide as its neighbour."""
    if ends.size > 3 and known[ends[1]] - known[ends[0]] < 0.5 * (known[ends[2]] - known[ends[1]]):
        ends = np.delete(ends, 1)
    if ends.size > 3 and known[ends[-1]] - known[ends[-2]] < 0.5 * (known[ends[-2]] - known[ends[-3]]):
        ends = np.delete(ends, -2)
    return ends


def coarser(attribute: Attribute, bins: int) -> Iterator[tuple[Ints, float]]:
    """Bins that become fewer and fewer: each at most about half as many as those before."""
    while bins > 3:
        ends, step = round_bins(attribute, bins // 2)
        yield ends, step
        bins = min(ends.size - 1, bins // 2)


def widths(attribute: Attribute, ends: Ints) -> Floats:
    """How wide bins are in the attribute's own numbers."""
    return np.diff(borders(attribute)[ends])


def short(name: str, most: int) -> str:
    """A name that fits, with a mark where it was cut."""
    return name if len(name) <= most else name[: most - 1] + "…"
