"""`ahead describe`, `difference`, `groups`, `weigh`, `series` and `report`: what people ask beyond shares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import ahead_ldp
from ahead_ldp import plots
from ahead_ldp.cli import drawing, inputs
from ahead_ldp.cli.options import File, Intervals, Text, Texts, argument, flag, option
from ahead_ldp.cli.printing import Shown
from ahead_ldp.estimates.analysis import describing, differences
from ahead_ldp.estimates.analysis import series as rounds_of

Run = Annotated[Path, argument("RUN", "A collected run, a campaign in batch, or a saved estimate.")]
Asked = Annotated[Texts, argument("[QUERY...]", 'Such as "pay in 100000..120000".')]
Attribute = Annotated[Text, option("--attribute", "NAME", "One attribute; left out, all.")]
Picture = Annotated[File, option("--plot", "FILE", "Draw it, as a .png, .svg or .pdf file.")]


def describe(run: Run, attribute: Attribute = None, *, shown: Intervals) -> Shown:
    """Say how far people lie apart, and how unequally a total is shared out.

    Standard deviation, Gini coefficient, top tenth, bottom half and relative
    poverty, each with its interval.
    """
    estimate = inputs.read_estimate(run)
    record, text = dict[str, Any](), list[str]()
    for a in describing.numeric(estimate, attribute):
        found = describing.described(estimate, a)
        record[a.name] = {name: f.records(kind=shown.kind)[0] for name, f in found.items()}
        text += [line for f in found.values() for line in [f"{a.name}:", f.table(kind=shown.kind), ""]]
    return Shown({**inputs.about(run, estimate), "intervals": shown.kind, "results": record}, text)


def difference(
    first: Annotated[Path, argument("A", "The earlier run, campaign or saved estimate.")],
    second: Annotated[Path, argument("B", "The later one.")],
    queries: Asked = None,
    attribute: Attribute = None,
    about: Annotated[str, option("--about", "WHOM", "everybody, or only the people who took part.")] = "everybody",
    plot: Picture = None,
    *,
    shown: Intervals,
) -> Shown:
    """Say what changed from one run to another, and test "no change".

    Every number is the later one less the earlier. The two may have different
    buckets, but no reports in common.
    """
    if about not in ("everybody", "people"):
        raise ValueError(f"expected --about to be everybody or people, got {about!r}")
    one, other = inputs.read_estimate(first), inputs.read_estimate(second)
    change, kind = differences.difference(one, other, sampled=about == "everybody"), shown.kind
    names = [n for n in one.schema.names if n in other.schema.names and attribute in (None, n)]
    record: dict[str, Any] = {"first": str(first), "second": str(second), "about": about, "intervals": kind}
    text = list[str]()
    if queries:
        answers = change.ask(*queries)
        record["results"] = answers.records(kind=kind)
        text += [answers.table(kind=kind), ""]
    tests = [change.test(name, kind=kind) for name in names]
    record["tests"] = [{"attribute": t.attribute, "rejected": t.rejected, "text": t.text()} for t in tests]
    text += [t.text() for t in tests]
    if plot is not None:
        drawing.check_format(plot, "--plot")
        if len(names) != 1:
            raise ValueError("expected --attribute with --plot, where there are several")
        drawing.save(plots.plot_difference(change, names[0], kind=kind), plot)
        text.append(f"written: {plot}")
    return Shown(record, text)


def groups(
    run: Run,
    queries: Asked = None,
    by: Annotated[str, option("--by", "NAME", "The attribute whose categories are the groups.")] = "",
    bins: Annotated[int | None, option("--bins", "N", "Bins of it, where it is numeric.")] = None,
    mean: Annotated[Text, option("--mean", "NAME", "The mean of an attribute in each group.")] = None,
    median: Annotated[Text, option("--median", "NAME", "The median of an attribute in each group.")] = None,
    plot: Picture = None,
    *,
    shown: Intervals,
) -> Shown:
    """Answer queries, or give a mean or a median, in every group of people."""
    if not by:
        raise ValueError("expected an attribute whose categories are the groups, by --by")
    estimate = inputs.read_estimate(run)
    parts = estimate.by(by, bins)
    found = {f"share of {query}": parts.share(query) for query in queries or ()}
    found |= {} if mean is None else {f"mean of {mean}": parts.mean(mean)}
    found |= {} if median is None else {f"median of {median}": parts.quantiles(median)}
    if not found:
        raise ValueError("expected queries, --mean or --median, got none of them")
    text = [line for name, f in found.items() for line in [f"{name}:", f.table(kind=shown.kind), ""]]
    if plot is not None:
        drawing.check_format(plot, "--plot")
        drawing.save(plots.plot_findings(next(iter(found.values())), kind=shown.kind), plot)
        text.append(f"written: {plot}")
    results = {name: f.records(kind=shown.kind) for name, f in found.items()}
    return Shown({**inputs.about(run, estimate), "by": by, "intervals": shown.kind, "results": results}, text)


def weigh(
    run: Run,
    queries: Annotated[list[str], argument("QUERY...", 'Such as "pay in 100000..120000".')],
    margins: Annotated[Path, option("--margins", "FILE", "JSON: attribute, category, share or count of everybody.")],
) -> Shown:
    """Answer queries as if some attributes had the shares that are known of everybody."""
    estimate = inputs.read_estimate(run)
    try:
        known = json.loads(margins.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"expected a readable JSON file of margins, got {str(margins)!r}: {error}") from None
    if not isinstance(known, dict) or not all(isinstance(margin, dict) for margin in known.values()):
        raise ValueError(f'expected margins such as {{"sex": {{"f": 0.51, "m": 0.49}}}} in {str(margins)!r}')
    found = estimate.calibrated(known).ask(*queries)
    record = {
        **inputs.about(run, estimate),
        "intervals": found.kind(),
        "results": found.records(),
        "notes": found.notes(),
    }
    return Shown(record, [found.table()])


def series(
    runs: Annotated[list[Path], argument("RUN...", "The rounds, in order of time.")],
    query: Annotated[Text, option("--query", "QUERY", "The share to follow; left out, only the budget.")] = None,
    smooth: Annotated[bool, flag("--smooth", "Take the share as a random walk.")] = False,
) -> Shown:
    """Follow a share over the rounds of a campaign, and add up what they cost a person."""
    made = rounds_of.Series({str(path): inputs.read_estimate(path) for path in runs})
    budget = made.budget()
    record: dict[str, Any] = {"budget": budget}
    text = [
        f"{row['round']}: {row['people']:,} people, epsilon {row['epsilon']:g}; in all rounds so far {row['spent']:g}"
        for row in budget
    ]
    if query is not None:
        trend, steps = made.trend(query, smooth=smooth), made.changes(query)
        record |= {"query": query, "trend": trend.records(), "changes": steps}
        text += ["", trend.table()]
        text += [f"{s['from']} to {s['to']}: {'changed' if s['changed'] else 'no change can be told'}" for s in steps]
    return Shown(record, text)


def report(
    run: Run,
    queries: Asked = None,
    out: Annotated[Path, option("--out", "FILE", "The page, an .html file.")] = Path("report.html"),
    title: Annotated[str, option("--title", "TEXT", "Its heading.")] = "Report",
    before: Annotated[File, option("--before", "RUN", "An earlier run, for what changed since.")] = None,
    by: Annotated[Text, option("--by", "NAME", "Groups: means for each category of this attribute.")] = None,
    *,
    shown: Intervals,
) -> Shown:
    """Write a page with pictures and sentences that can be sent as it is."""
    if out.suffix.lower() != ".html":
        raise ValueError(f"expected --out to end in .html, got {str(out)!r}")
    estimate = inputs.read_estimate(run)
    earlier = None if before is None else inputs.read_estimate(before)
    page = ahead_ldp.report_page(estimate, *(queries or ()), title=title, before=earlier, by=by, kind=shown.kind)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, "utf-8")
    return Shown({**inputs.about(run, estimate), "page": str(out)}, [f"written: {out}"])
