"""`ahead serve` and `ahead token`: on the machine of the store."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from ahead_ldp.cli import printing
from ahead_ldp.cli.options import File, Text, Texts, flag, option
from ahead_ldp.device import canonical
from ahead_ldp.service import dashboard
from ahead_ldp.service import store as stores
from ahead_ldp.service.campaigns import logs, problems
from ahead_ldp.service.server import app, auth, config, embedded, service

FIRST, FIRST_S = "first", 86_400  # the first operator's token: its name, and how long it is valid
_DAY_S, _MOST_DAYS = 86_400, 36_500
_EVERYWHERE = ("0.0.0.0", "::", "")  # addresses that stand for all of this machine's


@dataclass(frozen=True, slots=True)
class Given:
    """Where the settings come from, beside the environment."""

    file: Annotated[File, option("--config", "FILE", "Settings from a .toml file.")] = None
    set_: Annotated[Texts, option("--set", "NAME=VALUE", "One setting, such as port=8440; repeat for more.")] = None

    def settings(self) -> config.Settings:
        """The settings of file, environment and flags."""
        flags = {}
        for text in self.set_ or ():
            name, equals, value = text.partition("=")
            if not equals:
                raise ValueError(f"expected --set NAME=VALUE, got {text!r}")
            flags[name.strip()] = value.strip()
        return config.Settings.load(self.file, flags=flags)


def serve(
    *,
    given: Given,
    init: Annotated[
        bool, flag("--init", "Make the first operator's token, valid for a day, and print it before serving.")
    ] = False,
    sign_in: Annotated[
        bool,
        flag("--sign-in", "Make an operator's token, valid for a day, at every start, and print it before serving."),
    ] = False,
    migrate: Annotated[bool, flag("--migrate", "Bring an older store up to this version.")] = False,
    show: Annotated[bool, flag("--settings", "Print every setting and stop.")] = False,
) -> None:
    """Run the collection service.

    Settings come from the file, then from the environment, then from --set.
    """
    if show:
        print(config.settings_table())
        return
    settings = given.settings()
    _check_keys(settings)
    _check_whole(settings)
    with _opened(settings, migrate) as store:
        if any(canonical.parse_canonical(row.record).get("rehearsal") for row in store.campaigns()):
            raise ValueError("expected a store of campaigns, got that of a rehearsal, which synthetic people answered")
        served = app.create_app(store, settings)
        first = ""
        if sign_in or (init and not store.role_tokens()):
            name = f"sign-in-{secrets.token_hex(8)}" if sign_in else FIRST
            first = served.service.add_token(auth.Role.OPERATOR, name, FIRST_S)
            print(first, flush=True)
            printing.note("the operator's token, printed once and valid for a day: make one of your own with it")
        elif init:
            printing.note(
                "the first token was printed before; `ahead serve --sign-in` prints another, "
                "and so does `ahead token --role operator --name NAME`"
            )
        logs.configure(settings.log_level)
        served.service.note_settings()
        served.pages = dashboard.make_pages(served.service)
        embedded.make_server(served, settings, partial(_announce, settings, first)).run()


def _announce(settings: config.Settings, first: str, port: int) -> None:
    """Where the server is, and what to do next, once it listens; a new token is in the link, behind the #."""
    host, scheme = settings.host, "https" if settings.tls_certificate else "http"
    here = "localhost" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    url = f"{scheme}://{here}:{port}"
    door = "open that link and sign in" if first else "sign in there with your token"
    lines = (
        f"serving at {url}",
        f"the dashboard: {url}/login#{first}" if first else f"the dashboard: {url}/",
        f"next: {door}, or `ahead campaign new --server {url}`; Ctrl-C ends the server",
    )
    with suppress(OSError):  # nobody reads along
        print(*lines, sep="\n", flush=True)


def token(
    *,
    name: Annotated[str, option("--name", "NAME", "How the token is called when it is revoked.")],
    given: Given,
    role: Annotated[Text, option("--role", "ROLE", "operator, analyst or monitor; of a new token.")] = None,
    days: Annotated[int, option("--days", "N", "How long it is valid.")] = 365,
    revoke: Annotated[bool, flag("--revoke", "Revoke the token of this name.")] = False,
) -> None:
    """Make or revoke a token, on the machine of the store.

    The token is printed once and kept nowhere.
    """
    if role not in tuple(auth.Role) and not (revoke and role is None):
        raise ValueError(f"expected --role to be one of {', '.join(auth.Role)}, got {role or 'none'!r}")
    if not 1 <= days <= _MOST_DAYS:
        raise ValueError(f"expected --days in 1..{_MOST_DAYS}, got {days}")
    if not revoke and not auth.TOKEN_NAME.fullmatch(name):
        raise ValueError(f"expected --name to be 1 to 100 letters, digits, dots, dashes and underscores, got {name!r}")
    settings = given.settings()
    if (path := stores.missing_file(settings.store)) is not None:
        there = "an empty" if path.exists() else "no"
        raise ValueError(f"expected the store of a server, but there is {there} file {path}: name it, --set store=FILE")
    with _opened(settings) as store:
        tokens = service.Service(store, settings)
        if not revoke and role is not None:
            try:
                print(tokens.add_token(role, name, days * _DAY_S))
            except problems.Problem as problem:
                raise ValueError(problem.detail) from None
        elif not tokens.revoke_token(name):
            raise ValueError(f"expected the name of a token that is not revoked, got {name!r}")


def _check_keys(settings: config.Settings) -> None:
    """A key directory is made when it is needed; one that is there must be usable, or no wave can be opened."""
    keys = Path(settings.keys)
    if keys.exists() and not (keys.is_dir() and os.access(keys, os.R_OK | os.W_OK | os.X_OK)):
        raise ValueError(f"expected keys to be a directory that this user may read and write, got {settings.keys!r}")


def _check_whole(settings: config.Settings) -> None:
    """A store that was cut off to nothing is not taken for a new one, which would count known reports again."""
    path = stores.missing_file(settings.store)
    if path is not None and path.exists():
        raise ValueError(
            f"expected a store, got an empty file {str(path)!r}: restore a backup, or remove the file for a new store"
        )


@contextmanager
def _opened(settings: config.Settings, migrate: bool = False) -> Iterator[stores.Store]:
    """The store of the settings, closed at the end."""
    try:
        store = stores.open_store(settings.store, migrate=migrate, keys=settings.keys)
    except (stores.SchemaMismatch, stores.StoreUnavailable) as error:
        named = "" if "://" in settings.store else f" {settings.store!r}"  # a URL may hold a password
        raise ValueError(f"the store{named} cannot be opened: {error}") from None
    with closing(store):
        yield store
