"""How much may be asked for: often, and at once.

Addresses live in memory only, under a key that changes, and are never logged.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ahead_ldp.service.campaigns.problems import Problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_FORGET_S = 600.0
_MOST = 100_000


class RateLimit:
    """A token bucket per address: ``rate`` requests per second, ``burst`` at once. A rate of 0 lets everybody in."""

    def __init__(self, rate: float, burst: int, monotonic: Callable[[], float]) -> None:
        """Nobody has asked yet."""
        self.rate, self.burst, self.monotonic = rate, float(burst), monotonic
        self._forget(monotonic())

    def _forget(self, now: float) -> None:
        self._key, self._since = os.urandom(16), now
        self._buckets: dict[bytes, tuple[float, float]] = {}  # keyed hash of the address -> tokens, when

    def allows(self, address: str) -> bool:
        """Whether a request of this address may go on now."""
        if self.rate <= 0:
            return True
        now = self.monotonic()
        if now - self._since > _FORGET_S or len(self._buckets) > _MOST:
            self._forget(now)
        name = hashlib.blake2b(address.encode(), key=self._key, digest_size=8).digest()
        tokens, when = self._buckets.get(name, (self.burst, now))
        tokens = min(self.burst, tokens + self.rate * (now - when))
        self._buckets[name] = (max(tokens - 1.0, 0.0), now)
        return tokens >= 1.0

    def lets_in(self, scope: Scope) -> bool:
        """Count a request, and say whether it may go on."""
        client = scope.get("client")
        return client is None or self.allows(client[0])

    def check(self, scope: Scope) -> None:
        """Count a request, and raise if its address has asked too often."""
        if not self.lets_in(scope):
            raise Problem("too_many_requests")


def check_length(scope: Scope, largest: int) -> None:
    """Raise if a body larger than this is announced."""
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value) > largest):
            raise Problem("too_large")


def limited(receive: Receive, largest: int) -> Receive:
    """A body that ends the request when it grows beyond the limit, announced or not."""
    seen = 0

    async def wrapped() -> MutableMapping[str, Any]:
        """One more piece."""
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > largest:
            raise Problem("too_large")
        return message

    return wrapped
