"""One connection: bytes to whole requests, one answer after the other, and a close for everything that is not ours."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.edge.answers import CONTINUE, Lines
from ahead_ldp.service.edge.exchange import Exchange
from ahead_ldp.service.edge.house import House
from ahead_ldp.service.edge.requests import Headers, Request

METHODS = frozenset([b"GET", b"HEAD", b"POST", b"DELETE", b"OPTIONS"])
MOST_HEADER_BYTES, MOST_HEADERS, MOST_QUEUED = 16_384, 100, 16
_PER_HEADER = 140  # bytes of memory beside what a header says
_FRAMING = 2  # a chunked body may be this many times as long as what it holds
CLOSE_S = 2.0  # how long the peer of a refused request may take to read why
_IDLE, _HEADERS, _BODY, _OVER = range(4)  # what is read at the moment


class Connection(asyncio.Protocol):
    """HTTP/1.1 with one peer.

    A request reaches the application when its last byte is there, and not before the answer to the one before it. What
    cannot be one of ours (another protocol, an unknown method, lengths that contradict each other) is answered with a
    problem and a close, and no byte after it is looked at: two readers of these bytes cannot find different requests.
    """

    __slots__ = (
        "_arrived", "_behind", "_body", "_current", "_fresh", "_gone", "_headers", "_last", "_length", "_parser",
        "_paused", "_pending", "_queue", "_read", "_reading", "_scheme", "_silent", "_since", "_target", "_unread",
        "house", "peer", "server", "transport",
    )  # fmt: skip

    def __init__(self, house: House, arrived: Callable[[], None] | None = None) -> None:
        """Nothing has come. ``arrived`` is called when the connection is made, before the house counts it."""
        self.house, self._arrived = house, arrived
        self._parser: Any = HttpRequestParser(self)
        self._reading, self._fresh, self._last, self._silent = _IDLE, True, False, False
        self._current: Request | None = None  # with the application
        self._queue: deque[Request] = deque()  # whole requests behind it
        self._behind = 0  # what their headers weigh
        self._pending: Request | None = None  # its headers are there, its body comes
        self._headers: Headers = []
        self._body: bytes | bytearray = b""
        self._target = b""
        self._length = self._read = self._unread = 0
        self._paused: asyncio.Future[None] | None = None  # the peer does not read; done when it does again
        self._gone: asyncio.Future[None] | None = None  # for an application that wants to know
        self._since = house.loop.time()
        self._scheme = "http"
        self.transport: Any = None
        self.peer: tuple[str, int] | None = None
        self.server: tuple[str, int] | None = None

    # The transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        self.transport = transport
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.peer = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None
        self.server = (str(own[0]), int(own[1])) if isinstance(own, tuple) else None
        if transport.get_extra_info("ssl_object") is not None:
            self._scheme = "https"
        if self._arrived is not None:
            self._arrived()
        self.house.admit(self)

    def data_received(self, data: bytes) -> None:
        """Some bytes."""
        if self._reading == _OVER:
            return
        self._read += len(data)
        if self._reading == _IDLE:
            self._begin()
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self.refuse("invalid_request", "upgrade")
        except HttpParserError:
            self.refuse("invalid_request", "malformed")
        if self._reading == _HEADERS and self._read > MOST_HEADER_BYTES:
            self.refuse("headers_too_large", "headers")
        elif self._reading == _BODY:
            self.house.bodies[self] = None  # keeps its place if it has one
            if self._read > _FRAMING * self.house.limits.body_bytes + MOST_HEADER_BYTES:
                self.refuse("too_large", "too_large")

    def eof_received(self) -> bool:
        """The peer sends no more, but may wait for an answer."""
        if self._current is None:
            return False
        self._end_reading()
        _resolve(self._gone)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """The end."""
        self._end_reading()
        self._parser = None
        self.house.held -= sum(len(request.body) for request in self._queue)
        self._queue.clear()
        self.house.leave(self)
        _resolve(self._paused)
        _resolve(self._gone)

    def pause_writing(self) -> None:
        """The peer leaves its answers unread: from now on the server waits for it."""
        self._paused = self.house.loop.create_future()
        self.house.waiting[self] = None

    def resume_writing(self) -> None:
        """It reads again."""
        _resolve(self._paused)
        self._paused = None
        if self._current is not None:
            self.house.waiting.pop(self, None)
        self._go_on()

    # The parser's calls. They never raise: the parser would say nothing but that they did.

    def on_message_begin(self) -> None:
        """A request begins, perhaps right behind another."""
        if self._reading == _IDLE:
            self._begin()

    def _begin(self) -> None:
        self._reading, self._since, self._fresh = _HEADERS, self.house.loop.time(), False
        self._headers, self._target = [], b""

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header. Those behind a body are not looked at."""
        if self._reading == _HEADERS:
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Refuse what is not ours before its body is read."""
        if self._reading != _HEADERS:
            return
        parser, request = self._parser, Request(self._target, self._headers)
        method = parser.get_method()
        if parser.should_upgrade():
            self.refuse("invalid_request", "upgrade")
        elif method not in METHODS:
            self.refuse("method_not_allowed", "method")
        elif not request.target.startswith(b"/") or not request.target.isascii():
            self.refuse("invalid_request", "target")
        elif self._acceptable(request, parser.get_http_version()):
            request.method, request.keep_alive = (
                method.decode(),
                parser.should_keep_alive() and request.version == "1.1",
            )
            self._pending, self._reading, self._read = request, _BODY, 0
            self._since = self.house.loop.time()

    def _acceptable(self, request: Request, version: str) -> bool:
        """Whether the headers ask for what is done here; if not, the request is refused."""
        hosts, expects, total = 0, False, len(request.target)
        for name, value in request.headers:
            total += len(name) + len(value)
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                if not value.isdigit() or int(value) > self.house.limits.body_bytes:
                    self.refuse("too_large", "too_large")
            elif name == b"expect":
                expects = True
            elif name == b"upgrade":
                self.refuse("invalid_request", "upgrade")
        if total > MOST_HEADER_BYTES or len(request.headers) > MOST_HEADERS:
            self.refuse("headers_too_large", "headers")
        elif version not in ("1.0", "1.1") or hosts > 1 or (version == "1.1" and not hosts):
            self.refuse("invalid_request", "malformed")
        if self._reading == _OVER:
            return False
        request.version, request.weight = version, total + _PER_HEADER * len(request.headers)
        if expects and self._current is None:
            self.write(CONTINUE)
        return True

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        if self._reading != _BODY:
            return
        if not self._body:
            self._body = data  # most bodies come in one piece
        else:  # pieces that are kept each by itself weigh more than what they hold, if a peer makes them small
            self._body = bytearray(self._body) if isinstance(self._body, bytes) else self._body
            self._body += data
        self._length += len(data)
        if not self.house.hold(self, len(data)):
            self.refuse("overloaded", "bytes")
        elif self._length > self.house.limits.body_bytes:
            self.refuse("too_large", "too_large")

    def on_message_complete(self) -> None:
        """A whole request."""
        request, self._pending = self._pending, None
        if self._reading != _BODY or request is None:
            return
        request.body = bytes(self._body)
        self._body, self._length, self._read = b"", 0, 0
        self._reading, self._since = _IDLE, self.house.loop.time()
        self.house.bodies.pop(self, None)
        self._queue.append(request)
        if self._current is not None or self._paused is not None:
            self._silent = True
            self.transport.pause_reading()
            self._behind += request.weight
            if len(self._queue) >= MOST_QUEUED or self._behind > MOST_HEADER_BYTES:
                self._end_reading()
        else:
            self._next()

    # From a request to its answer

    def _go_on(self) -> None:
        """Begin with the next request, if there is one and nothing is in its way."""
        if self._queue and self._current is None and self._paused is None and not self.transport.is_closing():
            self._next()

    def _next(self) -> None:
        house, request = self.house, self._queue.popleft()
        self._current = request
        house.waiting.pop(self, None)
        request.client, request.scheme = self.peer, self._scheme
        if house.proxies:
            request.client, request.scheme = house.proxies.origin(self.peer, self._scheme, request.headers)
        if house.short_way is not None and house.short_way(request, partial(self.reply, request)):
            return
        if house.has_room_to_work():
            Exchange(self, request).start()
        else:
            self.tell(request, Problem("overloaded"))

    def reply(self, request: Request, status: int, headers: Lines, body: bytes) -> None:
        """Answer on the short way, where the headers follow from status and body."""
        close = self.closes(request)
        self.write(self.house.answers.whole(status, headers, body, close))
        self.answered(request, close)

    def tell(self, request: Request, problem: Problem) -> None:
        """Answer with a problem."""
        close, (head, body) = self.closes(request), _document(problem)
        self.write(self.house.answers.head(problem.status, head, close) + (b"" if request.method == "HEAD" else body))
        self.answered(request, close)

    def closes(self, request: Request) -> bool:
        """Whether the answer to this request is the last."""
        return not request.keep_alive or (self._last and not self._queue) or self.house.stopping

    def write(self, data: bytes) -> None:
        """Write, if anybody is there."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def answered(self, request: Request, close: bool) -> None:
        """An answer has been written: close, or go on with what came meanwhile."""
        house, self._current = self.house, None
        house.held -= len(request.body)
        if self.transport.is_closing():
            return
        if close:
            self._end_reading()
            self.transport.close()
        elif self._queue:
            house.loop.call_soon(self._go_on)
        else:
            house.waiting[self], self._behind = None, 0
            if self._reading == _IDLE:
                self._since = house.loop.time()
            if self._silent:
                self._silent = False
                self.transport.resume_reading()

    async def drained(self) -> None:
        """Return when the peer has read enough; raise if it has gone."""
        if self._paused is not None:
            self.house.readers[self] = None
            try:
                await asyncio.shield(self._paused)
            finally:
                self.house.readers.pop(self, None)
        if self.transport.is_closing():
            raise ConnectionResetError

    async def gone(self) -> None:
        """Return when the peer has closed its side of the connection."""
        if self._reading != _OVER:
            self._gone = self._gone or self.house.loop.create_future()
            await asyncio.shield(self._gone)

    # The end of those who keep the server waiting, and of what is not ours

    def _end_reading(self) -> None:
        """Look at no byte that follows, and forget what is incomplete."""
        self._reading, self._last, self._since = _OVER, True, self.house.loop.time()
        self.house.held -= self._length
        self._pending, self._body, self._length = None, b"", 0
        self.house.bodies.pop(self, None)

    def refuse(self, kind: str, reason: str) -> None:
        """Say what is wrong and close; if answers to earlier requests are still to come, they are the last."""
        if self._reading == _OVER:
            return
        self.house.refused[reason] += 1
        self._end_reading()
        if self._current is None and not self._queue and not self.transport.is_closing():
            problem = Problem(kind)
            head, body = _document(problem)
            self.write(self.house.answers.head(problem.status, head, True) + body)
            if self.transport.can_write_eof():
                self.transport.write_eof()  # what still comes is thrown away until the peer closes, or is made to
            else:  # TLS has no half of a connection
                self.transport.close()

    def drop(self, reason: str) -> None:
        """End the connection at once."""
        self.house.refused[reason] += 1
        self.transport.abort()
        self.house.leave(self)

    def stop(self) -> None:
        """The server stops: end now, or with the answer under way."""
        if self._current is None:
            self.transport.close()

    def look(self, now: float) -> int:
        """End what is past its deadline; how many bytes of answers the peer has left unread."""
        limits, unread = self.house.limits, int(self.transport.get_write_buffer_size())
        if unread < self._unread:
            self._since = now
        self._unread = unread
        late = now - self._since
        if unread and late > limits.answer_s:
            self.drop("answer_deadline")
        elif self._current is not None:
            pass  # the server is at work
        elif self._reading == _OVER:
            if late > CLOSE_S and not unread:
                self.transport.abort()
        elif self._reading == _HEADERS:
            if late > limits.header_s:
                self.refuse("timeout", "header_deadline")
        elif self._reading == _BODY:
            if late > limits.body_s:
                self.refuse("timeout", "body_deadline")
        elif late > (limits.header_s if self._fresh else limits.idle_s):  # idle, and any state that may come to be
            self.drop("idle")
        return unread


def _resolve(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


def _document(problem: Problem) -> tuple[Headers, bytes]:
    """Headers and body of a problem document."""
    body = problem.body()
    lines = [(name.encode(), value.encode()) for name, value in problem.headers().items()]
    return [*lines, (b"content-length", b"%d" % len(body)), (b"x-content-type-options", b"nosniff")], body
