"""Listening, stopping, and running in a process or a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.edge.connection import Connection
from ahead_ldp.service.edge.handshakes import accept
from ahead_ldp.service.edge.house import App, House, ShortWay
from ahead_ldp.service.edge.limits import Limits
from ahead_ldp.service.edge.proxies import Proxies

_BACKLOG = 2048
_SPARE_FILES = 128  # descriptors that are not for connections: the store, the log, the loop
_POLL_S = 0.02
_START_S = 30.0


async def _nothing() -> None:
    """Nothing to start or stop."""


class Server:
    """HTTP/1.1 for one application, on one loop.

    ``start`` runs before the first connection is taken, ``stop`` after the last answer. A stopping server takes no new
    connection, answers what it has begun within ``shutdown_s``, and ends. ``announce`` is told the port that it got.
    With ``tls`` a handshake comes first, which has as long as the headers of a request. ``port_option`` is what whoever
    started this program types to take another port.
    """

    def __init__(
        self,
        app: App,
        host: str,
        port: int,
        *,
        limits: Limits | None = None,
        proxies: Proxies | None = None,
        short_way: ShortWay | None = None,
        start: Callable[[], Awaitable[None]] = _nothing,
        stop: Callable[[], Awaitable[None]] = _nothing,
        shutdown_s: float = 10.0,
        announce: Callable[[int], None] | None = None,
        tls: ssl.SSLContext | None = None,
        port_option: str = "--set port=",
    ) -> None:
        """Nothing listens yet."""
        self._port_option = port_option
        self._app, self._host, self._wanted = app, host, port
        self._limits, self._proxies, self._short_way = limits or Limits(), proxies or Proxies(""), short_way
        self._limits = replace(self._limits, connections=min(self._limits.connections, _room_for_files()))
        self._start, self._stop, self._shutdown_s, self._announce = start, stop, shutdown_s, announce
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._started = threading.Event()
        self.house: House | None = None
        self.port = 0  # the one that was bound

    def run(self) -> None:
        """Serve until the process is told to stop by a signal."""
        self._run(signals=True)

    def start_thread(self) -> threading.Thread:
        """Serve in a thread of its own; listening when this returns."""
        thread = threading.Thread(target=self._run, name="ahead-server", daemon=True)
        thread.start()
        if not self._started.wait(_START_S) or not self.port:
            raise RuntimeError("expected the server to start")
        return thread

    def ask_to_stop(self) -> None:
        """Stop as a signal would; from any thread."""
        if self._loop is not None and self._end is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._end.set)

    def _run(self, signals: bool = False) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self.serve(signals))
        finally:
            self._started.set()

    async def serve(self, signals: bool = False) -> None:
        """Listen, serve and stop, on the loop that runs."""
        loop = self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        house = self.house = House(self._app, self._limits, self._proxies, self._short_way)
        if signals:
            for name in (signal.SIGTERM, signal.SIGINT):
                with contextlib.suppress(NotImplementedError):  # Windows: the interruption ends the run
                    loop.add_signal_handler(name, self._end.set)
        bound = _bound(self._host, self._wanted, self._port_option)
        try:
            await self._start()
            stop_listening = await self._listen(house, bound)
        except BaseException:
            bound.close()
            raise
        self.port = bound.getsockname()[1]
        sweeping = loop.create_task(house.sweep())
        event("listening", port=self.port)
        if self._announce is not None:
            self._announce(self.port)
        self._started.set()
        await self._end.wait()
        stop_listening()
        await self._finish(house)
        sweeping.cancel()
        await self._stop()

    async def _listen(self, house: House, bound: socket.socket) -> Callable[[], object]:
        """Take connections from now on, until what is returned is called."""
        if self._tls is None:
            listening = await house.loop.create_server(lambda: Connection(house), sock=bound, backlog=_BACKLOG)
            return listening.close
        bound.listen(_BACKLOG)
        accepting = house.loop.create_task(accept(house, bound, self._tls))
        accepting.add_done_callback(lambda _: bound.close())
        return accepting.cancel

    async def _finish(self, house: House) -> None:
        """Answer what was begun, as long as there is time."""
        house.stopping = True
        for connection in list(house.everybody):
            connection.stop()
        until = house.loop.time() + self._shutdown_s
        while house.everybody and house.loop.time() < until:
            await asyncio.sleep(_POLL_S)
        for connection in list(house.everybody):
            connection.drop("stopped")


def _bound(host: str, port: int, port_option: str) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise ValueError(f"expected port in 0..65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise ValueError(
                f"expected host to be an address of this machine, got {host!r}: {error.strerror}"
            ) from None
        taken = "Another server may run there. " * (error.errno == errno.EADDRINUSE)
        raise ValueError(
            f"expected a free address to listen on, got {host} port {port}: {error.strerror}. {taken}"
            f"Take another one, as in {port_option}{port + 1 if 1024 <= port < 65_535 else 8440}"
        ) from None
    bound.setblocking(False)
    return bound


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where there is one."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


def _room_for_files() -> int:
    """How many connections this process may have: every one is an open file, and the limit is raised if it can be."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if allowed == resource.RLIM_INFINITY else max(1, allowed - _SPARE_FILES)
