"""What analysts see: answers of the closed waves, always with their uncertainty, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahead_ldp.estimates.answers import BIAS_NOTE, INCONSISTENT_NOTE, plain, records
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.protocol.session import Session, environment

_MOST_BINS = 256
STORED_NOTE = (
    "Read from the stored questions alone: this program does not have the campaign's method as it was. Intervals are "
    "wider than the method's own and need none of its assumptions."
)


def overview(session: Session, estimate: Estimate, level: float = 0.95) -> dict[str, Any]:
    """Method, people, chain, and the distribution of every attribute."""
    return {
        "method": session.mechanism.record()["name"],
        "people": _people(estimate),
        "waves": len(session.history),
        "complete": session.mechanism.computes and session.estimate is not None,
        "consistent": estimate.consistent,
        "frozen": session.frozen,
        "level": level,
        "environment": environment(),
        "attributes": [_attribute(estimate, a, level) for a in estimate.schema.attributes],
        "notes": notes(session, estimate),
    }


def _attribute(estimate: Estimate, attribute: Any, level: float) -> dict[str, Any]:
    bins = None if attribute.kind == "nominal" or attribute.size <= _MOST_BINS else _MOST_BINS
    histogram = estimate.histogram(attribute.name, bins).records(level)
    return {"name": attribute.name, "kind": attribute.kind, "codes": attribute.size, "histogram": histogram}


def answer_queries(session: Session, estimate: Estimate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answers to text queries, curves, histograms, quantiles and means; a bad query is a ``ValueError``."""
    level = float(asked["level"])
    queries = {}
    if asked["queries"]:
        queries["queries"] = estimate.ask(*asked["queries"], snap=asked["snap"]).records(level)
    return {
        "people": _people(estimate),
        "waves": len(session.history),
        "level": level,
        **queries,
        "cdf": {name: estimate.cdf(name).records(level) for name in asked["cdf"]},
        "histograms": {
            h["attribute"]: estimate.histogram(h["attribute"], h["bins"]).records(level) for h in asked["histograms"]
        },
        "quantiles": {
            q["attribute"]: records(estimate.quantiles(q["attribute"], q["levels"]).columns(level))
            for q in asked["quantiles"]
        },
        "means": {name: _mean(estimate, name, level) for name in asked["means"]},
        "consistent": estimate.consistent,
        "notes": notes(session, estimate),
    }


def _mean(estimate: Estimate, attribute: str, level: float) -> dict[str, Any]:
    mean = estimate.mean(attribute)
    low, high = mean.interval(level)
    numbers = {"value": mean.value, "standard_error": mean.standard_error, "low": low, "high": high}
    return {key: plain(value) for key, value in numbers.items()} | {"bias_not_included": bool(mean.bias_not_included)}


def _people(estimate: Estimate) -> int:
    assert estimate.provenance is not None
    return estimate.provenance.people


def notes(session: Session, estimate: Estimate) -> list[str]:
    """What whoever reads the answers has to know about them."""
    said = [BIAS_NOTE.removeprefix("* "), "Errors are about the people who took part, not about who they stand for."]
    said += [] if estimate.consistent else [INCONSISTENT_NOTE]
    return said if session.mechanism.computes else [STORED_NOTE, *said]
