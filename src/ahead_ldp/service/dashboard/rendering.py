"""Templates with what every page needs: who looks at it, and the word for its forms."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.templating import Jinja2Templates

from ahead_ldp.service.server.sessions import Visitor

HERE = Path(__file__).parent
TEMPLATES = Jinja2Templates(HERE / "templates")
TEMPLATES.env.filters["day"] = lambda at: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)) if at else ""
TEMPLATES.env.filters["percent"] = lambda x: "not known" if x is None else f"{100 * x:.2f} %"
TEMPLATES.env.filters["thousands"] = lambda n: f"{n:,}"


def render(request: Request, name: str, visitor: Visitor | None = None, status: int = 200, **shown: Any) -> Response:
    """A page. Everything that is shown is escaped by the templates."""
    context = {"visitor": visitor, "csrf": visitor.csrf if visitor else "", **shown}
    headers = {"cache-control": "no-store"}
    return TEMPLATES.TemplateResponse(request, name, context, status_code=status, headers=headers)
