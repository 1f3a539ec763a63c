"""A key directory that is lost while a wave is open: one clear error everywhere, and nothing acknowledged is lost."""

import shutil

import pytest

from ahead_ldp.service.store import Keys, SQLiteStore, StoreUnavailable
from tests.service.server.harness import batch, bench_over, problem, reports


@pytest.fixture
def service(tmp_path):
    store = SQLiteStore(tmp_path / "service.db", keys=tmp_path / "keys")
    with bench_over(store) as made:
        yield made
    store.close()


@pytest.fixture
def asked(service):
    """A campaign with reports in its open wave."""
    campaign = service.opened(attributes=["age=integer,0,4"], method={"name": "flat"}, minimum=5)
    (question,) = service.questions(campaign, 1).values()
    assert service.upload(campaign, batch(question, reports(question, 30))).json()["accepted"] == 30
    return campaign, question


def test_uploads_readiness_and_closing_say_so_and_go_on_when_it_is_back(service, asked, tmp_path, caplog):
    campaign, question = asked
    late = batch(question, reports(question, 3, seed=5))
    (tmp_path / "keys").rename(tmp_path / "elsewhere")
    answer = service.upload(campaign, late)
    assert (answer.status_code, problem(answer)) == (503, "key_missing")
    assert int(answer.headers["retry-after"]) > 0
    assert problem(service.client.get("/v1/ready")) == "key_missing"
    done = service.close(campaign, 1)
    assert (done["state"], done["problem"]["type"]) == ("failed", "urn:ahead-ldp:problem:key_missing")
    told = [record.fields for record in caplog.records if record.msg == "key_missing"]
    assert {"campaign": campaign, "wave": 1} in told
    assert service.wave_state(campaign, 1) == "held"
    (tmp_path / "elsewhere").rename(tmp_path / "keys")
    service.clock.pass_(3600)
    service.app.round()  # goes on by itself
    assert service.wave_state(campaign, 1) == "closed"
    assert service.store.questions(campaign, 1)[0].n == 30
    assert service.client.get("/v1/ready").status_code == 200


def test_other_campaigns_are_not_stopped(service, asked, tmp_path):
    campaign, _ = asked
    kept = sorted((tmp_path / "keys").iterdir())
    other = service.opened(attributes=["age=integer,0,4"], method={"name": "flat"}, minimum=5, title="other")
    (question,) = service.questions(other, 1).values()
    for path in kept:
        path.unlink()
    assert service.upload(other, batch(question, reports(question, 30))).json()["accepted"] == 30
    assert service.close(other, 1)["state"] == "done"
    assert service.store.missing_keys() == [(campaign, 1)]


def test_a_key_that_cannot_be_removed_is_tried_again_and_stops_nobody(service, tmp_path, monkeypatch):
    campaign = service.opened(attributes=["age=integer,0,4"], method={"name": "flat"}, minimum=5, retention_days=0)
    (question,) = service.questions(campaign, 1).values()
    service.upload(campaign, batch(question, reports(question, 30)))
    with monkeypatch.context() as patch:
        patch.setattr(Keys, "destroy", lambda *_: (_ for _ in ()).throw(StoreUnavailable("read-only")))
        assert service.close(campaign, 1)["state"] == "done"
        other = service.opened(attributes=["age=integer,0,4"], method={"name": "flat"}, minimum=5, title="other")
        (question,) = service.questions(other, 1).values()
        service.upload(other, batch(question, reports(question, 30)))
        assert service.close(other, 1)["state"] == "done"
    assert len(list((tmp_path / "keys").iterdir())) == 2
    service.app.round()
    assert len(list((tmp_path / "keys").iterdir())) == 1  # the other's, whose retention is longer


def test_a_wave_whose_key_is_gone_for_good_is_given_up(service, asked, tmp_path):
    campaign, _ = asked
    shutil.rmtree(tmp_path / "keys")
    assert service.close(campaign, 1, "void")["state"] == "done"
    assert service.state(campaign)["state"] == "finished"
    assert service.store.missing_keys() == []
