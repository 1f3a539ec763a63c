"""What was found, in sentences, each number with its interval.

A range or a category that is named because it stands out was picked by looking, so its interval holds for all that
could have been picked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.wording import Wording
from ahead_ldp.estimates.answers import Answers, about
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import slices
from ahead_ldp.schema.units import borders, text
from ahead_ldp.service.dashboard.axes import round_bins
from ahead_ldp.service.rehearsal.people import Truth

LEVEL = 0.95
_NAMED = 3  # categories in a sentence
_WANTED = 0.4  # of the people, in the range that is named
_ROUGH = 0.5  # an interval that is longer says little: the middle, which is known better, then comes first
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
    within, rough = _range(estimate, attribute, unit, wording, truth)
    half, tenths = _quantiles(estimate, attribute, unit, truth)
    rest = [*tenths, *_average(estimate, attribute, unit, truth)]
    return [*half, *within, *rest] if rough else [*within, *half, *rest]


def _one(answers: Answers, at: int, level: float) -> str:
    low, high = answers.interval(level)
    return about(float(answers.values[at]), float(low[at]), float(high[at]))


def _range(
    estimate: Estimate, a: Attribute, unit: str, wording: Wording | None, truth: Truth | None
) -> tuple[list[str], bool]:
    """The narrowest round range that holds about two people in five, and whether its share is hardly known."""
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
    answers, level = estimate.answer_jointly(workload), level_among((ends.size - 1) * ends.size // 2)
    said, (low, high) = _one(answers, 0, level), (float(side[0]) for side in answers.interval(level))
    subject = a.name if wording is None else "the answer"  # the question stands above
    lead = f"For about {said} of the people, {subject} is {text(a, wide[i])} to {end_of(a, float(wide[j]))}{unit}."
    true = [] if truth is None else [f"In truth it is {100 * truth.shares(workload)[0]:.1f} % of them."]
    return [lead, *true], high - low > _ROUGH


def end_of(a: Attribute, border: float) -> str:
    """The end of a range, as people say it: the last value in it, or the border itself where buckets are wide."""
    if a.edges is not None and border <= a.hi and a.kind in ("integer", "real"):
        return f"below {text(a, border)}"
    return text(a, min(border - (a.kind != "real"), a.hi))


def _quantiles(estimate: Estimate, a: Attribute, unit: str, truth: Truth | None) -> tuple[list[str], list[str]]:
    """Where the middle lies, and where the outer tenths begin."""
    said = [f"{value}{unit} ({span})" for value, span in quantile_texts(estimate, a, (0.1, 0.5, 0.9))]
    before, after = ("before", "after") if a.kind in ("date", "time", "datetime") else ("below", "above")
    true = [] if truth is None else [f"In truth half are {before} {truth.quantile_text(a.name, 0.5)}{unit}."]
    half = f"Half of the people are {before} {said[1]}, and half {after}."
    return [half, *true], [f"One in ten is {before} {said[0]}. One in ten is {after} {said[2]}."]


def _average(estimate: Estimate, a: Attribute, unit: str, truth: Truth | None) -> list[str]:
    """The average of numbers; days and times have none that people speak of."""
    if a.kind not in ("integer", "real"):
        return []
    mean = estimate.mean(a.name)
    low, high = (float(end) for end in mean.interval(LEVEL))
    said = [text(a, number, (high - low) / 4) for number in (mean.number, low, high)]
    true = [] if truth is None else [f"In truth it is {text(a, truth.mean(a.name), (high - low) / 4)}{unit}."]
    return [f"The average is {said[0]}{unit} ({said[1]} to {said[2]}).", *true]


def quantile_texts(estimate: Estimate, a: Attribute, levels: Sequence[float]) -> list[tuple[str, str]]:
    """Where shares of the people end, each with its interval, as people say them."""
    return [(at, f"{low} to {high}") for at, low, high in estimate.quantiles(a.name, levels).about(LEVEL)]


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
