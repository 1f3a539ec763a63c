"""What to expect of a campaign that stands in the form, while somebody types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ahead_ldp.protocol.turnout import check_people
from ahead_ldp.research.targets import Case, forecast
from ahead_ldp.service.campaigns.campaign import sized_mechanism
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

    The page shows the sentences one after the other: how exact, how people are spread, and whether they are enough.
    Too few people are refused, with what would do.
    """
    given, schema = drafts.given_fields(form), drafts.schema_of(form)
    users = drafts.whole(given["people"], "the number of people expected")
    if math.prod(schema.sizes) > _MOST_SIMULATED:
        return {"sentences": ["This is too large to work out while you type: use the command ahead plan."]}
    minimum = drafts.whole(given["minimum"], "the fewest answers of a group")
    mechanism = sized_mechanism(given["method"] or None, schema, given["epsilon"], users, minimum)
    spread = check_people(mechanism, schema, users, minimum)
    expected = forecast(Case(schema, users, float(given["epsilon"]), given["method"] or None), repeats=2)
    points = 100 * expected.error
    said = [f"With {users:,} people, 19 of 20 answers about a range will be at most {points:.1f} points off."]
    if points < 20:
        said.append(f"So a true 40 % would be shown as {40 - points:.1f} % to {40 + points:.1f} %.")
    else:
        said.append("That is too rough to be of use: expect more people, ask fewer questions, or give up some privacy.")
    rounds = [f"{people:,.0f}" for people in spread.wave_people]
    if len(rounds) > 1:
        sizes = f"{rounds[0]} people each" if len(set(rounds)) == 1 else f"{', '.join(rounds)} people"
        said.append(f"They are asked in {len(rounds)} rounds, of about {sizes}.")
    said.append(
        f"If only 80 % of them come, every group still has its {minimum:,} answers with a chance of "
        f"{int(1000 * spread.chance) / 10:g} % or more."
    )
    if spread.left_out:
        said.append(f"Because people are few, some is left out: {spread.left_out}.")
    return {"sentences": said, "error": f"{points:.1f}", "method": expected.method}
