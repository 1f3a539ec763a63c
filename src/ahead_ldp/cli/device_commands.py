"""The commands of the people who answer and of the issuer of tokens; what they do is in modules loaded on use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else there.")]
Office = Annotated[Path, typer.Argument(metavar="DIR", help="Where the issuer keeps its key.", show_default=False)]

issue = typer.Typer(
    name="issue", help="Issue tokens: one for every enrolled person.", no_args_is_help=True, rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(respond)
    app.add_typer(issue)


def _load(command: str) -> Any:
    return import_module(f"ahead_ldp.cli.{command}")


def respond(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the service is.", show_default=False)],
    campaign: Annotated[
        str,
        typer.Argument(metavar="CAMPAIGN", help="Digest of the campaign, from your invitation.", show_default=False),
    ],
    value: Annotated[
        list[str] | None,
        typer.Option("--value", metavar="NAME=V", help="An answer, for scripts; others here may see it in `ps`."),
    ] = None,
    values: Annotated[
        str | None, typer.Option("--values", metavar="FILE", help="Answers as a JSON object; - is standard input.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Consent without being asked.")] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger", metavar="FILE", envvar="AHEAD_LEDGER", help="What was answered so far.", show_envvar=True
        ),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME=FIELD", help="Your own name for what the campaign calls NAME."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="FIELD=E", help="Lifetime limit of a field; without one it is reported once."),
    ] = None,
    max_epsilon: Annotated[
        str, typer.Option("--max-epsilon", metavar="E", help="Refuse to give away more in one report.")
    ] = "4",
    min_group: Annotated[
        int, typer.Option("--min-group", metavar="N", help="Refuse campaigns that count smaller groups.")
    ] = 10,
    mirror: Annotated[
        str | None, typer.Option("--mirror", metavar="URL", help="A second way to the campaign, to compare with.")
    ] = None,
    issuer: Annotated[
        str | None, typer.Option("--issuer", metavar="URL", help="Who signs tokens, where the campaign asks for one.")
    ] = None,
    secret: Annotated[
        Path | None, typer.Option("--secret", metavar="FILE", help="The secret that the issuer's operator gave you.")
    ] = None,
    jitter: Annotated[
        int, typer.Option("--jitter", metavar="S", help="Send at a random moment within this many seconds.")
    ] = 30,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take the answer back; until its wave closes.")] = False,
    opt_out: Annotated[
        bool, typer.Option("--opt-out", help="Withdraw, wipe what is unsent, answer nothing more.")
    ] = False,
    opt_in: Annotated[bool, typer.Option("--opt-in", help="Answer again after opting out.")] = False,
    json: Json = False,
) -> int:
    """Answer a campaign as one of its people.

    You see who asks, what and why, and what it costs in privacy; only after
    your yes are you asked for the answer. Noise is added here, once.
    """
    given = {"value": value or [], "values": values, "yes": yes, "withdraw": withdraw}
    given |= {"opt_out": opt_out, "opt_in": opt_in}
    limits = {"field": field or [], "limit": limit or [], "max_epsilon": max_epsilon, "min_group": min_group}
    ways = {"mirror": mirror, "issuer": issuer, "secret": secret, "jitter": jitter, "ledger": ledger}
    code: int = _load("respond").run(url, campaign, given, limits, ways, json)
    return code


@issue.command("create")
def create(
    directory: Office,
    tier: Annotated[
        str, typer.Option("--tier", metavar="TIER", help="blind: the issuer cannot link; signed: it can.")
    ] = "blind",
    bits: Annotated[int, typer.Option("--bits", metavar="B", help="2048, 3072 or 4096.")] = 2048,
) -> None:
    """Make a key for one campaign, and print its `token` field."""
    _load("issue").create(directory, tier, bits)


@issue.command("enrol")
def enrol(
    directory: Office,
    count: Annotated[int | None, typer.Option("--count", metavar="N", help="People to make secrets for.")] = None,
    secrets: Annotated[
        Path | None, typer.Option("--secrets", metavar="FILE", help="Secrets of your own, one a line.")
    ] = None,
) -> None:
    """Enrol people, and print their one-time secrets.

    They are printed here once; only their hashes are kept.
    """
    _load("issue").enrol(directory, count, secrets)


@issue.command("key")
def key(directory: Office) -> None:
    """Print the `token` field for the campaign's record."""
    _load("issue").key(directory)


@issue.command("status")
def status(directory: Office, json: Json = False) -> None:
    """Say how many people are enrolled, and how many came."""
    _load("issue").status(directory, json)


@issue.command("serve")
def serve(
    directory: Office,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="PORT", help="Port to listen on.")] = 8441,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-origin", metavar="ORIGIN", help="A site whose participant's page asks here; repeat it."
        ),
    ] = None,
) -> None:
    """Sign for enrolled people, in a process of its own."""
    _load("issue").serve(directory, host, port, allowed_origin or [])
