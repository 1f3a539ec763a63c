"""What the routes share: parameters, problems by kind of route, and the check of a role."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query

from ahead_ldp.service.server.auth import Role, bearer
from ahead_ldp.service.server.service import Service

Campaign = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="digest of the campaign")]
Number = Annotated[int, Path(ge=1, le=10_000, description="number of the wave")]
Wait = Annotated[float, Query(ge=0, le=60, description="seconds to wait for the job to end")]

EVERYWHERE = ("invalid_request", "not_found", "too_many_requests", "unavailable")
GUARDED = (*EVERYWHERE, "unauthorized", "forbidden")
CHANGING = (*GUARDED, "wrong_state")


def needs(service: Service, role: Role) -> Any:
    """A dependency that lets in the bearer of a role."""

    def check(authorization: Annotated[str | None, Header()] = None) -> None:
        service.authorize(bearer(authorization), role)

    return Depends(check)
