"""Routes of the analyst: progress, screens, results and queries, from closed waves.

Results and queries are worked on one after the other, as the analyses are: a thousand ranges take seconds.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.service.campaigns.export import tallies_record
from ahead_ldp.service.campaigns.results import answer_queries, overview
from ahead_ldp.service.screening.manipulation import manipulation
from ahead_ldp.service.server import models
from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.server.routing import GUARDED, Campaign, problem_responses
from ahead_ldp.service.server.service import Serving, needs

router = APIRouter(prefix="/v1", tags=["analyst"], dependencies=[needs(Role.ANALYST)])
AT = "/campaigns/{campaign}"


@router.get("/campaigns", responses=problem_responses(*GUARDED))
def get_campaigns(service: Serving) -> list[dict[str, Any]]:
    """All campaigns."""
    return [
        {
            "campaign": row.digest,
            "name": service.directory.terms(row.digest).name,
            "title": service.directory.terms(row.digest).campaign.record["title"],
            "state": row.state.value,
            "created_at": row.created_at,
            "ended_at": row.ended_at,
        }
        for row in service.store.campaigns()
    ]


@router.get(AT + "/progress", responses=problem_responses(*GUARDED), response_model_exclude_unset=True)
def get_progress(service: Serving, campaign: Campaign) -> models.Progress:
    """How far the latest wave is."""
    return models.Progress(**service.progress(campaign))


@router.get(AT + "/screens", responses=problem_responses(*GUARDED))
def get_screens(service: Serving, campaign: Campaign) -> dict[str, Any]:
    """What the checks of every wave said."""
    return {"waves": [{"wave": wave.number, **screens} for wave, screens in service.screens(campaign) if screens]}


@router.get(AT + "/results", responses=problem_responses(*GUARDED, "no_results", "invalid_query", "busy"))
def get_results(
    service: Serving,
    campaign: Campaign,
    level: Annotated[float, Query(gt=0, lt=1, allow_inf_nan=False)] = 0.95,
    intervals: Annotated[models.Intervals, Query(description=models.INTERVALS)] = "strict",
) -> dict[str, Any]:
    """The distribution of every attribute from the closed waves, with intervals, screens and manipulation bound.

    A distribution has a bin for every category, or at most 64 of equally many buckets; `queries` has more if asked.
    """
    session, directory = service.closed_session(campaign), service.directory
    return {
        "campaign": campaign,
        "state": service.row(campaign).state.value,
        **service.worked_out(lambda: overview(session, directory.estimate(campaign), level, intervals)),
        "manipulation": manipulation(directory.asked(campaign), directory.terms(campaign).campaign.tier),
        "screens": get_screens(service, campaign)["waves"],
    }


@router.post(AT + "/queries", responses=problem_responses(*GUARDED, "no_results", "invalid_query", "busy"))
def query(service: Serving, campaign: Campaign, body: models.Queries) -> dict[str, Any]:
    """Answers to range queries, curves, histograms, quantiles and means from the closed waves."""
    session = service.closed_session(campaign)
    estimate = service.directory.estimate(campaign)
    return service.worked_out(lambda: answer_queries(session, estimate, body.model_dump()))


@router.get(AT + "/tallies", responses=problem_responses(*GUARDED, "no_results"))
def get_tallies(service: Serving, campaign: Campaign) -> Response:
    """What is known of the campaign as one record, which `ahead_ldp.load` reads."""
    return Response(canonical_bytes(tallies_record(service, campaign)), media_type="application/json")
