"""Routes of the analyst: progress, screens, results and queries, from closed waves."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.service.campaigns.closing import SCREENS
from ahead_ldp.service.campaigns.export import tallies_record
from ahead_ldp.service.campaigns.results import answer_queries, overview
from ahead_ldp.service.screening.manipulation import manipulation
from ahead_ldp.service.server import models
from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.server.problems import Problem, problem_responses
from ahead_ldp.service.server.routing import GUARDED, Campaign, needs
from ahead_ldp.service.server.service import Service


def analyst(service: Service) -> APIRouter:
    """Everything that is read from results."""
    router = APIRouter(prefix="/v1", tags=["analyst"], dependencies=[needs(service, Role.ANALYST)])
    at = "/campaigns/{campaign}"

    @router.get("/campaigns", responses=problem_responses(*GUARDED))
    def get_campaigns() -> list[dict[str, Any]]:
        """All campaigns."""
        return [
            {
                "campaign": row.digest,
                "title": service.directory.terms(row.digest).campaign.record["title"],
                "state": row.state.value,
                "created_at": row.created_at,
                "ended_at": row.ended_at,
            }
            for row in service.store.campaigns()
        ]

    @router.get(at + "/progress", responses=problem_responses(*GUARDED))
    def get_progress(campaign: Campaign) -> models.Progress:
        """How far the latest wave is."""
        return models.Progress(**service.progress(campaign))

    @router.get(at + "/screens", responses=problem_responses(*GUARDED))
    def get_screens(campaign: Campaign) -> dict[str, Any]:
        """What the checks of every wave said."""
        service.row(campaign)
        found = {w.number: service.store.document(campaign, w.number, SCREENS) for w in service.store.waves(campaign)}
        return {"waves": [{"wave": n, **json.loads(body)} for n, body in found.items() if body is not None]}

    @router.get(at + "/results", responses=problem_responses(*GUARDED, "no_results", "replay_mismatch"))
    def get_results(
        campaign: Campaign, level: Annotated[float, Query(gt=0, lt=1, allow_inf_nan=False)] = 0.95
    ) -> dict[str, Any]:
        """The distribution of every attribute from the closed waves, with intervals, screens and manipulation bound."""
        session = service.closed_session(campaign)
        terms = service.directory.terms(campaign)
        bound = manipulation(session, terms.campaign.tier)
        return {
            "campaign": campaign,
            "state": service.row(campaign).state.value,
            **overview(session, service.directory.estimate(campaign), level),
            "manipulation": bound,
            "screens": get_screens(campaign)["waves"],
        }

    @router.post(
        at + "/queries", responses=problem_responses(*GUARDED, "no_results", "invalid_query", "replay_mismatch")
    )
    def query(campaign: Campaign, body: models.Queries) -> dict[str, Any]:
        """Answers to range queries, curves, histograms, quantiles and means from the closed waves."""
        session = service.closed_session(campaign)
        try:
            return answer_queries(session, service.directory.estimate(campaign), body.model_dump())
        except ValueError as error:
            raise Problem("invalid_query", str(error)) from None

    @router.get(at + "/tallies", responses=problem_responses(*GUARDED, "no_results", "replay_mismatch"))
    def get_tallies(campaign: Campaign) -> Response:
        """What is known of the campaign as one record, which `ahead_ldp.load` reads."""
        return Response(canonical_bytes(tallies_record(service, campaign)), media_type="application/json")

    return router
