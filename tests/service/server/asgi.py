"""Requests to an ASGI application in this process: a loop of its own in a thread, no sockets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

ADDRESS = "192.0.2.77"  # documentation range: it must never turn up anywhere


@dataclass(frozen=True)
class Answer:
    """Status, headers and body."""

    status_code: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class AppClient:
    """A client of one application; use it as a context, which runs the application's start and stop."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> AppClient:
        self.thread.start()
        self.run(self.app.start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.app.stop())
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def get(self, url: str, **options: Any) -> Answer:
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Any) -> Answer:
        return self.request("POST", url, **options)

    def request(self, method: str, url: str, **options: Any) -> Answer:
        return self.run(ask(self.app, method, url, **options))


async def ask(
    app: Any,
    method: str,
    url: str,
    *,
    json: Any = None,
    content: bytes | Iterable[bytes] | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """One request and its whole answer."""
    given = {k.lower(): v for k, v in (headers or {}).items()}
    if json is not None:
        content = _dumped(json)
        given.setdefault("content-type", "application/json")
    parts = [content or b""] if isinstance(content, bytes | None) else list(content)
    if isinstance(content, bytes | None):
        given.setdefault("content-length", str(len(parts[0])))
    split = urlsplit(url)
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(split.path), "raw_path": split.path.encode(), "query_string": split.query.encode(),
        "root_path": "", "headers": [(k.encode(), v.encode()) for k, v in given.items()],
        "client": (ADDRESS, 1234), "server": ("test", 80),
    }  # fmt: skip
    waiting = [{"type": "http.request", "body": part, "more_body": i + 1 < len(parts)} for i, part in enumerate(parts)]
    found: dict[str, Any] = {"body": b""}
    ended = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            found["status"], found["headers"] = message["status"], message["headers"]
        else:
            found["body"] += message.get("body", b"")
            if not message.get("more_body"):
                ended.set()

    try:
        await app(scope, receive, send)
    except Exception:
        if "status" not in found:
            raise
    return Answer(found["status"], {k.decode().lower(): v.decode() for k, v in found["headers"]}, found["body"])


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()
