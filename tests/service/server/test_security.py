"""Roles, limits, headers, and that nothing private reaches a log, the database or an answer."""

import io
import json
import logging
import os
import re
from dataclasses import replace

import pytest

from ahead_ldp.device.frames import Report
from ahead_ldp.service.campaigns import logs
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.server.auth import bearer, new_token, token_hash
from ahead_ldp.service.server.limits import RateLimit
from tests.service.server.asgi import ADDRESS
from tests.service.server.harness import FakeClock, ages, batch, bench, problem, reports


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        yield made


def test_tokens_are_made_used_and_revoked(service):
    made = service.call("POST", "/tokens", json={"role": "analyst", "name": "reader"}).json()
    ask = {"authorization": f"Bearer {made['token']}"}
    assert service.client.get("/v1/campaigns", headers=ask).status_code == 200
    listed = service.call("GET", "/tokens").json()
    assert {t["name"] for t in listed} == {"op", "an", "reader"}
    assert "token" not in listed[0]
    assert problem(service.call("POST", "/tokens", json={"role": "analyst", "name": "reader"})) == "wrong_state"
    assert service.call("DELETE", "/tokens/reader").status_code == 200
    assert problem(service.client.get("/v1/campaigns", headers=ask)) == "unauthorized"
    assert problem(service.call("DELETE", "/tokens/reader")) == "not_found"


def test_tokens_expire(service):
    made = service.call("POST", "/tokens", json={"role": "analyst", "name": "brief", "expires_in_s": 60}).json()
    ask = {"authorization": f"Bearer {made['token']}"}
    service.clock.pass_(59)
    assert service.client.get("/v1/campaigns", headers=ask).status_code == 200
    service.clock.pass_(1)
    assert problem(service.client.get("/v1/campaigns", headers=ask)) == "unauthorized"


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer x", "Basic ahead_x", "Bearer ahead_" + "x" * 5000])
def test_other_headers_are_no_entry(service, header):
    headers = {} if header is None else {"authorization": header}
    answer = service.client.get("/v1/campaigns", headers=headers)
    assert (answer.status_code, problem(answer)) == (401, "unauthorized")


def test_only_the_hash_of_a_token_is_stored(service, tmp_path):
    token = service.operator
    assert bearer(f"Bearer {token}") == token
    assert new_token() != new_token()
    assert service.store.role_token(token_hash(token)).role == "operator"
    service.store.close()
    for path in tmp_path.iterdir():
        assert token.encode() not in path.read_bytes()
        assert token.removeprefix("ahead_").encode() not in path.read_bytes()


def test_security_headers_are_everywhere(service):
    for path in ("/v1/health", "/v1/campaigns", "/nothing", "/v1/openapi.json"):
        headers = service.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
    campaign = service.opened()
    assert service.upload(campaign, b"").headers["x-content-type-options"] == "nosniff"


def test_health_readiness_and_metrics(service, monkeypatch):
    assert service.client.get("/v1/health").json() == {"status": "ok"}
    assert service.client.get("/v1/ready").json() == {"status": "ready", "epoch": 1}
    monitor = {"authorization": f"Bearer {service.service.add_token('monitor', 'm')}"}
    assert "ahead_reports_accepted_total" in service.client.get("/metrics", headers=monitor).text
    service.store.close()
    assert service.client.get("/v1/ready").status_code == 200  # tried once a second, and said again until then
    service.clock.pass_(1)
    answer = service.client.get("/v1/ready")
    assert (answer.status_code, problem(answer)) == (503, "unavailable")
    assert service.client.get("/v1/health").status_code == 200


def test_immutable_documents_can_be_cached(service):
    campaign = service.opened()
    answer = service.call("GET", f"/campaigns/{campaign}", "public")
    assert answer.headers["etag"] == f'"{campaign}"'
    assert "immutable" in answer.headers["cache-control"]
    assert "immutable" in service.call("GET", f"/campaigns/{campaign}/waves/1", "public").headers["cache-control"]
    assert service.call("GET", f"/campaigns/{campaign}/state", "public").headers["cache-control"] == "no-cache"


def test_one_address_is_limited_and_not_remembered():
    clock = FakeClock(0)
    limit = RateLimit(2.0, 3, clock)
    assert [limit.allows(ADDRESS) for _ in range(5)] == [True] * 3 + [False] * 2
    assert limit.allows("198.51.100.1")
    clock.pass_(1)
    assert [limit.allows(ADDRESS) for _ in range(3)] == [True, True, False]
    first = set(limit._buckets)
    assert all(type(name) is int for name in first)  # hashes
    clock.pass_(1000)
    assert limit.allows(ADDRESS)
    assert not first & set(limit._buckets)  # under a new key
    assert len(limit._buckets) == 1


def test_too_many_requests_are_told_when_to_come_back(tmp_path):
    with bench(tmp_path, rate_per_s=0.001, rate_burst=3) as service:
        found = [service.client.get("/v1/health") for _ in range(5)]
        assert [a.status_code for a in found] == [200] * 3 + [429] * 2
        assert problem(found[-1]) == "too_many_requests"
        assert int(found[-1].headers["retry-after"]) >= 1
        assert problem(service.upload("0" * 64, b"")) == "too_many_requests"


def test_a_large_body_is_refused_on_every_route(tmp_path):
    with bench(tmp_path, max_body_bytes=500) as service:
        announced = service.call("POST", "/campaigns", content=b"x" * 501)
        assert (announced.status_code, problem(announced)) == (413, "too_large")
        streamed = service.call("POST", "/campaigns", content=[b"x" * 400, b"x" * 400])
        assert 400 <= streamed.status_code < 500

        async def page(scope, receive, send):
            while (await receive()).get("more_body"):
                pass
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"page"})

        service.app.pages = page
        assert service.client.post("/some/page", content=b"x").text == "page"
        assert "content-security-policy" in service.client.get("/").headers
        assert problem(service.client.post("/some/page", content=[b"x" * 400, b"x" * 400])) == "too_large"
        assert service.client.get("/v1/health").json() == {"status": "ok"}


def test_logs_have_no_bodies_tokens_addresses_or_messages(tmp_path):
    """Canaries go in wherever something can be sent; none comes out in the logs or stays in the database."""
    stream = io.StringIO()
    saved = {name: logging.getLogger(name).handlers for name in logs.LOGGERS}
    logs.configure("debug", stream)
    canary = "canary7c1f"
    try:
        with bench(tmp_path) as service:
            campaign = service.opened()
            question = next(iter(service.questions(campaign, 1).values()))
            service.upload(campaign, batch(question, reports(question, 3)))
            service.upload(campaign, canary.encode() * 20)
            service.upload(campaign, batch(question, [Report(canary.encode() + bytes(6), b"\xff\xff")]))
            service.client.get(f"/v1/{canary}", headers={"authorization": f"Bearer ahead_{canary}"})
            service.call("POST", "/campaigns", json={canary: canary})
            service.call("POST", f"/campaigns/{campaign}/withdrawals", "public", json={"nonce": canary})
            service.call("POST", f"/campaigns/{campaign}/queries", json={"queries": [canary]})
            service.answer(campaign, 1, ages(60))
            service.close(campaign, 1)
            operator = service.operator
    finally:
        for name, handlers in saved.items():
            logging.getLogger(name).handlers = handlers
            logging.getLogger(name).propagate = True
    text = stream.getvalue()
    events = [json.loads(line) for line in text.splitlines()]
    assert "wave_closed" in {e["event"] for e in events}
    for secret in (canary, operator, ADDRESS):
        assert secret not in text
        for path in tmp_path.iterdir():
            assert secret.encode() not in path.read_bytes(), path.name


def test_an_exception_is_logged_without_its_message():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonLines())
    logger = logging.Logger(logs.LOGGER.name)
    logger.addHandler(handler)
    try:
        raise ValueError("the private value is 42")
    except ValueError:
        logger.exception("request_failed")
    line = json.loads(stream.getvalue())
    assert (line["event"], line["error"]) == ("request_failed", "ValueError")
    assert "42" not in stream.getvalue()


def test_an_event_has_only_known_fields():
    with pytest.raises(AssertionError):
        logs.event("something", value=3)


def test_audit_events_are_a_chain(service):
    campaign = service.opened()
    service.run(campaign, ages(50), waves=1)
    found = service.call("GET", "/events").json()
    assert [e["number"] for e in found] == list(range(1, len(found) + 1))
    kinds = [e["event"]["event"] for e in found]
    assert kinds == ["token_added", "token_added", "campaign_created", "wave_opened", "wave_closed"]
    assert service.call("GET", f"/events?after={len(found) - 1}").json() == found[-1:]


def test_unexpected_failures_are_problems(service, monkeypatch):
    def broken(*_):
        raise RuntimeError(f"secret {os.getpid()}")

    monkeypatch.setattr(type(service.store), "campaigns", broken)
    answer = service.call("GET", "/campaigns")
    assert (answer.status_code, problem(answer)) == (500, "internal")
    assert "secret" not in answer.text


# Limits, metrics, tokens and settings that the review found wanting


def test_finding_19_rate_buckets_are_forgotten_one_by_one():
    """A flood of other addresses used to reset everybody's bucket at once."""
    limit = RateLimit(1.0, 2, FakeClock(0), most=1000)
    assert [limit.allows(ADDRESS) for _ in range(3)] == [True, True, False]
    for i in range(999):
        limit.allows(f"10.0.{i // 250}.{i % 250}")
    assert not limit.allows(ADDRESS)
    for i in range(1500):
        limit.allows(f"10.1.{i // 250}.{i % 250}")
        assert not limit.allows(ADDRESS)  # used just now, so it is not the oldest
    assert len(limit._buckets) == 1000


def test_a_household_has_one_bucket_whatever_its_addresses():
    limit = RateLimit(1.0, 2, FakeClock(0))
    assert [limit.allows(f"2001:db8:1:2::{i:x}") for i in range(3)] == [True, True, False]
    assert limit.allows("2001:db8:1:3::1")
    assert [limit.allows("2001:db8::%eth0"), limit.allows("not:an:address")] == [True, True]


def test_finding_19_metrics_are_for_monitors(service):
    assert problem(service.client.get("/metrics")) == "unauthorized"
    tokens = {role: service.service.add_token(role, f"{role}2") for role in ("operator", "analyst", "monitor")}
    found = {
        role: service.client.get("/metrics", headers={"authorization": f"Bearer {token}"}).status_code
        for role, token in tokens.items()
    }
    assert found == {"operator": 200, "analyst": 403, "monitor": 200}
    monitor = {"authorization": f"Bearer {tokens['monitor']}"}
    for method, path in (("GET", "/v1/campaigns"), ("GET", "/v1/events"), ("POST", "/v1/campaigns")):
        assert problem(service.client.request(method, path, headers=monitor, json={})) in (
            "forbidden",
            "invalid_request",
        )


def test_readiness_writes_once_a_second_however_often_it_is_asked(service, monkeypatch):
    tried = []
    monkeypatch.setattr(type(service.store), "check_writable", lambda self: tried.append(1))
    for _ in range(50):
        assert service.client.get("/v1/ready").status_code == 200
    assert len(tried) == 1
    service.clock.pass_(1)
    assert service.client.get("/v1/ready").status_code == 200
    assert len(tried) == 2


def test_finding_19_the_event_loops_lines_keep_their_message_and_nothing_that_was_put_into_it():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonLines())
    logger = logging.Logger("asyncio")
    logger.addHandler(handler)
    logger.error("Task exception was never retrieved\nfuture: <Task secret7>")
    logger.warning("socket of %s failed", "secret7")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in lines] == ["Task exception was never retrieved", "socket of %s failed"]
    assert "secret7" not in stream.getvalue()


def test_settings_are_in_the_audit_chain_when_they_change(service):
    def noted():
        return [
            e["event"]["settings"] for e in service.call("GET", "/events").json() if e["event"]["event"] == "settings"
        ]

    service.service.note_settings()
    service.service.note_settings()
    assert noted() == [{"closer_interval_s": "0.0", "rate_per_s": "0.0", "window_ms": "0.0"}]
    service.service.settings = replace(service.service.settings, rate_per_s=5.0, store="postgresql://user:secret@x/y")
    service.service.note_settings()
    assert noted()[1:] == [{"closer_interval_s": "0.0", "rate_per_s": "5.0", "window_ms": "0.0"}]


# Visits to the dashboard


@pytest.fixture
def visited(service):
    service.app.pages = make_pages(service.service)
    return service


def login(service, token, **headers):
    """The cookie of somebody who signs in."""
    lines = {"content-type": "application/x-www-form-urlencoded", **headers}
    answer = service.client.post("/login", content=f"token={token}".encode(), headers=lines)
    assert answer.status_code == 303
    return answer.headers["set-cookie"].partition(";")[0]


def sees(service, cookie):
    return service.client.get("/", headers={"cookie": cookie}).status_code == 200


def logout(service, cookie):
    word = re.search(r'name="csrf" value="(\w+)"', service.client.get("/", headers={"cookie": cookie}).text)[1]
    lines = {"content-type": "application/x-www-form-urlencoded", "cookie": cookie}
    return service.client.post("/logout", content=f"csrf={word}".encode(), headers=lines)


def test_finding_9_the_cookie_is_no_token_and_ends_at_sign_out(visited, tmp_path):
    cookie, other = login(visited, visited.operator), login(visited, visited.operator)
    assert visited.operator not in cookie
    assert cookie != other
    assert (
        problem(visited.client.get("/v1/campaigns", headers={"authorization": cookie.replace("=", " ")}))
        == "unauthorized"
    )
    assert sees(visited, cookie)
    assert logout(visited, cookie).status_code == 303
    assert not sees(visited, cookie)  # although the browser may have kept it
    assert sees(visited, other)
    kinds = [e["event"]["event"] for e in visited.call("GET", "/events").json()]
    assert kinds[-3:] == ["session_started", "session_started", "session_ended"]
    for path in tmp_path.iterdir():
        assert cookie.partition("=")[2].encode() not in path.read_bytes()


def test_finding_9_a_visit_ends_with_its_token_and_with_time(visited):
    short = visited.service.add_token("analyst", "short", 600)
    cookie, other = login(visited, short), login(visited, visited.analyst)
    visited.clock.pass_(599)
    assert sees(visited, cookie)
    visited.clock.pass_(1)
    assert not sees(visited, cookie)
    visited.call("DELETE", "/tokens/an")
    assert not sees(visited, other)
    idle = login(visited, visited.operator)
    visited.clock.pass_(3600)
    assert not sees(visited, idle)


def test_finding_9_the_id_of_a_visit_changes_and_the_visit_ends_after_twelve_hours(visited):
    first = cookie = login(visited, visited.operator)
    seen = {cookie}
    for _ in range(4 * 12 - 1):
        visited.clock.pass_(900)
        answer = visited.client.get("/", headers={"cookie": cookie})
        assert answer.status_code == 200
        old, cookie = cookie, answer.headers["set-cookie"].partition(";")[0]
        assert "set-cookie" not in visited.client.get("/", headers={"cookie": cookie}).headers
        again = visited.client.get("/", headers={"cookie": old})  # a request that was under way
        assert again.status_code == 200
        assert "set-cookie" not in again.headers  # but the old id gets no new one
        seen.add(cookie)
    assert len(seen) == 48
    assert not sees(visited, first)
    visited.clock.pass_(900)
    assert not sees(visited, cookie)


def test_a_form_that_was_open_when_the_id_changed_still_works(visited):
    cookie = login(visited, visited.operator)
    word = re.search(r'name="csrf" value="(\w+)"', visited.client.get("/", headers={"cookie": cookie}).text)[1]
    visited.clock.pass_(900)
    cookie = visited.client.get("/", headers={"cookie": cookie}).headers["set-cookie"].partition(";")[0]
    lines = {"content-type": "application/x-www-form-urlencoded", "cookie": cookie}
    assert visited.client.post("/logout", content=f"csrf={word}".encode(), headers=lines).status_code == 303
    assert not sees(visited, cookie)


def test_a_monitor_cannot_sign_in(visited):
    token = visited.service.add_token("monitor", "m")
    lines = {"content-type": "application/x-www-form-urlencoded"}
    assert visited.client.post("/login", content=f"token={token}".encode(), headers=lines).status_code == 401
