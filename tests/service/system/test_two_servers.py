"""The same simulation over HTTP: two server processes on one PostgreSQL behind a balancer that takes them in turn."""

import asyncio
import random
import time
from random import Random

import pytest

from tests.service.system.bookkeeping import Violation
from tests.service.system.processes import Server, balance, request
from tests.service.system.simulation import SHAPES, Simulation

OPERATIONS, SOAK_OPERATIONS, PARTS = 300, 100_000, 20
MANUAL = [shape for shape in SHAPES if shape["closing"] == {"kind": "manual"}]  # nothing moves that nobody asked for


class HttpWorld:
    """Requests to a balancer, one connection each; the servers' own closers do what is asked for."""

    can_crash = False
    wait = ""

    def __init__(self, url, token):
        self.url, self.token = url, token
        self.jobs = []

    @property
    def now(self):
        return int(time.time())

    async def ask(self, method, path, **options):
        answer = await asyncio.to_thread(request, self.url, method, path, self.token, **options)
        if answer.status_code == 202:
            self.jobs.append(answer.headers["location"].removeprefix("/v1"))
        return answer

    async def round(self, times=1):
        """Wait for the jobs that were asked for."""
        deadline = time.monotonic() + 60
        while self.jobs:
            job = (await self.ask("GET", self.jobs[0])).json()
            if job["state"] in ("done", "failed"):
                self.jobs.pop(0)
            else:
                assert time.monotonic() < deadline, job
                await asyncio.sleep(0.02)

    def stands(self, book):
        return not book.live

    def disarm(self):
        """No faults are injected here."""

    def events(self):
        return None


class Together(Simulation):
    """Closings end before the next step, so that every answer of a single request is known.

    Here clocks are real: a wave that was extended by a second would close by itself while the books have it open.
    """

    extensions = (86_400,)

    async def close(self):
        await super().close()
        await self.round()

    async def burst(self, crash=False):
        await super().burst(crash)
        await self.round()


def live_over_http(url, operations, seed):
    async def live():
        servers = [Server(url)]
        try:
            servers.append(Server(url, init=False))
            balancer = await balance([server.port for server in servers])
            world = HttpWorld(f"http://127.0.0.1:{balancer.sockets[0].getsockname()[1]}", servers[0].token)
            simulation = Together(world, Random(seed), MANUAL)
            try:
                await simulation.run(operations)
            except Violation as found:
                raise Violation(f"seed {seed}", *found.args, simulation.log[-5:]) from found
            finally:
                balancer.close()
        finally:
            for server in servers:
                await asyncio.to_thread(server.stop)
        assert not [line for server in servers for line in server.log if "Traceback" in line]
        return simulation

    return asyncio.run(live())


def test_two_processes_behind_a_balancer(postgres):
    simulation = live_over_http(postgres.new_database(), OPERATIONS, 5)
    assert sum(simulation.done.values()) == OPERATIONS
    assert sum(len(book.closed) for book in simulation.books.values()) > 3


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_two_processes_behind_a_balancer_for_long(part, postgres):
    for _ in range(SOAK_OPERATIONS // PARTS // 500):
        live_over_http(postgres.new_database(), 500, random.randrange(2**32))
