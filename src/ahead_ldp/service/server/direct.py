"""A short way for whole uploads: from uvicorn's parser to the committer, and the answer in one write.

For every request uvicorn makes a scope, an object, an event and a task, and passes four messages: more work than all
that an upload of one report needs. So its protocol is extended here. A plain upload (one that announces its length,
is not large, keeps its connection and asks for nothing special) is taken when its last byte is there, if its question
is known already and few signatures are to be checked. Everything else, and whatever would be refused as a whole, goes
uvicorn's way to the same ``Ingest``, and gets the same answer: chunked bodies, ``Expect``, pipelined requests, other
sites' pages, HTTP/1.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server.ingest import MEDIA_TYPE, PREFIX, SUFFIX, Ingest, Upload

if TYPE_CHECKING:
    from ahead_ldp.service.server.application import Application

LARGEST = 64 * 1024  # bytes of a body; larger ones are read with uvicorn's flow control
_BEFORE, _AFTER = PREFIX.encode(), SUFFIX.encode()
_MOST_KEPT, _SHORT = 1_000, 100  # answers, and bytes of one
_URL_LENGTH = len(_BEFORE) + 64 + len(_AFTER)
_SPECIAL = frozenset([b"transfer-encoding", b"upgrade"])
_Headers = Sequence[tuple[bytes, bytes]]


class DirectUpload:
    """One upload, in the place where uvicorn has the request that a connection is busy with."""

    __slots__ = ("body", "disconnected", "ingest", "keep_alive", "more_body", "protocol", "response_complete", "upload")

    def __init__(self, protocol: DirectProtocol, ingest: Ingest) -> None:
        """Its body is still to come."""
        self.protocol, self.ingest = protocol, ingest
        self.upload: Upload | None = None
        self.body = b""
        self.disconnected = self.response_complete = False
        self.keep_alive = self.more_body = True  # a server that stops sets keep_alive to False

    @property
    def message_event(self) -> Self:
        """uvicorn wakes whoever reads the body; here nobody waits."""
        return self

    def set(self) -> None:
        """Nobody to wake."""

    def settled(self, result: list[bytes] | BaseException) -> None:
        """The commit has ended: answer, unless the connection has."""
        assert self.upload is not None
        try:
            if isinstance(result, BaseException):
                raise self.ingest.problem(result)
            self.protocol.answer(self, 200, self.ingest.plain, self.ingest.answer(self.upload, result))
        except Problem as problem:
            self.protocol.answer(self, *self.ingest.refusal(problem))


class DirectProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with the short way. ``bound`` makes the class for one application."""

    cycle: Any  # the request that the connection is busy with or was: uvicorn's, or a DirectUpload
    application: ClassVar[Application]
    answers: ClassVar[Answers]
    largest: ClassVar[int]
    special: ClassVar[frozenset[bytes]]  # headers that ask for something
    proxies: ClassVar[Any] = None  # sets the address that a trusted proxy gives

    @classmethod
    def bound(cls, application: Application) -> type[DirectProtocol]:
        """The protocol of a server that runs this application, with no other around it."""
        settings = application.service.settings
        trusted = settings.trusted_proxies
        bound = {
            "application": application,
            "answers": Answers(application.cors.plain),
            "largest": min(LARGEST, settings.max_body_bytes),
            "special": _SPECIAL | {b"origin"} if application.cors.plain else _SPECIAL,
            "proxies": ProxyHeadersMiddleware(_nothing, trusted) if trusted else None,
        }
        return type(cls.__name__, (cls,), bound)

    # The parser's calls

    def on_headers_complete(self) -> None:
        """Begin an upload, or whatever else it is."""
        if self._is_plain():
            self.cycle = DirectUpload(self, self.application.uploads())
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if type(self.cycle) is DirectUpload and not self.cycle.response_complete:
            self.cycle.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The whole body is there."""
        if type(self.cycle) is not DirectUpload or self.cycle.response_complete:
            super().on_message_complete()
        elif not self._take(self.cycle):
            self._go_the_long_way(self.cycle)

    def _is_plain(self) -> bool:
        url, parser, before = self.url, self.parser, self.cycle
        if len(url) != _URL_LENGTH or not url.startswith(_BEFORE) or not url.endswith(_AFTER):
            return False
        if before is not None and not before.response_complete:
            return False
        length = None
        for name, value in self.headers:
            if name == b"content-length":
                length = value
            elif name in self.special or (name == b"content-type" and value != MEDIA_TYPE):
                return False
        return (
            length is not None
            and length.isdigit()
            and int(length) <= self.largest
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not self.expect_100_continue
            and not self.flow.write_paused
        )

    def _take(self, cycle: DirectUpload) -> bool:
        """Hand the upload to the committer, if nothing is wrong with it and nothing has to be looked up first."""
        ingest = cycle.ingest
        try:
            upload = ingest.ready(self.url[len(_BEFORE) : -len(_AFTER)], cycle.body, self._allowed)
            if upload is None:
                return False
            cycle.upload = upload
            ingest.committer.take(upload.parts, upload.n, cycle.settled)
        except Exception:  # a problem, or our own mistake: the long way meets it again, tells the peer and logs it
            return False
        return True

    def _allowed(self) -> bool:
        """Whether the rate limit lets the address in. Asked only when it is the last thing to ask."""
        limit = self.application.limit
        if limit.rate <= 0 or self.client is None:
            return True
        client: tuple[str, int] = self.client
        if self.proxies is not None:
            scope: dict[str, Any] = {"type": "http", "client": client, "headers": self.headers}
            _run(self.proxies(scope, None, None))
            client = scope["client"]
        return limit.allows(client[0])

    def _go_the_long_way(self, cycle: DirectUpload) -> None:
        """Give the request, which is complete, to uvicorn as if it had come just now."""
        cycle.response_complete = True  # nothing is in its way
        super().on_headers_complete()
        super().on_body(cycle.body)
        super().on_message_complete()
        if not cycle.keep_alive:
            self.cycle.keep_alive = False

    def answer(self, cycle: DirectUpload, status: int, headers: _Headers, body: bytes) -> None:
        """Write an answer at once, then go on with the connection as uvicorn does."""
        cycle.response_complete = True
        if self.transport.is_closing():
            return
        given = self.server_state.default_headers
        self.transport.write(self.answers.made(given, status, headers, body, cycle.keep_alive))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()


class Answers:
    """Whole answers as bytes. Most uploads get the same one, until the date changes."""

    def __init__(self, plain: _Headers) -> None:
        """``plain`` is in all of them."""
        self._plain = plain
        self._given: _Headers = []  # the server's own headers, of which uvicorn makes a new list every second
        self._kept: dict[bytes, bytes] = {}

    def made(self, given: _Headers, status: int, headers: _Headers, body: bytes, keep_alive: bool) -> bytes:
        """Status line, headers and body."""
        if given is not self._given or len(self._kept) > _MOST_KEPT:
            self._given, self._kept = given, {}
        usual = status == 200 and keep_alive and len(body) <= _SHORT
        if usual and (kept := self._kept.get(body)) is not None:
            return kept
        lines = [*given, *headers, *self._plain, (b"content-length", b"%d" % len(body))]
        if not keep_alive:
            lines.append((b"connection", b"close"))
        made = b"".join([STATUS_LINE[status], *(b"%b: %b\r\n" % line for line in lines), b"\r\n", body])
        if usual:
            self._kept[body] = made
        return made


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    """The application behind the proxy's headers: all that is wanted is the scope."""


def _run(coroutine: Any) -> None:
    """Run what never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("expected nothing to wait for")
