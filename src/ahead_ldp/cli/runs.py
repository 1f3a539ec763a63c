"""`ahead collect`, `ahead query` and `ahead plot`: a run that is collected from a file, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import ahead_ldp
from ahead_ldp.cli import drawing, inputs
from ahead_ldp.cli.options import (
    Declared,
    Epsilon,
    Intervals,
    Method,
    Queries,
    Reading,
    Settings,
    Source,
    Text,
    argument,
    flag,
    option,
)
from ahead_ldp.cli.printing import Shown, Table, between, percent
from ahead_ldp.device import epsilon as declared_epsilon
from ahead_ldp.engines import api, archive, progress
from ahead_ldp.engines import runs as stored
from ahead_ldp.research import evaluation

Run = Annotated[
    Path, argument("RUN", "A directory of `ahead collect`, `start` or `campaign export`, or a saved estimate.")
]


def collect(
    *,
    data: Annotated[Path, option("--data", "FILE", "Records: .csv, .parquet or .npy.")],
    epsilon: Epsilon,
    out: Annotated[Path, option("--out", "DIR", "A new directory for everything collected.")],
    source: Source,
    declared: Declared,
    method: Method = None,
    users: Annotated[int | None, option("--users", "N", "People the method plans for; left out, the rows.")] = None,
    settings: Settings,
    parquet: Annotated[bool, flag("--parquet", "Keep the reports as report files for `ahead tally`.")] = False,
) -> Shown:
    """Collect one real report per row, and write everything.

    Reports are made by the device layer and cross the wire form. Questions,
    reports, tallies and the estimate are written; no true value is.
    """
    schema = inputs.declared_schema(declared)
    if schema is None and not source.codes:
        raise ValueError("expected declared bounds, by --attribute or --schema: they are never read from private data")
    exact = inputs.epsilon(epsilon)
    records = inputs.read_records(data, source, schema)
    people = api.People.of(records.columns, records.schema)
    expected = len(people) if users is None else users
    mechanism, applied = evaluation.choose(method, records.schema, exact, expected, str(settings))
    evaluation.check_runs(mechanism, records.schema)
    with progress.Bar("collecting") as bar:
        estimate = stored.collect_run(mechanism, records.schema, people, out, bar, parquet=parquet)
    about = {"method": mechanism.name, "settings": applied, "epsilon": float(exact), "people": len(people)}
    waves = len(list((out / "questions").iterdir()))
    return Shown({"run": str(out), **about, "waves": waves}, inputs.summary(estimate, f"written: {out}"))


def query(
    run: Run,
    queries: Queries,
    recount: Annotated[bool, flag("--recount", "Count the stored reports again as well.")] = False,
    reading: Reading = None,
    *,
    shown: Intervals,
) -> Shown:
    """Answer queries from a collected run, with intervals.

    The run is replayed first; if anything differs there is no answer.
    """
    estimate = _read(run, recount, reading)
    answers, kind = estimate.ask(*queries), shown.kind
    columns = {name: column.tolist() for name, column in answers.columns(kind=kind).items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    together = len(rows) > 1  # one interval is pointwise and simultaneous
    head = ["query", "share", *["std. error"] * shown.model, "95 % interval", *["simultaneous"] * together]
    cells = []
    for row, spread in zip(rows, answers.spread.tolist(), strict=True):
        cells.append([row["query"], percent(row["share"]) + "*" * (shown.model and row["bias_not_included"])])
        cells[-1] += [percent(spread)] * shown.model + [between(row["low"], row["high"])]
        cells[-1] += [between(row["simultaneous_low"], row["simultaneous_high"])] * together
    about, notes = inputs.about(run, estimate), answers.notes(kind=kind)
    title = f"{about['method']}, epsilon {declared_epsilon.epsilon_text(about['epsilon'])}, {about['people']:,} people"
    rule = answers.critical(simultaneous=True)[1] if shown.model else None
    record = {
        **about,
        "consistent": answers.consistent,
        "intervals": kind,
        "simultaneous": rule,
        "results": [_record(row) for row in rows],
        "notes": [note.removeprefix("* ") for note in notes],
    }
    return Shown(record, [Table(title, head, cells), *_unfinished(estimate), *notes])


def _unfinished(estimate: ahead_ldp.Estimate) -> list[str]:
    """That waves are still to come, where they are."""
    origin = estimate.provenance
    whole = origin is None or origin.everybody is not None
    return [] if whole else ["not all waves are closed: this is what those so far amount to"]


def _record(row: dict[str, Any]) -> dict[str, Any]:
    errors = {name: row[name] for name in ("query", "share", "standard_error", "bias_error")}
    intervals = {
        "ci95": [row["low"], row["high"]],
        "ci95_simultaneous": [row["simultaneous_low"], row["simultaneous_high"]],
    }
    return {**errors, **intervals, "bias_not_included": row["bias_not_included"]}


def plot(
    *,
    run: Run,
    out: Annotated[Path, option("--out", "FILE", "A .png, .svg or .pdf file.")],
    columns: Annotated[Text, option("--columns", "A[,B]", "One or two attributes; left out, all.")] = None,
    shown: Intervals,
) -> Shown:
    """Draw the estimate of a collected run."""
    drawing.check_format(out, "--out")
    names = inputs.names_of(columns) or []
    drawing.save(drawing.picture(_read(run), *names, kind=shown.kind), out)
    return Shown({"run": str(run), "picture": str(out)}, [f"written: {out}"])


def _read(run: Path, recount: bool = False, reading: Text = None) -> ahead_ldp.Estimate:
    wanted = inputs.reading(reading)
    if run.is_file():
        if recount:
            raise ValueError(f"expected a directory with reports for --recount, got the saved estimate {str(run)!r}")
        with inputs.replaying("estimate", "answered"):
            return archive.load(run, reading=wanted)
    with inputs.replaying("run", "answered"):
        return stored.read_run(run, recount=recount, reading=wanted, so_far=True)
