"""What analysts see: answers of the closed waves, always with their uncertainty, as plain data.

Intervals are strict unless the model's are asked for. A strict one takes milliseconds, so a distribution or a curve
has at most ``MOST_BINS`` of them unless more bins are asked for, and distributions are kept for as long as the
estimate is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import Answers, Kind, plain, records
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.quantiles import Mean
from ahead_ldp.protocol.session import Session, environment

MOST_BINS = 64
STORED_NOTE = (
    "Read from the stored questions alone: this program does not have the campaign's method as it was. Intervals are "
    "wider than the method's own and need none of its assumptions."
)
PEOPLE_NOTE = "Errors are about the people who took part, not about who they stand for."

Distributions = list[dict[str, Any]]  # of each attribute, as plain data: answers would keep their estimate in memory
_KEPT: WeakKeyDictionary[Estimate, dict[tuple[float, Kind], Distributions]] = WeakKeyDictionary()
_MOST_KEPT = 4  # levels and kinds of intervals of one estimate


def overview(session: Session, estimate: Estimate, level: float = 0.95, kind: Kind = "strict") -> dict[str, Any]:
    """Method, people, chain, and the distribution of every attribute."""
    attributes = _distributions(estimate, level, kind)
    return {
        "method": session.mechanism.record()["name"],
        "people": _people(estimate),
        "waves": len(session.history),
        "complete": session.mechanism.computes and session.estimate is not None,
        "consistent": estimate.consistent,
        "frozen": session.frozen,
        "level": level,
        "intervals": kind,
        "environment": environment(),
        "attributes": attributes,
        "notes": _notes(session, (note for a in attributes for note in a["notes"])),
    }


def _distributions(estimate: Estimate, level: float, kind: Kind) -> Distributions:
    kept = _KEPT.setdefault(estimate, {})
    made = kept.get((level, kind))
    if made is None:
        made = kept[level, kind] = [_attribute(estimate, a, level, kind) for a in estimate.schema.attributes]
        for oldest in list(kept)[:-_MOST_KEPT]:
            kept.pop(oldest, None)
    return made


def _attribute(estimate: Estimate, attribute: Attribute, level: float, kind: Kind) -> dict[str, Any]:
    answers = estimate.histogram(attribute.name, _bins(attribute))
    about = {"name": attribute.name, "kind": attribute.kind, "codes": attribute.size}
    return {**about, "histogram": answers.records(level, kind), "notes": answers.remarks(level, kind)}


def _bins(attribute: Attribute) -> int | None:
    """Every category, and every bucket unless there are many."""
    return None if attribute.kind == "nominal" or attribute.size <= MOST_BINS else MOST_BINS


def answer_queries(session: Session, estimate: Estimate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answers to text queries, curves, histograms, quantiles and means; a bad query is a ``ValueError``."""
    level, kind = float(asked["level"]), asked["intervals"]
    queries = estimate.ask(*asked["queries"], snap=asked["snap"]) if asked["queries"] else None
    curves = {name: estimate.cdf(name, MOST_BINS) for name in asked["cdf"]}
    histograms = {h["attribute"]: _histogram(estimate, **h) for h in asked["histograms"]}
    quantiles = {q["attribute"]: estimate.quantiles(q["attribute"], q["levels"]) for q in asked["quantiles"]}
    means = {name: estimate.mean(name) for name in asked["means"]}
    shares = [*([] if queries is None else [queries]), *curves.values(), *histograms.values()]
    notes = [note for answers in shares for note in answers.remarks(level, kind)]
    notes += [note for found in quantiles.values() for note in found.notes(level, kind)]
    notes += [note for found in means.values() for note in found.notes(level, kind)]
    return {
        "people": _people(estimate),
        "waves": len(session.history),
        "level": level,
        "intervals": kind,
        **({} if queries is None else {"queries": queries.records(level, kind)}),
        "cdf": {name: answers.records(level, kind) for name, answers in curves.items()},
        "histograms": {name: answers.records(level, kind) for name, answers in histograms.items()},
        "quantiles": {name: records(found.columns(level, kind)) for name, found in quantiles.items()},
        "means": {name: _mean(found, level, kind) for name, found in means.items()},
        "consistent": estimate.consistent,
        "notes": _notes(session, notes),
    }


def _histogram(estimate: Estimate, attribute: str, bins: int | None) -> Answers:
    schema = estimate.schema
    return estimate.histogram(attribute, bins or _bins(schema.attributes[schema.index(attribute)]))


def _mean(mean: Mean, level: float, kind: Kind) -> dict[str, Any]:
    low, high = mean.interval(level, kind)
    numbers = {"value": mean.value, "standard_error": mean.standard_error, "low": low, "high": high}
    return {key: plain(value) for key, value in numbers.items()} | {"bias_not_included": bool(mean.bias_not_included)}


def _people(estimate: Estimate) -> int:
    assert estimate.provenance is not None
    return estimate.provenance.people


def _notes(session: Session, notes: Iterable[str]) -> list[str]:
    """Each once, in order, and what holds for all."""
    said = [*dict.fromkeys(note.removeprefix("* ") for note in notes), PEOPLE_NOTE]
    return said if session.mechanism.computes else [STORED_NOTE, *said]
