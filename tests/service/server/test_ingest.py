"""Uploads through the app object: sent twice, lost on the way, late, stale, malformed."""

import hashlib
import os

import pytest

from ahead_ldp.device.frames import HEADER_LENGTH, Header, Report
from ahead_ldp.service.store import StoreUnavailable
from tests.service.server.harness import BINARY, batch, bench, problem, refusals, reports


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        yield made


@pytest.fixture
def asked(service):
    """A campaign and the question of its first wave, on five cells: padding exists."""
    campaign = service.opened(attributes=["age=integer,0,4"], method={"name": "flat", "choices": {"oracle": "oue"}})
    return campaign, service.questions(campaign, 1)["all" if "all" in service.questions(campaign, 1) else "1"]


def stored(service, campaign, wave=1):
    return sum(service.store.counts(campaign, wave).values())


def test_reports_are_accepted_and_stored(service, asked):
    campaign, question = asked
    answer = service.upload(campaign, batch(question, reports(question, 3)))
    assert (answer.status_code, answer.json()) == (200, {"accepted": 3, "refused": []})
    assert stored(service, campaign) == 3


def test_the_same_bytes_again_are_accepted_and_counted_once(service, asked):
    """The answer was lost, so the device sends again."""
    campaign, question = asked
    body = batch(question, reports(question, 12))
    assert service.upload(campaign, body).json() == service.upload(campaign, body).json()
    assert stored(service, campaign) == 12


def test_the_same_id_with_other_bytes_gets_the_same_answer_and_the_first_counts(service, asked):
    campaign, question = asked
    first = reports(question, 2)
    service.upload(campaign, batch(question, first))
    other = bytes([first[0].payload[0] ^ 1])
    answer = service.upload(campaign, batch(question, [Report(first[0].report_id, other), first[1]]))
    assert answer.json() == {"accepted": 2, "refused": []}
    (chunk,) = service.store.reports(campaign, 1, question.group)
    assert chunk.payloads == b"".join(report.payload for report in first)


def test_one_id_twice_in_a_batch_counts_once(service, asked):
    campaign, question = asked
    one = reports(question, 1)[0]
    other = Report(one.report_id, bytes([one.payload[0] ^ 1]))
    answer = service.upload(campaign, batch(question, [one, one, other]))
    assert answer.json() == {"accepted": 3, "refused": []}
    (chunk,) = service.store.reports(campaign, 1, question.group)
    assert chunk.payloads == one.payload


@pytest.mark.parametrize("n", [1, 3, 40])
def test_a_bad_form_is_refused_alone(service, asked, n):
    campaign, question = asked
    some = reports(question, n)
    some[n // 2] = Report(some[n // 2].report_id, b"\xff")
    answer = service.upload(campaign, batch(question, some))
    assert answer.json()["accepted"] == n - 1
    assert refusals(answer) == [(n // 2, "padding_not_zero")]
    assert stored(service, campaign) == n - 1


def test_known_comes_before_closed_comes_before_form(service, asked):
    """The order of checks in docs/wire.md."""
    campaign, question = asked
    known = reports(question, 30)
    service.upload(campaign, batch(question, known))
    service.close(campaign, 1)
    late, malformed = reports(question, 1, seed=9)[0], Report(os.urandom(16), b"\xff")
    changed = Report(known[1].report_id, b"\xff")
    answer = service.upload(campaign, batch(question, [known[0], changed, late, malformed]))
    assert answer.json()["accepted"] == 2
    assert refusals(answer) == [(2, "wave_closed"), (3, "wave_closed")]


def test_a_stale_question_is_refused(service):
    campaign = service.opened()
    first = service.questions(campaign, 1)
    for question in first.values():
        service.upload(campaign, batch(question, reports(question, 30)))
    service.close(campaign, 1)
    question = next(iter(first.values()))
    assert refusals(service.upload(campaign, batch(question, reports(question, 1, 3)))) == [(0, "wave_closed")]
    made_up = Header(campaign, "0" * 64).encode() + bytes(17)
    answer = service.upload(campaign, made_up)
    assert (answer.status_code, problem(answer)) == (409, "wrong_question")


@pytest.mark.parametrize(
    ("change", "status", "kind"),
    [
        (lambda body: body[:10], 400, "truncated"),
        (lambda body: b"", 400, "truncated"),
        (lambda body: body[:HEADER_LENGTH], 400, "truncated"),
        (lambda body: body[:-1], 400, "truncated"),
        (lambda body: body + b"\0", 400, "truncated"),
        (lambda body: b"\2" + body[1:], 400, "unknown_version"),
        (lambda body: body[:1] + bytes(32) + body[33:], 400, "wrong_campaign"),
    ],
)
def test_what_is_no_batch_is_a_problem(service, asked, change, status, kind):
    campaign, question = asked
    answer = service.upload(campaign, change(batch(question, reports(question, 2))))
    assert (answer.status_code, problem(answer)) == (status, kind)
    assert stored(service, campaign) == 0


def test_an_unknown_campaign_is_not_found(service, asked):
    body = Header("1" * 64, "2" * 64).encode() + bytes(17)
    answer = service.upload("1" * 64, body)
    assert (answer.status_code, problem(answer)) == (404, "not_found")


def test_a_body_of_another_type_is_refused(service, asked):
    campaign, question = asked
    answer = service.upload(campaign, batch(question, reports(question, 1)), headers={"content-type": "text/plain"})
    assert (answer.status_code, problem(answer)) == (415, "unsupported_media_type")


def test_too_large_bodies_and_batches_are_refused(tmp_path):
    with bench(tmp_path, max_body_bytes=2000, max_batch=5) as service:
        campaign = service.opened()
        question = next(iter(service.questions(campaign, 1).values()))
        many = service.upload(campaign, batch(question, reports(question, 6)))
        assert (many.status_code, problem(many)) == (413, "too_large")
        huge = service.upload(campaign, bytes(2001))
        assert (huge.status_code, problem(huge)) == (413, "too_large")
        streamed = service.client.post(
            f"/v1/campaigns/{campaign}/reports", content=(bytes(500) for _ in range(9)), headers=BINARY
        )
        assert (streamed.status_code, problem(streamed)) == (413, "too_large")
        assert service.upload(campaign, batch(question, reports(question, 5))).json()["accepted"] == 5


def test_a_store_that_cannot_write_is_503_and_nothing_is_acknowledged(service, asked, monkeypatch):
    campaign, question = asked
    body = batch(question, reports(question, 4))

    def full(batches):
        raise StoreUnavailable("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(type(service.store), "add_reports", lambda self, batches: full(batches))
        answer = service.upload(campaign, body)
        assert (answer.status_code, problem(answer)) == (503, "unavailable")
        assert int(answer.headers["retry-after"]) > 0
    assert stored(service, campaign) == 0
    assert service.upload(campaign, body).json()["accepted"] == 4


def test_why_the_store_does_not_work_is_in_the_log_once_for_many_requests(service, asked, monkeypatch, caplog):
    """Uploads and operators were told 503, and nobody was told why."""
    campaign, question = asked
    body = batch(question, reports(question, 4))
    moment = [0.0]
    monkeypatch.setattr(service.service.outages, "monotonic", lambda: moment[0])

    def full(*_):
        raise StoreUnavailable("SQLite: database or disk is full (SQLITE_FULL)")

    def said():
        return [r.fields["reason"] for r in caplog.records if r.msg == "store_unavailable"]

    with monkeypatch.context() as patch:
        patch.setattr(type(service.store), "add_reports", full)
        patch.setattr(type(service.store), "withdraw", full)
        for _ in range(3):
            assert service.upload(campaign, body).status_code == 503
        refused = service.call("POST", f"/campaigns/{campaign}/withdrawals", json={"nonce": "00" * 32})
        assert (refused.status_code, problem(refused)) == (503, "unavailable")
        assert said() == ["SQLite: database or disk is full (SQLITE_FULL)"]
        moment[0] = 11.0
        assert service.upload(campaign, body).status_code == 503
        assert len(said()) == 2


def test_a_key_directory_that_cannot_be_used_is_named_in_the_log(service, tmp_path, caplog):
    service.store.keys.folder = tmp_path / "no" / "keys"
    (tmp_path / "no").write_bytes(b"")
    refused = service.call("POST", f"/campaigns/{service.create()}/open")
    assert (refused.status_code, problem(refused)) == (503, "unavailable")
    (said,) = [r.fields["reason"] for r in caplog.records if r.msg == "store_unavailable"]
    assert said == f"the key directory {tmp_path}/no/keys cannot be written: Not a directory"


def test_a_crash_in_the_store_is_a_problem_without_a_traceback(service, asked, monkeypatch):
    campaign, question = asked
    monkeypatch.setattr(type(service.store), "add_reports", lambda self, batches: 1 / 0)
    answer = service.upload(campaign, batch(question, reports(question, 1)))
    assert (answer.status_code, problem(answer)) == (500, "internal")
    assert b"division" not in answer.content


def test_the_answer_comes_after_the_commit(service, asked, monkeypatch):
    campaign, question = asked
    seen, add = [], type(service.store).add_reports

    def slow(self, batches):
        outcomes = add(self, batches)
        seen.append(stored(service, campaign))
        return outcomes

    monkeypatch.setattr(type(service.store), "add_reports", slow)
    service.upload(campaign, batch(question, reports(question, 7)))
    assert seen == [7]


def test_withdrawal_removes_a_report_for_good(service, asked):
    campaign, question = asked
    nonce = os.urandom(32)
    report = Report(hashlib.sha256(nonce).digest()[:16], reports(question, 1)[0].payload)
    service.upload(campaign, batch(question, [report, *reports(question, 25)]))
    path, body = f"/campaigns/{campaign}/withdrawals", {"nonce": nonce.hex()}
    first = service.call("POST", path, "public", json=body)
    again = service.call("POST", path, "public", json=body)
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert stored(service, campaign) == 25
    assert refusals(service.upload(campaign, batch(question, [report]))) == [(0, "report_withdrawn")]


def test_a_withdrawal_of_what_never_came_is_not_found_and_writes_nothing(service, asked):
    """Finding 8: everybody could have rows written, and an entry in memory, for every nonce they made up."""
    campaign, _ = asked
    before = (service.store.path.with_name("service.db-wal")).read_bytes()
    for _ in range(20):
        body = {"nonce": os.urandom(32).hex()}
        answer = service.call("POST", f"/campaigns/{campaign}/withdrawals", "public", json=body)
        assert (answer.status_code, problem(answer)) == (404, "not_found")
    assert (service.store.path.with_name("service.db-wal")).read_bytes() == before


def test_a_counted_report_cannot_be_withdrawn(service, asked):
    campaign, question = asked
    nonce = os.urandom(32)
    report = Report(hashlib.sha256(nonce).digest()[:16], reports(question, 1)[0].payload)
    service.upload(campaign, batch(question, [report, *reports(question, 25)]))
    service.close(campaign, 1)
    answer = service.call("POST", f"/campaigns/{campaign}/withdrawals", "public", json={"nonce": nonce.hex()})
    assert (answer.status_code, problem(answer)) == (409, "wrong_state")


def test_refusals_are_counted_by_reason(service, asked):
    campaign, question = asked
    service.upload(campaign, batch(question, [Report(os.urandom(16), b"\xff") for _ in range(3)]))
    service.app.round()
    assert service.store.counters(campaign) == {(1, "padding_not_zero"): 3}
    assert service.call("GET", f"/campaigns/{campaign}/progress").json()["refused"] == {"padding_not_zero": 3}
    text = service.client.get("/metrics", headers={"authorization": f"Bearer {service.operator}"}).text
    assert 'ahead_reports_refused_total{reason="padding_not_zero"} 3.0' in text
    service.app.round()
    assert service.store.counters(campaign) == {(1, "padding_not_zero"): 3}
