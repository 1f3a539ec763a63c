"""`ahead serve` and `ahead token`."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from ahead_ldp.cli import printing
from ahead_ldp.service.campaigns import logs
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.server.app import create_app
from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.server.config import Settings, settings_table
from ahead_ldp.service.server.embedded import make_server
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.store import SchemaMismatch, Store, StoreUnavailable, open_store

FIRST = "first"


def run(config: Path | None, flags: Sequence[str], init: bool, migrate: bool, show: bool) -> None:
    """Serve until a signal says stop."""
    if show:
        print(settings_table())
        return
    settings = read_settings(config, flags)
    store = _open(settings, migrate)
    try:
        if init and not store.role_tokens():
            print(Service(store, settings).add_token(Role.OPERATOR, FIRST), flush=True)
            printing.note("the operator's token, printed once: keep it")
        logs.configure(settings.log_level)
        for name in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again when it has stopped
            signal.signal(name, lambda *_: None)
        app = create_app(store, settings)
        app.pages = make_pages(app.service)
        make_server(app, settings).run()
    finally:
        store.close()


def make_token(config: Path | None, flags: Sequence[str], role: str, name: str, revoke: bool) -> None:
    """Make or revoke a token in the store itself."""
    if role not in tuple(Role):
        raise ValueError(f"expected --role to be one of {', '.join(Role)}, got {role!r}")
    settings = read_settings(config, flags)
    store = _open(settings, migrate=False)
    try:
        service = Service(store, settings)
        if revoke:
            if not store.revoke_role_token(name, service.clock()):
                raise ValueError("expected the name of a token that is not revoked")
            return
        print(service.add_token(role, name))
    except Problem as problem:
        raise ValueError(problem.detail) from None
    finally:
        store.close()


def read_settings(config: Path | None, flags: Sequence[str]) -> Settings:
    """The settings of file, environment and flags."""
    given = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals:
            raise ValueError(f"expected --set NAME=VALUE, got {flag!r}")
        given[name.strip()] = value.strip()
    return Settings.load(config, flags=given)


def _open(settings: Settings, migrate: bool) -> Store:
    try:
        return open_store(settings.store, migrate=migrate)
    except (SchemaMismatch, StoreUnavailable) as error:
        raise ValueError(f"the store cannot be opened: {error}") from None
