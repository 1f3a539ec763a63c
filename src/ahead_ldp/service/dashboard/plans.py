"""What to expect of a campaign that stands in the form, while somebody types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ahead_ldp.device.codes import Schema
from ahead_ldp.protocol.turnout import Staffing, check_people
from ahead_ldp.research.targets import Case, forecast, is_tabled
from ahead_ldp.service.campaigns.campaign import sized_mechanism
from ahead_ldp.service.campaigns.entries import Unclear, complaint, number
from ahead_ldp.service.dashboard import drafts
from ahead_ldp.service.server.sessions import Visitor

_MOST_SIMULATED = 2**20  # cells of a domain whose plan is simulated while somebody types, if no table has it


def plan_page(request: Request, visitor: Visitor) -> Response:
    """The plan as sentences for the page, or what is wrong with the form."""
    del visitor
    try:
        return JSONResponse(plan(request.state.form))
    except (ValueError, TypeError) as error:
        return JSONResponse({"wrong": complaint(error)})


def plan(form: Mapping[str, str]) -> dict[str, Any]:
    """What to expect on the planner's reference populations, from a table or simulated.

    The page shows the sentences one after the other: how exact, how people are spread, and whether they are enough.
    Too few people are refused, with what would do.
    """
    form = drafts.plain(form, texts=False)
    given, schema = drafts.given_fields(form), drafts.schema_of(form)
    users = int(given["people"])
    if math.prod(schema.sizes) > _MOST_SIMULATED and not is_tabled(_case(given, schema, users)):
        return {"sentences": ["This is too large to work out while you type: use the command ahead plan."]}
    minimum = int(given["minimum"])
    mechanism = sized_mechanism(given["method"] or None, schema, given["epsilon"], users, minimum)
    spread = check_people(mechanism, schema, users, minimum)
    expected = forecast(_case(given, schema, users), repeats=2)
    points = 100 * expected.error
    said = [f"With {users:,} people, 19 of 20 answers about a range will be at most {points:.1f} points off."]
    if points < 20:
        said.append(f"So a true 40 % would be estimated at {40 - points:.1f} % to {40 + points:.1f} %.")
    else:
        said.append("That is too rough to be of use: expect more people, ask fewer questions, or give up some privacy.")
    reach = 100 * forecast(_case(given, schema, users), repeats=1, meaning="range").error
    said.append(
        f"The 95 % interval beside an answer will reach about {reach:.0f} points to either side. It is that wide since "
        "it holds whatever the data are like."
    )
    rounds = [f"{people:,.0f}" for people in spread.wave_people]
    if len(rounds) > 1:
        sizes = f"{', '.join(rounds[:-1])} and {rounds[-1]} people"
        sizes = f"{rounds[0]} people each" if len(set(rounds)) == 1 else sizes
        said.append(f"They are asked in {len(rounds)} rounds, of about {sizes}.")
    said += _enough(given, spread)
    if days := _days(given, len(rounds)):
        said.append(days)
    said.append(
        f"If only 80 % of them come, every group still has its {minimum:,} answers with a chance of "
        f"{min(int(1000 * spread.chance), 999) / 10:g} % or more."
    )
    if spread.left_out:
        said.append(f"For these people to be enough, the plan is smaller: {spread.left_out}.")
    return {"sentences": said, "error": f"{points:.1f}", "method": expected.method}


def _enough(given: Mapping[str, str], spread: Staffing) -> list[str]:
    """How many people are counted, where rounds close with enough answers and people keep coming."""
    if given["close"] not in ("enough", "both"):
        return []
    try:
        wanted = given["enough"] and number(given["enough"], "Answers in every group", whole=True, least=1)
    except Unclear:
        return []  # which is said when the campaign is created
    reports = int(wanted or spread.reports)
    if not 0 < reports <= spread.reports or (counted := spread.counted(reports)) >= spread.users:
        return []
    further = math.sqrt(spread.users / counted)  # a standard error goes with the root of the answers
    about = f"{float(f'{counted:.2g}'):,.0f}"
    return [
        f"A round closes once every group has {reports:,} answers. In all that takes about {about} people. "
        f"Then answers are {further:.1f} times as far off as with all {spread.users:,}."
    ]


def _days(given: Mapping[str, str], rounds: int) -> str:
    """How long the campaign takes, where its rounds close by time."""
    if given["close"] not in ("time", "both"):
        return ""
    try:
        each = float(given["days"])
    except ValueError:
        return ""
    if not 0 < each < math.inf:
        return ""
    most = "at most " if given["close"] == "both" else ""
    shared = f", {each:g} for each round" if rounds > 1 else ""
    return f"That takes {most}{rounds * each:g} days{shared}. A round that is short of answers is open twice as long."


def _case(given: Mapping[str, str], schema: Schema, users: int) -> Case:
    return Case(schema, users, float(given["epsilon"]), given["method"] or None)
