"""Two ranges side by side: `age < 30 vs age >= 60`, with the interval of their difference."""

from __future__ import annotations

import re
from typing import Any

from ahead_ldp.estimates.answers import percent
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.schema.queries import parse_query
from ahead_ldp.service.dashboard.summaries import LEVEL
from ahead_ldp.service.rehearsal.people import Truth

_VERSUS = re.compile(r"\s(?:vs\.?|versus)\s", re.IGNORECASE)  # one space: several would be looked at again from each


def sides(text: str) -> tuple[str, str] | None:
    """The two queries of a comparison; None if the text is one query, or none."""
    try:
        parse_query(text)
    except ValueError:
        found = [side.strip() for side in _VERSUS.split(text)]
        return (found[0], found[1]) if len(found) == 2 and all(found) else None
    return None


def compared(estimate: Estimate, pair: tuple[str, str], truth: Truth | None = None) -> dict[str, Any]:
    """Both shares, and by how many points the first is above the second, with one interval from the reports."""
    first, second = estimate.ask(*pair).values.tolist()
    apart = estimate.weighted(list(pair), [[1.0, -1.0]])
    low, high = (float(side[0]) for side in apart.interval(LEVEL))
    more = float(apart.values[0])
    which = "more" if more >= 0 else "fewer"
    true = None if truth is None else truth.share(pair[0]) - truth.share(pair[1])
    query = f"{pair[0]} vs {pair[1]}"
    return {
        "query": query,
        "share": more,
        "low": low,
        "high": high,
        "text": f"{percent(first)} against {percent(second)}: {abs(100 * more):.2f} points {which}",
        "interval": f"{100 * low:+.2f} to {100 * high:+.2f} points",
        "picked": "",
        "notes": [_told(low, high), *apart.remarks()],
        "command": "",
        "truth": "" if true is None else f"{100 * true:+.2f} points",
    }


def _told(low: float, high: float) -> str:
    if low <= 0 <= high:
        return "The interval holds 0: from these answers nobody can tell which of the two is larger."
    return "The interval does not hold 0: the two can be told apart."
