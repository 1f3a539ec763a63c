"""The service of one server process, and how a route asks for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Annotated, Any

from fastapi import Depends, Header, Request

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.campaigns.operations import Campaigns, Clock, system_clock
from ahead_ldp.service.campaigns.outages import Outages
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server.auth import Role, allows, bearer, new_token, token_hash
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.metrics import Metrics
from ahead_ldp.service.store.interface import StateChanged, Store
from ahead_ldp.service.store.rows import RoleToken


class Service(Campaigns):
    """Everything that the routes need: campaigns, and who may ask."""

    def __init__(
        self, store: Store, settings: Settings, clock: Clock = system_clock, *, rehearsing: bool = False
    ) -> None:
        """Put the parts together."""
        super().__init__(store, clock, settings.max_cells, rehearsing)
        self.settings, self.metrics, self.outages = settings, Metrics(), Outages()
        self.stage: Callable[[Store], Any] | None = None  # starts a server for a rehearsal, where there can be one
        self.at_end: list[Callable[[], None]] = []  # what else stops with the server
        self._probing, self._probed = Lock(), (-1, 0)  # when the store was last tried, and its epoch then

    def add_token(self, role: str, name: str, expires_in_s: int | None = None) -> str:
        """A new token of a role; its text is returned here and kept nowhere."""
        token, now = new_token(), self.clock()
        expires = None if expires_in_s is None else now + expires_in_s
        row = RoleToken(token_hash(token), Role(role).value, name, now, expires, None)
        said = {"event": "token_added", "role": role, "name": name, "expires_at": expires}
        try:
            self.store.add_role_token(row, canonical_bytes(said))
        except StateChanged:
            raise Problem("wrong_state", "a token of this name exists") from None
        event("token_added", role=role)
        return token

    def revoke_token(self, name: str) -> bool:
        """Revoke a token by its name; False if there is none, or it was revoked before."""
        said = canonical_bytes({"event": "token_revoked", "name": name})
        revoked = self.store.revoke_role_token(name, self.clock(), said)
        if revoked:
            event("token_revoked")
        return revoked

    def holds(self, row: RoleToken) -> bool:
        """Whether a stored token is valid now."""
        return row.revoked_at is None and (row.expires_at is None or row.expires_at > self.clock())

    def valid_token(self, token: str | None) -> RoleToken | None:
        """What is stored of a token that is valid now."""
        row = None if token is None else self.store.role_token(token_hash(token))
        return row if row is not None and self.holds(row) else None

    def role(self, token: str | None) -> Role | None:
        """The role of a token that is valid now."""
        row = self.valid_token(token)
        return None if row is None else Role(row.role)

    def check_ready(self) -> int:
        """Return the epoch if the store can be written. Anybody may ask, so it is tried once a second at most."""
        with self._probing:
            now = self.clock()
            if now != self._probed[0]:
                self.store.check_writable()
                self._probed = (now, self.store.epoch())
            return self._probed[1]

    def note_settings(self) -> None:
        """Write the settings that differ from the defaults to the audit chain, if they are others than last time."""
        said = canonical_bytes({"event": "settings", "settings": self.settings.changed()})
        after, last = 0, b""
        while events := self.store.events(after):
            after = events[-1].number
            last = next((e.body for e in reversed(events) if b'"event":"settings"' in e.body), last)
        if said != last:
            self.store.add_event(said, self.clock())

    def authorize(self, token: str | None, wanted: Role) -> None:
        """Return if the token's role may do this."""
        role = self.role(token)
        if role is None:
            raise Problem("unauthorized")
        if not allows(role, wanted):
            raise Problem("forbidden")


async def _service(request: Request) -> Service:
    return request.app.state.service


Serving = Annotated[Service, Depends(_service)]  # the service of the application that a route is in


def needs(role: Role) -> Any:
    """A dependency that lets in the bearer of a role."""

    def check(service: Serving, authorization: Annotated[str | None, Header()] = None) -> None:
        """Raise for everybody else."""
        service.authorize(bearer(authorization), role)

    return Depends(check)
