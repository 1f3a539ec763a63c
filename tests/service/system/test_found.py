"""What these proofs and the reading for them found, each as the shortest case that shows it."""

import hashlib
import json
from types import SimpleNamespace

import pytest

from ahead_ldp.service.campaigns.chain import chain
from ahead_ldp.service.campaigns.closing import Closer
from ahead_ldp.service.campaigns.directory import Directory
from ahead_ldp.service.campaigns.lifecycle import Intent
from ahead_ldp.service.store import StateChanged, WaveState
from ahead_ldp.service.store.rows import QuestionRow, QuestionState, WaveRow
from tests.service.server.harness import batch, bench, reports
from tests.service.system.bookkeeping import IN, Book, Sent, naive_counts


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

        slow = Slow(service.store, Directory(service.store).terms, service.clock, 6.0, 1 << 16)
        try:
            slow.close(campaign, 1)
        except StateChanged:
            service.app.round()  # somebody else finishes
        if service.wave_state(campaign, 1) != "closed":
            service.close(campaign, 1)
        chain = service.call("GET", f"/campaigns/{campaign}/chain", "public").json()
        found = chain["waves"][0]["groups"][0]["tally"]
        frames = [r.report_id + r.payload for r in made]
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
        seen, jobs, stop = [], service.app.jobs, Closer._stop

        class Watching(Closer):
            def _stop(self, *args):
                stop(self, *args)
                seen.append(service.service.wave(campaign, 1))

        jobs.closer = Watching(service.store, Directory(service.store).terms, service.clock, 6.0, 1 << 16)
        assert service.close(campaign, 1)["state"] == "failed"
        (held,) = seen
        assert held.state is WaveState.HELD
        assert service.wave_state(campaign, 1) == "open"
        service.upload(campaign, batch(question, reports(question, 4, seed=2)))
        jobs._look_at_wave(campaign, held)  # what the other process read
        jobs._schedule(campaign, 1, service.clock(), "resume/0", Intent.RESUME)  # or it had just decided
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
        service.app.jobs._work(slow)
        assert service.wave_state(campaign, 1) == "open"
        events = [json.loads(event.body)["event"] for event in service.store.events()]
        assert "wave_closed" not in events


def test_a_closer_that_falls_asleep_before_it_stops_the_wave_does_not_stop_it_again(tmp_path):
    """Found by reading: it asked for its lease in one step and stopped the wave in the next, and slept in between."""
    with bench(tmp_path) as service:
        campaign = service.opened(minimum=5)
        question = next(iter(service.questions(campaign, 1).values()))
        assert service.call("POST", f"/campaigns/{campaign}/waves/1/close").status_code == 202
        slow = service.store.lease_job(service.clock(), 1)

        class Asleep(Closer):
            def _stop(self, *args):
                service.store.renew_job(slow.number, slow.lease, service.clock() + 1)  # all is well
                service.clock.pass_(2)
                service.app.round()  # another takes the job over, and a group is short
                service.upload(campaign, batch(question, reports(question, 8)))
                super()._stop(*args)

        jobs = service.app.jobs
        closer = Asleep(service.store, Directory(service.store).terms, service.clock, 6.0, 1 << 16)
        type(jobs)(service.store, closer, service.clock, 1)._work(slow)
        assert service.wave_state(campaign, 1) == "open"
        events = [json.loads(event.body)["event"] for event in service.store.events()]
        assert "wave_closed" not in events


def test_a_closer_that_slept_gives_up_no_group_of_a_wave_that_was_open_since(tmp_path):
    """Found by reading. It found a group short; the wave was opened again, the group filled up, and it woke."""
    with bench(tmp_path) as service:
        campaign = service.opened(minimum=5)
        question = next(iter(service.questions(campaign, 1).values()))
        store = service.store

        class Asleep(Closer):
            def _void(self, *args, **options):
                void_group = store.void_group

                def late(*names, **given):
                    store.set_wave_state(campaign, 1, WaveState.HELD, WaveState.OPEN, 1)
                    service.upload(campaign, batch(question, reports(question, 8)))
                    store.set_wave_state(campaign, 1, WaveState.OPEN, WaveState.HELD, 1, "counting again")
                    void_group(*names, **given)

                store.void_group = late
                try:
                    super()._void(*args, **options)
                finally:
                    del store.void_group

        closer = Asleep(store, Directory(store).terms, service.clock, 6.0, 1 << 16)
        with pytest.raises(StateChanged):
            closer.close(campaign, 1, Intent.FINISH)
        assert store.counts(campaign, 1)[question.group] == 8
        service.app.round()  # whoever held it last is gone: somebody else goes on
        assert service.wave_state(campaign, 1) == "closed"


def test_a_counted_report_is_not_called_withdrawn_once_it_is_erased(tmp_path):
    """Found by a life: the campaign ended and its reports were past their retention before a withdrawal was read.

    The answer was "withdrawn", which the report was not: it had been counted, and only its bytes were gone.
    """
    with bench(tmp_path) as service:
        campaign = service.opened(minimum=5, retention_days=0, method={"name": "hio"})
        nonce = bytes(32)
        for k, question in enumerate(service.questions(campaign, 1).values()):
            made = reports(question, 6, seed=k)
            if not k:
                made[0] = type(made[0])(hashlib.sha256(nonce).digest()[:16], made[0].payload)
            service.upload(campaign, batch(question, made))
        service.close(campaign, 1)
        service.app.round()
        events = [json.loads(event.body)["event"] for event in service.store.events()]
        assert events[-2:] == ["wave_closed", "reports_deleted"]
        answer = service.call("POST", f"/campaigns/{campaign}/withdrawals", "public", json={"nonce": nonce.hex()})
        assert answer.status_code == 409


def test_a_wave_has_its_time_by_the_clock_that_opened_it(tmp_path):
    """Found by a life, and the fault of the books: a clock went back, and they took the latest time for the opening's.

    The server had given up a short group at its second deadline, which was before theirs.
    """
    with bench(tmp_path) as service:
        service.clock.pass_(-300)
        method = {"name": "hio", "choices": {"oracle": "oue"}}
        campaign = service.opened(minimum=5, closing={"kind": "deadline", "seconds": 600}, method=method)
        book = Book(campaign, 5, 600, 30)

        def look():
            book.observe(service.call("GET", f"/campaigns/{campaign}/chain", "public").json(), service.clock())

        look()
        full, *_ = service.questions(campaign, 1).values()
        made = reports(full, 8)
        service.upload(campaign, batch(full, made))
        for r in made:
            sent = Sent(b"", r.report_id + r.payload, 1, full.group, IN)
            book.reports[sent.id] = sent
        for seconds, state in ((600, "open"), (599, "open"), (1, "closed")):  # extended once
            service.clock.pass_(seconds)
            service.app.round()
            assert service.wave_state(campaign, 1) == state
        look()
        assert "void" in book.groups.values()
        book.recount(service.clock())


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

    tallies = iter([None, b"{}"])

    def questions(_campaign):
        return [QuestionRow(1, "1", "q", b"{}", QuestionState.OPEN, None, next(tallies), None)]

    service = SimpleNamespace(
        row=lambda _: SimpleNamespace(record=b"{}", state=SimpleNamespace(value="open"), epoch=1),
        store=SimpleNamespace(waves=waves, questions=questions),
    )
    found = json.loads(chain(service, "c"))
    assert [wave["state"] for wave in found["waves"]] == ["closed"]
    assert found["waves"][0]["groups"][0]["tally"] == {}
    assert found["frozen"] != "0" * 64
