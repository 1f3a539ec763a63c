"""Which answers other origins may read: headers, preflights, caches."""

import pytest

from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.cors import parse_origins
from tests.service.server.harness import bench

HERALD = "https://herald.example"


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path, allowed_origins=f"{HERALD}, http://127.0.0.1:8000") as made:
        yield made


def preflight(service, path, method, origin=HERALD):
    headers = {"origin": origin, "access-control-request-method": method}
    return service.client.request("OPTIONS", path, headers=headers)


def test_public_routes_answer_a_named_origin_without_credentials(service):
    name = service.create()
    path = f"/v1/campaigns/{name}"
    for part, method in (("", "GET"), ("/state", "GET"), ("/chain", "GET"), ("/waves/1", "GET"), ("/reports", "POST")):
        found = preflight(service, path + part, method)
        assert (found.status_code, found.headers["access-control-allow-origin"]) == (204, HERALD)
        assert found.headers["access-control-allow-headers"] == "content-type"
        assert "access-control-allow-credentials" not in found.headers
        answer = service.client.request(method, path + part, headers={"origin": HERALD})
        assert answer.headers["access-control-allow-origin"] == HERALD
        assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
        assert "origin" in answer.headers["vary"]


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/v1/campaigns", "GET"), ("/v1/campaigns", "POST"), ("/v1/campaigns/{}/results", "GET"),
        ("/v1/campaigns/{}/void", "POST"), ("/v1/campaigns/{}/progress", "GET"), ("/v1/campaigns/{}", "DELETE"),
        ("/v1/campaigns/{}/state/x", "GET"), ("/metrics", "GET"), ("/login", "POST"), ("/static/dashboard.js", "GET"),
    ],
)  # fmt: skip
def test_other_routes_stay_closed(service, path, method):
    path = path.format(service.create())
    assert preflight(service, path, method).status_code != 204
    answer = service.client.request(method, path, headers={"origin": HERALD})
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["https://herald.example.evil", "http://herald.example", "null", "https://HERALD.example"]
)
def test_other_origins_stay_out(service, origin):
    path = f"/v1/campaigns/{service.create()}"
    assert preflight(service, path, "GET", origin).status_code != 204
    answer = service.client.get(path, headers={"origin": origin})
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "origin"  # a cache must not give it to the one that is named
    assert answer.headers.get("cross-origin-resource-policy") == "same-origin"


def test_nothing_is_open_by_default(tmp_path):
    with bench(tmp_path) as closed:
        path = f"/v1/campaigns/{closed.create()}"
        assert preflight(closed, path, "GET").status_code == 405
        answer = closed.client.get(path, headers={"origin": HERALD})
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_origins_are_parsed_or_refused():
    assert parse_origins("") == frozenset()
    assert parse_origins(" https://a.example ,http://127.0.0.1:8000") == {"https://a.example", "http://127.0.0.1:8000"}
    assert parse_origins("*") == {"*"}
    for wrong in ("a.example", "https://a.example/", "https://a.example/x", "null", "https://a b"):
        with pytest.raises(ValueError, match="allowed_origins"):
            Settings(allowed_origins=wrong)
    with pytest.raises(ValueError, match="issuer"):
        Settings(issuer="javascript:alert(1)")
