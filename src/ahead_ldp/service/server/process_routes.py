"""Routes about the process itself: is it alive, can it write, what does it count."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.server.routing import GUARDED, problem_responses
from ahead_ldp.service.server.service import Serving, needs

router = APIRouter(tags=["operations"])
metrics_router = APIRouter(tags=["monitor"])  # served if the settings say so


@router.get("/v1/health")
def health() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/v1/ready", responses=problem_responses("key_missing", "unavailable"))
def ready(service: Serving) -> dict[str, Any]:
    """The store can be written, and the keys of the open waves are there."""
    return {"status": "ready", "epoch": service.check_ready()}


@metrics_router.get(
    "/metrics", response_class=Response, responses=problem_responses(*GUARDED), dependencies=[needs(Role.MONITOR)]
)
def metrics(service: Serving) -> Response:
    """Prometheus metrics of this process."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
