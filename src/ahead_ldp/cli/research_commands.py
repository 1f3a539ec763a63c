"""The commands for research: reproduce the paper, compare methods on data at hand, list the data sets."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else there.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (reproduce, compare, datasets):
        app.command()(command)


def _load(command: str) -> Any:
    return import_module(f"ahead_ldp.cli.{command}")


def reproduce(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A folder; started again, it goes on there.")],
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="FIGURE", help="fig5 to fig18, table3, or all; all if left out.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a minute or two.")] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="J", help="Processes; left out, one per core.")] = None,
    engine: Annotated[str, typer.Option("--engine", metavar="E", help="local, or spark for a cluster.")] = "local",
    plan: Annotated[bool, typer.Option("--plan", help="Say what would run and how long, and stop.")] = False,
    json: Json = False,
) -> None:
    """Reproduce the evaluation of the AHEAD paper.

    Tables, figures, and a report with the paper's findings beside ours.
    A run that was killed goes on where it was.
    """
    _load("reproduce").run(figures or ["all"], quick, out, jobs, engine, plan, json)


def compare(
    epsilon: Annotated[str, typer.Option("--epsilon", metavar="E[,E...]", help="Privacy parameters.")],
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="Records: .csv, .parquet or .npy.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Or a data set or shape of `ahead datasets`.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Columns to take, in the order of the attributes.")
    ] = None,
    buckets: Annotated[
        str | None, typer.Option("--buckets", metavar="D[,D...]", help="Codes of each attribute.")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="SPEC", help="One attribute, such as pay=real,0,500000,512."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", metavar="FILE", help="Attributes from a .toml or .json file.")
    ] = None,
    users: Annotated[
        str | None,
        typer.Option("--users", metavar="N[,N...]", help="Drawn from the data; left out, everybody once."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", metavar="M[,M...]", help="M, M:paper or M:strong; left out, all that fit."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", metavar="R", help="Repetitions of groups and noise.")] = 10,
    random: Annotated[int, typer.Option("--random", metavar="Q", help="Random queries.")] = 200,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Seed of people, queries, groups and noise.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", metavar="J", help="Processes.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Tables, figure and page; a killed run goes on there.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare methods on your own data, and recommend one.

    The recommendation comes from the measurements, for every number of
    people and epsilon, and names all methods that are as good.
    """
    source = {"data": data, "dataset": dataset, "columns": columns, "buckets": buckets}
    declared = {"attributes": attribute, "schema_file": schema}
    asked = {"repeats": repeats, "queries": random, "seed": seed, "users": users}
    _load("compare").run(source, declared, epsilon, method, asked, jobs, out, json)


def datasets(json: Json = False) -> None:
    """List the data sets: which are here, which are missing, how to get them."""
    _load("datasets").run(json)
