"""Who is at the page: the id of a visit, in a cookie that scripts cannot read and other sites cannot send."""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server import sessions
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor

COOKIE = "ahead_session"
_SECURE = f"__Host-{COOKIE}"  # browsers keep a cookie of this name only if it is secure and of this host alone
_LARGEST_FORM = 1 << 16
_MOST_FIELDS = 300
_LONGEST_PATH = 2_000
_FOREIGN = "the form was sent from another page, or somebody signed in since: load the page again"


Page = Callable[[Request, Visitor], Response]  # runs in a thread: it may ask the store


def guarded(
    service: Service, page: Page, *, operator: bool = False, form: bool = False
) -> Callable[..., Awaitable[Response]]:
    """The page for those who may see it; others are sent to the login. Forms must carry the visitor's word."""

    async def endpoint(request: Request) -> Response:
        """The page, if the visitor may see it."""
        name = request.cookies.get(_name(request))
        visitor = await run_in_threadpool(sessions.visitor_of, service, name)
        if visitor is None:
            return RedirectResponse(_login_before(request), 303)
        if operator and not visitor.operator:
            raise Problem("forbidden", "whoever signed in here may look at results, and cannot change anything")
        if form:
            if not same_origin(request):
                raise Problem("forbidden", _FOREIGN)
            request.state.form = await read_form(request)
            sent = request.state.form.get("csrf", request.headers.get("x-csrf", ""))
            if not hmac.compare_digest(sent.encode(), visitor.csrf.encode()):
                raise Problem("forbidden", _FOREIGN)
        response = await run_in_threadpool(page, request, visitor)
        if visitor.renewed is not None and COOKIE not in response.headers.get("set-cookie", ""):
            keep(request, response, visitor.renewed)
        return response

    return endpoint


def _login_before(request: Request) -> str:
    """The login, which leads on to what was asked for; after a form to the page that it was on."""
    asked = re.sub(r"^(/new|/campaigns/[^/]*|/rehearsals/[^/]*)(/.*)?$", r"\1", request.url.path)
    if request.method == "GET":
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    after = own_page(asked)
    return "/login" if after == "/" else f"/login?{urlencode({'to': after}, safe='/')}"


def own_page(asked: str) -> str:
    """The page to go on to after the login, if it is one of ours for those who signed in; else the campaigns."""
    known = len(asked) <= _LONGEST_PATH and re.fullmatch(r"/(new|campaigns/|rehearsals/)[\w\-./?&=%+~]*", asked, re.A)
    return asked if known else "/"


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


def is_secure(request: Request) -> bool:
    """Whether the request came over TLS, by its own word or that of a proxy that is believed."""
    return request.url.scheme == "https"


def _name(request: Request) -> str:
    return _SECURE if is_secure(request) else COOKIE


def keep(request: Request, response: Response, name: str) -> None:
    """Let the browser keep the id of a visit."""
    secure = is_secure(request)
    age = sessions.IDLE_S
    response.set_cookie(_name(request), name, max_age=age, httponly=True, samesite="strict", secure=secure)


def welcome(request: Request, name: str, to: str = "/") -> Response:
    """To the campaigns or another page of ours, with the cookie set."""
    response = RedirectResponse(own_page(to), 303)
    keep(request, response, name)
    return response


def goodbye(request: Request) -> Response:
    """To the login, with the cookie gone."""
    response = RedirectResponse("/login", 303)
    secure = is_secure(request)
    response.delete_cookie(_name(request), httponly=True, samesite="strict", secure=secure)
    return response
