"""One ASGI application: uploads on a path of their own, everything else through the control plane."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any

from ahead_ldp.service.campaigns.closing import Closer
from ahead_ldp.service.campaigns.jobs import Jobs
from ahead_ldp.service.campaigns.logs import LOGGER, event
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.edge.house import Reply
from ahead_ldp.service.edge.requests import Request
from ahead_ldp.service.edge.server import Server
from ahead_ldp.service.server import notify, telemetry
from ahead_ldp.service.server.auth import Role, bearer
from ahead_ldp.service.server.committing import Committer
from ahead_ldp.service.server.cors import Cors, parse_origins
from ahead_ldp.service.server.headers import SECURITY_HEADERS
from ahead_ldp.service.server.ingest import Ingest, is_plain
from ahead_ldp.service.server.limits import RateLimit, Receive, Scope, Send, check_length, limited, may_be_long
from ahead_ldp.service.server.metrics import Metrics
from ahead_ldp.service.server.published import known_wave, plain_wave, send_wave, wave_lines
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.store.interface import StoreError, StoreUnavailable

_SHORT = 4096  # bytes of a body that anybody may send; a withdrawal has 77
_LONGER = 1 << 18  # of who may ask, and change nothing: a thousand queries


class Application:
    """The service as an ASGI application. ``pages``, another one, answers what is not under /v1 or /metrics."""

    def __init__(self, service: Service, control: Callable[..., Any], pages: Any = None) -> None:
        """Nothing runs before the lifespan starts."""
        self.service, self.control, self.pages = service, control, pages
        self.headers = [(k.encode(), v.encode()) for k, v in SECURITY_HEADERS.items()]
        settings, store, clock = service.settings, service.store, service.clock
        closer = Closer(
            store, service.directory.terms, clock, settings.hold_z, settings.max_cells, settings.large_counter()
        )
        told = notify.channels(
            settings, lambda name: str(service.directory.terms(name).campaign.record["title"]), clock
        )
        self.jobs = Jobs(store, closer, clock, settings.lease_s, told)
        self.telemetry = telemetry.connect(settings.telemetry, service.metrics)
        if self.telemetry is not None:
            self.jobs.around = self.telemetry.job
        self.cors = Cors(parse_origins(settings.allowed_origins))
        self.limit = RateLimit(settings.rate_per_s, settings.rate_burst, time.monotonic)
        self.ingest: Ingest | None = None
        self._background: asyncio.Task[None] | None = None
        self._stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch one request."""
        if await self.cors.preflight(scope, send):
            return
        send = self.cors.around(scope, send)
        if Ingest.takes(scope):
            await self.uploads()(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.telemetry is None:
            await self._control(scope, receive, send)
        else:
            await self.telemetry.request(self._control, scope, receive, send)

    def take(self, request: Request, reply: Reply) -> bool:
        """The short way of an upload or of a published wave that asks for nothing special.

        False: it goes the long way, to the same answer.
        """
        other_sites = bool(self.cors.plain)
        if is_plain(request, other_sites):
            return self.uploads().take(request, reply, self.cors.plain)
        wave = plain_wave(self.service.directory, request, other_sites)
        if wave is None or not self.limit.admits(request.client):
            return False
        reply(200, [*wave_lines(wave), *self.headers, *self.cors.plain], wave.body)
        return True

    def watch(self, server: Server) -> None:
        """Let the metrics say how the edge is doing."""
        self.service.metrics.before_text.append(partial(_flush_edge, self.service.metrics, server))

    def uploads(self) -> Ingest:
        """What takes uploads, on the loop that serves."""
        if self.ingest is None:
            settings, metrics = self.service.settings, self.service.metrics
            committer = Committer(self.service.store, metrics, settings.window_ms / 1000, settings.queue_reports)
            plain = [h for h in self.headers if h[0] in (b"x-content-type-options",)]
            outages = self.service.outages
            self.ingest = Ingest(self.service.directory, committer, metrics, settings, self.limit, plain, outages)
            metrics.before_text.append(self.ingest.flush_metrics)
        return self.ingest

    async def _control(self, scope: Scope, receive: Receive, send: Send) -> None:
        wave = known_wave(self.service.directory, scope)
        if wave is not None and self.limit.lets_in(scope):
            await send_wave(wave, scope, send, self.headers)
            return
        started = False

        async def guarded(message: MutableMapping[str, Any]) -> None:
            """Send with the headers of every answer."""
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = message.get("headers", [])
                said = {name for name, _ in own}  # a page may have a policy of its own
                message["headers"] = [*own, *(h for h in self.headers if h[0] not in said)]
            await send(message)

        path, largest = scope["path"], self.service.settings.max_body_bytes
        try:
            self.limit.check(scope)
            if self.pages is not None and not path.startswith("/v1/") and path != "/metrics":
                answer = self.pages  # they look who is there before they read, and read little
            else:
                answer, largest = self.control, min(largest, await self._longest(scope))
            check_length(scope, largest)
            await answer(scope, limited(receive, largest), guarded)
        except Problem as problem:
            if started:
                raise
            self.service.metrics.problems.labels(problem.kind).inc()
            headers = [(k.encode(), v.encode()) for k, v in problem.headers().items()]
            await guarded({"type": "http.response.start", "status": problem.status, "headers": headers})
            await guarded({"type": "http.response.body", "body": problem.body()})

    async def _longest(self, scope: Scope) -> int:
        """How long a body may be, by who sends it: JSON is read whole before a route looks at the token.

        Four megabytes of it are ninety in memory, or half a second in which no upload is taken.
        """
        if not may_be_long(scope, _SHORT):
            return _SHORT
        shown = next((value for name, value in scope["headers"] if name == b"authorization"), b"").decode("latin-1")
        try:
            role = await asyncio.to_thread(self.service.role, bearer(shown))
        except StoreUnavailable as error:
            self.service.outages.tell(error)
            raise Problem("unavailable") from None
        if role is None:
            raise Problem("unauthorized", f"for a body of more than {_SHORT} bytes")
        return self.service.settings.max_body_bytes if role is Role.OPERATOR else _LONGER

    # Start, background work, stop

    async def start(self) -> None:
        """Begin the background work."""
        self._stopping = False
        if self.service.settings.closer_interval_s > 0:
            self._background = asyncio.create_task(self._rounds())
        event("started", epoch=await asyncio.to_thread(self.service.store.epoch))

    async def stop(self) -> None:
        """Finish what was begun: pending commits, the running round, counters."""
        self._stopping = True
        self.service.wake.set()
        if self._background is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._background), self.service.settings.shutdown_s)
            self._background = None
        for end in self.service.at_end:
            await asyncio.to_thread(end)
        if self.ingest is not None:
            await self.ingest.committer.drain()
            self.ingest.checker.shutdown(wait=False)
            await asyncio.to_thread(self.flush_counters)
            self.service.metrics.before_text.remove(self.ingest.flush_metrics)
            self.ingest = None
        if self.telemetry is not None:
            await asyncio.to_thread(self.telemetry.stop)
        event("stopped")

    async def _rounds(self) -> None:
        while not self._stopping:
            await asyncio.to_thread(self._wait)
            if not self._stopping:
                await asyncio.to_thread(self.round)

    def _wait(self) -> None:
        self.service.wake.wait(self.service.settings.closer_interval_s)
        self.service.wake.clear()

    def round(self) -> None:
        """One round of background work; whatever fails is logged and tried again in the next."""
        try:
            self.flush_counters()
            self.jobs.run()
            self.service.metrics.mismatches.set(len(self.jobs.auditor.gone))
            self.service.metrics.rounds.inc()
        except StoreUnavailable as error:
            self.service.outages.tell(error)
        except StoreError:
            LOGGER.error("round_failed", exc_info=True)
        except Problem as problem:
            event("round_failed", logging.ERROR, reason=problem.kind)
        except Exception:
            LOGGER.exception("round_failed")

    def flush_counters(self) -> None:
        """Move the refusals counted in memory to the store."""
        if self.ingest is not None and self.ingest.refusals:
            counts = dict(self.ingest.refusals)
            self.service.store.add_counters(counts)
            self.ingest.refusals.subtract(counts)
            for key in [key for key, count in self.ingest.refusals.items() if not count]:
                del self.ingest.refusals[key]


def _flush_edge(metrics: Metrics, server: Server) -> None:
    """Move what the edge has counted to the metrics."""
    house = server.house
    if house is not None:
        metrics.connections.set(len(house.everybody))
        metrics.held_bytes.set(house.held)
        for reason, count in house.refused.items():
            metrics.edge.labels(reason).inc(count)
        house.refused.clear()
