"""`ahead describe`, `difference`, `groups`, `weigh`, `series` and `report`: what people ask beyond shares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import ahead_ldp
from ahead_ldp import plots
from ahead_ldp.cli import drawing, inputs, printing
from ahead_ldp.cli.options import File, Intervals, Text, Texts, argument, flag, option
from ahead_ldp.cli.printing import Shown
from ahead_ldp.estimates import answers as answering
from ahead_ldp.estimates.analysis import describing, differences
from ahead_ldp.estimates.analysis import series as rounds_of

Run = Annotated[Path, argument("RUN", "A collected run, a campaign in batch, or a saved estimate.")]
Asked = Annotated[Texts, argument("[QUERY...]", 'Such as "pay in 100000..120000".')]
Attribute = Annotated[Text, option("--attribute", "NAME", "One attribute; left out, all.")]
Picture = Annotated[File, option("--plot", "FILE", "Draw it, as a .png, .svg or .pdf file.")]


def describe(
    run: Run,
    attribute: Attribute = None,
    beside: Annotated[Text, option("--with", "NAME", "Another attribute: say what ties the two together.")] = None,
    *,
    shown: Intervals,
) -> Shown:
    """Say how far people lie apart, and how unequal a total is.

    Standard deviation, Gini coefficient, top tenth, bottom half and relative
    poverty, each with its interval. With a second attribute: correlation and
    mutual information, whose intervals are strict.
    """
    estimate = inputs.read_estimate(run)
    if beside is not None:
        return _tied(run, estimate, attribute, beside, shown.kind)
    record, parts = dict[str, Any](), list[str]()
    for a in describing.numeric(estimate, attribute):
        found = describing.described(estimate, a)
        record[a.name] = {name: f.records(kind=shown.kind)[0] for name, f in found.items()}
        rows = [_row(describing.SAID[name], f, shown.kind) for name, f in found.items()]
        notes = dict.fromkeys(note for f in found.values() for note in f.notes(kind=shown.kind))
        parts.append("\n".join([answering.text_table([a.name, "value", "95 % interval"], rows), *notes]))
    return Shown({**inputs.about(run, estimate), "intervals": shown.kind, "results": record}, ["\n\n".join(parts)])


def _tied(run: Path, estimate: ahead_ldp.Estimate, first: str | None, second: str, kind: Any) -> Shown:
    """What ties two attributes together."""
    if first is None:
        raise ValueError("expected --attribute with --with, got none")
    found = describing.related(estimate, first, second)
    rows = [_row(name.replace("_", " "), f, kind) for name, f in found.items()]
    notes = dict.fromkeys(note for f in found.values() for note in f.notes(kind=kind))
    text = [answering.text_table([f"{first} and {second}", "value", "95 % interval"], rows), *notes]
    record = {"first": first, "second": second, "results": {name: f.records(kind=kind)[0] for name, f in found.items()}}
    return Shown({**inputs.about(run, estimate), "intervals": kind, **record}, text)


def _row(said: str, findings: Any, kind: Any) -> list[str]:
    (low,), (high,) = findings.interval(kind=kind)
    width = float(high - low)
    value, least, most = (findings.said(number, width) for number in (findings.value, low, high))
    return [said, value, f"{least} .. {most}"]


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
    """Say what changed from one run to another, and test it.

    Every number is the later one less the earlier. The two may have different
    buckets, but no reports in common.
    """
    if about not in ("everybody", "people"):
        raise ValueError(f"expected --about to be everybody or people, got {about!r}")
    one, other = inputs.read_estimate(first), inputs.read_estimate(second)
    change, kind = differences.difference(one, other, sampled=about == "everybody"), shown.kind
    names = change.shared if attribute is None else [attribute]
    if not names and not queries:
        raise ValueError("expected runs that have an attribute in common, got two that have none")
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
    """Answer queries, means or medians for each group of people."""
    if not by:
        raise ValueError("expected an attribute whose categories are the groups, by --by")
    estimate = inputs.read_estimate(run)
    parts = estimate.by(by, bins)
    found = {f"share of {query}": parts.share(query) for query in queries or ()}
    found |= {} if mean is None else {f"mean of {mean}": parts.mean(mean)}
    found |= {} if median is None else {f"median of {median}": parts.quantiles(median)}
    if not found:
        raise ValueError("expected queries, --mean or --median, got none of them")
    text = ["\n\n".join(f"{name}:\n{f.table(kind=shown.kind)}" for name, f in found.items())]
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
    """Answer queries with people weighted to known shares."""
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
    """Follow a share over rounds, and add up what they cost."""
    names = [str(path) for path in runs]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"expected every round once, got {twice[0]!r} twice")
    made = rounds_of.Series({name: inputs.read_estimate(path) for name, path in zip(names, runs, strict=True)})
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
        text += ["", *map(_step, steps)]
        if len(steps) > 1:
            text.append("The intervals of all changes hold at once, with 95 % probability.")
    return Shown(record, text)


def _step(step: dict[str, Any]) -> str:
    """What changed from one round to the next, as a line."""
    says = "changed by" if step["changed"] else "no change can be told:"
    interval = printing.between(step["low"], step["high"])
    return f"{step['from']} to {step['to']}: {says} {printing.percent(step['change'])} ({interval})"


def report(
    run: Run,
    queries: Asked = None,
    out: Annotated[Path, option("--out", "FILE", "The file: .html for a page, .pdf to print.")] = Path("report.html"),
    title: Annotated[str, option("--title", "TEXT", "Its heading.")] = "Report",
    before: Annotated[File, option("--before", "RUN", "An earlier run, for what changed since.")] = None,
    by: Annotated[Text, option("--by", "NAME", "Groups: means for each category of this attribute.")] = None,
    *,
    shown: Intervals,
) -> Shown:
    """Write a page with pictures and sentences, ready to send.

    A PDF has the same contents and needs the extra pdf.
    """
    if out.suffix.lower() not in (".html", ".pdf"):
        raise ValueError(f"expected --out to end in .html or .pdf, got {str(out)!r}")
    estimate = inputs.read_estimate(run)
    earlier = None if before is None else inputs.read_estimate(before)
    write = ahead_ldp.report_pdf if out.suffix.lower() == ".pdf" else ahead_ldp.report_page
    page = write(estimate, *(queries or ()), title=title, before=earlier, by=by, kind=shown.kind)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(page.encode() if isinstance(page, str) else page)
    return Shown({**inputs.about(run, estimate), "page": str(out)}, [f"written: {out}"])
