"""How much one address may ask for. Addresses live in memory only, under a key that changes, and are never logged."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

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
