"""The pages as one ASGI application, mounted beside the API; everything they load is served from here."""

from __future__ import annotations

import re
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ahead_ldp.protocol.session import ReplayMismatch
from ahead_ldp.service.dashboard.campaigns import CampaignPages
from ahead_ldp.service.dashboard.login import Visitor, goodbye, guarded, read_form, role_of, same_origin, welcome
from ahead_ldp.service.dashboard.rendering import HERE, render
from ahead_ldp.service.dashboard.results import ResultPages
from ahead_ldp.service.server.app import page_policy
from ahead_ldp.service.server.problems import KINDS, Problem
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.store.interface import NotFound, StoreUnavailable

_DIGEST = re.compile(r"[0-9a-f]{64}")


def make_pages(service: Service) -> Starlette:
    """The pages over a service."""
    campaigns, results = CampaignPages(service), ResultPages(service)
    issuer = service.settings.issuer

    async def participant(request: Request) -> Response:
        """The page on which a person answers. It is the same for every campaign that has the form of a name."""
        campaign = request.path_params["campaign"]
        if not _DIGEST.fullmatch(campaign):
            return render(request, "error.html", status=404, message="There is no such campaign.")
        page = render(request, "participant.html", campaign=campaign, issuer=issuer)
        if issuer:  # the one other host that this page may speak with, named by the operator
            page.headers["content-security-policy"] = page_policy("/".join(issuer.split("/")[:3]))
        return page

    async def login(request: Request) -> Response:
        """The form for a token, and what it leads to."""
        if request.method == "GET":
            return render(request, "login.html", wrong="")
        if not same_origin(request):
            raise Problem("forbidden")
        token = (await read_form(request)).get("token", "").strip()
        if await run_in_threadpool(role_of, service, token) is None:
            return render(request, "login.html", status=401, wrong="This token is not known here, or no longer valid.")
        return welcome(request, token)

    async def logout(request: Request, visitor: Visitor) -> Response:
        """The end of a visit."""
        del request, visitor
        return goodbye()

    def route(path: str, page: Any, **options: Any) -> Route:
        methods = ["POST"] if options.get("form") else ["GET"]
        return Route(path, guarded(service, page, **options), methods=methods)

    one = "/campaigns/{campaign:str}"
    routes: list[Any] = [
        Route("/c/{campaign}", participant, methods=["GET"], name="participant"),
        Route("/login", login, methods=["GET", "POST"]),
        route("/logout", logout, form=True),
        route("/", campaigns.listing),
        route("/new", campaigns.new, operator=True),
        route("/new", campaigns.create, operator=True, form=True),
        route("/new/plan", campaigns.plan, operator=True, form=True),
        route(one, campaigns.overview),
        route(one + "/live", campaigns.live),
        route(one + "/do", campaigns.act, operator=True, form=True),
        route(one + "/results", results.page),
        route(one + "/attribute", results.attribute),
        route(one + "/ask", results.ask, form=True),
        route(one + "/download", results.download),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    handlers: dict[Any, Any] = {
        Problem: _problem,
        NotFound: _saying(404, "There is no such campaign."),
        StoreUnavailable: _saying(503, "The store cannot be reached. Please try again."),
        ReplayMismatch: _saying(500, "The stored questions do not replay: nothing is shown."),
        404: _saying(404, "There is nothing here."),
        405: _saying(405, "That cannot be done here."),
    }
    return Starlette(routes=routes, exception_handlers=handlers)


async def _problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    title = KINDS[problem.kind][1]
    message = f"{title}: {problem.detail}." if problem.detail else f"{title}."
    return render(request, "error.html", status=problem.status, message=message)


def _saying(status: int, message: str) -> Any:
    async def page(request: Request, error: Exception) -> Response:
        del error
        return render(request, "error.html", status=status, message=message)

    return page
