"""What to expect of a campaign that stands in the form, while somebody types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ahead_ldp.research.targets import Case, forecast
from ahead_ldp.service.dashboard import drafts
from ahead_ldp.service.server.sessions import Visitor

_MOST_SIMULATED = 2**20  # cells of a domain whose plan is simulated while somebody types


def plan_page(request: Request, visitor: Visitor) -> Response:
    """The plan as sentences for the page, or what is wrong with the form."""
    del visitor
    try:
        return JSONResponse(plan(request.state.form))
    except (ValueError, TypeError) as error:
        return JSONResponse({"wrong": str(error)})


def plan(form: Mapping[str, str]) -> dict[str, Any]:
    """What to expect, simulated on the planner's reference populations.

    The page shows the sentences one after the other. Sentences about groups, rounds and the chance that every group is
    large enough belong to this list too.
    """
    given, schema = drafts.given_fields(form), drafts.schema_of(form)
    users = drafts.whole(given["people"], "the number of people expected")
    if math.prod(schema.sizes) > _MOST_SIMULATED:
        return {"sentences": ["This is too large to work out while you type: use the command ahead plan."]}
    expected = forecast(Case(schema, users, float(given["epsilon"]), given["method"] or None), repeats=2)
    points = 100 * expected.error
    said = [f"With {users:,} people, 19 of 20 answers about a range will be at most {points:.1f} points off."]
    if points < 20:
        said.append(f"So a true 40 % would be shown as {40 - points:.1f} % to {40 + points:.1f} %.")
    else:
        said.append("That is too rough to be of use: expect more people, ask fewer questions, or give up some privacy.")
    return {"sentences": said, "error": f"{points:.1f}", "method": expected.method}
