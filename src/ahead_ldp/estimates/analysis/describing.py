"""What is said first of a numeric attribute: how far people lie apart, and how unequally a total is shared out."""

from __future__ import annotations

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Findings

SAID = {
    "std": "standard deviation",
    "gini": "Gini coefficient",
    "top": "what the tenth with the most holds of the total",
    "bottom": "what the half with the least holds of the total",
    "poor": "people below six tenths of the median",
}


def has_total(attribute: Attribute) -> bool:
    """Whether shares of a total make sense: numbers that are not negative."""
    return attribute.kind in ("integer", "real") and attribute.lo >= 0 < attribute.hi


def described(estimate: Estimate, attribute: Attribute) -> dict[str, Findings]:
    """The findings of one numeric attribute, by the names in ``SAID``; intervals are worked out when they are read."""
    name = attribute.name
    found = {"std": estimate.std(name)}
    if has_total(attribute):
        found |= {"gini": estimate.gini(name), "top": estimate.top_share(name, [0.1])}
        found |= {"bottom": estimate.lorenz(name, [0.5]), "poor": estimate.below_median(name)}
    return found


def numeric(estimate: Estimate, name: str | None = None) -> list[Attribute]:
    """The attributes that can be described: the one that is named, or all that are numeric."""
    chosen = [a for a in estimate.schema.attributes if name in (None, a.name) and not a.labels]
    if not chosen:
        known = [a.name for a in estimate.schema.attributes if not a.labels]
        raise ValueError(f"expected a numeric attribute ({', '.join(known) or 'there is none'}), got {name!r}")
    return chosen


def related(estimate: Estimate, first: str, second: str) -> dict[str, Findings]:
    """What ties two attributes together."""
    if first == second:
        raise ValueError("expected two attributes, got one of them twice")
    numbers = [not estimate._attribute(name, ordered=False).labels for name in (first, second)]
    found = {"correlation": estimate.correlation(first, second)} if all(numbers) else {}
    return {**found, "mutual_information": estimate.mutual_information(first, second)}
