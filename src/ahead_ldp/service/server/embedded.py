"""The service at the edge: the server of a process, and the same inside a program, for demos and tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ahead_ldp.service.campaigns.operations import Clock, system_clock
from ahead_ldp.service.edge.proxies import Proxies
from ahead_ldp.service.edge.server import Server
from ahead_ldp.service.server.app import create_app
from ahead_ldp.service.server.application import Application
from ahead_ldp.service.server.config import NO_RATES, Settings
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.store.interface import Store


def make_server(app: Application, settings: Settings, announce: Callable[[int], None] | None = None) -> Server:
    """The edge over the application, with the deadlines and budgets of the settings."""
    server = Server(
        app,
        settings.host,
        settings.port,
        limits=settings.limits(),
        proxies=Proxies(settings.trusted_proxies),
        short_way=app.take,
        start=app.start,
        stop=app.stop,
        shutdown_s=settings.shutdown_s,
        announce=announce,
        tls=settings.tls(),
    )
    app.watch(server)
    app.service.stage = stage
    return server


@dataclass
class Embedded(AbstractContextManager["Embedded"]):
    """A running server: its address, and the service behind it. Use it as a context."""

    app: Application
    server: Server
    thread: threading.Thread

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.app.service.settings.host}:{self.server.port}"

    @property
    def service(self) -> Service:
        """What runs behind the routes."""
        return self.app.service

    def stop(self) -> None:
        """Stop as a signal would: finish what was begun, then end."""
        self.server.ask_to_stop()
        self.thread.join()

    def __exit__(self, *error: object) -> None:
        self.stop()


def stage(store: Store) -> Embedded:
    """A server for a rehearsal, on a free port of this machine: it takes rehearsals, and nothing else."""
    settings = Settings(port=0, closer_interval_s=0.1, log_level="warning", **NO_RATES)
    return start(store, settings, rehearsing=True)


def start(
    store: Store,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    pages: Callable[..., Any] | None = None,
    *,
    rehearsing: bool = False,
) -> Embedded:
    """A server in a thread of its own, listening when this returns. The store stays the caller's to close.

    Without settings it takes a free port, and does not limit how often one address asks: everybody is this machine.
    """
    settings = settings or Settings(port=0, **NO_RATES)
    app = create_app(store, settings, clock, pages, rehearsing=rehearsing)
    server = make_server(app, settings)
    return Embedded(app, server, server.start_thread())
