"""Routes of the operator: campaigns, waves, jobs, tokens, audit events, raw reports."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse

from ahead_ldp.service.campaigns.campaign import draft, planned
from ahead_ldp.service.campaigns.export import report_stream
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server import models
from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.server.routing import CHANGING, GUARDED, Campaign, Number, Wait, problem_responses
from ahead_ldp.service.server.service import Service, Serving, needs
from ahead_ldp.service.store.rows import Job, JobState

router = APIRouter(prefix="/v1", tags=["operator"], dependencies=[needs(Role.OPERATOR)])
AT = "/campaigns/{campaign}"
WAVE = AT + "/waves/{number}"


@router.post("/campaigns", status_code=201, responses=problem_responses(*GUARDED, "invalid_campaign"))
def create(service: Serving, body: models.CampaignDraft, response: Response) -> models.CampaignPlanned:
    """Create a campaign as a draft. The same one again is the same draft."""
    request = body.model_dump()
    request["created"] = request["created"] or time.strftime("%Y-%m-%d", time.gmtime(service.clock()))
    request["schema"] = request.pop("attributes")
    made = _create(service, request, response)
    terms = service.directory.terms(made.campaign)
    plan = None if (found := planned(terms, body.users)) is None else found.record()
    return models.CampaignPlanned(**made.model_dump(), name=terms.name, plan=plan)


@router.post("/campaigns/records", status_code=201, responses=problem_responses(*GUARDED, "invalid_campaign"))
def create_from_record(service: Serving, body: dict[str, Any], response: Response) -> models.CampaignMade:
    """Create a campaign from its whole record, as another server or a file has it."""
    return _create(service, {**body, "type": "campaign"}, response)


@router.post(AT + "/open", responses=problem_responses(*CHANGING, "replay_mismatch"))
def open_campaign(service: Serving, campaign: Campaign) -> models.CampaignMade:
    """Open the first wave."""
    service.open(campaign)
    return _made(service, campaign)


@router.post(AT + "/approve", responses=problem_responses(*CHANGING, "replay_mismatch"))
def approve(service: Serving, campaign: Campaign) -> models.CampaignMade:
    """Open the next wave of a campaign in review."""
    if service.row(campaign).state.value != "review":
        raise Problem("wrong_state", "the campaign is not in review")
    service.open(campaign)
    return _made(service, campaign)


@router.post(AT + "/finish", status_code=202, responses=problem_responses(*CHANGING, "wave_held"))
def finish(service: Serving, campaign: Campaign, response: Response, wait: Wait = 0) -> models.JobView:
    """End the campaign here: groups of the open wave with enough reports are counted, the others are void."""
    job = service.finish(campaign)
    if job is None:
        response.status_code = 200
        return models.JobView(job=0, state="done", kind="finish", result={"campaign_state": "finished"})
    return _accepted(service, job, response, wait)


@router.post(AT + "/void", responses=problem_responses(*CHANGING))
def void(service: Serving, campaign: Campaign) -> models.CampaignMade:
    """Give the campaign up: no results, all reports deleted."""
    service.void(campaign)
    return models.CampaignMade(campaign=campaign, state="void")


@router.post(WAVE + "/close", status_code=202, responses=problem_responses(*CHANGING, "wave_held"))
def close(service: Serving, campaign: Campaign, number: Number, response: Response, wait: Wait = 0) -> models.JobView:
    """Close a wave. With a group below the minimum the job fails, and the wave goes on."""
    return _accepted(service, service.close_wave(campaign, number), response, wait)


@router.post(WAVE + "/release", status_code=202, responses=problem_responses(*CHANGING))
def release(service: Serving, campaign: Campaign, number: Number, response: Response, wait: Wait = 0) -> models.JobView:
    """Count a held wave, whatever its screens said."""
    return _accepted(service, service.release_wave(campaign, number), response, wait)


@router.post(WAVE + "/void", status_code=202, responses=problem_responses(*CHANGING))
def void_wave(
    service: Serving, campaign: Campaign, number: Number, response: Response, wait: Wait = 0
) -> models.JobView:
    """Give a wave up: it closes with n = 0 in every group."""
    return _accepted(service, service.void_wave(campaign, number), response, wait)


@router.post(WAVE + "/void-group", responses=problem_responses(*CHANGING))
def void_group(service: Serving, campaign: Campaign, number: Number, body: models.GroupChoice) -> dict[str, str]:
    """Give one group of a wave up: n = 0, its reports deleted uncounted."""
    service.void_group(campaign, number, body.group)
    return {"state": "void"}


@router.post(WAVE + "/extend", responses=problem_responses(*CHANGING))
def extend(service: Serving, campaign: Campaign, number: Number, body: models.Extension) -> models.StateView:
    """Give an open wave a new deadline."""
    service.extend(campaign, number, body.seconds)
    return models.StateView(**service.state(campaign))


@router.get(WAVE + "/reports", responses=problem_responses(*GUARDED), response_class=StreamingResponse)
def export_reports(
    service: Serving, campaign: Campaign, number: Number, group: Annotated[str, Query(max_length=10_000)]
) -> Response:
    """The stored reports of one group in the wire form: a header, then frames of id and payload."""
    return StreamingResponse(report_stream(service, campaign, number, group), media_type="application/octet-stream")


@router.get("/jobs/{number}", responses=problem_responses(*GUARDED))
def get_job(service: Serving, number: Annotated[int, Path(ge=1, lt=2**53)]) -> models.JobView:
    """Work in the background."""
    return _job_view(service.store.job(number))


@router.get("/tokens", responses=problem_responses(*GUARDED))
def get_tokens(service: Serving) -> list[models.TokenView]:
    """The tokens of all roles, without their texts."""
    return [models.TokenView.model_validate(token, from_attributes=True) for token in service.store.role_tokens()]


@router.post("/tokens", status_code=201, responses=problem_responses(*CHANGING))
def add_token(service: Serving, body: models.NewRoleToken) -> models.TokenMade:
    """Make a token; its text is in this answer and nowhere else."""
    token = service.add_token(body.role, body.name, body.expires_in_s)
    return models.TokenMade(name=body.name, role=body.role, token=token)


@router.delete("/tokens/{name}", responses=problem_responses(*GUARDED))
def revoke_token(
    service: Serving, name: Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9._-]+$")]
) -> dict[str, str]:
    """Revoke a token."""
    if not service.revoke_token(name):
        raise Problem("not_found", "no such token, or revoked already")
    return {"state": "revoked"}


@router.get("/events", responses=problem_responses(*GUARDED))
def get_events(
    service: Serving,
    after: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> list[dict[str, Any]]:
    """The chain of audit events."""
    return [
        {"number": e.number, "at": e.at, "digest": e.digest, "event": json.loads(e.body)}
        for e in service.store.events(after, limit)
    ]


def _create(service: Service, request: dict[str, Any], response: Response) -> models.CampaignMade:
    try:
        terms = draft(request)
        if not service.create(terms):
            response.status_code = 200
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # choices are of any type
        raise Problem("invalid_campaign", str(error)) from None
    response.headers["location"] = f"/v1/campaigns/{terms.digest}"
    return _made(service, terms.digest)


def _made(service: Service, campaign: str) -> models.CampaignMade:
    return models.CampaignMade(campaign=campaign, state=service.row(campaign).state.value)


def _accepted(service: Service, number: int, response: Response, wait: float) -> models.JobView:
    """The job, ended if it does so within ``wait`` seconds."""
    response.headers["location"] = f"/v1/jobs/{number}"
    job = service.ended_job(number, wait)
    if job.state in (JobState.DONE, JobState.FAILED):
        response.status_code = 200
    return _job_view(job)


def _job_view(job: Job) -> models.JobView:
    """A job as everybody with its address sees it."""
    body = json.loads(job.result) if job.result else None
    failed = job.state is JobState.FAILED
    return models.JobView(
        job=job.number,
        state=job.state.value,
        kind=job.kind,
        result=None if failed else body,
        problem=body if failed else None,
    )
