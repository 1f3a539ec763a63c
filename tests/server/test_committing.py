"""Group commit: uploads that wait together are one transaction, the queue is bounded, a stop loses nothing."""

import asyncio
import os
import threading

import pytest

from ahead_ldp.server.committing import Committer
from ahead_ldp.server.metrics import Metrics
from ahead_ldp.server.problems import Problem
from ahead_ldp.server.store import Batch, StoreUnavailable

WAIT_S = 30


class SlowStore:
    """A store whose commits wait until the test lets them."""

    def __init__(self):
        self.calls, self.gate = [], threading.Event()

    def add_reports(self, batches):
        assert self.gate.wait(WAIT_S)
        self.calls.append([b.n for b in batches])
        if any(b.group == "bad" for b in batches):
            raise StoreUnavailable("no")
        return [bytes(b.n) for b in batches]


def batch(n, group="1"):
    return Batch("c", 1, group, os.urandom(16 * n), os.urandom(32 * n), bytes(n))


def run(work, most=1000):
    async def main():
        store = SlowStore()
        return await asyncio.wait_for(work(store, Committer(store, Metrics(), 0.001, most)), WAIT_S)

    return asyncio.run(main())


def test_uploads_that_wait_together_are_one_commit():
    async def work(store, committer):
        first = committer.submit([batch(2)], 2)
        await asyncio.sleep(0.05)  # the window is over, the commit runs
        later = [committer.submit([batch(3), batch(1)], 4), committer.submit([batch(5)], 5)]
        store.gate.set()
        found = await asyncio.gather(first, *later)
        await committer.drain()
        return store.calls, [[len(x) for x in some] for some in found]

    calls, found = run(work)
    assert calls == [[2], [3, 1, 5]]
    assert found == [[2], [3, 1], [5]]


def test_a_full_queue_refuses_and_recovers():
    async def work(store, committer):
        kept = [committer.submit([batch(60)], 60)]
        with pytest.raises(Problem, match="busy"):
            committer.submit([batch(60)], 60)
        store.gate.set()
        await asyncio.gather(*kept)
        await committer.submit([batch(60)], 60)
        await committer.drain()
        return store.calls

    assert run(work, most=100) == [[60], [60]]


def test_an_error_reaches_everybody_in_the_commit_and_nobody_else():
    async def work(store, committer):
        store.gate.set()
        bad = [committer.submit([batch(1, "bad")], 1), committer.submit([batch(1)], 1)]
        found = await asyncio.gather(*bad, return_exceptions=True)
        good = await committer.submit([batch(1)], 1)
        await committer.drain()
        return [type(x) for x in found], good

    found, good = run(work)
    assert found == [StoreUnavailable, StoreUnavailable]
    assert good == [b"\0"]


def test_whoever_hangs_up_is_not_waited_for():
    async def work(store, committer):
        gone, stays = committer.submit([batch(1)], 1), committer.submit([batch(2)], 2)
        gone.cancel()
        store.gate.set()
        await stays
        await committer.drain()
        return store.calls

    assert run(work) == [[1, 2]]


def test_a_stop_waits_for_everything():
    async def work(store, committer):
        some = [committer.submit([batch(i)], i) for i in range(1, 5)]
        asyncio.get_running_loop().call_later(0.05, store.gate.set)
        await committer.drain()
        return sum(map(sum, store.calls)), all(f.done() for f in some)

    assert run(work) == (10, True)
