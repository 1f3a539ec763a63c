"""A server over HTTP, as the commands speak to it: JSON in and out, a problem is a ValueError of one line."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Remote:
    """One server and the token with which it is asked."""

    server: str
    token: str

    def get(self, path: str) -> Any:
        """The JSON at a path below /v1."""
        return json.loads(self.read(path))

    def read(self, path: str) -> bytes:
        """The bytes at a path below /v1."""
        return self._call("GET", path, None)

    def post(self, path: str, body: Any = None) -> Any:
        """The JSON that a request is answered with."""
        return json.loads(self._call("POST", path, json.dumps(body).encode() if body is not None else b""))

    def _call(self, method: str, path: str, body: bytes | None) -> bytes:
        if not self.server.startswith(("http://", "https://")):
            raise ValueError(f"expected --server to be an http(s) address, got {self.server!r}")
        headers = {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        url = f"{self.server.rstrip('/')}/v1{path}"
        request = urllib.request.Request(url, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                found: bytes = answer.read()
                return found
        except urllib.error.HTTPError as error:
            raise ValueError(_spoken(error.code, error.read())) from None
        except (urllib.error.URLError, TimeoutError) as error:
            raise ValueError(f"the server cannot be reached: {getattr(error, 'reason', error)}") from None


def _spoken(status: int, body: bytes) -> str:
    try:
        problem = json.loads(body)
        return ": ".join(part for part in (problem["title"], problem.get("detail")) if part)
    except (ValueError, KeyError, TypeError):
        return f"the server answered {status}"
