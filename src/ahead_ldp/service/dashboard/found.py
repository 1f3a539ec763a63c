"""What the pages of analyses show: for each question a lead, sentences, pictures, tables and notes, as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.wording import Wording
from ahead_ldp.estimates.analysis.describing import SAID, described, has_total, related
from ahead_ldp.estimates.analysis.differences import ChangeTest, Difference
from ahead_ldp.estimates.analysis.series import Series
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Findings
from ahead_ldp.estimates.slices import proper
from ahead_ldp.schema.queries import Query
from ahead_ldp.service.dashboard.analysis_charts import (
    both_curves,
    caterpillar,
    change_curve,
    changed_rows,
    lorenz_curve,
    points,
)
from ahead_ldp.service.dashboard.summaries import LEVEL

GROUP_FIELDS = ("by", "bins", "what", "of", "query", "first", "second")
_COARSE = 0.02  # width of an interval of a share from which on whole percents say enough
_TENTHS = np.arange(1, 10) / 10
_QUARTERS = (0.25, 0.5, 0.75)
_RELATED = {
    "correlation": "correlation: 1 if the two rise together on a line, 0 if there is no such line, −1 if one falls",
    "mutual_information": "mutual information in bits, on a table of blocks: 0 if one tells nothing of the other",
}
CATERPILLAR = (
    "The dot is the estimate. The thick line is the 95 % interval. The thin line holds for all rows at once: where two "
    "thin lines do not overlap, the two surely differ."
)

Part = dict[str, Any]
Words = Mapping[str, Wording]


def example(attributes: Sequence[Attribute]) -> str:
    """A query that can be asked."""
    for a in attributes:
        if a.kind in ("integer", "real"):
            middle = (float(a.lo) + float(a.hi)) / 2
            return f"{a.name} >= {middle if a.kind == 'real' else int(middle):g}"
    labelled = [a for a in attributes if a.labels]
    return str(Query({labelled[0].name: frozenset(labelled[0].labels[:1])})) if labelled else ""


# Tables.


def between(findings: Findings, i: int, together: bool = False) -> str:
    """One interval, as people read it."""
    low, high = (float(side[i]) for side in findings.interval(LEVEL, together))
    first, last = _said(findings, low, high - low), _said(findings, high, high - low)
    return f"{first.removesuffix(' %')} to {last}"


def value(findings: Findings, i: int) -> str:
    """One number, in as many digits as its interval bears."""
    low, high = (float(side[i]) for side in findings.interval(LEVEL))
    return _said(findings, float(findings.values[i]), high - low)


def _said(findings: Findings, number: float, width: float) -> str:
    """A number as people read it; shares in as many digits as the interval bears."""
    if findings.is_share:
        places = 0 if width >= _COARSE else 1 if width >= _COARSE / 10 else 2
        return f"{round(100 * number, places) + 0.0:.{places}f} %"
    said = findings.said(number, width)
    return f"−{said[1:]}" if said.startswith("-") else said


def table(findings: Findings, caption: str, names: Sequence[str] = ()) -> Part:
    """All numbers with their intervals."""
    head = [*(names or [name.capitalize() for name in findings.labels]), "Estimate", "95 % interval"]
    many, rows = len(findings) > 1, []
    for i in range(len(findings)):
        labels = [str(column[i]) for column in findings.labels.values()]
        rows.append(
            [*labels, value(findings, i), between(findings, i), *([between(findings, i, True)] if many else [])]
        )
    return {
        "caption": caption,
        "head": [*head, *(["For all at once"] if many else [])],
        "rows": rows,
        "names": len(findings.labels),
    }


def _notes(*found: Findings | Answers) -> list[str]:
    return list(dict.fromkeys(note.removeprefix("* ") for f in found for note in f.notes(LEVEL)))


# Questions.


def _attribute(estimate: Estimate, name: str) -> Attribute:
    return estimate._attribute(name, ordered=False)


def numbers(estimate: Estimate, name: str, words: Words) -> Part:
    """How far people lie apart, and how unequal they are."""
    del words
    a = _attribute(estimate, name)
    found, counted = described(estimate, a), {"date": ", in days", "time": ", in seconds", "datetime": ", in seconds"}
    rows = [[SAID[key].capitalize(), value(f, 0), between(f, 0)] for key, f in found.items()]
    caption = f"How {name} is spread{counted.get(a.kind, '')}"
    made = {"caption": caption, "head": ["What", "Estimate", "95 % interval"], "rows": rows, "names": 1}
    mode = estimate.mode(name)
    region = [_spoken(str(bin)) for bin in mode.bins[mode.region(LEVEL)].tolist()]
    often = (
        f"The most frequent range is, for all that can be told, {_listed(region)}."
        if len(region) < len(mode.bins)
        else ""
    )
    return {"tables": [made], "sentences": [often] if often else [], "notes": _notes(*found.values())}


def _spoken(bin: str) -> str:
    """A range of whole numbers as people say it."""
    return re.sub(r"(?<=[\dk])\.\.(?=[\d−-])", " to ", bin)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "one of " + ", ".join(names)


def lorenz(estimate: Estimate, name: str, words: Words) -> Part:
    """The Lorenz curve, with intervals at the quarters."""
    del words
    if not has_total(_attribute(estimate, name)):
        raise ValueError(f"expected numbers that are not negative for shares of a total, got {name}")
    curve, sure = estimate.lorenz(name, _TENTHS), estimate.lorenz(name, _QUARTERS)
    label = f"Lorenz curve of {name}: what part of the total the people with the least hold"
    caption = (
        "The further the line lies below the dashed one, the more unequal. On the dashed line everybody would hold the "
        "same. Thick lines are 95 % intervals; thin ones hold at all three places at once."
    )
    picture = {"picture": lorenz_curve(_TENTHS, curve.values, sure, label), "caption": caption}
    rows = [[f"{100 * p:.0f} %", value(sure, i), between(sure, i)] for i, p in enumerate(_QUARTERS)]
    head = ["Of the people, those with the least", "hold of the total", "95 % interval"]
    return {
        "pictures": [picture],
        "tables": [{"caption": "The same as a table", "head": head, "rows": rows, "names": 1}],
    }


def pair(estimate: Estimate, first: str, second: str, words: Words) -> Part:
    """What ties two attributes together."""
    del words
    found = related(estimate, first, second)
    rows = [[_RELATED[key].capitalize(), value(f, 0), between(f, 0)] for key, f in found.items()]
    made = {"caption": f"{first} and {second}", "head": ["What", "Estimate", "95 % interval"], "rows": rows, "names": 1}
    return {"tables": [made], "notes": _notes(*found.values())}


def _verdict(test: ChangeTest, a: Attribute, words: Wording | None) -> str:
    """Whether an attribute changed, and where that shows."""
    if not test.rejected:
        return f"Whether {a.name} changed cannot be told."
    unit = f" {words.unit}" if words is not None and words.unit else ""
    where = "with" if a.labels else "at or below"
    return f"{a.name} changed, with 95 % confidence: another share of people is {where} {test.named}{unit}."


def change(made: Difference, name: str, words: Words) -> Part:
    """What changed about one attribute: the verdict, both curves, and what moved."""
    a, test = made.second._attribute(name, ordered=False), made.test(name, LEVEL)
    answers = test.answers
    lead = _verdict(test, a, words.get(name))
    if a.labels:
        shares = [e.histogram(name, errors=False) for e in (made.first, made.second)]
        label = f"Change of the share of each category of {name}, in percentage points"
        pictures = [
            {"picture": changed_rows(answers, name, label), "caption": f"Change in percentage points. {CATERPILLAR}"}
        ]
        return {
            "lead": lead,
            "pictures": pictures,
            "tables": [_categories(answers, name, shares)],
            "notes": _notes(answers),
        }
    at = answers.labels[name].tolist()
    before, after = (e.cdf(name, at, errors=False).values for e in (made.first, made.second))
    curves = both_curves(a, before, after, at, words.get(name))
    caption = "Read off how many people are at or below a value: dashed in the earlier campaign, full in this one."
    moved = (
        "Above zero, more people are at or below a value than before. Where the light band leaves zero, it surely "
        "changed."
    )
    pictures = [{"picture": curves, "caption": caption}]
    pictures.append({"picture": change_curve(a, answers, words.get(name)), "caption": moved})
    return {
        "lead": lead,
        "pictures": pictures,
        "tables": [_numbers(made, name), _bins(made, name)],
        "notes": _notes(answers),
    }


def _categories(answers: Answers, name: str, shares: Sequence[Answers]) -> Part:
    each = [dict(zip(map(str, s.labels[name].tolist()), s.values.tolist(), strict=True)) for s in shares]
    low, high = answers.interval(LEVEL)
    rows = []
    for i, category in enumerate(map(str, answers.labels[name].tolist())):
        said = [f"{100 * max(part[category], 0):.1f} %" for part in each]
        rows.append([category, *said, points(answers.values[i]), f"{points(low[i])} to {points(high[i])}"])
    return _changed(name, "share before", "share now", rows, "Categories")


def _bins(made: Difference, name: str) -> Part:
    """The share of people in some ranges, before and now."""
    answers = made.histogram(name, 6)
    low, high = answers.interval(LEVEL)
    rows = [
        [_spoken(str(label)), points(change), f"{points(least)} to {points(most)}"]
        for label, change, least, most in zip(answers.labels[name].tolist(), answers.values, low, high, strict=True)
    ]
    head = [name, "Change of the share, in points", "95 % interval"]
    return {"caption": "Where people came and went", "head": head, "rows": rows, "names": 1}


def _changed(name: str, before: str, now: str, rows: list[list[str]], caption: str) -> Part:
    head = [name, before.capitalize(), now.capitalize(), "Change in points", "95 % interval"]
    return {"caption": caption, "head": head, "rows": rows, "names": 1}


def _numbers(made: Difference, name: str) -> Part:
    """Changes of the mean and the quartiles."""
    mean, quartiles = made.mean(name), made.quantiles(name)
    rows = [["mean", value(mean, 0), between(mean, 0)]]
    for i, said in enumerate(("a quarter is below", "half is below (median)", "three quarters are below")):
        rows.append([said, value(quartiles, i), between(quartiles, i)])
    return {"caption": "By how much it rose", "head": [name, "Change", "95 % interval"], "rows": rows, "names": 1}


def asked_change(made: Difference, query: str) -> Part:
    """By how much the share of a query changed."""
    answers = made.ask(query)
    (low,), (high,) = answers.interval(LEVEL)
    changed = "It changed." if low > 0 or high < 0 else "Whether it changed cannot be told."
    moved = f"{points(answers.values[0])} points ({points(low)} to {points(high)})"
    lead = f"The share of people with {query} moved by an estimated {moved}."
    return {"lead": lead, "sentences": [changed], "notes": _notes(answers)}


def groups(estimate: Estimate, asked: Mapping[str, str], words: Words) -> Part:
    """A number in every group of people: a caterpillar plot, a table, and two groups compared."""
    del words
    if asked["bins"] and not asked["bins"].isdecimal():
        raise ValueError(f"expected a number of ranges, got {asked['bins']!r}")
    bins = int(asked["bins"]) if asked["bins"] else None
    parts = estimate.by(asked["by"], bins)
    made, what = _asked_of_groups(parts, asked)
    own = [str(name) for name in made.labels[asked["by"]].tolist()]
    shown = own if _attribute(estimate, asked["by"]).labels else [_as_said(name) for name in own]
    plain = replace(made, labels={**made.labels, asked["by"]: np.array(shown, object)})
    label = f"{what}, for every group of {asked['by']}, with 95 % intervals"
    found = {
        "lead": f"{what}, by {asked['by']}",
        "pictures": [{"picture": caterpillar(plain, label), "caption": CATERPILLAR}],
        "tables": [table(plain, "The same as a table", [asked["by"]])],
        "notes": _notes(made),
    }
    if asked["first"] and asked["second"]:
        ends = [_group(asked[end], own, shown) for end in ("first", "second")]
        gap = parts.compare(made, *ends)
        found["sentences"] = [f"{asked['second']} less {asked['first']}: {value(gap, 0)} ({between(gap, 0)})."]
    return found


def _as_said(name: str) -> str:
    """A range of numbers or days as people say it, in place of ``[0, 5)`` or ``18..29``."""
    if found := re.fullmatch(r"\[(.+), (.+)([)\]])", name):
        return f"{found[1]} to {'below ' if found[3] == ')' else ''}{found[2]}"
    return name.replace("..", " to ")


def _group(typed: str, own: Sequence[str], shown: Sequence[str]) -> str:
    """The group that somebody named as the page does, or as the library."""
    if typed in shown:
        return own[shown.index(typed)]
    if typed not in own:
        raise ValueError(f"expected one of the groups {', '.join(shown)}, got {typed!r}")
    return typed


def _asked_of_groups(parts: Any, asked: Mapping[str, str]) -> tuple[Findings, str]:
    if asked["what"] == "share":
        if not asked["query"]:
            raise ValueError("expected a query for a share, got none")
        return parts.share(asked["query"]), f"Share of people with {asked['query']}"
    if asked["what"] == "median":
        found = parts.quantiles(asked["of"])
        labels = {name: column for name, column in found.labels.items() if name != "level"}
        return replace(found, labels=labels), f"Median of {asked['of']}"
    return parts.mean(asked["of"]), f"Mean of {asked['of']}"


def own_margins(estimate: Estimate) -> str:
    """The estimate's own shares of the first attribute with few categories, as a list of margins to change."""
    for a in estimate.schema.attributes:
        if a.labels and len(a.labels) <= 20 and a.missing != "cell":
            shares = proper(estimate.histogram(a.name, errors=False).values)
            return "\n".join(
                f"{_cell(a.name)},{_cell(label)},{share:.3f}" for label, share in zip(a.labels, shares, strict=True)
            )
    return ""


def _cell(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if any(sign in text for sign in ',"') else text


def weighted(estimate: Estimate, asked: Mapping[str, Any]) -> Part:
    """Queries with and without weights, and the weights."""
    made = estimate.calibrated(asked["margins"])
    found, plain = made.ask(*asked["queries"]), estimate.ask(*asked["queries"])
    low, high = plain.interval(LEVEL)
    rows = []
    for i, query in enumerate(asked["queries"]):
        own = f"{100 * plain.values[i]:.1f} % ({100 * low[i]:.1f} to {100 * high[i]:.1f} %)"
        rows.append([query, own, f"{value(found, i)} ({between(found, i)})"])
    head = ["Query", "Those who answered", "With weights"]
    tables = [{"caption": "Shares of people, with 95 % intervals", "head": head, "rows": rows, "names": 1}]
    if len(made.attributes) == 1:
        (name, known), shares = next(iter(asked["margins"].items())), made.shares
        each = [
            [category, f"{100 * share:.1f} %", f"{100 * target:.1f} %", f"{weight:.2f}"]
            for category, share, target, weight in zip(known, shares, made.targets[0], made.weights, strict=True)
        ]
        head = [name, "Of those who answered", "Of everybody", "Weight"]
        tables.append({"caption": "Weights", "head": head, "rows": each, "names": 1})
    return {"tables": tables, "notes": _notes(found)}


def budget(rows: Sequence[Mapping[str, Any]]) -> Part:
    """What somebody who takes part in every round has spent, for those who look after data protection."""
    body = [[r["round"], f"{r['people']:,}", f"{r['epsilon']:g}", f"{r['spent']:g}"] for r in rows]
    head = ["Round", "People counted so far", "Privacy cost (epsilon)", "In all rounds up to it"]
    caption = "What somebody who takes part in every round has spent"
    return {"tables": [{"caption": caption, "head": head, "rows": body, "names": 1}]}


def rounds(estimates: Mapping[str, Estimate], query: str, smooth: bool) -> Part:
    """A share over rounds, and what changed from each to the next."""
    series = Series(estimates)
    trend = series.trend(query, smooth=smooth)
    steps = []
    for s in series.changes(query):
        verdict = "yes" if s["changed"] else "cannot be told"
        span = f"{points(s['low'])} to {points(s['high'])}"
        steps.append([f"{s['from']} to {s['to']}", points(s["change"]), span, verdict])
    head = ["From one round to the next", "Change in points", "95 % interval, all at once", "Changed"]
    picture = caterpillar(trend, f"Share of people with {query}, round by round", sort=False)
    changes = {"caption": "Changes", "head": head, "rows": steps, "names": 1}
    return {
        "lead": f"Share of people with {query}",
        "pictures": [{"picture": picture, "caption": CATERPILLAR}],
        "tables": [table(trend, "The same as a table", ["Round"]), changes],
        "notes": _notes(trend),
    }
