"""A program that no longer asks what a campaign asked: it says so, and takes, counts and publishes all the same."""

import hashlib
import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from ahead_ldp.device.campaign import wave_record
from ahead_ldp.device.canonical import canonical_bytes, parse_canonical
from ahead_ldp.engines.archive import estimate_from_record
from ahead_ldp.mechanisms import EARLIER, MECHANISMS
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.oracles import make_oracle
from ahead_ldp.protocol.mechanism import Question
from ahead_ldp.service.campaigns import campaign as campaigns
from ahead_ldp.service.campaigns import directory
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in
from ahead_ldp.service.store import WaveState
from tests.service.server.harness import ages, bench, bench_over, problem

PUBLIC = ["", "/state", "/chain", "/waves/1", "/waves/2"]
ANALYST = ["/results", "/tallies", "/progress", "/screens"]


def other_questions(self, schema):
    """A method that asks by another oracle than it did."""
    run = ORIGINAL(self, schema)
    wave = next(run)
    yield {g: Question(q.attributes, q.partition, make_oracle("grr", "1", q.oracle.d)) for g, q in wave.items()}


def failing(self, schema):
    """A method that does not get through what it once asked."""
    raise IndexError("list index out of range")
    yield


ORIGINAL = AHEAD.run
UPGRADES = {"unknown version": ("version", 2), "other questions": ("run", other_questions), "failing": ("run", failing)}


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        yield made


@pytest.fixture(params=UPGRADES.values(), ids=UPGRADES)
def upgrade(request, monkeypatch):
    """What makes this program one that lost the meaning of the method."""
    return lambda: monkeypatch.setattr(AHEAD, *request.param)


@pytest.fixture
def lose(monkeypatch):
    """The same in one way, for what does not depend on which."""
    return lambda: monkeypatch.setattr(AHEAD, "version", 2)


def in_the_middle(service, **changes):
    """A campaign with one wave closed, and a second with reports in it."""
    campaign = service.opened(**changes)
    service.run(campaign, ages(60), waves=1)
    service.answer(campaign, 2, ages(50))
    return campaign


@contextmanager
def restarted(service, **settings):
    """Another process over the same store."""
    number = len(service.store.role_tokens())
    with bench_over(service.store, service.clock, (f"op{number}", f"an{number}"), **settings) as made:
        made.app.pages = make_pages(made.service)
        yield made


def get(service, campaign, path):
    return service.call("GET", f"/campaigns/{campaign}{path}", "analyst")


def people(service, campaign):
    return get(service, campaign, "/results").json()["people"]


# Finding 4 of the security review.


def test_finding_4_nothing_that_is_public_needs_the_method(service, upgrade):
    """/state, /chain, /results and /tallies answered 503 after such an upgrade."""
    campaign = in_the_middle(service)
    before = {path: get(service, campaign, path).content for path in PUBLIC}
    upgrade()
    with restarted(service) as new:
        assert {path: get(new, campaign, path).content for path in PUBLIC} == before
        for path in ANALYST:
            assert get(new, campaign, path).status_code == 200, path
        assert new.answer(campaign, 2, ages(20, seed=7)) == 20


def test_finding_4_a_campaign_whose_method_is_gone_finishes_on_what_was_counted(service, upgrade):
    """`finish` left the wave held, and only `void` worked, which deletes everything."""
    campaign = in_the_middle(service)
    upgrade()
    with restarted(service) as new:
        new.answer(campaign, 2, ages(20, seed=7))
        job = new.call("POST", f"/campaigns/{campaign}/finish")
        new.app.round()
        done = new.call("GET", job.headers["location"].removeprefix("/v1")).json()
        assert done["result"] == {"wave_state": "closed", "campaign_state": "finished", "void": []}
        results = get(new, campaign, "/results").json()
        assert (results["state"], results["method"], results["people"]) == ("finished", "ahead", 60 + 50 + 20)
        assert not results["complete"]
        assert "stored questions alone" in results["notes"][0]
        asked = {"queries": ["age in 3..7"], "quantiles": [{"attribute": "age"}], "means": ["age"]}
        answer = new.call("POST", f"/campaigns/{campaign}/queries", "analyst", json=asked).json()
        truth = float(np.mean([3 <= person["age"] <= 7 for person in ages(60)]))
        assert answer["queries"][0]["low"] <= truth <= answer["queries"][0]["high"]
        record = parse_canonical(get(new, campaign, "/tallies").content)
        assert estimate_from_record(record).provenance.people == 130
        assert record["frozen"] == new.state(campaign)["frozen"]


def test_a_wave_that_closes_is_counted_and_the_next_waits_for_an_operator(service, upgrade, monkeypatch):
    campaign = in_the_middle(service)
    upgrade()
    with restarted(service) as new:
        assert new.close(campaign, 2)["result"]["campaign_state"] == "review"
        assert people(new, campaign) == 110
        refused = new.call("POST", f"/campaigns/{campaign}/approve")
        assert problem(refused) == "replay_mismatch"
        assert refused.status_code == 409
        assert "finish the campaign here, on what was counted" in refused.json()["detail"]
        finished = new.call("POST", f"/campaigns/{campaign}/finish")
        assert finished.json()["result"] == {"campaign_state": "finished"}
        assert people(new, campaign) == 110


def test_the_program_that_has_the_method_goes_on_with_the_same_questions(service, upgrade, monkeypatch):
    """A way out that loses nothing: the next questions are those that would have been asked without the interlude."""
    campaign = in_the_middle(service)
    upgrade()
    with restarted(service) as new:
        new.close(campaign, 2)
    monkeypatch.undo()
    with restarted(service) as old:
        assert old.call("POST", f"/campaigns/{campaign}/approve").status_code == 200
        session = old.service.directory.session(campaign)
        assert (session.number, session.mechanism.computes) == (3, True)
        while old.state(campaign)["state"] == "open":
            number = old.state(campaign)["wave"]
            old.answer(campaign, number, ages(60, seed=number))
            assert old.close(campaign, number)["state"] == "done"
        results = get(old, campaign, "/results").json()
        assert (results["complete"], results["people"]) == (True, 110 + 60 * (len(old.state(campaign)["waves"]) - 2))


def test_a_deadline_closes_a_wave_without_its_method(service, lose):
    campaign = service.opened(closing={"kind": "deadline", "seconds": 600})
    service.answer(campaign, 1, ages(50))
    lose()
    with restarted(service) as new:
        new.clock.pass_(700)
        new.app.round()
        assert new.state(campaign)["state"] == "review"
        assert new.wave_state(campaign, 1) == "closed"
        assert people(new, campaign) == 50


def test_a_wave_that_an_earlier_program_left_held_is_counted(service, lose):
    """The program before stopped a wave, found that it asks something else, and left it so."""
    campaign = in_the_middle(service)
    service.store.set_wave_state(campaign, 2, WaveState.OPEN, WaveState.HELD, service.clock(), "finishing abc")
    lose()
    with restarted(service) as new:
        new.app.round()
        assert new.state(campaign)["state"] == "finished"
        assert people(new, campaign) == 110


def test_a_draft_whose_method_is_gone_is_not_opened(service, lose):
    campaign = service.create()
    lose()
    with restarted(service) as new:
        refused = new.call("POST", f"/campaigns/{campaign}/open")
        assert problem(refused) == "replay_mismatch"
        assert "create the campaign anew" in refused.json()["detail"]
        assert get(new, campaign, "").status_code == 200
        assert new.call("POST", f"/campaigns/{campaign}/void").status_code == 200


def test_a_stored_question_that_was_changed_is_an_alarm_too(service, monkeypatch):
    """Stored bytes are the truth: what does not follow from the tallies is shown, counted, and never replaced."""
    campaign = in_the_middle(service)
    rows = type(service.store).questions

    def tampered(self, *arguments):
        found = rows(self, *arguments)
        for i, row in enumerate(found):
            if row.wave == 2:
                record = parse_canonical(row.record) | {"tallies": "0" * 64}
                found[i] = replace(row, record=canonical_bytes(record))
        return found

    monkeypatch.setattr(type(service.store), "questions", tampered)
    with restarted(service) as new:
        new.app.round()
        assert "not the stored ones" in get(new, campaign, "/progress").json()["notice"]
        assert new.close(campaign, 2)["result"]["campaign_state"] == "review"
        assert people(new, campaign) == 110


def test_devices_never_wait_for_a_method(service, monkeypatch):
    """What a device needs is read in a fresh process without a method being looked for, let alone run."""
    campaign, looked_for = in_the_middle(service), []
    monkeypatch.setattr(campaigns, "mechanism_from_record", looked_for.append)
    with restarted(service) as new:
        for path in PUBLIC:
            assert new.call("GET", f"/campaigns/{campaign}{path}", "public").status_code == 200
        assert new.answer(campaign, 2, ages(20, seed=7)) == 20
        assert looked_for == []


# Versions beside each other.


def newer(**numbers):
    """The same method one version further, with other questions if that is the version."""
    run = other_questions if "version" in numbers else ORIGINAL
    return type("AHEAD", (AHEAD,), {"run": run, "__slots__": (), "__module__": __name__, **numbers})


def test_a_campaign_goes_on_by_the_version_that_it_names(service, monkeypatch):
    """Beside it new campaigns get the new version; neither knows of the other."""
    campaign = in_the_middle(service)
    monkeypatch.setitem(MECHANISMS, "ahead", newer(version=2))
    monkeypatch.setitem(EARLIER, "ahead/1/1", AHEAD)
    with restarted(service) as new:
        while new.state(campaign)["state"] == "open":
            number = new.state(campaign)["wave"]
            new.answer(campaign, number, ages(60, seed=number))
            new.close(campaign, number)
        results = get(new, campaign, "/results").json()
        assert (results["state"], results["complete"]) == ("finished", True)
        other = new.opened(title="new")
        assert parse_canonical(get(new, other, "").content)["method"]["version"] == 2
        asked = {name: parse_canonical(new.store.questions(name, 1)[0].record)["oracle"] for name in (campaign, other)}
        assert asked[campaign] != asked[other]
        for _ in range(3):
            new.app.round()
        assert alarms(new) == []


def test_a_campaign_is_read_by_the_version_of_the_estimate_that_it_names(service, monkeypatch):
    campaign = service.opened()
    service.run(campaign, ages(60))
    before = get(service, campaign, "/results").json()["attributes"]
    second = newer(estimate_version=2)
    monkeypatch.setitem(MECHANISMS, "ahead", second)
    monkeypatch.setitem(EARLIER, "ahead/1/1", AHEAD)
    with restarted(service) as new:
        assert get(new, campaign, "/results").json()["attributes"] == before
        assert type(new.service.directory.terms(campaign).mechanism) is AHEAD
        record = parse_canonical(get(new, campaign, "/tallies").content)
        assert type(estimate_from_record(record, "newest").provenance.mechanism) is second
        other = new.opened(title="new")
        assert parse_canonical(get(new, other, "").content)["method"]["estimate_version"] == 2
        assert type(new.service.directory.terms(other).mechanism) is second
        new.run(other, ages(60))
        assert new.state(other)["state"] == "finished"


# The auditor.


def alarms(service):
    events = [e["event"] for e in service.call("GET", "/events").json()]
    return [(e["event"], e["campaign"]) for e in events if e["event"].startswith("replay")]


def test_an_upgrade_that_loses_a_method_raises_an_alarm_once(service, upgrade, monkeypatch):
    campaign = in_the_middle(service)
    service.app.round()
    assert alarms(service) == []
    upgrade()
    for _ in range(2):  # two processes of the same program
        with restarted(service) as new:
            for _ in range(3):
                new.app.round()
            assert alarms(new) == [("replay_mismatch", campaign)]
            assert "ahead_replay_mismatches 1.0" in new.service.metrics.text().decode()
            notice = get(new, campaign, "/progress").json()["notice"]
            assert "Reports are taken and counted all the same" in notice
            assert "finish the campaign here, on what was counted" in notice
            cookie = {"cookie": f"{COOKIE}={sign_in(new.service, new.operator)}"}
            assert "finish the campaign here, on what" in new.client.get(f"/campaigns/{campaign}", headers=cookie).text
            assert "needs a decision" in new.client.get("/", headers=cookie).text
            page = new.client.get(f"/campaigns/{campaign}/results", headers=cookie).text
            assert "Read from the stored questions alone" in page
    monkeypatch.undo()
    with restarted(service) as old:
        old.app.round()
        assert alarms(old) == [("replay_mismatch", campaign), ("replay_matched", campaign)]
        assert "ahead_replay_mismatches 0.0" in old.service.metrics.text().decode()
        assert "notice" not in get(old, campaign, "/progress").json()


def test_an_ended_campaign_is_audited_once_and_says_how_it_is_read(service, lose):
    campaign = service.opened()
    service.run(campaign, ages(60))
    lose()
    with restarted(service) as new:
        for _ in range(3):
            new.app.round()
        assert alarms(new) == [("replay_mismatch", campaign)]
        assert "Results are read from the stored questions alone" in get(new, campaign, "/progress").json()["notice"]
        assert people(new, campaign) == 60 * len(new.state(campaign)["waves"])


def test_the_auditor_looks_at_one_campaign_a_round_those_that_go_on_first(service):
    ended = service.opened(title="ended")
    service.run(ended, ages(60))
    going = service.opened(title="going on")
    service.create(title="a draft")
    service.app.jobs.auditor.seen.clear()
    assert [service.app.jobs.auditor.step() for _ in range(3)] == [going, ended, None]
    service.answer(going, 1, ages(60))
    service.close(going, 1)  # a round: the closed wave was looked at in it
    assert service.app.jobs.auditor.step() is None


# Finding 6 of the security review: a published wave is bytes.


def test_finding_6_a_published_wave_is_served_from_memory(service, monkeypatch):
    """It was parsed and serialised anew for every device: 371 ms at 65,536 cells."""
    campaign = in_the_middle(service)
    first = get(service, campaign, "/waves/2")

    def asked(*arguments):
        raise AssertionError("the store was asked for a wave that is in memory")

    for name in ("questions", "waves", "campaign"):
        monkeypatch.setattr(type(service.store), name, asked)
    again = [service.call("GET", f"/campaigns/{campaign}/waves/2", "public") for _ in range(3)]
    assert {answer.content for answer in again} == {first.content}
    assert {answer.status_code for answer in again} == {200}
    assert {answer.headers["content-length"] for answer in again} == {str(len(first.content))}
    assert {name for name in again[0].headers} == {name for name in first.headers}


def test_finding_6_a_device_that_has_the_wave_is_told_so(service):
    campaign = in_the_middle(service)
    wave = get(service, campaign, "/waves/1")
    tag = wave.headers["etag"]
    assert tag == f'"{hashlib.sha256(wave.content).hexdigest()}"'
    assert "immutable" in wave.headers["cache-control"]
    with restarted(service) as new:
        for _ in range(2):  # from the store, then from memory
            for same in (tag, f"W/{tag}", f'"other", {tag}', "*"):
                answer = new.client.get(f"/v1/campaigns/{campaign}/waves/1", headers={"if-none-match": same})
                assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
            other = new.client.get(f"/v1/campaigns/{campaign}/waves/1", headers={"if-none-match": '"other"'})
            assert (other.status_code, other.content) == (200, wave.content)


@pytest.mark.parametrize("method", ["ahead", "hio", "fused"])
def test_the_bytes_of_a_wave_are_the_canonical_ones(service, method):
    campaign = service.opened(method={"name": method}, attributes=["age=integer,0,15", 'town=nominal,Bünde|"x",[]'])
    rows = service.store.questions(campaign, 1)
    made = canonical_bytes(wave_record(campaign, 1, [parse_canonical(row.record) for row in rows]))
    assert get(service, campaign, "/waves/1").content == made


def test_waves_that_do_not_exist_are_not_kept(service):
    campaign = service.opened()
    for number in (2, 10_000):
        assert problem(get(service, campaign, f"/waves/{number}")) == "not_found"
    assert problem(get(service, "0" * 64, "/waves/1")) == "not_found"
    assert service.service.directory._published == {}
    assert service.call("DELETE", f"/campaigns/{campaign}/waves/1", "public").status_code == 405


def test_published_waves_take_a_bounded_part_of_the_memory(service, monkeypatch):
    campaigns = [service.opened(title=f"campaign {i}") for i in range(6)]
    size = len(get(service, campaigns[0], "/waves/1").content)
    monkeypatch.setattr(directory, "_MOST_PUBLISHED", 3 * size + 2)
    for campaign in campaigns:
        assert get(service, campaign, "/waves/1").status_code == 200
        assert sum(len(w.body) for w in service.service.directory._published.values()) <= 3 * size + 2
    monkeypatch.setattr(directory, "_MOST_PUBLISHED", size // 2)
    assert get(service, campaigns[0], "/waves/1").status_code == 200


def test_the_end_of_the_chain_is_that_of_the_session(service):
    """It is put together from stored bytes; the method's own session says the same."""
    campaign = service.opened()
    assert service.state(campaign)["frozen"] == "0" * 64
    for number in (1, 2):
        service.answer(campaign, number, ages(40))
        service.close(campaign, number)
        ends = {service.state(campaign)["frozen"], get(service, campaign, "/chain").json()["frozen"]}
        assert ends == {service.service.directory.session(campaign).frozen}
        (closed,) = [e for e in service.call("GET", "/events").json() if e["event"].get("wave") == number
                     and e["event"]["event"] == "wave_closed"]  # fmt: skip
        assert closed["event"]["frozen"] in ends


def test_progress_says_nothing_where_there_is_nothing_to_say(service):
    campaign = in_the_middle(service)
    service.app.round()
    assert "notice" not in json.loads(get(service, campaign, "/progress").content)


def test_readers_of_a_wave_are_limited_like_all_others(tmp_path):
    with bench(tmp_path, rate_per_s=0.001, rate_burst=8) as service:
        campaign = service.opened()  # two requests
        answers = [service.call("GET", f"/campaigns/{campaign}/waves/1", "public") for _ in range(8)]
        assert [answer.status_code for answer in answers] == [200] * 6 + [429] * 2
        assert problem(answers[-1]) == "too_many_requests"
