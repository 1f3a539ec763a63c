"""How a device reaches a server: one request, one answer, nothing remembered in between."""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from ahead_ldp.device.canonical import expect

LONGEST_ANSWER = 64 * 2**20
_PART = 2**16
OCTETS = "application/octet-stream"
JSON = "application/json"


class Unreachable(Exception):
    """No answer came, or none that could be read: nothing is known about what the server did."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status, headers with lower-case names, body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Transport(Protocol):
    """A way to a server. Paths begin with ``/v1``; redirects are answers like any other and are not followed."""

    def request(self, method: str, path: str, body: bytes | None = None, content_type: str = OCTETS) -> Answer:
        """The answer, or ``Unreachable``."""
        ...


class HttpTransport:
    """HTTP by the standard library, with a new connection for every request so that none links two of them.

    Plain ``http`` is for this machine alone, unless ``allow_http`` says that something else protects the way.
    """

    def __init__(self, url: str, *, timeout_s: float = 30.0, allow_http: bool = False) -> None:
        self.url, self._address, self._timeout_s = url.rstrip("/"), parse_address(url, allow_http), timeout_s

    def request(self, method: str, path: str, body: bytes | None = None, content_type: str = OCTETS) -> Answer:
        """The answer, or ``Unreachable``."""
        connection = self._connection()
        headers = {"Accept": "*/*", "User-Agent": "ahead-ldp", "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            connection.connect()
            with _for_at_most(connection.sock, self._timeout_s):
                connection.request(method, self._address.path.rstrip("/") + path, body, headers)
                got = connection.getresponse()
            data = _read(got, time.monotonic() + self._timeout_s)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the server cannot be reached: {type(error).__name__}") from None
        finally:
            connection.close()
        if got.length:  # what is left of the announced length
            raise Unreachable("the server's answer is cut off")
        return Answer(got.status, data, {name.lower(): value for name, value in got.getheaders()})

    def _connection(self) -> http.client.HTTPConnection:
        host, port = str(self._address.hostname), self._address.port
        if self._address.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout_s)


@contextmanager
def _for_at_most(connection: socket.socket, seconds: float) -> Iterator[None]:
    """End a connection after a while. Its own timeout begins anew with every byte, and a head may have thousands."""
    late = threading.Event()  # or what came so far is taken for a whole head
    same = socket.socket(fileno=os.dup(connection.fileno()))  # not TLS, which another thread must not touch

    def end() -> None:
        """Wake up whoever reads or writes."""
        late.set()
        with suppress(OSError):
            same.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        same.close()
    if late.is_set():
        raise TimeoutError


def parse_address(url: str, allow_http: bool) -> SplitResult:
    """The parts of a server's address; plain ``http`` to another machine is refused unless it is allowed."""
    parts = urlsplit(url)
    legal = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
    expect(bool(legal), f"an address such as https://example.org, got {url!r}")
    expect(not parts.username and not parts.password, "an address without a user name")
    private = parts.scheme == "https" or allow_http or is_loopback(str(parts.hostname))
    expect(private, "https: over plain http anybody on the way can read and change what is sent")
    return parts


def _read(got: http.client.HTTPResponse, deadline: float) -> bytes:
    """The body, unless it grows or drips without an end."""
    parts, total = [], 0
    while part := got.read1(_PART):
        parts.append(part)
        total += len(part)
        if total > LONGEST_ANSWER or time.monotonic() > deadline:
            raise Unreachable("the server's answer does not end")
    return b"".join(parts)


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def as_transport(way: str | Transport) -> Transport:
    """The transport of an address, or the given one."""
    return HttpTransport(way) if isinstance(way, str) else way
