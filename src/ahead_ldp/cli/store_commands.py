"""The commands around a store and their options; what they do is in `store`, loaded when they are called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

Url = Annotated[
    str, typer.Argument(metavar="STORE", help="A file, or postgresql://user@host/database.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else there.")]

store = typer.Typer(name="store", help="Look after a server's store.", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(store)


def _load() -> Any:
    return import_module("ahead_ldp.cli.store")


@store.command()
def check(url: Url, json: Json = False) -> None:
    """Read everything in a store, say what is there, try a write."""
    _load().check(url, json)


@store.command()
def backup(
    url: Url,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.", show_default=False)],
    json: Json = False,
) -> None:
    """Copy a store to one file, while the server goes on."""
    _load().backup(url, file, json)


@store.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.", show_default=False)],
    url: Url,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="CAMPAIGN", help="A campaign of which no wave was closed since; repeat for more."
        ),
    ] = None,
    epoch: Annotated[int, typer.Option("--epoch", metavar="N", help="At least this number for the new epoch.")] = 0,
    json: Json = False,
) -> None:
    """Fill an empty store from a backup, as a new epoch.

    Campaigns that had not ended are ended, unless they are kept.
    """
    _load().restore(file, url, keep or [], epoch, json)


@store.command()
def migrate(url: Url, json: Json = False) -> None:
    """Bring the tables of an older version up to this program's."""
    _load().migrate(url, json)
