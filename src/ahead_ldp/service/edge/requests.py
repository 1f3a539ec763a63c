"""One whole request: what the parser found, and how an application sees it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

Headers = list[tuple[bytes, bytes]]


class Request:
    """A request whose last byte is there. Header names are lower-case."""

    __slots__ = ("body", "client", "headers", "keep_alive", "method", "scheme", "target", "version", "weight")

    def __init__(self, target: bytes, headers: Headers) -> None:
        """The method, the version and the body follow."""
        self.target, self.headers = target, headers
        self.method = self.version = ""
        self.body = b""
        self.keep_alive = True
        self.weight = 0  # of its target and headers in memory, about
        self.client: tuple[str, int] | None = None
        self.scheme = "http"

    def scope(self, server: tuple[str, int] | None) -> dict[str, Any]:
        """The request as ASGI describes it."""
        raw, _, query = self.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": self.version,
            "method": self.method,
            "scheme": self.scheme,
            "path": unquote(raw.decode("ascii")),
            "raw_path": raw,
            "query_string": query,
            "root_path": "",
            "headers": self.headers,
            "client": self.client,
            "server": server,
        }
