"""Routes for everybody: what a device and an audit need."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi.responses import JSONResponse

from ahead_ldp.service.campaigns.chain import chain
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server import models, published
from ahead_ldp.service.server.routing import EVERYWHERE, Campaign, Number, problem_responses
from ahead_ldp.service.server.service import Serving
from ahead_ldp.service.store.rows import Withdrawal

_FRESH = "no-cache"

router = APIRouter(prefix="/v1/campaigns/{campaign}", tags=["public"])


@router.get("", responses=problem_responses(*EVERYWHERE), response_class=Response)
def get_campaign(service: Serving, campaign: Campaign) -> Response:
    """The canonical bytes of a campaign. They never change; their digest is the campaign's name."""
    headers = {"etag": f'"{campaign}"', "cache-control": published.IMMUTABLE}
    return Response(service.row(campaign).record, media_type="application/json", headers=headers)


@router.get("/state", responses=problem_responses(*EVERYWHERE), response_model=models.StateView)
def get_state(service: Serving, campaign: Campaign) -> Response:
    """Where a campaign stands."""
    return JSONResponse(service.state(campaign), headers={"cache-control": _FRESH})


@router.get("/waves/{number}", responses=problem_responses(*EVERYWHERE), response_class=Response)
def get_wave(
    service: Serving, campaign: Campaign, number: Number, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """The questions of a wave, the same bytes for everybody. They never change; 304 for who has them."""
    wave = service.directory.publish(campaign, number)
    if published.is_same(wave, if_none_match):
        return Response(status_code=304, headers=published.headers(wave))
    return Response(wave.body, media_type="application/json", headers=published.headers(wave))


@router.get("/chain", responses=problem_responses(*EVERYWHERE))
def get_chain(service: Serving, campaign: Campaign) -> Response:
    """Questions, frozen tallies and digests: what `ahead audit` recomputes."""
    return Response(chain(service, campaign), media_type="application/json")


@router.post("/withdrawals", responses=problem_responses(*EVERYWHERE, "wrong_state"), status_code=200)
def withdraw(service: Serving, campaign: Campaign, body: models.Nonce) -> dict[str, str]:
    """Delete a report while its wave is open; the answer is the same when it is gone already. 404 if none ever came."""
    withdrawal = service.withdraw(campaign, bytes.fromhex(body.nonce))
    service.metrics.withdrawals.labels(withdrawal.value).inc()
    if withdrawal is Withdrawal.UNKNOWN:
        raise Problem("not_found", "no report of this nonce")
    if withdrawal is Withdrawal.TOO_LATE:
        raise Problem("wrong_state", "the wave of the report is closed")
    return {"state": "withdrawn"}
