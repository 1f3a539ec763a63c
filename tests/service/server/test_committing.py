"""Group commit: uploads that wait together are one transaction, the queue is bounded, a stop loses nothing."""

import asyncio
import os
import threading

import pytest

from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.server.committing import Committer, Part, write, write_joined
from ahead_ldp.service.server.metrics import Metrics
from ahead_ldp.service.store import KeyMissing, StoreUnavailable

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


def part(n, group="1", insert=True):
    return Part(("c", 1, group, insert), os.urandom(16 * n), bytes(n) if insert else b"")


def run(work, most=1000):
    async def main():
        store = SlowStore()
        return await asyncio.wait_for(work(store, Committer(store, Metrics(), 0.001, most)), WAIT_S)

    return asyncio.run(main())


def test_uploads_that_wait_together_are_one_commit():
    async def work(store, committer):
        first = committer.submit([part(2)], 2)
        await asyncio.sleep(0.05)  # the window is over, the commit runs
        later = [committer.submit([part(3), part(1)], 4), committer.submit([part(5)], 5)]
        store.gate.set()
        found = await asyncio.gather(first, *later)
        await committer.drain()
        return store.calls, [[len(x) for x in some] for some in found]

    calls, found = run(work)
    assert calls == [[2], [9]]
    assert found == [[2], [3, 1], [5]]


def test_a_campaign_whose_key_is_missing_stops_no_other():
    class Locked(SlowStore):
        def add_reports(self, batches):
            if any(b.campaign == "lost" for b in batches):
                raise KeyMissing("lost")
            return super().add_reports(batches)

    store = Locked()
    store.gate.set()
    lost = [Part(("lost", 1, "1", True), os.urandom(16), b"x")]
    first, second, third = write(store, [[part(2)], lost, [part(3), part(1)]])
    assert (first, third) == ([bytes(2)], [bytes(3), bytes(1)])
    assert isinstance(second, KeyMissing)
    assert store.calls == [[6]]


def test_what_goes_to_one_question_is_one_batch_and_everybody_gets_their_own_outcomes():
    """Ids are their own outcomes here, so that an exchange would be seen."""

    class Telling:
        def add_reports(self, batches):
            self.calls = [(b.group, b.insert, b.n) for b in batches]
            assert all(len(b.ids) == 16 * b.n and len(b.payloads) == b.n * b.insert for b in batches)
            return [b.ids[::16] for b in batches]

    def told(outcomes, group, insert=True):
        ids = b"".join(bytes([outcome]) * 16 for outcome in outcomes)
        n = len(outcomes)
        return Part(("c", 1, group, insert), ids, bytes(n) if insert else b"")

    store = Telling()
    uploads = [
        [told([1, 2], "1")],
        [told([3], "2"), told([4, 5], "1", False)],
        [told([6], "1"), told([7], "1", False)],
        [told([8, 9, 10], "2")],
    ]
    found = write_joined(store, uploads)
    assert store.calls == [("1", True, 3), ("2", True, 4), ("1", False, 3)]
    assert found == [[b"\1\2"], [b"\3", b"\4\5"], [b"\6", b"\7"], [b"\x08\x09\x0a"]]


def test_one_who_cannot_be_told_does_not_keep_the_others_from_it(caplog):
    async def work(store, committer):
        store.gate.set()
        told = []
        committer.take([part(1)], 1, lambda found: 1 / 0)
        committer.take([part(2)], 2, told.append)
        await committer.drain()
        return told

    assert run(work) == [[bytes(2)]]


def test_a_full_queue_refuses_and_recovers():
    async def work(store, committer):
        kept = [committer.submit([part(60)], 60)]
        with pytest.raises(Problem, match="busy"):
            committer.submit([part(60)], 60)
        store.gate.set()
        await asyncio.gather(*kept)
        await committer.submit([part(60)], 60)
        await committer.drain()
        return store.calls

    assert run(work, most=100) == [[60], [60]]


def test_an_error_reaches_everybody_in_the_commit_and_nobody_else():
    async def work(store, committer):
        store.gate.set()
        bad = [committer.submit([part(1, "bad")], 1), committer.submit([part(1)], 1)]
        found = await asyncio.gather(*bad, return_exceptions=True)
        good = await committer.submit([part(1)], 1)
        await committer.drain()
        return [type(x) for x in found], good

    found, good = run(work)
    assert found == [StoreUnavailable, StoreUnavailable]
    assert good == [b"\0"]


def test_whoever_hangs_up_is_not_waited_for():
    async def work(store, committer):
        gone, stays = committer.submit([part(1)], 1), committer.submit([part(2)], 2)
        gone.cancel()
        store.gate.set()
        await stays
        await committer.drain()
        return store.calls

    assert run(work) == [[3]]


def test_a_stop_waits_for_everything():
    async def work(store, committer):
        some = [committer.submit([part(i)], i) for i in range(1, 5)]
        asyncio.get_running_loop().call_later(0.05, store.gate.set)
        await committer.drain()
        return sum(map(sum, store.calls)), all(f.done() for f in some)

    assert run(work) == (10, True)
