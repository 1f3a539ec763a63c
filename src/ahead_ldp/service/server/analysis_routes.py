"""Routes of the analyst beyond shares: inequality, pairs, change, groups, weights, rounds, and a page to send.

All of them answer from closed waves, in a thread and one after the other, so that uploads are not held up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.service.campaigns import analyses
from ahead_ldp.service.server import analysis_models as models
from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.server.headers import INERT_POLICY
from ahead_ldp.service.server.models import INTERVALS, Intervals
from ahead_ldp.service.server.routing import GUARDED, Campaign, problem_responses
from ahead_ldp.service.server.service import Service, Serving, needs

router = APIRouter(prefix="/v1", tags=["analyst"], dependencies=[needs(Role.ANALYST)])
AT = "/campaigns/{campaign}"
_PROBLEMS = problem_responses(*GUARDED, "no_results", "invalid_query", "busy")
_FORMS = {"html": "text/html", "pdf": "application/pdf"}
_FILES: dict[str, Any] = {kind: {} for kind in _FORMS.values()}
_PAGE: dict[int | str, dict[str, Any]] = {200: {"content": _FILES, "description": "The page"}}


def _asked(service: Service, campaign: str, work: Callable[[Estimate], dict[str, Any]]) -> dict[str, Any]:
    estimate = analyses.closed_estimate(service, campaign)
    return {"campaign": campaign, **service.worked_out(lambda: work(estimate))}


@router.get(AT + "/description", responses=_PROBLEMS)
def describe(
    service: Serving,
    campaign: Campaign,
    attribute: Annotated[str | None, Query(max_length=1000, description="left out, all that are numeric")] = None,
    level: Annotated[float, Query(gt=0, lt=1, allow_inf_nan=False)] = 0.95,
    intervals: Annotated[Intervals, Query(description=INTERVALS)] = "strict",
) -> dict[str, Any]:
    """How far people lie apart, and how unequally totals are shared out."""
    asked = {"attribute": attribute, "level": level, "intervals": intervals}
    return _asked(service, campaign, lambda estimate: analyses.describe(estimate, asked))


@router.post(AT + "/pair", responses=_PROBLEMS)
def pair(service: Serving, campaign: Campaign, body: models.Pair) -> dict[str, Any]:
    """Correlation and mutual information of two attributes."""
    return _asked(service, campaign, lambda estimate: analyses.pair(estimate, body.model_dump()))


@router.post(AT + "/difference", responses=_PROBLEMS)
def difference(service: Serving, campaign: Campaign, body: models.ChangeAsked) -> dict[str, Any]:
    """What changed since an earlier campaign: numbers are this campaign's less those of the earlier one."""
    before = analyses.closed_estimate(service, body.since)
    return _asked(service, campaign, lambda after: analyses.change(before, after, body.model_dump()))


@router.post(AT + "/groups", responses=_PROBLEMS)
def groups(service: Serving, campaign: Campaign, body: models.GroupsAsked) -> dict[str, Any]:
    """Shares, means and medians in every group of people."""
    return _asked(service, campaign, lambda estimate: analyses.groups(estimate, body.model_dump()))


@router.post(AT + "/weighted", responses=_PROBLEMS)
def weighted(service: Serving, campaign: Campaign, body: models.Weighing) -> dict[str, Any]:
    """Answers as if some attributes had the shares that are known of everybody."""
    return _asked(service, campaign, lambda estimate: analyses.weigh(estimate, body.model_dump()))


@router.post("/series", responses=_PROBLEMS)
def series(service: Serving, body: models.SeriesAsked) -> dict[str, Any]:
    """A share over the rounds of a series, and what they cost somebody who takes part in all of them."""
    found = {"campaigns": body.campaigns, "budget": analyses.budget(service, body.campaigns)}
    if body.query is None:  # what it costs is known before anything is collected
        return found
    rounds = analyses.named_rounds(service, body.campaigns)
    return {**found, **service.worked_out(lambda: analyses.rounds(rounds, body.model_dump()))}


@router.post(
    AT + "/report", responses={**_PROBLEMS, **problem_responses("not_installed"), **_PAGE}, response_class=Response
)
def report(service: Serving, campaign: Campaign, body: models.ReportAsked) -> Response:
    """A page with pictures and sentences that can be sent as it is."""
    page = service.worked_out(lambda: analyses.report(service, campaign, body.model_dump()))
    return Response(page, media_type=_FORMS[body.format], headers={"content-security-policy": INERT_POLICY})
