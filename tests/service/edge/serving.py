"""The edge over a small application, and raw sockets to it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ahead_ldp.service.edge.limits import Limits
from ahead_ldp.service.edge.server import Server

BIG = 8 << 20
PART = bytes(100_000)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Routes that behave, and some that do not."""
    message = await receive()
    route, headers = scope["path"], [(b"content-type", b"text/plain")]

    async def start(status: int = 200, *more: tuple[bytes, bytes]) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})

    async def say(body: bytes, more: bool = False) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": more})

    if route == "/echo":
        said = {name: scope[name] for name in ("method", "path", "scheme", "client", "http_version")}
        said["query"], said["body"] = scope["query_string"].decode(), len(message["body"])
        await start()
        await say(json.dumps(said).encode())
    elif route == "/big":
        await start()
        await say(bytes(BIG))
    elif route == "/stream":
        await start()
        for _ in range(80):
            await say(PART, more=True)
        await say(b"")
    elif route == "/wait":
        await asyncio.sleep(0.5)
        await start()
        await say(b"waited")
    elif route == "/gone":
        assert (await receive())["type"] == "http.disconnect"
    elif route == "/empty":
        await start(204)
        await say(b"")
    elif route == "/announced":
        await start(200, (b"content-length", b"5"))
        await say(b"ab", more=True)
        await say(b"cde")
    elif route == "/too-little":
        await start(200, (b"content-length", b"5"))
        await say(b"ab")
    elif route == "/split":
        await start(200, (b"x-a", b"b\r\nx-c: d"))
        await say(b"")
    elif route == "/half":
        await start()
        await say(b"half", more=True)
        raise RuntimeError("secret")
    elif route == "/fails":
        raise RuntimeError("secret")


class Edge:
    """A running edge."""

    def __init__(self, server: Server) -> None:
        self.server = server

    @property
    def house(self) -> Any:
        return self.server.house

    def connect(self, small: bool = False) -> socket.socket:
        connection = socket.socket()
        if small:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        try:
            connection.connect(("127.0.0.1", self.server.port))
        except OSError:
            connection.close()
            raise
        return connection

    def exchange(self, data: bytes) -> bytes:
        """Send, and read until the server closes."""
        with self.connect() as connection:
            connection.sendall(data)
            return rest(connection)


def get(path: str, *lines: str, method: str = "GET", version: str = "1.1", body: bytes = b"") -> bytes:
    """A request after which the connection may close."""
    head = [f"{method} {path} HTTP/{version}", "host: x", *lines]
    if body:
        head.append(f"content-length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def last(path: str, *lines: str, **options: Any) -> bytes:
    """A request after which the connection closes."""
    return get(path, "connection: close", *lines, **options)


def rest(connection: socket.socket) -> bytes:
    """Everything until the end."""
    data = b""
    try:
        while more := connection.recv(1 << 20):
            data += more
    except ConnectionResetError:
        pass
    return data


@contextmanager
def serving(application: Any = app, short_way: Any = None, proxies: Any = None, **limits: Any) -> Iterator[Edge]:
    server = Server(
        application, "127.0.0.1", 0, limits=Limits(**limits), short_way=short_way, proxies=proxies, shutdown_s=5
    )
    thread = server.start_thread()
    yield Edge(server)
    server.ask_to_stop()
    thread.join()
