"""The issuer over HTTP. It logs no bodies, secrets, messages or addresses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ahead_ldp.service.issuer.office import Office
from ahead_ldp.service.issuer.roster import SecretRefused

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse

LARGEST_BODY = 4096
_PROBLEM = "urn:ahead-ldp:problem:"


def make_app(office: Office, allowed_origins: Sequence[str] = ()) -> Starlette:
    """The ASGI application of one office, which pages of ``allowed_origins`` may ask from a browser.

    ``POST /v1/signatures`` takes ``{"secret", "message": hex}`` and answers ``{"signature": hex}``; the same request
    again gets the same answer. ``GET /v1/key`` is the public key as a campaign's ``token``, ``GET /v1/health`` a sign
    of life.
    """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def problem(status: int, kind: str, title: str) -> JSONResponse:
        """A problem document (RFC 9457)."""
        body = {"type": _PROBLEM + kind, "title": title, "status": status}
        return JSONResponse(body, status, media_type="application/problem+json")

    async def signatures(request: Request) -> JSONResponse:
        """Sign one message for the owner of a secret."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                return problem(413, "too_large", "The body is larger than this server takes")
        if (asked := _parse(body)) is None:
            return problem(400, "invalid_request", "The request is not what the route takes")
        try:
            signature = await asyncio.to_thread(office.sign, *asked)
        except ValueError:
            return problem(422, "invalid_message", "The message is not one that this issuer signs")
        except SecretRefused:
            return problem(403, "secret_refused", "The secret is unknown or was used before")
        return JSONResponse({"signature": signature.hex()}, headers={"Cache-Control": "no-store"})

    async def key(_: Request) -> JSONResponse:
        """The public key, as the campaign's field ``token``."""
        return JSONResponse(office.token_record)

    async def health(_: Request) -> JSONResponse:
        """A sign of life."""
        return JSONResponse({"status": "ok"})

    routes = [
        Route("/v1/signatures", signatures, methods=["POST"]),
        Route("/v1/key", key, methods=["GET"]),
        Route("/v1/health", health, methods=["GET"]),
    ]
    own = {"allow_origins": list(allowed_origins), "allow_methods": ["GET", "POST"], "allow_headers": ["content-type"]}
    return Starlette(routes=routes, middleware=[Middleware(CORSMiddleware, **own)])  # type: ignore[arg-type]


def _parse(body: bytes) -> tuple[str, bytes] | None:
    """The secret and the message of a request, None if it is no such request."""
    try:
        asked = json.loads(body)
        if set(asked) != {"secret", "message"} or not all(text.isascii() for text in asked.values()):
            return None
        return asked["secret"], bytes.fromhex(asked["message"])
    except (AttributeError, TypeError, ValueError, RecursionError):  # of other types, or no JSON at all
        return None
