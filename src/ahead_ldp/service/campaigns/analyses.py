"""Questions beyond shares, from closed waves, as plain data: change, groups, weights, inequality, rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ahead_ldp.estimates.analysis import describing
from ahead_ldp.estimates.analysis.differences import Difference, difference
from ahead_ldp.estimates.analysis.series import Series
from ahead_ldp.estimates.answers import Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Findings
from ahead_ldp.plots.report import report_page, report_pdf
from ahead_ldp.service.campaigns.operations import Campaigns
from ahead_ldp.service.campaigns.problems import Problem


def describe(estimate: Estimate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Standard deviation, inequality and relative poverty of numeric attributes."""
    level, kind = asked["level"], asked["intervals"]
    found = {a.name: describing.described(estimate, a) for a in describing.numeric(estimate, asked["attribute"])}
    results = {name: {key: f.records(level, kind)[0] for key, f in some.items()} for name, some in found.items()}
    return {**_head(estimate, asked), "results": results, "notes": _notes(found_in(found), level, kind)}


def found_in(found: Mapping[str, Mapping[str, Findings]]) -> list[Findings]:
    """All findings of all attributes."""
    return [f for some in found.values() for f in some.values()]


def pair(estimate: Estimate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Correlation, where both are numeric, and mutual information of two attributes."""
    level, found = asked["level"], describing.related(estimate, asked["first"], asked["second"])
    results = {name: f.records(level)[0] for name, f in found.items()}
    return {**_head(estimate, asked), "results": results, "notes": _notes(found.values(), level, None)}


def change(before: Estimate, after: Estimate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is different in the later estimate: queries, means, and the test of every attribute that both have."""
    level, kind = asked["level"], asked["intervals"]
    made = difference(before, after, sampled=asked["about"] == "everybody")
    names = asked["attributes"] or shared_attributes(made)
    tests = [made.test(name, level, kind) for name in names]
    means = {name: made.mean(name) for name in names if not after._attribute(name, ordered=False).labels}
    answers = made.ask(*asked["queries"]) if asked["queries"] else None
    return {
        **_head(after, asked),
        "about": asked["about"],
        "results": [] if answers is None else answers.records(level, kind),
        "means": {name: f.records(level, kind)[0] for name, f in means.items()},
        "tests": [
            {
                "attribute": t.attribute,
                "rejected": t.rejected,
                "text": t.text(),
                "curve": t.answers.records(level, kind),
            }
            for t in tests
        ],
        "notes": _notes(means.values(), level, kind),
    }


def shared_attributes(made: Difference) -> list[str]:
    """Attributes of one name and kind in both estimates."""
    if not made.shared:
        raise ValueError("expected campaigns that have an attribute in common, got two that have none")
    return made.shared


def groups(estimate: Estimate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Shares, means and medians in each group of people, and how large the groups are."""
    level, kind, parts = asked["level"], asked["intervals"], estimate.by(asked["by"], asked["bins"])
    found = {f"share of {query}": parts.share(query) for query in asked["shares"]}
    found |= {f"mean of {name}": parts.mean(name) for name in asked["means"]}
    found |= {f"median of {name}": parts.quantiles(name) for name in asked["medians"]}
    if len(asked["compare"]) == 1:
        raise ValueError("expected two groups to compare, got one")
    compared = {name: parts.compare(f, *asked["compare"]) for name, f in found.items() if asked["compare"]}
    return {
        **_head(estimate, asked),
        "by": asked["by"],
        "groups": parts.shares.records(level, kind),
        "results": {name: f.records(level, kind) for name, f in found.items()},
        "compared": {name: f.records(level, kind)[0] for name, f in compared.items()},
        "notes": _notes(found.values(), level, kind),
    }


def weigh(estimate: Estimate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Queries, answered as if some attributes had the shares that are known of everybody."""
    weighted = estimate.calibrated(asked["margins"])
    found = weighted.ask(*asked["queries"])
    names = [[str(category) for category in margin] for margin in asked["margins"].values()]
    strata = [{}] if not names else _strata(list(asked["margins"]), names)
    weights = [{**s, "weight": float(w)} for s, w in zip(strata, weighted.weights.tolist(), strict=True)]
    head = {**_head(estimate, asked), "intervals": found.kind()}  # the model's, where no question holds all of it
    results = found.records(asked["level"])
    return {**head, "weights": weights, "results": results, "notes": _notes([found], asked["level"], None)}


def _strata(names: list[str], categories: list[list[str]]) -> list[dict[str, str]]:
    """Every combination of categories, the last fastest, as the weights are."""
    made: list[dict[str, str]] = [{}]
    for name, some in zip(names, categories, strict=True):
        made = [{**stratum, name: category} for stratum in made for category in some]
    return made


def rounds(estimates: Mapping[str, Estimate], asked: Mapping[str, Any]) -> dict[str, Any]:
    """A share over the rounds of a series, and what changed between them."""
    series, level = Series(estimates), asked["level"]
    trend = series.trend(asked["query"], smooth=asked["smooth"])
    made = {"query": asked["query"], "level": level, "intervals": trend.kind(), "trend": trend.records(level)}
    return {**made, "changes": series.changes(asked["query"], level), "notes": _notes([trend], level, None)}


def report(service: Campaigns, campaign: str, asked: Mapping[str, Any]) -> bytes:
    """The page about a campaign, as "html" or "pdf", under its own title unless another is given."""
    before = None if asked["since"] is None else closed_estimate(service, asked["since"])
    title = asked["title"] or str(service.directory.terms(campaign).campaign.record["title"])
    options = {"before": before, "by": asked["by"], "level": asked["level"], "kind": asked["intervals"]}
    options["headings"] = headings(service, campaign)
    return written(asked["format"], closed_estimate(service, campaign), asked["queries"], title=title, **options)


def written(form: str, estimate: Estimate, queries: Sequence[str], **options: Any) -> bytes:
    """A report as a file of this form; a ``Problem`` where this server lacks a package for it."""
    try:
        if form == "pdf":
            return report_pdf(estimate, *queries, **options)
        return report_page(estimate, *queries, **options).encode()
    except ImportError as error:
        raise Problem("not_installed", str(error)) from None


def headings(service: Campaigns, campaign: str) -> dict[str, str]:
    """The questions of a campaign in its words, each with its unit, by the names of their attributes."""
    wording = service.directory.terms(campaign).campaign.wording
    return {name: f"{w.question} ({w.unit})" if w.unit else w.question for name, w in wording.items()}


def closed_estimate(service: Campaigns, campaign: str) -> Estimate:
    """The estimate from a campaign's closed waves; a ``Problem`` before the first one."""
    service.closed_session(campaign)
    return service.directory.estimate(campaign)


def named_rounds(service: Campaigns, campaigns: Sequence[str]) -> dict[str, Estimate]:
    """Estimates by the titles of their campaigns; where two have one title, the digest tells them apart."""
    if len(set(campaigns)) != len(campaigns):
        raise Problem("invalid_query", "expected each campaign once")
    titles = [str(service.directory.terms(campaign).campaign.record["title"]) for campaign in campaigns]
    names = [t if titles.count(t) == 1 else f"{t} ({c[:8]})" for t, c in zip(titles, campaigns, strict=True)]
    return {name: closed_estimate(service, c) for name, c in zip(names, campaigns, strict=True)}


def budget(service: Campaigns, campaigns: Sequence[str]) -> list[dict[str, Any]]:
    """For each campaign: its title, the people counted so far, epsilon, and the sum up to it. Drafts count as well."""
    rows, spent = [], Fraction(0)
    for campaign in campaigns:
        terms = service.directory.terms(campaign).campaign
        spent += terms.epsilon
        people = sum(q.n or 0 for q in service.store.questions(campaign))
        cost = {"epsilon": float(terms.epsilon), "spent": float(spent)}
        rows.append({"campaign": campaign, "round": str(terms.record["title"]), "people": people, **cost})
    return rows


def _head(estimate: Estimate, asked: Mapping[str, Any]) -> dict[str, Any]:
    people = 0 if estimate.provenance is None else estimate.provenance.people
    return {"people": people, "level": asked["level"], "intervals": asked.get("intervals", "strict")}


def _notes(found: Iterable[Findings], level: float, kind: Kind | None) -> list[str]:
    """What a reader must know, each once."""
    return list(dict.fromkeys(note for f in found for note in f.notes(level, kind)))
