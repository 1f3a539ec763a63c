"""One request and its answer through an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any, Protocol

from ahead_ldp.service.campaigns.logs import LOGGER
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.edge.answers import announced, has_body
from ahead_ldp.service.edge.house import House
from ahead_ldp.service.edge.requests import Headers, Request

Message = MutableMapping[str, Any]
_LARGE = 65_536  # bytes of a body from here on are not copied behind the head


class Line(Protocol):
    """A connection, as an exchange sees it."""

    house: House
    server: tuple[str, int] | None

    def write(self, data: bytes) -> None:
        """Write, if anybody is there."""

    def closes(self, request: Request) -> bool:
        """Whether the answer to this request is the last."""

    def answered(self, request: Request, close: bool) -> None:
        """The answer has been written."""

    def tell(self, request: Request, problem: Problem) -> None:
        """Answer with a problem."""

    def drop(self, reason: str) -> None:
        """End the connection at once."""

    async def drained(self) -> None:
        """Return when the peer has read enough; raise if it has gone."""

    async def gone(self) -> None:
        """Return when the connection has ended."""


class Exchange:
    """An application's view of one request. The whole body is its first message."""

    __slots__ = ("_chunked", "_connection", "_ended", "_given", "_left", "_request", "_started", "_status", "_task")

    def __init__(self, connection: Line, request: Request) -> None:
        """Nothing was said."""
        self._connection, self._request = connection, request
        self._status = 0
        self._started: Headers | None = None  # headers that go out with the first part of the body
        self._given = self._ended = self._chunked = False
        self._left: int | None = None  # bytes that are announced and still to be written
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Let the application begin; the connection goes on when it has ended."""
        house = self._connection.house
        house.working += 1
        self._task = house.loop.create_task(self._run(house))

    async def _run(self, house: House) -> None:
        try:
            await house.app(self._request.scope(self._connection.server), self._receive, self._send)
        except ConnectionResetError:
            pass  # the peer has gone, and the application stopped
        except Exception:
            LOGGER.exception("request_failed")
        finally:
            house.working -= 1
            self._finish()

    def _finish(self) -> None:
        connection = self._connection
        if self._ended:
            connection.answered(self._request, connection.closes(self._request))
        elif not self._status or self._started is not None:  # nothing has been written
            self._request.keep_alive = False
            connection.tell(self._request, Problem("internal"))
        else:  # half an answer must not look like a whole one
            connection.drop("incomplete_answer")
            connection.answered(self._request, True)

    async def _receive(self) -> Message:
        if not self._given:
            self._given = True
            return {"type": "http.request", "body": self._request.body, "more_body": False}
        await self._connection.gone()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start" and not self._status:
            self._status = message["status"]
            self._started = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
        elif kind == "http.response.body" and self._status and not self._ended:
            self._write(message.get("body", b""), message.get("more_body", False))
            await self._connection.drained()
        else:
            raise RuntimeError(f"expected the messages of one answer in order, got {kind}")

    def _write(self, body: bytes, more: bool) -> None:
        """A part of the answer; the first one goes out behind the headers."""
        request, head = self._request, b""
        allowed = has_body(self._status, request.method)
        if self._started is not None:
            head = self._head(self._started, len(body), more, allowed)
            self._started = None
        if not allowed:
            body = b""
        elif self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("expected as many bytes as were announced")
        elif self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        self._ended = not more
        write = self._connection.write
        if len(body) < _LARGE:
            write(head + body)
        else:
            write(head)
            write(body)

    def _head(self, headers: Headers, length: int, more: bool, allowed: bool) -> bytes:
        request, house = self._request, self._connection.house
        self._left = announced(headers) if allowed else None
        if self._left is None and allowed:
            if not more:
                self._left = length
                headers = [*headers, (b"content-length", b"%d" % length)]
            elif request.version == "1.1":
                self._chunked = True
                headers = [*headers, (b"transfer-encoding", b"chunked")]
            else:
                request.keep_alive = False  # the end of the connection is the end of the body
        return house.answers.head(self._status, headers, self._connection.closes(request))
