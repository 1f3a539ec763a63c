"""A large wave is counted by a command: the same tallies, and nothing is taken that speaks of other reports."""

import json
import shlex
import sys
import time
from pathlib import Path

import pytest

from ahead_ldp.service.campaigns import elsewhere, handed_out
from ahead_ldp.service.campaigns.counting import count_group
from ahead_ldp.service.campaigns.elsewhere import Counter, CounterFailed
from ahead_ldp.service.store.interface import LeaseLost
from tests.service.server.harness import ages, bench

TALLY = shlex.join([sys.executable, "-m", "ahead_ldp", "tally", "--no-dedup", "--verify", "--json"])


def elsewhere_settings(folder, command):
    return {"counter": command, "counter_folder": str(folder / "elsewhere"), "counter_reports": 1}


def test_a_command_counts_what_this_process_would(tmp_path, monkeypatch):
    """The same reports, once by the command and once here; the files are gone afterwards."""
    answers, run = [], Counter._run

    def noted(counter, made, alive):
        assert (made.stat().st_mode & 0o777, len(list(made.rglob("*.parquet")))) == (0o700, 2)
        answers.append((made, run(counter, made, alive)))
        return answers[-1][1]

    monkeypatch.setattr(Counter, "_run", noted)
    with bench(tmp_path, **elsewhere_settings(tmp_path, TALLY)) as service:
        campaign = service.opened(method={"name": "hio"}, attributes=["age=integer,0,15"], minimum=5)
        service.answer(campaign, 1, ages(200))
        groups = service.store.questions(campaign, 1)
        terms, closer = service.service.directory.terms(campaign), service.app.jobs.closer
        here = closer._session(terms, 1)
        truth = [count_group(service.store, campaign, row, here.wave[row.group].oracle).frozen() for row in groups]
        assert service.close(campaign, 1)["state"] == "done"
        found = service.store.questions(campaign, 1)
    assert [(q.n, q.tally, q.reports_digest) for q in found] == [(t.n, t.tally, t.reports_digest) for t in truth]
    ((made, said),) = answers
    assert not made.exists()
    check_refusals(json.loads(said), {q.digest: q.n for q in found})


def check_refusals(said, expected):
    """Every way in which an answer can be about something else."""
    manifest = said["manifest"]

    def refused(answer):
        with pytest.raises(CounterFailed) as reason:
            elsewhere._accepted(json.dumps(answer).encode(), manifest, expected)
        return str(reason.value)

    assert set(elsewhere._accepted(json.dumps(said).encode(), manifest, expected)) >= set(expected)
    assert "other files" in refused({**said, "manifest": "0" * 64})
    assert "other files" in refused({**said, "manifest": None})
    assert "not as many" in refused({**said, "tallies": said["tallies"][1:]})
    one = said["tallies"][0]
    fewer = {**one, "n": one["n"] - 1, "counts": [min(c, one["n"] - 1) for c in one["counts"]]}
    assert "not as many" in refused({**said, "tallies": [fewer, *said["tallies"][1:]]})
    assert "not that of" in refused({**said, "tallies": [{**one, "counts": [one["n"] + 1] * 2}]})
    assert "not that of" in refused([])


@pytest.mark.parametrize(
    "command, reason",
    [("false", "ended with 1"), ("/no/such/program", "cannot be started"), ("echo", "not that of")],
)
def test_a_wave_that_was_not_counted_stays_held_and_leaves_no_file(tmp_path, command, reason):
    with bench(tmp_path, **elsewhere_settings(tmp_path, command)) as service:
        campaign = service.opened(minimum=5)
        service.answer(campaign, 1, ages(60))
        job = service.close(campaign, 1)
        assert job["state"] == "failed"
        assert reason in job["problem"]["detail"]
        assert service.wave_state(campaign, 1) == "held"
        assert not list((tmp_path / "elsewhere").iterdir())
        object.__setattr__(service.app.jobs.closer, "counter", None)  # the operator takes the setting back
        service.clock.pass_(100)
        service.app.round()
        assert service.wave_state(campaign, 1) == "closed"


def test_who_lost_its_lease_ends_its_command(tmp_path):
    def lost():
        raise LeaseLost("another process took the job over")

    started = "sleep 1000 & echo $! > child; wait"
    with pytest.raises(LeaseLost):
        Counter(("sh", "-c", f"cd {tmp_path}; {started}"), tmp_path, 1)._run(tmp_path, lost)
    child = int((tmp_path / "child").read_text())
    for _ in range(1000):  # what it had started ends, too; a signal takes a moment to arrive
        if not lives(child):
            return
        time.sleep(0.01)
    raise AssertionError("a process that the command started lives on")


def lives(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] not in "ZX"


def left_behind(service, campaign, folder):
    """What a process leaves that dies while its command counts."""
    made = handed_out.new(service.store, campaign, 1, folder)
    (made / "reports").mkdir()
    (made / "reports" / "part.parquet").write_bytes(b"payloads")
    return made


def given_up_at_once(service, campaign):
    service.call("POST", f"/campaigns/{campaign}/void")


def given_up_as_a_wave(service, campaign):
    service.close(campaign, 1, "void")


def counted_in_the_server(service, campaign):
    assert service.close(campaign, 1)["state"] == "done"


def started_again(service, campaign):
    service.app.round()


def past_its_retention(service, campaign):
    service.close(campaign, 1)
    service.call("POST", f"/campaigns/{campaign}/finish")
    service.app.jobs.cleaned_at = 2**62
    service.clock.pass_(31 * 86_400)
    service.app.round()


ENDS = [given_up_at_once, given_up_as_a_wave, counted_in_the_server, started_again, past_its_retention]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_what_a_dead_process_left_is_deleted_by_one_that_counts_by_itself(tmp_path, end):
    """The setting may have been taken away, as the documents say: the files were never found again."""
    with bench(tmp_path) as service:
        assert service.app.jobs.closer.counter is None
        campaign = service.opened(minimum=5)
        service.answer(campaign, 1, ages(60))
        if end is not started_again:
            service.app.round()  # the one that cleans up at the start
        made = left_behind(service, campaign, tmp_path / "elsewhere")
        end(service, campaign)
        assert not made.exists()


def test_files_that_somebody_counts_are_left_alone(tmp_path):
    with bench(tmp_path) as service:
        campaign = service.opened(minimum=5)
        service.answer(campaign, 1, ages(60))
        made = left_behind(service, campaign, tmp_path / "elsewhere")
        service.call("POST", f"/campaigns/{campaign}/waves/1/close")
        assert service.store.lease_job(service.clock(), 60) is not None
        service.app.round()
        assert made.exists()


def test_files_that_cannot_be_deleted_are_said_and_tried_again(tmp_path, monkeypatch, caplog):
    with bench(tmp_path) as service:
        campaign = service.opened(minimum=5, retention_days=0)
        made = left_behind(service, campaign, tmp_path / "elsewhere")
        with monkeypatch.context() as patch:
            patch.setattr(handed_out.shutil, "rmtree", lambda *_, **__: None)
            given_up_at_once(service, campaign)
            service.app.round()
            assert service.store.document(campaign, 0, "retention") is None  # not deleted, so not said to be
        assert made.exists()
        service.app.round()
        assert not made.exists()
        assert service.store.document(campaign, 0, "retention") == b"deleted"
        events = [e["event"]["event"] for e in service.call("GET", "/events").json()]
        assert events.count("campaign_void") == 1


def test_a_store_cannot_have_other_folders_deleted(tmp_path):
    """The paths stand in the store, which is less guarded than the disk of the server."""
    (tmp_path / "mine").mkdir()
    with bench(tmp_path) as service:
        campaign = service.opened()
        service.store.put_document(campaign, 0, handed_out.KIND, json.dumps([str(tmp_path / "mine")]).encode())
        assert handed_out.forget(service.store, campaign)
        assert (tmp_path / "mine").exists()


def test_a_folder_that_is_made_while_others_are_forgotten_stays_written_down(tmp_path, monkeypatch):
    """The list was read, another server added a folder, and the old list was written: nobody would have deleted it."""
    with bench(tmp_path) as service:
        campaign, read = service.opened(), service.store.document
        first = left_behind(service, campaign, tmp_path / "elsewhere")
        made = []

        def between(*given):
            found = read(*given)
            if not made and not first.exists():  # it is deleted, and about to be struck out
                made.append(None)
                made[0] = left_behind(service, campaign, tmp_path / "elsewhere")
            return found

        monkeypatch.setattr(service.store, "document", between)
        assert handed_out.forget(service.store, campaign)
        assert made[0].exists()
        assert handed_out.forget(service.store, campaign)
        assert not made[0].exists()


def test_a_folder_on_another_machine_stays_written_down(tmp_path):
    with bench(tmp_path) as service:
        campaign = service.opened()
        made = handed_out.new(service.store, campaign, 1, tmp_path / "elsewhere")
        made.rename(tmp_path / "not here")
        assert handed_out.forget(service.store, campaign)
        (tmp_path / "not here").rename(made)
        assert handed_out.forget(service.store, campaign)
        assert not made.exists()
