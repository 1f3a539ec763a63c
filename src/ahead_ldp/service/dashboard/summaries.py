"""What was found, in sentences, each number with its interval.

A range or a category that is named because it stands out was picked by looking, so its interval holds for all that
could have been picked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.wording import Wording
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import slices
from ahead_ldp.schema.units import borders, text
from ahead_ldp.service.dashboard.axes import round_bins
from ahead_ldp.service.rehearsal.people import Truth

LEVEL = 0.95
_NAMED = 3  # categories in a sentence
_WANTED = 0.4  # of the people, in the range that is named
_BINS = 24


def level_among(count: int) -> float:
    """The level of one interval that was picked among so many, for all of them to hold at once (Bonferroni)."""
    return 1 - (1 - LEVEL) / max(count, 1)


def sentences(
    estimate: Estimate, attribute: Attribute, wording: Wording | None = None, truth: Truth | None = None
) -> list[str]:
    """The first thing to know about an attribute, then the rest of it; of a rehearsal the truth as well."""
    unit = f" {wording.unit}" if wording is not None and wording.unit else ""
    names = dict(zip(attribute.labels, wording.choices, strict=True)) if wording is not None and wording.choices else {}
    if attribute.kind == "nominal" or attribute.labels:
        return _categories(estimate, attribute, names, truth)
    if attribute.ordered_size < 2:
        return [f"Everybody who took part gave the one value of {attribute.name}."]
    return [*_range(estimate, attribute, unit, truth), *_quantiles(estimate, attribute, unit, truth)]


def about(share: float, low: float, high: float) -> str:
    """A share as people say it: digits as far as the interval bears them."""
    places = 0 if high - low >= 0.02 else 1 if high - low >= 0.002 else 2
    said = [f"{100 * x:.{places}f}" for x in (share, low, high)]
    return f"{said[0]} % ({said[1]} to {said[2]} %)"


def _one(answers: Answers, at: int, level: float) -> str:
    low, high = answers.interval(level)
    return about(float(answers.values[at]), float(low[at]), float(high[at]))


def _range(estimate: Estimate, a: Attribute, unit: str, truth: Truth | None) -> list[str]:
    """The narrowest round range that holds about two people in five."""
    ends, _ = round_bins(a, _BINS)
    first = ends.astype(np.float64)
    shares = estimate.answer(slices(estimate.schema, a.name, first[:-1], first[1:]), errors=False).values
    below = np.concatenate([[0.0], np.cumsum(shares)])
    wide = borders(a)[ends]
    found = [
        (wide[j] - wide[i], i, j)
        for i in range(ends.size - 1)
        for j in range(i + 1, ends.size)
        if below[j] - below[i] >= _WANTED
    ]
    _, i, j = min(found, default=(0, 0, ends.size - 1))
    workload = slices(estimate.schema, a.name, first[i : i + 1], first[j : j + 1])
    said = _one(estimate.answer_jointly(workload), 0, level_among((ends.size - 1) * ends.size // 2))
    lead = f"About {said} of the people have {a.name} from {text(a, wide[i])} to {end_of(a, float(wide[j]))}{unit}."
    return [lead, *([] if truth is None else [f"In truth it is {100 * truth.shares(workload)[0]:.1f} % of them."])]


def end_of(a: Attribute, border: float) -> str:
    """The end of a range, as people say it: the last value in it, or the border itself where buckets are wide."""
    if a.edges is not None and border <= a.hi and a.kind in ("integer", "real"):
        return f"below {text(a, border)}"
    return text(a, min(border - (a.kind != "real"), a.hi))


def _quantiles(estimate: Estimate, a: Attribute, unit: str, truth: Truth | None) -> list[str]:
    found = estimate.quantiles(a.name, (0.1, 0.5, 0.9))
    low, high = found.interval(LEVEL)
    said = [_between(a, *ends, unit) for ends in zip(found.values, low, high, strict=True)]
    true = [] if truth is None else [f"In truth the one in the middle has {truth.quantile_text(a.name, 0.5)}{unit}."]
    return [
        f"The one in the middle has {said[1]}: half of the people have less, half have more.",
        *true,
        f"One in ten has less than {said[0]}. One in ten has more than {said[2]}.",
    ]


def _between(a: Attribute, value: Any, low: Any, high: Any, unit: str) -> str:
    """A value with its interval; numbers in as many digits as the interval bears."""
    if a.kind not in ("integer", "real"):
        return f"{value}{unit} ({low} to {high})"
    wide = float(high) - float(low)
    places = 1 - math.floor(math.log10(wide)) if wide > 0 else 0
    middle = round(float(value), min(places, 0) if a.kind == "integer" else places)
    last = float(high) + (a.kind == "integer" and a.edges is not None and high < a.hi)
    return f"{text(a, middle)}{unit} ({text(a, float(low))} to {text(a, last)})"


def _categories(estimate: Estimate, a: Attribute, names: dict[str, str], truth: Truth | None) -> list[str]:
    first = np.arange(len(a.labels), dtype=np.float64)
    workload = slices(estimate.schema, a.name, first, first + 1)
    answers = estimate.answer_jointly(workload)
    order = np.argsort(-answers.values, kind="stable")[:_NAMED].tolist()
    level = level_among(len(a.labels))
    said = [(f"“{names.get(a.labels[i], a.labels[i])}”", _one(answers, i, level)) for i in order]
    (most, share), *others = said
    lead = "Most people chose" if answers.values[order[0]] > 0.5 else "The most frequent answer is"
    then = (
        [f"Then {'come' if len(others) > 1 else 'comes'} " + " and ".join(f"{name}, {x}" for name, x in others) + "."]
        if others
        else []
    )
    if truth is not None:
        true = truth.shares(workload)
        shares = " and ".join(f"{name} {100 * true[i]:.1f} %" for (name, _), i in zip(said, order, strict=True))
        then.append(f"In truth {shares}.")
    return [f"{lead} {most}: about {share} of the people.", *then]
