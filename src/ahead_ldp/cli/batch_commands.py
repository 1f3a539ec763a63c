"""The commands for reports in files; what they do is in modules loaded on use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else there.")]
Engine = Annotated[str, typer.Option("--engine", metavar="E", help="local or spark.")]
Dedup = Annotated[bool, typer.Option("--dedup/--no-dedup", help="Whether to look for reports that came twice.")]
Quarantine = Annotated[bool, typer.Option("--quarantine", help="Leave damaged files out, whole, and name them.")]
Campaign = Annotated[
    Path, typer.Argument(metavar="DIR", help="A campaign's directory, as `ahead start` makes it.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (start, perturb, tally, advance, estimate):
        app.command()(command)


def _load(command: str) -> Any:
    return import_module(f"ahead_ldp.cli.{command}")


def start(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory.", show_default=False)],
    epsilon: Annotated[str, typer.Option("--epsilon", metavar="E", help="Privacy parameter of a report.")],
    users: Annotated[int, typer.Option("--users", metavar="N", help="How many people will take part.")],
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="SPEC", help="One attribute, such as pay=real,0,500000,512."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", metavar="FILE", help="Attributes from a .toml or .json file.")
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", metavar="M", help="See `ahead methods`; left out, the best.")
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="The settings of the method's own paper.")] = False,
    strong: Annotated[bool, typer.Option("--strong", help="The strongest known settings.")] = False,
    json: Json = False,
) -> None:
    """Begin a campaign in batch: a directory with its first questions."""
    if paper and strong:
        raise ValueError("expected --paper or --strong, got both")
    settings = "paper" if paper else "strong" if strong else "default"
    _load("start").run(directory, attribute, schema, epsilon, users, method, settings, json)


def perturb(
    directory: Campaign,
    data: Annotated[str, typer.Option("--data", metavar="TABLE", help="A .parquet or .csv file, or a folder.")] = "",
    row_key: Annotated[
        str, typer.Option("--row-key", metavar="COLUMN", help="A stable name of each row, which nobody else has.")
    ] = "",
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Columns in the order of the attributes.")
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option("--job", metavar="DIR", help="Where key and ledger are kept; left out, beside the table."),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Folder for the reports; left out, the campaign's.")
    ] = None,
    max_epsilon: Annotated[
        str | None, typer.Option("--max-epsilon", metavar="E", help="Refuse to give away more in a report.")
    ] = None,
    processes: Annotated[int, typer.Option("--processes", metavar="N", help="Processes of the local engine.")] = 1,
    end: Annotated[bool, typer.Option("--end", help="Answer nothing more: destroy the key of this campaign.")] = False,
    engine: Engine = "local",
    json: Json = False,
) -> None:
    """Answer the open wave for the rows of a table, as their holder.

    Each row answers in exactly one wave, with one report. Key and ledger stay
    with the holder; the ledger refuses a second report on the same field.
    """
    where = {"data": data, "job": job, "out": out}
    how = {"row_key": row_key, "columns": columns, "max_epsilon": max_epsilon, "processes": processes}
    _load("perturb").run(directory, where, how, end, engine, json)


def tally(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Report files, or folders of them.")],
    campaign: Annotated[
        Path | None,
        typer.Option("--campaign", metavar="DIR", help="Where the questions are; left out, above the first path."),
    ] = None,
    engine: Engine = "local",
    dedup: Dedup = True,
    quarantine: Quarantine = False,
    verify: Annotated[bool, typer.Option("--verify", help="Compare all bytes with the manifest.")] = False,
    json: Json = False,
) -> None:
    """Count report files, wherever they lie."""
    _load("tally").run(paths, campaign, engine, dedup, quarantine, verify, json)


def advance(
    directory: Campaign,
    reports: Annotated[
        str | None, typer.Option("--reports", metavar="PATH", help="Where the reports are, if not in DIR.")
    ] = None,
    engine: Engine = "local",
    dedup: Dedup = True,
    quarantine: Quarantine = False,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Close the wave without any report.")] = False,
    json: Json = False,
) -> None:
    """Close the open wave: count its files, write the next questions.

    The list of files with their digests is frozen first. After the last wave
    the estimate is written.
    """
    _load("advance").run(directory, reports, engine, dedup, quarantine, allow_empty, json)


def estimate(
    directory: Campaign,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save the estimate from the waves so far.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what the waves closed so far amount to."""
    _load("estimate").run(directory, out, json)
