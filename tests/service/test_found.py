"""What these proofs and the reading for them found, each as the shortest case that shows it."""

import hashlib
import json
from types import SimpleNamespace

from ahead_ldp.server.chain import chain
from ahead_ldp.server.closing import Closer
from ahead_ldp.server.directory import Directory
from ahead_ldp.server.store import StateChanged, WaveState
from ahead_ldp.server.store.rows import WaveRow
from tests.server.harness import batch, bench, reports
from tests.service.bookkeeping import Sent, naive_counts


def test_a_wave_that_was_open_again_while_it_was_counted_is_counted_anew(tmp_path):
    """A closer counts; another reopens the wave; one report goes, one comes, and the wave is held again: same n."""
    with bench(tmp_path) as service:
        campaign = service.opened(minimum=5)
        question = next(iter(service.questions(campaign, 1).values()))
        made = reports(question, 10, seed=1)
        nonce = bytes(32)
        mine = type(made[0])(hashlib.sha256(nonce).digest()[:16], b"\x03")
        service.upload(campaign, batch(question, [*made, mine]))

        def meanwhile():
            """Between the count and the freeze."""
            service.store.set_wave_state(campaign, 1, WaveState.HELD, WaveState.OPEN, 1)
            service.call("POST", f"/campaigns/{campaign}/withdrawals", "public", json={"nonce": nonce.hex()})
            late = type(mine)(b"l" * 16, b"\x00")
            assert service.upload(campaign, batch(question, [late])).json()["accepted"] == 1
            service.store.set_wave_state(campaign, 1, WaveState.OPEN, WaveState.HELD, 1, "counting again")
            made.append(late)

        class Slow(Closer):
            def _screened(self, *args):
                meanwhile()
                return super()._screened(*args)

        slow = Slow(service.store, Directory(service.store), service.clock, 6.0, 1 << 16)
        try:
            slow.close(campaign, 1)
        except StateChanged:
            service.app.round()  # somebody else finishes
        if service.wave_state(campaign, 1) != "closed":
            service.close(campaign, 1)
        chain = service.call("GET", f"/campaigns/{campaign}/chain", "public").json()
        found = chain["waves"][0]["groups"][0]["tally"]
        frames = [Sent(b"", r.report_id + r.payload, 1, "") for r in made]
        assert found["counts"] == naive_counts(frames, len(found["counts"]))


def test_nobody_goes_on_with_a_closing_that_was_given_up(tmp_path):
    """Found by reading. The operator asks to close, a group is short, the wave is opened again.

    Another process saw it held for that moment and, with no job left that held it, took the closer for dead: it
    stopped the wave once more. Had the group been full by then, the wave would have been closed, and nobody had asked.
    """
    with bench(tmp_path) as service:
        campaign = service.opened(minimum=5)
        question = next(iter(service.questions(campaign, 1).values()))
        service.upload(campaign, batch(question, reports(question, 4)))
        seen, jobs, stop = [], service.service.jobs, Closer._stop

        class Watching(Closer):
            def _stop(self, *args):
                stop(self, *args)
                seen.append(self._wave(campaign, 1))

        jobs.closer = Watching(service.store, Directory(service.store), service.clock, 6.0, 1 << 16)
        assert service.close(campaign, 1)["state"] == "failed"
        (held,) = seen
        assert held.state is WaveState.HELD
        assert service.wave_state(campaign, 1) == "open"
        service.upload(campaign, batch(question, reports(question, 4, seed=2)))
        jobs._look_at_wave(campaign, held)  # what the other process read
        jobs._schedule(campaign, 1, service.clock(), "resume/0", resume=True)  # or it had just decided
        jobs.run()
        assert len(seen) == 1
        assert service.wave_state(campaign, 1) == "open"
        service.store.set_wave_state(campaign, 1, WaveState.OPEN, WaveState.HELD, 1, "counting by one who died")
        jobs.run()
        assert service.wave_state(campaign, 1) == "closed"


def test_a_closer_that_was_asleep_does_not_stop_the_wave_again(tmp_path):
    """The same from the other side: its lease ran out before it began, and another did the job meanwhile."""
    with bench(tmp_path) as service:
        campaign = service.opened(minimum=5)
        asked = service.call("POST", f"/campaigns/{campaign}/waves/1/close")
        assert asked.status_code == 202
        slow = service.store.lease_job(service.clock(), 1)
        service.clock.pass_(2)
        service.app.round()  # another takes it over, and a group is short
        question = next(iter(service.questions(campaign, 1).values()))
        service.upload(campaign, batch(question, reports(question, 8)))
        service.service.jobs._work(slow)
        assert service.wave_state(campaign, 1) == "open"
        events = [json.loads(event.body)["event"] for event in service.store.events()]
        assert "wave_closed" not in events


def test_every_problem_of_the_tallies_is_described(tmp_path):
    """Found by the fuzzer: before the first wave was closed the route answered 409, which its description left out."""
    with bench(tmp_path) as service:
        campaign = service.opened()
        answer = service.call("GET", f"/campaigns/{campaign}/tallies", "analyst")
        document = service.client.get("/v1/openapi.json").json()
        assert str(answer.status_code) in document["paths"]["/v1/campaigns/{campaign}/tallies"]["get"]["responses"]


def test_a_chain_is_read_again_when_a_wave_closes_while_it_is_read():
    """The wave showed up as closed without its tallies, or the chain ended elsewhere than its waves."""
    seen = iter(["open", "closed", "closed", "closed"])

    def waves(_campaign):
        return [WaveRow("c", 1, WaveState(next(seen)), "", 0, None, None, 0)]

    sessions = iter(["before", "after"])
    service = SimpleNamespace(
        row=lambda _: SimpleNamespace(record=b"{}", state=SimpleNamespace(value="open"), epoch=1),
        store=SimpleNamespace(waves=waves, questions=lambda _: []),
        directory=SimpleNamespace(session=lambda _: SimpleNamespace(frozen=next(sessions))),
    )
    found = chain(service, "c")
    assert [wave["state"] for wave in found["waves"]] == ["closed"]
    assert found["frozen"] == "after"
