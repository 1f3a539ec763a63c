"""The life of a campaign through its routes: drafts, waves, deadlines, short groups, review, early ends, crashes."""

import json
import threading
import time

import pytest

from ahead_ldp.device.canonical import parse_canonical
from ahead_ldp.estimates.answers import STRICT_NOTE, model_note
from ahead_ldp.protocol.session import Session
from ahead_ldp.service.campaigns.closing import Closer
from ahead_ldp.service.campaigns.directory import Directory
from ahead_ldp.service.campaigns.jobs import Jobs
from ahead_ldp.service.campaigns.lifecycle import SCREENS, Close, Extend, Wait, due
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.screening.screens import Screen, WaveScreens
from ahead_ldp.service.server.app import create_app
from ahead_ldp.service.server.config import NO_RATES, Settings
from ahead_ldp.service.store import QuestionState, WaveRow, WaveState
from ahead_ldp.service.store.keys import Keys
from tests.service.server.harness import ages, batch, bench, problem, refusals, reports

TWO_GROUPS = {"attributes": ["age=integer,0,15"], "method": {"name": "hio"}}  # several groups in one wave


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        yield made


def wave_row(closes_at=None, extensions=0, state=WaveState.OPEN):
    return WaveRow("c", 1, state, "", 1000, closes_at, None, extensions)


DEADLINE, ENOUGH = {"kind": "deadline", "seconds": 60}, {"kind": "reports", "reports": 30}


@pytest.mark.parametrize(
    ("closing", "wave", "counts", "now", "action"),
    [
        (ENOUGH, wave_row(), {"1": 29, "2": 99}, 1, Wait()),
        (ENOUGH, wave_row(), {"1": 30, "2": 30}, 1, Close()),
        (ENOUGH, wave_row(closes_at=1060), {"1": 20, "2": 99}, 1060, Close()),
        (DEADLINE, wave_row(closes_at=1060), {"1": 99}, 1059, Wait()),
        (DEADLINE, wave_row(closes_at=1060), {"1": 20}, 1060, Close()),
        (DEADLINE, wave_row(closes_at=1060), {"1": 19, "2": 99}, 1065, Extend(1125)),
        (DEADLINE, wave_row(closes_at=1125, extensions=1), {"1": 19, "2": 99}, 1125, Close(("1",))),
        (DEADLINE, wave_row(closes_at=1125, extensions=1), {"1": 20, "2": 99}, 1125, Close()),
        (DEADLINE, wave_row(closes_at=1060, state=WaveState.HELD), {"1": 99}, 2000, Wait()),
        ({"kind": "manual"}, wave_row(), {"1": 10**6}, 10**9, Wait()),
    ],
)
def test_what_is_due(closing, wave, counts, now, action):
    assert due(closing, 20, wave, counts, now) == action


def test_a_campaign_runs_to_its_end_and_answers(service):
    campaign = service.opened()
    people = ages(300)
    service.run(campaign, people)
    assert service.state(campaign)["state"] == "finished"
    asked = {"queries": ["age in 3..7"], "cdf": ["age"], "quantiles": [{"attribute": "age"}], "means": ["age"]}
    asked["histograms"] = [{"attribute": "age", "bins": 4}]
    found = service.call("POST", f"/campaigns/{campaign}/queries", "analyst", json=asked).json()
    truth = sum(3 <= person["age"] <= 7 for person in people) / len(people)
    answer = found["queries"][0]
    assert abs(answer["share"] - truth) < 5 * answer["standard_error"]
    assert answer["standard_error"] < 0.2
    assert [row["level"] for row in found["quantiles"]["age"]] == [0.25, 0.5, 0.75]
    assert len(found["cdf"]["age"]) == 16
    assert len(found["histograms"]["age"]) == 4
    assert found["means"]["age"]["low"] <= found["means"]["age"]["value"] <= found["means"]["age"]["high"]
    results = service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()
    assert results["people"] == 4 * len(people)
    assert results["complete"]
    assert len(results["screens"]) == 4
    assert results["manipulation"]["group_can_be_chosen"]


def test_intervals_are_strict_unless_the_models_are_asked_for_and_few_unless_more_are(service):
    campaign = service.opened(attributes=["age=integer,0,199"], method={"name": "ahead"}, minimum=1, users=1000)
    service.run(campaign, [{"age": i % 100} for i in range(300)])
    asked = {"queries": ["age in 3..70"], "cdf": ["age"], "histograms": [{"attribute": "age"}], "means": ["age"]}
    at = f"/campaigns/{campaign}"
    strict = service.call("POST", f"{at}/queries", "analyst", json=asked).json()
    model = service.call("POST", f"{at}/queries", "analyst", json={**asked, "intervals": "model"}).json()
    assert (strict["intervals"], model["intervals"]) == ("strict", "model")
    estimate = service.service.directory.estimate(campaign)
    for found in (strict, model):
        low, high = estimate.ask("age in 3..70").interval(kind=found["intervals"])
        assert [found["queries"][0][end] for end in ("low", "high")] == [low[0], high[0]]
        assert found["means"]["age"]["low"] == estimate.mean().interval(kind=found["intervals"])[0]
        assert (len(found["cdf"]["age"]), len(found["histograms"]["age"])) == (64, 64)
    assert STRICT_NOTE in strict["notes"]
    assert model_note(estimate.assumption) in model["notes"]
    assert STRICT_NOTE not in model["notes"]
    more = {"histograms": [{"attribute": "age", "bins": 100}], "intervals": "model"}
    assert len(service.call("POST", f"{at}/queries", "analyst", json=more).json()["histograms"]["age"]) == 100
    results = service.call("GET", f"{at}/results?intervals=model", "analyst").json()
    assert results["attributes"][0]["histogram"] == estimate.histogram("age", 64).records(kind="model")
    assert service.call("GET", f"{at}/results", "analyst").json()["intervals"] == "strict"
    assert service.call("GET", f"{at}/results?intervals=narrow", "analyst").status_code == 400


def test_results_come_only_from_closed_waves(service):
    campaign = service.opened()
    service.answer(campaign, 1, ages(100))
    for path, body in (("results", None), ("tallies", None), ("queries", {"queries": ["age in 1..2"]})):
        answer = service.call("POST" if body else "GET", f"/campaigns/{campaign}/{path}", "analyst", json=body)
        assert problem(answer) == "no_results"
    service.close(campaign, 1)
    assert service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()["waves"] == 1
    service.answer(campaign, 2, ages(100))
    assert service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()["people"] == 100


def test_the_same_draft_is_one_campaign(service):
    first, again = service.create(created="2026-11-15"), service.create(created="2026-11-15")
    assert first == again != service.create(created="2026-11-16")


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "0"},
        {"attributes": ["age=integer,5,1"]},
        {"method": {"name": "none such"}},
        {"method": {"name": "ahead", "choices": {"no_such": 1}}},
        {"method": {"name": "ahead", "choices": {"fanout": "two"}}},
        {"method": {"name": "ahead", "choices": {"fanout": 10**30, "scale": []}}},
        {"method": {"name": "flat", "choices": {"oracle": {"a": 1}}}},
        {"method": {"name": "uni"}},
        {"closing": {"kind": "reports", "reports": 5}},
        {"closing": {"kind": "never"}},
        {"token": {"tier": "signed"}},
        {"attributes": ["x=integer,0,99999"], "method": {"name": "flat"}},
    ],
)
def test_a_campaign_that_breaks_a_rule_is_refused(service, change):
    draft = {
        "title": "t", "purpose": "p", "controller": "c", "contact": "x", "attributes": ["age=integer,0,15"],
        "epsilon": "1", "minimum": 20, "closing": {"kind": "manual"},
    }  # fmt: skip
    answer = service.call("POST", "/campaigns", json=draft | change)
    assert (answer.status_code, problem(answer)) == (422, "invalid_campaign")
    assert service.call("GET", "/campaigns").json() == []


def test_a_whole_record_makes_the_same_campaign(service, tmp_path):
    campaign = service.create()
    record = parse_canonical(service.call("GET", f"/campaigns/{campaign}", "public").content)
    made = service.call("POST", "/campaigns/records", json=record)
    assert (made.status_code, made.json()["campaign"]) == (200, campaign)
    other = service.call("POST", "/campaigns/records", json=record | {"title": "another"})
    assert other.status_code == 201
    assert other.json()["campaign"] != campaign


def test_groups_of_another_method_are_refused(service):
    record = parse_canonical(service.call("GET", f"/campaigns/{service.create()}", "public").content)
    record["groups"] = record["groups"][:-1]
    assert problem(service.call("POST", "/campaigns/records", json=record)) == "invalid_campaign"


# Closing


def test_enough_reports_close_a_wave(service):
    campaign = service.opened(closing={"kind": "reports", "reports": 50})
    service.answer(campaign, 1, ages(49))
    service.app.round()
    assert service.wave_state(campaign, 1) == "open"
    service.answer(campaign, 1, ages(1))
    service.app.round()
    assert service.wave_state(campaign, 1) == "closed"
    assert service.wave_state(campaign, 2) == "open"


def test_short_groups_are_extended_once_then_void(service):
    campaign = service.opened(closing={"kind": "deadline", "seconds": 60}, **TWO_GROUPS)
    questions = service.questions(campaign, 1)
    assert len(questions) > 1
    short, *others = questions
    for group in others:
        service.upload(campaign, batch(questions[group], reports(questions[group], 25)))
    service.upload(campaign, batch(questions[short], reports(questions[short], 19)))
    opened = service.state(campaign)["waves"][0]["opened_at"]
    service.clock.pass_(60)
    service.app.round()
    assert service.wave_state(campaign, 1) == "open"
    assert service.state(campaign)["waves"][0]["closes_at"] == opened + 120
    service.clock.pass_(60)
    service.app.round()
    assert service.wave_state(campaign, 1) == "closed"
    counts = {row.group: (row.n, row.state) for row in service.store.questions(campaign, 1)}
    assert counts[short] == (0, QuestionState.VOID)
    assert {counts[group] for group in others} == {(25, QuestionState.COUNTED)}
    assert list(service.store.reports(campaign, 1, short)) == []
    assert service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()["people"] == 25 * len(others)


def test_a_group_that_fills_up_in_the_extension_is_counted(service):
    campaign = service.opened(closing={"kind": "deadline", "seconds": 60})
    service.answer(campaign, 1, ages(19))
    service.clock.pass_(60)
    service.app.round()
    service.answer(campaign, 1, ages(1))
    service.clock.pass_(60)
    service.app.round()
    assert [row.n for row in service.store.questions(campaign, 1)] == [20]


def test_nobody_can_close_below_the_minimum(service):
    campaign = service.opened()
    service.answer(campaign, 1, ages(19))
    done = service.close(campaign, 1)
    assert done["state"] == "failed"
    assert done["problem"]["type"].endswith("below_minimum")
    assert service.wave_state(campaign, 1) == "open"
    service.answer(campaign, 1, ages(1))
    assert service.close(campaign, 1)["state"] == "done"
    assert service.wave_state(campaign, 1) == "closed"


def test_extending_by_hand_moves_the_deadline(service):
    campaign = service.opened(closing={"kind": "deadline", "seconds": 60})
    service.answer(campaign, 1, ages(30))
    state = service.call("POST", f"/campaigns/{campaign}/waves/1/extend", json={"seconds": 500}).json()
    assert state["waves"][0]["closes_at"] == service.clock() + 500
    service.clock.pass_(499)
    service.app.round()
    assert service.wave_state(campaign, 1) == "open"
    service.clock.pass_(1)
    service.app.round()
    assert service.wave_state(campaign, 1) == "closed"


def test_one_group_can_be_given_up(service):
    campaign = service.opened(**TWO_GROUPS)
    service.answer(campaign, 1, ages(300))
    group = next(iter(service.questions(campaign, 1)))
    answer = service.call("POST", f"/campaigns/{campaign}/waves/1/void-group", json={"group": group})
    assert answer.status_code == 200
    assert service.close(campaign, 1)["result"]["void"] == [group]
    missing = service.call("POST", f"/campaigns/{campaign}/waves/1/void-group", json={"group": "no such"})
    assert problem(missing) in ("not_found", "wrong_state")


def test_a_wave_can_be_given_up_and_the_next_follows(service):
    campaign = service.opened()
    service.answer(campaign, 1, ages(30))
    assert service.close(campaign, 1, "void")["state"] == "done"
    assert [row.n for row in service.store.questions(campaign, 1)] == [0]
    assert service.wave_state(campaign, 2) == "open"


def test_review_waits_for_an_operator(service):
    campaign = service.opened(review=True)
    service.answer(campaign, 1, ages(30))
    service.close(campaign, 1)
    assert service.state(campaign)["state"] == "review"
    assert [w["number"] for w in service.state(campaign)["waves"]] == [1]
    assert service.call("POST", f"/campaigns/{campaign}/approve").json()["state"] == "open"
    assert service.wave_state(campaign, 2) == "open"
    assert problem(service.call("POST", f"/campaigns/{campaign}/approve")) == "wrong_state"


def test_finishing_early_counts_what_is_there(service):
    campaign = service.opened()
    service.run(campaign, ages(100), waves=2)
    service.answer(campaign, 3, ages(50))
    asked = service.call("POST", f"/campaigns/{campaign}/finish")
    assert asked.status_code == 202
    service.app.round()
    assert service.state(campaign)["state"] == "finished"
    results = service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()
    assert (results["people"], results["complete"]) == (250, False)
    assert problem(service.call("POST", f"/campaigns/{campaign}/finish")) == "wrong_state"


def test_finishing_early_gives_up_short_groups(service):
    campaign = service.opened()
    service.run(campaign, ages(100), waves=1)
    service.answer(campaign, 2, ages(5))
    service.call("POST", f"/campaigns/{campaign}/finish")
    service.app.round()
    assert [row.n for row in service.store.questions(campaign, 2)] == [0]
    assert service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()["people"] == 100


def test_a_draft_can_be_given_up_but_not_finished(service):
    campaign = service.create()
    assert problem(service.call("POST", f"/campaigns/{campaign}/finish")) == "wrong_state"
    assert service.call("POST", f"/campaigns/{campaign}/void").json()["state"] == "void"
    assert problem(service.call("POST", f"/campaigns/{campaign}/open")) == "wrong_state"


def test_finishing_in_review_needs_no_job(service):
    campaign = service.opened(review=True)
    service.run(campaign, ages(50), waves=1)
    assert service.call("POST", f"/campaigns/{campaign}/finish").json()["result"] == {"campaign_state": "finished"}
    assert service.state(campaign)["state"] == "finished"


def test_a_void_campaign_has_no_results_and_no_reports(service):
    campaign = service.opened()
    service.run(campaign, ages(50), waves=1)
    service.answer(campaign, 2, ages(50))
    assert service.call("POST", f"/campaigns/{campaign}/void").json()["state"] == "void"
    assert problem(service.call("GET", f"/campaigns/{campaign}/results", "analyst")) == "no_results"
    for row in service.store.questions(campaign):
        assert list(service.store.reports(campaign, row.wave, row.group)) == []
    question = next(iter(service.questions(campaign, 2).values()))
    assert refusals(service.upload(campaign, batch(question, reports(question, 1)))) == [(0, "wave_closed")]


def test_a_void_campaign_is_deleted_at_once_although_its_server_died(service, tmp_path, monkeypatch):
    """The reports of its closed rounds stayed for the whole retention, and no call could delete them."""
    keys = Keys(tmp_path / "keys")  # of this test alone; others run beside it
    monkeypatch.setattr(service.store, "keys", keys)
    campaign = service.opened(retention_days=3650)
    service.run(campaign, ages(50), waves=1)
    with monkeypatch.context() as patch:
        patch.setattr(type(service.store), "delete_reports", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            service.service.void(campaign)
    assert service.state(campaign)["state"] == "void"
    row = service.store.questions(campaign)[0]
    assert sum(c.n for c in service.store.reports(campaign, 1, row.group)) > 0
    assert list(keys.folder.glob("*.key"))
    service.app.round()
    assert list(service.store.reports(campaign, 1, row.group)) == []
    assert list(keys.folder.glob("*.key")) == []
    assert [json.loads(e.body)["event"] for e in service.store.events()][-1] == "reports_deleted"


def test_reports_are_deleted_after_retention_and_tallies_stay(service):
    campaign = service.opened(method={"name": "flat"}, retention_days=2)
    service.run(campaign, ages(50))
    before = service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()
    row = service.store.questions(campaign)[0]
    service.clock.pass_(2 * 86_400 - 1)
    service.app.round()
    assert sum(c.n for c in service.store.reports(campaign, 1, row.group)) == 50
    service.clock.pass_(1)
    service.app.round()
    service.app.round()
    assert list(service.store.reports(campaign, 1, row.group)) == []
    assert service.call("GET", f"/campaigns/{campaign}/results", "analyst").json() == before


def test_an_estimate_is_computed_once_however_many_ask_for_it(service, monkeypatch):
    """When a wave was closed, everybody behind a link had the server compute the same, forty at a time."""
    campaign = service.opened(method={"name": "hio"})
    service.run(campaign, ages(80))
    finish, computed, barrier = Session.finish, [], threading.Barrier(8)

    def counted(session):
        computed.append(session)
        time.sleep(0.2)  # the others come meanwhile
        return finish(session)

    def ask():
        barrier.wait()
        found.append(service.service.directory.estimate(campaign))

    monkeypatch.setattr(Session, "finish", counted)
    service.service.directory = Directory(service.store)
    found, threads = [], [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(computed) == 1
    assert len(found) == 8
    assert len({id(estimate) for estimate in found}) == 1


def test_a_campaign_that_cannot_be_read_keeps_no_other_from_being_forgotten(service, monkeypatch, caplog):
    """A round ended with the first campaign that failed; those behind it were neither closed nor deleted in time."""
    names = [service.opened(method={"name": "flat"}, retention_days=2, title=title) for title in ("a", "b", "c")]
    for name in names:
        service.run(name, ages(50))
    listed = [row.digest for row in service.store.campaigns()]
    closer, terms = service.app.jobs.closer, service.app.jobs.closer.terms

    def broken(name):
        if name == listed[0]:
            raise ValueError("the record of a program that is not yet written")
        return terms(name)

    object.__setattr__(closer, "terms", broken)
    service.clock.pass_(2 * 86_400)
    service.app.round()
    left = {
        name: sum(c.n for c in service.store.reports(name, 1, service.store.questions(name)[0].group))
        for name in listed
    }
    assert list(left.values()) == [50, 0, 0]
    assert "campaign_failed" in [record.msg for record in caplog.records]
    object.__setattr__(closer, "terms", terms)
    service.app.round()
    assert list(service.store.reports(listed[0], 1, service.store.questions(listed[0])[0].group)) == []


# Held waves


def hold(monkeypatch):
    bad = WaveScreens((Screen("planted", 99.0, 30, "1"),), 6.0)
    monkeypatch.setattr("ahead_ldp.service.campaigns.closing.screen_wave", lambda *_: bad)


def test_a_suspicious_wave_is_held_until_released(service, monkeypatch):
    campaign = service.opened()
    service.answer(campaign, 1, ages(30))
    with monkeypatch.context() as patch:
        hold(patch)
        assert service.close(campaign, 1)["result"]["wave_state"] == "held"
    service.app.round()  # nothing goes on by itself
    assert service.wave_state(campaign, 1) == "held"
    assert service.call("GET", f"/campaigns/{campaign}/progress").json()["held"]
    assert problem(service.call("POST", f"/campaigns/{campaign}/waves/1/close")) == "wave_held"
    assert problem(service.call("POST", f"/campaigns/{campaign}/finish")) == "wave_held"
    screens = service.call("GET", f"/campaigns/{campaign}/screens", "analyst").json()["waves"][0]
    assert (screens["hold"], screens["screens"][0]["screen"]) == (True, "planted")
    question = next(iter(service.questions(campaign, 1).values()))
    assert refusals(service.upload(campaign, batch(question, reports(question, 1, 8)))) == [(0, "wave_closed")]
    assert service.close(campaign, 1, "release")["state"] == "done"
    assert [row.n for row in service.store.questions(campaign, 1)] == [30]


def test_a_held_wave_can_be_given_up(service, monkeypatch):
    campaign = service.opened()
    service.answer(campaign, 1, ages(30))
    with monkeypatch.context() as patch:
        hold(patch)
        service.close(campaign, 1)
    service.close(campaign, 1, "void")
    assert [row.n for row in service.store.questions(campaign, 1)] == [0]


# Crashes and races

CRASH_POINTS = ["set_wave_state", "questions", "counts", "reports", "put_document", "freeze_wave", "end_job"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_closer_that_dies_anywhere_is_replaced_and_nothing_changes(tmp_path, point, after, monkeypatch):
    """The process dies at a call of the store; another one, with nothing in memory, goes on from what is stored."""
    with bench(tmp_path) as service:
        campaign = service.opened()
        service.answer(campaign, 1, ages(60))
        service.call("POST", f"/campaigns/{campaign}/waves/1/close")
        real = getattr(type(service.store), point)
        dead = []

        def dies(self, *arguments, **options):
            if dead:
                return real(self, *arguments, **options)
            dead.append(point)
            if after:
                real(self, *arguments, **options)
            raise SystemExit(point)

        with monkeypatch.context() as patch:
            patch.setattr(type(service.store), point, dies)
            with pytest.raises(SystemExit):
                service.app.jobs.run()
        assert dead
        service.clock.pass_(service.app.service.settings.lease_s + 1)
        other = create_app(service.store, Settings(closer_interval_s=0.0, **NO_RATES), service.clock)
        other.round()
        assert [(r.n, r.state) for r in service.store.questions(campaign, 1)] == [(60, QuestionState.COUNTED)]
        assert service.state(campaign)["wave"] == 2
        assert service.wave_state(campaign, 2) == "open"
        assert sum(json.loads(e.body)["event"] == "wave_closed" for e in service.store.events()) == 1


def test_two_closers_at_once_close_once(service):
    campaign = service.opened()
    service.answer(campaign, 1, ages(200))
    errors, outcomes = [], []

    def close():
        closer = Closer(service.store, Directory(service.store).terms, service.clock, 6.0, 1 << 16)
        try:
            outcomes.append(closer.close(campaign, 1))
        except Problem as error:
            errors.append(error.kind)

    threads = [threading.Thread(target=close) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(errors) <= {"wrong_state"}
    assert {o.wave for o in outcomes} == {WaveState.CLOSED}
    assert [w["number"] for w in service.state(campaign)["waves"]] == [1, 2]
    assert sum(json.loads(e.body)["event"] == "wave_closed" for e in service.store.events()) == 1


def test_uploads_that_race_with_a_close_are_counted_or_refused(service):
    """Whatever is acknowledged is in the tally; whatever is not is not."""
    campaign = service.opened()
    service.answer(campaign, 1, ages(40))
    question = next(iter(service.questions(campaign, 1).values()))
    accepted, stop = [], threading.Event()

    def send(seed):
        while not stop.is_set():
            accepted.append(service.upload(campaign, batch(question, reports(question, 3, seed))).json()["accepted"])

    threads = [threading.Thread(target=send, args=(s,)) for s in range(3)]
    for thread in threads:
        thread.start()
    done = service.close(campaign, 1)
    stop.set()
    for thread in threads:
        thread.join()
    assert done["state"] == "done"
    assert service.store.questions(campaign, 1)[0].n == 40 + sum(accepted)


def test_a_job_is_done_by_one_process(service):
    campaign = service.opened(closing={"kind": "reports", "reports": 20})
    service.answer(campaign, 1, ages(20))
    other = Jobs(service.store, service.app.jobs.closer, service.clock, 60)
    done = [service.app.jobs.run(), other.run()]
    assert done == [1, 0]


def test_screens_are_kept_with_the_wave(service):
    campaign = service.opened()
    service.run(campaign, ages(100), waves=1)
    found = json.loads(service.store.document(campaign, 1, SCREENS))
    assert not found["hold"]
    assert {"raw_sum", "below_zero_lowest"} <= {s["screen"] for s in found["screens"]}


def test_what_was_asked_is_replayed_once_for_each_closed_wave(service):
    """Pages and bounds read the questions of closed waves: the mechanism runs again only when one was closed."""
    campaign, directory = service.opened(), service.service.directory
    for number in (1, 2):
        service.answer(campaign, number, ages(60))
        service.close(campaign, number)
        asked = directory.asked(campaign)
        assert [sum(tally.n for _, tally in wave) for wave in asked] == [60] * number
        assert directory.asked(campaign) is asked
