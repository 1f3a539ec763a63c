"""The server put together: the control plane, described by OpenAPI at /v1/openapi.json, and uploads beside it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ahead_ldp.service.campaigns.logs import LOGGER
from ahead_ldp.service.campaigns.operations import Clock, system_clock
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server import analysis_routes, analyst_routes, operator_routes, process_routes, public_routes
from ahead_ldp.service.server.application import Application
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.openapi import complete
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.store.interface import KeyMissing, NotFound, Store, StoreUnavailable


def create_app(
    store: Store,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    pages: Callable[..., Any] | None = None,
    *,
    rehearsing: bool = False,
) -> Application:
    """The application over an open store."""
    service = Service(store, settings or Settings(), clock, rehearsing=rehearsing)
    return Application(service, make_control(service), pages)


def make_control(service: Service) -> FastAPI:
    """The FastAPI application over a service."""
    app = FastAPI(
        title="ahead-ldp collection service",
        version=version("ahead-ldp"),
        summary="Range queries over private values, under local differential privacy.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    _handle_errors(app)
    for router in routers(service):
        app.include_router(router)
    complete(app)
    return app


def routers(service: Service) -> list[APIRouter]:
    """Every route by who may use it."""
    watched = [process_routes.metrics_router] if service.settings.metrics else []
    analysts = [analyst_routes.router, analysis_routes.router]
    return [public_routes.router, operator_routes.router, *analysts, process_routes.router, *watched]


def _handle_errors(app: FastAPI) -> None:
    for kind, make in _PROBLEMS.items():
        app.add_exception_handler(kind, partial(_answer, make))
    logging.getLogger("asyncio").setLevel(logging.ERROR)


def _answer(make: Callable[[Any], Problem], request: Request, error: Exception) -> Response:
    problem = make(error)
    if isinstance(error, StoreUnavailable):
        request.app.state.service.outages.tell(error)
    request.app.state.service.metrics.problems.labels(problem.kind).inc()
    return Response(problem.body(), problem.status, problem.headers())


def _of_status(error: HTTPException) -> Problem:
    kinds = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    return Problem(kinds.get(error.status_code, "invalid_request"))


def _unexpected(error: Exception) -> Problem:
    LOGGER.error("request_failed", exc_info=error)
    return Problem("internal")


def _invalid(error: RequestValidationError) -> Problem:
    """Which parts of a request break which rule; never what stood there."""
    parts = [_where(e["type"], e["loc"]) for e in error.errors()[:5]]
    return Problem("invalid_request", "; ".join(parts))


def _where(rule: str, place: Sequence[Any]) -> str:
    """A declared field and the rule it breaks; the name of a field that is not declared was sent, and stays out."""
    named = place[:1] if rule == "extra_forbidden" else place[:2]
    return f"{'.'.join(str(part) for part in named)}: {rule}"


_PROBLEMS: dict[type[Exception], Callable[[Any], Problem]] = {
    Problem: lambda problem: problem,
    RequestValidationError: _invalid,
    HTTPException: _of_status,
    KeyMissing: lambda _: Problem("key_missing"),
    StoreUnavailable: lambda _: Problem("unavailable"),
    NotFound: lambda _: Problem("not_found"),
    Exception: _unexpected,
}
