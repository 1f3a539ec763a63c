"""Templates with what every page needs: who looks at it, and the word for its forms."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.templating import Jinja2Templates

from ahead_ldp.schema.attributes import spoken
from ahead_ldp.service.server.sessions import Visitor

HERE = Path(__file__).parent
TEMPLATES = Jinja2Templates(HERE / "templates")
TEMPLATES.env.filters["day"] = lambda at: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)) if at else ""
TEMPLATES.env.filters["percent"] = lambda x: "not known" if x is None else f"{100 * x:.2f} %"
TEMPLATES.env.filters["thousands"] = lambda n: f"{n:,}"


def _bound(number: object, kind: str) -> str:
    """An end of the range in a record, as people read it."""
    if kind in ("integer", "real"):
        return f"{float(str(number)):,.10g}"
    return str(spoken(kind, int(str(number))))


def _unbroken(said: str) -> Markup:
    """A sentence in which no line ends inside a day, or between a number and its percent sign."""
    return Markup(re.sub(r"[\d.,]+ %|\d{4}-\d\d-\d\d", r'<span class="unbroken">\g<0></span>', str(escape(said))))


TEMPLATES.env.filters["bound"] = _bound
TEMPLATES.env.filters["unbroken"] = _unbroken


def render(request: Request, name: str, visitor: Visitor | None = None, status: int = 200, **shown: Any) -> Response:
    """A page. Everything that is shown is escaped by the templates."""
    context = {"visitor": visitor, "csrf": visitor.csrf if visitor else "", **shown}
    headers = {"cache-control": "no-store"}
    return TEMPLATES.TemplateResponse(request, name, context, status_code=status, headers=headers)
