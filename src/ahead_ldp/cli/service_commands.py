"""The commands of the collection service and their options; what they do is in modules loaded when they are called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings from a .toml file.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="One setting, such as port=8440; repeat for more."),
]
Server = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="AHEAD_SERVER", help="Where the service is.", show_envvar=True)
]
Token = Annotated[
    str, typer.Option("--token", metavar="TOKEN", envvar="AHEAD_TOKEN", help="Token of your role.", show_envvar=True)
]
Name = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="Digest of the campaign.", show_default=False)]
Wave = Annotated[int | None, typer.Option("--wave", metavar="N", help="Number of the wave; left out, the latest.")]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else there.")]
_HERE = "http://127.0.0.1:8440"

campaign = typer.Typer(
    name="campaign", help="Create, run and query campaigns of a server.", no_args_is_help=True, rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(serve)
    app.command()(token)
    app.add_typer(campaign)
    app.command()(audit)


def _load(command: str) -> Any:
    return import_module(f"ahead_ldp.cli.{command}")


def serve(
    config: Config = None,
    set_: Set = None,
    init: Annotated[
        bool, typer.Option("--init", help="Make the first operator's token and print it, once, before serving.")
    ] = False,
    migrate: Annotated[bool, typer.Option("--migrate", help="Bring an older store up to this version.")] = False,
    settings: Annotated[bool, typer.Option("--settings", help="Print every setting and stop.")] = False,
) -> None:
    """Run the collection service.

    Settings come from the file, then from the environment, then from --set.
    """
    _load("serve").run(config, set_ or [], init, migrate, settings)


def token(
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help="operator or analyst.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="How the token is called when it is revoked.")],
    config: Config = None,
    set_: Set = None,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke the token of this name.")] = False,
) -> None:
    """Make or revoke a token, on the machine of the store.

    The token is printed once and kept nowhere.
    """
    _load("serve").make_token(config, set_ or [], role, name, revoke)


def audit(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of a campaign, ending with its digest.")],
    json: Json = False,
) -> None:
    """Recompute the public chain of a campaign, and say what matched."""
    _load("audit").run(url, json)


@campaign.command("create")
def create(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The campaign as .toml.", show_default=False)],
    server: Server = _HERE,
    token: Token = "",
    json: Json = False,
) -> None:
    """Create a campaign as a draft, and print its digest."""
    _load("campaign").create(server, token, file, json)


@campaign.command("list")
def list_(server: Server = _HERE, token: Token = "", json: Json = False) -> None:
    """List all campaigns."""
    _load("campaign").list_campaigns(server, token, json)


@campaign.command("open")
def open_(name: Name, server: Server = _HERE, token: Token = "", json: Json = False) -> None:
    """Open the first wave of a draft."""
    _load("campaign").change(server, token, name, "open", json)


@campaign.command("approve")
def approve(name: Name, server: Server = _HERE, token: Token = "", json: Json = False) -> None:
    """Open the next wave of a campaign in review."""
    _load("campaign").change(server, token, name, "approve", json)


@campaign.command("close")
def close(name: Name, wave: Wave = None, server: Server = _HERE, token: Token = "", json: Json = False) -> None:
    """Close a wave and count it."""
    _load("campaign").change_wave(server, token, name, wave, "close", json)


@campaign.command("release")
def release(name: Name, wave: Wave = None, server: Server = _HERE, token: Token = "", json: Json = False) -> None:
    """Count a wave that its screens hold."""
    _load("campaign").change_wave(server, token, name, wave, "release", json)


@campaign.command("extend")
def extend(
    name: Name,
    seconds: Annotated[int, typer.Option("--seconds", metavar="S", help="From now on.")],
    wave: Wave = None,
    server: Server = _HERE,
    token: Token = "",
    json: Json = False,
) -> None:
    """Give the open wave a new deadline."""
    _load("campaign").extend(server, token, name, wave, seconds, json)


@campaign.command("void")
def void(
    name: Name,
    wave: Wave = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="G", help="Give up only this group of a wave.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Give up the whole campaign.")] = False,
    server: Server = _HERE,
    token: Token = "",
    json: Json = False,
) -> None:
    """Give up a wave, one group of it, or the whole campaign.

    Reports are deleted uncounted.
    """
    _load("campaign").void(server, token, name, wave, group, whole, json)


@campaign.command("finish")
def finish(name: Name, server: Server = _HERE, token: Token = "", json: Json = False) -> None:
    """End a campaign here: count what the open wave has, ask no more."""
    _load("campaign").change(server, token, name, "finish?wait=60", json)


@campaign.command("progress")
def progress(name: Name, server: Server = _HERE, token: Token = "", json: Json = False) -> None:
    """Say how many reports the latest wave has."""
    _load("campaign").progress(server, token, name, json)


@campaign.command("results")
def results(name: Name, server: Server = _HERE, token: Token = "", json: Json = False) -> None:
    """Print the distribution of every attribute, with intervals."""
    _load("campaign").results(server, token, name, json)


@campaign.command("query")
def query(
    name: Name,
    queries: Annotated[list[str], typer.Argument(metavar="QUERY", help='Such as "pay in 100000..120000".')],
    server: Server = _HERE,
    token: Token = "",
    json: Json = False,
) -> None:
    """Answer range queries from the closed waves."""
    _load("campaign").query(server, token, name, queries, json)


@campaign.command("export")
def export(
    name: Name,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A new directory.")],
    parquet: Annotated[bool, typer.Option("--parquet", help="Reports as Parquet files.")] = False,
    server: Server = _HERE,
    token: Token = "",
) -> None:
    """Write everything as files, for a recount elsewhere."""
    _load("campaign").export(server, token, name, out, parquet)
