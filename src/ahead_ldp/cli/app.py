"""The commands and their options. What they do is in the module of the same name, loaded when it is called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ahead_ldp.cli import batch_commands, device_commands, research_commands, service_commands, store_commands

app = typer.Typer(
    name="ahead",
    help="Range queries over private values, under local differential privacy.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="SPEC", help="One attribute, such as pay=real,0,500000,512; repeat for more."),
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="Attributes from a .toml or .json file.")
]
Data = Annotated[Path, typer.Option("--data", metavar="FILE", help="Records: .csv, .parquet or .npy.")]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B", help="Columns to take, in the order of the attributes.")
]
Codes = Annotated[bool, typer.Option("--codes", help="The data are codes 0..D-1 already; needs --buckets.")]
Buckets = Annotated[
    str | None,
    typer.Option("--buckets", metavar="D[,D...]", help="Codes of each attribute, where no attribute is declared."),
]
Epsilon = Annotated[str, typer.Option("--epsilon", metavar="E", help="Privacy parameter of a report.")]
Method = Annotated[
    str | None,
    typer.Option("--method", metavar="M", help="See `ahead methods`; left out, the best for the attributes."),
]
Paper = Annotated[bool, typer.Option("--paper", help="The settings of the method's own paper.")]
Strong = Annotated[bool, typer.Option("--strong", help="The strongest known settings, where a method has them.")]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else there.")]
Run = Annotated[Path, typer.Argument(metavar="DIR", help="A directory that `ahead collect` made.", show_default=False)]


def _load(command: str) -> Any:
    return import_module(f"ahead_ldp.cli.{command}")


def _settings(paper: bool, strong: bool) -> str:
    if paper and strong:
        raise ValueError("expected --paper or --strong, got both")
    return "paper" if paper else "strong" if strong else "default"


@app.command()
def methods(json: Json = False) -> None:
    """List every method: attributes, waves, source."""
    _load("methods").run(json)


@app.command()
def plan(
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E", help="Privacy parameter; left out, solved for.")
    ] = None,
    users: Annotated[
        int | None, typer.Option("--users", metavar="N", help="How many people will take part; left out, solved for.")
    ] = None,
    attribute: Attributes = None,
    schema: SchemaFile = None,
    method: Annotated[
        str | None,
        typer.Option("--method", metavar="M[,M...]", help="Several, or 'all', are compared; left out, the default."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="T", help="Error that 95 % of random range answers keep: 1% or 0.01."),
    ] = None,
    solve: Annotated[
        str | None, typer.Option("--solve", metavar="WHAT", help="users, epsilon, buckets or attributes.")
    ] = None,
    curve: Annotated[
        Path | None, typer.Option("--curve", metavar="FILE", help="Draw error against epsilon: .png, .svg or .pdf.")
    ] = None,
    shuffle_delta: Annotated[
        float | None,
        typer.Option("--shuffle-delta", metavar="D", help="Also the central epsilon behind a shuffler, at this delta."),
    ] = None,
    paper: Paper = False,
    strong: Strong = False,
    json: Json = False,
) -> None:
    """Say what a collection would look like, and the error to expect.

    The error is simulated on reference populations; no data are read. With
    --target, the number of people or the epsilon that is left out is found.
    """
    given = {"epsilon": epsilon, "users": users, "target": target, "solve": solve}
    wanted = {"method": method, "settings": _settings(paper, strong), "curve": curve, "delta": shuffle_delta}
    _load("plan").run(attribute, schema, given, wanted, json)


@app.command()
def evaluate(
    epsilon: Annotated[str, typer.Option("--epsilon", metavar="E[,E...]", help="Privacy parameters.")],
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="Records: .csv, .parquet or .npy.")
    ] = None,
    histogram: Annotated[
        Path | None, typer.Option("--histogram", metavar="FILE", help="Counts instead of records: .npy or .csv.")
    ] = None,
    columns: Columns = None,
    codes: Codes = False,
    buckets: Buckets = None,
    attribute: Attributes = None,
    schema: SchemaFile = None,
    method: Annotated[
        str | None, typer.Option("--method", metavar="M[,M...]", help="Left out, the best for the attributes.")
    ] = None,
    paper: Paper = False,
    strong: Strong = False,
    queries: Annotated[
        Path | None,
        typer.Option("--queries", metavar="FILE", help="lo,hi per attribute in codes, closed: .csv or .npy."),
    ] = None,
    random: Annotated[
        int | None, typer.Option("--random", metavar="Q", help="That many random queries; 200 without --queries.")
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", metavar="R", help="Repetitions of groups and noise.")] = 20,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Seed of queries, groups and noise.")] = 0,
    json: Json = False,
) -> None:
    """Compare methods on data at hand: error, time and memory.

    Data and queries stay fixed; every repetition draws groups and noise anew.
    Attributes are declared, or have D buckets between the bounds of the data,
    which is not private.
    """
    source = {"data": data, "histogram": histogram, "columns": columns, "codes": codes, "buckets": buckets}
    declared = {"attributes": attribute, "schema_file": schema}
    asked = {"queries": queries, "random": random, "repeats": repeats, "seed": seed}
    _load("evaluate").run(source, declared, epsilon, method, _settings(paper, strong), asked, json)


@app.command()
def collect(
    data: Data,
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A new directory for everything collected.")],
    columns: Columns = None,
    codes: Codes = False,
    buckets: Buckets = None,
    attribute: Attributes = None,
    schema: SchemaFile = None,
    method: Method = None,
    users: Annotated[
        int | None, typer.Option("--users", metavar="N", help="People the method plans for; left out, the rows.")
    ] = None,
    paper: Paper = False,
    strong: Strong = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Keep the reports as report files for `ahead tally`.")
    ] = False,
    json: Json = False,
) -> None:
    """Collect one real report per row, and write everything.

    Reports are made by the device layer and cross the wire form. Questions,
    reports, tallies and the estimate are written; no true value is.
    """
    source = {"columns": columns, "codes": codes, "buckets": buckets}
    declared = {"attributes": attribute, "schema_file": schema}
    settings = _settings(paper, strong)
    _load("collect").run(data, source, declared, epsilon, method, users, settings, out, parquet, json)


@app.command()
def query(
    run: Run,
    queries: Annotated[list[str], typer.Argument(metavar="QUERY", help='Such as "pay in 100000..120000".')],
    recount: Annotated[bool, typer.Option("--recount", help="Count the stored reports again as well.")] = False,
    json: Json = False,
) -> None:
    """Answer queries from a collected run, with standard errors.

    The run is replayed first; if anything differs there is no answer.
    """
    _load("query").run(run, queries, recount, json)


@app.command()
def plot(
    run: Run,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A .png, .svg or .pdf file.")],
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A[,B]", help="One or two attributes; left out, all.")
    ] = None,
    json: Json = False,
) -> None:
    """Draw the estimate of a collected run."""
    _load("plot").run(run, out, columns, json)


service_commands.register(app)
store_commands.register(app)
device_commands.register(app)
research_commands.register(app)
batch_commands.register(app)
