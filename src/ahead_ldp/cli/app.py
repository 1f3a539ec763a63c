"""The program `ahead`: which commands there are, and how they are loaded.

A command is a function of its name in a file of this folder: its parameters are the options, its docstring is the help,
and it returns what is shown. Or it is a group of such functions (``options.group``). A new one is a file, and a line
below.

Loading such a file costs next to nothing, so help is quick and needs no extra: what it imports of ours as modules
(``from ahead_ldp.engines import runs``) is loaded when the command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ahead_ldp.cli import options

COMMANDS = {  # by name, in the order of the help: the file that each is in
    "methods": "lists",
    "plan": "plan",
    "evaluate": "evaluate",
    "collect": "runs",
    "query": "runs",
    "plot": "runs",
    "serve": "serve",
    "token": "serve",
    "audit": "audit",
    "respond": "respond",
    "reproduce": "reproduce",
    "compare": "compare",
    "datasets": "lists",
    "start": "batch",
    "perturb": "batch",
    "tally": "batch",
    "advance": "batch",
    "estimate": "batch",
    "campaign": "campaign",
    "store": "store",
    "issue": "issue",
    "demo": "demo",
}


class _OnUse(MetaPathFinder):
    """Finds our own modules as modules that are loaded when they are first used."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module of ours is; None for others, which are looked for as always."""
        if not fullname.startswith("ahead_ldp."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


class _Program(TyperGroup):
    """A group of the commands in the table, each loaded when it is looked at."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # for the suggestions after a slip

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, from its file; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        finder = _OnUse()
        sys.meta_path.insert(0, finder)
        try:
            command = getattr(import_module(f"ahead_ldp.cli.{COMMANDS[cmd_name]}"), cmd_name)
        finally:
            sys.meta_path.remove(finder)
        return get_command(command if isinstance(command, typer.Typer) else options.group(None, command))


app = typer.Typer(
    cls=_Program,
    help="Range queries over private values, under local differential privacy.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(metadata.version("ahead-ldp"))
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before the command."""
