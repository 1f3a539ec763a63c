"""Errors of the service in one shape: problem documents (RFC 9457) of a fixed list of types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MEDIA_TYPE = "application/problem+json"
_NAMESPACE = "urn:ahead-ldp:problem:"

# kind -> status and title. A detail says more where it helps, and never repeats what was sent.
KINDS: dict[str, tuple[int, str]] = {
    "truncated": (400, "The batch is not a header and whole frames"),
    "unknown_version": (400, "The version of the batch is not known"),
    "wrong_campaign": (400, "The batch is of another campaign than its address"),
    "wrong_question": (409, "No wave of this campaign has the question of the batch"),
    "invalid_request": (400, "The request is not what the route takes"),
    "unauthorized": (401, "A bearer token is needed"),
    "forbidden": (403, "The token's role may not do this"),
    "not_found": (404, "There is no such thing"),
    "method_not_allowed": (405, "The route does not take this method"),
    "timeout": (408, "The request took too long to arrive"),
    "wrong_state": (409, "The campaign or wave is not in a state for this"),
    "below_minimum": (409, "A group has fewer reports than the campaign's minimum"),
    "wave_held": (409, "The wave is being counted, or held: then look at its screens, and release or void it"),
    "replay_mismatch": (409, "This program cannot say what the campaign's method asks next"),
    "no_results": (409, "No wave has been closed yet"),
    "length_required": (411, "The length of the body must be announced"),
    "too_large": (413, "The body is larger than this server takes"),
    "unsupported_media_type": (415, "The body is not of the type that the route takes"),
    "invalid_campaign": (422, "The campaign breaks a rule"),
    "invalid_query": (422, "The query breaks a rule"),
    "too_many_requests": (429, "Too many requests from one address"),
    "busy": (429, "The queue is full"),
    "headers_too_large": (431, "The headers are larger than this server takes"),
    "internal": (500, "The server failed"),
    "key_missing": (503, "The key of a wave is not in the server's key directory; its operator must bring it back"),
    "overloaded": (503, "The server has as many requests in hand as it takes"),
    "not_installed": (501, "This server has not installed what this needs; its operator can"),
    "unavailable": (503, "The store cannot write at the moment"),
}
_RETRY_AFTER_S = {"too_many_requests": 1, "busy": 1, "key_missing": 60, "overloaded": 1, "unavailable": 5}


@dataclass(slots=True)
class Problem(Exception):
    """An error that a peer is told about."""

    kind: str
    detail: str = ""

    def __post_init__(self) -> None:
        """Only what is in the list exists."""
        if self.kind not in KINDS:
            raise AssertionError(f"expected a kind of the list, got {self.kind!r}")

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.kind][0]

    def record(self) -> dict[str, Any]:
        """The members of the document."""
        status, title = KINDS[self.kind]
        members = {"type": problem_type(self.kind), "title": title, "status": status}
        return {**members, "detail": self.detail} if self.detail else members

    def body(self) -> bytes:
        """The document as bytes."""
        return json.dumps(self.record()).encode()

    def headers(self) -> dict[str, str]:
        """What goes with it: when to come back, and how to ask for entry."""
        headers = {"content-type": MEDIA_TYPE}
        if self.kind in _RETRY_AFTER_S:
            headers["retry-after"] = str(_RETRY_AFTER_S[self.kind])
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        return headers


def problem_type(kind: str) -> str:
    """The type URI of a kind of problem."""
    return _NAMESPACE + kind
