"""Other sites' pages: which origins may embed the participant's element, and what they may ask for.

Only what a device needs is opened, to the origins of the setting ``allowed_origins``, and never with credentials. Every
other route answers other origins as if this module did not exist, so a browser keeps the answer from their scripts.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

ANY = "*"
_ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]+")
_CAMPAIGN = r"/v1/campaigns/[0-9a-f]{64}"
_READ = re.compile(rf"{_CAMPAIGN}(/state|/chain|/waves/[0-9]+)?|/static/participant\.js")
_WRITTEN = re.compile(rf"{_CAMPAIGN}/(reports|withdrawals)")
_PREFLIGHT_S = b"600"


def parse_origins(text: str, name: str = "allowed_origins") -> frozenset[str]:
    """The origins of a list with commas; ``*`` is everybody. ``ValueError``, by name, for what no browser sends."""
    origins = [part.strip() for part in text.split(",") if part.strip()]
    for origin in origins:
        if origin != ANY and not _ORIGIN.fullmatch(origin):
            raise ValueError(f"expected {name} like https://example.org, got {origin!r}")
    return frozenset(origins)


class Cors:
    """The door for other sites, over the routes that are public anyway. Without origins it does nothing."""

    def __init__(self, origins: Iterable[str]) -> None:
        """Open the public routes to these origins."""
        self._origins = frozenset(origin.encode() for origin in origins)
        self.plain = [_VARY] if self._origins else []  # what a public answer says to those who name no origin

    async def preflight(self, scope: Message, send: Send) -> bool:
        """Answer a browser that asks whether it may send; False where that is not ours to answer."""
        if not self._origins or scope["method"] != "OPTIONS":
            return False
        wanted = _header(scope, b"access-control-request-method")
        routes = {b"GET": _READ, b"POST": _WRITTEN}.get(wanted or b"")
        origin = self._admitted(scope)
        if origin is None or routes is None or not routes.fullmatch(scope["path"]):
            return False
        headers = [
            *_shared(origin),
            (b"access-control-allow-methods", wanted),
            (b"access-control-allow-headers", b"content-type"),
            (b"access-control-max-age", _PREFLIGHT_S),
        ]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return True

    def around(self, scope: Message, send: Send) -> Send:
        """``send``, with what lets an allowed origin read the answer of a public route."""
        routes = {"GET": _READ, "HEAD": _READ, "POST": _WRITTEN}.get(scope["method"]) if self._origins else None
        if routes is None or not routes.fullmatch(scope["path"]):
            return send
        origin = self._admitted(scope)

        async def opened(message: Message) -> None:
            """Send with the origin that may read it."""
            if message["type"] == "http.response.start":
                kept, added = message.get("headers", []), [_VARY]
                if origin is not None:
                    kept = [h for h in kept if h[0] != b"cross-origin-resource-policy"]
                    added = _shared(origin)
                message = {**message, "headers": [*kept, *added]}  # a copy: uploads share theirs
            await send(message)

        return opened

    def _admitted(self, scope: Message) -> bytes | None:
        origin = _header(scope, b"origin")
        if origin is None or not (origin in self._origins or ANY.encode() in self._origins):
            return None
        return origin


# A cache that keeps an answer for one origin must not give it to another.
_VARY = (b"vary", b"origin")


def _shared(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin),
        (b"cross-origin-resource-policy", b"cross-origin"),
        _VARY,
    ]


def _header(scope: Message, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)
