"""How much may be asked for: often, and at once.

Addresses live in memory only, under a key that changes, and are never logged.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import IPv4Address
from typing import Any

from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.edge.proxies import plain_address

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_FORGET_S = 600.0
_MOST = 100_000


class RateLimit:
    """A token bucket per address: ``rate`` requests per second, ``burst`` at once. A rate of 0 lets everybody in.

    Guarantees:
        memory  at most ``most`` buckets; for one more, the one that was used longest ago is forgotten
        privacy addresses are kept as keyed hashes, and every ten minutes the key and all buckets are new
    So an address gets more than its rate only if it has ``most`` others at its side, or ``burst`` once in ten minutes.
    Addresses of IPv6 count by the network of 64 bits that one household or host has.
    """

    def __init__(self, rate: float, burst: int, monotonic: Callable[[], float], most: int = _MOST) -> None:
        """Nobody has asked yet."""
        self.rate, self.burst, self.monotonic, self._most = rate, float(burst), monotonic, most
        self._forget(monotonic())

    def _forget(self, now: float) -> None:
        self._key, self._since = os.urandom(16), now
        self._buckets: OrderedDict[int, tuple[float, float]] = OrderedDict()  # hash of the address -> tokens, when

    def allows(self, address: str) -> bool:
        """Whether a request of this address may go on now."""
        if self.rate <= 0:
            return True
        now = self.monotonic()
        if now - self._since > _FORGET_S:
            self._forget(now)
        name = hash((self._key, _network(address)))  # Python's own is keyed by the process, too, and costs least
        tokens, when = self._buckets.pop(name, (self.burst, now))
        tokens = min(self.burst, tokens + self.rate * (now - when))
        self._buckets[name] = (max(tokens - 1.0, 0.0), now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return tokens >= 1.0

    def admits(self, client: tuple[str, int] | None) -> bool:
        """Whether a request of this peer may go on now; one without an address (a socket of this machine) may."""
        return self.rate <= 0 or client is None or self.allows(client[0])

    def lets_in(self, scope: Scope) -> bool:
        """Count a request, and say whether it may go on."""
        return self.admits(scope.get("client"))

    def check(self, scope: Scope) -> None:
        """Count a request, and raise if its address has asked too often."""
        if not self.lets_in(scope):
            raise Problem("too_many_requests")


def _network(address: str) -> str | bytes:
    """What one peer can choose among: of an IPv6 address the first 64 bits, else the whole address."""
    if ":" not in address:
        return address
    known = plain_address(address.partition("%")[0])
    if known is None:
        return address
    return str(known) if isinstance(known, IPv4Address) else known.packed[:8]


def check_length(scope: Scope, largest: int) -> None:
    """Raise if a body larger than this is announced."""
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value) > largest):
            raise Problem("too_large")


def may_be_long(scope: Scope, most: int) -> bool:
    """Whether a body may come that is longer than this: one is announced, or none is."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    return chunked or any(not value.isdigit() or int(value) > most for value in lengths)


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
