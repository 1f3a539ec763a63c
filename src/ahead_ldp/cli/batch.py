"""A campaign in batch: `ahead start`, `perturb`, `tally`, `advance` and `estimate`, with reports in files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ahead_ldp.cli import inputs
from ahead_ldp.cli.options import (
    Declared,
    Epsilon,
    File,
    Intervals,
    Reading,
    Settings,
    Text,
    argument,
    check_engine,
    flag,
    option,
)
from ahead_ldp.cli.printing import Shown, Table, several
from ahead_ldp.engines import (
    addresses,
    campaigns,
    jobs,
    layout,
    local,
    manifests,
    runs,
    spark,
    spark_holding,
    spark_session,
)
from ahead_ldp.engines import counting as counts
from ahead_ldp.engines import perturb as perturbing
from ahead_ldp.protocol import mechanism as protocol
from ahead_ldp.research import evaluation

Campaign = Annotated[Path, argument("DIR", "A campaign's directory, as `ahead start` makes it.")]
Engine = Annotated[str, option("--engine", "E", "local or spark.")]


@dataclass(frozen=True, slots=True)
class Counting:
    """How report files are counted."""

    engine: Engine = "local"
    dedup: Annotated[bool, flag("--dedup/--no-dedup", "Whether to look for reports that came twice.")] = True
    quarantine: Annotated[bool, flag("--quarantine", "Leave damaged files out, whole, and name them.")] = False

    def chosen(self) -> counts.Engine:
        """The engine; Spark is started here, or said to be missing."""
        return local.LOCAL if check_engine(self.engine) == "local" else spark.SparkEngine()


def start(
    directory: Annotated[Path, argument("DIR", "A new directory.")],
    *,
    epsilon: Epsilon,
    users: Annotated[int, option("--users", "N", "How many people will take part.")],
    declared: Declared,
    method: Annotated[Text, option("--method", "M", "See `ahead methods`; left out, the best.")] = None,
    settings: Settings,
) -> Shown:
    """Begin a campaign in a directory, with its first questions."""
    schema = inputs.declared_schema(declared)
    if schema is None:
        raise ValueError("expected attributes, by --attribute or --schema")
    exact = inputs.epsilon(epsilon)
    mechanism, applied = evaluation.choose(method, schema, exact, users, str(settings))
    evaluation.check_runs(mechanism, schema)
    session = campaigns.start_campaign(mechanism, schema, directory)
    record = {
        "campaign": session.campaign,
        "method": mechanism.name,
        "settings": applied,
        "epsilon": float(exact),
        "groups": [group.id for group in mechanism.groups(schema)],
        "wave": 1,
        "asked": sorted(session.wave),
    }
    head = f"{mechanism.name}, epsilon {float(exact):g}, campaign {session.campaign[:12]}"
    return Shown(record, [head, f"questions of wave 1: {directory / 'questions' / '1'}"])


def perturb(
    directory: Campaign,
    data: Annotated[str, option("--data", "TABLE", "A .parquet or .csv file, or a folder.")] = "",
    row_key: Annotated[str, option("--row-key", "COLUMN", "Tells the rows apart, and never changes.")] = "",
    columns: Annotated[Text, option("--columns", "A,B", "Columns in the order of the attributes.")] = None,
    job: Annotated[File, option("--job", "DIR", "Where key and ledger are kept; left out, beside the table.")] = None,
    out: Annotated[Text, option("--out", "DIR", "Folder for the reports; left out, the campaign's.")] = None,
    max_epsilon: Annotated[Text, option("--max-epsilon", "E", "Refuse to give away more in a report.")] = None,
    processes: Annotated[int, option("--processes", "N", "Processes of the local engine.")] = 1,
    end: Annotated[bool, flag("--end", "Answer nothing more: destroy the key of this campaign.")] = False,
    engine: Engine = "local",
) -> Shown:
    """Answer the open wave for the rows of a table, as their holder.

    Each row answers in exactly one wave, with one report. Key and ledger stay
    with the holder; the ledger refuses a second report on the same field.
    """
    check_engine(engine)
    if not data:
        raise ValueError("expected a table, by --data")
    if not row_key and not end:
        raise ValueError("expected a column that names each row, by --row-key")
    plan = perturbing.Plan.read(directory, row_key, inputs.names_of(columns), max_epsilon)
    if "://" in data and job is None:
        raise ValueError("expected a folder of this machine for key and ledger, by --job")
    holder = jobs.Job(job or f"{data.rstrip('/')}.ahead-job")
    if end:
        holder.end(plan.campaign)
        return Shown({"ended": True}, ["the key is destroyed; this campaign gets no further answer from this table"])
    reports = out or str((directory / layout.REPORTS).resolve())
    if engine == "local":
        done = perturbing.answer_table(directory, data, plan, holder, out=reports, processes=processes)
    else:
        frame, table = spark_holding.read_frame(spark_session.spark_session(), data)
        done = spark_holding.answer_frame(frame, plan, holder, reports, table)
    place = addresses.shown(reports)
    answered = f"{sum(done.reports.values()):,} of {done.rows:,} rows answered; their reports are in {place}"
    rest = "all groups have answered: the key is destroyed" if done.ended else "the other rows answer in other waves"
    record = {"wave": done.wave, "rows": done.rows, "reports": done.reports, "out": place, "ended": done.ended}
    return Shown(record, [f"wave {done.wave}: {answered}", rest])


def tally(
    paths: Annotated[list[str], argument("PATH...", "Report files, or folders of them.")],
    *,
    campaign: Annotated[
        File, option("--campaign", "DIR", "Where the questions are; left out, above the first path.")
    ] = None,
    counting: Counting,
    verify: Annotated[bool, flag("--verify", "Compare all bytes with the manifest.")] = False,
) -> Shown:
    """Count report files, wherever they lie."""
    questions = campaigns.all_questions(campaign or _campaign_around(paths[0]))
    engine = counting.chosen()
    if counting.engine == "local":
        files = manifests.find_files(paths)
    else:
        places = [str(Path(p) / layout.REPORTS) if (Path(p) / layout.CAMPAIGN).exists() else p for p in paths]
        files = [file for place in places for file in engine.find(place)]
    wire = runs.count_wire(paths, questions) if counting.engine == "local" else None
    if wire is not None and wire.files:
        if files:
            raise ValueError("expected reports in one form, got report files and files in the wire form")
        result = wire
    else:
        some = manifests.some_files(paths, files)
        result = engine.count(some, questions, dedup=counting.dedup, quarantine=counting.quarantine, verify=verify)
    counted = [(a, result.tallies[a.question]) for a in sorted(questions.values(), key=lambda a: (a.wave, a.group))]
    tallies = [{"wave": a.wave, "group": a.group, **protocol.tally_record(a.question, told)} for a, told in counted]
    rows = [[str(a.wave), a.group, a.oracle.name, str(a.oracle.d), f"{told.n:,}"] for a, told in counted]
    title = f"{several(result.reports, 'report')} in {several(len(result.files), 'file')}"
    table = Table(title, ["wave", "group", "oracle", "cells", "reports"], rows, left=3)
    campaign_of = next(iter(questions.values())).campaign
    counted_files = manifests.manifest_digest(campaign_of, [file.entry for file in result.files])
    record = {**_record(result), "manifest": counted_files, "tallies": tallies}
    return Shown(record, [table, *_left_out(result)])


def _campaign_around(path: str) -> Path:
    """The directory of a campaign that a path lies in."""
    start = Path(path).resolve()
    for folder in (start, *start.parents):
        if (folder / layout.CAMPAIGN).exists():
            return folder
    raise ValueError(f"expected {path!r} to lie in a campaign's directory; else name the directory by --campaign")


def advance(
    directory: Campaign,
    *,
    reports: Annotated[Text, option("--reports", "PATH", "Where the reports are, if not in DIR.")] = None,
    counting: Counting,
    allow_empty: Annotated[bool, flag("--allow-empty", "Close the wave without any report.")] = False,
    stored: Annotated[bool, flag("--stored", "Count the open wave without its method, and end with it.")] = False,
) -> Shown:
    """Close the open wave: count its files, and ask the next one.

    The list of files with their digests is frozen first. After the last wave
    the estimate is written.
    """
    with inputs.replaying("campaign", "counted", "--stored"):
        closed = campaigns.advance(
            directory,
            engine=counting.chosen(),
            reports=reports,
            dedup=counting.dedup,
            quarantine=counting.quarantine,
            allow_empty=allow_empty,
            reading="stored" if stored else None,
        )
    result, wave = closed.result, closed.wave
    head = f"wave {wave} closed: {several(result.reports, 'report')} in {several(len(result.files), 'file')}"
    follows = f"questions of wave {wave + 1}: {directory / 'questions' / str(wave + 1)}"
    if closed.last:
        follows = f"estimate: {directory / 'estimate.json'}"
    return Shown({"wave": wave, "last": closed.last, **_record(result)}, [head, *_left_out(result), follows])


def _record(result: counts.Result) -> dict[str, Any]:
    reports = {"reports": result.reports, "duplicates": result.duplicates}
    return {**reports, "files": len(result.files), "set_aside": result.set_aside}


def _left_out(result: counts.Result) -> list[str]:
    """What is not in the tallies, a line each."""
    lines = []
    if result.duplicates:
        lines.append(f"{result.duplicates:,} reports left out: another of the same id comes first")
    return lines + [f"set aside: {name} ({why})" for name, why in sorted(result.set_aside.items())]


def estimate(
    directory: Campaign,
    out: Annotated[File, option("--out", "FILE", "Save the estimate from the waves so far.")] = None,
    reading: Reading = None,
    *,
    shown: Intervals,
) -> Shown:
    """Say what the closed waves show so far."""
    wanted = inputs.reading(reading)
    with inputs.replaying("campaign", "estimated"):
        so_far, waves, finished = campaigns.read_estimate(directory, wanted)
    if out is not None:
        so_far.save(out)
    record = {**inputs.about(directory, so_far), "waves": waves, "finished": finished}
    last = f"after {several(waves, 'wave')}; {'there are no more' if finished else 'there are more to come'}"
    return Shown(record, inputs.summary(so_far, last, shown.kind))
