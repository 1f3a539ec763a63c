"""What the routes share: parameters, and problems by kind of route."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query

from ahead_ldp.service.campaigns.problems import KINDS, MEDIA_TYPE

Campaign = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="digest of the campaign")]
Number = Annotated[int, Path(ge=1, le=10_000, description="number of the wave")]
Wait = Annotated[float, Query(ge=0, le=60, description="seconds to wait for the job to end")]

EVERYWHERE = ("invalid_request", "not_found", "too_many_requests", "unavailable")
GUARDED = (*EVERYWHERE, "unauthorized", "forbidden")
CHANGING = (*GUARDED, "wrong_state")


def problem_responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that may fail in these ways, as OpenAPI describes them."""
    responses: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        status, title = KINDS[kind]
        text = responses[status]["description"] + "; " + title if status in responses else title
        schema = {"$ref": "#/components/schemas/ProblemView"}
        responses[status] = {"description": text, "content": {MEDIA_TYPE: {"schema": schema}}}
    return responses
