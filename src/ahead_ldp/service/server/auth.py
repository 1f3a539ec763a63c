"""Roles and their bearer tokens: random, shown once, stored as hashes, replaced at will.

An *operator* runs campaigns; an *analyst* reads results and asks queries; a *monitor* reads metrics. A *participant*
needs no token of this kind.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from enum import StrEnum

TOKEN_NAME = re.compile("[A-Za-z0-9._-]{1,100}")  # a token is revoked under it, in an address
_PREFIX = "ahead_"


class Role(StrEnum):
    """Who may do what. An operator may do everything that the others may."""

    OPERATOR = "operator"
    ANALYST = "analyst"
    MONITOR = "monitor"


def new_token() -> str:
    """A token of 256 random bits. Its hash need not be slow: there is nothing to guess."""
    return _PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> bytes:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).digest()


def bearer(header: str | None) -> str | None:
    """The token of an Authorization header, if it carries one of ours."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip().startswith(_PREFIX) else None


def allows(role: Role, wanted: Role) -> bool:
    """Whether a role may do what another is needed for."""
    return role is wanted or role is Role.OPERATOR
