"""The OpenAPI document and the routes are the same list, and every problem is described."""

import re

import pytest

from ahead_ldp.device.refusals import Reason
from ahead_ldp.service.campaigns.problems import KINDS, MEDIA_TYPE, Problem
from ahead_ldp.service.server.app import routers
from ahead_ldp.service.server.openapi import UPLOAD_PATH
from tests.service.server.harness import TEXTS, ages, bench, problem


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        yield made


@pytest.fixture
def document(service):
    return service.client.get("/v1/openapi.json").json()


def test_every_route_is_in_the_document_and_the_other_way_round(service, document):
    served = {
        (method, route.path)
        for router in routers(service.service)
        for route in router.routes
        for method in route.methods
    }
    described = {(m.upper(), path) for path, operations in document["paths"].items() for m in operations}
    assert described - {("POST", UPLOAD_PATH)} == served
    assert ("POST", UPLOAD_PATH) in described


def test_the_upload_route_is_served_by_the_raw_path(service):
    campaign = service.opened()
    answer = service.upload(campaign, b"")
    assert problem(answer) == "truncated"


def test_every_operation_has_a_summary_and_describes_its_problems(document):
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("summary"), (method, path)
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    assert set(answer["content"]) == {MEDIA_TYPE}, (method, path, status)


def test_types_and_reasons_are_listed(document):
    schemas = document["components"]["schemas"]
    assert len(schemas["ProblemView"]["properties"]["type"]["enum"]) == len(KINDS)
    assert schemas["Refusal"]["properties"]["reason"]["enum"] == [r.value for r in Reason]


def test_roles_are_described_and_enforced(service, document):
    """Every operation of a role refuses the public, and one of an operator or monitor refuses analysts."""
    campaign = service.opened()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            role = (set(operation["tags"]) & {"operator", "analyst", "monitor"} or {"public"}).pop()
            assert (operation.get("security") is not None) == (role != "public")
            if role == "public":
                continue
            url = re.sub(r"\{number\}", "1", path.replace("{campaign}", campaign).replace("{name}", "x"))
            bare = service.client.request(method.upper(), url, json={})
            assert (bare.status_code, problem(bare)) == (401, "unauthorized"), (method, path)
            assert bare.headers["www-authenticate"] == "Bearer"
            if role != "analyst":
                analyst = {"authorization": f"Bearer {service.analyst}"}
                low = service.client.request(method.upper(), url, headers=analyst, json={})
                assert (low.status_code, problem(low)) == (403, "forbidden"), (method, path)


WAITING = ("key_missing", "overloaded", "unavailable")  # 503, and it may be better later


@pytest.mark.parametrize("kind", KINDS)
def test_every_problem_has_one_shape(kind):
    found = Problem(kind, "more").record()
    assert set(found) == {"type", "title", "status", "detail"}
    assert 400 <= found["status"] < 600
    assert ("retry-after" in Problem(kind).headers()) == (found["status"] == 429 or kind in WAITING)


def test_bad_requests_are_problems_that_repeat_nothing(service):
    canary = "canary-5fa1"
    campaign = service.opened()
    tries = [
        ("POST", "/campaigns", {**TEXTS, canary: canary}),
        ("POST", "/campaigns", canary),
        ("POST", f"/campaigns/{campaign}/waves/1/extend", {"seconds": canary}),
        ("POST", f"/campaigns/{campaign}/queries", {"queries": [1], canary: 1}),
        ("POST", f"/campaigns/{campaign}/withdrawals", {"nonce": canary}),
        ("GET", f"/campaigns/{canary}", None),
        ("GET", f"/campaigns/{campaign}/waves/{canary}", None),
        ("GET", f"/{canary}", None),
        ("DELETE", f"/campaigns/{campaign}", None),
    ]
    for method, path, body in tries:
        answer = service.call(method, path, json=body)
        assert 400 <= answer.status_code < 500, (path, answer.status_code)
        problem(answer)
        assert canary not in answer.text


def test_bad_queries_say_what_is_wrong(service):
    campaign = service.opened()
    service.run(campaign, ages(30), waves=1)
    for query in ("salary in 1..2", "age in", "age in 5..x", ""):
        answer = service.call("POST", f"/campaigns/{campaign}/queries", "analyst", json={"queries": [query]})
        assert (answer.status_code, problem(answer)) == (422, "invalid_query")
        assert answer.json()["detail"]
