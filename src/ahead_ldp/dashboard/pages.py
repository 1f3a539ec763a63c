"""The pages as one ASGI application, mounted beside the API; everything they load is served from here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates

from ahead_ldp.server.service import Service

_HERE = Path(__file__).parent
_DIGEST = re.compile(r"[0-9a-f]{64}")
TEMPLATES = Jinja2Templates(_HERE / "templates")


def make_pages(service: Service) -> Starlette:
    """The pages over a service."""

    async def participant(request: Request) -> Response:
        """The page on which a person answers. It is the same for every campaign that has the form of a name."""
        campaign = request.path_params["campaign"]
        if not _DIGEST.fullmatch(campaign):
            return error(request, 404, "There is no such campaign.")
        return TEMPLATES.TemplateResponse(request, "participant.html", {"campaign": campaign})

    routes: list[Any] = [
        Route("/c/{campaign}", participant, methods=["GET"]),
        Mount("/static", StaticFiles(directory=_HERE / "static")),
    ]
    return Starlette(routes=routes)


def error(request: Request, status: int, message: str) -> HTMLResponse:
    """A page that says what is wrong; it repeats nothing that was sent."""
    return TEMPLATES.TemplateResponse(request, "error.html", {"message": message}, status_code=status)
