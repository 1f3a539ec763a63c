"""Connections whose TLS is not agreed on yet: each is a guest of the house like any other."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress

from ahead_ldp.service.edge.connection import Connection
from ahead_ldp.service.edge.house import House

_PAUSE_S = 0.1  # where no connection can be taken: no file is left, say


class Handshake:
    """One peer that has not said enough yet. It has as long as the headers of a request, and is waited for."""

    def __init__(self, house: House, plain: socket.socket, tls: ssl.SSLContext) -> None:
        """Begin, if there is room."""
        self._house, self._plain, self._tls = house, plain, tls
        self._task: asyncio.Task[None] | None = None
        self._done = False
        house.admit(self)
        if self in house.everybody:
            self._task = house.loop.create_task(self._run())
            self._task.add_done_callback(self._end)

    async def _run(self) -> None:
        with suppress(OSError):  # the peer has gone, is too late, or speaks something else
            await self._house.loop.connect_accepted_socket(
                lambda: Connection(self._house, self._succeed),
                self._plain,
                ssl=self._tls,
                ssl_handshake_timeout=self._house.limits.header_s,
            )

    def _succeed(self) -> None:
        """From now on the connection itself is the guest."""
        self._done = True
        self._house.leave(self)

    def _end(self, _: object) -> None:
        self._house.leave(self)
        if not self._done:
            self._plain.close()

    def refuse(self, kind: str, reason: str) -> None:
        """There is no way to say anything yet."""
        self.drop(reason)

    def drop(self, reason: str) -> None:
        """End the connection at once."""
        self._house.refused[reason] += 1
        self._house.leave(self)
        if self._task is None:
            self._plain.close()
        else:
            self._task.cancel()

    def stop(self) -> None:
        """The server stops."""
        self.drop("stopped")

    def look(self, now: float) -> int:
        """Its deadline is kept by who shakes hands."""
        return 0


async def accept(house: House, bound: socket.socket, tls: ssl.SSLContext) -> None:
    """Take connections from a socket that listens, again and again."""
    while True:
        try:
            plain, _ = await house.loop.sock_accept(bound)
        except OSError:
            await asyncio.sleep(_PAUSE_S)
            continue
        Handshake(house, plain, tls)
        await asyncio.sleep(0)  # those who are in have their turn
