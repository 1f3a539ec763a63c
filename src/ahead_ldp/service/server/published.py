"""Published waves: immutable bytes with a tag, sent from memory before any route is looked up.

The first reader of a wave goes through the control plane, which reads it from the store. Everybody after that costs a
look-up and a write, however large the wave is; who has it already is told so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ahead_ldp.service.campaigns.directory import Directory, Published
from ahead_ldp.service.edge.requests import Request
from ahead_ldp.service.server.limits import Scope, Send

IMMUTABLE = "public, max-age=31536000, immutable"
_IMMUTABLE = IMMUTABLE.encode()
_WAVE = re.compile(r"/v1/campaigns/([0-9a-f]{64})/waves/([1-9][0-9]{0,4})")
_TARGET = re.compile(_WAVE.pattern.encode())


def known_wave(directory: Directory, scope: Scope) -> Published | None:
    """The wave that a request asks for, if it is in memory."""
    match = _WAVE.fullmatch(scope["path"]) if scope["method"] == "GET" else None
    return None if match is None else directory.published(match[1], int(match[2]))


def plain_wave(directory: Directory, request: Request, other_sites: bool) -> Published | None:
    """The wave that a plain request asks for, if it is in memory.

    A page of another site, or a reader who has the wave, asks for more.
    """
    match = _TARGET.fullmatch(request.target) if request.method == "GET" else None
    if match is None:
        return None
    for name, _ in request.headers:
        if name == b"if-none-match" or (other_sites and name == b"origin"):
            return None
    return directory.published(match[1].decode(), int(match[2]))


def wave_lines(wave: Published) -> list[tuple[bytes, bytes]]:
    """The headers of a wave; its length is not among them."""
    return [(b"content-type", b"application/json"), (b"etag", wave.etag.encode()), (b"cache-control", _IMMUTABLE)]


def headers(wave: Published) -> dict[str, str]:
    """What goes with a wave, and with the answer that it is the same."""
    return {"etag": wave.etag, "cache-control": IMMUTABLE}


def is_same(wave: Published, if_none_match: str | None) -> bool:
    """Whether a reader has the wave already, by what it says in If-None-Match."""
    tags = [tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")]
    return "*" in tags or wave.etag in tags


async def send_wave(wave: Published, scope: Scope, send: Send, more: Sequence[tuple[bytes, bytes]]) -> None:
    """Answer with the wave, or that it is the same; ``more`` are the headers of every answer."""
    asked = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"), None)
    lines = [*wave_lines(wave), *more]
    if asked is not None and is_same(wave, asked):
        await send({"type": "http.response.start", "status": 304, "headers": lines[1:]})
        await send({"type": "http.response.body", "body": b""})
        return
    lines += [(b"content-length", b"%d" % len(wave.body))]
    await send({"type": "http.response.start", "status": 200, "headers": lines})
    await send({"type": "http.response.body", "body": wave.body})
