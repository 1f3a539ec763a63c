"""Options that several commands share, and how a function becomes a command.

A parameter whose type is a dataclass of options, such as ``declared: Declared``, stands for all of them, in order. A
function that returns something ``Shown`` has the option --json as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from ahead_ldp.cli import later
from ahead_ldp.cli.printing import Shown

# Types of options that may be left out.
Text = str | None
Texts = list[str] | None
File = Path | None


def option(name: str, metavar: str, text: str, **more: Any) -> Any:
    """An option with a value."""
    return typer.Option(name, metavar=metavar, help=text, **more)


def flag(name: str, text: str) -> Any:
    """An option that is there or not."""
    return typer.Option(name, help=text)


def argument(metavar: str, text: str) -> Any:
    """A value without a name."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


_Json = Annotated[bool, flag("--json", "JSON on standard output, and nothing else there.")]
Epsilon = Annotated[str, option("--epsilon", "E", "Privacy parameter of a report.")]
Epsilons = Annotated[str, option("--epsilon", "E[,E...]", "Privacy parameters.")]
Method = Annotated[Text, option("--method", "M", "See `ahead methods`; left out, the best for the attributes.")]
Data = Annotated[File, option("--data", "FILE", "Records: .csv, .parquet or .npy.")]
Columns = Annotated[Text, option("--columns", "A,B", "Columns to take, in the order of the attributes.")]
Repeats = Annotated[int, option("--repeats", "R", "Repetitions of groups and noise.")]
Reading = Annotated[
    Text,
    option("--reading", "V", "Another version of the estimate: a number, newest, or stored (without its method)."),
]
Queries = Annotated[list[str], argument("QUERY", 'Such as "pay in 100000..120000".')]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Which intervals answers have."""

    intervals: Annotated[
        str,
        option("--intervals", "KIND", "strict, from the reports alone; or model, narrower if its assumption holds."),
    ] = "strict"

    def __post_init__(self) -> None:
        """Refuse any other kind."""
        if self.intervals not in ("strict", "model"):
            raise ValueError(f"expected --intervals to be strict or model, got {self.intervals!r}")

    @property
    def kind(self) -> Literal["strict", "model"]:
        """The kind, as answers know it."""
        return "model" if self.model else "strict"

    @property
    def model(self) -> bool:
        """Whether they rest on the model: then its errors and marks are shown too."""
        return self.intervals == "model"


@dataclass(frozen=True, slots=True)
class Declared:
    """Attributes, declared by text or by a file."""

    attribute: Annotated[
        Texts,
        option("--attribute", "SPEC", "One attribute, such as pay=real,0,500000,512; repeat for more."),
    ] = None
    schema: Annotated[File, option("--schema", "FILE", "Attributes from a .toml or .json file.")] = None


@dataclass(frozen=True, slots=True)
class Source:
    """Which columns of a file, and what their values are."""

    columns: Columns = None
    codes: Annotated[bool, flag("--codes", "The data are codes 0..D-1 already; needs --buckets.")] = False
    buckets: Annotated[
        Text, option("--buckets", "D[,D...]", "Codes of each attribute, where no attribute is declared.")
    ] = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Which settings of a method."""

    paper: Annotated[bool, flag("--paper", "The settings of the method's own paper.")] = False
    strong: Annotated[bool, flag("--strong", "The strongest known settings, where a method has them.")] = False

    def __post_init__(self) -> None:
        """Refuse both."""
        if self.paper and self.strong:
            raise ValueError("expected --paper or --strong, got both")

    def __str__(self) -> str:
        return "paper" if self.paper else "strong" if self.strong else "default"


def at_least(least: int, **numbers: int) -> None:
    """Refuse a number that is too small, naming its option."""
    for name, number in numbers.items():
        if number < least:
            raise ValueError(f"expected --{name} >= {least}, got {number}")


def one_of(**values: object) -> None:
    """Refuse two options of which exactly one is to be given."""
    given = [value for value in values.values() if value is not None]
    if len(given) != 1:
        expected = " or ".join(f"--{name}" for name in values)
        raise ValueError(f"expected {expected}, got {'both' if given else 'neither'}")


def check_engine(name: str) -> str:
    """The name, if it is an engine's."""
    if name not in ("local", "spark"):
        raise ValueError(f"expected --engine to be local or spark, got {name!r}")
    return name


def group(text: str | None, *bodies: Callable[..., object]) -> typer.Typer:
    """Functions as commands of their names; one alone, without a text for all of them, is a command itself.

    Without a command after its name, a group shows its help.
    """
    commands = typer.Typer(help=text, add_completion=False, rich_markup_mode=None)
    if text is not None:
        commands.callback(invoke_without_command=True)(_show_help)
    for body in bodies:
        commands.command(body.__name__.rstrip("_"))(_command(body))
    return commands


def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _command(body: Callable[..., object]) -> Callable[..., object]:
    """The function as Typer reads it: an option for each field of its dataclasses, and --json for what it shows."""
    hints = get_type_hints(body, include_extras=True)
    shows = hints.pop("return") is Shown
    composed: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for name, parameter in inspect.signature(body).parameters.items():
        if name not in composed:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        types = get_type_hints(composed[name], include_extras=True)
        parameters += [
            inspect.Parameter(f.name, parameter.KEYWORD_ONLY, default=f.default, annotation=types[f.name])
            for f in fields(composed[name])
        ]
    if shows:
        parameters.append(inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_Json))

    @wraps(body)
    def command(as_json: bool = False, **values: Any) -> object:
        """Load what the command's file put off, gather the fields, run, and show."""
        later.load()
        for name, kind in composed.items():
            values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
        result = body(**values)
        return result.show(as_json) if isinstance(result, Shown) else result

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command
