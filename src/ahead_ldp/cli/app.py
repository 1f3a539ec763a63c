"""The program `ahead`: which commands there are, and how they are loaded.

A command is a function of its name in a file of this folder: its parameters are the options, its docstring is the help,
and it returns what is shown. Or it is a group of such functions (``options.group``). A new one is a file, and a line
below. What such a file imports of ours is loaded when the command runs (``later``), so help is quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ahead_ldp.cli import later, options

SECTIONS: dict[str, dict[str, str]] = {  # in the order of the help: commands, and the file that each is in
    "Begin": {
        "demo": "demo",
        "plan": "plan",
        "schedule": "schedule",
    },
    "Ask people over a server": {
        "serve": "serve",
        "campaign": "campaign",
        "respond": "respond",
        "issue": "issue",
        "token": "serve",
        "audit": "audit",
        "store": "store",
    },
    "Count reports in files": {
        "collect": "runs",
        "start": "batch",
        "perturb": "batch",
        "tally": "batch",
        "advance": "batch",
        "estimate": "batch",
    },
    "Read what was collected": {
        "query": "runs",
        "plot": "runs",
        "describe": "analysis",
        "difference": "analysis",
        "groups": "analysis",
        "weigh": "analysis",
        "series": "analysis",
        "report": "analysis",
    },
    "Compare methods": {
        "methods": "lists",
        "compare": "compare",
        "evaluate": "evaluate",
        "reproduce": "reproduce",
        "datasets": "lists",
        "new-method": "new_method",
    },
}


def commands() -> dict[str, str]:
    """Every command, in the order of the help, with its file."""
    return {name: file for section in SECTIONS.values() for name, file in section.items()}


class _Program(TyperGroup):
    """A group of the commands in the table, each loaded when it is looked at."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(commands())  # their names, in order, and for the suggestions after a slip

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, from its file; None if there is none of this name."""
        if cmd_name not in commands():
            return None
        command = _from_file(cmd_name)
        return get_command(command if isinstance(command, typer.Typer) else options.group(None, command))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The lists in the help: what each says of itself. Their options are not looked at, which takes longer."""
        room = formatter.width - 6 - max(map(len, commands()))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, _shortly(name, room)) for name in section])


def _shortly(name: str, room: int) -> str:
    command = _from_file(name)
    said = command.info.help if isinstance(command, typer.Typer) else command.__doc__
    return TyperCommand(name, help=said).get_short_help_str(room)


def _from_file(name: str) -> Any:  # a function, or a group of them
    with later.put_off():
        return getattr(later.real(f"ahead_ldp.cli.{commands()[name]}"), name.replace("-", "_"))


app = typer.Typer(
    cls=_Program,
    help="Range queries over private values, under local differential privacy.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib import metadata  # slow to load, and needed here alone

        print(metadata.version("ahead-ldp"))
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before the command."""
