"""Who is at the page: a role's token in a cookie that scripts cannot read and other sites cannot send."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard.rendering import Visitor
from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.server.service import Service

COOKIE = "ahead_session"
_HOURS = 12
_LARGEST_FORM = 1 << 16
_MOST_FIELDS = 100


Page = Callable[[Request, Visitor], Response]  # runs in a thread: it may ask the store


def visitor_of(service: Service, token: str | None) -> Visitor | None:
    """The visitor behind a token; None if it is none, expired or revoked."""
    role = service.role(token)
    return None if role is None else Visitor(token or "", role is Role.OPERATOR)


def guarded(
    service: Service, page: Page, *, operator: bool = False, form: bool = False
) -> Callable[..., Awaitable[Response]]:
    """The page for those who may see it; others are sent to the login. Forms must carry the visitor's word."""

    async def endpoint(request: Request) -> Response:
        """The page, if the visitor may see it."""
        visitor = await run_in_threadpool(visitor_of, service, request.cookies.get(COOKIE))
        if visitor is None:
            return RedirectResponse("/login", 303)
        if operator and not visitor.operator:
            raise Problem("forbidden")
        if form:
            if not same_origin(request):
                raise Problem("forbidden")
            request.state.form = await read_form(request)
            sent = request.state.form.get("csrf", request.headers.get("x-csrf", ""))
            if not hmac.compare_digest(sent.encode(), visitor.csrf.encode()):
                raise Problem("forbidden")
        return await run_in_threadpool(page, request, visitor)

    return endpoint


def same_origin(request: Request) -> bool:
    """Whether a request that changes something comes from our own pages."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:  # browsers send it and pages cannot forge it; no-referrer makes their Origin "null"
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host", "")


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_FORM:
            raise Problem("too_large")
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise Problem("invalid_request") from None
    return {name: values[-1] for name, values in fields.items()}


def welcome(request: Request, token: str) -> Response:
    """To the campaigns, with the cookie set."""
    response = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, token, max_age=_HOURS * 3600, httponly=True, samesite="strict", secure=secure)
    return response


def goodbye() -> Response:
    """To the login, with the cookie gone."""
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
