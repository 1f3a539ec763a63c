"""The control plane: every route but the upload, described by OpenAPI at /v1/openapi.json."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ahead_ldp.service.server.analyst_routes import analyst
from ahead_ldp.service.server.logs import LOGGER
from ahead_ldp.service.server.openapi import complete
from ahead_ldp.service.server.operator_routes import operator
from ahead_ldp.service.server.problems import Problem, problem_responses
from ahead_ldp.service.server.public_routes import public
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.store.interface import NotFound, StoreUnavailable


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
    _handle_errors(app, service)
    for router in routers(service):
        app.include_router(router)
    complete(app)
    return app


def routers(service: Service) -> list[APIRouter]:
    """Every route by who may use it."""
    return [public(service), operator(service), analyst(service), _operations(service)]


def _operations(service: Service) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/v1/health")
    def health() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @router.get("/v1/ready", responses=problem_responses("unavailable"))
    def ready() -> dict[str, Any]:
        """The store can be written."""
        service.store.check_writable()
        return {"status": "ready", "epoch": service.store.epoch()}

    if service.settings.metrics:

        @router.get("/metrics", response_class=Response)
        def metrics() -> Response:
            """Prometheus metrics of this process."""
            return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return router


def _handle_errors(app: FastAPI, service: Service) -> None:
    def answer(problem: Problem) -> Response:
        service.metrics.problems.labels(problem.kind).inc()
        return Response(problem.body(), problem.status, problem.headers())

    def handler(make: Callable[[Any], Problem]) -> Any:
        def handle(_: Request, error: Exception) -> Response:
            return answer(make(error))

        return handle

    def of_status(error: HTTPException) -> Problem:
        kinds = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
        return Problem(kinds.get(error.status_code, "invalid_request"))

    def unexpected(error: Exception) -> Problem:
        LOGGER.error("request_failed", exc_info=error)
        return Problem("internal")

    app.add_exception_handler(Problem, handler(lambda problem: problem))
    app.add_exception_handler(RequestValidationError, handler(_invalid))
    app.add_exception_handler(HTTPException, handler(of_status))
    app.add_exception_handler(StoreUnavailable, handler(lambda _: Problem("unavailable")))
    app.add_exception_handler(NotFound, handler(lambda _: Problem("not_found")))
    app.add_exception_handler(Exception, handler(unexpected))
    logging.getLogger("asyncio").setLevel(logging.ERROR)


def _invalid(error: RequestValidationError) -> Problem:
    """Which parts of a request break which rule; never what stood there."""
    parts = [_where(e["type"], e["loc"]) for e in error.errors()[:5]]
    return Problem("invalid_request", "; ".join(parts))


def _where(rule: str, place: Sequence[Any]) -> str:
    """A declared field and the rule it breaks; the name of a field that is not declared was sent, and stays out."""
    named = place[:1] if rule == "extra_forbidden" else place[:2]
    return f"{'.'.join(str(part) for part in named)}: {rule}"
