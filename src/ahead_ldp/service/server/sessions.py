"""Visits of operators and analysts to the dashboard: a random id in a cookie, everything else here.

A visit is opened with a role token and ends at sign-out, with its token, after an hour without a request, or after
twelve. Its id changes every quarter of an hour, so a copied cookie is of little use later. The store has the hash of
the id: who reads the store or a backup cannot take a visit over.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import RoleToken, Visit

LONGEST_S, IDLE_S, ROTATE_S = 12 * 3600, 3600, 900
GRACE_S = 30  # requests that were under way when the id changed


class Host(Protocol):
    """What a visit needs of the service."""

    store: Store

    @property
    def clock(self) -> Callable[[], int]:
        """Seconds since 1970."""

    def holds(self, row: RoleToken) -> bool:
        """Whether a token is neither revoked nor expired."""

    def valid_token(self, token: str | None) -> RoleToken | None:
        """What is stored of a token that is valid now."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who has signed in: what they may do, and the visit."""

    role: Role
    visit: Visit
    renewed: str | None = None  # the id that the cookie should have from now on, if it changes

    @property
    def operator(self) -> bool:
        """Whether they may change things."""
        return self.role is Role.OPERATOR

    @property
    def csrf(self) -> str:
        """A word that only pages made for this visit hold; it stays when the id changes."""
        return hashlib.sha256(b"form" + self.visit.family).hexdigest()


def sign_in(service: Host, token: str) -> str | None:
    """Open a visit with a role token; its id, or None if the token opens nothing."""
    row = service.valid_token(token)
    if row is None or row.role not in (Role.OPERATOR, Role.ANALYST):
        return None
    now, name = service.clock(), secrets.token_urlsafe(32)
    visit = Visit(_digest(name), secrets.token_bytes(16), row.digest, now, now, now + IDLE_S)
    service.store.start_session(visit, canonical_bytes({"event": "session_started", "name": row.name}))
    return name


def visitor_of(service: Host, name: str | None) -> Visitor | None:
    """Who is behind an id; None if it is none, has expired, was signed out, or its token no longer holds."""
    now = service.clock()
    visit = service.store.session(_digest(name), now) if name else None
    if visit is None:
        return None
    row = service.store.role_token(visit.token)
    if row is None or not service.holds(row):
        return None
    return Visitor(Role(row.role), visit, _renewed(service, visit, now))


def sign_out(service: Host, visitor: Visitor) -> None:
    """End the visit, whoever has its id."""
    row = service.store.role_token(visitor.visit.token)
    body = canonical_bytes({"event": "session_ended", "name": "" if row is None else row.name})
    service.store.end_session(visitor.visit.family, service.clock(), body)


def _renewed(service: Host, visit: Visit, now: int) -> str | None:
    """A new id for a visit whose id is old, unless another request was faster."""
    if now - visit.made_at < ROTATE_S:
        return None
    name = secrets.token_urlsafe(32)
    expires = min(now + IDLE_S, visit.started_at + LONGEST_S)
    new = Visit(_digest(name), visit.family, visit.token, visit.started_at, now, expires)
    return name if service.store.rotate_session(visit.digest, new, now + GRACE_S) else None


def _digest(name: str) -> bytes:
    return hashlib.sha256(b"session" + name.encode()).digest()
