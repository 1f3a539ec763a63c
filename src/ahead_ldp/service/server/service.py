"""The service of one server process, and how a route asks for it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Request

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.campaigns.operations import Campaigns, Clock, system_clock
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server.auth import Role, allows, bearer, new_token, token_hash
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.metrics import Metrics
from ahead_ldp.service.store.interface import StateChanged, Store
from ahead_ldp.service.store.rows import RoleToken


class Service(Campaigns):
    """Everything that the routes need: campaigns, and who may ask."""

    def __init__(self, store: Store, settings: Settings, clock: Clock = system_clock) -> None:
        """Put the parts together."""
        super().__init__(store, clock, settings.max_cells)
        self.settings, self.metrics = settings, Metrics()

    def add_token(self, role: str, name: str, expires_in_s: int | None = None) -> str:
        """A new token of a role; its text is returned here and kept nowhere."""
        token, now = new_token(), self.clock()
        expires = None if expires_in_s is None else now + expires_in_s
        row = RoleToken(token_hash(token), Role(role).value, name, now, expires, None)
        try:
            self.store.add_role_token(row, canonical_bytes({"event": "token_added", "role": role, "name": name}))
        except StateChanged:
            raise Problem("wrong_state", "a token of this name exists") from None
        event("token_added", role=role)
        return token

    def role(self, token: str | None) -> Role | None:
        """The role of a token that is valid now."""
        row = None if token is None else self.store.role_token(token_hash(token))
        if row is None or row.revoked_at is not None or (row.expires_at or self.clock() + 1) <= self.clock():
            return None
        return Role(row.role)

    def authorize(self, token: str | None, wanted: Role) -> None:
        """Return if the token's role may do this."""
        role = self.role(token)
        if role is None:
            raise Problem("unauthorized")
        if not allows(role, wanted):
            raise Problem("forbidden")


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(_service)]  # the service of the application that a route is in


def needs(role: Role) -> Any:
    """A dependency that lets in the bearer of a role."""

    def check(service: Serving, authorization: Annotated[str | None, Header()] = None) -> None:
        """Raise for everybody else."""
        service.authorize(bearer(authorization), role)

    return Depends(check)
