"""A server over HTTP, as the commands speak to it: JSON in and out, a problem is a ValueError of one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from ahead_ldp.cli.options import option

_TIMEOUT_S = 120
_DIGEST, _SHORTEST = 64, 4  # digits of a digest, and the fewest of a beginning


@dataclass(frozen=True, slots=True)
class Remote:
    """One server and the token with which it is asked; as options of a command, --server and --token."""

    server: Annotated[
        str, option("--server", "URL", "Where the service is.", envvar="AHEAD_SERVER", show_envvar=True)
    ] = "http://127.0.0.1:8440"
    token: Annotated[str, option("--token", "TOKEN", "Token of your role.", envvar="AHEAD_TOKEN", show_envvar=True)] = (
        ""
    )

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
        from urllib import error, request  # only here: the options above are loaded for every help

        if not self.server.startswith(("http://", "https://")):
            raise ValueError(f"expected --server to be an http(s) address, got {self.server!r}")
        headers = {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        url = f"{self.server.rstrip('/')}/v1{path}"
        asked = request.Request(url, data=body, method=method, headers=headers)
        try:
            with request.urlopen(asked, timeout=_TIMEOUT_S) as answer:
                return answer.read()
        except error.HTTPError as refused:
            raise ValueError(_spoken(refused.code, refused.read())) from None
        except (error.URLError, TimeoutError) as failed:
            why = getattr(failed, "reason", failed)
            why = getattr(why, "strerror", None) or why
            raise ValueError(f"the server at {self.server} cannot be reached ({why}): is it running there?") from None


def find(remote: Remote, name: str) -> str:
    """The digest of a campaign by itself, by the campaign's short name, or by the beginning of either."""
    if len(name) == _DIGEST and set(name) <= set("0123456789abcdef"):
        return name
    known = remote.get("/campaigns")
    found = [c for c in known if c.get("name") == name]
    if not found and len(name) >= _SHORTEST:
        found = [c for c in known if c["campaign"].startswith(name) or str(c.get("name", "")).startswith(name)]
    if len(found) == 1:
        return str(found[0]["campaign"])
    if not found:
        raise ValueError(
            f"expected the name of a campaign, its digest, or at least {_SHORTEST} letters that one begins with, "
            f"got {name!r}: see `ahead campaign list`"
        )
    listed = ", ".join(f"{c['name']} ({c['campaign'][:16]})" for c in found)
    raise ValueError(f"expected the name of one campaign, got {name!r}, which may be {listed}")


def problem_text(problem: dict[str, Any]) -> str:
    """A problem of the server's in one line."""
    return ": ".join(filter(None, [problem["title"], problem.get("detail")]))


def _spoken(status: int, body: bytes) -> str:
    try:
        return problem_text(json.loads(body))
    except (ValueError, KeyError, TypeError):
        return f"the server answered {status}"
