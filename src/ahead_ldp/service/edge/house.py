"""What the connections of one server share: who is there, what they hold, and who has to go when room is short."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

from ahead_ldp.service.campaigns.logs import LOGGER
from ahead_ldp.service.edge.answers import Answers, Lines
from ahead_ldp.service.edge.limits import Limits
from ahead_ldp.service.edge.proxies import Proxies
from ahead_ldp.service.edge.requests import Request

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
Reply = Callable[[int, Lines, bytes], None]
ShortWay = Callable[[Request, Reply], bool]  # takes a whole request and replies later, or says no


class Guest(Protocol):
    """A connection, as the house sees it."""

    def refuse(self, kind: str, reason: str) -> None:
        """Say what is wrong and close."""

    def drop(self, reason: str) -> None:
        """End the connection at once."""

    def stop(self) -> None:
        """End now, or with the answer under way."""

    def look(self, now: float) -> int:
        """End what is past its deadline; how many bytes of answers the peer has left unread."""


class House:
    """The connections of one server, their budgets and their deadlines.

    Guarantees:
        connections  at most ``limits.connections``; one more, and the one that has kept the server waiting longest goes
        bytes        at most ``limits.held_bytes`` and one read in bodies; beyond it the oldest incomplete body goes
        time         a connection that keeps the server waiting ends one sweep after its deadline at the latest
        requests     at most ``limits.requests`` are worked on; one that waits for a slow reader makes room for another
    """

    def __init__(self, app: App, limits: Limits, proxies: Proxies, short_way: ShortWay | None = None) -> None:
        """Nobody is there."""
        self.app, self.limits, self.proxies, self.short_way = app, limits, proxies, short_way
        self.loop = asyncio.get_running_loop()
        self.answers = Answers()
        self.everybody: set[Guest] = set()
        self.waiting: OrderedDict[Guest, None] = OrderedDict()  # the server waits for these; longest first
        self.readers: OrderedDict[Guest, None] = OrderedDict()  # the application waits until these have read; so, too
        self.bodies: OrderedDict[Guest, None] = OrderedDict()  # of these a part of the body is there
        self.held = 0  # bytes of bodies, incomplete or worked on
        self.working = 0  # requests that are with the application
        self.refused: Counter[str] = Counter()  # connections and requests that ended early, by reason
        self.stopping = False
        self.every_s = max(
            0.02, min(1.0, limits.header_s / 4, limits.body_s / 4, limits.idle_s / 4, limits.answer_s / 4)
        )

    def admit(self, connection: Guest) -> None:
        """Let a new connection in; if the house is full, the one that has been waited for longest goes."""
        if len(self.everybody) >= self.limits.connections and self.waiting:
            next(iter(self.waiting)).drop("connections")
        if len(self.everybody) >= self.limits.connections:  # all are being worked for
            connection.drop("connections")
            return
        self.everybody.add(connection)
        self.waiting[connection] = None

    def leave(self, connection: Guest) -> None:
        """A connection has ended."""
        self.everybody.discard(connection)
        for those in (self.waiting, self.readers, self.bodies):
            those.pop(connection, None)

    def has_room_to_work(self) -> bool:
        """Whether one more request can be worked on: if need be, whoever has left an answer unread the longest goes."""
        if self.working >= self.limits.requests:
            if not self.readers:
                self.refused["requests"] += 1
                return False
            next(iter(self.readers)).drop("unread")
        return True

    def hold(self, connection: Guest, n: int) -> bool:
        """Make room for so many more bytes of a body; False if there is none even after the oldest have gone."""
        self.held += n
        while self.held > self.limits.held_bytes:
            oldest = next(iter(self.bodies), None)
            if oldest is None or oldest is connection:
                return False
            oldest.refuse("overloaded", "bytes")
        return True

    def _looked(self, connection: Guest, now: float) -> int:
        """Look at one; if that fails, it is the one that goes, and the deadlines of all others still hold."""
        try:
            return connection.look(now)
        except Exception:
            LOGGER.exception("deadline_failed")
            self.leave(connection)
            with suppress(Exception):
                connection.drop("failed")
            return 0

    async def sweep(self) -> None:
        """End what is past its deadline, again and again."""
        while True:
            await asyncio.sleep(self.every_s)
            self.answers.renew()
            now = self.loop.time()
            unread = {connection: self._looked(connection, now) for connection in list(self.everybody)}
            excess = self.held + sum(unread.values()) - self.limits.held_bytes
            for connection in sorted(unread, key=lambda one: -unread[one]):  # those who leave most unread go first
                if excess <= 0 or not unread[connection]:
                    break
                excess -= unread[connection]
                connection.drop("unread")
