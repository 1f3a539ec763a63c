"""The server inside a program: uvicorn in a thread on a loopback port, for demos and tests."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvicorn

from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.campaigns.operations import Clock, system_clock
from ahead_ldp.service.server.app import create_app
from ahead_ldp.service.server.application import Application
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.store.interface import Store

_START_S = 30.0
# The first and the last version of uvicorn whose insides ``direct`` was tested with; 0.44 had others.
_FIRST, _LAST = (0, 45), (0, 54)


def knows(version: str) -> bool:
    """Whether uploads can go the short way through this version of uvicorn."""
    parts = re.match(r"(\d+)\.(\d+)\.\d+$", version)
    return parts is not None and _FIRST <= (int(parts[1]), int(parts[2])) <= _LAST


if TYPE_CHECKING or knows(uvicorn.__version__):  # what it extends may not even be there in another one
    from ahead_ldp.service.server.direct import DirectProtocol


class LoggingServer(uvicorn.Server):
    """uvicorn that says where it listens as one of our events."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and log the port."""
        await super().startup(sockets)
        if self.started:
            event("listening", port=self.port)

    @property
    def port(self) -> int:
        """The port that was bound."""
        return int(self.servers[0].sockets[0].getsockname()[1])


def make_server(app: Application, settings: Settings) -> LoggingServer:
    """uvicorn over the application: no access log, no server header, addresses only from trusted proxies."""
    config = uvicorn.Config(
        app,
        http=_protocol(app),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or None,
        timeout_graceful_shutdown=max(1, int(settings.shutdown_s)),
        timeout_keep_alive=30,
        lifespan="on",
        ws="none",
    )
    return LoggingServer(config)


def _protocol(app: Application) -> Any:
    """The short way where uvicorn is known, else uvicorn's own: the same answers for more CPU time."""
    if knows(uvicorn.__version__):
        return DirectProtocol.bound(app)
    event("short_way_off", logging.WARNING, reason="another version of uvicorn")
    return "auto"


@dataclass
class Embedded(AbstractContextManager["Embedded"]):
    """A running server: its address, and the service behind it. Use it as a context."""

    app: Application
    server: LoggingServer
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
        self.server.should_exit = True
        self.thread.join()

    def __exit__(self, *error: object) -> None:
        self.stop()


def start(
    store: Store, settings: Settings | None = None, clock: Clock = system_clock, pages: Callable[..., Any] | None = None
) -> Embedded:
    """A server in a thread of its own, listening when this returns. The store stays the caller's to close."""
    settings = settings or Settings(port=0)
    app = create_app(store, settings, clock, pages)
    server = make_server(app, settings)
    thread = threading.Thread(target=server.run, name="ahead-server", daemon=True)
    thread.start()
    until = time.monotonic() + _START_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > until:
            raise RuntimeError("expected the server to start")
        time.sleep(0.01)
    return Embedded(app, server, thread)
