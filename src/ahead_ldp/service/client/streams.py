"""HTTP/1.1 with keep-alive over asyncio's streams: what a relay or a fleet needs to send many requests, and no more."""

from __future__ import annotations

import asyncio
from typing import Self

from ahead_ldp.service.client.transport import LONGEST_ANSWER, OCTETS, Answer, Unreachable, parse_address

_HEADERS = 200


class Connection:
    """One connection that is opened on first use, kept, and opened again when the server has let it go."""

    def __init__(self, url: str, *, timeout_s: float = 60.0, allow_http: bool = False) -> None:
        parts = parse_address(url, allow_http)
        self._secure, self._host = parts.scheme == "https", str(parts.hostname)
        self._port = parts.port or (443 if self._secure else 80)
        self._prefix, self._timeout_s = parts.path.rstrip("/"), timeout_s
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the connection go."""
        if self._streams is not None:
            writer, self._streams = self._streams[1], None
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                return

    async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = OCTETS) -> Answer:
        """The answer, or ``Unreachable``."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._request(method, path, body, content_type)
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError) as error:
            await self.close()
            raise Unreachable(f"the server cannot be reached: {type(error).__name__}") from None

    async def _request(self, method: str, path: str, body: bytes | None, content_type: str) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, ssl=self._secure or None)
        reader, writer = self._streams
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAccept: */*\r\n"
        if body is not None:
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        writer.write(head.encode("ascii") + b"\r\n" + (body or b""))
        await writer.drain()
        status, headers = await _head(reader)
        data = await _body(reader, status, headers)
        if headers.get("connection", "").lower() == "close":
            await self.close()
        return Answer(status, data, headers)


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    words = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ", 2)
    if not words[0].startswith("HTTP/1."):
        raise ValueError("expected HTTP/1.1")
    headers: dict[str, str] = {}
    for _ in range(_HEADERS):
        line = (await reader.readuntil(b"\r\n")).decode("latin-1").strip()
        if not line:
            return int(words[1]), headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise ValueError("expected an end of the headers")


async def _body(reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> bytes:
    if status in (204, 304):
        return b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts, total = [], 0
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            total += size
            if total > LONGEST_ANSWER:
                raise ValueError("expected an answer that ends")
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return b"".join(parts)
    length = int(headers["content-length"]) if "content-length" in headers else -1
    if not 0 <= length <= LONGEST_ANSWER:
        raise ValueError("expected an answer of a stated length")
    return await reader.readexactly(length)
