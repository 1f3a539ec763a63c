"""A large wave is counted by a command: the same tallies, and nothing is taken that speaks of other reports."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from ahead_ldp.service.campaigns import elsewhere
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
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX"  # what it had started, too


def test_what_a_dead_process_left_goes_with_the_campaign(tmp_path):
    counter = Counter(("true",), tmp_path, 1)
    for name in ("a" * 64, "b" * 64):
        (tmp_path / f"{elsewhere._prefix(name, 1)}dead").mkdir()
        (tmp_path / f"{elsewhere._prefix(name, 2)}dead").mkdir()
    counter.forget("a" * 64, 1)
    assert len(list(tmp_path.iterdir())) == 3
    counter.forget("a" * 64)
    assert [path.name.split("-")[2] for path in tmp_path.iterdir()] == ["b" * 16] * 2
