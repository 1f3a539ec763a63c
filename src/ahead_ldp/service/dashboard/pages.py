"""The pages as one ASGI application, mounted beside the API; everything they load is served from here."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ahead_ldp.service.campaigns.entries import Unclear
from ahead_ldp.service.campaigns.problems import KINDS, Problem
from ahead_ldp.service.dashboard.analyses import AnalysisPages
from ahead_ldp.service.dashboard.campaigns import CampaignPages
from ahead_ldp.service.dashboard.login import goodbye, guarded, own_page, read_form, same_origin, welcome
from ahead_ldp.service.dashboard.plans import plan_page
from ahead_ldp.service.dashboard.rehearsals import RehearsalPages, Stage
from ahead_ldp.service.dashboard.rendering import HERE, render
from ahead_ldp.service.dashboard.results import ResultPages
from ahead_ldp.service.dashboard.shares import SharePages
from ahead_ldp.service.rehearsal.rehearsal import Rehearsal
from ahead_ldp.service.server import sessions
from ahead_ldp.service.server.headers import page_policy
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor
from ahead_ldp.service.store.interface import NotFound, StoreUnavailable

_LINKED = re.compile(r"[0-9a-f]{32,64}")  # a digest, or at least 128 bits of it

_WHOLE = 64  # digits of a digest


def make_pages(service: Service) -> Starlette:
    """The pages over a service."""
    results, shares = ResultPages(service), SharePages(service)
    campaigns = CampaignPages(service, lambda campaign: len(shares.active(campaign)))

    def route(path: str, page: Any, *, form: bool = False, operator: bool = False) -> Route:
        """A page for those who have logged in; a form is sent to it."""
        return Route(path, guarded(service, page, operator=operator, form=form), methods=["POST" if form else "GET"])

    rehearsals = RehearsalPages(ResultPages, service)
    service.at_end.append(rehearsals.close)
    tried = "/rehearsals/{rehearsal:str}"
    one, shared = "/campaigns/{campaign:str}", "/shared/{campaign:str}/{secret:str}"
    routes = [
        Route("/c/{campaign}", _participant, methods=["GET"], name="participant"),
        Route("/login", _login, methods=["GET", "POST"]),
        route("/logout", _logout, form=True),
        route("/", campaigns.listing),
        route("/new", campaigns.new, operator=True),
        route("/new", campaigns.create, operator=True, form=True),
        route("/new/plan", plan_page, operator=True, form=True),
        route("/new/rehearse", rehearsals.begin_form, operator=True, form=True),
        route(one + "/rehearse", rehearsals.begin, operator=True, form=True),
        *(route(tried + path, page, form=form) for path, page, form in _rehearsed(rehearsals)),
        route(one, campaigns.overview),
        route(one + "/live", campaigns.live),
        route(one + "/do", campaigns.act, operator=True, form=True),
        route(one + "/qr.svg", campaigns.qr),
        route(one + "/share", shares.make, operator=True, form=True),
        Route(shared, shares.shown(results.page), methods=["GET"], name="shared"),
        Route(shared + "/attribute", shares.shown(results.attribute), methods=["GET"]),
        Route(shared + "/download", shares.shown(results.download, base=False), methods=["GET"]),
        Route(shared + "/report", shares.shown(results.report, base=False), methods=["GET"]),
        route(one + "/checks", results.checks),
        route(one + "/results", results.page),
        route(one + "/attribute", results.attribute),
        route(one + "/ask", results.ask, form=True),
        route(one + "/download", results.download),
        *(route(one + path, page, form=form) for path, page, form in _analysed(AnalysisPages(service))),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    pages = Starlette(routes=routes, exception_handlers=_HANDLERS)
    pages.state.service = service
    return pages


def _analysed(pages: AnalysisPages) -> list[tuple[str, Any, bool]]:
    """The pages of analyses: below which path, and whether a form is sent there."""
    named = ("spread", "change", "groups", "rounds")
    shown = [(f"/{name}", getattr(pages, name), False) for name in (*named, "weights", "report")]
    parts = [(f"/{name}/of", getattr(pages, f"{name}_of"), False) for name in named]
    return [*shown, *parts, ("/weights", pages.weigh, True), ("/report/page", pages.report_page, False)]


def _rehearsed(pages: RehearsalPages) -> list[tuple[str, Any, bool]]:
    """The pages of a rehearsal: below which path, and whether a form is sent there."""
    return [
        ("", pages.page, False),
        ("/live", pages.live, False),
        ("/attribute", pages.shown("attribute", base=True), False),
        ("/download", pages.shown("download"), False),
        ("/report", pages.shown("report"), False),
        ("/ask", pages.shown("ask"), True),
    ]


def rehearsal_pages(rehearsal: Rehearsal) -> tuple[Starlette, str]:
    """The pages of one rehearsal that has ended, for whoever has the path, which cannot be guessed; and this path."""
    pages, stage = RehearsalPages(ResultPages), Stage.of(rehearsal, ResultPages)
    stage.done = True
    pages.add(stage)
    routes: list[Any] = [
        Route(f"/rehearsals/{{rehearsal:str}}{path}", _open(page, form), methods=["POST" if form else "GET"])
        for path, page, form in _rehearsed(pages)
    ]
    routes.append(Mount("/static", StaticFiles(directory=HERE / "static")))
    return Starlette(routes=routes, exception_handlers=_HANDLERS), f"/rehearsals/{stage.name}"


def _open(page: Any, form: bool) -> Any:
    """A page that needs no visitor: it shows made-up people, and changes nothing."""

    async def endpoint(request: Request) -> Response:
        """The page."""
        if form:
            request.state.form = await read_form(request)
        return await run_in_threadpool(page, request, None)

    return endpoint


async def _participant(request: Request) -> Response:
    """The page on which a person answers. The program on it checks that the campaign is the one of the link."""
    service: Service = request.app.state.service
    linked, issuer = request.path_params["campaign"], service.settings.issuer
    campaign = await run_in_threadpool(_whole_digest, service, linked) if _LINKED.fullmatch(linked) else ""
    if not campaign:
        return render(request, "error.html", status=404, message="There is no such campaign.")
    page = render(request, "participant.html", campaign=campaign, issuer=issuer)
    if issuer:  # the one other host that this page may speak with, named by the operator
        page.headers["content-security-policy"] = page_policy("/".join(issuer.split("/")[:3]))
    return page


def _whole_digest(service: Service, linked: str) -> str:
    """The digest that a link begins; itself if it is whole, nothing if no campaign or several have it."""
    if len(linked) == _WHOLE:
        return linked
    found = [row.digest for row in service.store.campaigns() if row.digest.startswith(linked)]
    return found[0] if len(found) == 1 else ""


async def _login(request: Request) -> Response:
    """The form for a token, and what it leads to."""
    if request.method == "GET":
        return render(request, "login.html", wrong="", to=own_page(request.query_params.get("to", "")))
    if not same_origin(request):
        raise Problem("forbidden")
    form = await read_form(request)
    token, to = form.get("token", "").strip(), own_page(form.get("to", ""))
    name = await run_in_threadpool(sessions.sign_in, request.app.state.service, token)
    if name is None:
        return render(
            request, "login.html", status=401, wrong="This token is not known here, or no longer valid.", to=to
        )
    return welcome(request, name, to)


def _logout(request: Request, visitor: Visitor) -> Response:
    """The end of a visit."""
    sessions.sign_out(request.app.state.service, visitor)
    return goodbye(request)


async def _problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    message, detail = _WORDS.get(problem.kind, KINDS[problem.kind][1]), problem.detail or ""
    if detail and not detail.endswith("."):
        detail = f"{detail[:1].upper()}{detail[1:]}."
    return render(request, "error.html", status=problem.status, message=f"{message}.", detail=detail)


async def _unclear(request: Request, error: Exception) -> Response:
    return render(request, "error.html", status=422, message="Please look at this again.", detail=str(error))


async def _say(status: int, message: str, request: Request, error: Exception) -> Response:
    del error
    return render(request, "error.html", status=status, message=message)


_WORDS = {  # for people with a page before them; programs read the titles of KINDS
    "not_found": "This page is not here",
    "forbidden": "This is not allowed",
    "wrong_state": "This cannot be done now",
    "invalid_request": "This could not be understood",
    "no_results": "There are no results yet",
}
_HANDLERS: dict[Any, Any] = {
    Problem: _problem,
    Unclear: _unclear,
    NotFound: partial(_say, 404, "There is no such campaign."),
    StoreUnavailable: partial(_say, 503, "The store cannot be reached. Please try again."),
    404: partial(_say, 404, "There is nothing here."),
    405: partial(_say, 405, "That cannot be done here."),
}
